/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules: names, lists, lookup, tied parameters, calls in inner scopes and their errors,
 * containers, a failing allocator.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <catena/data.h>
#include <catena/ops.h>
#include <catena/optim.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ok.h"

#include "nn/nn.h"

static void assert_no_tensor(const ctn_tensor *t, ctn_status want, const char *part)
{
    if (t) fail_msg("got a tensor, expected an error: %s", part);
    assert_fails(ctn_error_status(), want, part);
}

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

/* net: scale (state), fc1: linear 3 -> 4, body: sequential of linear 4 -> 2 without bias and relu
 * */
static ctn_tensor *net_forward(void *self, ctn_module *net, ctn_tensor *x)
{
    (void)self;
    return ctn_call(ctn_module_child(net, 1), ctn_relu(ctn_call(ctn_module_child(net, 0), x)));
}

static ctn_module *new_net(ctn_context *ctx)
{
    ctn_module *net = NULL, *fc1 = NULL, *body = NULL, *part[2] = {NULL, NULL};
    OK(ctn_module_new(&net, ctx, net_forward, NULL, NULL));
    OK(ctn_linear_new(&fc1, ctx, 3, 4, NULL));
    OK(ctn_linear_new(&part[0], ctx, 4, 2, CTN_OPT(ctn_linear_opt, .no_bias = 1)));
    OK(ctn_activation_new(&part[1], ctx, ctn_relu_at));
    OK(ctn_sequential_new(&body, ctx, 2, part));
    OK(ctn_module_add(net, "fc1", fc1));
    OK(ctn_module_add(net, "body", body));
    OK(ctn_module_state(NULL, net, "scale", CTN_F32, CTN_SCALAR_SHAPE, NULL));
    return net;
}

static ctn_status list_name(void *user, const char *name, ctn_dtype dtype, int ndim,
                            const int64_t *dims, void *data)
{
    (void)dtype, (void)ndim, (void)dims;
    assert_non_null(data);
    strcat(strcat(user, name), " ");
    return CTN_OK;
}

static void assert_names(ctn_module *m, const char *want)
{
    char names[256] = "";
    OK(ctn_module_visit(m, list_name, names));
    assert_string_equal(names, want);
}

static void test_names(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *net = new_net(ctx), *late = NULL;
    ctn_vars p = ctn_params(net);
    assert_int_equal(p.n, 3);
    assert_string_equal(p.name[0], "fc1.weight");
    assert_string_equal(p.name[1], "fc1.bias");
    assert_string_equal(p.name[2], "body.0.weight");
    assert_ptr_equal(p.var[2], ctn_module_find(net, "body.0.weight"));
    assert_string_equal(ctn_var_name(p.var[0]), "fc1.weight");
    assert_ptr_equal(p.var, ctn_params(net).var); /* cached */
    assert_names(net, "scale fc1.weight fc1.bias body.0.weight ");
    assert_names(ctn_module_child(net, 0), "weight bias ");

    /* A change deep inside is seen at the top. */
    OK(ctn_linear_new(&late, ctx, 2, 2, NULL));
    OK(ctn_module_add(ctn_module_child(net, 1), "late", late));
    assert_int_equal(ctn_params(net).n, 5);
    assert_string_equal(ctn_params(net).name[3], "body.late.weight");
    OK(ctn_module_param(NULL, late, "extra", CTN_F32, CTN_SHAPE(1), NULL));
    assert_int_equal(ctn_params(net).n, 6);
    ctn_module_free(late);
    assert_int_equal(ctn_params(net).n, 3);
    assert_int_equal(ctn_module_children(ctn_module_child(net, 1)), 2);

    assert_true(ctn_module_find(net, "fc1.wait") == NULL);
    assert_fails(ctn_error_status(), CTN_ENOTFOUND, "'fc1.wait'");
    assert_true(ctn_module_find(net, "fc1") == NULL);
    assert_fails(ctn_error_status(), CTN_ENOTFOUND, "'fc1'");
    assert_true(ctn_module_child(net, 2) == NULL);
    ctn_module_free(net);
}

