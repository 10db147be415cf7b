/* SPDX-License-Identifier: Apache-2.0
 *
 * Fine-tuning: patterns of frozen parameters, batch normalisations with frozen statistics, plans
 * without a backward pass of the frozen part, weights with another head, and parameters that are
 * trained from an epoch on. A training that is cut before or after that epoch and resumed ends with
 * the same bits, on one rank and on several.
 * Labels: threads
 */
#include "ranks.h"

#include <catena/train.h>

#include "nn/nn.h"
#include "optim/optim.h"
#include "support/check.h"
#include "support/folder.h"

#ifndef CTN_HAVE_YYJSON
int main(void)
{
    printf("skipped: built without yyjson\n");
    return 77;
}
#else

enum { SAMPLES = 24, STEP = 6, CHANNELS = 2, SIDE = 5, CLASSES = 3, EPOCHS = 4 };

static float images[SAMPLES][CHANNELS * SIDE * SIDE];
static int64_t labels[SAMPLES];

static int fill(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < CHANNELS * SIDE * SIDE; k++)
            images[i][k] = (float)((i * 37 + k * 101) * 7919 % 257 - 128) / 128;
        labels[i] = (i * 7 + i / 3) % CLASSES;
    }
    return 0;
}

/* ---- a small network: body.conv, body.bn, head ----------------------------------------------- */

static ctn_tensor *forward(void *self, ctn_module *m, ctn_tensor *x)
{
    (void)self;
    x = ctn_relu(ctn_call(ctn_module_child(m, 0), x));
    x = ctn_reshape(ctn_global_avg_pool(x), CTN_SHAPE(ctn_dim(x, 0), -1));
    return ctn_call(ctn_module_child(m, 1), x);
}

static ctn_tensor *body_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    (void)self;
    return ctn_call(ctn_module_child(m, 1), ctn_call(ctn_module_child(m, 0), x));
}

static ctn_status make(ctn_module **net, ctn_context *ctx, int64_t classes)
{
    ctn_module *body = NULL, *m = NULL;
    CTN_TRY(ctn_module_new(net, ctx, forward, NULL, NULL));
    CTN_TRY(ctn_module_new(&body, ctx, body_forward, NULL, NULL));
    CTN_TRY(ctn_module_add(*net, "body", body));
    CTN_TRY(ctn_conv_new(&m, ctx, CHANNELS, 4, CTN_SHAPE(3, 3), NULL));
    CTN_TRY(ctn_module_add(body, "conv", m));
    CTN_TRY(ctn_batch_norm_new(&m, ctx, 4, NULL));
    CTN_TRY(ctn_module_add(body, "bn", m));
    CTN_TRY(ctn_linear_new(&m, ctx, 4, classes, NULL));
    return ctn_module_add(*net, "head", m);
}

static bool trained(ctn_module *net, const char *name)
{
    return ctn_var_trainable(ctn_module_find(net, name)) != 0;
}

static void patterns(void **state)
{
    ctn_context *ctx = NULL;
    ctn_module *net = NULL;
    (void)state;
    OK(ctn_context_new(&ctx, NULL));
    OK(make(&net, ctx, CLASSES));
    assert_int_equal(ctn_module_set_trainable(net, "body", 0), 4);
    assert_false(trained(net, "body.conv.weight"));
    assert_true(trained(net, "head.bias"));
    assert_int_equal(ctn_module_set_trainable(net, NULL, 1), 6);
    assert_int_equal(ctn_module_set_trainable(net, "*.bias", 0), 3);
    assert_true(trained(net, "head.weight"));
    assert_int_equal(ctn_module_set_trainable(net, "body.b?", 0), 2);
    assert_false(trained(net, "body.bn.weight"));
    assert_true(trained(net, "body.conv.weight"));
    assert_fails(ctn_module_set_trainable(net, "bod", 0), CTN_ENOTFOUND,
                 "no parameter matches 'bod'; the network has body, head");
    assert_fails(ctn_module_set_trainable(net, "body.conv2", 0), CTN_ENOTFOUND,
                 "body has conv, bn");
    assert_fails(ctn_module_set_trainable(net, "body.conv.wieght", 0), CTN_ENOTFOUND,
                 "body.conv has weight, bias");
    assert_fails(ctn_module_set_trainable(NULL, "body", 0), CTN_EARG, "no module");
    assert_int_equal(ctn_module_freeze_statistics(net, "head", 1), 0);
    assert_int_equal(ctn_module_freeze_statistics(net, NULL, 1),
                     1); /* weight and bias are frozen */
    assert_true(ctn__batch_norm_frozen(ctn_module_child(ctn_module_child(net, 0), 1)));
    assert_int_equal(ctn_module_freeze_statistics(net, NULL, 0), 1);
    assert_int_equal(ctn_module_set_trainable(net, "body.bn.weight", 1), 1);
    assert_int_equal(ctn_module_freeze_statistics(net, NULL, 1), 0);
    assert_int_equal(ctn_module_freeze_statistics(net, "body", 1), 1);
    ctn_module_free(net);
    ctn_context_free(ctx);
}

