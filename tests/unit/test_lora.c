/* SPDX-License-Identifier: Apache-2.0
 *
 * Low-rank adapters: they change nothing at first, only they are trained and have optimizer state,
 * merging keeps the results, they are saved and loaded alone and copied with their module, and a
 * call that fails changes nothing.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <catena/catena.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/machine.h"
#include "support/ok.h"

#include "nn/nn.h"
#include "optim/optim.h"

#define FILE_NAME "adapters.safetensors"

enum { N = 6, IN = 300, HIDDEN = 12, OUT = 5 };

static const char *const adapters[] = {"lora_A.weight", "lora_B.weight", NULL};

/* IN -> HIDDEN -> HIDDEN -> OUT, named fc1, norm, mid.fc2 and head */
static ctn_tensor *forward(void *self, ctn_module *m, ctn_tensor *x)
{
    (void)self;
    x = ctn_tanh(ctn_call(ctn_module_child(m, 0), x));
    x = ctn_call(ctn_module_child(m, 1), x);
    x = ctn_tanh(ctn_call(ctn_module_child(ctn_module_child(m, 2), 0), x));
    return ctn_call(ctn_module_child(m, 3), x);
}

static ctn_module *make_net(ctn_context *ctx)
{
    ctn_module *m = NULL, *mid = NULL, *c = NULL;
    OK(ctn_module_new(&m, ctx, forward, NULL, NULL));
    OK(ctn_linear_new(&c, ctx, IN, HIDDEN, NULL));
    OK(ctn_module_add(m, "fc1", c));
    OK(ctn_layer_norm_new(&c, ctx, CTN_SHAPE(HIDDEN), NULL));
    OK(ctn_module_add(m, "norm", c));
    OK(ctn_module_new(&mid, ctx, NULL, NULL, NULL));
    OK(ctn_linear_new(&c, ctx, HIDDEN, HIDDEN, CTN_OPT(ctn_linear_opt, .no_bias = 1)));
    OK(ctn_module_add(mid, "fc2", c));
    OK(ctn_module_add(m, "mid", mid));
    OK(ctn_linear_new(&c, ctx, HIDDEN, OUT, NULL));
    OK(ctn_module_add(m, "head", c));
    return m;
}

static int set_up(void **state)
{
    ctn_context *ctx = NULL;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = 1, .threads = 2)));
    *state = ctx;
    return 0;
}

static int tear_down(void **state)
{
    assert_string_equal(ctn_error_message(), "");
    ctn_context_free(*state);
    unlink(FILE_NAME);
    return 0;
}

static ctn_tensor *input(ctn_context *ctx)
{
    static float x[N * IN];
    for (int i = 0; i < N * IN; i++) x[i] = (float)(i * 37 % 101) / 50 - 1;
    return ctn_input(ctx, x, CTN_F32, CTN_SHAPE(N, IN));
}

typedef struct {
    float y[N * OUT];
} results;

static results run(ctn_module *m)
{
    results r;
    ctn_context *ctx = ctn_module_context(m);
    OK(ctn_scope_begin(ctx));
    OK(ctn_read(ctn_call(m, input(ctx)), r.y, sizeof r.y));
    OK(ctn_scope_end(ctx));
    return r;
}

static void assert_close(const results *a, const results *b, double tolerance)
{
    for (int i = 0; i < N * OUT; i++)
        if (!(fabs((double)a->y[i] - (double)b->y[i]) <= tolerance))
            fail_msg("result %d is %.9g and %.9g", i, (double)a->y[i], (double)b->y[i]);
}

static bool same(const results *a, const results *b)
{
    for (int i = 0; i < N * OUT; i++)
        if (a->y[i] != b->y[i]) return false;
    return true;
}

static void step(ctn_module *m, ctn_optim *opt)
{
    ctn_context *ctx = ctn_module_context(m);
    OK(ctn_scope_begin(ctx));
    ctn_tensor *y = ctn_call(m, input(ctx));
    OK(ctn_backward(opt, ctn_mean(ctn_square(ctn_shift(y, -1)), CTN_ALL_AXES, 0)));
    OK(ctn_optim_step(opt));
    OK(ctn_scope_end(ctx));
}

