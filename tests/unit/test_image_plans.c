/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans of convolutional networks. Small networks are computed op by op, planned without fusion,
 * planned with fusion on 1, 2 and 3 threads and between guard bytes, and in f64. The loss, kept
 * tensors, running statistics and the gradients of all parameters and of the images must agree.
 * Then each fusion rule: it must apply where it should, and not where another node needs the
 * intermediate value.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <catena/ops.h>
#include <catena/optim.h>

#include <cmocka.h>

#include "graph/graph.h"
#include "support/ok.h"

#define CONV(...) CTN_OPT(ctn_conv_opt, __VA_ARGS__)
#define POOL(...) CTN_OPT(ctn_pool_opt, __VA_ARGS__)

enum { PARAMS = 12, KEPT = 3, MOST = 16384, DATA = 1 << 16 };

typedef struct run run;

/* Parameter 0 is the batch of images, so that its gradients are compared as well. */
typedef struct {
    const char *name;
    ctn_tensor *(*loss)(run *r);
    int64_t dim[PARAMS][5]; /* of the parameters; 0 ends each shape and the list */
    int norm[4];            /* parameters that scale a batch normalisation; ends with 0 */
} net;

struct run {
    const net *n;
    ctn_context *c;
    ctn_dtype type;
    int used;                        /* constants used so far */
    ctn_var *var[PARAMS], *state[8]; /* states: mean and variance, alternating */
    ctn_optim *o;                    /* f32 */
    ctn_tensor *p[PARAMS], *kept[KEPT];
    int np, nkept;
};

typedef struct {
    double loss, grad[PARAMS][MOST], state[8][64], kept[KEPT][MOST];
    char text[65536];
} result;

static float number[DATA];
static double number64[DATA];

static int fill_numbers(void **state)
{
    (void)state;
    uint64_t s = 12345;
    for (int i = 0; i < DATA; i++) {
        s = s * 6364136223846793005u + 1442695040888963407u;
        number[i] = i < 64 ? 1 : (float)((double)(s >> 40) / (double)(1 << 23) - 1);
        number64[i] = (double)number[i];
    }
    return 0;
}

static const void *numbers(const run *r, int at)
{
    return r->type == CTN_F64 ? (const void *)(number64 + at) : (const void *)(number + at);
}

static int ndim_of(const int64_t *dim)
{
    int n = 0;
    while (n < 5 && dim[n] > 0) n++;
    return n;
}

static int64_t count_of(const int64_t *dim)
{
    int64_t n = 1;
    for (int i = 0; i < ndim_of(dim); i++) n *= dim[i];
    return n;
}

/* ---- building blocks ------------------------------------------------------------------------- */

static ctn_tensor *constant(run *r, int ndim, const int64_t *dims)
{
    r->used += 997;
    return ctn_input(r->c, numbers(r, r->used), r->type, ndim, dims);
}

/* Mean of (y + constant)^2, so that no gradient vanishes in a normalisation. */
static ctn_tensor *loss_of(run *r, ctn_tensor *y)
{
    int64_t dims[CTN_MAX_DIMS];
    if (!y) fail_msg("%s: %s", r->n->name, ctn_error_message());
    for (int i = 0; i < ctn_ndim(y); i++) dims[i] = ctn_dim(y, i);
    return ctn_mean(ctn_square(ctn_add(y, constant(r, ctn_ndim(y), dims))), CTN_ALL_AXES, 0);
}

static ctn_tensor *conv(run *r, ctn_tensor *x, int w, int64_t stride)
{
    int64_t k = r->n->dim[w][2];
    return ctn_conv(x, r->p[w], NULL, CONV(.stride = {stride}, .pad = {k / 2}));
}

static ctn_tensor *norm(run *r, ctn_tensor *x, int scale)
{
    int k = 0;
    while (r->n->norm[k] != scale) k++;
    return ctn_batch_norm(x, r->p[scale], r->p[scale + 1], r->state[2 * k], r->state[2 * k + 1],
                          NULL);
}

/* Keeps t and returns it from the inner scope. Nothing else of that scope can be used any more. */
static ctn_tensor *keep(run *r, ctn_tensor *t)
{
    t = ctn_scope_return(r->c, ctn_keep(t));
    OK(ctn_scope_begin(r->c));
    return r->kept[r->nkept++] = t;
}

