/* SPDX-License-Identifier: Apache-2.0
 *
 * Which kernel computes a node. Each way gives the same gradients. The choice is timed before
 * the first step of a context and stored in the folder of tuning results, where the next context
 * finds it and times nothing. Without timing, or without a writable folder, training still
 * works.
 * Labels: serial
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
#include <sys/stat.h>
#include <unistd.h>

#include <catena/log.h>
#include <catena/ops.h>
#include <catena/optim.h>
#include <catena/tune.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "graph/graph.h"
#include "support/machine.h"
#include "support/ok.h"

/* 3x3 and 1x1 kernels with strides 1 and 2, with enough work to be worth timing (10^7
 * operations). */
enum { N = 8, C = 64, SIDE = 14, LAYERS = 4 };
static const struct {
    int64_t k, stride, dilation;
} layer[LAYERS] = {{3, 1, 1}, {1, 1, 1}, {3, 1, 2}, {3, 2, 1}};
enum { MOST = C * C * 9 };

typedef struct {
    float grad[LAYERS][MOST];
    char text[32768];
} outcome;

static char folder[256]; /* of one test */
static int warnings;
static char warning[512];

static void on_warning(void *user, const char *message)
{
    (void)user;
    warnings++;
    snprintf(warning, sizeof warning, "%s", message);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "./tune-XXXXXX");
    unsetenv("CATENA_KERNEL");
    unsetenv("CATENA_TUNE");
    warnings = 0;
    ctn_set_log(on_warning, NULL);
    return !mkdtemp(folder) || setenv("CATENA_CACHE_DIR", folder, 1) != 0;
}

static int tear_down(void **state)
{
    (void)state;
    ctn_set_log(NULL, NULL);
    setenv("CATENA_CACHE_DIR", folder, 1);
    OK(ctn_tune_clear(NULL));
    return rmdir(folder);
}

static void fill(float *x, int n, float size)
{
    for (int i = 0; i < n; i++) x[i] = size * (float)((i * 7919 + n) % 10007 - 5000) / 5000;
}

static void train(ctn_context *c, int steps, outcome *out)
{
    static float x[N * C * SIDE * SIDE], w[MOST];
    ctn_var *v[LAYERS];
    ctn_optim *o;
    fill(x, N * C * SIDE * SIDE, 1);
    for (int i = 0; i < LAYERS; i++) {
        int64_t k = layer[i].k;
        OK(ctn_var_new(&v[i], c, "w", CTN_PARAM, CTN_F32, CTN_SHAPE(C, C, k, k)));
        fill(w, C * C * (int)(k * k), 0.1f);
        OK(ctn_var_set(v[i], w, (size_t)(C * C * k * k) * sizeof *w));
    }
    OK(ctn_sgd_new(&o, (ctn_vars){LAYERS, v, NULL}, NULL));
    for (int s = 0; s < steps; s++) {
        OK(ctn_scope_begin(c));
        ctn_tensor *h = ctn_input(c, x, CTN_F32, CTN_SHAPE(N, C, SIDE, SIDE));
        for (int i = 0; i < LAYERS; i++)
            h = ctn_tanh(
                ctn_conv(h, ctn_use(v[i]), NULL,
                         CTN_OPT(ctn_conv_opt, .pad = {layer[i].k / 2}, .stride = {layer[i].stride},
                                 .dilation = {layer[i].dilation})));
        OK(ctn_backward(o, ctn_mean(ctn_square(h), CTN_ALL_AXES, 0)));
        OK(ctn_optim_step(o));
        OK(ctn_scope_end(c));
    }
    memset(out, 0, sizeof *out);
    for (int i = 0; i < LAYERS; i++)
        memcpy(out->grad[i], v[i]->grad, (size_t)(C * C * layer[i].k * layer[i].k) * sizeof(float));
    assert_true(ctn_context_plan_text(c, out->text, sizeof out->text) < (int)sizeof out->text);
    ctn_optim_free(o);
    for (int i = 0; i < LAYERS; i++) ctn_var_free(v[i]);
}

static void train_new(ctn_precision precision, int threads, outcome *out)
{
    ctn_context *c;
    OK(ctn_context_new(&c, CTN_OPT(ctn_context_opt, .threads = threads, .precision = precision)));
    train(c, 1, out);
    ctn_context_free(c);
}

static void assert_close(const outcome *a, const outcome *b, double tolerance)
{
    for (int i = 0; i < LAYERS; i++) {
        double d = 0, s = 0;
        for (int k = 0; k < MOST; k++) {
            d += pow((double)a->grad[i][k] - (double)b->grad[i][k], 2);
            s += pow((double)b->grad[i][k], 2);
        }
        if (!(s > 0) || !(sqrt(d) <= tolerance * sqrt(s)))
            fail_msg("gradient %d differs by %g of %g", i, sqrt(d), sqrt(s));
    }
}

