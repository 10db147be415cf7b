/* SPDX-License-Identifier: Apache-2.0
 *
 * The rounds of every algorithm without a transport: all ranks of a group run in one loop, in
 * shuffled order. A round ends when its messages have been received, as with the slowest
 * transport, so that possible deadlocks do occur. Checks that sums of integer-valued floats are
 * exact, that all ranks get the same bits, that every message is received with the length it was
 * sent with, and that no rank sends more than the cost line says. Also tests the placement of
 * ranks (place.c), and sums and conversions (sum.c).
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "comm/comm.h"
#include "support/check.h"
#include "tensor/tensor.h"

#include <cmocka.h>

enum { MOST = 64, LONGEST = 4099 };

typedef struct {
    ctn_comm c; /* for its place only */
    ctn__net net;
    int k;
    bool in_round, sent, received;
    ctn__round r;
    int shares, puts;
    int64_t total; /* elements sent */
    float x[LONGEST], region[LONGEST];
} sim_rank;

typedef struct {
    bool full; /* at most one message: the sender waits until it is received */
    int64_t n;
    const float *data;
} letter;

typedef struct {
    const ctn__algorithm *alg;
    int size;
    int64_t n;
    sim_rank *rank;
    letter box[MOST][MOST]; /* [from][to] */
    float sum[LONGEST];     /* of native rounds */
    int summed;
} sim;

static uint32_t dice = 1;

static int throw(int faces)
{
    dice = dice * 1664525u + 1013904223u;
    return (int)((dice >> 8) % (uint32_t)faces);
}

static void places(sim *s, const int *node, int rows)
{
    s->rank = calloc((size_t)s->size, sizeof *s->rank);
    assert_non_null(s->rank);
    for (int i = 0; i < s->size; i++) {
        sim_rank *q = &s->rank[i];
        q->net = (ctn__net){.rank = i, .size = s->size, .node = (int *)node};
        q->c.net = &q->net;
        q->c.opt.rows = rows;
        assert_int_equal(ctn__place_make(&q->c), CTN_OK);
    }
}

static void free_places(sim *s)
{
    for (int i = 0; i < s->size; i++) ctn__free(s->rank[i].c.tables);
    free(s->rank);
}

static const int *my_node(const ctn__place *p)
{
    return p->members + p->first[p->my_node];
}

static bool node_shared(const sim *s, const sim_rank *q)
{
    for (int i = 0; i < q->c.place.locals; i++)
        if (s->rank[my_node(&q->c.place)[i]].shares < q->shares) return false;
    return true;
}

/* Does what comm/pieces.c does, in floats. False: not possible yet. */
static bool exchange(sim *s, int me)
{
    sim_rank *q = &s->rank[me];
    const ctn__round *r = &q->r;
    letter *out = &s->box[me][r->to], *in = &s->box[r->from][me];
    if (r->scount > 0 && !q->sent) {
        assert_true(r->to != me && r->to >= 0 && r->to < s->size);
        assert_true(r->sbegin >= 0 && r->sbegin + r->scount <= s->n && !out->full);
        /* Blocks differ by one element, and a message has at most `size` of them. */
        int parts = s->alg->whole ? 1 : s->alg->parts ? s->alg->parts(&q->c.place) : s->size;
        assert_true(r->scount * parts <= s->n + s->size * parts);
        *out = (letter){.full = true, .n = r->scount, .data = q->x + r->sbegin};
        q->total += r->scount;
        q->sent = true;
    }
    if (r->rcount > 0 && !q->received) {
        if (!in->full) return false;
        assert_true(r->from != me && r->rbegin >= 0 && r->rbegin + r->rcount <= s->n);
        assert_int_equal(in->n, r->rcount);
        /* Data that is still being sent must not change. */
        if (r->scount > 0 && out->full)
            assert_true(r->rbegin + r->rcount <= r->sbegin || r->sbegin + r->scount <= r->rbegin);
        for (int64_t i = 0; i < in->n; i++) {
            float *y = &q->x[r->rbegin + i];
            *y = r->add ? *y + in->data[i] : in->data[i];
        }
        in->full = false;
        q->received = true;
    }
    return r->scount == 0 || !out->full;
}

static bool native(sim *s, sim_rank *q)
{
    if (!q->sent) {
        for (int64_t i = 0; i < s->n; i++) s->sum[i] += q->x[i];
        s->summed++;
        q->sent = true;
    }
    if (s->summed < s->size) return false;
    memcpy(q->x, s->sum, (size_t)s->n * sizeof *q->x);
    return true;
}

