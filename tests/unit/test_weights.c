/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights and states in files: round trip, conversion, partial and renamed loads, refused files
 * that leave the model unchanged, and a training that continues bit for bit after its state was
 * saved and loaded into new objects. A failing allocator during save and load.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catena/io.h>
#include <catena/ops.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ok.h"

#include "graph/graph.h"
#include "io/safetensors.h"

#define FILE_NAME "w.safetensors"

#ifndef CTN_HAVE_YYJSON

static void test_without_yyjson(void **state)
{
    (void)state;
    ctn_context *ctx = NULL;
    ctn_module *m = NULL;
    OK(ctn_context_new(&ctx, NULL));
    OK(ctn_linear_new(&m, ctx, 2, 2, NULL));
    assert_fails(ctn_weights_save(m, FILE_NAME), CTN_EUNSUPPORTED, "yyjson");
    ctn_module_free(m);
    ctn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_without_yyjson)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

/* A model of 5 -> 7 -> 3 with a state and a second name for the last bias. */
typedef struct {
    ctn_context *ctx;
    ctn_module *net;
} model;

static ctn_tensor *forward(void *self, ctn_module *net, ctn_tensor *x)
{
    (void)self;
    x = ctn_relu(ctn_call(ctn_module_child(net, 0), x));
    return ctn_call(ctn_module_child(net, 1), x);
}

static ctn_status make(model *m, uint64_t seed)
{
    ctn_module *fc[2] = {NULL, NULL};
    ctn_status st = CTN_OK;
    *m = (model){0};
    CTN_TRY_GOTO(st, done,
                 ctn_context_new(&m->ctx, CTN_OPT(ctn_context_opt, .seed = seed, .threads = 1)));
    CTN_TRY_GOTO(st, done, ctn_module_new(&m->net, m->ctx, forward, NULL, NULL));
    CTN_TRY_GOTO(st, done, ctn_linear_new(&fc[0], m->ctx, 5, 7, NULL));
    CTN_TRY_GOTO(st, done, ctn_module_add(m->net, "fc1", fc[0]));
    fc[0] = NULL;
    CTN_TRY_GOTO(st, done, ctn_linear_new(&fc[1], m->ctx, 7, 3, NULL));
    CTN_TRY_GOTO(st, done, ctn_module_add(m->net, "fc2", fc[1]));
    fc[1] = NULL;
    CTN_TRY_GOTO(st, done,
                 ctn_module_state(NULL, m->net, "seen", CTN_I64, CTN_SCALAR_SHAPE,
                                  CTN_OPT(ctn_init, .value = 5)));
    CTN_TRY_GOTO(st, done, ctn_module_tie(m->net, "tied", ctn_module_find(m->net, "fc2.bias")));
done:
    ctn_module_free(fc[0]);
    ctn_module_free(fc[1]);
    return st;
}

static void end(model *m)
{
    ctn_module_free(m->net);
    ctn_context_free(m->ctx);
}

enum { BYTES = 8 + 4 * (35 + 7 + 21 + 3) };

typedef struct {
    char at[BYTES];
    size_t n;
} values;

static ctn_status copy_out(void *user, const char *name, ctn_dtype dtype, int ndim,
                           const int64_t *dims, void *data)
{
    (void)name;
    values *v = user;
    size_t bytes = ctn_dtype_size(dtype);
    for (int i = 0; i < ndim; i++) bytes *= (size_t)dims[i];
    assert_true(v->n + bytes <= BYTES);
    memcpy(v->at + v->n, data, bytes);
    v->n += bytes;
    return CTN_OK;
}

static values all_values(model *m)
{
    values v = {.n = 0};
    OK(ctn_module_visit(m->net, copy_out, &v));
    assert_int_equal(v.n, BYTES);
    return v;
}

static void assert_same(model *a, model *b, bool same)
{
    values x = all_values(a), y = all_values(b);
    assert_int_equal(memcmp(x.at, y.at, BYTES) == 0, same);
}

