/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of ResNet-50 with batch size 4 and 96 pixels against PyTorch in f64 (resnet.py).
 * Each gradient is compared by its dot products with 8 random directions, which estimate the
 * norm of the difference.
 *
 * ReLU and max pooling are discontinuous: if rounding moves one value across zero, the gradients
 * of all layers below change by up to 1 %. The f32 test therefore uses "lifted" weights, with
 * which hardly any value comes near a kink. Then every gradient must agree within 1e-4, planned
 * and eager, with each kernel choice. Gradients that consist of rounding errors only (biases in
 * front of another normalisation) may be off by ten times the error of PyTorch's own f32. bf16
 * runs with ordinary weights, and PyTorch's bf16 (autocast) error is its measure.
 * Labels: long
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/isa.h"
#include "hashed.h"
#include "resnet.inc"
#include "support/machine.h"

enum { BATCH = 4, SIZE = 96, PIXELS = BATCH * 3 * SIZE * SIZE, DIRECTIONS = 8, MOST = 256 };
enum { N = sizeof golden / sizeof *golden };

static float images[PIXELS];
static int64_t labels[BATCH];

static void make_input(void)
{
    const uint32_t image = hashed_key("images"), label = hashed_key("labels");
    for (uint32_t i = 0; i < PIXELS; i++) images[i] = (float)(hashed_uniform(image, i) * sqrt(3.0));
    for (uint32_t i = 0; i < BATCH; i++) labels[i] = hashed_bits(label, i) % 1000;
}

/* Estimates the norm of the difference between the gradient of v and the golden one, whose dot
 * products with the directions of this name are given. */
static double difference(ctn_var *v, const char *name, const double *product)
{
    const uint32_t n = (uint32_t)hashed_count(ctn_var_desc(v));
    double sum = 0;
    float *g = malloc(n * sizeof *g);
    assert_non_null(g);
    OK(ctn_var_grad(v, g, n * sizeof *g));
    for (int j = 0; j < DIRECTIONS; j++) {
        char direction[80];
        double p = 0;
        snprintf(direction, sizeof direction, "%s#%d", name, j);
        const uint32_t key = hashed_key(direction);
        for (uint32_t i = 0; i < n; i++) p += (double)g[i] * hashed_uniform(key, i);
        p = p * sqrt(3.0) - product[j];
        sum += p * p;
    }
    free(g);
    return sqrt(sum / (double)DIRECTIONS);
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

/* The same as lift() in resnet.py. */
static void lift(ctn_module *net)
{
    ctn_vars p = ctn_params(net);
    for (int v = 0; v < p.n; v++) {
        const ctn_desc *d = ctn_var_desc(p.var[v]);
        const char *name = p.name[v];
        float w[2048];
        if (d->ndim > 1 || strncmp(name, "fc.", 3) == 0) continue;
        const size_t bytes = (size_t)d->dim[0] * sizeof *w;
        const int inner =
            strncmp(name, "layer", 5) == 0 && (strstr(name, "bn1") || strstr(name, "bn2"));
        OK(ctn_var_get(p.var[v], w, bytes));
        for (int64_t i = 0; i < d->dim[0]; i++)
            w[i] = hashed_ends(name, "weight") ? w[i] * 0.3f : w[i] + (inner && i % 2 ? -1 : 1);
        OK(ctn_var_set(p.var[v], w, bytes));
    }
}

/* Runs one backward pass. error[k] is the relative difference of gradient k. Returns the loss. */
static double errors(ctn_precision precision, ctn_mode mode, int is_lifted, double *error)
{
    ctn_context *ctx = NULL;
    ctn_module *net = NULL;
    ctn_optim *opt = NULL;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .precision = precision, .mode = mode)));
    OK(ctn_zoo_resnet(&net, ctx, NULL));
    hashed_fill(net, is_lifted ? NULL : "bn3.weight");
    if (is_lifted) lift(net);
    OK(ctn_sgd_new(&opt, ctn_params(net), NULL));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *x = ctn_input(ctx, images, CTN_F32, CTN_SHAPE(BATCH, 3, SIZE, SIZE));
    ctn_tensor *loss = ctn_softmax_cross_entropy(ctn_call(net, x),
                                                 ctn_input(ctx, labels, CTN_I64, CTN_SHAPE(BATCH)));
    OK(ctn_backward(opt, loss));
    OK(ctn_flush(ctx));
    for (size_t k = 0; k < N; k++)
        error[k] = difference(ctn_module_find(net, golden[k].name), golden[k].name,
                              is_lifted ? lifted[k].product : golden[k].product);
    assert_int_equal(ctn_params(net).n, N);
    const double l = ctn_item(loss);
    OK(ctn_scope_end(ctx));
    ctn_optim_free(opt);
    ctn_module_free(net);
    ctn_context_free(ctx);
    return l;
}

