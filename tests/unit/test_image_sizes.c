/* SPDX-License-Identifier: Apache-2.0
 *
 * Image sizes that change during training: batches do not depend on the thread count or on the
 * number of ranks, masks and mixed images follow, what does not fit is refused, and a training that
 * is interrupted and resumed ends with bitwise the same weights.
 * Labels: threads
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/folder.h"
#include "support/ok.h"

#include <catena/catena.h>

enum { COUNT = 40, SIDE = 12, BATCH = 4, EVERY = 2, CLASSES = 3 };

static const int64_t sizes[3] = {8, 12, 20};
static uint8_t pixels[COUNT][3 * SIDE * SIDE];
static int64_t labels[COUNT];

static int fill(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        labels[i] = i % CLASSES;
        for (int k = 0; k < 3 * SIDE * SIDE; k++)
            pixels[i][k] = (uint8_t)(i * 31 + k * (labels[i] + 2) % 97);
    }
    return 0;
}

static ctn_dataset *images(void)
{
    ctn_dataset *base = NULL, *ds = NULL;
    const ctn_field field[2] = {{.dtype = CTN_U8, .ndim = 3, .shape = {3, SIDE, SIDE}},
                                {.dtype = CTN_I64}};
    OK(ctn_arrays_open(&base, COUNT, 2, field, (const void *const[]){pixels, labels}));
    OK(ctn_augment_new(&ds, base, CTN_OPT(ctn_image_opt, .crop = CTN_CROP_RANDOM, .flip = 1)));
    return ds;
}

static ctn_loader *loader(ctn_dataset *ds, int threads, int rank, int ranks, const ctn_mix_opt *mix)
{
    ctn_sampler *s = NULL;
    ctn_loader *l = NULL;
    OK(ctn_sampler_shuffled(&s, ctn_dataset_count(ds), 5));
    OK(ctn_sampler_shard(s, rank, ranks));
    OK(ctn_loader_new(&l, ds, s,
                      CTN_OPT(ctn_loader_opt, .batch = BATCH / ranks, .threads = threads,
                              .sizes = sizes, .nsizes = 3, .size_every = EVERY, .mix = mix)));
    ctn_sampler_free(s);
    return l;
}

static size_t bytes_of(const ctn_batch *b, int f)
{
    size_t n = ctn_dtype_size(b->field[f].dtype);
    for (int d = 0; d < b->field[f].ndim; d++) n *= (size_t)b->field[f].shape[d];
    return n;
}

/* The next batch of two loaders that must be the same. Returns its image size, 0 at the end. */
static int64_t next_of_both(ctn_loader *a, ctn_loader *b)
{
    ctn_batch x, y;
    const ctn_status st = ctn_loader_next(a, &x);
    assert_int_equal(ctn_loader_next(b, &y), st);
    if (st == CTN_END) return 0;
    assert_int_equal(st, CTN_OK);
    const int64_t *shape = x.field[0].shape;
    assert_true(shape[0] == x.n && shape[1] == 3 && shape[2] == shape[3]);
    for (int f = 0; f < x.fields; f++) {
        assert_memory_equal(&x.field[f], &y.field[f], sizeof x.field[f]);
        assert_memory_equal(x.data[f], y.data[f], bytes_of(&x, f));
    }
    return shape[2];
}

static void test_threads(void **state)
{
    (void)state;
    const ctn_mix_opt mix = {.struct_size = sizeof mix,
                             .mixup = 1,
                             .cutmix = 1,
                             .classes = CLASSES};
    for (int mixed = 0; mixed < 2; mixed++) {
        ctn_dataset *ds = images();
        ctn_loader *a = loader(ds, 0, 0, 1, mixed ? &mix : NULL);
        ctn_loader *b = loader(ds, 3, 0, 1, mixed ? &mix : NULL);
        int seen[3] = {0}, changes = 0;
        for (int epoch = 0; epoch < 4; epoch++) {
            int64_t before = 0, size;
            for (int k = 0; (size = next_of_both(a, b)) != 0; k++) {
                for (int i = 0; i < 3; i++) seen[i] += size == sizes[i];
                if (k % EVERY) assert_int_equal(size, before);
                changes += k > 0 && size != before;
                before = size;
            }
        }
        assert_int_equal(seen[0] + seen[1] + seen[2], 4 * COUNT / BATCH);
        assert_true(seen[0] > 0 && seen[1] > 0 && seen[2] > 0 && changes > 4);
        ctn_loader_free(a);
        ctn_loader_free(b);
        ctn_dataset_free(ds);
    }
}

