/* SPDX-License-Identifier: Apache-2.0
 *
 * graph [THREADS]: message passing over 1,000,000 random edges between 100,000 nodes with 64
 * features. Each edge takes the features of its source, and each node adds up those of its edges;
 * then the gradient with respect to the features. "rows" records the two ops (index_select and
 * segment_sum), "fused" one product with the sparse matrix of the edges. dev/peers/graph_torch.py
 * does the same as "rows". Times are CPU times with one thread, and wall times with more. Prints
 * one JSON line.
 *
 * The bytes that must move: per edge, "rows" writes and reads a row of 64 floats in the forward
 * pass and again in the backward pass, and reads its two indices twice; per node, four rows are
 * read or written. Copies of 256 MB in the same run show what the memory allows.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <catena/catena.h>

#define CHECK(call) \
    if ((call) < 0) exit((fprintf(stderr, "graph: %s\n", ctn_error_message()), 1))

enum { EDGES = 1000000, NODES = 100000, FEATURES = 64, ROUNDS = 8, MOST = 256 };
static const size_t COPY = (size_t)EDGES * FEATURES * sizeof(float);

static clockid_t clock_used = CLOCK_MONOTONIC;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(clock_used, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- what the memory allows ------------------------------------------------------------------ */

typedef struct {
    char *to;
    const char *from;
    size_t bytes;
} part;

static void *copy_part(void *p)
{
    const part *c = p;
    memcpy(c->to, c->from, c->bytes);
    return NULL;
}

static double copy_time(char *to, const char *from, int threads)
{
    pthread_t thread[MOST];
    part parts[MOST];
    const double begin = seconds();
    for (int i = 0; i < threads; i++) {
        const size_t at = COPY / (size_t)threads * (size_t)i;
        parts[i] = (part){to + at, from + at, COPY / (size_t)threads};
        if (pthread_create(&thread[i], NULL, copy_part, &parts[i]) != 0) exit(1);
    }
    for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    return seconds() - begin;
}

/* ---- message passing ------------------------------------------------------------------------- */

static struct {
    int64_t *source, *target;
    float *x, *weight, *gradient;
} graph;

static uint64_t random_number(void)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

/* Memory in huge pages, like that of the activations in a network. */
static void *memory(size_t bytes)
{
    const size_t page = (size_t)2 << 20;
    void *p = aligned_alloc(page, (bytes + page - 1) / page * page);
    if (!p) exit(1);
    madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

static void make_graph(void)
{
    const size_t bytes = (size_t)NODES * FEATURES * sizeof(float);
    graph.source = memory(EDGES * sizeof *graph.source);
    graph.target = memory(EDGES * sizeof *graph.target);
    graph.x = memory(bytes);
    graph.weight = memory(bytes);
    graph.gradient = memory(bytes);
    for (int i = 0; i < EDGES; i++) {
        graph.source[i] = (int64_t)(random_number() % NODES);
        graph.target[i] = (int64_t)(random_number() % NODES);
    }
    for (int i = 0; i < NODES * FEATURES; i++) {
        graph.x[i] = (float)(random_number() % 1000) / 1000;
        graph.weight[i] = (float)(random_number() % 1000) / 1000;
    }
}

static ctn_tensor *sum_of_sources(ctn_tensor *x, ctn_tensor *source, ctn_tensor *target, int fused)
{
    ctn_tensor *rowptr, *order;
    if (!fused) return ctn_segment_sum(ctn_index_select(x, source, 0), target, NODES);
    if (ctn_group_ids(target, NODES, &rowptr, &order) < 0) return NULL;
    return ctn_spmm(rowptr, ctn_index_select(source, order, 0), NULL, x);
}

static double step(ctn_context *ctx, int fused, ctn_retained **gradient)
{
    const double begin = seconds();
    ctn_tensor *g = NULL;
    CHECK(ctn_scope_begin(ctx));
    ctn_tensor *x = ctn_with_grad(ctn_input(ctx, graph.x, CTN_F32, CTN_SHAPE(NODES, FEATURES)));
    ctn_tensor *w = ctn_input(ctx, graph.weight, CTN_F32, CTN_SHAPE(NODES, FEATURES));
    ctn_tensor *source = ctn_input(ctx, graph.source, CTN_I64, CTN_SHAPE(EDGES));
    ctn_tensor *target = ctn_input(ctx, graph.target, CTN_I64, CTN_SHAPE(EDGES));
    ctn_tensor *y = sum_of_sources(x, source, target, fused);
    CHECK(ctn_grad(ctn_sum(ctn_mul(y, w), CTN_ALL_AXES, 0), 1, &x, &g));
    CHECK(ctn_retain(gradient, g));
    CHECK(ctn_scope_end(ctx));
    return seconds() - begin;
}

/* The bits of the gradient in one number. */
static uint64_t digest(ctn_context *ctx, ctn_retained *gradient)
{
    uint64_t h = 0;
    CHECK(ctn_scope_begin(ctx));
    CHECK(ctn_read(ctn_retained_value(gradient), graph.gradient,
                   (size_t)NODES * FEATURES * sizeof(float)));
    CHECK(ctn_scope_end(ctx));
    for (int i = 0; i < NODES * FEATURES; i++) {
        uint32_t bits;
        memcpy(&bits, &graph.gradient[i], sizeof bits);
        h = (h ^ bits) * 0x100000001b3u;
    }
    return h;
}

int main(int argc, char **argv)
{
    const int threads = argc > 1 ? atoi(argv[1]) : 2;
    const double edges = EDGES, nodes = NODES, row = FEATURES * sizeof(float);
    const double bytes = edges * (4 * row + 4 * sizeof(int64_t)) + nodes * 4 * row;
    double rows = INFINITY, fused = INFINITY, copy = INFINITY;
    char *from = memory(COPY), *to = memory(COPY);
    ctn_context *ctx;
    ctn_retained *gradient = NULL;
    if (threads < 1 || threads > MOST) return 1;
    memset(from, 1, COPY);
    if (threads == 1) clock_used = CLOCK_PROCESS_CPUTIME_ID;
    make_graph();
    CHECK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = threads)));
    for (int i = 0; i < ROUNDS; i++) {
        fused = fmin(fused, step(ctx, 1, &gradient));
        rows = fmin(rows, step(ctx, 0, &gradient));
        copy = fmin(copy, copy_time(to, from, threads));
    }
    const double bandwidth = 2 * (double)COPY / copy;
    printf("{\"rows_ms\": %.2f, \"fused_ms\": %.2f, \"bandwidth_gb_s\": %.2f, "
           "\"bandwidth_share\": %.3f, \"digest\": \"%016llx\"}\n",
           rows * 1e3, fused * 1e3, bandwidth / 1e9, bytes / rows / bandwidth,
           (unsigned long long)digest(ctx, gradient));
    ctn_retained_free(gradient);
    ctn_context_free(ctx);
    free(graph.source);
    free(graph.target);
    free(graph.x);
    free(graph.weight);
    free(graph.gradient);
    free(from);
    free(to);
    return 0;
}