static ctn_tensor *first_block(run *r)
{
    return ctn_relu(norm(r, conv(r, r->p[0], 1, 1), 2));
}

/* Returns a after a backward pass of b. In f64 there is no optimizer, so it returns a tensor
 * with the value of a and the gradients of both. */
static ctn_tensor *both(run *r, ctn_tensor *a, ctn_tensor *b)
{
    if (r->type == CTN_F64) return ctn_add(a, ctn_sub(b, ctn_detach(b)));
    OK(ctn_backward(r->o, b));
    return a;
}

/* ---- running a net -------------------------------------------------------------------------- */

static void to_double(const run *r, const void *from, double *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = r->type == CTN_F64 ? ((const double *)from)[i] : (double)((const float *)from)[i];
}

static size_t bytes_of(const run *r, int64_t n)
{
    return (size_t)n * ctn_dtype_size(r->type);
}

/* The values of parameter i, valid until the next run. */
static const void *initial(const run *r, int i, int64_t n)
{
    static float f[PARAMS][MOST];
    static double d[PARAMS][MOST];
    assert_true(n <= MOST);
    for (int64_t k = 0; k < n; k++)
        d[i][k] = (double)(f[i][k] = number[99 + i * 3001 + k] * (i > 0 && n > 64 ? 0.4f : 1));
    return r->type == CTN_F64 ? (const void *)d[i] : f[i];
}

/* In f64 there is no optimizer: parameters are inputs, and gradients are requested as tensors. */
static void set_up(run *r)
{
    const net *n = r->n;
    for (int k = 0; k < 8 && n->norm[k / 2]; k++) {
        const int64_t *d = n->dim[n->norm[k / 2]];
        OK(ctn_var_new(&r->state[k], r->c, "state", CTN_STATE, r->type, 1, d));
        OK(ctn_var_set(r->state[k], numbers(r, k & 1 ? 0 : 77), bytes_of(r, d[0])));
    }
    for (; r->np < PARAMS && n->dim[r->np][0] > 0 && r->type == CTN_F32; r->np++) {
        const int64_t *d = n->dim[r->np], k = count_of(d);
        OK(ctn_var_new(&r->var[r->np], r->c, "p", CTN_PARAM, CTN_F32, ndim_of(d), d));
        OK(ctn_var_set(r->var[r->np], initial(r, r->np, k), bytes_of(r, k)));
    }
    if (r->np > 0) OK(ctn_sgd_new(&r->o, (ctn_vars){r->np, r->var, NULL}, NULL));
    OK(ctn_scope_begin(r->c));
    for (r->np = 0; r->np < PARAMS && n->dim[r->np][0] > 0; r->np++) {
        const int64_t *d = n->dim[r->np];
        const void *v = initial(r, r->np, count_of(d));
        r->p[r->np] = r->o ? ctn_use(r->var[r->np])
                           : ctn_with_grad(ctn_input(r->c, v, CTN_F64, ndim_of(d), d));
    }
}

static void gradients(run *r, ctn_tensor *loss, result *out)
{
    static double buf[MOST];
    ctn_tensor *g[PARAMS];
    if (r->o) {
        OK(ctn_backward(r->o, loss));
        OK(ctn_optim_step(r->o)); /* the gradients stay in place until the next backward pass */
    } else {
        OK(ctn_grad(loss, r->np, r->p, g));
    }
    for (int i = 0; i < r->np; i++) {
        int64_t n = count_of(r->n->dim[i]);
        if (r->o) memcpy(buf, r->var[i]->grad, bytes_of(r, n));
        else OK(ctn_read(g[i], buf, bytes_of(r, n)));
        to_double(r, buf, out->grad[i], n);
    }
    assert_true(ctn_context_plan_text(r->c, out->text, sizeof out->text) < (int)sizeof out->text);
}

