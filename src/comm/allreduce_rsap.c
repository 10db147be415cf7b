/* SPDX-License-Identifier: Apache-2.0
 *
 * Allreduce by reduce-scatter, allreduce and put, from the Oakforest-PACS study. It uses the grid
 * of torus, but its last phase is one-sided and takes one step instead of C - 1. There are R rows
 * and C columns, rank = row * C + column.
 *
 *   1. Reduce-scatter by ring along the row: column c has the row's sum of block c (of C).
 *   2. Allreduce of that block by ring along the column.
 *   3. Put the block into the regions of the other C - 1 ranks of the row, notify them, and take
 *      their blocks from the own region.
 *
 * Any R x C works. With one column it is the ring; with one row there is no step 2.
 *
 * Cost, n bytes; the puts start together, and each is followed by an empty message:
 *     (C-1 + 2(R-1)) alpha [+ 2 alpha if C > 1] + 2 (RC-1)/(RC) n beta + (RC-1)/(RC) n gamma
 */
#include "comm/ring.h"

static bool rsap_round(const ctn__place *me, int64_t n, int k, ctn__round *r)
{
    int R = me->rows, C = me->cols, row = me->rank / C, col = me->rank % C;
    int down = k - (C - 1), put = down - 2 * (R - 1);
    int64_t begin = ctn__part(n, C, col), count = ctn__part(n, C, col + 1) - begin;
    if (put > 0 || (put == 0 && C == 1)) return false;
    if (down < 0) {
        ctn__ring_step(me, r, 0, n, C, col, k, true);
        r->to += row * C;
        r->from += row * C;
    } else if (put < 0) {
        ctn__ring_both(me, r, begin, count, R, row, down);
        r->to = r->to * C + col;
        r->from = r->from * C + col;
    } else {
        *r = (ctn__round){.kind = CTN__ROUND_PUT, .sbegin = begin, .scount = count};
    }
    return true;
}

static double rsap_cost(const ctn__place *me, double bytes, double alpha, double beta, double gamma)
{
    int p = me->size, R = me->rows, C = me->cols;
    double most = bytes * (p - 1) / p;
    int steps = C - 1 + 2 * (R - 1) + (C > 1 ? 2 : 0);
    return steps * alpha + 2 * most * beta + most * gamma;
}

static int rsap_parts(const ctn__place *me)
{
    return me->cols > 1 ? me->cols : me->rows;
}

const ctn__algorithm ctn__rsap = {
    .name = "rsap", .round = rsap_round, .cost = rsap_cost, .parts = rsap_parts, .region = true};