static bool sum_shares(sim *s, sim_rank *q)
{
    if (!node_shared(s, q)) return false;
    for (int64_t i = q->r.rbegin; i < q->r.rbegin + q->r.rcount; i++)
        for (int j = 0; j < q->c.place.locals; j++)
            if (j != q->c.place.local) q->x[i] += s->rank[my_node(&q->c.place)[j]].region[i];
    return true;
}

static bool fetch_shares(sim *s, sim_rank *q)
{
    const ctn__place *p = &q->c.place;
    if (!node_shared(s, q)) return false;
    for (int j = 0; j < p->lanes; j++)
        for (int64_t i = ctn__part(s->n, p->lanes, j); i < ctn__part(s->n, p->lanes, j + 1); i++)
            if (i < q->r.rbegin || i >= q->r.rbegin + q->r.rcount)
                q->x[i] = s->rank[my_node(p)[j]].region[i];
    return true;
}

static bool put(sim *s, int me)
{
    sim_rank *q = &s->rank[me];
    int cols = q->c.place.cols, row = me / cols;
    const ctn__round *r = &q->r;
    if (!q->sent) {
        for (int j = 0; j < cols; j++)
            if (row * cols + j != me)
                memcpy(s->rank[row * cols + j].region + r->sbegin, q->x + r->sbegin,
                       (size_t)r->scount * sizeof *q->x);
        q->total += r->scount * (cols - 1);
        q->puts++;
        q->sent = true;
    }
    for (int j = 0; j < cols; j++)
        if (s->rank[row * cols + j].puts < q->puts) return false;
    for (int64_t i = 0; i < s->n; i++)
        if (i < r->sbegin || i >= r->sbegin + r->scount) q->x[i] = q->region[i];
    return true;
}

/* Tries to advance one rank's round. True: something has changed. */
static bool turn(sim *s, int me)
{
    sim_rank *q = &s->rank[me];
    if (q->k < 0) return false;
    if (!q->in_round) {
        if (!s->alg->round(&q->c.place, s->n, q->k, &q->r)) {
            q->k = -1;
            return true;
        }
        q->in_round = true;
        q->sent = q->received = false;
    }
    bool done = true, sent = q->sent, received = q->received;
    switch (q->r.kind) {
    case CTN__ROUND_EXCHANGE: done = exchange(s, me) && (q->received || q->r.rcount == 0); break;
    case CTN__ROUND_NATIVE: done = native(s, q); break;
    case CTN__ROUND_SHARE:
        for (int64_t i = q->r.sbegin; i < q->r.sbegin + q->r.scount; i++)
            if (i < q->r.rbegin || i >= q->r.rbegin + q->r.rcount) q->region[i] = q->x[i];
        q->shares++;
        break;
    case CTN__ROUND_SUM: done = sum_shares(s, q); break;
    case CTN__ROUND_FETCH: done = fetch_shares(s, q); break;
    case CTN__ROUND_PUT: done = put(s, me); break;
    }
    q->in_round = !done;
    q->k += done;
    return done || sent != q->sent || received != q->received;
}

static void run(sim *s, float (*value)(int rank, int64_t i))
{
    for (int i = 0; i < s->size; i++) {
        sim_rank *q = &s->rank[i];
        q->k = q->shares = q->puts = 0;
        q->total = 0;
        q->in_round = false;
        for (int64_t j = 0; j < s->n; j++) q->x[j] = value(i, j);
        for (int64_t j = 0; j < s->n; j++) q->region[j] = NAN;
    }
    memset(s->box, 0, sizeof s->box);
    memset(s->sum, 0, sizeof s->sum);
    s->summed = 0;
    for (bool moved = true; moved;) {
        moved = false;
        int from = throw(s->size), step = throw(2) ? 1 : s->size - 1;
        for (int i = 0; i < s->size; i++) moved |= turn(s, (from + i * step) % s->size);
    }
    for (int i = 0; i < s->size; i++) {
        if (s->rank[i].k >= 0) fail_msg("rank %d is stuck in round %d", i, s->rank[i].k);
        for (int j = 0; j < s->size; j++) assert_false(s->box[i][j].full);
    }
}

static float whole(int rank, int64_t i)
{
    return (float)(((rank + 1) * 31 + i * 7) % 101 - 50);
}

static float broken(int rank, int64_t i)
{
    return (float)ctn__uniform(7, (uint64_t)rank, (uint64_t)i) - 0.5f;
}

static float total(int size, int64_t i)
{
    float sum = 0;
    for (int r = 0; r < size; r++) sum += whole(r, i);
    return sum;
}

