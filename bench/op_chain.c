/* SPDX-License-Identifier: Apache-2.0
 *
 * op_chain: a chain of 1,000 elementwise ops on 16 numbers with its gradient, recorded and
 * replayed: time per op of recording alone, and of the whole step. bench/python_steps.py and
 * dev/peers/op_chain_torch.py do the same. Prints one JSON line.
 */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include <catena/ops.h>
#include <catena/optim.h>

enum { OPS = 1000, ROUNDS = 200, N = 16 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static ctn_status step(ctn_context *ctx, ctn_var *v, ctn_optim *o, double *record, double *whole)
{
    const double begin = seconds();
    CTN_TRY(ctn_scope_begin(ctx));
    ctn_tensor *y = ctn_use(v);
    for (int i = 0; i < OPS / 4; i++) {
        y = ctn_scale(y, 1.0001);
        y = ctn_shift(y, 0.001);
        y = ctn_tanh(y);
        y = ctn_relu(y);
    }
    const double recorded = seconds();
    CTN_TRY(ctn_backward(o, ctn_mean(y, CTN_ALL_AXES, 0)));
    CTN_TRY(ctn_optim_step(o));
    CTN_TRY(ctn_scope_end(ctx));
    *record = fmin(*record, recorded - begin);
    *whole = fmin(*whole, seconds() - begin);
    return CTN_OK;
}

static ctn_status measure(double *record, double *whole)
{
    ctn_context *ctx = NULL;
    ctn_var *v = NULL;
    ctn_optim *o = NULL;
    float x[N];
    for (int i = 0; i < N; i++) x[i] = 0.1f * (float)i;
    CTN_TRY(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
    CTN_TRY(ctn_var_new(&v, ctx, "v", CTN_PARAM, CTN_F32, CTN_SHAPE(N)));
    CTN_TRY(ctn_var_set(v, x, sizeof x));
    CTN_TRY(ctn_sgd_new(&o, (ctn_vars){1, &v, NULL}, NULL));
    for (int i = 0; i < ROUNDS; i++) CTN_TRY(step(ctx, v, o, record, whole));
    ctn_optim_free(o);
    ctn_var_free(v);
    ctn_context_free(ctx);
    return CTN_OK;
}

int main(void)
{
    double record = 1e9, whole = 1e9;
    if (measure(&record, &whole) < 0) {
        fprintf(stderr, "op_chain: %s\n", ctn_error_message());
        return 1;
    }
    printf("{\"record_us_per_op\": %.4f, \"us_per_op\": %.4f}\n", record / OPS * 1e6,
           whole / OPS * 1e6);
    return 0;
}
