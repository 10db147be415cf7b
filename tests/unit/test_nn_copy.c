/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of modules: every module of the library and small networks of the zoo give the same
 * results, share nothing with the original and can be trained alone. Ties, flags, what was added
 * to a module, modules of the user, errors of copy functions, a failing allocator.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <catena/catena.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ok.h"

#include "nn/nn.h"

enum { MOST = 4096 };

static int set_up(void **state)
{
    ctn_context *ctx = NULL;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = 1, .threads = 1)));
    *state = ctx;
    return 0;
}

static int tear_down(void **state)
{
    assert_string_equal(ctn_error_message(), "");
    ctn_context_free(*state);
    return 0;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* No word of the self of c or its descendants is the address of m, a descendant, or a variable. */
static void assert_no_word(const ctn_module *c, const void *address)
{
    for (size_t i = 0; i + sizeof address <= c->bytes; i += sizeof address)
        if (memcmp((const char *)c->self + i, &address, sizeof address) == 0)
            fail_msg("word %zu of the copy of '%s' still points to the original", i / 8,
                     c->name ? c->name : "");
    for (size_t i = 0; i < c->children.n; i++) assert_no_word(c->children.at[i], address);
}

static void assert_separate(const ctn_module *c, const ctn_module *m)
{
    assert_no_word(c, m);
    for (size_t i = 0; i < m->own.n; i++) assert_no_word(c, m->own.at[i].var);
    for (size_t i = 0; i < m->children.n; i++) assert_separate(c, m->children.at[i]);
}

static void assert_equal_vars(ctn_module *c, ctn_module *m)
{
    ctn_vars a, b;
    OK(ctn__module_vars(c, &a));
    OK(ctn__module_vars(m, &b));
    assert_int_equal(a.n, b.n);
    for (int i = 0; i < a.n; i++) {
        assert_string_equal(a.name[i], b.name[i]);
        assert_ptr_not_equal(a.var[i], b.var[i]);
        assert_int_equal(a.var[i]->trainable, b.var[i]->trainable);
        assert_true(ctn__same_desc(&a.var[i]->d, &b.var[i]->d));
        assert_memory_equal(a.var[i]->data, b.var[i]->data, ctn__bytes(&a.var[i]->d));
        for (int k = 0; k < i; k++) assert_int_equal(a.var[k] == a.var[i], b.var[k] == b.var[i]);
    }
}

typedef struct {
    ctn_dtype dtype;
    int ndim;
    int64_t dim[4];
} shape;

static int64_t result(ctn_module *m, const shape *s, float *y)
{
    static float x[MOST];
    static int64_t tokens[MOST];
    ctn_context *ctx = ctn_module_context(m);
    for (int i = 0; i < MOST; i++) x[i] = (float)(i * 37 % 101) / 50 - 1;
    for (int i = 0; i < MOST; i++) tokens[i] = i * 5 % 7;
    const int was = ctn_context_set_training(ctx, 0);
    OK(ctn_scope_begin(ctx));
    ctn_tensor *in =
        ctn_input(ctx, s->dtype == CTN_I64 ? (void *)tokens : (void *)x, s->dtype, s->ndim, s->dim);
    ctn_tensor *out = ctn_call(m, in);
    const int64_t n = ctn_count(out);
    assert_true(n > 0 && n <= MOST);
    OK(ctn_read(out, y, (size_t)n * sizeof *y));
    OK(ctn_scope_end(ctx));
    ctn_context_set_training(ctx, was);
    return n;
}

static void train(ctn_module *m, const shape *s)
{
    static float x[MOST];
    static int64_t tokens[MOST];
    ctn_context *ctx = ctn_module_context(m);
    ctn_optim *opt = NULL;
    for (int i = 0; i < MOST; i++) x[i] = (float)(i * 31 % 97) / 40 - 1;
    OK(ctn_sgd_new(&opt, ctn_params(m), CTN_OPT(ctn_sgd_opt, .lr = 0.1)));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *in =
        ctn_input(ctx, s->dtype == CTN_I64 ? (void *)tokens : (void *)x, s->dtype, s->ndim, s->dim);
    OK(ctn_backward(opt, ctn_mean(ctn_square(ctn_shift(ctn_call(m, in), -1)), CTN_ALL_AXES, 0)));
    OK(ctn_optim_step(opt));
    OK(ctn_scope_end(ctx));
    ctn_optim_free(opt);
}

/* Copy m, compare, train m and the copy, and free both. */
static void check_copy(ctn_module *m, shape s)
{
    static float before[MOST], after[MOST];
    ctn_module *c = NULL;
    OK(ctn_module_copy(&c, m));
    assert_separate(c, m);
    assert_equal_vars(c, m);
    const size_t bytes = (size_t)result(m, &s, before) * sizeof *before;
    assert_int_equal(result(c, &s, after) * 4, bytes);
    assert_memory_equal(after, before, bytes);
    if (ctn_params(m).n > 0) {
        train(m, &s);
        result(c, &s, after);
        assert_memory_equal(after, before, bytes);
        result(m, &s, after);
        assert_memory_not_equal(after, before, bytes);
        train(c, &s); /* the same step from the same values */
        assert_equal_vars(c, m);
        result(c, &s, before);
        assert_memory_equal(after, before, bytes);
    }
    ctn_module_free(m); /* the copy does not need it */
    result(c, &s, after);
    assert_memory_equal(after, before, bytes);
    ctn_module_free(c);
}

/* ---- the library's modules ------------------------------------------------------------------- */

static void layers(void **state)
{
    ctn_context *ctx = *state;
    const shape rows = {CTN_F32, 2, {3, 4}}, image = {CTN_F32, 4, {2, 4, 6, 6}};
    ctn_module *m = NULL;
    OK(ctn_linear_new(&m, ctx, 4, 5, NULL));
    check_copy(m, rows);
    OK(ctn_linear_new(&m, ctx, 4, 5, CTN_OPT(ctn_linear_opt, .no_bias = 1)));
    check_copy(m, rows);
    OK(ctn_conv_new(&m, ctx, 4, 6, CTN_SHAPE(3, 3),
                    CTN_OPT(ctn_conv_module_opt, .stride = {2}, .pad = {1}, .groups = 2)));
    check_copy(m, image);
    OK(ctn_conv_transpose_new(&m, ctx, 4, 2, CTN_SHAPE(3, 3),
                              CTN_OPT(ctn_conv_module_opt, .stride = {2}, .out_pad = {1},
                                      .no_bias = 1)));
    check_copy(m, image);
    OK(ctn_deform_conv_new(&m, ctx, 4, 2, CTN_SHAPE(3, 3),
                           CTN_OPT(ctn_conv_module_opt, .stride = {2}, .pad = {1})));
    check_copy(m, image);
    OK(ctn_batch_norm_new(&m, ctx, 4, CTN_OPT(ctn_batch_norm_module_opt, .momentum = 0.3)));
    check_copy(m, image);
    OK(ctn_group_norm_new(&m, ctx, 2, 4, NULL));
    check_copy(m, image);
    OK(ctn_layer_norm_new(&m, ctx, CTN_SHAPE(6, 6), CTN_OPT(ctn_norm_opt, .no_bias = 1)));
    check_copy(m, image);
    OK(ctn_layer_norm_new(&m, ctx, CTN_SHAPE(6), CTN_OPT(ctn_norm_opt, .no_affine = 1)));
    check_copy(m, image);
    OK(ctn_embedding_new(&m, ctx, 7, 3, NULL));
    check_copy(m, (shape){CTN_I64, 2, {2, 5}});
    OK(ctn_dropout_new(&m, ctx, 0.5));
    check_copy(m, rows);
    OK(ctn_max_pool_new(&m, ctx, CTN_OPT(ctn_pool_opt, .kernel = {2})));
    check_copy(m, image);
    OK(ctn_avg_pool_new(&m, ctx, CTN_OPT(ctn_pool_opt, .kernel = {3}, .stride = {1})));
    check_copy(m, image);
    OK(ctn_flatten_new(&m, ctx));
    check_copy(m, image);
    OK(ctn_activation_new(&m, ctx, ctn_tanh_at));
    check_copy(m, rows);
}

static void networks(void **state)
{
    ctn_context *ctx = *state;
    const int64_t size[] = {4, 8, 3};
    ctn_module *m = NULL;
    OK(ctn_zoo_mlp(&m, ctx, CTN_OPT(ctn_mlp_opt, .n = 3, .size = size)));
    check_copy(m, (shape){CTN_F32, 2, {3, 4}});
    OK(ctn_zoo_lenet5(&m, ctx, NULL));
    check_copy(m, (shape){CTN_F32, 4, {1, 1, 28, 28}});
    OK(ctn_zoo_resnet(&m, ctx, CTN_OPT(ctn_resnet_opt, .depth = 18, .classes = 3, .width = 4)));
    check_copy(m, (shape){CTN_F32, 4, {2, 3, 20, 20}});
    OK(ctn_zoo_resnet_cifar(&m, ctx,
                            CTN_OPT(ctn_resnet_cifar_opt, .depth = 8, .classes = 3, .width = 4)));
    check_copy(m, (shape){CTN_F32, 4, {2, 3, 16, 16}});
    OK(ctn_zoo_mobilenet_v2(&m, ctx,
                            CTN_OPT(ctn_mobilenet_v2_opt, .classes = 3, .width = 0.1,
                                    .dropout = -1)));
    check_copy(m, (shape){CTN_F32, 4, {2, 3, 16, 16}});
    OK(ctn_zoo_unet(&m, ctx, CTN_OPT(ctn_unet_opt, .width = 4, .depth = 2)));
    check_copy(m, (shape){CTN_F32, 4, {2, 1, 8, 8}});
    OK(ctn_zoo_fno(&m, ctx, CTN_OPT(ctn_fno_opt, .width = 4, .modes = {3}, .layers = 2)));
    check_copy(m, (shape){CTN_F32, 4, {2, 1, 8, 7}});
    for (int untied = 0; untied < 2; untied++) {
        OK(ctn_zoo_gpt(&m, ctx,
                       CTN_OPT(ctn_gpt_opt, .vocabulary = 11, .block = 6, .width = 8, .layers = 2,
                               .heads = 2, .untied = untied)));
        check_copy(m, (shape){CTN_I64, 2, {2, 5}});
    }
    for (int classes = 0; classes < 2; classes++) {
        OK(ctn_zoo_bert(&m, ctx,
                        CTN_OPT(ctn_bert_opt, .vocabulary = 11, .block = 6, .width = 8, .layers = 2,
                                .heads = 2, .classes = 3 * classes)));
        check_copy(m, (shape){CTN_I64, 2, {2, 5}});
    }
    OK(ctn_zoo_vit(&m, ctx,
                   CTN_OPT(ctn_vit_opt, .image = 8, .patch = 4, .width = 8, .layers = 2,
                           .heads = 2)));
    check_copy(m, (shape){CTN_F32, 4, {2, 3, 8, 8}});
}

/* A part of a network, and a copy of a copy. */
static void parts(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *m = NULL, *c = NULL, *head = NULL;
    OK(ctn_zoo_gpt(&m, ctx,
                   CTN_OPT(ctn_gpt_opt, .vocabulary = 11, .block = 6, .width = 8, .layers = 1,
                           .heads = 2)));
    OK(ctn_module_copy(&c, m));
    OK(ctn_module_copy(&head, ctn_module_child(c, ctn_module_children(c) - 1)));
    assert_int_equal(ctn_params(head).n,
                     1); /* tied to wte.weight in c, a variable of its own here */
    assert_ptr_not_equal(ctn_module_find(head, "weight"), ctn_module_find(c, "wte.weight"));
    assert_memory_equal(ctn_module_find(head, "weight")->data,
                        ctn_module_find(m, "wte.weight")->data, 11 * 8 * sizeof(float));
    ctn_module_free(m);
    OK(ctn_module_copy(&m, ctn_module_child(ctn_module_child(c, 2), 0)));
    assert_separate(m, ctn_module_child(ctn_module_child(c, 2), 0));
    ctn_module_free(c);
    check_copy(m, (shape){CTN_F32, 3, {2, 4, 8}});
    ctn_module_free(head);
}

/* ---- flags, ties, modules of the user -------------------------------------------------------- */

static ctn_tensor *scaled(void *self, ctn_module *m, ctn_tensor *x)
{
    x = ctn_mul(ctn_call(ctn_module_child(m, 0), x), ctn_use(ctn_module_find(m, "gain")));
    return self ? ctn_scale(x, *(double *)self) : x;
}

/* A linear layer, a gain, and a second name for the layer's bias. */
static ctn_module *new_scaled(ctn_context *ctx, void *self, void (*release)(void *))
{
    ctn_module *m = NULL, *fc = NULL;
    OK(ctn_module_new(&m, ctx, scaled, self, release));
    OK(ctn_linear_new(&fc, ctx, 4, 4, NULL));
    OK(ctn_module_add(m, "fc", fc));
    OK(ctn_module_param(NULL, m, "gain", CTN_F32, CTN_SHAPE(4),
                        CTN_OPT(ctn_init, .kind = CTN_INIT_NORMAL)));
    OK(ctn_module_tie(m, "shift", ctn_module_find(fc, "bias")));
    return m;
}

static void flags_and_ties(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *m = new_scaled(ctx, NULL, NULL), *fc = ctn_module_child(m, 0), *c = NULL;
    ctn_module *list = NULL, *two[2];
    ctn_var_set_trainable(ctn_module_find(m, "fc.weight"), 0);
    OK(ctn_module_set_recompute(fc, 1));
    OK(ctn_module_state(NULL, fc, "seen", CTN_I64, CTN_SCALAR_SHAPE,
                        CTN_OPT(ctn_init, .kind = CTN_INIT_CONSTANT, .value = 3)));
    OK(ctn_module_copy(&c, m));
    assert_equal_vars(c, m);
    assert_int_equal(ctn_var_trainable(ctn_module_find(c, "fc.weight")), 0);
    assert_ptr_equal(ctn_module_find(c, "shift"), ctn_module_find(c, "fc.bias"));
    assert_int_equal(*(int64_t *)ctn_module_find(c, "fc.seen")->data, 3);
    assert_true(ctn_module_child(c, 0)->recompute && !c->recompute);
    ctn_module_free(c);

    /* Two names of one variable outside become two names of one variable in the copy. */
    for (int i = 0; i < 2; i++) {
        OK(ctn_module_new(&two[i], ctx, NULL, NULL, NULL));
        OK(ctn_module_tie(two[i], "w", ctn_module_find(m, "fc.weight")));
    }
    OK(ctn_module_list_new(&list, ctx, 2, two));
    OK(ctn_module_copy(&c, list));
    assert_equal_vars(c, list);
    assert_ptr_equal(ctn_module_find(c, "0.w"), ctn_module_find(c, "1.w"));
    ctn_module_free(list);
    ctn_module_free(m);
    ctn_module_free(c);
    m = new_scaled(ctx, NULL, NULL);
    check_copy(m, (shape){CTN_F32, 2, {3, 4}});
}

static ctn_status copy_scaled(void *self, ctn_module *m, ctn_module **copy)
{
    double *factor = malloc(sizeof *factor);
    if (!factor) return ctn_fail(CTN_ENOMEM, "out of memory");
    *factor = *(double *)self;
    ctn_status st = ctn_module_new(copy, ctn_module_context(m), scaled, factor, free);
    if (st < 0) free(factor);
    return st;
}

static ctn_module *new_users(ctn_context *ctx)
{
    double *factor = malloc(sizeof *factor);
    assert_non_null(factor);
    *factor = 0.5;
    return new_scaled(ctx, factor, free);
}

static void users_modules(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *seq = NULL, *c = NULL, *part[2] = {NULL, new_users(ctx)};
    OK(ctn_activation_new(&part[0], ctx, ctn_tanh_at));
    OK(ctn_sequential_new(&seq, ctx, 2, part));
    c = seq;
    assert_fails(ctn_module_copy(&c, seq), CTN_EUNSUPPORTED,
                 "module_copy: 1 has no copy function; set one with ctn_module_set_copy");
    assert_null(c);
    OK(ctn_module_set_copy(part[1], copy_scaled));
    OK(ctn_module_copy(&c, seq));
    assert_ptr_equal(ctn_module_child(c, 1)->copy, copy_scaled);
    ctn_module_free(seq);
    check_copy(c, (shape){CTN_F32, 2, {3, 4}});
}

/* What the copy function below makes instead of a copy. */
static enum { SELF, NOTHING, CHILD, MORE, VARIABLE, SHAPE, KIND, UNTIED, TIED } wrong;

static ctn_status copy_wrong(void *self, ctn_module *m, ctn_module **copy)
{
    (void)self;
    ctn_context *ctx = ctn_module_context(m);
    ctn_module *more = NULL, *c = NULL;
    ctn_var *v = NULL;
    if (wrong == NOTHING) return CTN_OK;
    *copy = wrong == SELF ? m : wrong == CHILD ? ctn_module_child(m, 0) : NULL;
    if (*copy) return CTN_OK;
    OK(ctn_module_new(&c, ctx, scaled, NULL, NULL));
    if (wrong == MORE) {
        OK(ctn_flatten_new(&more, ctx));
        OK(ctn_module_add(c, "more", more));
    }
    if (wrong == VARIABLE) OK(ctn_module_param(&v, c, "more", CTN_F32, CTN_SHAPE(1), NULL));
    if (wrong == SHAPE) OK(ctn_module_param(&v, c, "gain", CTN_F32, CTN_SHAPE(5), NULL));
    if (wrong == KIND) OK(ctn_module_state(&v, c, "gain", CTN_F32, CTN_SHAPE(4), NULL));
    if (wrong == UNTIED) OK(ctn_module_param(&v, c, "shift", CTN_F32, CTN_SHAPE(4), NULL));
    if (wrong == TIED) {
        OK(ctn_linear_new(&more, ctx, 4, 4, NULL));
        OK(ctn_module_add(c, "fc", more));
        OK(ctn_module_tie(c, "gain", ctn_module_find(more, "bias")));
    }
    *copy = c;
    return CTN_OK;
}

static void wrong_copies(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *m = new_users(ctx), *c = NULL;
    static const struct {
        ctn_status status;
        const char *part;
    } want[] = {[SELF] = {CTN_EARG, "must make a new module"},
                [NOTHING] = {CTN_EARG, "copy function of module must make a new module"},
                [CHILD] = {CTN_EARG, "without a parent"},
                [MORE] = {CTN_EARG, "made a child that module does not have"},
                [VARIABLE] = {CTN_EARG, "made a variable that module does not have"},
                [SHAPE] = {CTN_ESHAPE, "is a parameter f32 (4), but a copy function made a "
                                       "parameter f32 (5)"},
                [KIND] = {CTN_ESHAPE, "made a state f32 (4)"},
                [UNTIED] = {CTN_EARG, "'shift' is tied, but"},
                [TIED] = {CTN_EARG, "made it tied"}};
    OK(ctn_module_set_copy(m, copy_wrong));
    for (wrong = SELF; wrong <= TIED; wrong++) {
        assert_fails(ctn_module_copy(&c, m), want[wrong].status, want[wrong].part);
        assert_null(c);
    }
    OK(ctn_scope_begin(ctx));
    assert_fails(ctn_module_copy(&c, m), CTN_ESTATE, "between scopes");
    OK(ctn_scope_end(ctx));
    assert_fails(ctn_module_copy(&c, NULL), CTN_EARG, "NULL");
    assert_fails(ctn_module_copy(NULL, m), CTN_EARG, "NULL");
    assert_fails(ctn_module_set_copy(NULL, copy_wrong), CTN_EARG, "no module");
    ctn_module_free(m);
}

/* ---- a failing allocator --------------------------------------------------------------------- */

static failing_once memory;

static ctn_tensors twice(void *self, ctn_module *m, ctn_tensors x)
{
    (void)self, (void)m;
    return CTN_TENSORS(ctn_relu(x.t[0]), ctn_add(x.t[0], x.t[1]));
}

static ctn_status count(void *user, const char *name, ctn_module *m)
{
    (void)name, (void)m;
    ++*(int *)user;
    return CTN_OK;
}

static ctn_status call_twice(ctn_context *ctx, ctn_module *m)
{
    static const float x[4] = {1, 2, 3, 4};
    float y[4];
    CTN_TRY(ctn_scope_begin(ctx));
    ctn_tensor *in = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(4));
    ctn_tensors out = ctn_call_multi(m, in, in);
    assert_int_equal(ctx->level, 1);
    ctn_status st = out.n == 2 ? ctn_read(out.t[1], y, sizeof y) : ctn_error_status();
    ctn_status end = ctn_scope_end(ctx);
    return st < 0 ? st : end;
}