/* Compares the bytes sent with the beta term of the cost line. Lanes of the hierarchical
 * algorithm share the link of their node, so there the sum of the node counts. Blocks differ by
 * one element, so each message has one element of slack. */
static void check_sent(const sim *s)
{
    for (int i = 0; i < s->size; i++) {
        const ctn__place *p = &s->rank[i].c.place;
        double claim = s->alg->cost(p, (double)s->n, 0, 1, 0);
        int64_t sent = 0;
        bool node = s->alg == &ctn__hierarchical;
        for (int j = 0; j < s->size; j++)
            if (j == i || (node && p->node_of[i] == p->node_of[j])) sent += s->rank[j].total;
        assert_true((double)sent <= claim + 2.0 * s->size);
    }
}

static void one(sim *s)
{
    run(s, whole);
    for (int r = 0; r < s->size; r++)
        for (int64_t i = 0; i < s->n; i++)
            if (s->rank[r].x[i] != total(s->size, i))
                fail_msg("%s: size %d n %lld rank %d element %lld is %g, not %g", s->alg->name,
                         s->size, (long long)s->n, r, (long long)i, (double)s->rank[r].x[i],
                         (double)total(s->size, i));
    check_sent(s);
    run(s, broken);
    for (int r = 1; r < s->size; r++)
        assert_memory_equal(s->rank[r].x, s->rank[0].x, (size_t)s->n * sizeof *s->rank[r].x);
}

static void all_lengths(const ctn__algorithm *alg, int size, const int *node, int rows)
{
    int64_t n[] = {0, 1, 2, 5, size - 1, size, size + 1, 1000, LONGEST};
    sim *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->alg = alg;
    s->size = size;
    places(s, node, rows);
    for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
        s->n = n[i];
        one(s);
    }
    free_places(s);
    free(s);
}

static const int sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* Maps of nodes: one node; one rank each; pairs; groups of three; 1 and the rest; round robin;
 * and 0 0 1 1 1 2 2 2 2. */
enum { MAPS = 7 };

static void node_map(int *node, int size, int which)
{
    static const int uneven[] = {0, 0, 2, 2, 2, 5, 5, 5, 5};
    for (int r = 0; r < size; r++) {
        switch (which) {
        case 0: node[r] = 0; break;
        case 1: node[r] = r; break;
        case 2: node[r] = r / 2 * 2; break;
        case 3: node[r] = r / 3 * 3; break;
        case 4: node[r] = r == 0 ? 0 : 1; break;
        case 5: node[r] = r % 3; break;
        default: node[r] = r < 9 ? uneven[r] : 9; break;
        }
    }
}

static void ranks_in_a_line(void **state)
{
    (void)state;
    const ctn__algorithm *alg[] = {&ctn__flat, &ctn__ring, &ctn__rabenseifner};
    static const int node[MOST] = {0};
    for (size_t a = 0; a < sizeof alg / sizeof *alg; a++)
        for (int i = 0; i < SIZES; i++) all_lengths(alg[a], sizes[i], node, 0);
    all_lengths(&ctn__rabenseifner, MOST, node, 0);
    all_lengths(&ctn__ring, MOST, node, 0);
}

static void ranks_on_a_grid(void **state)
{
    (void)state;
    static const int node[MOST] = {0};
    for (int i = 0; i < SIZES; i++) {
        for (int rows = 1; rows <= sizes[i]; rows++) {
            if (sizes[i] % rows != 0) continue;
            all_lengths(&ctn__torus, sizes[i], node, rows);
            all_lengths(&ctn__rsap, sizes[i], node, rows);
        }
    }
    all_lengths(&ctn__torus, MOST, node, 0);
    all_lengths(&ctn__rsap, MOST, node, 4);
}

static void ranks_in_nodes(void **state)
{
    (void)state;
    int node[MOST];
    for (int i = 0; i < SIZES; i++) {
        for (int which = 0; which < MAPS; which++) {
            node_map(node, sizes[i], which);
            all_lengths(&ctn__hierarchical, sizes[i], node, 0);
        }
    }
    node_map(node, MOST, 5);
    all_lengths(&ctn__hierarchical, MOST, node, 0);
}

/* Each half alone: after the scatter, rank r has the sum of block r; after the gather, every
 * rank has block r of rank r. */