/* A loader that starts in the middle of an epoch delivers the rest of it. */
static void test_restart(void **state)
{
    (void)state;
    ctn_dataset *ds = images();
    for (int at = 0; at < COUNT / BATCH; at++) {
        ctn_batch batch;
        ctn_loader *a = loader(ds, 2, 0, 1, NULL), *b = loader(ds, 2, 0, 1, NULL);
        for (int k = 0; k < at; k++) OK(ctn_loader_next(a, &batch));
        const ctn_sampler_state s = ctn_loader_get_state(a);
        OK(ctn_loader_set_state(b, &s));
        while (next_of_both(a, b)) continue;
        ctn_loader_free(a);
        ctn_loader_free(b);
    }
    ctn_dataset_free(ds);
}

/* Two ranks have the samples of one, in images of the same size. */
static void test_ranks(void **state)
{
    (void)state;
    ctn_dataset *ds = images();
    ctn_loader *one = loader(ds, 0, 0, 1, NULL);
    ctn_loader *half[2] = {loader(ds, 1, 0, 2, NULL), loader(ds, 1, 1, 2, NULL)};
    ctn_batch all, part;
    while (ctn_loader_next(one, &all) == CTN_OK) {
        const size_t image = bytes_of(&all, 0) / BATCH;
        for (int r = 0; r < 2; r++) {
            OK(ctn_loader_next(half[r], &part));
            assert_int_equal(part.field[0].shape[2], all.field[0].shape[2]);
            for (int i = 0; i < BATCH / 2; i++)
                assert_memory_equal((char *)part.data[0] + (size_t)i * image,
                                    (char *)all.data[0] + (size_t)(2 * i + r) * image, image);
        }
    }
    ctn_loader_free(one);
    for (int r = 0; r < 2; r++) ctn_loader_free(half[r]);
    ctn_dataset_free(ds);
}

/* ---- a dataset of the caller, with a mask ---------------------------------------------------- */

static int64_t masked_count(void *self)
{
    return *(int64_t *)self;
}

static int masked_fields(void *self)
{
    (void)self;
    return 3;
}

static void masked_field(void *self, int f, ctn_field *out)
{
    (void)self;
    if (f == 0) *out = (ctn_field){CTN_F32, 3, {1, SIDE, SIDE}, 0};
    else if (f == 1) *out = (ctn_field){CTN_U8, 2, {SIDE, SIDE}, 0};
    else *out = (ctn_field){CTN_I32, 2, {SIDE, 1}, 0}; /* stays as it is */
}

static ctn_status masked_get(void *self, const ctn_sample *s, void *const *dst)
{
    (void)self;
    const int64_t n = s->size > 0 ? s->size : SIDE;
    for (int64_t i = 0; i < n * n; i++) {
        ((float *)dst[0])[i] = (float)(s->index * 1000 + i);
        ((uint8_t *)dst[1])[i] = (uint8_t)(s->index + i);
    }
    for (int i = 0; i < SIDE; i++) ((int32_t *)dst[2])[i] = (int32_t)s->index + i;
    return CTN_OK;
}

static int masked_resizes(void *self)
{
    (void)self;
    return 1;
}

