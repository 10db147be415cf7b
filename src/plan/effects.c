/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops that only plans contain: writes to variables, gradients and outputs, and the reorders of the
 * layout pass. Passes create them and they are never recorded, so they need no infer or grad.
 */
#include "plan/plan.h"

#include "ops/ops.h"

enum { CHUNK = 16384 }; /* elements that a thread processes at a time */

/* Permute the dimensions of both into the memory order of d. True if d is then contiguous. */
static bool in_a_row(ctn_desc *d, ctn_desc *s)
{
    const ctn_desc was = *d, from = *s;
    int order[CTN_MAX_DIMS];
    ctn__by_stride(&was, order);
    for (int i = 0; i < was.ndim; i++) {
        d->dim[i] = was.dim[order[i]];
        d->stride[i] = was.stride[order[i]];
        s->dim[i] = from.dim[order[i]];
        s->stride[i] = from.stride[order[i]];
    }
    return ctn__is_plain(d);
}

/* Copy to contiguous memory, which threads can divide anywhere. */
static void copy_to_row(const ctn_run_args *a, const ctn_desc *d, const ctn_desc *s)
{
    const size_t es = ctn_dtype_size(d->dtype);
    const int64_t n = ctn__count(d);
    ctn__walk w;
    ctn__walk_init(&w, d, s);
#pragma omp parallel for schedule(static) if (n > CHUNK)
    for (int64_t at = 0; at < n; at += CHUNK)
        ctn__walk_copy(&w, a->in[0], es, at, n - at < CHUNK ? n - at : CHUNK,
                       (char *)a->out[0] + at * (int64_t)es);
}

static ctn_status copy_run(const ctn_run_args *a)
{
    const ctn_desc *s = &a->din[0], *d = &a->dout[0];
    int64_t rows = d->ndim > 1 ? d->dim[0] : 1;
    ctn_desc row = *d, from = *s;
    if (ctn__count(d) > CHUNK && in_a_row(&row, &from)) {
        copy_to_row(a, &row, &from);
        return CTN_OK;
    }
    if (d->ndim < 2 || ctn__bytes(d) < 65536) {
        ctn__copy_strided(a->out[0], d, a->in[0], s);
        return CTN_OK;
    }
    ctn_desc sr = *s, dr = *d; /* one row at a time, rows distributed over threads */
    sr.ndim = dr.ndim = d->ndim - 1;
    memmove(sr.dim, s->dim + 1, (size_t)sr.ndim * sizeof *sr.dim);
    memmove(sr.stride, s->stride + 1, (size_t)sr.ndim * sizeof *sr.stride);
    memmove(dr.dim, d->dim + 1, (size_t)dr.ndim * sizeof *dr.dim);
    memmove(dr.stride, d->stride + 1, (size_t)dr.ndim * sizeof *dr.stride);
    int64_t es = (int64_t)ctn_dtype_size(d->dtype);
    int64_t ds = d->stride[0] * es, ss = s->stride[0] * es;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < rows; i++)
        ctn__copy_strided((char *)a->out[0] + i * ds, &dr, (const char *)a->in[0] + i * ss, &sr);
    return CTN_OK;
}

ctn_op ctn__op_write = {sizeof(ctn_op), "write", 1, 1, CTN_OP_STRIDED, .run = copy_run};

/* oneDNN reorders the types, strides and layouts it supports; everything else is copied by rows. */
static ctn_status reorder_prepare(ctn_prepare_args *a)
{
    const ctn_desc *s = &a->din[0], *d = &a->dout[0];
    bool must = s->layout || d->layout || s->dtype != d->dtype;
    bool positive = ctn__count(s) > 4096 && s->dtype != CTN_F64 && s->dtype != CTN_I64;
    for (int i = 0; i < s->ndim && s->layout == 0; i++) positive &= s->stride[i] > 0;
    a->run = copy_run;
    if (!positive && !must) return CTN_OK;
    ctn__prim *p = NULL;
    if (ctn__prim_reorder(&p, a->engine, s, d) < 0) {
        if (must || ctn_error_status() == CTN_ENOMEM) return ctn_error_status();
        ctn_error_clear();
        return CTN_OK;
    }
    return ctn__with_prim(a, p, ctn__run_prim);
}

ctn_op ctn__op_reorder = {
    sizeof(ctn_op), "reorder", 1, 1, CTN_OP_STRIDED, .prepare = reorder_prepare};

/* A pool is f32 or f64, whatever the policy. */
static ctn_status accumulate_run(const ctn_run_args *a)
{
    const int64_t n = ctn__count(&a->dout[0]);
    if (a->dout[0].dtype == CTN_F64) {
        const double *restrict x = a->in[0];
        double *restrict y = a->out[0];
#pragma omp parallel for simd schedule(static) if (n > CHUNK)
        for (int64_t i = 0; i < n; i++) y[i] += x[i];
    } else {
        const float *restrict x = a->in[0];
        float *restrict y = a->out[0];
#pragma omp parallel for simd schedule(static) if (n > CHUNK)
        for (int64_t i = 0; i < n; i++) y[i] += x[i];
    }
    return CTN_OK;
}

ctn_op ctn__op_accumulate = {sizeof(ctn_op), "accumulate", 1, 1, .run = accumulate_run};

static ctn_status clear_run(const ctn_run_args *a)
{
    ctn__zero(a->out[0], ctn__bytes(&a->dout[0]), a->env->threads);
    return CTN_OK;
}

ctn_op ctn__op_clear = {sizeof(ctn_op), "clear", 0, 1, .run = clear_run};
