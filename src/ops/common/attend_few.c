/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of a few queries over many keys. A task is one head of keys of one sample. It goes
 * through the keys, then through the values, once, for all queries of the head.
 */
#include <math.h>
#include <omp.h>

#include "ops/common/attend.h"
#include "ops/common/vmath.h"

/* The dot product of x and y. */
CTN__PER_ISA(dot, (const float *x, const float *y, int64_t n, float *out), (x, y, n, out))
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += x[i] * y[i];
    *out = sum;
}

CTN__PER_ISA(add_row, (float *y, const float *x, int64_t n, float c), (y, x, n, c))
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] += c * x[i];
}

/* x = exp(x - max), the maximum and the sum. */
CTN__PER_ISA(exp_all, (float *x, int64_t n, float *max, float *sum), (x, n, max, sum))
{
    float top = -INFINITY, all = 0;
#pragma omp simd reduction(max : top)
    for (int64_t i = 0; i < n; i++) top = x[i] > top ? x[i] : top;
    const float from = top > -INFINITY ? top : 0; /* a mask hides all keys */
#pragma omp simd reduction(+ : all)
    for (int64_t i = 0; i < n; i++) {
        x[i] = ctn__expf(x[i] - from);
        all += x[i];
    }
    *max = from;
    *sum = all;
}

/* Rows of an operand, contiguous: in place if they already are, otherwise copied to `room`. */
static const float *row_of(const ctn__attend_in *x, int64_t n, int64_t h, int64_t i, int64_t cols,
                           float *room)
{
    if (x->stride[3] == 1 && x->type == CTN_F32)
        return (const float *)x->at + n * x->stride[0] + h * x->stride[1] + i * x->stride[2];
    ctn__attend_read(room, x, n, h, i, cols, 1);
    return room;
}

/* What the queries of a task have: scores (Q,M), results (Q,F), the keys each of them sees. */
typedef struct {
    int64_t Q; /* number of queries: L of each head in the group */
    float *q, *s, *y, *row;
    ctn__keys see[CTN__FEW], any;
} few;

static void scores(const ctn__attend *t, const ctn__attend_args *a, few *f, int64_t n, int64_t k)
{
    for (int64_t j = f->any.lo; j < f->any.hi; j++) {
        const float *key = row_of(&a->k, n, k, j, t->E, f->row);
        for (int64_t i = 0; i < f->Q; i++)
            dot[t->isa](f->q + i * t->E, key, t->E, &f->s[i * t->M + j]);
    }
    for (int64_t i = 0; a->bias.at && i < f->Q; i++) {
        const int64_t *st = a->bias.stride, h = k * (t->H / t->K) + i / t->L;
        const float *b = a->bias.at + n * st[0] + h * st[1] + i % t->L * st[2];
        for (int64_t j = f->see[i].lo; j < f->see[i].hi; j++) f->s[i * t->M + j] += b[j * st[3]];
    }
}

static void values(const ctn__attend *t, const ctn__attend_args *a, few *f, int64_t n, int64_t k)
{
    memset(f->y, 0, (size_t)(f->Q * t->F) * sizeof *f->y);
    for (int64_t j = f->any.lo; j < f->any.hi; j++) {
        const float *v = row_of(&a->v, n, k, j, t->F, f->row);
        for (int64_t i = 0; i < f->Q; i++)
            if (j >= f->see[i].lo && j < f->see[i].hi)
                add_row[t->isa](f->y + i * t->F, v, t->F, f->s[i * t->M + j]);
    }
}

/* Head k of the keys of sample n. */
static void few_task(const ctn__attend *t, const ctn__attend_args *a, ctn__attend_out y,
                     float *sums, int64_t n, int64_t k, few *f)
{
    const int64_t group = t->H / t->K, keys = ctn__attend_keys(t, a, n);
    float max[CTN__FEW] = {0}, sum[CTN__FEW] = {0};
    f->any = (ctn__keys){keys, 0};
    for (int64_t i = 0; i < f->Q; i++) {
        const float *q = row_of(&a->q, n, k * group + i / t->L, i % t->L, t->E, f->row);
        for (int64_t e = 0; e < t->E; e++) f->q[i * t->E + e] = q[e] * a->scale;
        f->see[i] = ctn__attend_visible(t, keys, ctn__attend_first(a, n) + i % t->L);
        if (f->see[i].lo < f->any.lo) f->any.lo = f->see[i].lo;
        if (f->see[i].hi > f->any.hi) f->any.hi = f->see[i].hi;
    }
    scores(t, a, f, n, k);
    for (int64_t i = 0; i < f->Q; i++)
        exp_all[t->isa](f->s + i * t->M + f->see[i].lo, f->see[i].hi - f->see[i].lo, &max[i],
                        &sum[i]);
    values(t, a, f, n, k);
    for (int64_t i = 0; i < f->Q; i++) {
        const int64_t h = k * group + i / t->L, l = i % t->L;
        const float c = sum[i] > 0 ? 1 / sum[i] : 0;
        ctn__attend_write(&y, n, h, l, f->y + i * t->F, 1, t->F, c);
        if (sums) sums[(n * t->H + h) * t->L + l] = sum[i] > 0 ? max[i] + logf(sum[i]) : INFINITY;
    }
}

size_t ctn__attend_few_floats(const ctn__attend *t)
{
    const int64_t Q = t->L * (t->H / t->K), row = t->E > t->F ? t->E : t->F;
    return (size_t)((Q * (t->E + t->F + t->M) + row + 15) / 16 * 16);
}

void ctn__attend_few(const ctn__attend *t, const ctn__attend_args *a, ctn__attend_out y,
                     float *sums, int threads, float *scratch)
{
    const int64_t tasks = t->N * t->K;
    const size_t room = ctn__attend_few_floats(t);
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (tasks > 1)
    for (int64_t u = 0; u < tasks; u++) {
        few f = {.Q = t->L * (t->H / t->K)};
        f.q = scratch + (size_t)omp_get_thread_num() * room;
        f.y = f.q + f.Q * t->E;
        f.row = f.y + f.Q * t->F;
        f.s = f.row + (t->E > t->F ? t->E : t->F);
        few_task(t, a, y, sums, u / t->K, u % t->K, &f);
    }
}