/* ---- one step -------------------------------------------------------------------------------- */

typedef struct {
    int all, conv;
} kernels;

static ctn_status count(void *user, const ctn_plan_node *n)
{
    kernels *k = user;
    k->all++;
    k->conv += strncmp(n->op, "conv", 4) == 0;
    return CTN_OK;
}

/* A training step, or without opt a forward pass. out: what the network returned. */
static kernels step(ctn_context *ctx, ctn_module *net, ctn_optim *opt, float *out)
{
    kernels found = {0};
    OK(ctn_scope_begin(ctx));
    ctn_tensor *x = ctn_input(ctx, images, CTN_F32, CTN_SHAPE(STEP, CHANNELS, SIDE, SIDE));
    ctn_tensor *y = ctn_call(net, x);
    ctn_tensor *t = ctn_input(ctx, labels, CTN_I64, CTN_SHAPE(STEP));
    ctn_retained *kept = NULL;
    OK(ctn_retain(&kept, y));
    if (opt) {
        OK(ctn_backward(opt, ctn_softmax_cross_entropy(y, t)));
        OK(ctn_optim_step(opt));
    }
    OK(ctn_scope_end(ctx));
    OK(ctn_context_visit_plan(ctx, count, &found));
    OK(ctn_scope_begin(ctx));
    OK(ctn_read(ctn_retained_value(kept), out, STEP * CLASSES * sizeof *out));
    OK(ctn_scope_end(ctx));
    ctn_retained_free(kept);
    return found;
}

static void body_as_in_evaluation(void **state)
{
    float was[4], is[4], y[STEP * CLASSES], eval[STEP * CLASSES];
    ctn_context *ctx = NULL;
    ctn_module *net = NULL;
    ctn_optim *opt = NULL;
    (void)state;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
    OK(make(&net, ctx, CLASSES));
    OK(ctn_sgd_new(&opt, ctn_params(net), CTN_OPT(ctn_sgd_opt, .lr = 0.1)));
    const kernels whole = step(ctx, net, opt, y); /* other statistics than 0 and 1 */
    ctn_optim_free(opt);
    assert_int_equal(ctn_module_set_trainable(net, "body", 0), 4);
    assert_int_equal(ctn_module_freeze_statistics(net, NULL, 1), 1);
    OK(ctn_sgd_new(&opt, ctn_params(net), CTN_OPT(ctn_sgd_opt, .lr = 0.1)));
    assert_int_equal(opt->pool->nvar, 2);
    ctn_var *mean = ctn_module_find(net, "body.bn.running_mean");
    OK(ctn_var_get(mean, was, sizeof was));
    ctn_context_set_training(ctx, 0);
    const kernels forward_only = step(ctx, net, NULL, eval);
    ctn_context_set_training(ctx, 1);
    const kernels frozen = step(ctx, net, opt, y);
    OK(ctn_var_get(mean, is, sizeof is));
    assert_memory_equal(was, is, sizeof is);
    assert_memory_equal(y, eval, sizeof y);
    /* gradients of the loss, the weight and the bias of the head, and the step */
    assert_in_range(frozen.all - forward_only.all, 3, 6);
    assert_int_equal(frozen.conv, 1);
    assert_int_equal(whole.conv, 2);
    ctn_optim_free(opt);
    ctn_module_free(net);
    ctn_context_free(ctx);
}

