/* SPDX-License-Identifier: Apache-2.0
 *
 * Mixup and cutmix of a batch, for the loader, which calls it once per batch on the thread that
 * filled it.
 */
#ifndef CTN_DATA_MIX_H
#define CTN_DATA_MIX_H

#include <catena/data.h>

/* Copy of the caller's options, checked against the fields of the dataset's samples: image f32
 * (C,H,W) in field 0, a scalar i64 in field 1. Errors: EARG, EDTYPE. */
ctn_status ctn__mix_opt(ctn_mix_opt *to, const ctn_mix_opt *from, int fields,
                        const ctn_field *field);

/* Mix n images with each other in place, and their labels (n) to parts of classes (n, classes).
 * `image` is the field of one sample, `at` the state at the batch's first sample: it chooses.
 * Allocates nothing. Errors: EARG (a label is not one of the classes). */
ctn_status ctn__mix_batch(const ctn_mix_opt *filled, const ctn_sampler_state *at, int64_t n,
                          const ctn_field *image, float *images, const int64_t *labels,
                          float *parts);

#endif