static void test_masks(void **state)
{
    (void)state;
    static int64_t count = 2 * BATCH;
    static const ctn_dataset_vt vt = {.struct_size = sizeof vt,
                                      .count = masked_count,
                                      .fields = masked_fields,
                                      .field = masked_field,
                                      .get = masked_get,
                                      .resizes = masked_resizes};
    ctn_dataset *base = NULL, *ds = NULL;
    ctn_sampler *s = NULL;
    ctn_loader *l = NULL;
    ctn_batch b;
    OK(ctn_dataset_new(&base, &vt, &count));
    OK(ctn_dataset_slice(&ds, base, BATCH, BATCH));
    assert_int_equal(ctn_dataset_resizes(ds), 1);
    OK(ctn_sampler_sequential(&s, BATCH));
    OK(ctn_loader_new(&l, ds, s,
                      CTN_OPT(ctn_loader_opt, .batch = BATCH, .sizes = (int64_t[]){17},
                              .nsizes = 1)));
    OK(ctn_loader_next(l, &b));
    assert_true(b.field[0].shape[2] == 17 && b.field[0].shape[3] == 17);
    assert_true(b.field[1].shape[1] == 17 && b.field[1].shape[2] == 17);
    assert_true(b.field[2].shape[1] == SIDE && b.field[2].shape[2] == 1);
    for (int i = 0; i < BATCH; i++) {
        for (int k = 0; k < 17 * 17; k++) {
            assert_true(((float *)b.data[0])[i * 17 * 17 + k] == (float)((BATCH + i) * 1000 + k));
            assert_int_equal(((uint8_t *)b.data[1])[i * 17 * 17 + k], (uint8_t)(BATCH + i + k));
        }
        assert_int_equal(((int32_t *)b.data[2])[i * SIDE + 2], BATCH + i + 2);
    }
    ctn_loader_free(l);
    ctn_sampler_free(s);
    ctn_dataset_free(ds);
    ctn_dataset_free(base);
}

/* Augmentation leaves masks in full size, so it cannot make images of other sizes next to them. A
 * field of another shape, or one that the result does not have the size of, does not matter. */
static void test_masks_of_arrays(void **state)
{
    (void)state;
    static int64_t masks[COUNT][SIDE * SIDE];
    static const ctn_field field[2] = {{.dtype = CTN_U8, .ndim = 3, .shape = {3, SIDE, SIDE}},
                                       {.dtype = CTN_I64, .ndim = 2, .shape = {SIDE, SIDE}}};
    for (int side = SIDE; side >= SIDE - 1; side--) {
        ctn_dataset *base = NULL, *ds = NULL;
        ctn_sampler *s = NULL;
        ctn_loader *l = NULL;
        ctn_batch b;
        OK(ctn_arrays_open(&base, COUNT, 2, field, (const void *const[]){pixels, masks}));
        OK(ctn_augment_new(&ds, base, CTN_OPT(ctn_image_opt, .height = side, .width = side)));
        OK(ctn_sampler_sequential(&s, COUNT));
        const ctn_status st =
            ctn_loader_new(&l, ds, s,
                           CTN_OPT(ctn_loader_opt, .batch = 4, .sizes = sizes, .nsizes = 1));
        if (st == CTN_OK) { /* memory that is too small shows when it is filled */
            for (int i = 0; i < COUNT / 4; i++) OK(ctn_loader_next(l, &b));
            assert_int_not_equal(side, SIDE);
        } else {
            assert_fails(st, CTN_EARG, "cannot change the size");
            assert_int_equal(side, SIDE);
        }
        ctn_loader_free(l);
        ctn_sampler_free(s);
        ctn_dataset_free(ds);
    }
}

static void test_refused(void **state)
{
    (void)state;
    ctn_dataset *ds = images(), *plain = NULL;
    ctn_sampler *s = NULL;
    ctn_loader *l = NULL;
    uint8_t x[3 * SIDE * SIDE];
    int64_t t;
    const ctn_field field[2] = {{.dtype = CTN_U8, .ndim = 3, .shape = {3, SIDE, SIDE}},
                                {.dtype = CTN_I64}};
    OK(ctn_arrays_open(&plain, COUNT, 2, field, (const void *const[]){pixels, labels}));
    OK(ctn_sampler_sequential(&s, COUNT));
    assert_fails(ctn_loader_new(&l, plain, s,
                                CTN_OPT(ctn_loader_opt, .batch = 4, .sizes = sizes, .nsizes = 3)),
                 CTN_EARG, "cannot change the size");
    assert_fails(ctn_loader_new(&l, ds, s, CTN_OPT(ctn_loader_opt, .batch = 4, .nsizes = 3)),
                 CTN_EARG, "nsizes is 3");
    assert_fails(ctn_loader_new(&l, ds, s,
                                CTN_OPT(ctn_loader_opt, .batch = 4, .sizes = (int64_t[]){8, 0},
                                        .nsizes = 2)),
                 CTN_EARG, "an image size is 0");
    assert_fails(ctn_dataset_sample(plain, &(ctn_sample){0, 0, 0, 8}, (void *[]){x, &t}), CTN_EARG,
                 "images of size 8");
    assert_fails(ctn_dataset_sample(ds, &(ctn_sample){0, 0, 0, -8}, (void *[]){x, &t}), CTN_EARG,
                 "images of size -8");
    ctn_sampler_free(s);
    ctn_dataset_free(ds);
    ctn_dataset_free(plain);
}