static void test_round_trip(void **state)
{
    (void)state;
    model a, b;
    OK(make(&a, 1));
    OK(make(&b, 2));
    assert_same(&a, &b, false);
    OK(ctn_weights_save(a.net, FILE_NAME));
    OK(ctn_weights_load(b.net, FILE_NAME, NULL));
    assert_same(&a, &b, true);

    ctn__st_file *f = NULL;
    OK(ctn__st_open(&f, FILE_NAME));
    assert_int_equal(ctn__st_count(f), 5);
    /* its first name: a module's own variables come first */
    assert_true(ctn__st_find(f, "tied") != NULL);
    assert_true(ctn__st_find(f, "fc2.bias") == NULL);
    ctn__st_close(f);

    OK(ctn_scope_begin(a.ctx));
    assert_fails(ctn_weights_save(a.net, FILE_NAME), CTN_ESTATE, "scope");
    assert_fails(ctn_weights_load(a.net, FILE_NAME, NULL), CTN_ESTATE, "scope");
    OK(ctn_scope_end(a.ctx));
    assert_fails(ctn_weights_load(a.net, "none", NULL), CTN_EIO, "none");
    end(&a);
    end(&b);
    unlink(FILE_NAME);
}

/* Files written by hand, with the given names, types and shapes. */
typedef struct {
    const char *name;
    ctn_dtype dtype;
    int ndim;
    int64_t shape[2];
} entry;

static double some_data[64]; /* as every type: zeros, except for what a test sets */

static void write_file(int n, const entry *e)
{
    ctn__st_writer *w = NULL;
    OK(ctn__st_begin(&w, FILE_NAME));
    for (int i = 0; i < n; i++) OK(ctn__st_add(w, e[i].name, e[i].dtype, e[i].ndim, e[i].shape));
    for (int i = 0; i < n; i++) OK(ctn__st_put(w, e[i].name, some_data));
    OK(ctn__st_finish(w));
    ctn__st_writer_free(w);
}

static const entry good[] = {{"seen", CTN_I64, 0, {0}},
                             {"fc1.weight", CTN_F32, 2, {7, 5}},
                             {"fc1.bias", CTN_F32, 1, {7}},
                             {"fc2.weight", CTN_F32, 2, {3, 7}},
                             {"fc2.bias", CTN_F32, 1, {3}}};

static void refuse(model *m, const ctn_weights_opt *opt, ctn_status want, const char *part)
{
    values before = all_values(m);
    assert_fails(ctn_weights_load(m->net, FILE_NAME, opt), want, part);
    values after = all_values(m);
    assert_memory_equal(before.at, after.at, BYTES);
}

static void test_strict(void **state)
{
    (void)state;
    model m;
    entry e[6];
    OK(make(&m, 1));
    write_file(5, good); /* the tied variable under its other name */
    OK(ctn_weights_load(m.net, FILE_NAME, NULL));

    ctn_module_free(m.net);
    ctn_context_free(m.ctx);
    OK(make(&m, 1));
    write_file(4, good);
    refuse(&m, NULL, CTN_ENOTFOUND, "missing in the file: tied");
    memcpy(e, good, sizeof good);
    e[5] = (entry){"fc3.bias", CTN_F32, 1, {3}};
    write_file(6, e);
    refuse(&m, NULL, CTN_ENOTFOUND, "not in the model: fc3.bias");
    e[2].name = "fc1.b";
    write_file(6, e);
    refuse(&m, NULL, CTN_ENOTFOUND, "missing in the file: fc1.bias");
    e[2] = (entry){"fc1.bias", CTN_F32, 1, {8}};
    write_file(5, e);
    refuse(&m, NULL, CTN_ESHAPE, "fc1.bias is (7) in the model and (8) in the file");
    refuse(&m, CTN_OPT(ctn_weights_opt, .partial = 1), CTN_ESHAPE, "fc1.bias is (7)");
    e[2] = (entry){"fc1.bias", CTN_I32, 1, {7}};
    write_file(5, e);
    refuse(&m, NULL, CTN_EDTYPE, "fc1.bias is f32 in the model and i32 in the file");
    e[0] = (entry){"x", CTN_F32, 1, {1}};
    write_file(1, e);
    refuse(&m, CTN_OPT(ctn_weights_opt, .partial = 1), CTN_ENOTFOUND, "not in the model: x");
    end(&m);
    unlink(FILE_NAME);
}