static void check_f32(const char *what, ctn_mode mode, bool forced)
{
    double error[MOST], norm[MOST], worst = 0;
    const double loss = errors(CTN_PRECISION_F32, mode, 1, error);
    if (!(fabs(loss - lifted_losses[0]) <= 1e-5 * lifted_losses[0]))
        fail_msg("%s: loss is %.9g, PyTorch has %.9g in f64", what, loss, lifted_losses[0]);
    for (size_t k = 0; k < N; k++) norm[k] = lifted[k].norm;
    const double least = median(norm, N) / 100;
    for (size_t k = 0; k < N; k++) {
        error[k] /= norm[k];
        double bar = norm[k] < least ? 10 * lifted[k].f32 : 1e-4;
        /* Kernels other than the first choice, and those with shorter vectors, round more often. */
        if (forced || ctn__isa_in_use() < CTN__ISA_BEST) bar = fmax(bar, 3 * lifted[k].f32);
        if (!(error[k] <= bar))
            fail_msg("%s: gradient of %s: error %.2g, more than %.2g; PyTorch's f32 has %.2g", what,
                     golden[k].name, error[k], bar, lifted[k].f32);
        if (norm[k] < least) error[k] = 0;
        worst = fmax(worst, error[k]);
    }
    print_message("f32 %s: loss %.7g (f64: %.7g), error of gradients: median %.2g, largest %.2g\n",
                  what, loss, lifted_losses[0], median(error, N), worst);
}

static void test_f32(void **state)
{
    (void)state;
    /* Every choice is forced below, so that timing on this machine does not decide. */
    setenv("CATENA_TUNE", "0", 1);
    check_f32("planned", CTN_MODE_PLANNED, false);
    check_f32("eager", CTN_MODE_EAGER, false);
    static const char *const kernels[] = {"conv", "matmul"};
    for (int i = 0; i < 2; i++) {
        setenv("CATENA_KERNEL", kernels[i], 1);
        check_f32(kernels[i], CTN_MODE_PLANNED, true);
    }
    unsetenv("CATENA_KERNEL");
}

static void check_bf16(const char *what, ctn_mode mode)
{
    double error[MOST], ratio[MOST];
    const double loss = errors(CTN_PRECISION_BF16, mode, 0, error);
    for (size_t k = 0; k < N; k++) {
        error[k] /= golden[k].norm;
        ratio[k] = error[k] / golden[k].bf16;
        if (!(error[k] <= 3 * golden[k].bf16 + 0.01)) /* both are estimates from 8 numbers */
            fail_msg("%s: gradient of %s: error %.2g, PyTorch's bf16 has %.2g", what,
                     golden[k].name, error[k], golden[k].bf16);
    }
    print_message(
        "bf16 %s: loss %.7g (f64: %.7g), median gradient error: %.2g, %.2g times PyTorch's\n", what,
        loss, losses[0], median(error, N), median(ratio, N));
    if (!(median(ratio, N) <= 1.5))
        fail_msg("%s: the median error is %.2g times PyTorch's", what, median(ratio, N));
}

static void test_bf16(void **state)
{
    (void)state;
    if (!test_has_bf16()) skip();
    check_bf16("planned", CTN_MODE_PLANNED);
    check_bf16("eager", CTN_MODE_EAGER);
    static const char *const kernels[] = {"conv", "matmul"};
    for (int i = 0; i < 2; i++) {
        setenv("CATENA_KERNEL", kernels[i], 1);
        check_bf16(kernels[i], CTN_MODE_PLANNED);
    }
    unsetenv("CATENA_KERNEL");
}

int main(void)
{
    make_input();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_f32), cmocka_unit_test(test_bf16)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