static void train(ctn_module *m)
{
    ctn_optim *opt = NULL;
    OK(ctn_adamw_new(&opt, ctn_params(m), CTN_OPT(ctn_adam_opt, .lr = 0.01)));
    for (int i = 0; i < 3; i++) step(m, opt);
    ctn_optim_free(opt);
}

static bool is_adapter(const char *name)
{
    return strstr(name, ".lora_A.weight") || strstr(name, ".lora_B.weight");
}

static void assert_shape(ctn_module *m, const char *name, int64_t rows, int64_t cols)
{
    const ctn_desc *d = ctn_var_desc(ctn_module_find(m, name));
    assert_int_equal(d->ndim, 2);
    assert_int_equal(d->dim[0], rows);
    assert_int_equal(d->dim[1], cols);
}

static void changes_nothing_at_first(void **state)
{
    ctn_module *m = make_net(*state);
    const results before = run(m);
    const int params = ctn_params(m).n;
    OK(ctn_lora_add(m, NULL));
    const results after = run(m);
    assert_true(same(&before, &after));

    const ctn_vars v = ctn_params(m);
    assert_int_equal(v.n, params + 6);
    for (int i = 0; i < v.n; i++)
        assert_int_equal(ctn_var_trainable(v.var[i]), is_adapter(v.name[i]));
    assert_shape(m, "fc1.lora_A.weight", 8, IN);
    assert_shape(m, "fc1.lora_B.weight", HIDDEN, 8);
    assert_shape(m, "mid.fc2.lora_A.weight", 8, HIDDEN);
    assert_shape(m, "head.lora_B.weight", OUT, 8);
    float a[8 * IN], most = 0;
    OK(ctn_var_get(ctn_module_find(m, "fc1.lora_A.weight"), a, sizeof a));
    for (int i = 0; i < 8 * IN; i++) most = fmaxf(most, fabsf(a[i]));
    assert_true(most <= 1 / sqrtf(IN) && most > 0.9f / sqrtf(IN));
    assert_true(ctn__linear_of(ctn_module_child(m, 0))->scale == 2);
    ctn_module_free(m);
}

static void only_some(void **state)
{
    ctn_module *m = make_net(*state);
    static const char *const only[] = {"fc2", "head", NULL};
    OK(ctn_lora_add(m, CTN_OPT(ctn_lora_opt, .rank = 2, .alpha = 3, .only = only)));
    assert_int_equal(ctn_module_children(ctn_module_child(m, 0)), 0);
    assert_shape(m, "mid.fc2.lora_A.weight", 2, HIDDEN);
    assert_shape(m, "head.lora_A.weight", 2, HIDDEN);
    assert_true(ctn__linear_of(ctn_module_child(m, 3))->scale == 1.5);
    assert_int_equal(ctn_var_trainable(ctn_module_find(m, "fc1.weight")), 0);
    ctn_module_free(m);
}

/* Training changes the adapters only, and only they have optimizer state. */
static void trains_adapters(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *m = make_net(ctx), *begin = NULL;
    ctn_optim *opt = NULL;
    OK(ctn_lora_add(m, CTN_OPT(ctn_lora_opt, .rank = 4)));
    OK(ctn_module_copy(&begin, m));
    OK(ctn_adamw_new(&opt, ctn_params(m), NULL));
    step(m, opt);
    step(m, opt);
    int64_t count = 0;
    const ctn_vars now = ctn_params(m), was = ctn_params(begin);
    for (int i = 0; i < now.n; i++) {
        const size_t bytes = ctn__bytes(&now.var[i]->d);
        const bool changed = memcmp(now.var[i]->data, was.var[i]->data, bytes) != 0;
        assert_int_equal(changed, is_adapter(now.name[i]));
        assert_int_equal(now.var[i]->pool == opt->pool, is_adapter(now.name[i]));
        if (is_adapter(now.name[i])) count += ctn__pool_length(1, &now.var[i]);
    }
    assert_int_equal(opt->pool->count, count);
    ctn_optim_free(opt);
    ctn_module_free(begin);
    ctn_module_free(m);
}