static void compute(const net *n, ctn_context_opt opt, ctn_dtype type, result *out)
{
    static double buf[MOST];
    run r = {.n = n, .type = type};
    memset(out, 0, sizeof *out);
    opt.struct_size = sizeof opt;
    opt.seed = 5;
    OK(ctn_context_new(&r.c, &opt));
    set_up(&r);
    OK(ctn_scope_begin(r.c)); /* nobody can see what is inside */
    ctn_tensor *loss = n->loss(&r);
    if (!loss) fail_msg("%s: %s", n->name, ctn_error_message());
    loss = ctn_scope_return(r.c, loss);
    gradients(&r, loss, out);
    out->loss = ctn_item(loss);
    for (int i = 0; i < r.nkept; i++) {
        int64_t k = ctn_count(r.kept[i]);
        OK(ctn_read(r.kept[i], buf, bytes_of(&r, k)));
        to_double(&r, buf, out->kept[i], k);
    }
    OK(ctn_scope_end(r.c));
    for (int k = 0; k < 8 && n->norm[k / 2]; k++) {
        int64_t channels = n->dim[n->norm[k / 2]][0];
        OK(ctn_var_get(r.state[k], buf, bytes_of(&r, channels)));
        to_double(&r, buf, out->state[k], channels);
        ctn_var_free(r.state[k]);
    }
    ctn_optim_free(r.o);
    for (int i = 0; i < PARAMS; i++) ctn_var_free(r.var[i]);
    ctn_context_free(r.c);
}

static void compare(const char *name, const char *what, int i, const double *a, const double *b,
                    int64_t n, double tolerance)
{
    double d = 0, s = 0;
    for (int64_t k = 0; k < n; k++) {
        d += (a[k] - b[k]) * (a[k] - b[k]);
        s += b[k] * b[k];
    }
    if (!(sqrt(d) <= tolerance * sqrt(s)))
        fail_msg("%s: %s %d differs by %g of %g", name, what, i, sqrt(d), sqrt(s));
}

static void alike(const net *n, const char *what, const result *a, const result *b, double tol)
{
    char name[128];
    snprintf(name, sizeof name, "%s, %s", n->name, what);
    compare(name, "loss", 0, &a->loss, &b->loss, 1, tol);
    for (int i = 0; i < 8; i++) compare(name, "state", i, a->state[i], b->state[i], 64, tol);
    for (int i = 0; i < KEPT; i++) compare(name, "kept", i, a->kept[i], b->kept[i], MOST, tol);
    for (int i = 0; i < PARAMS && n->dim[i][0] > 0; i++)
        compare(name, "gradient", i, a->grad[i], b->grad[i], count_of(n->dim[i]), tol);
}

/* ---- the nets ------------------------------------------------------------------------------- */

static ctn_tensor *conv_bn_relu(run *r)
{
    return loss_of(r, first_block(r));
}

static ctn_tensor *chained(run *r)
{
    return loss_of(r, ctn_relu(ctn_shift(ctn_scale(conv(r, r->p[0], 1, 1), 1.5), 0.1)));
}

static ctn_tensor *bn_alone(run *r)
{
    return loss_of(r, conv(r, norm(r, conv(r, r->p[0], 1, 1), 2), 4, 1));
}

static ctn_tensor *block_identity(run *r)
{
    ctn_tensor *h = first_block(r);
    h = ctn_relu(ctn_add(norm(r, conv(r, h, 4, 1), 5), h));
    return loss_of(r, ctn_relu(ctn_add(h, norm(r, conv(r, h, 7, 1), 8))));
}

static ctn_tensor *block_downsample(run *r)
{
    ctn_tensor *h = first_block(r);
    ctn_tensor *a = norm(r, conv(r, h, 4, 2), 5), *b = norm(r, conv(r, h, 7, 2), 8);
    return loss_of(r, ctn_relu(ctn_add(a, b)));
}

/* 8 channels are half a vector, and 3 images cannot be split evenly among 2 threads. */
static ctn_tensor *strided_1x1(run *r)
{
    return loss_of(r, norm(r, conv(r, r->p[0], 1, 2), 2));
}

static ctn_tensor *bn_read_twice(run *r)
{
    ctn_tensor *b = norm(r, conv(r, r->p[0], 1, 1), 2);
    return loss_of(r, ctn_add(ctn_relu(b), ctn_tanh(b)));
}

static ctn_tensor *residual_read_twice(run *r)
{
    ctn_tensor *t = ctn_tanh(constant(r, CTN_SHAPE(4, 8, 12, 12))); /* no gradient reads it */
    ctn_tensor *y = ctn_relu(ctn_add(norm(r, conv(r, r->p[0], 1, 1), 2), t));
    return loss_of(r, ctn_add(y, ctn_exp(t)));
}

static ctn_tensor *bn_added_to_itself(run *r)
{
    ctn_tensor *b = norm(r, conv(r, r->p[0], 1, 1), 2);
    return loss_of(r, ctn_relu(ctn_add(b, b)));
}

