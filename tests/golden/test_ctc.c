/* SPDX-License-Identifier: Apache-2.0
 *
 * Connectionist temporal classification against PyTorch (ctc.py): the loss of each sample, the mean
 * per label, and the gradient of the logits, in f32 and f64, and in the composed form.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ctc.inc"
#include "hashed.h"

enum { T = 23, N = 5, V = 7, L = 6 };
static const int32_t labels[N][L] = {
    {1, 1, 2, 3, 6, 6}, {4, 5, 1, 0, 0, 0}, {2, 2, 2, 2, 0, 0}, {0}, {6, 5, 4, 3, 2, 1}};
static const int64_t label_lengths[N] = {6, 3, 4, 0, 6}, input_lengths[N] = {23, 17, 9, 5, 6};

static void check(const char *what, ctn_tensor *t, const double *expected, double tol)
{
    double v[T * N * V];
    const int n = (int)ctn_count(t);
    OK(ctn_read(ctn_cast(t, CTN_F64), v, (size_t)n * sizeof *v));
    for (int i = 0; i < n; i++)
        if (!(fabs(v[i] - expected[i]) <= tol * fmax(1, fabs(expected[i]))))
            fail_msg("%s: number %d is %.12g, PyTorch has %.12g", what, i, v[i], expected[i]);
}

static void run(ctn_context *ctx, ctn_dtype type, int64_t blank, int composed)
{
    float x[T][N][V];
    int32_t own[N][L];
    const uint32_t key = hashed_key("x");
    const double tol = type == CTN_F64 ? 1e-8 : 1e-5;
    for (uint32_t i = 0; i < T * N * V; i++) (&x[0][0][0])[i] = (float)(3 * hashed_uniform(key, i));
    for (int i = 0; i < N * L; i++) own[i / L][i % L] = labels[i / L][i % L] - (blank > 0);
    OK(ctn_scope_begin(ctx));
    ctn_tensor *in = ctn_cast(ctn_input(ctx, x, CTN_F32, CTN_SHAPE(T, N, V)), type), *g;
    in = ctn_with_grad(ctn_detach(in));
    ctn_ctc_opt opt = {.struct_size = sizeof opt,
                       .input_lengths = ctn_input(ctx, input_lengths, CTN_I64, CTN_SHAPE(N)),
                       .label_lengths = ctn_input(ctx, label_lengths, CTN_I64, CTN_SHAPE(N)),
                       .blank = blank,
                       .reduction = CTN_NONE,
                       .composed = composed};
    ctn_tensor *label = ctn_input(ctx, own, CTN_I32, CTN_SHAPE(N, L));
    check("loss", ctn_ctc_loss(in, label, &opt), blank ? each_6 : each_0, tol);
    opt.reduction = CTN_MEAN;
    opt.per_label = 1;
    ctn_tensor *mean = ctn_ctc_loss(in, label, &opt);
    OK(ctn_grad(mean, 1, &in, &g));
    check("mean", mean, blank ? mean_6 : mean_0, tol);
    check("gradient", g, blank ? gradient_6 : gradient_0, tol);
    OK(ctn_scope_end(ctx));
}

static void test_pytorch(void **state)
{
    ctn_context *ctx;
    (void)state;
    OK(ctn_context_new(&ctx, NULL));
    for (int i = 0; i < 8; i++) run(ctx, i & 1 ? CTN_F64 : CTN_F32, i & 2 ? V - 1 : 0, i & 4);
    ctn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pytorch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