/* Merged weights give the same results, under any alpha. */
static void merges(void **state)
{
    ctn_context *ctx = *state;
    for (int i = 0; i < 2; i++) {
        ctn_module *m = make_net(ctx);
        OK(ctn_lora_add(m, CTN_OPT(ctn_lora_opt, .rank = 3, .alpha = i ? 0 : 1.5)));
        const int params = ctn_params(m).n;
        const results before = run(m);
        train(m);
        const results trained = run(m);
        assert_false(same(&before, &trained));
        OK(ctn_lora_merge(m));
        const results merged = run(m);
        assert_close(&trained, &merged, 1e-5);
        const ctn_vars v = ctn_params(m);
        assert_int_equal(v.n, params - 6);
        for (int k = 0; k < v.n; k++) {
            assert_false(is_adapter(v.name[k]));
            assert_false(ctn_var_trainable(v.var[k]));
        }
        assert_fails(ctn_lora_merge(m), CTN_ESTATE, "no adapters");
        OK(ctn_lora_add(m, NULL)); /* again, from the merged weights */
        const results again = run(m);
        assert_true(same(&merged, &again));
        ctn_module_free(m);
    }
}

/* A copy of m whose linear weights have the values of m's in bf16, stored in f32. */
static ctn_module *rounded(ctn_module *m)
{
    ctn_module *c = NULL;
    OK(ctn_module_copy(&c, m));
    const ctn_vars v = ctn_params(c);
    for (int i = 0; i < v.n; i++) {
        float *x = v.var[i]->data;
        if (v.var[i]->d.ndim != 2) continue;
        for (int64_t k = 0; k < ctn__count(&v.var[i]->d); k++)
            x[k] = ctn__bf16_to_f32(ctn__f32_to_bf16(x[k]));
    }
    return c;
}

/* The same adapters in both. */
static void share_adapters(ctn_module *a, ctn_module *b)
{
    const ctn_vars from = ctn_params(a), to = ctn_params(b);
    for (int i = 0; i < from.n; i++)
        if (is_adapter(from.name[i]))
            memcpy(to.var[i]->data, from.var[i]->data, ctn__bytes(&from.var[i]->d));
}

/* A base in bf16 computes what a rounded base in f32 does, to the bit. */
static void base_in_bf16(void **state)
{
    (void)state;
    for (int low = 0; low < 1 + test_has_bf16(); low++) {
        ctn_context *ctx = NULL;
        OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = 1, .threads = 2,
                                         .precision = low ? CTN_PRECISION_BF16 : CTN_PRECISION_F32,
                                         .slow_precision = 1)));
        ctn_module *m = make_net(ctx), *f32 = rounded(m), *c = NULL;
        OK(ctn_lora_add(m, CTN_OPT(ctn_lora_opt, .base = CTN_BF16)));
        OK(ctn_lora_add(f32, NULL));
        assert_int_equal(ctn_module_find(m, "fc1.weight")->d.dtype, CTN_BF16);
        assert_int_equal(ctn_module_find(m, "fc1.bias")->d.dtype, CTN_F32);
        share_adapters(m, f32);
        train(m);
        train(f32);
        const results a = run(m), b = run(f32);
        assert_memory_equal(&a, &b, sizeof a);
        OK(ctn_module_copy(&c, m));
        const results copied = run(c);
        assert_memory_equal(&a, &copied, sizeof a);
        OK(ctn_lora_merge(c));
        assert_int_equal(ctn_module_find(c, "fc1.weight")->d.dtype, CTN_F32);
        const results merged = run(c);
        assert_close(&a, &merged, low ? 0.05 : 1e-5);
        ctn_module_free(m);
        ctn_module_free(f32);
        ctn_module_free(c);
        ctn_context_free(ctx);
    }
}

static void read_f64(ctn_module *m, double *y, size_t bytes)
{
    ctn_context *ctx = ctn_module_context(m);
    OK(ctn_scope_begin(ctx));
    OK(ctn_read(ctn_call(m, ctn_cast(input(ctx), CTN_F64)), y, bytes));
    OK(ctn_scope_end(ctx));
}