/* Lists the kernels of the weight gradients, which show the choices. */
static void choices(const outcome *o, char *buf, size_t n)
{
    buf[0] = 0;
    for (const char *line = o->text; line && *line; line = strchr(line, '\n')) {
        while (*line == '\n') line++;
        const char *kernel = strstr(line, "  ["), *end = strchr(line, '\n');
        char name[64] = "";
        if (sscanf(line, " %*d %63s", name) != 1 || strcmp(name, "conv_weights") != 0) continue;
        if (!kernel || !end || kernel > end) continue;
        size_t used = strlen(buf);
        snprintf(buf + used, n - used, "%.*s", (int)(strcspn(kernel, "]") + 1), kernel);
    }
}

typedef struct {
    int files, entries;
    int64_t bytes;
    char text[8192], path[512], machine[512];
} found;

static ctn_status on_entry(void *user, const ctn_tune_file *file, const char *key,
                           const char *value)
{
    found *f = user;
    size_t used = strlen(f->text);
    if (!key) {
        f->files++;
        f->bytes += file->bytes;
        snprintf(f->path, sizeof f->path, "%s", file->path);
        snprintf(f->machine, sizeof f->machine, "%s", file->machine ? file->machine : "");
        return CTN_OK;
    }
    f->entries++;
    snprintf(f->text + used, sizeof f->text - used, "%s = %s\n", key, value);
    return CTN_OK;
}

static void look(found *f)
{
    memset(f, 0, sizeof *f);
    OK(ctn_tune_visit(on_entry, f));
}

static void each_way_gives_the_same(void **state)
{
    (void)state;
    static outcome conv, matmul, unknown;
    char a[1024], b[1024];
    for (int low = 0; low < 1 + test_has_bf16(); low++) {
        ctn_precision p = low ? CTN_PRECISION_BF16 : CTN_PRECISION_F32;
        setenv("CATENA_TUNE", "0", 1); /* nodes without a way of that name use their first one */
        setenv("CATENA_KERNEL", "conv", 1);
        train_new(p, 2, &conv);
        setenv("CATENA_KERNEL", "matmul", 1);
        train_new(p, 2, &matmul);
        assert_close(&matmul, &conv, low ? 5e-3 : 1e-5);
        choices(&conv, a, sizeof a);
        choices(&matmul, b, sizeof b);
        assert_string_not_equal(a, b);          /* otherwise nothing was forced */
        setenv("CATENA_KERNEL", "nonsense", 1); /* no such way: use the first */
        train_new(p, 2, &unknown);
        assert_memory_equal(unknown.grad, conv.grad, sizeof conv.grad);
        unsetenv("CATENA_TUNE");
    }
}

static void timed_once_and_kept(void **state)
{
    (void)state;
    static outcome first, second;
    static found before, after;
    char a[1024], b[1024];
    train_new(CTN_PRECISION_F32, 1, &first);
    look(&before);
    assert_int_equal(before.files, 1);
    int weights = 0;
    for (const char *p = before.text; (p = strstr(p, "conv_weights ")); p++) weights++;
    assert_int_equal(weights, LAYERS);
    assert_non_null(strstr(before.machine, "1 threads"));
    struct stat was, is;
    assert_int_equal(stat(before.path, &was), 0);
    train_new(CTN_PRECISION_F32, 1, &second);
    look(&after);
    assert_string_equal(after.text, before.text);
    assert_int_equal(stat(before.path, &is), 0);
    assert_memory_equal(&is.st_mtim, &was.st_mtim, sizeof is.st_mtim);
    assert_int_equal(is.st_ino, was.st_ino); /* it was not even replaced */
    choices(&first, a, sizeof a);
    choices(&second, b, sizeof b);
    assert_string_equal(a, b);
    assert_memory_equal(first.grad, second.grad, sizeof first.grad);
    train_new(CTN_PRECISION_F32, 2, &second); /* another thread count counts as another machine */
    look(&after);
    assert_int_equal(after.files, 2);
    assert_int_equal(warnings, 0);
}

/* If the table has an entry, the entry decides, whoever made it. */
static void table_is_obeyed(void **state)
{
    (void)state;
    static outcome forced, tabled;
    static found f;
    static char text[16384];
    char a[1024], b[1024];
    static const char *const way[] = {"conv", "matmul"};
    train_new(CTN_PRECISION_F32, 1, &tabled);
    look(&f);
    for (int k = 0; k < 2; k++) {
        FILE *in = fopen(f.path, "r");
        assert_non_null(in);
        size_t n = fread(text, 1, sizeof text - 1, in);
        fclose(in);
        text[n] = 0;
        FILE *out = fopen(f.path, "w");
        assert_non_null(out);
        bool head = true;
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), head = false) {
            char *tab = strrchr(line, '\t');
            assert_non_null(tab);
            if (head) fprintf(out, "%s\n", line);
            else
                fprintf(out, "%.*s\t%s\n", (int)(tab - line), line,
                        strncmp(line, "conv_weights ", 13) == 0 ? way[k] : "conv");
        }
        fclose(out);
        train_new(CTN_PRECISION_F32, 1, &tabled);
        setenv("CATENA_KERNEL", way[k], 1);
        train_new(CTN_PRECISION_F32, 1, &forced);
        unsetenv("CATENA_KERNEL");
        choices(&tabled, a, sizeof a);
        choices(&forced, b, sizeof b);
        assert_string_equal(a, b);
        assert_memory_equal(tabled.grad, forced.grad, sizeof forced.grad);
    }
}