static void test_partial(void **state)
{
    (void)state;
    model m;
    float b[7], old[3], now[3];
    OK(make(&m, 1));
    OK(ctn_var_get(ctn_module_find(m.net, "fc2.bias"), old, sizeof old));
    const entry e[2] = {good[2], {"other", CTN_U8, 1, {3}}};
    write_file(2, e);
    OK(ctn_weights_load(m.net, FILE_NAME, CTN_OPT(ctn_weights_opt, .partial = 1)));
    OK(ctn_var_get(ctn_module_find(m.net, "fc1.bias"), b, sizeof b));
    OK(ctn_var_get(ctn_module_find(m.net, "fc2.bias"), now, sizeof now));
    for (int i = 0; i < 7; i++) assert_true(b[i] == 0);
    assert_memory_equal(old, now, sizeof old);
    end(&m);
    unlink(FILE_NAME);
}

static const char *map_name(void *user, const char *name, char *buf, size_t n)
{
    if (strcmp(name, "seen") == 0) return NULL; /* the file does not have it */
    snprintf(buf, n, "%s.%s", (const char *)user, name);
    return buf;
}

static void test_renamed(void **state)
{
    (void)state;
    model m;
    entry e[5];
    int64_t seen;
    memcpy(e, good, sizeof good);
    e[1].name = "base.fc1.weight";
    e[2].name = "base.fc1.bias";
    e[3].name = "head.weight";
    e[4].name = "head.bias";
    e[0].name = "base.seen";
    write_file(5, e);
    OK(make(&m, 1));
    const char *const table[] = {"fc2", "head", "tied", "head.bias", "", "base", NULL};
    OK(ctn_weights_load(m.net, FILE_NAME, CTN_OPT(ctn_weights_opt, .rename = table)));
    OK(ctn_var_get(ctn_module_find(m.net, "seen"), &seen, sizeof seen));
    assert_int_equal(seen, 0);
    const char *const wrong[] = {"fc", "head", NULL}; /* a prefix must end at a dot */
    refuse(&m, CTN_OPT(ctn_weights_opt, .rename = wrong), CTN_ENOTFOUND, "fc1.weight");
    end(&m);

    OK(make(&m, 1));
    for (int i = 1; i < 5; i++) e[i - 1] = good[i];
    e[0].name = "m.fc1.weight";
    e[1].name = "m.fc1.bias";
    e[2].name = "m.fc2.weight";
    e[3].name = "m.fc2.bias";
    write_file(4, e);
    refuse(&m, CTN_OPT(ctn_weights_opt, .map = map_name, .user = "n"), CTN_ENOTFOUND,
           "fc1.weight (as n.fc1.weight)");
    OK(ctn_weights_load(m.net, FILE_NAME, CTN_OPT(ctn_weights_opt, .map = map_name, .user = "m")));
    OK(ctn_var_get(ctn_module_find(m.net, "seen"), &seen, sizeof seen));
    assert_int_equal(seen, 5);
    end(&m);
    unlink(FILE_NAME);
}