static ctn_tensor *kept_inside(run *r)
{
    ctn_tensor *b = keep(r, norm(r, conv(r, r->p[0], 1, 1), 2)), *y = keep(r, ctn_relu(b));
    return loss_of(r, conv(r, keep(r, ctn_relu(conv(r, y, 4, 1))), 5, 1));
}

static ctn_tensor *kept_relu_of_bn(run *r)
{
    return loss_of(r, conv(r, keep(r, first_block(r)), 4, 1));
}

static ctn_tensor *conv_bias_relu(run *r)
{
    ctn_tensor *h = ctn_relu(ctn_conv(r->p[0], r->p[1], r->p[2], CONV(.pad = {1})));
    return loss_of(r, ctn_relu(ctn_conv(h, r->p[3], r->p[4],
                                        CONV(.stride = {2}, .pad_end = {CTN_PAD_NONE}))));
}

static ctn_tensor *pools(run *r)
{
    ctn_tensor *h = first_block(r);
    ctn_tensor *m = ctn_max_pool(h, POOL(.kernel = {3}, .stride = {2}, .pad = {1}));
    m = ctn_add(conv(r, m, 4, 1), ctn_avg_pool(h, POOL(.kernel = {2})));
    ctn_tensor *a = ctn_adaptive_avg_pool(m, CTN_SHAPE(3, 2)), *g = ctn_global_avg_pool(m);
    ctn_tensor *y = ctn_linear(ctn_reshape(g, CTN_SHAPE(4, 8)), r->p[5], r->p[6]);
    return both(r, loss_of(r, y), loss_of(r, a));
}

static ctn_tensor *depthwise(run *r)
{
    ctn_tensor *h = ctn_conv(r->p[0], r->p[1], NULL, CONV(.pad = {1}, .groups = 8));
    h = ctn_relu(norm(r, h, 2));
    return loss_of(r, ctn_relu(ctn_conv(h, r->p[4], NULL, CONV(.groups = 2))));
}

static ctn_tensor *transposed(run *r)
{
    ctn_tensor *h = ctn_conv_transpose(r->p[0], r->p[1], r->p[2], CONV(.stride = {2}, .pad = {1}));
    return loss_of(r, conv(r, ctn_relu(norm(r, ctn_relu(h), 3)), 5, 2));
}

static ctn_tensor *shapes(run *r)
{
    ctn_tensor *h = first_block(r), *part[2];
    OK(ctn_split(h, 1, 2, (const int64_t[]){3, 5}, part));
    ctn_tensor *s[3] = {part[1], ctn_slice(h, 1, 2, 4), part[0]}, *j = ctn_concat(3, s, 1);
    j = ctn_pad(j, (const int64_t[]){0, 0, 1, 0}, (const int64_t[]){0, 0, 0, 2}, 0.5);
    j = conv(r, ctn_slice(ctn_slice(j, 2, 1, 12), 3, 0, 12), 4, 1);
    ctn_tensor *t = ctn_transpose(ctn_reshape(j, CTN_SHAPE(4, 8, 144)), CTN_SHAPE(0, 2, 1));
    t = ctn_reshape(ctn_linear(t, r->p[5], NULL), CTN_SHAPE(4, 12, 12, 8));
    return loss_of(r, ctn_relu(ctn_add(ctn_transpose(t, CTN_SHAPE(0, 3, 1, 2)), h)));
}

static ctn_tensor *masked(run *r)
{
    ctn_tensor *h = first_block(r), *g = ctn_global_avg_pool(h);
    ctn_tensor *m = ctn_linear(ctn_reshape(g, CTN_SHAPE(4, 8)), r->p[4], NULL);
    h = ctn_mul(h, ctn_reshape(ctn_sigmoid(m), CTN_SHAPE(4, 8, 1, 1)));
    h = ctn_add(h, ctn_reshape(r->p[3], CTN_SHAPE(8, 1, 1)));
    return loss_of(r, conv(r, ctn_mul(h, constant(r, CTN_SHAPE(12, 1))), 5, 1));
}

static ctn_tensor *dropped(run *r)
{
    ctn_tensor *h = first_block(r);
    h = ctn_relu(conv(r, ctn_dropout(h, 0.3), 4, 1));
    return loss_of(r, conv(r, ctn_spatial_dropout(h, 0.4), 5, 1));
}

