/* SPDX-License-Identifier: Apache-2.0
 *
 * catena bench elementwise: chains of cheap elementwise ops on 16 million floats, compared with
 * one loop that the compiler optimised for exactly this chain and that keeps everything in
 * registers. Cheap ops are the hardest case because they hide none of a chain's overhead. Both
 * run alternately, and the best time of each counts. The time of a copy is shown too, since
 * short chains are bound by memory bandwidth.
 */
#include "bench/elementwise.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include <catena/catena.h>

enum { COUNT = 16 << 20, ROUNDS = 7, CHAINS = 4, PIECE = 4096 };
static const int lengths[CHAINS] = {1, 4, 16, 64};

/* ---- the loops ------------------------------------------------------------------------------- */

/* Four ops: scale, shift, leaky_relu, square. Values stay between 0 and 1. */
#define FOUR              \
    v = 0.9f * v;         \
    v = v + 0.1f;         \
    w = 0.5f * v;         \
    v = v > 0.0f ? v : w; \
    v = v * v;
#define SIXTEEN FOUR FOUR FOUR FOUR
#define SIXTY_FOUR SIXTEEN SIXTEEN SIXTEEN SIXTEEN

#define LOOP(name, attribute, body)                                 \
    attribute static void name(const float *x, float *y, int64_t n) \
    {                                                               \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)         \
        {                                                           \
            float v = x[i], w = 0;                                  \
            body(void) w;                                           \
            y[i] = v;                                               \
        }                                                           \
    }
