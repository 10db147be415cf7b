/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX's own tests of single nodes: a model, its inputs and the expected outputs. Without arguments
 * it runs the selection in nodes.bin, which contains every supported op. With a file that
 * dev/onnx-nodes wrote as argument, it runs that file and prints one line per case: pass, fail or
 * refused, the name, and why. With --speed after the file, each line has the least CPU time of a
 * call.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <catena/catena.h>
#include <catena/onnx.h>

#include <cmocka.h>

#include "onnx/onnx.h"

#ifdef CTN_HAVE_PROTOBUFC

enum { MOST = 64 }; /* inputs or outputs of a case */

/* The file, and how much of it has been read. */
typedef struct {
    unsigned char *data;
    size_t n, at;
} reader;

typedef struct {
    int dtype; /* 0: left out */
    int ndim;
    int64_t dim[CTN_MAX_DIMS], count;
    void *data; /* in memory of its own, for alignment */
} array;

typedef struct {
    char name[256];
    const unsigned char *model;
    size_t bytes;
    double rtol, atol;
    int nin, nout;
    array in[MOST], out[MOST];
} node_case;

static void take(reader *r, void *to, size_t bytes)
{
    if (bytes > r->n - r->at) {
        fprintf(stderr, "the file of cases is cut off\n");
        exit(1);
    }
    memcpy(to, r->data + r->at, bytes);
    r->at += bytes;
}

static uint32_t take_number(reader *r)
{
    uint32_t v;
    take(r, &v, sizeof v);
    return v;
}

static void take_array(reader *r, array *a)
{
    memset(a, 0, sizeof *a);
    a->dtype = (int)take_number(r);
    if (a->dtype == 0) return;
    a->ndim = (int)take_number(r);
    a->count = 1;
    take(r, a->dim, (size_t)a->ndim * sizeof *a->dim);
    for (int i = 0; i < a->ndim; i++) a->count *= a->dim[i];
    const size_t bytes = (size_t)a->count * ctn_dtype_size((ctn_dtype)a->dtype);
    a->data = malloc(bytes + 1);
    take(r, a->data, bytes);
}

static void take_case(reader *r, node_case *c)
{
    const uint32_t length = take_number(r);
    take(r, c->name, length);
    c->name[length] = 0;
    take(r, &c->rtol, sizeof c->rtol);
    take(r, &c->atol, sizeof c->atol);
    c->bytes = take_number(r);
    c->model = r->data + r->at;
    r->at += c->bytes;
    c->nin = (int)take_number(r);
    for (int i = 0; i < c->nin; i++) take_array(r, &c->in[i]);
    c->nout = (int)take_number(r);
    for (int i = 0; i < c->nout; i++) take_array(r, &c->out[i]);
}

static void drop_case(node_case *c)
{
    for (int i = 0; i < c->nin; i++) free(c->in[i].data);
    for (int i = 0; i < c->nout; i++) free(c->out[i].data);
}

/* ---- comparison ------------------------------------------------------------------------------ */

static bool same(double a, double b, double rtol, double atol)
{
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b)) return a == b;
    return fabs(a - b) <= atol + rtol * fabs(b);
}

static ctn_status compare(const node_case *c, int k, ctn_tensor *y)
{
    const array *want = &c->out[k];
    bool shape = ctn_ndim(y) == want->ndim && (int)ctn_dtype_of(y) == want->dtype;
    for (int i = 0; shape && i < want->ndim; i++) shape = ctn_dim(y, i) == want->dim[i];
    if (!shape) {
        char text[200];
        ctn_tensor_text(y, text, sizeof text);
        return ctn_fail(CTN_ESHAPE, "output %d is %s %.60s, expected %s with %d dims, first %lld",
                        k, ctn_dtype_name(ctn_dtype_of(y)), text,
                        ctn_dtype_name((ctn_dtype)want->dtype), want->ndim,
                        (long long)want->dim[0]);
    }
    const void *got = ctn_data(y);
    if (!got) return ctn_error_status();
    for (int64_t i = 0; i < want->count; i++) {
        const double a = ctn__elem_get(got, (ctn_dtype)want->dtype, i);
        const double b = ctn__elem_get(want->data, (ctn_dtype)want->dtype, i);
        if (!same(a, b, c->rtol, c->atol))
            return ctn_fail(CTN_EARG, "output %d, element %lld of %lld: got %.8g, expected %.8g", k,
                            (long long)i, (long long)want->count, a, b);
    }
    return CTN_OK;
}

