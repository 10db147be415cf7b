/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches of graphs: ragged fields that are joined, with the ids of their rows, edges that name
 * nodes of the batch, padding up to a multiple, any number of threads, and edges that name nodes
 * which do not exist.
 * Labels: threads
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ok.h"

#include <catena/catena.h>

/* Graph i has i % 4 + 1 nodes with two features, and i % 3 edges; its target is a number. */
enum { COUNT = 20, BATCH = 4, MULTIPLE = 8 };
static float node[COUNT * 4][2];
static int32_t edge[COUNT * 3][2];
static float target[COUNT];
static int64_t nodes[COUNT + 1], edges[COUNT + 1];

static const ctn_field field[] = {{CTN_F32, 2, {CTN_RAGGED, 2}, 0},
                                  {CTN_I32, 2, {CTN_RAGGED, 2}, 0},
                                  {CTN_F32, 0, {0}, 0}};

static int set_up(void **state)
{
    (void)state;
    for (int64_t i = 0; i < COUNT; i++) {
        nodes[i + 1] = nodes[i] + i % 4 + 1;
        edges[i + 1] = edges[i] + i % 3;
        target[i] = (float)i;
        for (int64_t k = nodes[i]; k < nodes[i + 1]; k++) node[k][0] = node[k][1] = (float)k;
        for (int64_t k = edges[i]; k < edges[i + 1]; k++) {
            edge[k][0] = (int32_t)(k % (i % 4 + 1));
            edge[k][1] = (int32_t)((k + 1) % (i % 4 + 1));
        }
    }
    return 0;
}

static ctn_dataset *open_graphs(void)
{
    ctn_dataset *ds = NULL;
    OK(ctn_ragged_open(&ds, COUNT, 3, field, (const void *[]){node, edge, target},
                       (const int64_t *[]){nodes, edges, NULL}));
    return ds;
}

/* Samples first to first + n - 1 are in the batch in this order. */
static void check_batch(const ctn_batch *b, int64_t first, int64_t n, int64_t multiple)
{
    const float(*x)[2] = b->data[0], *t = b->data[2];
    const int32_t(*e)[2] = b->data[1];
    const int64_t *node_id = b->data[3], *edge_id = b->data[4];
    const int64_t N = b->field[0].shape[0], E = b->field[1].shape[0];
    int64_t v = 0, k = 0;
    assert_int_equal(b->n, n);
    assert_int_equal(b->fields, 5);
    assert_int_equal(b->field[0].ndim, 2);
    assert_int_equal(b->field[2].shape[0], n);
    assert_int_equal(b->field[3].ndim, 1);
    assert_int_equal(b->field[3].shape[0], N);
    assert_int_equal(b->field[4].shape[0], E);
    /* One row of padding, and more up to the next multiple. */
    assert_int_equal(N, (nodes[first + n] - nodes[first] + multiple) / multiple * multiple);
    assert_int_equal(E, (edges[first + n] - edges[first] + multiple) / multiple * multiple);
    for (int64_t i = 0; i < n; i++) {
        const int64_t s = first + i, begin = v;
        assert_true(t[i] == (float)s);
        for (int64_t j = nodes[s]; j < nodes[s + 1]; j++, v++) {
            assert_true(x[v][0] == (float)j && x[v][1] == (float)j);
            assert_int_equal(node_id[v], i);
        }
        for (int64_t j = edges[s]; j < edges[s + 1]; j++, k++) {
            assert_int_equal(e[k][0], begin + edge[j][0]);
            assert_int_equal(e[k][1], begin + edge[j][1]);
            assert_int_equal(edge_id[k], i);
        }
    }
    assert_true(v < N && k < E);
    for (; v < N; v++) assert_true(x[v][0] == -1 && node_id[v] == n);
    for (; k < E; k++) assert_true(e[k][0] == N - 1 && e[k][1] == N - 1 && edge_id[k] == n);
}

static void test_batches(void **state)
{
    (void)state;
    ctn_dataset *ds = open_graphs();
    ctn_sampler *order = NULL;
    OK(ctn_sampler_sequential(&order, COUNT));
    for (int k = 0; k < 6; k++) {
        const int64_t multiple = k % 2 ? MULTIPLE : 1;
        ctn_loader *l = NULL;
        ctn_batch b;
        OK(ctn_loader_new(&l, ds, order,
                          CTN_OPT(ctn_loader_opt, .batch = BATCH, .threads = k / 2, .join = 1,
                                  .join_index = 1, .pad_multiple = multiple, .pad_value = {-1})));
        for (int64_t first = 0; first < COUNT; first += BATCH) {
            OK(ctn_loader_next(l, &b));
            check_batch(&b, first, BATCH, multiple);
        }
        assert_int_equal(ctn_loader_next(l, &b), CTN_END);
        ctn_loader_free(l);
    }
    ctn_sampler_free(order);
    ctn_dataset_free(ds);
}