static void test_refusals(void **state)
{
    ctn_context *ctx = *state, *other = NULL;
    ctn_module *net = new_net(ctx), *m = NULL, *list = NULL;
    ctn_var *v = NULL;
    OK(ctn_context_new(&other, NULL));
    OK(ctn_module_new(&m, ctx, NULL, NULL, NULL));
    assert_fails(ctn_module_add(net, "fc1", m), CTN_EARG, "already has a 'fc1'");
    assert_fails(ctn_module_add(net, "scale", m), CTN_EARG, "already has a 'scale'");
    assert_fails(ctn_module_add(net, "a.b", m), CTN_EARG, "'a.b'");
    assert_fails(ctn_module_add(net, "", m), CTN_EARG, "''");
    assert_fails(ctn_module_add(net, "x", NULL), CTN_EARG, "NULL");
    assert_fails(ctn_module_add(m, "x", ctn_module_child(net, 0)), CTN_ESTATE, "as fc1");
    assert_fails(ctn_module_add(m, "x", m), CTN_EARG, "would contain itself");
    assert_fails(ctn_module_add(ctn_module_child(net, 1), "x", net), CTN_EARG,
                 "would contain itself");
    assert_fails(ctn_module_param(&v, net, "fc1", CTN_F32, CTN_SHAPE(1), NULL), CTN_EARG, "fc1");
    assert_fails(ctn_module_param(&v, m, "w", CTN_F32, CTN_SHAPE(-1), NULL), CTN_ESHAPE, "is -1");
    assert_fails(ctn_module_tie(m, "w", NULL), CTN_EARG, "NULL");
    assert_fails(ctn_linear_new(&list, ctx, 0, 3, NULL), CTN_EARG, "0 inputs");
    assert_fails(ctn_activation_new(&list, ctx, NULL), CTN_EARG, "NULL");
    assert_fails(ctn_module_new(&list, NULL, NULL, NULL, NULL), CTN_EARG, "no context");

    ctn_module *far = NULL, *two[2];
    OK(ctn_module_new(&far, other, NULL, NULL, NULL));
    assert_fails(ctn_module_add(net, "far", far), CTN_EARG, "another context");
    two[0] = m;
    two[1] = far; /* refused: m must stay unowned */
    assert_fails(ctn_module_list_new(&list, ctx, 2, two), CTN_EARG, "another context");
    assert_true(list == NULL);
    OK(ctn_module_list_new(&list, ctx, 1, two));
    assert_ptr_equal(ctn_module_child(list, 0), m);

    OK(ctn_scope_begin(ctx));
    char names[64] = "";
    assert_fails(ctn_module_visit(net, list_name, names), CTN_ESTATE, "between scopes");
    OK(ctn_scope_end(ctx));
    ctn_module_free(far);
    ctn_module_free(list);
    ctn_module_free(net);
    ctn_module_free(NULL);
    ctn_context_free(other);
}

static void test_linear_values(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *m = NULL;
    float x[6] = {1, 2, 3, 4, 5, 6}, w[12], b[4], y[8];
    OK(ctn_linear_new(&m, ctx, 3, 4, NULL));
    OK(ctn_var_get(ctn_module_find(m, "weight"), w, sizeof w));
    OK(ctn_var_get(ctn_module_find(m, "bias"), b, sizeof b));
    for (int i = 0; i < 12; i++) assert_true(fabsf(w[i]) <= 0.57736f && w[i] != 0); /* 1/sqrt(3) */
    for (int i = 0; i < 4; i++) assert_true(fabsf(b[i]) <= 0.57736f && b[i] != 0);
    OK(ctn_scope_begin(ctx));
    OK(ctn_read(ctn_call(m, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(2, 3))), y, sizeof y));
    OK(ctn_scope_end(ctx));
    for (int n = 0; n < 2; n++)
        for (int o = 0; o < 4; o++) {
            double s = b[o];
            for (int i = 0; i < 3; i++) s += (double)x[n * 3 + i] * w[o * 3 + i];
            assert_true(fabs(s - y[n * 4 + o]) < 1e-5);
        }
    ctn_module_free(m);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static ctn_tensor *leaked;

