/* SPDX-License-Identifier: Apache-2.0
 *
 * Allreduce on a grid of R rows and C columns, rank = row * C + column, for torus networks and
 * for many ranks. It uses rings as short as the sides of the grid instead of one ring through all
 * ranks. Any R x C works; with one row or one column it is the ring.
 *
 *   1. Reduce-scatter by ring along the row: column c has the row's sum of block c (of C).
 *   2. Allreduce of that block by ring along the column: it is now the sum over all ranks.
 *   3. Allgather by ring along the row.
 *
 *         rank 0  [a b c]    1  [a b c]    2  [a b c]  --.  1: sums of each row, by blocks
 *              3  [a b c]    4  [a b c]    5  [a b c]  --'
 *                  |             |             |        2: a with a, b with b, c with c
 *
 * The ranks of a column end step 2 with the same bits, so all ranks end with the same bits.
 *
 * Cost, n bytes:
 *     2 (R + C - 2) alpha + 2 (RC-1)/(RC) n beta + (RC-1)/(RC) n gamma
 */
#include "comm/ring.h"

static bool torus_round(const ctn__place *me, int64_t n, int k, ctn__round *r)
{
    int R = me->rows, C = me->cols, row = me->rank / C, col = me->rank % C;
    int down = k - (C - 1), back = down - 2 * (R - 1); /* steps of phases 2 and 3 */
    if (back >= C - 1) return false;
    if (down >= 0 && back < 0) {
        int64_t begin = ctn__part(n, C, col);
        ctn__ring_both(me, r, begin, ctn__part(n, C, col + 1) - begin, R, row, down);
        r->to = r->to * C + col;
        r->from = r->from * C + col;
    } else {
        ctn__ring_step(me, r, 0, n, C, col, down < 0 ? k : back, down < 0);
        r->to += row * C;
        r->from += row * C;
    }
    return true;
}

static double torus_cost(const ctn__place *me, double bytes, double alpha, double beta,
                         double gamma)
{
    int p = me->size;
    double most = bytes * (p - 1) / p;
    return 2 * (me->rows + me->cols - 2) * alpha + 2 * most * beta + most * gamma;
}

static int torus_parts(const ctn__place *me)
{
    return me->cols > 1 ? me->cols : me->rows;
}

const ctn__algorithm ctn__torus = {.name = "torus",
                                   .round = torus_round,
                                   .cost = torus_cost,
                                   .parts = torus_parts};