/* Under the policy f64 the weights, the adapters and the merged weights are f64. */
static void base_in_f64(void **state)
{
    (void)state;
    ctn_context *ctx = NULL;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = 1, .threads = 2,
                                     .precision = CTN_PRECISION_F64)));
    for (int low = 0; low < 2; low++) {
        ctn_module *m = NULL;
        double before[N * OUT], added[N * OUT], trained[N * OUT], merged[N * OUT];
        OK(ctn_linear_new(&m, ctx, IN, OUT, NULL));
        read_f64(m, before, sizeof before);
        assert_fails(ctn_lora_add(m, CTN_OPT(ctn_lora_opt, .base = CTN_F32)), CTN_EDTYPE,
                     "base is f32, expected f64 or bf16");
        OK(ctn_lora_add(m, CTN_OPT(ctn_lora_opt, .base = low ? CTN_BF16 : 0)));
        assert_int_equal(ctn_module_find(m, "weight")->d.dtype, low ? CTN_BF16 : CTN_F64);
        assert_int_equal(ctn_module_find(m, "lora_A.weight")->d.dtype, CTN_F64);
        read_f64(m, added, sizeof added);
        if (!low) assert_memory_equal(before, added, sizeof before);
        OK(ctn_var_init(ctn_module_find(m, "lora_B.weight"),
                        CTN_OPT(ctn_init, .kind = CTN_INIT_NORMAL, .std = 1)));
        read_f64(m, trained, sizeof trained);
        OK(ctn_lora_merge(m));
        assert_int_equal(ctn_module_find(m, "weight")->d.dtype, CTN_F64);
        read_f64(m, merged, sizeof merged);
        for (int i = 0; i < N * OUT; i++) {
            assert_true(fabs(trained[i] - added[i]) > 1e-3);
            assert_true(fabs(trained[i] - merged[i]) < 1e-12 * IN);
        }
        ctn_module_free(m);
    }
    ctn_context_free(ctx);
}

/* A trained weight must be f32. */
static void thaws_no_bf16(void **state)
{
    ctn_module *m = make_net(*state);
    ctn_optim *opt = NULL;
    assert_fails(ctn_lora_add(m, CTN_OPT(ctn_lora_opt, .base = CTN_I64)), CTN_EDTYPE,
                 "base is i64");
    OK(ctn_lora_add(m, CTN_OPT(ctn_lora_opt, .base = CTN_BF16)));
    ctn_var_set_trainable(ctn_module_find(m, "fc1.weight"), 1);
    assert_fails(ctn_adamw_new(&opt, ctn_params(m), NULL), CTN_EDTYPE, "fc1.weight is bf16");
    ctn_module_free(m);
}

/* An optimizer may outlive the adapters. */
static void merges_before_the_optimizer_goes(void **state)
{
    ctn_module *m = make_net(*state);
    ctn_optim *opt = NULL;
    OK(ctn_lora_add(m, NULL));
    OK(ctn_adamw_new(&opt, ctn_params(m), CTN_OPT(ctn_adam_opt, .lr = 0.01)));
    step(m, opt);
    const results trained = run(m);
    OK(ctn_lora_merge(m));
    const results merged = run(m);
    assert_close(&trained, &merged, 1e-5);
    ctn_optim_free(opt);
    ctn_module_free(m);
}

static void saves_and_loads(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *m = make_net(ctx), *fresh = NULL;
    OK(ctn_module_copy(&fresh, m));
    OK(ctn_lora_add(m, NULL));
    train(m);
    OK(ctn_weights_save_with(m, FILE_NAME, CTN_OPT(ctn_weights_save_opt, .only = adapters)));
    const ctn_weights_opt *partial = CTN_OPT(ctn_weights_opt, .partial = 1);
    assert_fails(ctn_weights_load(fresh, FILE_NAME, partial), CTN_ENOTFOUND,
                 "not in the model: fc1.lora_A.weight");
    OK(ctn_lora_add(fresh, NULL));
    assert_fails(ctn_weights_load(fresh, FILE_NAME, NULL), CTN_ENOTFOUND,
                 "missing in the file: fc1.weight");
    OK(ctn_weights_load(fresh, FILE_NAME, partial));
    const results a = run(m), b = run(fresh);
    assert_memory_equal(&a, &b, sizeof a);

    OK(ctn_lora_merge(fresh));
    OK(ctn_lora_add(fresh, CTN_OPT(ctn_lora_opt, .rank = 3)));
    assert_fails(ctn_weights_load(fresh, FILE_NAME, partial), CTN_ESHAPE,
                 "fc1.lora_A.weight is (3,300) in the model and (8,300) in the file");
    ctn_module_free(m);
    ctn_module_free(fresh);
}

