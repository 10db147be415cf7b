/* SPDX-License-Identifier: Apache-2.0
 *
 * Segmentation, for the loss of a task, eval and predict (segment.c).
 */
#ifndef CATENA_SEGMENT_H
#define CATENA_SEGMENT_H

#include "task.h"

/* (N,C,...) -> (N,...,C), as losses and metrics expect it. Result: scope. */
ctn_tensor *channels_last(ctn_tensor *y);
/* Mean intersection over union over all samples of set[0] and all ranks, and that of each class
 * (NaN: it does not occur). Collective. */
ctn_status exact_iou(task *t, double *mean, double *each);
/* Write the most likely class of each pixel of set[0]. */
ctn_status predict_masks(task *t, const char *out);

#endif
