/* SPDX-License-Identifier: Apache-2.0
 *
 * Mixup and cutmix of a batch. The loader calls it once per batch, on the thread that filled it.
 */
#ifndef CTN_DATA_MIX_H
#define CTN_DATA_MIX_H

#include <catena/data.h>

/* Copies the caller's options and checks them against the fields of the dataset: an f32 image
 * (C,H,W) in field 0, a scalar i64 in field 1. Errors: EARG, EDTYPE. */
ctn_status ctn__mix_opt(ctn_mix_opt *to, const ctn_mix_opt *from, int fields,
                        const ctn_field *field);

/* Mixes n images with each other in place, and turns their labels (n) into class weights
 * (n, classes). `image` is the field of one sample. `at` is the state at the first sample of the
 * batch, which determines the random choices. Allocates nothing. Errors: EARG (a label out of
 * range). */
ctn_status ctn__mix_batch(const ctn_mix_opt *filled, const ctn_sampler_state *at, int64_t n,
                          const ctn_field *image, float *images, const int64_t *labels,
                          float *parts);

#endif