/* A file of peft has a prefix in front of its names. */
static void loads_with_the_prefix_of_peft(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *m = make_net(ctx), *base = NULL, *top = NULL, *fresh = NULL;
    OK(ctn_module_copy(&fresh, m));
    OK(ctn_lora_add(m, NULL));
    OK(ctn_lora_add(fresh, NULL));
    train(m);
    const results a = run(m);
    OK(ctn_module_new(&top, ctx, NULL, NULL, NULL));
    OK(ctn_module_new(&base, ctx, NULL, NULL, NULL));
    OK(ctn_module_add(base, "model", m));
    OK(ctn_module_add(top, "base_model", base));
    OK(ctn_weights_save_with(top, FILE_NAME, CTN_OPT(ctn_weights_save_opt, .only = adapters)));
    static const char *const rename[] = {"", "base_model.model", NULL};
    OK(ctn_weights_load(fresh, FILE_NAME,
                        CTN_OPT(ctn_weights_opt, .partial = 1, .rename = rename)));
    const results b = run(fresh);
    assert_memory_equal(&a, &b, sizeof a);
    ctn_module_free(top);
    ctn_module_free(fresh);
}

/* A copy has adapters of its own. */
static void copies(void **state)
{
    ctn_module *m = make_net(*state), *c = NULL;
    OK(ctn_lora_add(m, NULL));
    train(m);
    OK(ctn_module_copy(&c, m));
    const results before = run(m), copied = run(c);
    assert_memory_equal(&before, &copied, sizeof before);
    train(c);
    const results after = run(m), trained = run(c);
    assert_memory_equal(&before, &after, sizeof before);
    assert_false(same(&before, &trained));
    OK(ctn_lora_merge(c));
    ctn_module_free(m);
    const results merged = run(c);
    assert_close(&trained, &merged, 1e-5);
    ctn_module_free(c);
}

/* The copy function of a user's module makes linear modules without adapters. */
static ctn_status copy_net(void *self, ctn_module *m, ctn_module **copy)
{
    (void)self;
    *copy = make_net(ctn_module_context(m));
    return CTN_OK;
}

static void copies_by_function(void **state)
{
    ctn_module *m = make_net(*state), *c = NULL;
    OK(ctn_module_set_copy(m, copy_net));
    OK(ctn_lora_add(m, NULL));
    train(m);
    OK(ctn_module_copy(&c, m));
    const results before = run(m), copied = run(c);
    assert_memory_equal(&before, &copied, sizeof before);
    train(c);
    const results after = run(m), trained = run(c);
    assert_memory_equal(&before, &after, sizeof before);
    assert_false(same(&before, &trained));
    ctn_module_free(c);
    ctn_module_free(m);
}

static void language_model(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *m = NULL;
    static const char *const only[] = {"q_proj", "self_attn.v_proj", NULL};
    OK(ctn_zoo_llama(&m, ctx,
                     CTN_OPT(ctn_llama_opt, .layers = 2, .heads = 2, .width = 8, .hidden = 16,
                             .vocabulary = 20, .block = 8)));
    const int params = ctn_params(m).n;
    OK(ctn_lora_add(m, CTN_OPT(ctn_lora_opt, .only = only)));
    assert_int_equal(ctn_params(m).n, params + 8);
    assert_shape(m, "model.layers.1.self_attn.q_proj.lora_A.weight", 8, 8);
    ctn_module_free(m);
}