/* ---- weights --------------------------------------------------------------------------------- */

static char told[512];

static void tell(void *user, const char *name, const ctn_desc *here, const ctn_desc *file)
{
    const size_t n = strlen(told);
    (void)user;
    snprintf(told + n, sizeof told - n, "%s %d->%d;", name, (int)file->dim[0], (int)here->dim[0]);
}

static void new_head(void **state)
{
    static const char *const file = "head.safetensors";
    const ctn_weights_opt o = {.struct_size = sizeof o, .new_head = 1, .fresh = tell};
    float was[5 * 4], is[5 * 4], conv[72], loaded[72];
    ctn_context *ctx = NULL;
    ctn_module *from = NULL, *net = NULL;
    (void)state;
    OK(ctn_context_new(&ctx, NULL));
    OK(make(&from, ctx, CLASSES));
    OK(make(&net, ctx, 5));
    OK(ctn_weights_save(from, file));
    assert_fails(ctn_weights_load(net, file, NULL), CTN_ESHAPE, "head.weight is (5,4)");
    OK(ctn_var_get(ctn_module_find(net, "head.weight"), was, sizeof was));
    told[0] = 0;
    OK(ctn_weights_load(net, file, &o));
    assert_string_equal(told, "head.weight 3->5;head.bias 3->5;");
    OK(ctn_var_get(ctn_module_find(net, "head.weight"), is, sizeof is));
    assert_memory_equal(was, is, sizeof is);
    OK(ctn_var_get(ctn_module_find(net, "body.conv.weight"), loaded, sizeof loaded));
    OK(ctn_var_get(ctn_module_find(from, "body.conv.weight"), conv, sizeof conv));
    assert_memory_equal(conv, loaded, sizeof conv);
    told[0] = 0;
    OK(ctn_weights_load(from, file, &o)); /* fits: nothing is left out */
    assert_string_equal(told, "");
    ctn_module_free(net);
    net = NULL;
    /* Only the last layer may differ, and only in its outputs. */
    ctn_module *m[2] = {NULL, NULL};
    OK(ctn_linear_new(&m[0], ctx, 4, 6, NULL));
    OK(ctn_linear_new(&m[1], ctx, 6, 3, NULL));
    OK(ctn_sequential_new(&net, ctx, 2, m));
    OK(ctn_weights_save(net, file));
    ctn_module_free(net);
    OK(ctn_linear_new(&m[0], ctx, 4, 7, NULL));
    OK(ctn_linear_new(&m[1], ctx, 7, 2, NULL));
    OK(ctn_sequential_new(&net, ctx, 2, m));
    assert_fails(ctn_weights_load(net, file, &o), CTN_ESHAPE, "1.weight is (2,7)");
    assert_string_equal(told, "");
    ctn_module_free(net);
    /* A network of one layer is a head, whose names have no dot. */
    OK(ctn_linear_new(&net, ctx, 4, 6, NULL));
    OK(ctn_weights_save(net, file));
    ctn_module_free(net);
    OK(ctn_linear_new(&net, ctx, 4, 7, NULL));
    OK(ctn_weights_load(net, file, &o));
    assert_string_equal(told, "weight 6->7;bias 6->7;");
    ctn_module_free(net);
    told[0] = 0;
    OK(ctn_linear_new(&net, ctx, 5, 7, NULL));
    assert_fails(ctn_weights_load(net, file, &o), CTN_ESHAPE, "weight is (7,5)");
    ctn_module_free(net);
    ctn_module_free(from);
    ctn_context_free(ctx);
    remove(file);
}

/* ---- training in stages ---------------------------------------------------------------------- */

typedef struct {
    const char *dir;
    int64_t cut; /* save and stop after this step; 0: never */
    int shard, one_by_one;
    ctn_status want; /* expected from ctn_extend_unfreeze */
    float w[MOST][CHANNELS * 9 * 4];
    float mean[4];    /* of rank 0, which a state has */
    int64_t count[2]; /* elements of the pool at the beginning and at the end */
} life;

static ctn_tensor *loss_of(void *net, ctn_step *s)
{
    ctn_tensor *x = ctn_step_input(s, 0);
    x = ctn_reshape(x, CTN_SHAPE(ctn_dim(x, 0), CHANNELS, SIDE, SIDE));
    return ctn_softmax_cross_entropy(ctn_call(net, x), ctn_step_input(s, 1));
}

