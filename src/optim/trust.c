/* SPDX-License-Identifier: Apache-2.0
 *
 * The norms of single parameters and their gradients, which LARS and LAMB need before the update.
 * Segments are not joined for such optimizers: the k-th one belongs to the k-th trained parameter.
 * If updates are sharded, each rank sums over its own blocks, and one small message adds the sums.
 */
#include "optim/optim.h"

#include <math.h>

/* sum[2 i] += |w|^2 and sum[2 i + 1] += |g|^2 of parameter i, over the elements of this rank. */
static void add_own(ctn_optim *o, int threads, double *sum)
{
    const ctn__pool *p = o->pool;
    for (ctn__own k = {0}; ctn__own_next(o, &k);) {
        for (int i = 0; i < p->nvar; i++) {
            const int64_t lo = p->begin[i] > k.begin ? p->begin[i] : k.begin;
            const int64_t hi = p->begin[i + 1] < k.end ? p->begin[i + 1] : k.end;
            bool finite;
            if (lo >= hi || !ctn__trained(o, i)) continue;
            sum[2 * i] += ctn__optim_norm2(o, p->w, lo, hi - lo, threads, &finite);
            sum[2 * i + 1] += ctn__optim_norm2(o, p->g, lo, hi - lo, threads, &finite);
        }
    }
}

ctn_status ctn__trust_run(ctn_optim *o, double lr, int threads)
{
    const int n = o->pool->nvar;
    ctn_status st = CTN_OK;
    double *sum = ctn__calloc((size_t)n * 4 + 1, sizeof *sum);
    if (!sum) return CTN_ENOMEM;
    if (o->first) ctn__sweep_gradients(o, o->first, threads);
    if (o->change) CTN_TRY_GOTO(st, done, o->change(o, threads));
    add_own(o, threads, sum);
    if (ctn__optim_sharded(o))
        CTN_TRY_GOTO(st, done,
                     ctn__comm_sum(ctn__exchange_comm(o->pool->exchange), sum, 2 * n, CTN_F64,
                                   sum + 2 * n));
    for (int i = 0, k = 0; i < n; i++)
        if (ctn__trained(o, i))
            o->trust(o, &o->group[i], lr * o->group[i].lr_scale, sqrt(sum[2 * i]),
                     sqrt(sum[2 * i + 1]), &o->seg[k++]);
done:
    ctn__free(sum);
    return st;
}