static void refuses(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *m = make_net(ctx), *c = NULL;
    static const char *const wrong[] = {"fc1", "c2", NULL}, *const none[] = {NULL};
    const int params = ctn_params(m).n;
    assert_fails(ctn_lora_add(NULL, NULL), CTN_EARG, "no module");
    assert_fails(ctn_lora_merge(NULL), CTN_EARG, "no module");
    assert_fails(ctn_lora_merge(m), CTN_ESTATE, "no adapters");
    assert_fails(ctn_lora_add(m, CTN_OPT(ctn_lora_opt, .rank = -1)), CTN_EARG, "rank is -1");
    assert_fails(ctn_lora_add(m, CTN_OPT(ctn_lora_opt, .alpha = -2)), CTN_EARG, "alpha is -2");
    assert_fails(ctn_lora_add(m, CTN_OPT(ctn_lora_opt, .only = wrong)), CTN_ENOTFOUND, "'c2'");
    assert_fails(ctn_lora_add(m, CTN_OPT(ctn_lora_opt, .only = none)), CTN_ENOTFOUND, "no linear");
    assert_fails(ctn_weights_save_with(m, FILE_NAME,
                                       CTN_OPT(ctn_weights_save_opt, .only = adapters)),
                 CTN_ENOTFOUND, "no name ends in 'lora_A.weight'");
    assert_int_equal(access(FILE_NAME, F_OK), -1);
    OK(ctn_scope_begin(ctx));
    assert_fails(ctn_lora_add(m, NULL), CTN_ESTATE, "scope");
    assert_fails(ctn_lora_merge(m), CTN_ESTATE, "scope");
    OK(ctn_scope_end(ctx));
    assert_int_equal(ctn_params(m).n, params);
    assert_true(ctn_var_trainable(ctn_module_find(m, "fc1.weight")));
    OK(ctn_layer_norm_new(&c, ctx, CTN_SHAPE(3), NULL));
    assert_fails(ctn_lora_add(c, NULL), CTN_ENOTFOUND, "no linear modules");
    ctn_module_free(c);

    static const char *const some[] = {"head", NULL};
    OK(ctn_lora_add(m, CTN_OPT(ctn_lora_opt, .only = some)));
    assert_fails(ctn_lora_add(m, NULL), CTN_ESTATE, "'head' already has an adapter");
    assert_int_equal(ctn_params(m).n, params + 2);
    OK(ctn_module_tie(m, "tied", ctn_module_find(m, "head.weight")));
    assert_fails(ctn_lora_merge(m), CTN_ESTATE, "weight of 'head' is tied");
    ctn_module_free(m);
}

/* Without memory, add and merge change nothing. */
static failing_once memory;

static ctn_status fail_at(long n, ctn_module *m, bool merge)
{
    memory.fail_at = memory.calls + n;
    const ctn_status st = merge ? ctn_lora_merge(m) : ctn_lora_add(m, NULL);
    memory.fail_at = 0;
    ctn_error_clear();
    return st;
}

static void out_of_memory(void **state)
{
    (void)state;
    ctn_context *ctx = NULL;
    OK(ctn_set_allocator(&(ctn_allocator){failing_once_alloc, failing_once_release, &memory}));
    OK(ctn_context_new(&ctx, NULL));
    ctn_module *m = make_net(ctx);
    const int params = ctn_params(m).n;
    for (int merge = 0; merge < 2; merge++) {
        long n = 1;
        for (; fail_at(n, m, merge) == CTN_ENOMEM; n++) {
            assert_int_equal(ctn_params(m).n, merge ? params + 6 : params);
            assert_int_equal(ctn_var_trainable(ctn_module_find(m, "fc1.weight")), !merge);
        }
        assert_true(n > 3);
        assert_int_equal(ctn_params(m).n, merge ? params : params + 6);
    }
    ctn_module_free(m);
    ctn_context_free(ctx);
    assert_int_equal(memory.live, 0);
    OK(ctn_set_allocator(NULL));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(out_of_memory), /* must run before anything else allocates */
        TEST(changes_nothing_at_first),
        TEST(only_some),
        TEST(trains_adapters),
        TEST(merges),
        TEST(base_in_bf16),
        TEST(base_in_f64),
        TEST(thaws_no_bf16),
        TEST(merges_before_the_optimizer_goes),
        TEST(copies),
        TEST(copies_by_function),
        TEST(language_model),
        TEST(refuses),
#ifdef CTN_HAVE_YYJSON
        TEST(saves_and_loads),
        TEST(loads_with_the_prefix_of_peft),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