/* ---- training -------------------------------------------------------------------------------- */

typedef struct {
    ctn_context *ctx;
    ctn_module *net;
    ctn_optim *optim;
    ctn_dataset *ds;
    ctn_loader *loader;
    ctn_trainer *tr;
} training;

static ctn_tensor *loss(void *self, ctn_step *s)
{
    const training *t = self;
    ctn_tensor *y = ctn_call(t->net, ctn_step_input(s, 0)); /* (BATCH,CLASSES,1,1) */
    return ctn_softmax_cross_entropy(ctn_reshape(y, CTN_SHAPE(BATCH, CLASSES)),
                                     ctn_step_input(s, 1));
}

static void training_new(training *t, const char *out, int64_t iterations)
{
    ctn_module *m[4] = {0};
    *t = (training){0};
    OK(ctn_context_new(&t->ctx, CTN_OPT(ctn_context_opt, .seed = 7, .threads = 1)));
    OK(ctn_conv_new(&m[0], t->ctx, 3, 4, CTN_SHAPE(3, 3),
                    CTN_OPT(ctn_conv_module_opt, .pad = {1, 1})));
    OK(ctn_activation_new(&m[1], t->ctx, ctn_tanh_at));
    OK(ctn_conv_new(&m[2], t->ctx, 4, CLASSES, CTN_SHAPE(1, 1), NULL));
    OK(ctn_activation_new(&m[3], t->ctx, ctn_global_avg_pool_at));
    OK(ctn_sequential_new(&t->net, t->ctx, 4, m));
    OK(ctn_adam_new(&t->optim, ctn_params(t->net), CTN_OPT(ctn_adam_opt, .lr = 0.01)));
    t->ds = images();
    t->loader = loader(t->ds, 1, 0, 1, NULL);
    OK(ctn_trainer_new(&t->tr, t->optim, t->loader, loss, t,
                       CTN_OPT(ctn_trainer_opt, .net = t->net, .iterations = iterations,
                               .out = out)));
}

static void training_free(training *t)
{
    ctn_trainer_free(t->tr);
    ctn_loader_free(t->loader);
    ctn_dataset_free(t->ds);
    ctn_optim_free(t->optim);
    ctn_module_free(t->net);
    ctn_context_free(t->ctx);
}

static void weights_of(const training *t, float *w)
{
    const ctn_vars v = ctn_params(t->net);
    for (int i = 0; i < v.n; i++) {
        const ctn_desc *d = ctn_var_desc(v.var[i]);
        size_t n = 1;
        for (int k = 0; k < d->ndim; k++) n *= (size_t)d->dim[k];
        OK(ctn_var_get(v.var[i], w, n * sizeof *w));
        w += n;
    }
}

static void test_resume(void **state)
{
    (void)state;
    enum { STEPS = 17, STOP = 7, WEIGHTS = 4 * 27 + 4 + 4 * CLASSES + CLASSES };
    float a[WEIGHTS], b[WEIGHTS];
    training t;
    ctn_plan_stats s;
    training_new(&t, "whole", STEPS);
    OK(ctn_trainer_run(t.tr));
    weights_of(&t, a);
    ctn_context_get_stats(t.ctx, &s);
    assert_int_equal(s.misses, 3); /* one plan for each size */
    training_free(&t);
    training_new(&t, "parts", STOP);
    OK(ctn_trainer_run(t.tr));
    OK(ctn_trainer_save(t.tr, "parts/state"));
    training_free(&t);
    training_new(&t, "parts", STEPS);
    OK(ctn_trainer_load(t.tr, "parts/state"));
    OK(ctn_trainer_run(t.tr));
    weights_of(&t, b);
    training_free(&t);
    assert_memory_equal(a, b, sizeof a);
    remove_all("whole");
    remove_all("parts");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),         cmocka_unit_test(test_restart),
        cmocka_unit_test(test_ranks),           cmocka_unit_test(test_masks),
        cmocka_unit_test(test_masks_of_arrays), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_resume),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