static ctn_tensor *read_between(run *r)
{
    ctn_tensor *h = first_block(r);
    ctn_tensor *y = ctn_add(norm(r, conv(r, h, 4, 1), 5), h);
    if (!(ctn_item(ctn_mean(y, CTN_ALL_AXES, 0)) < 100)) fail_msg("%s: read", r->n->name);
    return loss_of(r, ctn_relu(y));
}

static ctn_tensor *block(run *r)
{
    ctn_tensor *h = first_block(r);
    return loss_of(r, ctn_relu(ctn_add(norm(r, conv(r, h, 4, 1), 5), h)));
}

static ctn_tensor *evaluated(run *r)
{
    ctn_context_set_training(r->c, 0);
    return block(r);
}

static ctn_tensor *two_losses(run *r)
{
    ctn_tensor *h = first_block(r);
    ctn_tensor *second = loss_of(r, norm(r, conv(r, h, 4, 1), 5));
    return both(r, loss_of(r, ctn_global_avg_pool(h)), second);
}

static ctn_tensor *penalty_of_images(run *r)
{
    ctn_tensor *y = ctn_tanh(norm(r, conv(r, ctn_relu(conv(r, r->p[0], 1, 1)), 4, 2), 2)), *g;
    ctn_tensor *loss = loss_of(r, y);
    OK(ctn_grad(loss, 1, r->p, &g));
    return ctn_add(loss, ctn_scale(ctn_sum(ctn_square(g), CTN_ALL_AXES, 0), 50));
}

static ctn_tensor *penalty_of_weights(run *r)
{
    ctn_tensor *loss = loss_of(r, ctn_tanh(conv(r, ctn_tanh(conv(r, r->p[0], 1, 1)), 2, 1))), *g[2];
    OK(ctn_grad(loss, 2, r->p + 1, g));
    ctn_tensor *t = ctn_transpose(g[1], CTN_SHAPE(1, 0, 2, 3));
    ctn_tensor *a = ctn_sum(ctn_square(g[0]), CTN_ALL_AXES, 0),
               *b = ctn_mul(t, ctn_mul(t, r->p[1]));
    return ctn_add(loss, ctn_scale(ctn_add(a, ctn_sum(b, CTN_ALL_AXES, 0)), 50));
}

static ctn_tensor *tied_weights(run *r)
{
    ctn_tensor *h = first_block(r);
    h = ctn_relu(norm(r, conv(r, conv(r, h, 1, 1), 1, 1), 4));
    ctn_tensor *t = ctn_transpose(r->p[1], CTN_SHAPE(1, 0, 2, 3)); /* weights through a view */
    return loss_of(r, ctn_conv(h, ctn_mul(t, t), NULL, CONV(.pad = {1}, .dilation = {2})));
}

static ctn_tensor *rows(run *r)
{
    ctn_tensor *h = ctn_relu(norm(r, ctn_linear(r->p[0], r->p[1], NULL), 2));
    return loss_of(r, ctn_relu(ctn_linear(h, r->p[1], r->p[3])));
}

static ctn_tensor *other_norms(run *r)
{
    ctn_tensor *h = ctn_group_norm(conv(r, r->p[0], 1, 1), 4, r->p[2], r->p[3], 1e-5);
    h = ctn_instance_norm(conv(r, ctn_prelu(h, r->p[2]), 4, 1), r->p[2], NULL, 1e-5);
    h = ctn_resize(ctn_relu(h), CTN_RESIZE_LINEAR, CTN_SHAPE(8, 10));
    h = ctn_space_to_depth(ctn_depth_to_space(conv(r, h, 5, 1), 2), 2);
    return loss_of(r, ctn_add(h, ctn_resize(h, CTN_RESIZE_NEAREST, CTN_SHAPE(8, 10))));
}

/* Compares bits, not values: -0 and 0 differ. */
static bool differ(const void *a, const void *b, size_t n)
{
    return memcmp(a, b, n) != 0;
}

