/* SPDX-License-Identifier: Apache-2.0
 *
 * products [N [THREADS]]: the best times of an N x N matrix product in f32 and in f64,
 * alternating, each run through a plan.
 */
#include <stdio.h>
#include <stdlib.h>

#include <catena/catena.h>
#include <catena/ops.h>

static ctn_status find(void *user, const ctn_plan_node *n)
{
    uint64_t *ns = user;
    if (n->nout > 0 && n->flops > 0) ns[n->out[0].dtype == CTN_F64] = n->ns;
    return CTN_OK;
}

static ctn_status run(ctn_context *ctx, int64_t n, const float *x, const double *y)
{
    ctn_context_set_profile(ctx, 1);
    for (int i = 0; i < 20; i++) {
        CTN_TRY(ctn_scope_begin(ctx));
        ctn_tensor *a = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(n, n));
        ctn_tensor *b = ctn_input(ctx, y, CTN_F64, CTN_SHAPE(n, n));
        if (!ctn_matmul(a, a, 0, 0) || !ctn_matmul(b, b, 0, 0)) return ctn_error_status();
        CTN_TRY(ctn_flush(ctx));
        uint64_t ns[2] = {0};
        CTN_TRY(ctn_context_visit_plan(ctx, find, ns));
        CTN_TRY(ctn_scope_end(ctx));
        if (i == 19)
            printf("{\"n\": %lld, \"f32_ms\": %.4f, \"f64_ms\": %.4f, \"speed_of_f32\": %.3f}\n",
                   (long long)n, (double)ns[0] * 1e-6, (double)ns[1] * 1e-6,
                   (double)ns[0] / (double)ns[1]);
    }
    return CTN_OK;
}

int main(int argc, char **argv)
{
    const int64_t n = argc > 1 ? atoll(argv[1]) : 512;
    ctn_context *ctx = NULL;
    float *x = malloc((size_t)(n * n) * sizeof *x);
    double *y = malloc((size_t)(n * n) * sizeof *y);
    for (int64_t i = 0; x && y && i < n * n; i++) y[i] = x[i] = (float)(i % 7) - 3;
    ctn_status st =
        ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = argc > 2 ? atoi(argv[2]) : 1));
    if (st == CTN_OK && x && y) st = run(ctx, n, x, y);
    if (st < 0) fprintf(stderr, "products: %s\n", ctn_error_message());
    ctn_context_free(ctx);
    free(x);
    free(y);
    return st < 0;
}