static ctn_status run_case(ctn_context *ctx, const node_case *c)
{
    ctn_module *m = NULL;
    ctn_tensor *x[MOST] = {NULL}, *y[MOST] = {NULL};
    ctn_status st = ctn__onnx_open_bytes(&m, ctx, c->name, c->model, c->bytes, NULL);
    if (st < 0) return st;
    ctn_scope_begin(ctx);
    for (int i = 0; i < c->nin; i++)
        if (c->in[i].dtype)
            x[i] = ctn_input(ctx, c->in[i].data, (ctn_dtype)c->in[i].dtype, c->in[i].ndim,
                             c->in[i].dim);
    st = ctn_onnx_run(m, c->nin, x, c->nout, y);
    for (int i = 0; i < c->nout && st == CTN_OK; i++)
        if (c->out[i].dtype) st = compare(c, i, y[i]);
    if (ctn_scope_end(ctx) < 0 && st == CTN_OK) st = ctn_error_status();
    ctn_module_free(m);
    return st;
}

/* The least CPU time of a call in milliseconds, on one thread. */
static double time_case(ctn_context *ctx, const node_case *c)
{
    ctn_module *m = NULL;
    double best = INFINITY;
    if (ctn__onnx_open_bytes(&m, ctx, c->name, c->model, c->bytes,
                             CTN_OPT(ctn_onnx_opt, .frozen = 1)) < 0)
        return best;
    for (int k = 0; k < 12; k++) {
        ctn_tensor *x[MOST] = {NULL}, *y[MOST] = {NULL};
        const clock_t start = clock();
        ctn_scope_begin(ctx);
        for (int i = 0; i < c->nin; i++)
            if (c->in[i].dtype)
                x[i] = ctn_input(ctx, c->in[i].data, (ctn_dtype)c->in[i].dtype, c->in[i].ndim,
                                 c->in[i].dim);
        if (ctn_onnx_run(m, c->nin, x, c->nout, y) < 0 || !ctn_data(y[0])) break;
        ctn_scope_end(ctx);
        const double ms = 1e3 * (double)(clock() - start) / CLOCKS_PER_SEC;
        if (ms < best) best = ms;
    }
    ctn_module_free(m);
    return best;
}

/* ---- files ----------------------------------------------------------------------------------- */

static reader read_file(const char *path)
{
    reader r = {0};
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "cannot open %s\n", path);
        exit(1);
    }
    fseek(f, 0, SEEK_END);
    r.n = (size_t)ftell(f);
    fseek(f, 0, SEEK_SET);
    r.data = malloc(r.n + 1);
    if (fread(r.data, 1, r.n, f) != r.n) exit(1);
    fclose(f);
    return r;
}

/* Returns the number of cases that fail or are refused. */
static int run_file(const char *path, bool all, bool speed)
{
    static node_case c;
    reader r = read_file(path);
    ctn_context *ctx = NULL;
    if (ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)) < 0) exit(1);
    ctn_context_set_training(ctx, 0);
    int bad = 0;
    for (uint32_t left = take_number(&r); left > 0; left--) {
        take_case(&r, &c);
        const ctn_status st = run_case(ctx, &c);
        if (st < 0) bad++;
        if (all || st < 0) {
            char line[300];
            snprintf(line, sizeof line, "%s", st < 0 ? ctn_error_message() : "");
            for (char *p = line; *p; p++)
                if (*p == '\n') *p = ' ';
            printf("%s %s %s%s",
                   st == CTN_OK             ? "pass"
                   : st == CTN_EUNSUPPORTED ? "refused"
                                            : "fail",
                   c.name, line, speed && st == CTN_OK ? "" : "\n");
            if (speed && st == CTN_OK) printf("    %.2f ms\n", time_case(ctx, &c));
            fflush(stdout);
        }
        ctn_error_clear();
        drop_case(&c);
    }
    ctn_context_free(ctx);
    free(r.data);
    return bad;
}

static void test_selection(void **state)
{
    (void)state;
    assert_int_equal(run_file(CTN_TESTS_DIR "/onnx/nodes.bin", false, false), 0);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        run_file(argv[1], true, argc > 2 && strcmp(argv[2], "--speed") == 0);
        return 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_selection)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77;
}

#endif
