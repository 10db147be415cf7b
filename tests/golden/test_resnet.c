/* SPDX-License-Identifier: Apache-2.0
 * Labels: long
 *
 * Gradients of ResNet-50, batch 4, 96 pixels, against PyTorch in f64 (resnet.py). Each parameter's gradient is
 * compared by its products with 8 random directions, which estimate the norm of the difference. ReLU and max
 * pooling choose: a value next to zero that rounds to the other side moves the gradients of all layers below
 * by up to a hundredth. So f32 has a wide bar for each and a narrow one for those at the end, and bf16 is
 * measured by the error that PyTorch's own bf16 (autocast) has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hashed.h"
#include "resnet.inc"

enum { BATCH = 4, SIZE = 96, PIXELS = BATCH * 3 * SIZE * SIZE, DIRECTIONS = 8, MOST = 256 };

static float images[PIXELS];
static int64_t labels[BATCH];

static void make_input(void)
{
    const uint32_t image = hashed_key("images"), label = hashed_key("labels");
    for (uint32_t i = 0; i < PIXELS; i++) images[i] = (float)(hashed_uniform(image, i) * sqrt(3.0));
    for (uint32_t i = 0; i < BATCH; i++) labels[i] = hashed_bits(label, i) % 1000;
}

/* Estimated norm of (gradient of v - golden[k]) by the golden norm. */
static double error_of(ctn_var *v, size_t k)
{
    const uint32_t n = (uint32_t)hashed_count(ctn_var_desc(v));
    double sum = 0;
    float *g = malloc(n * sizeof *g);
    assert_non_null(g);
    OK(ctn_var_grad(v, g, n * sizeof *g));
    for (int j = 0; j < DIRECTIONS; j++) {
        char name[80];
        double p = 0;
        snprintf(name, sizeof name, "%s#%d", golden[k].name, j);
        const uint32_t key = hashed_key(name);
        for (uint32_t i = 0; i < n; i++) p += (double)g[i] * hashed_uniform(key, i);
        p = p * sqrt(3.0) - golden[k].product[j];
        sum += p * p;
    }
    free(g);
    return sqrt(sum / DIRECTIONS) / golden[k].norm;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *x, size_t n)
{
    double sorted[MOST];
    memcpy(sorted, x, n * sizeof *x);
    qsort(sorted, n, sizeof *sorted, by_size);
    return sorted[n / 2];
}

/* One backward pass; error[k] of each gradient. Returns the loss. */
static double errors(ctn_precision precision, double *error)
{
    ctn_context *ctx = NULL;
    ctn_module *net = NULL;
    ctn_optim *opt = NULL;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .precision = precision)));
    OK(ctn_zoo_resnet(&net, ctx, NULL));
    hashed_fill(net, "bn3.weight");
    OK(ctn_sgd_new(&opt, ctn_params(net), NULL));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *x = ctn_input(ctx, images, CTN_F32, CTN_SHAPE(BATCH, 3, SIZE, SIZE));
    ctn_tensor *loss = ctn_softmax_cross_entropy(ctn_call(net, x),
                                                 ctn_input(ctx, labels, CTN_I64, CTN_SHAPE(BATCH)));
    OK(ctn_backward(opt, loss));
    OK(ctn_flush(ctx));
    for (size_t k = 0; k < sizeof golden / sizeof *golden; k++)
        error[k] = error_of(ctn_module_find(net, golden[k].name), k);
    assert_int_equal(ctn_params(net).n, sizeof golden / sizeof *golden);
    const double l = ctn_item(loss);
    OK(ctn_scope_end(ctx));
    ctn_optim_free(opt);
    ctn_module_free(net);
    ctn_context_free(ctx);
    return l;
}

static void test_f32(void **state)
{
    (void)state;
    const size_t n = sizeof golden / sizeof *golden;
    double error[MOST], worst = 0;
    const double loss = errors(CTN_PRECISION_F32, error);
    if (!(fabs(loss - losses[0]) <= 1e-4 * losses[0]))
        fail_msg("loss is %.9g, PyTorch has %.9g in f64", loss, losses[0]);
    for (size_t k = 0; k < n; k++) {
        const double bar = strncmp(golden[k].name, "fc.", 3) == 0 ? 1e-4 : 3e-2;
        if (!(error[k] <= bar))
            fail_msg("gradient of %s: error %.2g, more than %.2g; PyTorch's f32 has %.2g",
                     golden[k].name, error[k], bar, golden[k].f32);
        worst = fmax(worst, error[k]);
    }
    print_message("f32: loss %.7g (f64: %.7g), error of gradients: median %.2g, largest %.2g\n",
                  loss, losses[0], median(error, n), worst);
    if (!(median(error, n) <= 3e-3)) fail_msg("median %.2g, more than 3e-3", median(error, n));
}

static void test_bf16(void **state)
{
    (void)state;
    const size_t n = sizeof golden / sizeof *golden;
    double error[MOST], ratio[MOST];
    const double loss = errors(CTN_PRECISION_BF16, error);
    for (size_t k = 0; k < n; k++) {
        ratio[k] = error[k] / golden[k].bf16;
        if (!(error[k] <= 3 * golden[k].bf16 + 0.01)) /* both are estimates from 8 numbers */
            fail_msg("gradient of %s: error %.2g, PyTorch's bf16 has %.2g", golden[k].name,
                     error[k], golden[k].bf16);
    }
    print_message(
        "bf16: loss %.7g (f64: %.7g), error of gradients: median %.2g, by PyTorch's %.2g\n", loss,
        losses[0], median(error, n), median(ratio, n));
    if (!(median(ratio, n) <= 1.5))
        fail_msg("the median error is %.2g times PyTorch's", median(ratio, n));
}

int main(void)
{
    make_input();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_f32), cmocka_unit_test(test_bf16)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