static ctn_tensor *forward_leak(void *self, ctn_module *m, ctn_tensor *x)
{
    (void)self, (void)m;
    leaked = ctn_relu(x);
    return ctn_add(leaked, x);
}

static ctn_tensor *forward_same(void *self, ctn_module *m, ctn_tensor *x)
{
    (void)self, (void)m;
    return x;
}

static ctn_tensor *forward_silent(void *self, ctn_module *m, ctn_tensor *x)
{
    (void)self, (void)m, (void)x;
    return NULL;
}

static ctn_tensor *forward_open(void *self, ctn_module *m, ctn_tensor *x)
{
    (void)self;
    OK(ctn_scope_begin(ctn_module_context(m)));
    return ctn_relu(x);
}

static void test_inner_scope(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *m = NULL, *same = NULL;
    float x[2] = {-1, 2}, y[2];
    OK(ctn_module_new(&m, ctx, forward_leak, NULL, NULL));
    OK(ctn_module_new(&same, ctx, forward_same, NULL, NULL));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *in = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(2));
    assert_ptr_equal(ctn_call(same, in), in);
    ctn_tensor *t = ctn_call(same, ctn_call(m, in));
    assert_int_equal(ctx->level, 1);
    assert_fails(ctn_read(leaked, y, sizeof y), CTN_EGONE, "scope");
    OK(ctn_read(t, y, sizeof y));
    assert_true(y[0] == -1 && y[1] == 4);
    OK(ctn_read(in, y, sizeof y));
    OK(ctn_scope_end(ctx));
    ctn_module_free(m);
    ctn_module_free(same);
}

static void test_call_errors(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *net = new_net(ctx), *silent = NULL, *open = NULL, *list = NULL;
    float x[4] = {1, 2, 3, 4};
    OK(ctn_module_new(&silent, ctx, forward_silent, NULL, NULL));
    OK(ctn_module_new(&open, ctx, forward_open, NULL, NULL));
    OK(ctn_module_list_new(&list, ctx, 0, NULL));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *in = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(1, 4));
    assert_no_tensor(ctn_call(net, in), CTN_ESHAPE, "linear: ");
    assert_int_equal(ctx->level, 1);
    assert_no_tensor(ctn_call(net, NULL), CTN_EARG, "no input (");
    assert_no_tensor(ctn_call(NULL, in), CTN_EARG, "no module (");
    assert_no_tensor(ctn_call(silent, in), CTN_EARG, "without an error");
    assert_no_tensor(ctn_call(list, in), CTN_EARG, "no forward function");
    assert_no_tensor(ctn_call(open, in), CTN_ESTATE, "1 left open");
    assert_int_equal(ctx->level, 1);

    ctn_fail(CTN_EARG, "earlier"); /* NULL in, NULL out: the first error is kept */
    assert_true(ctn_call(net, NULL) == NULL);
    assert_fails(ctn_error_status(), CTN_EARG, "earlier");

    /* The trace names the modules on the path and the user's line. */
    assert_true(ctn_call(net, in) == NULL);
    assert_non_null(strstr(ctn_error_message(), "test_nn.c"));
    assert_non_null(strstr(ctn_error_message(), "fc1"));
    ctn_error_clear();

    double loss = ctn_item(ctn_sum(ctn_call(net, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(1, 3))), 0,
                                   NULL, 0)); /* the scope still works */
    assert_true(isfinite(loss));
    OK(ctn_scope_end(ctx));
    assert_no_tensor(ctn_call(net, in), CTN_ESTATE, "no scope is open");
    ctn_module_free(net);
    ctn_module_free(silent);
    ctn_module_free(open);
    ctn_module_free(list);
}

static void test_no_allocations(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *net = new_net(ctx);
    ctn_optim *opt = NULL;
    float x[6] = {1, 2, 3, 4, 5, 6};
    uint64_t before = 0;
    OK(ctn_sgd_new(&opt, ctn_params(net), NULL));
    for (int i = 0; i < 6; i++) {
        if (i == 3) before = ctn_allocations();
        OK(ctn_scope_begin(ctx));
        ctn_tensor *y = ctn_call(net, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(2, 3)));
        OK(ctn_backward(opt, ctn_sum(y, CTN_ALL_AXES, 0)));
        OK(ctn_optim_step(opt));
        OK(ctn_scope_end(ctx));
        assert_int_equal(ctn_params(net).n, 3);
    }
    if (!ctx->eager) assert_int_equal(ctn_allocations(), before);
    ctn_optim_free(opt);
    ctn_module_free(net);
}

