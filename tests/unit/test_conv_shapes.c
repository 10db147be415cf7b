/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions of random shapes, most of them narrow, in f32 against f64, which runs on kernels of
 * its own: results and both gradients. Strides, padding and dilation are drawn for each dimension.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <catena/catena.h>

#include <cmocka.h>

#include "../support/ok.h"

enum { CASES = 1200 };

static uint32_t seed = 1;

static int64_t draw(int64_t low, int64_t high)
{
    seed = seed * 1664525u + 1013904223u;
    return low + (int64_t)(seed >> 8) % (high - low + 1);
}

static int64_t one_of(int n, const int64_t *list)
{
    return list[draw(0, n - 1)];
}

typedef struct {
    int ndim, transposed;
    int64_t x[5], w[5];
    ctn_conv_opt opt;
} problem;

/* 0 in pad stands for CTN_PAD_NONE. */
static problem draw_problem(void)
{
    static const int64_t channels[] = {1, 1, 2, 3, 8, 16}, strides[] = {1, 1, 2, 3, 4, 17};
    static const int64_t more[] = {0, 0, 1, 2, 6, 13};
    const int64_t groups = draw(0, 3) ? 1 : 2;
    problem p = {.ndim = (int)draw(3, 5), .transposed = draw(0, 3) == 0};
    p.opt = (ctn_conv_opt){.struct_size = sizeof p.opt, .groups = groups};
    const int64_t in = one_of(6, channels), out = one_of(6, channels);
    p.x[0] = draw(1, 2);
    p.x[1] = groups * in;
    p.w[0] = p.transposed ? groups * in : groups * out;
    p.w[1] = p.transposed ? out : in;
    for (int i = 0; i < p.ndim - 2; i++) {
        const int64_t k = draw(1, 4), d = draw(0, 3) ? 1 : 2, reach = (k - 1) * d + 1;
        const int64_t pad = draw(0, 1) ? 0 : draw(0, reach - 1);
        p.w[2 + i] = k;
        p.opt.dilation[i] = d;
        p.opt.stride[i] = one_of(6, strides);
        p.opt.pad[i] = pad ? pad : CTN_PAD_NONE;
        p.x[2 + i] = one_of(6, more) + (p.transposed ? 1 : reach);
        if (p.transposed && (p.x[2 + i] - 1) * p.opt.stride[i] + reach <= 2 * pad)
            p.opt.pad[i] = CTN_PAD_NONE;
    }
    return p;
}

static int64_t count(int n, const int64_t *dim)
{
    int64_t all = 1;
    for (int i = 0; i < n; i++) all *= dim[i];
    return all;
}

/* y, and how a step with learning rate 1 changes x and w. */
typedef struct {
    double *y, *x, *w;
    int64_t ny, nx, nw;
} results;

static double *values(int64_t n)
{
    double *v = malloc((size_t)n * sizeof *v);
    assert_non_null(v);
    for (int64_t i = 0; i < n; i++) v[i] = (double)draw(-1000, 1000) / 1024;
    return v;
}

/* Gets or sets a variable in doubles. */
static void transfer(ctn_var *v, double *to, const double *from, int64_t n)
{
    const bool f64 = ctn_var_desc(v)->dtype == CTN_F64;
    const size_t bytes = (size_t)n * (f64 ? 8 : 4);
    void *p = malloc(bytes);
    assert_non_null(p);
    if (to) OK(ctn_var_get(v, p, bytes));
    for (int64_t i = 0; i < n; i++) {
        if (to) to[i] = f64 ? ((double *)p)[i] : (double)((float *)p)[i];
        else if (f64) ((double *)p)[i] = from[i];
        else ((float *)p)[i] = (float)from[i];
    }
    if (from) OK(ctn_var_set(v, p, bytes));
    free(p);
}