static void test_conversion(void **state)
{
    (void)state;
    const struct {
        ctn_dtype dtype;
        const void *data;
        float want[3];
    } cases[] = {
        {CTN_F64, (const double[]){0.1, -2, 1e300}, {0.1f, -2, INFINITY}},
        {CTN_BF16, (const uint16_t[]){0x3f80, 0xc040, 0x0001}, {1, -3, 0x1p-133f}},
        {CTN_F16, (const uint16_t[]){0x3c00, 0xc200, 0x0001}, {1, -3, 0x1p-24f}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        model m;
        float b[3];
        ctn__st_writer *w = NULL;
        OK(make(&m, 1));
        OK(ctn__st_begin(&w, FILE_NAME));
        OK(ctn__st_add(w, "fc2.bias", cases[i].dtype, 1, (int64_t[]){3}));
        OK(ctn__st_put(w, "fc2.bias", cases[i].data));
        OK(ctn__st_finish(w));
        ctn__st_writer_free(w);
        OK(ctn_weights_load(m.net, FILE_NAME, CTN_OPT(ctn_weights_opt, .partial = 1)));
        OK(ctn_var_get(ctn_module_find(m.net, "tied"), b, sizeof b));
        assert_memory_equal(b, cases[i].want, sizeof b);
        end(&m);
    }
    unlink(FILE_NAME);
}

/* ---- folders and indexes --------------------------------------------------------------------- */

static void write_index(const char *file)
{
    char json[512];
    snprintf(json, sizeof json,
             "{\"weight_map\":{\"seen\":\"%s\",\"fc1.weight\":\"%s\",\"fc1.bias\":\"%s\","
             "\"fc2.weight\":\"%s\",\"tied\":\"%s\"}}",
             file, file, file, file, file);
    write_bytes("folder/model.safetensors.index.json", json, strlen(json));
}

static void test_folder(void **state)
{
    (void)state;
    model a, b;
    OK(make(&a, 1));
    OK(make(&b, 2));
    mkdir("folder", 0777);
    assert_fails(ctn_weights_load(b.net, "folder", NULL), CTN_EIO, "has none of model.safetensors");
    OK(ctn_weights_save(a.net, "folder/all.safetensors"));
    write_index("all.safetensors");
    OK(ctn_weights_load(b.net, "folder", NULL));
    assert_same(&a, &b, true);
    end(&b);
    OK(make(&b, 2));
    OK(ctn_weights_load(b.net, "folder/model.safetensors.index.json", NULL));
    assert_same(&a, &b, true);

    write_index("none.safetensors");
    assert_fails(ctn_weights_load(b.net, "folder", NULL), CTN_EIO, "folder/none.safetensors");
    assert_int_equal(rename("folder/all.safetensors", "folder/model.safetensors"), 0);
    end(&b);
    OK(make(&b, 2));
    OK(ctn_weights_load(b.net, "folder", NULL)); /* does not look at the index */
    assert_same(&a, &b, true);
    end(&a);
    end(&b);
    unlink("folder/model.safetensors");
    unlink("folder/model.safetensors.index.json");
    rmdir("folder");
}

/* ---- a file that is truncated while it is read ----------------------------------------------- */

/* Called between checking the file and reading its values. */
static const char *cut_off(void *user, const char *name, char *buf, size_t n)
{
    (void)buf, (void)n;
    assert_int_equal(truncate(user, 0), 0);
    return name;
}

static void test_weights_shortened(void **state)
{
    (void)state;
    model m;
    OK(make(&m, 1));
    OK(ctn_weights_save(m.net, FILE_NAME));
    assert_fails(ctn_weights_load(m.net, FILE_NAME,
                                  CTN_OPT(ctn_weights_opt, .map = cut_off, .user = FILE_NAME)),
                 CTN_EIO, FILE_NAME ": became shorter");
    end(&m);
    unlink(FILE_NAME);
}

static ctn_status visit_and_cut_off(void *object, ctn_state_fn fn, void *user)
{
    float *x = object;
    CTN_TRY(fn(user, "x", CTN_F32, 1, (int64_t[]){2}, x));
    assert_int_equal(truncate(FILE_NAME, 0), 0);
    return CTN_OK;
}

static void test_state_shortened(void **state)
{
    (void)state;
    float x[2] = {1, 2};
    const ctn_state_part part = {"p", visit_and_cut_off, x};
    write_file(1, (entry[]){{"p.x", CTN_F32, 1, {2}}});
    assert_fails(ctn_state_load(FILE_NAME, 1, &part), CTN_EIO, FILE_NAME ": became shorter");
    unlink(FILE_NAME);
}

/* ---- the state of a training ----------------------------------------------------------------- */

enum { SAMPLES = 23, BATCH = 4 };

typedef struct {
    model m;
    ctn_optim *opt;
    ctn_dataset *ds;
    ctn_loader *loader;
} training;

static float images[SAMPLES][5];
static int64_t labels[SAMPLES];

static ctn_status start(training *t, uint64_t seed)
{
    ctn_status st = CTN_OK;
    ctn_sampler *s = NULL;
    const ctn_field f[2] = {{CTN_F32, 1, {5}, 0}, {CTN_I64, 0, {0}, 0}};
    *t = (training){0};
    CTN_TRY_GOTO(st, done, make(&t->m, seed));
    CTN_TRY_GOTO(st, done, ctn_adam_new(&t->opt, ctn_params(t->m.net), NULL));
    CTN_TRY_GOTO(st, done,
                 ctn_arrays_open(&t->ds, SAMPLES, 2, f, (const void *const[]){images, labels}));
    CTN_TRY_GOTO(st, done, ctn_sampler_shuffled(&s, SAMPLES, seed));
    CTN_TRY_GOTO(st, done,
                 ctn_loader_new(&t->loader, t->ds, s, CTN_OPT(ctn_loader_opt, .batch = BATCH)));
done:
    ctn_sampler_free(s);
    return st;
}

static void stop(training *t)
{
    ctn_optim_free(t->opt);
    ctn_loader_free(t->loader);
    ctn_dataset_free(t->ds);
    end(&t->m);
}

static void step(training *t, float *loss)
{
    ctn_batch b;
    ctn_status st = ctn_loader_next(t->loader, &b);
    if (st == CTN_END) st = ctn_loader_next(t->loader, &b);
    OK(st);
    ctn_context *ctx = t->m.ctx;
    OK(ctn_scope_begin(ctx));
    ctn_tensor *y = ctn_call(t->m.net, ctn_batch_tensor(ctx, &b, 0));
    ctn_tensor *l = ctn_softmax_cross_entropy(y, ctn_batch_tensor(ctx, &b, 1));
    OK(ctn_backward(t->opt, l));
    OK(ctn_optim_step(t->opt));
    OK(ctn_read(l, loss, sizeof *loss));
    OK(ctn_scope_end(ctx));
}

static int parts(training *t, ctn_state_part p[4])
{
    p[0] = ctn_part_module("model", t->m.net);
    p[1] = ctn_part_optim("optim", t->opt);
    p[2] = ctn_part_context("context", t->m.ctx);
    p[3] = ctn_part_loader("data", t->loader);
    return 4;
}

static void make_data(void)
{
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < 5; k++)
            images[i][k] = (float)ctn__normal(1, 2, (uint64_t)i * 5 + (uint64_t)k);
        labels[i] = i % 3;
    }
}