#define LOOPS(suffix, attribute)                 \
    LOOP(one_##suffix, attribute, v = 0.9f * v;) \
    LOOP(four_##suffix, attribute, FOUR)         \
    LOOP(sixteen_##suffix, attribute, SIXTEEN)   \
    LOOP(sixty_four_##suffix, attribute, SIXTY_FOUR)

typedef void loop(const float *x, float *y, int64_t n);

LOOPS(any, )
#if defined(__x86_64__) && defined(__GNUC__)
LOOPS(avx2, __attribute__((target("avx2"))))
LOOPS(avx512, __attribute__((target("avx512f,prefer-vector-width=512"))))
#endif

static loop *loop_of(int chain)
{
    static loop *const any[] = {one_any, four_any, sixteen_any, sixty_four_any};
#if defined(__x86_64__) && defined(__GNUC__)
    static loop *const avx2[] = {one_avx2, four_avx2, sixteen_avx2, sixty_four_avx2};
    static loop *const avx512[] = {one_avx512, four_avx512, sixteen_avx512, sixty_four_avx512};
    if (__builtin_cpu_supports("avx512f")) return avx512[chain];
    if (__builtin_cpu_supports("avx2")) return avx2[chain];
#endif
    return any[chain];
}

static double time_loop(loop *f, const float *x, float *y, int threads)
{
    const double start = now_s();
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t at = 0; at < COUNT; at += PIECE) f(x + at, y + at, PIECE);
    return (now_s() - start) * 1e3;
}

static double time_copy(const float *x, float *y, int threads)
{
    const int64_t part = COUNT / threads;
    const double start = now_s();
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int t = 0; t < threads; t++) memcpy(y + t * part, x + t * part, (size_t)part * sizeof *x);
    return (now_s() - start) * 1e3;
}

/* ---- the chains ------------------------------------------------------------------------------ */

static ctn_tensor *chain_of(ctn_tensor *x, int ops)
{
    for (int i = 0; i < ops; i++)
        x = i % 4 == 0   ? ctn_scale(x, 0.9f)
            : i % 4 == 1 ? ctn_shift(x, 0.1f)
            : i % 4 == 2 ? ctn_leaky_relu(x, 0.5)
                         : ctn_square(x);
    return x;
}

typedef struct {
    ctn_context *ctx;
    float *x, *y;
    int threads;
} subject;

/* The chain is recorded in an inner scope, so that only its result can be read. */
static ctn_status time_chain(const subject *s, int ops, double *ms, float *some)
{
    const double start = now_s();
    CTN_TRY(ctn_scope_begin(s->ctx));
    ctn_tensor *x = ctn_input(s->ctx, s->x, CTN_F32, CTN_SHAPE(COUNT));
    CTN_TRY(ctn_scope_begin(s->ctx));
    ctn_tensor *y = ctn_scope_return(s->ctx, chain_of(x, ops));
    CTN_TRY(ctn_flush(s->ctx));
    *ms = (now_s() - start) * 1e3;
    CTN_TRY(ctn_read(ctn_slice(y, 0, COUNT / 2, PIECE), some, PIECE * sizeof *some));
    return ctn_scope_end(s->ctx);
}

typedef struct {
    double ms, loop_ms;
} figure;

static ctn_status measure(const subject *s, figure *f, double *copy_ms)
{
    static float some[PIECE];
    *copy_ms = INFINITY;
    for (int c = 0; c < CHAINS; c++) f[c] = (figure){INFINITY, INFINITY};
    for (int r = 0; r < ROUNDS; r++) {
        *copy_ms = fmin(*copy_ms, time_copy(s->x, s->y, s->threads));
        for (int c = 0; c < CHAINS; c++) {
            double ms = 0;
            CTN_TRY(time_chain(s, lengths[c], &ms, some));
            if (r > 0) f[c].ms = fmin(f[c].ms, ms); /* the first round builds the plans */
            f[c].loop_ms = fmin(f[c].loop_ms, time_loop(loop_of(c), s->x, s->y, s->threads));
            for (int64_t i = 0; i < PIECE; i++)
                if (some[i] != s->y[COUNT / 2 + i])
                    return ctn_fail(CTN_EENGINE,
                                    "%d ops: the results of the chain and the loop differ",
                                    lengths[c]);
        }
    }
    return CTN_OK;
}

static void print(const args *a, const figure *f, double copy_ms, int threads)
{
    if (args_flag(a, "json")) {
        json j = {0};
        json_open(&j, NULL, '{');
        json_int(&j, "count", COUNT);
        json_int(&j, "threads", threads);
        json_real(&j, "copy_ms", copy_ms);
        json_open(&j, "chains", '[');
        for (int c = 0; c < CHAINS; c++) {
            json_open(&j, NULL, '{');
            json_int(&j, "ops", lengths[c]);
            json_real(&j, "ms", f[c].ms);
            json_real(&j, "loop_ms", f[c].loop_ms);
            json_close(&j, '}');
        }
        json_close(&j, ']');
        json_close(&j, '}');
        return;
    }
    say(stdout, "elementwise chains on %d floats, %d thread%s; a copy takes %.1f ms\n", COUNT,
        threads, threads == 1 ? "" : "s", copy_ms);
    for (int c = 0; c < CHAINS; c++)
        say(stdout, "  %2d ops: %7.1f ms; a loop written for them: %7.1f ms (%.2f of its speed)\n",
            lengths[c], f[c].ms, f[c].loop_ms, f[c].loop_ms / f[c].ms);
}

int bench_elementwise(const args *a)
{
    subject s = {0};
    figure f[CHAINS];
    double copy_ms = 0;
    ctn_status st =
        ctn_context_new(&s.ctx, CTN_OPT(ctn_context_opt, .threads = (int)args_int(a, "threads")));
    s.threads = st == CTN_OK ? ctn_context_threads(s.ctx) : 1;
    if (st == CTN_OK) ctn_context_set_grad(s.ctx, 0);
    s.x = aligned_alloc(64, COUNT * sizeof *s.x);
    s.y = aligned_alloc(64, COUNT * sizeof *s.y);
    for (int64_t i = 0; s.x && s.y && i < COUNT; i++) {
        s.x[i] = (float)(i * 7919 % 2001) / 1000 - 1;
        s.y[i] = 0;
    }
    if (st == CTN_OK && (!s.x || !s.y)) st = ctn_fail(CTN_ENOMEM, "no memory for the vectors");
    if (st == CTN_OK) st = measure(&s, f, &copy_ms);
    if (st == CTN_OK) print(a, f, copy_ms, s.threads);
    ctn_context_free(s.ctx);
    free(s.x);
    free(s.y);
    return st < 0 ? report_error("bench elementwise") : EXIT_DONE;
}