static ctn_status stop(void *self, ctn_trainer *tr)
{
    (void)self;
    ctn_trainer_stop(tr, "cut");
    return CTN_OK;
}

typedef struct {
    ctn_module *net;
    ctn_dataset *data;
    ctn_loader *loader;
    ctn_optim *optim;
    ctn_trainer *tr;
} training;

static ctn_status open_data(training *t, const job *j)
{
    const ctn_field field[] = {{.dtype = CTN_F32, .ndim = 1, .shape = {CHANNELS * SIDE * SIDE}},
                               {.dtype = CTN_I64}};
    const void *const data[] = {images, labels};
    ctn_sampler *s = NULL;
    CTN_TRY(ctn_arrays_open(&t->data, SAMPLES, 2, field, data));
    CTN_TRY(ctn_sampler_shuffled(&s, SAMPLES, 3));
    CTN_TRY(ctn_sampler_shard(s, j->rank, j->size));
    const ctn_status st =
        ctn_loader_new(&t->loader, t->data, s, CTN_OPT(ctn_loader_opt, .batch = STEP / j->size));
    ctn_sampler_free(s);
    return st;
}

/* The body is frozen at first. Its convolution is trained from epoch 1 on, all of it from 2. */
static ctn_status open_training(training *t, const job *j, const life *l)
{
    CTN_TRY(open_data(t, j));
    CTN_TRY(make(&t->net, j->ctx, CLASSES));
    if (ctn_module_set_trainable(t->net, "body", 0) < 0) return ctn_error_status();
    if (ctn_module_freeze_statistics(t->net, NULL, 1) < 0) return ctn_error_status();
    CTN_TRY(ctn_adam_new(&t->optim, ctn_params(t->net), CTN_OPT(ctn_adam_opt, .lr = 0.01)));
    if (j->size > 1) {
        CTN_TRY(ctn_dist_optim(t->optim, j->c,
                               CTN_OPT(ctn_dist_opt, .shard = l->shard,
                                       .when = l->one_by_one ? CTN_DIST_PER_PARAMETER
                                                             : CTN_DIST_OVERLAP)));
    }
    CTN_TRY(ctn_trainer_new(&t->tr, t->optim, t->loader, loss_of, t->net,
                            CTN_OPT(ctn_trainer_opt, .net = t->net, .epochs = EPOCHS)));
    if (j->size > 1) CTN_TRY(ctn_dist_trainer(t->tr, j->c, NULL));
    const ctn_extension cut = {.struct_size = sizeof cut,
                               .name = "cut",
                               .priority = 10000,
                               .call = stop,
                               .trigger = {.kind = CTN_ONCE, .n = (double)l->cut}};
    if (l->cut > 0) CTN_TRY(ctn_trainer_extend(t->tr, &cut));
    const ctn_status st = ctn_extend_unfreeze(t->tr, 1, "body.conv", 0);
    return st < 0 ? st : ctn_extend_unfreeze(t->tr, 2, NULL, 1);
}

static void live(job *j)
{
    life *l = j->arg;
    training t = {0};
    const ctn_status st = open_training(&t, j, l);
    CHECK(j, st == l->want, "open: %d, %s", st, ctn_error_message());
    if (st == CTN_OK) {
        const ctn_status loaded = ctn_trainer_load(t.tr, l->dir);
        CHECK(j, loaded == CTN_OK || loaded == CTN_ENOTFOUND, "load: %s", ctn_error_message());
        ctn_error_clear();
        if (j->rank == 0) l->count[0] = t.optim->pool->count;
        TRY(j, ctn_trainer_run(t.tr));
        if (l->cut > 0) TRY(j, ctn_trainer_save(t.tr, l->dir));
        if (j->rank == 0) l->count[1] = t.optim->pool->count;
        ctn_var *mean = ctn_module_find(t.net, "body.bn.running_mean");
        if (j->rank == 0) TRY(j, ctn_var_get(mean, l->mean, sizeof l->mean));
        TRY(j,
            ctn_var_get(ctn_module_find(t.net, "body.conv.weight"), l->w[j->rank], sizeof l->w[0]));
    }
    ctn_error_clear();
    ctn_trainer_free(t.tr);
    ctn_optim_free(t.optim);
    ctn_loader_free(t.loader);
    ctn_dataset_free(t.data);
    ctn_module_free(t.net);
}