#define IMAGES {4, 8, 12, 12}
#define KERNEL {8, 8, 3, 3}
#define BN {8}, {8}
/* The first BITWISE nets have no op whose summation order depends on the layout of its region. */
enum { BITWISE = 4 };
/* clang-format off */
static const net nets[] = {
    {"conv_bias_relu", conv_bias_relu, {IMAGES, KERNEL, {8}, {5, 8, 2, 2}, {5}}, {0}},
    {"evaluated", evaluated, {IMAGES, KERNEL, BN, KERNEL, BN}, {2, 5}},
    {"rows", rows, {{80, 60}, {60, 60}, {60}, {60}}, {2}},
    {"other_norms", other_norms, {IMAGES, KERNEL, BN, KERNEL, KERNEL}, {0}},
    {"conv_bn_relu", conv_bn_relu, {IMAGES, KERNEL, BN}, {2}},
    {"chained", chained, {IMAGES, KERNEL}, {0}},
    {"bn_alone", bn_alone, {IMAGES, KERNEL, BN, KERNEL}, {2}},
    {"block_identity", block_identity, {IMAGES, KERNEL, BN, KERNEL, BN, KERNEL, BN}, {2, 5, 8}},
    {"block_downsample", block_downsample, {IMAGES, KERNEL, BN, {16, 8, 3, 3}, {16}, {16},
     {16, 8, 1, 1}, {16}, {16}}, {2, 5, 8}},
    {"strided_1x1", strided_1x1, {{3, 8, 12, 12}, {16, 8, 1, 1}, {16}, {16}}, {2}},
    {"bn_read_twice", bn_read_twice, {IMAGES, KERNEL, BN}, {2}},
    {"residual_read_twice", residual_read_twice, {IMAGES, KERNEL, BN}, {2}},
    {"bn_added_to_itself", bn_added_to_itself, {IMAGES, KERNEL, BN}, {2}},
    {"kept_inside", kept_inside, {IMAGES, KERNEL, BN, KERNEL, KERNEL}, {2}},
    {"kept_relu_of_bn", kept_relu_of_bn, {IMAGES, KERNEL, BN, KERNEL}, {2}},
    {"pools", pools, {IMAGES, KERNEL, BN, KERNEL, {5, 8}, {5}}, {2}},
    {"depthwise", depthwise, {IMAGES, {8, 1, 3, 3}, BN, {6, 4, 1, 1}}, {2}},
    {"transposed", transposed, {{4, 8, 6, 6}, {8, 6, 4, 4}, {6}, {6}, {6}, {8, 6, 3, 3}}, {3}},
    {"shapes", shapes, {IMAGES, KERNEL, BN, {8, 12, 3, 3}, {8, 8}}, {2}},
    {"masked", masked, {IMAGES, KERNEL, BN, {8, 8}, KERNEL}, {2}},
    {"dropped", dropped, {IMAGES, KERNEL, BN, KERNEL, KERNEL}, {2}},
    {"read_between", read_between, {IMAGES, KERNEL, BN, KERNEL, BN}, {2, 5}},
    {"two_losses", two_losses, {IMAGES, KERNEL, BN, KERNEL, BN}, {2, 5}},
    {"penalty_of_images", penalty_of_images, {IMAGES, KERNEL, BN, KERNEL}, {2}},
    {"signals", block, {{4, 8, 150}, {8, 8, 3}, BN, {8, 8, 5}, BN}, {2, 5}},
    {"volumes", block, {{2, 8, 5, 6, 7}, {8, 8, 3, 3, 3}, BN, {8, 8, 1, 1, 1}, BN}, {2, 5}},
    {"odd_channels", block, {{3, 5, 19, 17}, {7, 5, 3, 3}, {7}, {7}, {7, 7, 3, 3}, {7}, {7}},
     {2, 5}},
    {"penalty_of_weights", penalty_of_weights, {IMAGES, {16, 8, 3, 3}, {8, 16, 3, 3}}, {0}},
    {"tied_weights", tied_weights, {IMAGES, KERNEL, BN, BN}, {2, 4}},
};
/* clang-format on */

enum { NETS = sizeof nets / sizeof *nets };

static void agrees(void **state)
{
    const net *n = *state;
    static result eager, plain, fused, exact;
    compute(n, (ctn_context_opt){.threads = 2, .mode = CTN_MODE_EAGER}, CTN_F32, &eager);
    compute(n, (ctn_context_opt){.threads = 2, .no_fuse = 1}, CTN_F32, &plain);
    compute(n, (ctn_context_opt){.threads = 2}, CTN_F64, &exact);
    alike(n, "eager and f64", &eager, &exact, 1e-4);
    alike(n, "unfused and f64", &plain, &exact, 1e-4);
    alike(n, "unfused and eager", &plain, &eager, 1e-5);
    if (n - nets < BITWISE && (differ(plain.grad, eager.grad, sizeof eager.grad) ||
                               differ(plain.state, eager.state, sizeof eager.state)))
        fail_msg("%s: unfused and eager are not bitwise equal", n->name);
    assert_non_null(strstr(plain.text, ", 0 fused"));
    for (int threads = 1; threads <= 3; threads++) {
        setenv("CATENA_GUARD", threads == 2 ? "1" : "0", 1);
        compute(n, (ctn_context_opt){.threads = threads}, CTN_F32, &fused);
        alike(n, "fused and unfused", &fused, &plain, 1e-5);
    }
    setenv("CATENA_GUARD", "0", 1);
}