/* A linear layer, and a second name for its weight in another module. */
static ctn_module *new_tied(ctn_context *ctx, ctn_var **w)
{
    ctn_module *seq = NULL, *part[2];
    OK(ctn_linear_new(&part[0], ctx, 2, 2, CTN_OPT(ctn_linear_opt, .no_bias = 1)));
    OK(ctn_module_new(&part[1], ctx, forward_same, NULL, NULL));
    *w = ctn_module_find(part[0], "weight");
    OK(ctn_module_tie(part[1], "again", *w));
    OK(ctn_sequential_new(&seq, ctx, 2, part));
    return seq;
}

static void test_tied(void **state)
{
    ctn_context *ctx = *state;
    ctn_var *w = NULL;
    ctn_optim *opt = NULL;
    ctn_module *seq = new_tied(ctx, &w);
    float x[2] = {1, 1}, v[4] = {1, 2, 3, 4}, g[4];
    ctn_vars p = ctn_params(seq);
    assert_int_equal(p.n, 2);
    assert_ptr_equal(p.var[0], p.var[1]);
    assert_string_equal(p.name[1], "1.again");
    assert_ptr_equal(ctn_module_find(seq, "1.again"), w);
    assert_names(seq, "0.weight ");
    OK(ctn_var_set(w, v, sizeof v));
    OK(ctn_sgd_new(&opt, p, NULL));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *h = ctn_call(seq, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(1, 2)));
    h = ctn_linear(h, ctn_use(w), NULL);
    OK(ctn_backward(opt, ctn_sum(h, CTN_ALL_AXES, 0)));
    OK(ctn_var_grad(w, g, sizeof g));
    OK(ctn_scope_end(ctx));
    OK(ctn_scope_begin(ctx)); /* first used inside, readable outside */
    assert_non_null(ctn_call(seq, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(1, 2))));
    float now[4];
    OK(ctn_read(ctn_use(w), now, sizeof now));
    assert_memory_equal(now, v, sizeof v);
    OK(ctn_scope_end(ctx));
    /* h = W x = (3,7), y = W h: dL/dW = 1 h^T + (W^T 1) x^T = (3,7;3,7) + (4,4;6,6) */
    float want[4] = {7, 11, 9, 13};
    for (int i = 0; i < 4; i++) assert_true(fabsf(g[i] - want[i]) < 1e-5f);
    ctn_optim_free(opt);
    ctn_module_free(seq);
}

static void test_batch_tensor(void **state)
{
    ctn_context *ctx = *state;
    ctn_dataset *ds = NULL;
    ctn_sampler *s = NULL;
    ctn_loader *l = NULL;
    ctn_batch b;
    float x[6] = {1, 2, 3, 4, 5, 6}, y[4];
    int64_t t[3] = {7, 8, 9};
    const ctn_field f[2] = {{CTN_F32, 1, {2}, 0}, {CTN_I64, 0, {0}, 0}};
    OK(ctn_arrays_open(&ds, 3, 2, f, (const void *const[]){x, t}));
    OK(ctn_sampler_sequential(&s, 3));
    OK(ctn_loader_new(&l, ds, s, CTN_OPT(ctn_loader_opt, .batch = 2)));
    for (int n = 2; n > 0; n--) {
        OK(ctn_loader_next(l, &b));
        OK(ctn_scope_begin(ctx));
        ctn_tensor *bx = ctn_batch_tensor(ctx, &b, 0), *bt = ctn_batch_tensor(ctx, &b, 1);
        assert_int_equal(ctn_ndim(bx), 2);
        assert_int_equal(ctn_dim(bx, 0), n);
        assert_int_equal(ctn_ndim(bt), 1);
        OK(ctn_read(bx, y, (size_t)n * 8));
        assert_true(y[0] == (n == 2 ? 1 : 5));
        assert_int_equal(*(const int64_t *)ctn_data(bt), n == 2 ? 7 : 9);
        assert_no_tensor(ctn_batch_tensor(ctx, &b, 2), CTN_EARG, "no field 2, the batch has 2");
        OK(ctn_scope_end(ctx));
    }
    assert_int_equal(ctn_loader_next(l, &b), CTN_END);
    ctn_loader_free(l);
    ctn_sampler_free(s);
    ctn_dataset_free(ds);
}

