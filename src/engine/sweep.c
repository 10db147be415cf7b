/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizer sweeps: chooses the instruction set, divides segments among threads, and contains the
 * portable kernels. Called by optim. Shares depend on the thread count, results do not (see
 * sweep.h).
 */
#include "engine/sweep.h"

#include "engine/isa.h"

#include <math.h>

#define SWEEP_TABLE ctn__sweep_portable
#include "engine/sweep_body.h"

/* With fewer floats, waking a team costs more than it saves. Use the full team or one thread only:
 * libgomp ends and restarts threads when the team size changes between regions. */
#define PARALLEL_MIN 8192
/* Floats updated before their bf16 copy is made, so that w is still in the L1 cache. */
#define NARROW_EVERY 1024

static const ctn__sweep_kernels *kernels(void)
{
    static const ctn__sweep_kernels *const table[] = CTN__ISA_TABLE(&ctn__sweep);
    return table[ctn__isa_in_use()];
}

/* The border between two shares: the pool position after `count` floats of the segments, rounded
 * down to a multiple of 16. Monotone in count. */
static int64_t border(const ctn__sweep_seg *seg, int64_t segs, int64_t count)
{
    for (int64_t s = 0; s < segs; s++) {
        int64_t n = seg[s].end - seg[s].begin;
        if (count < n) return (seg[s].begin + count) / 16 * 16;
        count -= n;
    }
    return INT64_MAX;
}

static const ctn__sweep_typed *typed(bool f64)
{
    return f64 ? &kernels()->f64 : &kernels()->f32;
}

static void update(ctn__sweep_kind kind, const ctn__sweep_pool *p, const ctn__sweep_seg *h,
                   int64_t lo, int64_t hi)
{
    const ctn__sweep_typed *k = typed(p->f64);
    if (p->low == NULL) {
        k->step[kind](p, h, lo, hi);
        return;
    }
    for (int64_t a = lo; a < hi; a += NARROW_EVERY) {
        int64_t b = hi - a < NARROW_EVERY ? hi : a + NARROW_EVERY;
        k->step[kind](p, h, a, b);
        kernels()->narrow((const float *)p->w + a, p->low + a, b - a);
    }
}

void ctn__sweep(ctn__sweep_kind kind, const ctn__sweep_pool *p, const ctn__sweep_seg *seg,
                int64_t segs, int threads)
{
    int64_t total = 0;
    for (int64_t s = 0; s < segs; s++) total += seg[s].end - seg[s].begin;
    int shares = total < PARALLEL_MIN || threads < 1 ? 1 : threads;

#pragma omp parallel for schedule(static) num_threads(shares) if (shares > 1)
    for (int t = 0; t < shares; t++) {
        int64_t from = t == 0 ? 0 : border(seg, segs, total / shares * t);
        int64_t to = t == shares - 1 ? INT64_MAX : border(seg, segs, total / shares * (t + 1));
        for (int64_t s = 0; s < segs; s++) {
            int64_t lo = seg[s].begin > from ? seg[s].begin : from;
            int64_t hi = seg[s].end < to ? seg[s].end : to;
            if (lo < hi) update(kind, p, &seg[s], lo, hi);
        }
    }
}

double ctn__sweep_dot(const void *a, const void *b, bool f64, int64_t n, double *partial,
                      int threads)
{
    const ctn__sweep_typed *k = typed(f64);
    const size_t unit = f64 ? sizeof(double) : sizeof(float);
    const int64_t blocks = ctn__sweep_blocks(n);
    int shares = n < PARALLEL_MIN || threads < 1 ? 1 : threads;
    double total = 0;

#pragma omp parallel for schedule(static) num_threads(shares) if (shares > 1)
    for (int64_t i = 0; i < blocks; i++) {
        const int64_t from = i * CTN__SWEEP_BLOCK;
        const size_t at = (size_t)from * unit;
        partial[i] = k->dot((const char *)a + at, (const char *)b + at,
                            n - from < CTN__SWEEP_BLOCK ? n - from : CTN__SWEEP_BLOCK);
    }
    for (int64_t i = 0; i < blocks; i++) total += partial[i];
    return total;
}

double ctn__sweep_norm2(const void *g, bool f64, int64_t n, double *partial, int threads,
                        bool *finite)
{
    /* Squares of floats cannot overflow a double, so the sum is finite if all floats are. */
    const double total = ctn__sweep_dot(g, g, f64, n, partial, threads);
    *finite = isfinite(total);
    return total;
}
