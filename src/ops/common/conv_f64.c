/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution in f64 over row-major images; the engine has only reference loops for f64.
 */
#include "ops/common/conv_f64.h"

static ctn__conv_f64_problem pose(ctn__conv_kind kind, const int64_t *attr, const ctn_desc *x,
                                  const ctn_desc *w, const ctn_desc *y, int threads)
{
    const int64_t G = attr[CTN__CONV_GROUPS];
    ctn__conv_f64_problem p = {.kind = kind,
                               .tile = ctn__f64_tile_best(),
                               .N = x->dim[0],
                               .G = G,
                               .Ig = x->dim[1] / G,
                               .Og = y->dim[1] / G,
                               .taps = 1,
                               .image = {1, 1},
                               .threads = threads};
    p.cols = (int64_t)p.tile.vectors * p.tile.lanes;
    const int missing = 5 - x->ndim;
    for (int i = 0; i < 3; i++) {
        const int k = i - missing;
        p.x[i] = k < 0 ? 1 : x->dim[2 + k];
        p.w[i] = k < 0 ? 1 : w->dim[2 + k];
        p.y[i] = k < 0 ? 1 : y->dim[2 + k];
        p.stride[i] = k < 0 ? 1 : attr[CTN__CONV_STRIDE + k];
        p.pad[i] = k < 0 ? 0 : attr[CTN__CONV_PAD + k];
        p.dilation[i] = k < 0 ? 1 : attr[CTN__CONV_DILATION + k];
        p.taps *= p.w[i];
        p.image[0] *= p.x[i];
        p.image[1] *= p.y[i];
    }
    return p;
}

static ctn_status run_forward(const ctn_run_args *a)
{
    const ctn__conv_f64_problem p =
        pose(CTN__CONV_FORWARD, a->attr, &a->din[0], &a->din[1], &a->dout[0], a->env->threads);
    ctn__conv_f64_room r = {.base = a->scratch};
    ctn__conv_f64_image(&p, a->in[0], a->in[1], a->nin > 2 ? a->in[2] : NULL,
                        a->attr[CTN__CONV_ACT] == CTN__ELT_RELU, a->out[0], &r);
    return CTN_OK;
}

static ctn_status run_data(const ctn_run_args *a)
{
    const ctn__conv_f64_problem p =
        pose(CTN__CONV_DATA, a->attr, &a->dout[0], &a->din[1], &a->din[0], a->env->threads);
    ctn__conv_f64_room r = {.base = a->scratch};
    ctn__conv_f64_image(&p, a->in[0], a->in[1], NULL, false, a->out[0], &r);
    return CTN_OK;
}

static ctn_status run_weights(const ctn_run_args *a)
{
    const ctn__conv_f64_problem p =
        pose(CTN__CONV_WEIGHTS, a->attr, &a->din[0], &a->dout[0], &a->din[1], a->env->threads);
    ctn__conv_f64_room r = {.base = a->scratch};
    ctn__conv_f64_weights(&p, a->in[0], a->in[1], a->out[0], &r);
    return CTN_OK;
}

ctn_status ctn__conv_f64(ctn_prepare_args *a, ctn__conv_kind kind)
{
    ctn_desc *x = &a->din[0], *w = &a->din[1], *y = &a->dout[0];
    a->run = run_forward;
    if (kind == CTN__CONV_DATA) {
        x = &a->dout[0];
        y = &a->din[0];
        a->run = run_data;
    } else if (kind == CTN__CONV_WEIGHTS) {
        w = &a->dout[0];
        y = &a->din[1];
        a->run = run_weights;
    }
    for (int i = 0; i < a->nin; i++) ctn__plain(&a->din[i]);
    ctn__plain(&a->dout[0]);
    const ctn__conv_f64_problem p = pose(kind, a->attr, x, w, y, a->threads);
    ctn__conv_f64_room r = {0};
    if (kind == CTN__CONV_WEIGHTS) ctn__conv_f64_weights(&p, NULL, NULL, NULL, &r);
    else ctn__conv_f64_image(&p, NULL, NULL, NULL, false, NULL, &r);
    a->scratch = r.used;
    a->kernel = "own:tiles";
    return CTN_OK;
}
