/* SPDX-License-Identifier: Apache-2.0
 *
 * The broadcasting walk: one output and up to three inputs seen in the output's shape, neighbouring
 * dimensions merged where every operand allows it.
 */
#include "ops/ops.h"

void ctn__walk_init(ctn__walk *w, const ctn_desc *out, int nin, const ctn_desc *din)
{
    ctn_desc v[CTN__WALK_MAX];
    w->nin = nin;
    w->nd = 0;
    for (int k = 0; k < nin; k++) v[k] = ctn__broadcast_view(&din[k], out);
    for (int i = 0; i < out->ndim; i++) {
        if (out->dim[i] == 1) continue;
        int j = w->nd - 1;
        bool merge = j >= 0;
        for (int k = 0; k < nin && merge; k++)
            merge = w->stride[k][j] == v[k].stride[i] * out->dim[i];
        if (!merge) {
            j = w->nd++;
            w->dim[j] = 1;
        }
        w->dim[j] *= out->dim[i];
        for (int k = 0; k < nin; k++) w->stride[k][j] = v[k].stride[i];
    }
    if (w->nd == 0) {
        w->nd = 1;
        w->dim[0] = 1;
        for (int k = 0; k < nin; k++) w->stride[k][0] = 1;
    }
    w->run = w->dim[w->nd - 1];
    w->rows = 1;
    for (int i = 0; i < w->nd - 1; i++) w->rows *= w->dim[i];
    if (w->run == 0) w->rows = 0;
}

int64_t ctn__walk_offset(const ctn__walk *w, int k, int64_t row)
{
    int64_t off = 0;
    for (int i = w->nd - 2; i >= 0; i--) {
        off += row % w->dim[i] * w->stride[k][i];
        row /= w->dim[i];
    }
    return off;
}