/* ---- rules ---------------------------------------------------------------------------------- */

/* The number of lines of a printed plan that run this op. */
static int kernels(const char *text, const char *op)
{
    int n = 0;
    for (const char *line = strchr(text, '\n'); line; line = strchr(line + 1, '\n')) {
        char name[64] = "";
        if (sscanf(line, " %*d %63s", name) == 1) n += strcmp(name, op) == 0;
    }
    return n;
}

static const net *by_name(const char *name)
{
    for (int i = 0; i < NETS; i++)
        if (strcmp(nets[i].name, name) == 0) return &nets[i];
    fail_msg("no net %s", name);
    return NULL;
}

/* How often an op runs in a net's plan without fusion and with it. */
/* clang-format off */
static const struct {
    const char *rule, *net, *op;
    int unfused, fused;
} expected[] = {
    {"product_act", "conv_bias_relu", "relu", 2, 0},
    {"product_act", "conv_bias_relu", "conv", 2, 2},
    {"product_act", "kept_inside", "relu", 2, 1}, /* a kept input: no; a kept output: yes */
    {"norm_act", "conv_bn_relu", "relu", 1, 0},
    {"norm_act", "kept_relu_of_bn", "relu", 1, 0},
    {"norm_act", "block_identity", "relu", 3, 0},
    {"norm_act", "residual_read_twice", "relu", 1, 0},
    {"norm_act", "block_downsample", "relu", 2, 0},
    {"norm_act", "evaluated", "relu", 2, 0},
    {"norm_grad", "conv_bn_relu", "relu_grad", 1, 0},
    {"norm_grad", "conv_bn_relu", "batch_norm_grad_x", 0, 1}, /* does not read y */
    {"norm_grad", "kept_relu_of_bn", "relu_grad", 1, 0},
    {"norm_grad", "block_identity", "relu_grad", 3, 0},
    /* residuals and joins are fused, the loss is not */
    {"norm_grad", "block_identity", "add", 5, 1},
    {"norm_grad", "block_downsample", "relu_grad", 2, 0},
    {"elementwise", "chained", "elementwise", 0, 2}, /* forward and backward */
    {"elementwise", "chained", "relu", 1, 0},
    {"elementwise", "chained", "relu_grad", 1, 0},
};
/* clang-format on */

static void rule_applies(void **state)
{
    static result r;
    for (size_t i = 0; i < 2 * (sizeof expected / sizeof *expected); i++) {
        const char *name = expected[i / 2].net, *op = expected[i / 2].op;
        if (strcmp(expected[i / 2].rule, *state) != 0) continue;
        compute(by_name(name), (ctn_context_opt){.threads = 1, .no_fuse = i & 1}, CTN_F32, &r);
        int got = kernels(r.text, op),
            want = i & 1 ? expected[i / 2].unfused : expected[i / 2].fused;
        if (got != want)
            fail_msg("%s, fusion %s: %d of %s, expected %d\n%s", name, i & 1 ? "off" : "on", got,
                     op, want, r.text);
    }
}

int main(void)
{
    setenv("CATENA_TUNE", "0", 1); /* nothing here depends on which kernel is faster */
    static char rule[4][16] = {"product_act", "norm_act", "norm_grad", "elementwise"};
    static struct CMUnitTest tests[4 + NETS];
    for (int i = 0; i < 4; i++)
        tests[i] = (struct CMUnitTest){rule[i], rule_applies, NULL, NULL, rule[i]};
    for (int i = 0; i < NETS; i++)
        tests[4 + i] =
            (struct CMUnitTest){nets[i].name, agrees, NULL, NULL, (void *)(uintptr_t)&nets[i]};
    return cmocka_run_group_tests_name("image plans", tests, fill_numbers, NULL);
}