static void not_timed(void **state)
{
    (void)state;
    static outcome tuned;
    static found f;
    setenv("CATENA_TUNE", "0", 1);
    train_new(CTN_PRECISION_F32, 2, &tuned);
    look(&f);
    assert_int_equal(f.files, 0);
    unsetenv("CATENA_TUNE");
    ctn_context *c;
    OK(ctn_context_new(&c, CTN_OPT(ctn_context_opt, .threads = 1, .mode = CTN_MODE_EAGER)));
    train(c, 1, &tuned); /* in eager mode there is no step to plan for */
    look(&f);
    assert_int_equal(f.files, 0);
    ctn_context_free(c);
    OK(ctn_context_new(&c, CTN_OPT(ctn_context_opt, .threads = 1)));
    ctn_var *v;
    ctn_optim *o;
    OK(ctn_var_new(&v, c, "v", CTN_PARAM, CTN_F32, CTN_SHAPE(4)));
    OK(ctn_sgd_new(&o, (ctn_vars){1, &v, NULL}, NULL));
    OK(ctn_scope_begin(c));
    OK(ctn_backward(o, ctn_sum(ctn_use(v), CTN_ALL_AXES, 0)));
    OK(ctn_optim_step(o));
    OK(ctn_scope_end(c));
    train(c, 2, &tuned); /* after the first step nothing is timed any more (rule 10) */
    look(&f);
    assert_int_equal(f.files, 0);
    ctn_optim_free(o);
    ctn_var_free(v);
    ctn_context_free(c);
    assert_int_equal(warnings, 0);
}

static void folder_cannot_be_written(void **state)
{
    (void)state;
    static outcome there, nowhere;
    char file[300], below[320];
    train_new(CTN_PRECISION_F32, 1, &there);
    snprintf(file, sizeof file, "%s/file", folder);
    snprintf(below, sizeof below, "%s/below", file);
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fclose(f);
    setenv("CATENA_CACHE_DIR", below, 1);
    ctn_context *c;
    OK(ctn_context_new(&c, CTN_OPT(ctn_context_opt, .threads = 1)));
    train(c, 3, &nowhere);
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(warning, below));
    train(c, 2, &nowhere);
    assert_int_equal(warnings, 1);
    ctn_context_free(c);
    train_new(CTN_PRECISION_F32, 1, &nowhere);
    assert_close(&nowhere, &there, 1e-5);
    assert_int_equal(ctn_error_status(), CTN_OK);
    unlink(file);
}

/* The second kernel of a convolution is really another one, whatever was created before it. */
static void second_kernel_is_another(void **state)
{
    (void)state;
    ctn__engine *e = NULL;
    const ctn__conv_shape s = {
        .stride = {1, 1}, .pad = {1, 1}, .pad_end = {1, 1}, .dilation = {1, 1}, .groups = 1};
    const ctn__conv_post post = {0};
    OK(ctn__engine_new(&e, 1));
    for (int kind = CTN__CONV_FORWARD; kind <= CTN__CONV_WEIGHTS; kind++) {
        ctn__prim *p[3] = {0};
        ctn_desc x = {.dtype = CTN_F32, .ndim = 4, .dim = {N, C, SIDE, SIDE}};
        ctn_desc w = {.dtype = CTN_F32, .ndim = 4, .dim = {C, C, 3, 3}};
        ctn__channels_last(&x);
        ctn__plain(&w);
        for (int i = 0; i < 3; i++) { /* first, second, first again */
            ctn_desc want = w;
            OK(ctn__prim_conv(&p[i], e, (ctn__conv_kind)kind, &s, &x, &want, NULL, &x, &post,
                              i == 1));
        }
        if (p[1]) assert_string_not_equal(ctn__prim_name(p[0]), ctn__prim_name(p[1]));
        assert_string_equal(ctn__prim_name(p[0]), ctn__prim_name(p[2]));
        for (int i = 0; i < 3; i++) ctn__prim_free(p[i]);
    }
    ctn__engine_free(e);
}

/* Timing is reported once it has taken a second, and again when it has finished. */
static void timing_is_told(void **state)
{
    (void)state;
    ctn__engine *e;
    ctn_set_notice(on_warning, NULL);
    OK(ctn__engine_new(&e, 1));
    ctn__engine_timed(e, 900000000);
    assert_int_equal(warnings, 0);
    ctn__engine_timed(e, 900000000);
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(warning, "CATENA_TUNE=0"));
    ctn__engine_timed(e, 900000000);
    assert_int_equal(warnings, 1);
    OK(ctn__choice_put(e, "problem", "way"));
    OK(ctn__choices_save(e));
    assert_int_equal(warnings, 2);
    assert_non_null(strstr(warning, "2.7 s"));
    assert_non_null(strstr(warning, folder));
    ctn__engine_free(e);
    ctn_set_notice(NULL, NULL);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(each_way_gives_the_same),  T(timed_once_and_kept),      T(table_is_obeyed), T(not_timed),
        T(folder_cannot_be_written), T(second_kernel_is_another), T(timing_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
