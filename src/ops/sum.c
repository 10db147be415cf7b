/* SPDX-License-Identifier: Apache-2.0
 *
 * sum over axes (none given: all). Attributes: keep, then the axes. Gradient: gy broadcast back.
 *
 * The order of additions depends on the shape alone, never on the number of threads: columns are added in
 * blocks of rows, whole rows in double.
 */
#include "ops/ops.h"

enum { KEEP, AXIS0 };

static unsigned axis_mask(const int64_t *attr, int nattr, int ndim)
{
    unsigned m = 0;
    for (int i = AXIS0; i < nattr; i++) m |= 1u << ctn__axis(ndim, attr[i]);
    return nattr > AXIS0 ? m : (1u << ndim) - 1;
}

static ctn_status sum_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    char t[128];
    CTN_TRY(ctn__infer_same(a));
    for (int i = AXIS0; i < a->nattr; i++)
        if (ctn__axis(x->ndim, a->attr[i]) < 0)
            return ctn_fail(CTN_ESHAPE, "%s: axis %lld of %s", a->name, (long long)a->attr[i],
                            ctn__shape_text(x, t, sizeof t));
    unsigned m = axis_mask(a->attr, a->nattr, x->ndim);
    a->out[0].ndim = 0;
    for (int i = 0; i < x->ndim; i++) {
        bool gone = m >> i & 1;
        if (!gone || a->attr[KEEP]) a->out[0].dim[a->out[0].ndim++] = gone ? 1 : x->dim[i];
    }
    return CTN_OK;
}

/* R rows of C columns, row-major: y[c] = sum over rows, C split over threads. */
enum { ROWS = 256, COLS = 64 };
#define COLUMN_SUMS(T)                                                                            \
    do {                                                                                          \
        const T *x = a->in[0];                                                                    \
        T *y = a->out[0];                                                                         \
        _Pragma("omp parallel for schedule(static) if (R * C > CTN__GRAIN)") for (int64_t c0 = 0; \
                                                                                  c0 < C;         \
                                                                                  c0 += COLS)     \
        {                                                                                         \
            int64_t nc = C - c0 < COLS ? C - c0 : COLS;                                           \
            double total[COLS] = {0};                                                             \
            for (int64_t r0 = 0; r0 < R; r0 += ROWS) {                                            \
                T part[COLS] = {0};                                                               \
                int64_t r1 = r0 + ROWS < R ? r0 + ROWS : R;                                       \
                for (int64_t r = r0; r < r1; r++) {                                               \
                    _Pragma("omp simd") for (int64_t c = 0; c < nc; c++) part[c] +=               \
                        x[r * C + c0 + c];                                                        \
                }                                                                                 \
                for (int64_t c = 0; c < nc; c++) total[c] += (double)part[c];                     \
            }                                                                                     \
            for (int64_t c = 0; c < nc; c++) y[c0 + c] = (T)total[c];                             \
        }                                                                                         \
    } while (0)

static ctn_status columns_run(const ctn_run_args *a)
{
    int64_t C = ctn__count(&a->dout[0]), R = C > 0 ? ctn__count(&a->din[0]) / C : 0;
    if (a->dout[0].dtype == CTN_F32) COLUMN_SUMS(float);
    else COLUMN_SUMS(double);
    return CTN_OK;
}

/* Any axes of any strides: kept dimensions outside, reduced ones inside, in double. */
static ctn_status sum_run(const ctn_run_args *a)
{
    const ctn_desc *x = &a->din[0];
    unsigned m = axis_mask(a->attr, a->nattr, x->ndim);
    ctn_desc kept = {.dtype = x->dtype}, red = {.dtype = x->dtype};
    for (int i = 0; i < x->ndim; i++) {
        ctn_desc *d = m >> i & 1 ? &red : &kept;
        d->dim[d->ndim] = x->dim[i];
        d->stride[d->ndim++] = x->stride[i];
    }
    int64_t n = ctn__count(&kept), r = ctn__count(&red);
    int64_t last = red.ndim ? red.dim[red.ndim - 1] : 1,
            ls = red.ndim ? red.stride[red.ndim - 1] : 0;
#pragma omp parallel for schedule(static) if (n > 1 && n * r > CTN__GRAIN)
    for (int64_t i = 0; i < n; i++) {
        int64_t base = 0, q = i;
        for (int k = kept.ndim - 1; k >= 0; k--) {
            base += q % kept.dim[k] * kept.stride[k];
            q /= kept.dim[k];
        }
        double s = 0;
        for (int64_t j = 0; j < r; j += last) {
            int64_t off = base, p = j / last;
            for (int k = red.ndim - 2; k >= 0; k--) {
                off += p % red.dim[k] * red.stride[k];
                p /= red.dim[k];
            }
            if (x->dtype == CTN_F32) {
                const float *v = (const float *)a->in[0] + off;
                for (int64_t l = 0; l < last; l++) s += (double)v[l * ls];
            } else {
                const double *v = (const double *)a->in[0] + off;
                for (int64_t l = 0; l < last; l++) s += v[l * ls];
            }
        }
        ctn__elem_set(a->out[0], x->dtype, i, s);
    }
    return CTN_OK;
}

static ctn_status sum_prepare(ctn_prepare_args *a)
{
    const ctn_desc *x = &a->din[0];
    unsigned m = axis_mask(a->attr, a->nattr, x->ndim);
    if (ctn__is_plain(x) && m != 0 && (m & (m + 1)) == 0 && m != (1u << x->ndim) - 1 &&
        ctn__count(&a->dout[0]) > 1) { /* leading axes only */
        a->run = columns_run;
        a->kernel = "own:columns";
    }
    return CTN_OK;
}

static ctn_status sum_grad(const ctn_grad_args *a)
{
    const ctn_desc *x = &a->in[0]->d;
    unsigned m = axis_mask(a->attr, a->nattr, x->ndim);
    int64_t dims[CTN_MAX_DIMS];
    for (int i = 0; i < x->ndim; i++) dims[i] = m >> i & 1 ? 1 : x->dim[i];
    ctn_tensor *g = ctn_reshape_at(a->at, a->gout[0], x->ndim, dims);
    a->gin[0] = ctn_broadcast_to_at(a->at, g, x->ndim, x->dim);
    return a->gin[0] ? CTN_OK : ctn_error_status();
}

ctn_op ctn__op_sum = {
    .struct_size = sizeof(ctn_op),
    .name = "sum",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_STRIDED,
    .order = -1,
    .prec = CTN_PREC_F32,
    .infer = sum_infer,
    .grad = sum_grad,
    .prepare = sum_prepare,
    .run = sum_run,
};

ctn_tensor *ctn_sum_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes, int keep)
{
    int64_t attr[AXIS0 + CTN_MAX_DIMS] = {keep != 0};
    if (naxes < 0 || naxes > CTN_MAX_DIMS) {
        ctn_fail(CTN_EARG, "sum: %d axes (%s)", naxes, at);
        return NULL;
    }
    if (naxes > 0) memcpy(attr + AXIS0, axes, (size_t)naxes * sizeof *axes);
    return ctn__apply1(at, NULL, &ctn__op_sum, 1, &x, AXIS0 + naxes, attr, 0, NULL);
}