enum { HEAD = 16 + 16, CONV = HEAD + 80 + 16, WHOLE = CONV + 16 + 16 }; /* padded elements */

static void in_stages(int size, int one_by_one, size_t n)
{
    char dir[64];
    life whole = {.dir = "none", .one_by_one = one_by_one};
    snprintf(dir, sizeof dir, "finetune-%d-%d", size, one_by_one);
    on_ranks(size, CTN_MODE_PLANNED, live, &whole);
    assert_int_equal(whole.count[0], HEAD);
    assert_int_equal(whole.count[1], WHOLE);
    for (int r = 1; r < size; r++) assert_memory_equal(whole.w[r], whole.w[0], sizeof whole.w[0]);
    static const struct {
        int64_t step, count; /* the training is cut after this step; the pool then */
    } cuts[] = {{6, CONV}, {2, HEAD}, {4, CONV}, {8, WHOLE}, {9, WHOLE}};
    for (size_t i = 0; i < n; i++) {
        life a = {.dir = dir, .cut = cuts[i].step, .one_by_one = one_by_one};
        life b = {.dir = dir, .one_by_one = one_by_one};
        on_ranks(size, CTN_MODE_PLANNED, live, &a);
        assert_int_equal(a.count[1], cuts[i].count);
        on_ranks(size, CTN_MODE_PLANNED, live, &b);
        assert_int_equal(b.count[0], cuts[i].count);
        assert_memory_equal(b.mean, whole.mean, sizeof b.mean);
        for (int r = 0; r < size; r++) assert_memory_equal(b.w[r], whole.w[0], sizeof b.w[r]);
        remove_all(dir);
    }
}

static void on_one_rank(void **state)
{
    (void)state;
    in_stages(1, 0, 5);
}

static void on_several_ranks(void **state)
{
    (void)state;
    in_stages(2, 0, 5);
    in_stages(3, 1, 1);
    life sharded = {.dir = "none", .shard = 1, .want = CTN_ESTATE};
    on_ranks(2, CTN_MODE_PLANNED, live, &sharded);
}

/* A state from before the epoch is loaded after it, as a rewind does. */
static void back_to_frozen(void **state)
{
    const char *dir = "finetune-back";
    life first = {.dir = dir, .cut = 3}, whole = {.dir = "none"};
    training t = {0};
    job j = {.size = 1};
    (void)state;
    on_ranks(1, CTN_MODE_PLANNED, live, &first);
    on_ranks(1, CTN_MODE_PLANNED, live, &whole);
    OK(ctn_context_new(&j.ctx, CTN_OPT(ctn_context_opt, .threads = 1, .seed = 5)));
    OK(open_training(&t, &j, &(life){.cut = 0}));
    OK(ctn_trainer_run(t.tr));
    assert_int_equal(t.optim->pool->count, WHOLE);
    OK(ctn_trainer_load(t.tr, dir));
    assert_int_equal(t.optim->pool->count, HEAD);
    OK(ctn_trainer_run(t.tr));
    float w[CHANNELS * 9 * 4];
    OK(ctn_var_get(ctn_module_find(t.net, "body.conv.weight"), w, sizeof w));
    assert_memory_equal(w, whole.w[0], sizeof w);
    assert_fails(ctn_extend_unfreeze(t.tr, 0, NULL, 0), CTN_EARG, "epoch is 0");
    assert_fails(ctn_extend_unfreeze(t.tr, 1, "head", 0), CTN_ENOTFOUND, "'head' is frozen");
    ctn_trainer_free(t.tr);
    ctn_optim_free(t.optim);
    ctn_loader_free(t.loader);
    ctn_dataset_free(t.data);
    ctn_module_free(t.net);
    ctn_context_free(j.ctx);
    remove_all(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns),         cmocka_unit_test(body_as_in_evaluation),
        cmocka_unit_test(new_head),         cmocka_unit_test(on_one_rank),
        cmocka_unit_test(on_several_ranks), cmocka_unit_test(back_to_frozen),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}

#endif