static void run(const problem *p, ctn_precision precision, uint32_t from, results *r)
{
    ctn_context *ctx = NULL;
    ctn_module *m = NULL;
    ctn_var *x = NULL, *w = NULL;
    ctn_optim *opt = NULL;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1, .precision = precision)));
    OK(ctn_module_new(&m, ctx, NULL, NULL, NULL));
    const ctn_dtype type = ctn_context_float_type(ctx);
    OK(ctn_module_param(&x, m, "x", type, p->ndim, p->x, NULL));
    OK(ctn_module_param(&w, m, "w", type, p->ndim, p->w, NULL));
    r->nx = count(p->ndim, p->x);
    r->nw = count(p->ndim, p->w);
    seed = from;
    double *vx = values(r->nx), *vw = values(r->nw);
    transfer(x, NULL, vx, r->nx);
    transfer(w, NULL, vw, r->nw);
    OK(ctn_sgd_new(&opt, ctn_params(m), CTN_OPT(ctn_sgd_opt, .lr = 1)));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *y = p->transposed ? ctn_conv_transpose(ctn_use(x), ctn_use(w), NULL, &p->opt)
                                  : ctn_conv(ctn_use(x), ctn_use(w), NULL, &p->opt);
    if (!y) fail_msg("%s", ctn_error_message());
    r->ny = ctn_count(y);
    int64_t dims[5];
    for (int i = 0; i < p->ndim; i++) dims[i] = ctn_dim(y, i);
    double *gradient = values(r->ny);
    ctn_tensor *g = ctn_input(ctx, gradient, CTN_F64, p->ndim, dims);
    OK(ctn_backward(opt, ctn_sum(ctn_mul(y, ctn_cast(g, type)), CTN_ALL_AXES, 0)));
    const void *data = ctn_data(y);
    if (!data) fail_msg("%s", ctn_error_message());
    r->y = malloc((size_t)r->ny * sizeof *r->y);
    for (int64_t i = 0; i < r->ny; i++)
        r->y[i] = type == CTN_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
    OK(ctn_optim_step(opt));
    OK(ctn_scope_end(ctx));
    free(gradient);
    r->x = vx;
    r->w = vw;
    double *after = malloc((size_t)(r->nx + r->nw) * sizeof *after);
    transfer(x, after, NULL, r->nx);
    transfer(w, after + r->nx, NULL, r->nw);
    for (int64_t i = 0; i < r->nx; i++) vx[i] -= after[i];
    for (int64_t i = 0; i < r->nw; i++) vw[i] -= after[r->nx + i];
    free(after);
    ctn_optim_free(opt);
    ctn_module_free(m);
    ctn_context_free(ctx);
}

static void compare(const problem *p, const char *what, const double *a, const double *b, int64_t n)
{
    double most = 1;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(b[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(a[i] - b[i]) <= 1e-5 * most))
            fail_msg("%s %lld is %g in f32 and %g in f64: x (%lld,%lld,%lld,%lld,%lld), w "
                     "(%lld,%lld,%lld,%lld,%lld), %d dimensions, stride %lld %lld %lld, pad %lld "
                     "%lld %lld, dilation %lld %lld %lld, groups %lld, transposed %d",
                     what, (long long)i, a[i], b[i], (long long)p->x[0], (long long)p->x[1],
                     (long long)p->x[2], (long long)p->x[3], (long long)p->x[4], (long long)p->w[0],
                     (long long)p->w[1], (long long)p->w[2], (long long)p->w[3], (long long)p->w[4],
                     p->ndim, (long long)p->opt.stride[0], (long long)p->opt.stride[1],
                     (long long)p->opt.stride[2], (long long)p->opt.pad[0],
                     (long long)p->opt.pad[1], (long long)p->opt.pad[2],
                     (long long)p->opt.dilation[0], (long long)p->opt.dilation[1],
                     (long long)p->opt.dilation[2], (long long)p->opt.groups, p->transposed);
}

static void results_free(results *r)
{
    free(r->y);
    free(r->x);
    free(r->w);
}

static void shapes(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        results a = {0}, b = {0};
        const problem p = draw_problem();
        const uint32_t from = seed;
        run(&p, CTN_PRECISION_F32, from, &a);
        run(&p, CTN_PRECISION_F64, from, &b);
        assert_int_equal(a.ny, b.ny);
        compare(&p, "result", a.y, b.y, a.ny);
        compare(&p, "gradient of x", a.x, b.x, a.nx);
        compare(&p, "gradient of w", a.w, b.w, a.nw);
        results_free(&a);
        results_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest all[] = {cmocka_unit_test(shapes)};
    return cmocka_run_group_tests(all, NULL, NULL);
}
