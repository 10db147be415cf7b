/* SPDX-License-Identifier: Apache-2.0
 *
 * The networks for images and fields of the zoo, and the blocks of Inception, against the same
 * networks written out with NumPy (images.py): results in evaluation mode, with running statistics
 * that are not those of a new network, to 1e-5. Image sizes are odd where possible.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <catena/zoo.h>

#include "hashed.h"
#include "images.inc"

enum { ROOM = 3 * 70 * 49, CLASSES = 4 };

static ctn_context *ctx;

static int set_up(void **state)
{
    (void)state;
    if (ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 2)) < 0) return -1;
    ctn_context_set_training(ctx, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ctn_context_free(ctx);
    return 0;
}

static ctn_status fill_state(void *user, const char *name, ctn_dtype dtype, int ndim,
                             const int64_t *dims, void *data)
{
    const int mean = hashed_ends(name, "running_mean"), var = hashed_ends(name, "running_var");
    const uint32_t key = hashed_key(name);
    float *x = data;
    (void)user, (void)dtype, (void)ndim;
    if (!mean && !var) return CTN_OK;
    for (uint32_t i = 0; i < (uint32_t)dims[0]; i++)
        x[i] = (float)(mean ? 0.25 * hashed_uniform(key, i) : 1 + 0.5 * hashed_uniform(key, i));
    return CTN_OK;
}

static void compare(const char *name, ctn_module *m, int ndim, const int64_t *in, const float *x,
                    const double *expected, size_t n)
{
    OK(ctn_scope_begin(ctx));
    ctn_tensor *y = ctn_call(m, ctn_input(ctx, x, CTN_F32, ndim, in));
    const float *found = y ? ctn_data(y) : NULL;
    if (!found) fail_msg("%s: %s", name, ctn_error_message());
    assert_int_equal(ctn_count(y), n);
    double most = 1;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(expected[i]));
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)found[i] - expected[i]) <= 1e-5 * most))
            fail_msg("%s: number %d of the result is %.9g, expected %.9g", name, (int)i,
                     (double)found[i], expected[i]);
    OK(ctn_scope_end(ctx));
}

/* Frees m. in: the shape of its input, ended by 0. */
static void check(const char *name, ctn_status made, ctn_module *m, const int64_t *in,
                  const double *expected, size_t n)
{
    static float x[ROOM];
    char input[64];
    int ndim = 0;
    uint32_t count = 1;
    if (made < 0) fail_msg("%s: %s", name, ctn_error_message());
    snprintf(input, sizeof input, "x of %s", name);
    for (; in[ndim] > 0; ndim++) count *= (uint32_t)in[ndim];
    assert_true(count <= ROOM);
    const uint32_t key = hashed_key(input);
    for (uint32_t i = 0; i < count; i++) x[i] = (float)hashed_uniform(key, i);
    hashed_fill(m, NULL);
    OK(ctn_module_visit(m, fill_state, NULL));
    for (int grad = 0; grad < 2; grad++) { /* without gradients, more is fused */
        ctn_context_set_grad(ctx, grad);
        compare(name, m, ndim, in, x, expected, n);
    }
    ctn_module_free(m);
}

/* A network by its constructor, options and input shape. */
#define CHECK(name, new, opt, ...)                                     \
    do {                                                               \
        ctn_module *m_ = NULL;                                         \
        const ctn_status st_ = new (&m_, ctx, opt);                    \
        check(#name, st_, m_, (const int64_t[]){__VA_ARGS__, 0}, name, \
              sizeof name / sizeof *name);                             \
    } while (0)

static void classifiers(void **state)
{
    (void)state;
    CHECK(lenet5, ctn_zoo_lenet5, CTN_OPT(ctn_lenet5_opt, .classes = CLASSES), 2, 1, 28, 28);
    CHECK(resnet18, ctn_zoo_resnet,
          CTN_OPT(ctn_resnet_opt, .depth = 18, .width = 4, .classes = CLASSES), 2, 3, 40, 33);
    CHECK(resnet50, ctn_zoo_resnet,
          CTN_OPT(ctn_resnet_opt, .width = 3, .in_channels = 2, .classes = CLASSES), 1, 2, 33, 48);
    CHECK(resnet14_cifar, ctn_zoo_resnet_cifar,
          CTN_OPT(ctn_resnet_cifar_opt, .depth = 14, .width = 3, .classes = CLASSES), 2, 3, 9, 8);
    CHECK(mobilenet_v2, ctn_zoo_mobilenet_v2,
          CTN_OPT(ctn_mobilenet_v2_opt, .width = 0.35, .classes = CLASSES), 1, 3, 40, 33);
}

static void googlenets(void **state)
{
    (void)state;
    ctn_googlenet_opt o = {sizeof o, .classes = CLASSES};
    CHECK(googlenet, ctn_zoo_googlenet, &o, 1, 3, 70, 49);
    CHECK(googlenet_small, ctn_zoo_googlenet, &o, 1, 3, 20, 9);
    o.batch_norm = 1;
    CHECK(googlenet_norm, ctn_zoo_googlenet, &o, 1, 3, 70, 49);
}

static void unets(void **state)
{
    (void)state;
    CHECK(unet1, ctn_zoo_unet,
          CTN_OPT(ctn_unet_opt, .spatial = 1, .width = 3, .depth = 2, .in_channels = 2,
                  .out_channels = 2),
          2, 2, 8);
    CHECK(unet2, ctn_zoo_unet, CTN_OPT(ctn_unet_opt, .width = 2, .depth = 3), 1, 1, 8, 16);
    CHECK(unet3, ctn_zoo_unet, CTN_OPT(ctn_unet_opt, .spatial = 3, .width = 2, .depth = 1), 1, 1, 4,
          2, 6);
}

static ctn_status new_inception(ctn_module **m, ctn_context *c, const ctn_inception_opt *o)
{
    return ctn_inception_new(m, c, 3, o);
}

static ctn_status new_inception_bn(ctn_module **m, ctn_context *c, const ctn_inception_bn_opt *o)
{
    return ctn_inception_bn_new(m, c, 3, o);
}

static void inceptions(void **state)
{
    (void)state;
    ctn_inception_opt o = {sizeof o,     .out1 = 1, .reduce3 = 2, .out3 = 2,
                           .reduce5 = 3, .out5 = 1, .pool = 2};
    ctn_inception_bn_opt b = {sizeof b,      .out1 = 1,  .reduce3 = 2, .out3 = 2,
                              .reduce33 = 3, .out33 = 1, .pool = 2,    .average = 1};
    CHECK(inception, new_inception, &o, 1, 3, 5, 4);
    o.batch_norm = 1;
    CHECK(inception_norm, new_inception, &o, 1, 3, 5, 4);
    CHECK(inception_bn, new_inception_bn, &b, 1, 3, 5, 4);
    b.out1 = b.pool = b.average = 0;
    b.stride = 2;
    CHECK(inception_bn_stride, new_inception_bn, &b, 1, 3, 5, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classifiers),
        cmocka_unit_test(googlenets),
        cmocka_unit_test(unets),
        cmocka_unit_test(inceptions),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
