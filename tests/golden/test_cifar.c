/* SPDX-License-Identifier: Apache-2.0
 *
 * ResNets on CIFAR-10 against PyTorch (cifar.py), in strict f32: 100 training steps of
 * ResNet-18, and logits of the published ResNet-20 for 1000 test images. The training losses
 * must agree within 1e-4 for 20 steps and within 1e-2 for all 100. PyTorch's own losses in two
 * layouts differ by 3e-5 and 1e-3 there. In bf16 the smoothed loss curve must end within 3 % of
 * that of f32. Skipped (77) without CATENA_DATA, or if its images cannot be unpacked into the
 * working folder, which needs python3 and djxl.
 * Labels: nightly
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "cifar.inc"
#include "hashed.h"
#include "support/machine.h"

enum { STEPS = 100, BATCH = 32, IMAGES = 1000 };

static const char folder[] = "cifar10";

static ctn_dataset *open_images(ctn_split split)
{
    ctn_dataset *ds = NULL;
    OK(ctn_cifar10_open(&ds, folder, split,
                        CTN_OPT(ctn_cifar_opt, .mean = {0.485, 0.456, 0.406},
                                .std = {0.229, 0.224, 0.225})));
    return ds;
}

static void open_loader(ctn_loader **l, ctn_dataset *ds, int64_t batch)
{
    ctn_sampler *order = NULL;
    OK(ctn_sampler_sequential(&order, ctn_dataset_count(ds)));
    OK(ctn_loader_new(l, ds, order, CTN_OPT(ctn_loader_opt, .batch = batch)));
    ctn_sampler_free(order);
}

/* Trains for 100 steps and stores every loss in out. */
static void train_resnet18(ctn_precision precision, double out[STEPS])
{
    ctn_context *ctx = NULL;
    ctn_module *net = NULL;
    ctn_optim *opt = NULL;
    ctn_dataset *ds = open_images(CTN_TRAIN);
    ctn_loader *loader = NULL;
    ctn_batch b;
    open_loader(&loader, ds, BATCH);
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .precision = precision)));
    OK(ctn_zoo_resnet(&net, ctx, CTN_OPT(ctn_resnet_opt, .depth = 18, .classes = 10)));
    hashed_fill(net, "bn2.weight");
    OK(ctn_sgd_new(&opt, ctn_params(net), CTN_OPT(ctn_sgd_opt, .lr = 0.002)));
    for (int step = 0; step < STEPS; step++) {
        OK(ctn_loader_next(loader, &b));
        OK(ctn_scope_begin(ctx));
        ctn_tensor *y = ctn_call(net, ctn_batch_tensor(ctx, &b, 0));
        ctn_tensor *loss = ctn_softmax_cross_entropy(y, ctn_batch_tensor(ctx, &b, 1));
        OK(ctn_backward(opt, loss));
        OK(ctn_optim_step(opt));
        out[step] = ctn_item(loss);
        OK(ctn_scope_end(ctx));
    }
    ctn_loader_free(loader);
    ctn_dataset_free(ds);
    ctn_optim_free(opt);
    ctn_module_free(net);
    ctn_context_free(ctx);
}

/* The end of the smoothed curve: the mean of the last 20 losses. */
static double end_of(const double loss[STEPS])
{
    double sum = 0;
    for (int step = STEPS - 20; step < STEPS; step++) sum += loss[step];
    return sum / 20;
}

static void test_resnet18(void **state)
{
    (void)state;
    double f32[STEPS], bf16[STEPS], worst[2] = {0, 0};
    train_resnet18(CTN_PRECISION_F32, f32);
    for (int step = 0; step < STEPS; step++) {
        const double off = fabs(f32[step] - losses[step]) / losses[step];
        if (!(off <= (step < 20 ? 1e-4 : 1e-2)))
            fail_msg("step %d: loss %.9g, PyTorch has %.9g: off by %.2g", step, f32[step],
                     losses[step], off);
        worst[step >= 20] = fmax(worst[step >= 20], off);
    }
    print_message("ResNet-18: largest difference %.2g in 20 steps, then %.2g\n", worst[0],
                  worst[1]);
    if (!test_has_bf16()) {
        print_message("no bf16 on this CPU\n");
        return;
    }
    train_resnet18(CTN_PRECISION_BF16, bf16);
    const double off = fabs(end_of(bf16) / end_of(f32) - 1);
    print_message("ResNet-18 ends at %.5f in bf16, at %.5f in f32: relative difference %.2g\n",
                  end_of(bf16), end_of(f32), off);
    assert_true(off <= 0.03);
}

/* The published files predate PyTorch's batch counter. */
static const char *no_counters(void *user, const char *name, char *buf, size_t n)
{
    (void)user, (void)buf, (void)n;
    return hashed_ends(name, "num_batches_tracked") ? NULL : name;
}

static double compare(const float *y, int64_t first, int64_t n)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 10; k++)
            worst = fmax(worst, fabs((double)y[i * 10 + k] - 1e-5 * logits[first + i][k]));
    return worst;
}

static void test_resnet20(void **state)
{
    (void)state;
    char path[1024];
    ctn_context *ctx = NULL;
    ctn_module *net = NULL;
    ctn_dataset *ds = open_images(CTN_TEST);
    ctn_loader *loader = NULL;
    ctn_batch b;
    double worst = 0, right = 0;
    open_loader(&loader, ds, 100);
    OK(ctn_context_new(&ctx, NULL));
    ctn_context_set_training(ctx, 0);
    OK(ctn_zoo_resnet_cifar(&net, ctx, NULL));
    data_path(path, sizeof path, "weights/cifar10-resnet/resnet20-12fca82f.safetensors");
    OK(ctn_weights_load(net, path, CTN_OPT(ctn_weights_opt, .map = no_counters)));
    for (int64_t i = 0; i < IMAGES; i += b.n) {
        OK(ctn_loader_next(loader, &b));
        OK(ctn_scope_begin(ctx));
        ctn_tensor *y = ctn_call(net, ctn_batch_tensor(ctx, &b, 0));
        ctn_tensor *part = ctn_accuracy(y, ctn_batch_tensor(ctx, &b, 1), 1);
        const float *got = ctn_data(y);
        if (!got) fail_msg("%s", ctn_error_message());
        worst = fmax(worst, compare(got, i, b.n));
        right += ctn_item(part) * (double)b.n;
        OK(ctn_scope_end(ctx));
    }
    print_message("ResNet-20: largest difference %.2g, %g of %d correct\n", worst, right, IMAGES);
    if (!(worst <= 1e-4)) fail_msg("a logit is off by %.2g, more than 1e-4", worst);
    assert_int_equal(llround(right), RIGHT);
    ctn_loader_free(loader);
    ctn_dataset_free(ds);
    ctn_module_free(net);
    ctn_context_free(ctx);
}

/* Makes sure that the .bin files are in the working folder, from an earlier run or unpacked now. */
static const char *unpack(void)
{
    char script[1024], command[2200];
    if (!data_path(script, sizeof script, "cifar10/unpack.py")) return "CATENA_DATA is not set";
    if (access("cifar10/test_batch.bin", R_OK) == 0) return NULL; /* the last one written */
    snprintf(command, sizeof command, "python3 '%s' %s", script, folder);
    return system(command) == 0 ? NULL : "unpack.py failed; it needs djxl (Debian: libjxl-tools)";
}

int main(void)
{
    const char *why = unpack();
    if (why) {
        printf("skipped: %s\n", why);
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_resnet18),
                                       cmocka_unit_test(test_resnet20)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