static void test_continues_exactly(void **state)
{
    (void)state;
    training a, b;
    ctn_state_part p[4];
    float loss[5], again;
    make_data();
    OK(start(&a, 11));
    for (int i = 0; i < 9; i++) /* into the second epoch */
        step(&a, &loss[0]);
    OK(ctn_state_save(FILE_NAME, parts(&a, p), p));
    for (int i = 0; i < 5; i++) step(&a, &loss[i]);

    OK(start(&b, 12));
    step(&b, &again); /* it has trained a little, with other values */
    ctn_optim_set_lr(b.opt, 0.5);
    OK(ctn_state_load(FILE_NAME, parts(&b, p), p));
    ctn_context_state c;
    ctn_context_get_state(b.m.ctx, &c);
    assert_int_equal(c.seed, 11);
    assert_int_equal(c.step, 9);
    assert_int_equal(ctn_optim_steps(b.opt), 9);
    for (int i = 0; i < 5; i++) {
        step(&b, &again);
        assert_memory_equal(&again, &loss[i], sizeof again);
    }
    assert_same(&a.m, &b.m, true);

    /* Only the weights from the whole state. */
    model m;
    OK(make(&m, 13));
    OK(ctn_state_load(FILE_NAME, 1, &(ctn_state_part){"model", p[0].visit, m.net}));
    const char *const table[] = {"", "model", NULL};
    OK(ctn_weights_load(m.net, FILE_NAME, CTN_OPT(ctn_weights_opt, .partial = 1, .rename = table)));
    end(&m);
    stop(&a);
    stop(&b);
    unlink(FILE_NAME);
}