static ctn_status copy_and_call(void)
{
    const int64_t size[] = {2, 3, 2};
    ctn_status st = CTN_OK;
    ctn_context *ctx = NULL;
    ctn_module *m = NULL, *net = NULL, *c = NULL;
    int modules = 0;
    CTN_TRY_GOTO(st, done, ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
    CTN_TRY_GOTO(st, done, ctn_module_new_multi(&m, ctx, twice, NULL, NULL));
    CTN_TRY_GOTO(st, done, ctn_zoo_mlp(&net, ctx, CTN_OPT(ctn_mlp_opt, .n = 3, .size = size)));
    CTN_TRY_GOTO(st, done, ctn_module_add(m, "net", net));
    net = NULL;
    CTN_TRY_GOTO(st, done, ctn_module_tie(m, "w", ctn_module_find(m, "net.0.weight")));
    CTN_TRY_GOTO(st, done, ctn_module_copy(&c, m));
    CTN_TRY_GOTO(st, done, ctn_module_visit_modules(c, count, &modules));
    CTN_TRY_GOTO(st, done, call_twice(ctx, c));
    assert_int_equal(modules, 5);
done:
    ctn_module_free(c);
    ctn_module_free(net);
    ctn_module_free(m);
    ctn_context_free(ctx);
    return st;
}

static void out_of_memory(void **state)
{
    (void)state;
    OK(ctn_set_allocator(&(ctn_allocator){failing_once_alloc, failing_once_release, &memory}));
    OK(copy_and_call());
    const long all = memory.calls;
    long reported = 0;
    for (memory.fail_at = 1; memory.fail_at <= all; memory.fail_at++) {
        memory.calls = 0;
        ctn_status st = copy_and_call();
        if (memory.live != 0)
            fail_msg("allocation %ld: %ld blocks leaked", memory.fail_at, (long)memory.live);
        if (st < 0) assert_fails(st, CTN_ENOMEM, "memory");
        reported += st < 0;
    }
    assert_true(reported > all * 9 / 10);
    OK(ctn_set_allocator(NULL));
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(out_of_memory), /* must run before anything else allocates */
        CASE(layers),
        CASE(networks),
        CASE(parts),
        CASE(flags_and_ties),
        CASE(users_modules),
        CASE(wrong_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
