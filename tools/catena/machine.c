/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures peak rates through the public interface: each is the best profiled time of one node
 * in a small program with its own context.
 */
#include "machine.h"

#include <stdlib.h>
#include <string.h>

#include <catena/ops.h>

enum {
    FIRST_SIZE = 256, /* of square matrices; doubled until a product is long enough to time */
    LAST_SIZE = 4096,
    STREAM_COUNT = 16 << 20 /* floats in each of three tensors: larger than a few cores' caches */
};
static const double enough_s = 5e-3, budget_s = 0.08;

typedef struct {
    const char *op;
    double flop_rate, byte_rate, seconds; /* of the best node of that op */
} fastest;

static ctn_status look(void *user, const ctn_plan_node *n)
{
    fastest *f = user;
    if (strcmp(n->op, f->op) != 0 || n->ns == 0) return CTN_OK;
    double s = (double)n->ns * 1e-9;
    f->seconds = s;
    if ((double)n->flops / s > f->flop_rate) f->flop_rate = (double)n->flops / s;
    if ((double)n->bytes / s > f->byte_rate) f->byte_rate = (double)n->bytes / s;
    return CTN_OK;
}

static ctn_tensor *product(ctn_tensor *a, ctn_tensor *b)
{
    return ctn_matmul(a, b, 0, 0);
}

static ctn_tensor *sum(ctn_tensor *a, ctn_tensor *b)
{
    return ctn_add(a, b);
}

/* Repeat y = op(a, b) on row-major (rows,columns) until the time budget is spent. */
static ctn_status repeat(fastest *f, ctn_context *ctx, const float *a, const float *b, int64_t rows,
                         int64_t columns, ctn_tensor *(*op)(ctn_tensor *, ctn_tensor *))
{
    double start = now_s();
    do {
        CTN_TRY(ctn_scope_begin(ctx));
        ctn_tensor *x = ctn_input(ctx, a, CTN_F32, CTN_SHAPE(rows, columns));
        ctn_tensor *y = op(x, ctn_input(ctx, b, CTN_F32, CTN_SHAPE(rows, columns)));
        ctn_status st = ctn_data(y) ? CTN_OK : ctn_error_status();
        ctn_status end = ctn_scope_end(ctx);
        CTN_TRY(st);
        CTN_TRY(end);
        CTN_TRY(ctn_context_visit_plan(ctx, look, f));
    } while (now_s() - start < budget_s);
    return CTN_OK;
}

static ctn_status open_precise(ctn_context **ctx, const args *a, ctn_precision precision)
{
    CTN_TRY(ctn_context_new(ctx, CTN_OPT(ctn_context_opt, .threads = (int)args_int(a, "threads"),
                                         .precision = precision,
                                         .slow_precision = args_flag(a, "slow-precision"))));
    ctn_context_set_profile(*ctx, 1);
    return CTN_OK;
}

static ctn_status measure_products(double *gflops, const args *a, const float *x,
                                   ctn_precision precision)
{
    ctn_status st = CTN_OK;
    ctn_context *ctx = NULL;
    fastest f = {.op = "matmul"};
    CTN_TRY_GOTO(st, done, open_precise(&ctx, a, precision));
    for (int64_t n = FIRST_SIZE; n <= LAST_SIZE; n *= 2) {
        CTN_TRY_GOTO(st, done, repeat(&f, ctx, x, x, n, n, product));
        if (f.seconds > enough_s) break;
    }
    *gflops = f.flop_rate * 1e-9;
done:
    ctn_context_free(ctx);
    return st;
}

static ctn_status measure_stream(double *gbps, const args *a, const float *x)
{
    ctn_status st = CTN_OK;
    ctn_context *ctx = NULL;
    fastest f = {.op = "add"};
    CTN_TRY_GOTO(st, done, open_precise(&ctx, a, CTN_PRECISION_F32));
    CTN_TRY_GOTO(st, done, repeat(&f, ctx, x, x + STREAM_COUNT, 1024, STREAM_COUNT / 1024, sum));
    *gbps = f.byte_rate * 1e-9;
done:
    ctn_context_free(ctx);
    return st;
}

ctn_status machine_measure(machine_peak *m, const args *a)
{
    ctn_status st = CTN_OK;
    const char *precision = args_text(a, "precision");
    *m = (machine_peak){0};
    float *x = malloc(2 * (size_t)STREAM_COUNT * sizeof *x);
    if (!x) return ctn_fail(CTN_ENOMEM, "no memory to measure the machine with");
    for (int i = 0; i < 2 * STREAM_COUNT; i++) x[i] = (float)(i % 101) / 101;
    CTN_TRY_GOTO(st, done, measure_stream(&m->stream_gbps, a, x));
    CTN_TRY_GOTO(st, done, measure_products(&m->f32_gflops, a, x, CTN_PRECISION_F32));
    if (strcmp(precision, "bf16") == 0 || strcmp(precision, "f16") == 0) {
        m->low = precision;
        CTN_TRY_GOTO(st, done,
                     measure_products(&m->low_gflops, a, x,
                                      strcmp(precision, "bf16") == 0 ? CTN_PRECISION_BF16
                                                                     : CTN_PRECISION_F16));
    }
done:
    free(x);
    return st;
}

double machine_gflops(const machine_peak *m, ctn_dtype type)
{
    if (type == CTN_F32) return m->f32_gflops;
    return m->low && strcmp(ctn_dtype_name(type), m->low) == 0 ? m->low_gflops : 0;
}