static void run_halves(bool halving)
{
    static const int node[MOST] = {0};
    sim *s = calloc(1, sizeof *s);
    assert_non_null(s);
    for (int a = 0; a < SIZES; a++) {
        s->size = sizes[a];
        places(s, node, 0);
        for (s->n = 0; s->n < 40; s->n++) {
            s->alg = halving ? &ctn__halving_scatter : &ctn__ring_scatter;
            run(s, whole);
            for (int r = 0; r < s->size; r++)
                for (int64_t i = ctn__part(s->n, s->size, r); i < ctn__part(s->n, s->size, r + 1);
                     i++)
                    assert_true(s->rank[r].x[i] == total(s->size, i));
            s->alg = halving ? &ctn__doubling_gather : &ctn__ring_gather;
            run(s, broken);
            for (int r = 0; r < s->size * s->size; r++) {
                int owner = r % s->size;
                for (int64_t i = ctn__part(s->n, s->size, owner);
                     i < ctn__part(s->n, s->size, owner + 1); i++)
                    assert_true(s->rank[r / s->size].x[i] == broken(owner, i));
            }
        }
        free_places(s);
    }
    free(s);
}

static void halves_of_the_ring(void **state)
{
    (void)state;
    run_halves(false);
}

static void halving_and_doubling(void **state)
{
    (void)state;
    run_halves(true);
}

static void table_of_algorithms(void **state)
{
    (void)state;
    const char *name[] = {"flat",  "ring", "rabenseifner", "hierarchical",
                          "torus", "rsap", "doubling"};
    for (int i = 0; i < CTN__ALGORITHMS; i++) {
        assert_string_equal(ctn__algorithm_at(i)->name, name[i]);
        assert_ptr_equal(ctn__algorithm_find(name[i]), ctn__algorithm_at(i));
    }
    assert_null(ctn__algorithm_at(CTN__ALGORITHMS));
    assert_null(ctn__algorithm_at(-1));
    assert_null(ctn__algorithm_find("bucket"));
}

static ctn__place place_of(ctn_comm *c, int rank, int size, const int *node, int rows)
{
    ctn__net net = {.rank = rank, .size = size, .node = (int *)node};
    *c = (ctn_comm){.net = &net, .opt.rows = rows};
    assert_int_equal(ctn__place_make(c), CTN_OK);
    return c->place;
}

/* Of 100 bytes: the factors of alpha, beta and gamma in the lines at the top of the files. */
static void cost_lines(void **state)
{
    (void)state;
    static const int node[5] = {0};
    static const struct {
        const ctn__algorithm *alg;
        int size;
        double cost[3];
    } all[] = {
        {&ctn__flat, 4, {4, 150, 75}},
        {&ctn__flat, 5, {6, 160, 80}},
        {&ctn__rabenseifner, 4, {4, 150, 75}},
        {&ctn__rabenseifner, 5, {6, 350, 175}},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ctn_comm c;
        const ctn__place p = place_of(&c, 0, all[i].size, node, 0);
        for (int k = 0; k < 3; k++) {
            const double cost = all[i].alg->cost(&p, 100, k == 0, k == 1, k == 2);
            if (cost != all[i].cost[k])
                fail_msg("%s of %d ranks, factor %d: %g", all[i].alg->name, all[i].size, k, cost);
        }
        ctn__free(c.tables);
    }
}

/* Ranks decide by the cost what they measure together, so it must not depend on the rank. */
static void cost_is_of_the_job(void **state)
{
    (void)state;
    int node[MOST];
    for (int i = 0; i < SIZES * MAPS; i++) {
        const int size = sizes[i / MAPS];
        node_map(node, size, i % MAPS);
        for (int a = 0; a < CTN__ALGORITHMS; a++) {
            const ctn__algorithm *alg = ctn__algorithm_at(a);
            double first = 0;
            for (int r = 0; r < size; r++) {
                ctn_comm c;
                const ctn__place p = place_of(&c, r, size, node, 0);
                const double cost = alg->cost(&p, 1000, 1e-6, 1e-9, 1e-10);
                if (r == 0) first = cost;
                if (cost != first)
                    fail_msg("%s on map %d: rank %d of %d: %g, rank 0: %g", alg->name, i % MAPS, r,
                             size, cost, first);
                ctn__free(c.tables);
            }
        }
    }
}

