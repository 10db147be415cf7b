/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of the harness itself: custom ops that are each wrong in one way, and the check that
 * must find it. The base is y = x x, which passes unmodified.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "check.h"
#include "ops/ops.h"

typedef enum {
    RIGHT,
    WRONG_FORWARD,  /* the last element is slightly off */
    WRONG_GRADIENT, /* x instead of 2x */
    WRONG_SECOND,   /* the right gradient, but it does not depend on x */
    TOO_FAR,        /* writes one element past the end */
    TOO_EARLY,      /* writes one element before the beginning */
    NOT_REPEATABLE, /* depends on how often it has run */
    THREADS,        /* depends on the thread count */
    WRITES_INPUT,   /* but the result is right */
    SCRATCH,        /* reads scratch that it has not written */
    STRIDES         /* claims to read any strides but does not */
} mistake;

static mistake now;
static int runs;

#define SQUARE(T)                                                         \
    static void square_##T(const ctn_run_args *a)                         \
    {                                                                     \
        int64_t n = ctn__count(&a->dout[0]);                              \
        const T *x = a->in[0];                                            \
        T *y = a->out[0], *s = a->scratch;                                \
        for (int64_t i = 0; i < n; i++) y[i] = x[i] * x[i];               \
        if (now == WRONG_FORWARD) y[n - 1] += (T)0.01;                    \
        if (now == TOO_FAR) y[n] = 1;                                     \
        if (now == TOO_EARLY) y[-1] = 1;                                  \
        if (now == NOT_REPEATABLE) y[0] *= 1 + (T)1e-6 * (T)(runs++ % 7); \
        if (now == THREADS) y[0] *= 1 + (T)1e-6 * (T)a->env->threads;     \
        if (now == WRITES_INPUT) ((T *)(uintptr_t)x)[n / 2] += 1;         \
        if (now == SCRATCH) y[0] += s[0] == s[0] ? 0 : s[0];              \
    }
SQUARE(float)
SQUARE(double)

static ctn_status square_run(const ctn_run_args *a)
{
    if (a->dout[0].dtype == CTN_F32) square_float(a);
    else square_double(a);
    return CTN_OK;
}

static ctn_status square_prepare(ctn_prepare_args *a)
{
    a->scratch = 64;
    return CTN_OK;
}

static ctn_status square_grad(const ctn_grad_args *a)
{
    ctn_tensor *x = now == WRONG_SECOND ? ctn_detach(a->in[0]) : a->in[0];
    ctn_tensor *g = ctn_mul(a->gout[0], x);
    a->gin[0] = now == WRONG_GRADIENT ? g : ctn_add(g, g);
    return a->gin[0] ? CTN_OK : ctn_error_status();
}

#define SQUARE_OP(flag)                \
    {                                  \
        .struct_size = sizeof(ctn_op), \
        .name = "square",              \
        .nin = 1,                      \
        .nout = 1,                     \
        .flags = (flag),               \
        .order = -1,                   \
        .grad_in = CTN_OPERAND(0),     \
        .infer = ctn__infer_same,      \
        .grad = square_grad,           \
        .prepare = square_prepare,     \
        .run = square_run,             \
    }
static ctn_op square = SQUARE_OP(0), any_strides = SQUARE_OP(CTN_OP_STRIDED);

static ctn_tensor *square_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)c;
    ctn_tensor *y;
    ctn_op *op = now == STRIDES ? &any_strides : &square;
    return ctn_apply(ctx, op, 1, x, NULL, &y) < 0 ? NULL : y;
}

static void square_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    (void)out;
    for (int64_t i = 0; i < case_count(&c->in[0]); i++) y[i] = x[0][i] * x[0][i];
}

static const op_case square_case = {
    "square",          "self",   1, {{.ndim = 2, .dim = {3, 5}}}, .call = square_call,
    .ref = square_ref, .grad = 2};

/* Plans of another mistake must not be found in the cache, to which the op is the same. */
static void fresh_contexts(void)
{
    fault f;
    if (!check_finish(&f)) fail_msg("%s", f.text);
}

/* The case must fail, and the text must name the reason. */
static void must_fail(mistake m, const op_case *c, const char *reason)
{
    fault f, again;
    fresh_contexts();
    now = m;
    bool passed = check_case(c, &f);
    now = RIGHT;
    fresh_contexts();
    if (passed) fail_msg("mistake %d was not found", (int)m);
    if (!strstr(f.text, reason)) fail_msg("expected \"%s\" in: %s", reason, f.text);
    if (!guard_check(&again)) fail_msg("damage is left: %s", again.text);
}

void selftest_right(void **state)
{
    (void)state;
    fault f;
    now = RIGHT;
    if (!check_case(&square_case, &f)) fail_msg("%s", f.text);
}

void selftest_wrong_forward(void **state)
{
    (void)state;
    must_fail(WRONG_FORWARD, &square_case, "element 14 of (3,5): expected ");
}

void selftest_wrong_gradient(void **state)
{
    (void)state;
    must_fail(WRONG_GRADIENT, &square_case, "order 1: gradcheck: input 0, element ");
}

void selftest_wrong_second_gradient(void **state)
{
    (void)state;
    must_fail(WRONG_SECOND, &square_case, "order 2: ");
}

/* 15 f32 end inside of the library's block, 16 at its end. The replay finds both, the guard
 * zones of the library's own memory only the second. */
void selftest_too_far(void **state)
{
    (void)state;
    op_case full = square_case;
    full.in[0] = (case_in){.ndim = 2, .dim = {4, 4}};
    must_fail(TOO_FAR, &square_case, "byte 60 of a block of 60 bytes");
    must_fail(TOO_FAR, &full, "byte 64 of a block of 64 bytes");
    must_fail(TOO_EARLY, &square_case, "byte -4 of a block of 60 bytes");
}

void selftest_not_repeatable(void **state)
{
    (void)state;
    op_case random = square_case;
    random.ref = NULL;
    must_fail(NOT_REPEATABLE, &random, "element 0 of ");
}

void selftest_threads(void **state)
{
    (void)state;
    must_fail(THREADS, &square_case, "2 threads: result 0, element 0 of (3,5)");
}

void selftest_writes_input(void **state)
{
    (void)state;
    must_fail(WRITES_INPUT, &square_case, "input 0 was written");
}

void selftest_unwritten_scratch(void **state)
{
    (void)state;
    must_fail(SCRATCH, &square_case, "element 0 of ");
}

/* Only the eager context is wrong, so its result differs from that of the plan. */
static ctn_tensor *eager_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    ctn_tensor *y = square_call(c, ctx, x);
    return ctx->eager ? ctn_add(y, ctn_full(ctx, 1e-6, ctn_dtype_of(y), 0, NULL)) : y;
}

void selftest_eager(void **state)
{
    (void)state;
    op_case other = square_case;
    other.call = eager_call;
    must_fail(RIGHT, &other, "eager against unfused plan: result 0, element 0 of ");
}

void selftest_strides(void **state)
{
    (void)state;
    must_fail(STRIDES, &square_case, "gapped inputs, f32: ");
}

void selftest_not_recorded(void **state)
{
    (void)state;
    op_case other = square_case;
    other.op = "another";
    must_fail(RIGHT, &other, "the call does not record another");
}