static void test_state_refusals(void **state)
{
    (void)state;
    training a;
    ctn_state_part p[4];
    ctn_optim *sgd = NULL;
    model m;
    make_data();
    OK(start(&a, 1));
    OK(make(&m, 2));
    OK(ctn_sgd_new(&sgd, ctn_params(m.net), NULL));
    values before = all_values(&m);
    OK(ctn_state_save(FILE_NAME, parts(&a, p), p));

    ctn_state_part q[2] = {ctn_part_module("model", m.net), ctn_part_optim("optim", sgd)};
    assert_fails(ctn_state_load(FILE_NAME, 2, q), CTN_ENOTFOUND, "under 'optim'");
    q[1] = ctn_part_context("nothing", m.ctx);
    assert_fails(ctn_state_load(FILE_NAME, 2, q), CTN_ENOTFOUND, "nothing.seed is not in");
    values after = all_values(&m);
    assert_memory_equal(before.at, after.at, BYTES);

    q[1] = q[0];
    assert_fails(ctn_state_save("x.safetensors", 2, q), CTN_EARG, "was already added");
    assert_int_equal(access("x.safetensors", F_OK), -1);
    q[1].object = NULL;
    assert_fails(ctn_state_save("x.safetensors", 2, q), CTN_EARG, "part 1 has no object");
    write_file(1, (entry[]){{"model.seen", CTN_F32, 0, {0}}});
    assert_fails(ctn_state_load(FILE_NAME, 1, q), CTN_EDTYPE,
                 "model.seen is i64 in this program and f32");
    write_file(1, (entry[]){{"model.seen", CTN_I64, 1, {1}}});
    assert_fails(ctn_state_load(FILE_NAME, 1, q), CTN_ESHAPE,
                 "model.seen is () in this program and (1)");
    ctn_optim_free(sgd);
    end(&m);
    stop(&a);
    unlink(FILE_NAME);
}

/* ---- a failing allocator --------------------------------------------------------------------- */

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

static ctn_status save_and_load(void)
{
    ctn_status st = CTN_OK;
    training t;
    model m = {0};
    ctn_state_part p[4];
    CTN_TRY_GOTO(st, done, start(&t, 1));
    CTN_TRY_GOTO(st, done, make(&m, 2));
    CTN_TRY_GOTO(st, done, ctn_state_save(FILE_NAME, parts(&t, p), p));
    CTN_TRY_GOTO(st, done, ctn_state_load(FILE_NAME, parts(&t, p), p));
    CTN_TRY_GOTO(st, done, ctn_weights_save(t.m.net, FILE_NAME));
    CTN_TRY_GOTO(st, done, ctn_weights_load(m.net, FILE_NAME, NULL));
done:
    stop(&t);
    end(&m);
    return st;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    OK(ctn_set_allocator(&(ctn_allocator){limited_alloc, limited_release, NULL}));
    ctn_status st = CTN_ENOMEM;
    int64_t n = 0;
    for (; st < 0; n++) {
        allowed = n;
        st = save_and_load();
        allowed = INT64_MAX;
        if (st < 0 && st != CTN_ENOMEM) fail_msg("at %d: %s", (int)n, ctn_error_message());
        ctn_error_clear();
        assert_int_equal(alive, 0);
        assert_true(n < 2000);
    }
    assert_true(n > 50);
    OK(ctn_set_allocator(NULL));
    unlink(FILE_NAME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_out_of_memory), /* must run before anything else allocates */
        cmocka_unit_test(test_round_trip),      cmocka_unit_test(test_strict),
        cmocka_unit_test(test_partial),         cmocka_unit_test(test_renamed),
        cmocka_unit_test(test_conversion),      cmocka_unit_test(test_continues_exactly),
        cmocka_unit_test(test_state_refusals),  cmocka_unit_test(test_weights_shortened),
        cmocka_unit_test(test_state_shortened), cmocka_unit_test(test_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