/* A graph whose edge names a node that it does not have. */
static void test_bad_edge(void **state)
{
    (void)state;
    ctn_dataset *ds = open_graphs();
    ctn_sampler *order = NULL;
    ctn_loader *l = NULL;
    ctn_batch b;
    const int32_t was = edge[edges[1]][1];
    edge[edges[1]][1] = 2;
    OK(ctn_sampler_sequential(&order, COUNT));
    OK(ctn_loader_new(&l, ds, order,
                      CTN_OPT(ctn_loader_opt, .batch = BATCH, .join = 1, .join_index = 1)));
    assert_int_equal(ctn_loader_next(l, &b), CTN_EFORMAT);
    assert_non_null(strstr(ctn_error_message(), "has the number 2, expected 0 to 1"));
    ctn_error_clear();
    ctn_loader_free(l);
    OK(ctn_loader_new(&l, ds, order,
                      CTN_OPT(ctn_loader_opt, .batch = BATCH, .join = 1, .join_index = 1,
                              .skip = 0.5)));
    OK(ctn_loader_next(l, &b));
    assert_int_equal(b.n, BATCH - 1);
    edge[edges[1]][1] = was;
    ctn_loader_free(l);
    ctn_sampler_free(order);
    ctn_dataset_free(ds);
}

/* ---- lengths that change -------------------------------------------------------------------- */

/* Two samples of one row when they are measured, and of `later` rows when they are read. */
typedef struct {
    int64_t calls, later;
} growing;

static int64_t grow_count(void *self)
{
    (void)self;
    return 2;
}

static int grow_fields(void *self)
{
    (void)self;
    return 1;
}

static void grow_field(void *self, int f, ctn_field *out)
{
    (void)self, (void)f;
    *out = (ctn_field){CTN_F32, 1, {CTN_RAGGED}, 0};
}

static int64_t grow_length(void *self, int f, int64_t index)
{
    growing *g = self;
    (void)f;
    if (g->calls < 0) return 3; /* while the loader is made */
    return g->calls++ < 2 || index == 0 ? 1 : g->later;
}

static ctn_status grow_get(void *self, const ctn_sample *s, void *const *dst)
{
    const growing *g = self;
    for (int64_t i = 0; i < (s->index ? g->later : 1); i++) ((float *)dst[0])[i] = 7;
    return CTN_OK;
}

static void test_growing(void **state)
{
    (void)state;
    static const ctn_dataset_vt vt = {.struct_size = sizeof vt,
                                      .count = grow_count,
                                      .fields = grow_fields,
                                      .field = grow_field,
                                      .get = grow_get,
                                      .length = grow_length};
    for (int64_t later = 0; later < 4; later++) {
        growing g = {-1, later};
        ctn_dataset *ds = NULL;
        ctn_sampler *order = NULL;
        ctn_loader *l = NULL;
        ctn_batch b;
        OK(ctn_dataset_new(&ds, &vt, &g));
        OK(ctn_sampler_sequential(&order, 2));
        OK(ctn_loader_new(&l, ds, order, CTN_OPT(ctn_loader_opt, .batch = 2, .join = 1)));
        g.calls = 0;
        const ctn_status st = ctn_loader_next(l, &b);
        if (later <= 1) {
            assert_int_equal(st, CTN_OK);
            assert_int_equal(b.field[0].shape[0], 3);
        } else { /* the last row is padding, so there is no room */
            assert_int_equal(st, CTN_EFORMAT);
            assert_non_null(strstr(ctn_error_message(), "expected 0 to 3, always the same"));
            ctn_error_clear();
        }
        ctn_loader_free(l);
        ctn_sampler_free(order);
        ctn_dataset_free(ds);
    }
}

static void test_options(void **state)
{
    (void)state;
    ctn_dataset *ds = open_graphs();
    ctn_sampler *order = NULL;
    ctn_loader *l = NULL;
    OK(ctn_sampler_sequential(&order, COUNT));
    for (int index = -1; index < 4; index++) {
        ctn_status st =
            ctn_loader_new(&l, ds, order,
                           CTN_OPT(ctn_loader_opt, .batch = 1, .join = 1, .join_index = index));
        assert_int_equal(st, index == 0 || index == 1 ? CTN_OK : CTN_EARG);
        ctn_error_clear();
        ctn_loader_free(l);
    }
    assert_int_equal(ctn_loader_new(&l, ds, order,
                                    CTN_OPT(ctn_loader_opt, .batch = 1, .join_index = 1)),
                     CTN_EARG);
    ctn_error_clear();
    ctn_sampler_free(order);
    ctn_dataset_free(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_bad_edge),
        cmocka_unit_test(test_growing),
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
