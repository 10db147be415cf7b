/* SPDX-License-Identifier: Apache-2.0
 *
 * What softmax.c and log_softmax.c share: attribute 0 is the axis, around which a row-major tensor
 * is seen as (outer, C, inner).
 */
#ifndef CTN_OPS_SOFTMAX_H
#define CTN_OPS_SOFTMAX_H

#include "ops/loss.h"

typedef struct {
    int64_t outer, C, inner;
} ctn__axis_view;

ctn__axis_view ctn__axis_view_of(const ctn_desc *d, int64_t axis);
ctn_status ctn__softmax_infer(ctn_infer_args *a);

enum { CTN__COLS = 64 };

/* out 0 from in 0 and z (the other input, or NULL), one call per row where the axis is the last,
 * else one per CTN__COLS neighbouring columns: row_T(x, z, y, C) and cols_T(x, z, y, C, inner, n),
 * T float or double. */
#define CTN__ALONG_AXIS(a, z, row, cols)                                              \
    do {                                                                              \
        if (ctn__count(&(a)->dout[0]) == 0) break;                                    \
        if ((a)->dout[0].dtype == CTN_F32) CTN__ALONG_AXIS_T(a, z, row, cols, float); \
        else CTN__ALONG_AXIS_T(a, z, row, cols, double);                              \
    } while (0)
#define CTN__ALONG_AXIS_T(a, z, row, cols, T)                                                    \
    do {                                                                                         \
        const T *x_ = (a)->in[0], *z_ = (z);                                                     \
        T *y_ = (a)->out[0];                                                                     \
        ctn__axis_view v_ = ctn__axis_view_of(&(a)->dout[0], (a)->attr[0]);                      \
        int64_t C_ = v_.C, inner_ = v_.inner, per_ = (inner_ + CTN__COLS - 1) / CTN__COLS;       \
        int64_t parts_ = v_.outer * per_, all_ = v_.outer * C_ * inner_;                         \
        _Pragma("omp parallel for schedule(static) if (all_ > CTN__GRAIN)") for (int64_t p_ = 0; \
                                                                                 p_ < parts_;    \
                                                                                 p_++)           \
        {                                                                                        \
            int64_t i_ = p_ % per_ * CTN__COLS, at_ = p_ / per_ * C_ * inner_ + i_;              \
            int64_t n_ = inner_ - i_ < CTN__COLS ? inner_ - i_ : CTN__COLS;                      \
            const T *q_ = z_ ? z_ + at_ : NULL;                                                  \
            if (inner_ == 1) row##_##T(x_ + at_, q_, y_ + at_, C_);                              \
            else cols##_##T(x_ + at_, q_, y_ + at_, C_, inner_, n_);                             \
        }                                                                                        \
    } while (0)

#endif
