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

static void update(const ctn__sweep_kernels *k, ctn__sweep_kind kind, const ctn__sweep_pool *p,
                   const ctn__sweep_seg *h, int64_t lo, int64_t hi)
{
    if (p->low == NULL) {
        k->step[kind](p, h, lo, hi);
        return;
    }
    for (int64_t a = lo; a < hi; a += NARROW_EVERY) {
        int64_t b = hi - a < NARROW_EVERY ? hi : a + NARROW_EVERY;
        k->step[kind](p, h, a, b);
        k->narrow(p->w + a, p->low + a, b - a);
    }
}

void ctn__sweep(ctn__sweep_kind kind, const ctn__sweep_pool *p, const ctn__sweep_seg *seg,
                int64_t segs, int threads)
{
    const ctn__sweep_kernels *k = kernels();
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
            if (lo < hi) update(k, kind, p, &seg[s], lo, hi);
        }
    }
}

double ctn__sweep_norm2(const float *g, int64_t n, double *partial, int threads, bool *finite)
{
    const ctn__sweep_kernels *k = kernels();
    const int64_t blocks = ctn__sweep_blocks(n);
    int shares = n < PARALLEL_MIN || threads < 1 ? 1 : threads;
    double total = 0;

#pragma omp parallel for schedule(static) num_threads(shares) if (shares > 1)
    for (int64_t b = 0; b < blocks; b++) {
        int64_t from = b * CTN__SWEEP_BLOCK;
        partial[b] = k->sumsq(g + from, n - from < CTN__SWEEP_BLOCK ? n - from : CTN__SWEEP_BLOCK);
    }
    for (int64_t b = 0; b < blocks; b++) total += partial[b];
    /* Squares of floats cannot overflow a double, so the sum is finite if all floats are. */
    *finite = isfinite(total);
    return total;
}