/* ---- a failing allocator --------------------------------------------------------------------- */

static ctn_status build_and_run(ctn_context *ctx)
{
    ctn_status st = CTN_OK;
    ctn_module *net = NULL, *fc = NULL, *seq = NULL, *part[2] = {NULL, NULL};
    float x[6] = {0}, y[4];
    bool scope = false;
    CTN_TRY_GOTO(st, done, ctn_module_new(&net, ctx, net_forward, NULL, NULL));
    CTN_TRY_GOTO(st, done,
                 ctn_linear_new(&fc, ctx, 3, 4,
                                CTN_OPT(ctn_linear_opt,
                                        .weight = CTN_OPT(ctn_init, .kind = CTN_INIT_ORTHOGONAL))));
    CTN_TRY_GOTO(st, done, ctn_module_add(net, "fc1", fc));
    fc = NULL;
    CTN_TRY_GOTO(st, done, ctn_linear_new(&part[0], ctx, 4, 2, NULL));
    CTN_TRY_GOTO(st, done, ctn_activation_new(&part[1], ctx, ctn_relu_at));
    CTN_TRY_GOTO(st, done, ctn_sequential_new(&seq, ctx, 2, part));
    part[0] = part[1] = NULL;
    CTN_TRY_GOTO(st, done, ctn_module_add(net, "body", seq));
    seq = NULL;
    CTN_TRY_GOTO(st, done, ctn_module_tie(net, "tied", ctn_module_find(net, "fc1.bias")));
    if (ctn_params(net).n != 5) CTN_TRY_GOTO(st, done, ctn_error_status());
    CTN_TRY_GOTO(st, done, ctn_scope_begin(ctx));
    scope = true;
    ctn_tensor *t = ctn_call(net, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(2, 3)));
    assert_int_equal(ctx->level, 1);
    CTN_TRY_GOTO(st, done, ctn_read(t, y, sizeof y));
done:
    if (scope) {
        ctn_status end = ctn_scope_end(ctx);
        if (st == CTN_OK) st = end;
    }
    ctn_module_free(part[0]);
    ctn_module_free(part[1]);
    ctn_module_free(fc);
    ctn_module_free(seq);
    ctn_module_free(net);
    return st;
}

static int64_t allowed = INT64_MAX, alive;

static void *limited_alloc(void *user, size_t bytes, size_t align)
{
    (void)user;
    if (allowed-- <= 0) return NULL;
    void *p = NULL;
    if (posix_memalign(&p, align < sizeof(void *) ? sizeof(void *) : align, bytes ? bytes : 1))
        return NULL;
    alive++;
    return p;
}

static void limited_release(void *user, void *p)
{
    (void)user;
    if (p) alive--;
    free(p);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    ctn_context *ctx = NULL;
    OK(ctn_set_allocator(&(ctn_allocator){limited_alloc, limited_release, NULL}));
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
    ctn_status st = CTN_ENOMEM;
    int64_t n = 0;
    for (; st < 0; n++) {
        allowed = n;
        st = build_and_run(ctx);
        allowed = INT64_MAX;
        if (st < 0) assert_int_equal(st, CTN_ENOMEM);
        ctn_error_clear();
        assert_true(n < 2000);
    }
    assert_true(n > 20);
    ctn_context_free(ctx);
    assert_int_equal(alive, 0);
    OK(ctn_set_allocator(NULL));
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_out_of_memory), /* must run before anything else allocates */
        CASE(test_names),
        CASE(test_refusals),
        CASE(test_linear_values),
        CASE(test_inner_scope),
        CASE(test_call_errors),
        CASE(test_tied),
        CASE(test_batch_tensor),
        CASE(test_no_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
