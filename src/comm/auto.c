/* SPDX-License-Identifier: Apache-2.0
 *
 * The choice of an algorithm by measurement: every one that fits is timed on vectors of the length to come, slowest rank counted, and
 * rank 0's choice is broadcast, so that all ranks agree whatever their clocks say. What an earlier run chose is taken again.
 */
#include "comm/comm.h"

enum { ROUNDS = 3, MOST = 16 << 20 };

static ctn_status time_one(ctn_comm *c, const ctn__algorithm *a, float *buf, int64_t n, double *ms)
{
    *ms = 1e30;
    for (int i = 0; i <= ROUNDS; i++) { /* the first one warms up */
        ctn__coll *x = NULL;
        CTN_TRY(ctn_comm_barrier(c));
        uint64_t t0 = ctn__now_ns();
        CTN_TRY(ctn__coll_start(c, &x, a, buf, n, CTN_F32, c->opt.wire));
        CTN_TRY(ctn__coll_wait(x));
        double t = (double)(ctn__now_ns() - t0) * 1e-6;
        if (i > 0 && t < *ms) *ms = t;
    }
    return CTN_OK;
}

static ctn_status slowest(ctn_comm *c, double *ms, double *all)
{
    CTN_TRY(ctn_comm_allgather(c, ms, sizeof *ms, all));
    for (int r = 0; r < c->place.size; r++)
        if (all[r] > *ms) *ms = all[r];
    return CTN_OK;
}

static int index_of(const ctn_comm *c, const char *name)
{
    const ctn__algorithm *a = NULL;
    for (int i = 0; name && (a = ctn__algorithm_at(i)); i++)
        if (strcmp(a->name, name) == 0 && (!a->fits || a->fits(&c->place))) return i;
    return -1;
}

static ctn_status measure(ctn_comm *c, int64_t bytes, int *choice)
{
    ctn_status st = CTN_OK;
    int64_t n = (bytes < MOST ? bytes : MOST) / (int64_t)sizeof(float) + 1;
    double best = 1e30, *all = ctn__calloc((size_t)c->place.size, sizeof *all);
    float *buf = ctn__aligned((size_t)n * sizeof *buf);
    *choice = 0;
    if (!buf || !all) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    memset(buf, 0, (size_t)n * sizeof *buf);
    for (int i = 0; ctn__algorithm_at(i); i++) {
        const ctn__algorithm *a = ctn__algorithm_at(i);
        double ms = 0;
        if (a->fits && !a->fits(&c->place)) continue;
        CTN_TRY_GOTO(st, done, time_one(c, a, buf, n, &ms));
        CTN_TRY_GOTO(st, done, slowest(c, &ms, all));
        if (ms < best) {
            best = ms;
            *choice = i;
        }
    }
done:
    ctn__free(buf);
    ctn__free(all);
    return st;
}

ctn_status ctn__comm_choose(ctn_comm *c, int64_t bytes, const char *known)
{
    int choice = index_of(c, known);
    CTN_TRY(ctn_comm_broadcast(c, &choice, sizeof choice, 0));
    if (choice < 0) {
        CTN_TRY(measure(c, bytes, &choice));
        CTN_TRY(ctn_comm_broadcast(c, &choice, sizeof choice, 0));
    }
    c->alg = ctn__algorithm_at(choice);
    return CTN_OK;
}
