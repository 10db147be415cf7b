/* SPDX-License-Identifier: Apache-2.0
 *
 * group_ids: sorts positions by id. ids (E) from 0 to n - 1 -> offsets (n+1), order (E): the
 * positions with id v are order[offsets[v]] to order[offsets[v+1] - 1], in ascending order. Has no
 * gradient.
 *
 * It is a counting sort. The positions are cut into parts. Each part counts its ids; the sums of
 * the counts over all smaller ids, and over the same id in the parts before, say where the
 * positions of a part go. The result is the same for any number of parts.
 */
#include "ops/common/rows.h"

enum { N };
static const char *const attr_names[] = {"n"};

static ctn_status group_ids_infer(ctn_infer_args *a)
{
    char t[128];
    CTN_TRY(ctn__infer_index(a, a->in[0]));
    if (a->in[0]->ndim != 1)
        return ctn_fail(CTN_ESHAPE, "group_ids: ids are %s, expected one dimension",
                        ctn__shape_text(a->in[0], t, sizeof t));
    if (a->attr[N] < 0 || a->attr[N] > INT64_C(1) << 40)
        return ctn_fail(CTN_ESHAPE, "group_ids: the number of segments is %lld, expected 0 to 2^40",
                        (long long)a->attr[N]);
    CTN_TRY(ctn__desc_set(&a->out[0], a->name, CTN_I64, 1, (const int64_t[]){a->attr[N] + 1}));
    return ctn__desc_set(&a->out[1], a->name, CTN_I64, 1, a->in[0]->dim);
}

/* Counts of more parts cost more than they save if there are many ids. */
static int64_t parts_of(int64_t E, int64_t n, int threads)
{
    int64_t most = n > 0 ? E / n : 1;
    if (E < CTN__GRAIN || most < 1) return 1;
    return most < threads ? most : threads;
}

typedef struct {
    const void *ids;
    ctn_dtype type;
    int64_t E, n, parts;
    int64_t *count; /* (parts,n): counts, then the next place of an id in a part */
    int64_t *offsets, *order;
} grouping;

static void count_part(const grouping *g, int64_t p)
{
    int64_t *count = g->count + p * g->n;
    memset(count, 0, (size_t)g->n * sizeof *count);
    for (int64_t e = g->E * p / g->parts; e < g->E * (p + 1) / g->parts; e++)
        count[ctn__index_get(g->ids, g->type, e)]++;
}

static void place_part(const grouping *g, int64_t p)
{
    enum { AHEAD = 16 }; /* positions between asking for a place and writing to it */
    int64_t *next = g->count + p * g->n;
    const int64_t end = g->E * (p + 1) / g->parts;
    for (int64_t e = g->E * p / g->parts; e < end; e++) {
        if (e + 2 * AHEAD < end) {
            __builtin_prefetch(&next[ctn__index_get(g->ids, g->type, e + 2 * AHEAD)], 1);
            const int64_t soon = ctn__index_get(g->ids, g->type, e + AHEAD);
            __builtin_prefetch(&g->order[next[soon]], 1);
        }
        g->order[next[ctn__index_get(g->ids, g->type, e)]++] = e;
    }
}

/* Turn the counts of ids v to end - 1 into places, of which `at` is the first. */
static void set_places(const grouping *g, int64_t v, int64_t end, int64_t at)
{
    for (; v < end; v++) {
        g->offsets[v] = at;
        for (int64_t p = 0; p < g->parts; p++) {
            int64_t c = g->count[p * g->n + v];
            g->count[p * g->n + v] = at;
            at += c;
        }
    }
}

/* The number of positions with ids v to end - 1. */
static int64_t count_ids(const grouping *g, int64_t v, int64_t end)
{
    int64_t sum = 0;
    for (int64_t p = 0; p < g->parts; p++)
        for (int64_t i = v; i < end; i++) sum += g->count[p * g->n + i];
    return sum;
}

/* scratch: count (parts,n), the first place of each part of the ids (parts), and offsets (n+1) in
 * case nobody reads that output */
static ctn_status group_ids_run(const ctn_run_args *a)
{
    const int64_t E = a->din[0].dim[0], n = a->attr[N];
    const int64_t parts = parts_of(E, n, a->env ? a->env->threads : 1);
    int64_t *start = (int64_t *)a->scratch + parts * n, at = 0;
    const grouping g = {.ids = a->in[0],
                        .type = a->din[0].dtype,
                        .E = E,
                        .n = n,
                        .parts = parts,
                        .count = a->scratch,
                        .offsets = a->out[0] ? a->out[0] : start + parts,
                        .order = a->out[1]};
    CTN_TRY(ctn__index_check("group_ids", a->in[0], &a->din[0], n));
#pragma omp parallel for schedule(static, 1) if (parts > 1)
    for (int64_t p = 0; p < parts; p++) count_part(&g, p);
#pragma omp parallel for schedule(static, 1) if (parts > 1)
    for (int64_t p = 0; p < parts; p++)
        start[p] = count_ids(&g, n * p / parts, n * (p + 1) / parts);
    for (int64_t p = 0; p < parts; p++) {
        int64_t c = start[p];
        start[p] = at;
        at += c;
    }
#pragma omp parallel for schedule(static, 1) if (parts > 1)
    for (int64_t p = 0; p < parts; p++)
        set_places(&g, n * p / parts, n * (p + 1) / parts, start[p]);
    g.offsets[n] = E;
#pragma omp parallel for schedule(static, 1) if (parts > 1)
    for (int64_t p = 0; p < parts; p++)
        if (g.order) place_part(&g, p);
    return CTN_OK;
}

static ctn_status group_ids_prepare(ctn_prepare_args *a)
{
    const int64_t n = a->attr[N], parts = parts_of(a->din[0].dim[0], n, a->threads);
    a->scratch = (size_t)(parts * n + parts + n + 1) * sizeof(int64_t);
    return CTN_OK;
}

ctn_op ctn__op_group_ids = {
    .struct_size = sizeof(ctn_op),
    .name = "group_ids",
    .nin = 1,
    .nout = 2,
    .attr_names = attr_names,
    .infer = group_ids_infer,
    .prepare = group_ids_prepare,
    .run = group_ids_run,
};

ctn_status ctn__group_record(const char *at, ctn_tensor *ids, int64_t n, ctn_tensor *out[2])
{
    ctn_op_args args = {.nattr = 1, .attr = &n};
    out[0] = out[1] = NULL;
    return ctn_apply_at(at, NULL, &ctn__op_group_ids, 1, &ids, &args, out);
}

ctn_status ctn_group_ids_at(const char *at, ctn_tensor *ids, int64_t segments, ctn_tensor **offsets,
                            ctn_tensor **order)
{
    ctn_tensor *out[2];
    ctn_status st = ctn__group_record(at, ids, segments, out);
    if (offsets) *offsets = out[0];
    if (order) *order = out[1];
    return st;
}
