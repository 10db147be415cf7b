/* SPDX-License-Identifier: Apache-2.0
 *
 * roi_pool: the mean or maximum of the pixels of each bin of a region. It is not an op of its own:
 * roi_mean or roi_max with whole pixels.
 */
#include "ops/common/roi.h"

ctn_tensor *ctn_roi_pool_at(const char *at, ctn_tensor *x, ctn_tensor *rois, ctn_tensor *roi_index,
                            const ctn_roi_opt *opt)
{
    return ctn__roi_record(at, false, x, rois, roi_index, opt);
}