static void where_ranks_stand(void **state)
{
    (void)state;
    ctn_comm c;
    const int node[] = {0, 1, 0, 1, 4, 1, 0};
    ctn__place p = place_of(&c, 5, 7, node, 0);
    assert_int_equal(p.nodes, 3);
    assert_int_equal(p.my_node, 1);
    assert_int_equal(p.local, 2);
    assert_int_equal(p.locals, 3);
    assert_int_equal(p.lanes, 1);
    const int members[] = {0, 2, 6, 1, 3, 5, 4}, first[] = {0, 3, 6, 7};
    assert_memory_equal(p.members, members, sizeof members);
    assert_memory_equal(p.first, first, sizeof first);
    assert_int_equal(p.rows * 10 + p.cols, 17);
    assert_true(ctn__hierarchical.fits(&p));
    ctn__free(c.tables);
    static const int one_node[64] = {0}, own[] = {0, 1, 2};
    const int grid[][3] = {{1, 1, 1}, {12, 3, 4}, {16, 4, 4}, {64, 8, 8}, {60, 6, 10}};
    for (size_t i = 0; i < sizeof grid / sizeof *grid; i++) {
        p = place_of(&c, 0, grid[i][0], one_node, 0);
        assert_true(p.rows == grid[i][1] && p.cols == grid[i][2]);
        ctn__free(c.tables);
    }
    p = place_of(&c, 0, 12, one_node, 6);
    assert_true(p.rows == 6 && p.cols == 2 && p.lanes == 12);
    ctn__free(c.tables);
    p = place_of(&c, 1, 3, own, 0);
    assert_false(ctn__hierarchical.fits(&p));
    ctn__free(c.tables);
}

static void grids_and_maps_that_are_refused(void **state)
{
    (void)state;
    const int good[12] = {0}, bad[] = {0, 2, 2};
    ctn__net net = {.size = 12, .node = (int *)good};
    ctn_comm c = {.net = &net, .opt.rows = 5};
    assert_fails(ctn__place_make(&c), CTN_EARG, "rows is 5");
    c.opt.rows = -1;
    assert_fails(ctn__place_make(&c), CTN_EARG, "rows is -1");
    net = (ctn__net){.size = 3, .node = (int *)bad};
    c.opt.rows = 0;
    assert_fails(ctn__place_make(&c), CTN_EENGINE, "rank 1's node is 2");
    ctn__free(c.tables);
}

/* Against tensor/elem.c, which uses branches instead of vectors. */
static bool same_float(float a, float b)
{
    uint32_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return x == y;
}

static void conversions(void **state)
{
    (void)state;
    enum { N = 65536 };
    uint16_t *h = malloc(N * sizeof *h), *back = malloc(N * sizeof *back);
    float *f = malloc(N * sizeof *f);
    assert_true(h != NULL && back != NULL && f != NULL);
    for (int w = 0; w < 2; w++) {
        ctn_dtype wire = w ? CTN_F16 : CTN_BF16;
        for (int i = 0; i < N; i++) h[i] = (uint16_t)i;
        ctn__from_wire(f, h, N, CTN_F32, wire);
        for (int i = 0; i < N; i++)
            assert_true(same_float(f[i], w ? ctn__f16_to_f32(h[i]) : ctn__bf16_to_f32(h[i])));
        for (uint32_t step = 0; step < 16; step++) { /* all exponents, with all kinds of low bits */
            const uint32_t tail[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x1000, 0xfff};
            for (uint32_t i = 0; i < N; i++) {
                uint32_t u = i << 16 | tail[step % 8] | (step & 8 ? i >> 3 & 0x7f : 0);
                memcpy(&f[i], &u, sizeof u);
            }
            ctn__to_wire(back, f, N, CTN_F32, wire);
            for (int i = 0; i < N; i++) {
                assert_int_equal(back[i], w ? ctn__f32_to_f16(f[i]) : ctn__f32_to_bf16(f[i]));
                float wide = w ? ctn__f16_to_f32(back[i]) : ctn__bf16_to_f32(back[i]);
                assert_true(isnan(f[i]) == isnan(wide));
            }
        }
        for (int i = 0; i < N; i++) f[i] = 1;
        ctn__sum_into(f, h, N, CTN_F32, wire);
        for (int i = 0; i < N; i++) {
            float x = w ? ctn__f16_to_f32(h[i]) : ctn__bf16_to_f32(h[i]);
            assert_true(isnan(x) ? isnan(f[i]) : same_float(f[i], 1 + x));
        }
    }
    free(h);
    free(back);
    free(f);
    int32_t a[] = {INT32_MAX, 5}, b[] = {1, -7};
    ctn__sum_into(a, b, 2, CTN_I32, CTN_I32);
    assert_true(a[0] == INT32_MIN && a[1] == -2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conversions),          cmocka_unit_test(table_of_algorithms),
        cmocka_unit_test(cost_lines),           cmocka_unit_test(cost_is_of_the_job),
        cmocka_unit_test(where_ranks_stand),    cmocka_unit_test(grids_and_maps_that_are_refused),
        cmocka_unit_test(ranks_in_a_line),      cmocka_unit_test(ranks_on_a_grid),
        cmocka_unit_test(ranks_in_nodes),       cmocka_unit_test(halves_of_the_ring),
        cmocka_unit_test(halving_and_doubling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
