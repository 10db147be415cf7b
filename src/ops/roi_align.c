/* SPDX-License-Identifier: Apache-2.0
 *
 * roi_align: the mean or maximum of interpolated points of each bin of a region. It is not an op of
 * its own: roi_mean or roi_max with the points of a grid.
 */
#include "ops/common/roi.h"

ctn_tensor *ctn_roi_align_at(const char *at, ctn_tensor *x, ctn_tensor *rois, ctn_tensor *roi_index,
                             const ctn_roi_opt *opt)
{
    return ctn__roi_record(at, true, x, rois, roi_index, opt);
}
