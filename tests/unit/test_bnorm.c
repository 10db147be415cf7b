/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalisation kernels (engine/bnorm.h): every way, type and instruction set the machine
 * has, all fused combinations, against a naive double-precision reference on the very numbers
 * stored; bitwise equality over thread counts and instruction sets; results in place of operands;
 * nothing written outside; variances of ill-conditioned data. And ctn_batch_norm with its
 * variables.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <omp.h>
#include <cmocka.h>

#include <catena/ops.h>

#include "engine/bnorm.h"

enum { GUARD = 64, GUARD_BYTE = 0x5a };

static uint32_t seed = 1;
static double uniform(double lo, double hi)
{
    seed = seed * 1664525u + 1013904223u;
    return lo + (hi - lo) * (double)(seed >> 8) / 16777216.0;
}

/* ---- operands -------------------------------------------------------------------------------- */

typedef enum { CHANNELS_LAST, ROW_MAJOR, GAPPED } layout;

typedef struct {
    ctn_dtype type;
    layout layout;
    ctn_desc d;
    int64_t C, M;
    size_t bytes; /* of the memory of an operand */
} form;

static form form_of(ctn_dtype type, layout l, int ndim, const int64_t *dims)
{
    form f = {.type = type, .layout = l};
    assert_int_equal(ctn__desc_set(&f.d, "test", type, ndim, dims), CTN_OK);
    if (l != ROW_MAJOR) ctn__channels_last(&f.d);
    int64_t reach = ctn__count(&f.d);
    for (int i = 0; i < ndim && l == GAPPED; i++) f.d.stride[i] *= 2;
    f.C = dims[1];
    f.M = f.C ? ctn__count(&f.d) / f.C : 0;
    f.bytes = (size_t)(l == GAPPED ? 2 * reach : reach) * ctn_dtype_size(type);
    return f;
}

static void *guarded(size_t bytes)
{
    unsigned char *p = aligned_alloc(64, (bytes + GUARD + 63) / 64 * 64);
    assert_non_null(p);
    memset(p, 0xff, bytes); /* NaN: nothing may be taken for zero */
    memset(p + bytes, GUARD_BYTE, GUARD);
    return p;
}

static void release(void *p, size_t bytes)
{
    for (size_t i = 0; i < GUARD; i++)
        assert_int_equal(((unsigned char *)p)[bytes + i], GUARD_BYTE);
    free(p);
}

static int64_t place(const form *f, int64_t c, int64_t k)
{
    int64_t o = c * f->d.stride[1];
    for (int i = f->d.ndim - 1; i >= 2; i--) {
        o += k % f->d.dim[i] * f->d.stride[i];
        k /= f->d.dim[i];
    }
    return o + k * f->d.stride[0];
}

static double at(const form *f, const void *p, int64_t c, int64_t k)
{
    return ctn__elem_get(p, f->type, place(f, c, k));
}

static void *operand(const form *f, double offset, double spread)
{
    void *p = guarded(f->bytes);
    for (int64_t c = 0; c < f->C; c++)
        for (int64_t k = 0; k < f->M; k++)
            ctn__elem_set(p, f->type, place(f, c, k),
                          offset + spread * (uniform(-1, 1) + uniform(-1, 1)));
    return p;
}

static ctn__bnorm_arg arg(const form *f, void *p)
{
    return (ctn__bnorm_arg){p, &f->d};
}

static double rounding(const form *f)
{
    return f->type == CTN_BF16 ? 1.0 / 256 : f->type == CTN_F16 ? 1.0 / 2048 : 2e-6;
}

static void close_to(const char *what, double expected, double found, double tol)
{
    if (fabs(expected - found) <= tol * fmax(1, fabs(expected))) return;
    fail_msg("%s: expected %.10g, found %.10g", what, expected, found);
}

/* ---- one form, all functions ----------------------------------------------------------------- */

typedef struct {
    const form *f;
    void *x, *residual, *gy, *gy2, *y;
    double *m, *v, *a, *b, *c; /* (C) each */
    void *scratch;
    size_t scratch_bytes;
} subject;

static subject subject_of(const form *f)
{
    subject s = {.f = f};
    s.x = operand(f, 0.5, 1);
    s.residual = operand(f, 0, 1);
    s.gy = operand(f, 0.25, 1);
    s.gy2 = operand(f, 0, 1);
    s.y = operand(f, 0, 1);
    double **rows[] = {&s.m, &s.v, &s.a, &s.b, &s.c};
    for (int i = 0; i < 5; i++) {
        *rows[i] = calloc((size_t)f->C + 1, sizeof(double));
        for (int64_t c = 0; c < f->C; c++) (*rows[i])[c] = uniform(-2, 2);
    }
    s.scratch_bytes = ctn__bnorm_scratch(&f->d);
    s.scratch = guarded(s.scratch_bytes);
    return s;
}

static void subject_free(subject *s)
{
    void *const p[] = {s->x, s->residual, s->gy, s->gy2, s->y};
    double *const rows[] = {s->m, s->v, s->a, s->b, s->c};
    for (int i = 0; i < 5; i++) {
        release(p[i], s->f->bytes);
        free(rows[i]);
    }
    release(s->scratch, s->scratch_bytes);
}

static void check_stats(subject *s)
{
    const form *f = s->f;
    ctn__bnorm_stats(arg(f, s->x), s->m, s->v, s->scratch);
    for (int64_t c = 0; c < f->C; c++) {
        double m = 0, v = 0;
        for (int64_t k = 0; k < f->M; k++) m += at(f, s->x, c, k) / (double)f->M;
        for (int64_t k = 0; k < f->M; k++) v += pow(at(f, s->x, c, k) - m, 2) / (double)f->M;
        close_to("mean", m, s->m[c], 1e-6);
        close_to("variance", v, s->v[c], 2e-6);
    }
}

static void check_apply(subject *s, bool relu, bool add, bool bias, bool in_place)
{
    const form *f = s->f;
    void *y = guarded(f->bytes), *x = y;
    if (in_place) memcpy(x, s->x, f->bytes);
    else x = s->x;
    ctn__bnorm_apply(arg(f, x), s->a, bias ? s->b : NULL, arg(f, add ? s->residual : NULL), relu,
                     arg(f, y), s->scratch);
    for (int64_t c = 0; c < f->C; c++) {
        for (int64_t k = 0; k < f->M; k++) {
            double v = at(f, s->x, c, k) * s->a[c] + (bias ? s->b[c] : 0) +
                       (add ? at(f, s->residual, c, k) : 0);
            close_to("apply", relu && v < 0 ? 0 : v, at(f, y, c, k), rounding(f));
        }
    }
    release(y, f->bytes);
}

static double gradient(const subject *s, bool relu, bool join, int64_t c, int64_t k)
{
    double g = at(s->f, s->gy, c, k) + (join ? at(s->f, s->gy2, c, k) : 0);
    return relu && !(at(s->f, s->y, c, k) > 0) ? 0 : g;
}

static void check_backward(subject *s, bool relu, bool join, bool write)
{
    const form *f = s->f;
    void *g = write ? guarded(f->bytes) : NULL, *gx = guarded(f->bytes);
    double *sum = calloc((size_t)f->C + 1, sizeof *sum),
           *dot = calloc((size_t)f->C + 1, sizeof *dot);
    ctn__bnorm_gradient in = {arg(f, s->gy), arg(f, join ? s->gy2 : NULL),
                              arg(f, relu ? s->y : NULL)};
    ctn__bnorm_reduce(&in, arg(f, s->x), s->m, arg(f, g), sum, dot, s->scratch);
    memcpy(gx, s->gy, f->bytes); /* in place of gy */
    in.gy.p = gx;
    ctn__bnorm_grad_apply(&in, arg(f, s->x), s->a, s->b, s->c, arg(f, gx), s->scratch);
    for (int64_t c = 0; c < f->C; c++) {
        double es = 0, ed = 0, size = 1;
        for (int64_t k = 0; k < f->M; k++) {
            double v = gradient(s, relu, join, c, k), x = at(f, s->x, c, k);
            es += v;
            ed += v * (x - s->m[c]);
            size += fabs(v * (x - s->m[c]));
            if (write) close_to("g", v, at(f, g, c, k), rounding(f));
            close_to("gx", v * s->a[c] + x * s->b[c] + s->c[c], at(f, gx, c, k), 2 * rounding(f));
        }
        close_to("sum", es / size, sum[c] / size, 1e-6);
        close_to("dot", ed / size, dot[c] / size, 1e-6);
    }
    free(sum);
    free(dot);
    if (g) release(g, f->bytes);
    release(gx, f->bytes);
}

static void check_form(ctn_dtype type, layout l, int ndim, const int64_t *dims)
{
    form f = form_of(type, l, ndim, dims);
    subject s = subject_of(&f);
    check_stats(&s);
    for (int i = 0; i < 16; i++) check_apply(&s, i & 1, i & 2, i & 4, i & 8);
    for (int i = 0; i < 8; i++) check_backward(&s, i & 1, i & 2, i & 4);
    subject_free(&s);
}

static void check_long(ctn_dtype type, const int64_t *dims)
{
    form f = form_of(type, CHANNELS_LAST, 4, dims);
    subject s = subject_of(&f);
    check_stats(&s);
    check_apply(&s, true, true, true, false);
    check_backward(&s, true, true, true);
    subject_free(&s);
}

static void check_shapes(ctn_dtype type, layout l)
{
    static const int64_t dims[][5] = {{2, 5, 3, 7},   {3, 17, 4, 5}, {2, 64, 5, 9}, {1, 1, 6, 6},
                                      {2, 130, 3, 3}, {5, 3, 1, 1},  {1, 600, 2, 2}};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) check_form(type, l, 4, dims[i]);
    check_form(type, l, 2, (int64_t[]){150, 7});
    check_form(type, l, 3, (int64_t[]){2, 9, 11});
    check_form(type, l, 5, (int64_t[]){2, 33, 2, 3, 4});
}

static void each_isa(void (*f)(void))
{
    for (int i = CTN__BNORM_PORTABLE; i <= CTN__BNORM_AVX512; i++)
        if (ctn__bnorm_limit((ctn__bnorm_isa)i) == (ctn__bnorm_isa)i) f();
    ctn__bnorm_limit(CTN__BNORM_AVX512);
}

static void fast_shapes(void)
{
    const ctn_dtype types[] = {CTN_F32, CTN_BF16};
    for (int t = 0; t < 2; t++) {
        check_shapes(types[t], CHANNELS_LAST);
        check_form(types[t], CHANNELS_LAST, 4, (int64_t[]){3, 2048, 7, 7});
        check_form(types[t], CHANNELS_LAST, 4, (int64_t[]){4, 64, 70, 33}); /* several blocks */
        check_long(types[t], (int64_t[]){1, 24, 223, 223}); /* several steps in a block */
    }
}

static void test_fast(void **state)
{
    (void)state;
    each_isa(fast_shapes);
}

static void test_other(void **state)
{
    (void)state;
    check_shapes(CTN_F32, ROW_MAJOR);
    check_shapes(CTN_F64, ROW_MAJOR);
    check_shapes(CTN_F64, CHANNELS_LAST);
    check_shapes(CTN_BF16, ROW_MAJOR);
    check_shapes(CTN_F16, ROW_MAJOR);
    check_shapes(CTN_F16, CHANNELS_LAST);
    check_shapes(CTN_F32, GAPPED);
    check_shapes(CTN_BF16, GAPPED);
}

/* ---- equal bits ------------------------------------------------------------------------------ */

/* Everything a form's functions give, behind one another. */
static unsigned char *all_results(subject *s, size_t *bytes)
{
    const form *f = s->f;
    size_t row = (size_t)f->C * sizeof(double);
    *bytes = 4 * row + 3 * f->bytes;
    unsigned char *r = calloc(1, *bytes), *t = r + 4 * row;
    double *v = (double *)r;
    ctn__bnorm_gradient in = {arg(f, s->gy), arg(f, s->gy2), arg(f, s->y)};
    ctn__bnorm_stats(arg(f, s->x), v, v + f->C, s->scratch);
    ctn__bnorm_reduce(&in, arg(f, s->x), v, arg(f, t), v + 2 * f->C, v + 3 * f->C, s->scratch);
    ctn__bnorm_apply(arg(f, s->x), s->a, s->b, arg(f, s->residual), true, arg(f, t + f->bytes),
                     s->scratch);
    ctn__bnorm_grad_apply(&in, arg(f, s->x), s->a, s->b, s->c, arg(f, t + 2 * f->bytes),
                          s->scratch);
    return r;
}

static void check_bits(ctn_dtype type, layout l, const int64_t *dims)
{
    form f = form_of(type, l, 4, dims);
    subject s = subject_of(&f);
    size_t bytes;
    int was = omp_get_max_threads();
    omp_set_num_threads(1);
    ctn__bnorm_limit(CTN__BNORM_PORTABLE);
    unsigned char *first = all_results(&s, &bytes);
    for (int isa = CTN__BNORM_PORTABLE; isa <= CTN__BNORM_AVX512; isa++) {
        ctn__bnorm_limit((ctn__bnorm_isa)isa);
        for (int threads = 1; threads <= 5; threads += 2) {
            omp_set_num_threads(threads);
            unsigned char *again = all_results(&s, &bytes);
            assert_memory_equal(first, again, bytes);
            free(again);
        }
    }
    omp_set_num_threads(was);
    free(first);
    subject_free(&s);
}

static void test_bits(void **state)
{
    (void)state;
    const ctn_dtype types[] = {CTN_F32, CTN_BF16};
    for (int t = 0; t < 2; t++) {
        check_bits(types[t], CHANNELS_LAST, (int64_t[]){3, 64, 50, 33});
        check_bits(types[t], CHANNELS_LAST, (int64_t[]){2, 17, 40, 31});
        check_bits(types[t], CHANNELS_LAST, (int64_t[]){3, 1029, 7, 7});
        check_bits(types[t], ROW_MAJOR, (int64_t[]){3, 7, 40, 31});
    }
    check_bits(CTN_F64, ROW_MAJOR, (int64_t[]){3, 7, 40, 31});
}

/* ---- ill-conditioned data -------------------------------------------------------------------- */

/* Mean 10^4 deviations away, and a first element far from all others. */
static void hard_numbers(layout l)
{
    form f = form_of(CTN_F32, l, 4, (int64_t[]){4, 6, 60, 55});
    subject s = subject_of(&f);
    free(s.x);
    s.x = operand(&f, 1000, 0.1);
    for (int64_t c = 0; c < f.C; c += 2) ctn__elem_set(s.x, CTN_F32, place(&f, c, 0), -5e5);
    ctn__bnorm_stats(arg(&f, s.x), s.m, s.v, s.scratch);
    for (int64_t c = 0; c < f.C; c++) {
        double m = 0, v = 0;
        for (int64_t k = 0; k < f.M; k++) m += at(&f, s.x, c, k) / (double)f.M;
        for (int64_t k = 0; k < f.M; k++) v += pow(at(&f, s.x, c, k) - m, 2) / (double)f.M;
        assert_true(fabs(s.m[c] - m) <= 1e-6 * fabs(m));
        assert_true(fabs(s.v[c] - v) <= 1e-5 * v);
    }
    subject_free(&s);
}

static void test_hard_numbers(void **state)
{
    (void)state;
    hard_numbers(CHANNELS_LAST);
    hard_numbers(ROW_MAJOR);
    hard_numbers(GAPPED);
}

/* NaN and infinity stay what they are in bf16, and relu keeps NaN. */
static void test_not_finite(void **state)
{
    (void)state;
    form f = form_of(CTN_BF16, CHANNELS_LAST, 4, (int64_t[]){1, 4, 1, 40});
    subject s = subject_of(&f);
    double one[4] = {1, 1, 1, 1};
    void *y = guarded(f.bytes);
    ctn__elem_set(s.x, CTN_BF16, place(&f, 1, 7), NAN);
    ctn__elem_set(s.x, CTN_BF16, place(&f, 2, 8), INFINITY);
    ctn__elem_set(s.x, CTN_BF16, place(&f, 3, 9), 3.4e38);
    ctn__bnorm_apply(arg(&f, s.x), one, NULL, arg(&f, NULL), true, arg(&f, y), s.scratch);
    assert_true(isnan(at(&f, y, 1, 7)));
    assert_true(isinf(at(&f, y, 2, 8)));
    assert_true(at(&f, y, 3, 9) == at(&f, s.x, 3, 9));
    release(y, f.bytes);
    subject_free(&s);
}

/* ---- ctn_batch_norm -------------------------------------------------------------------------- */

enum { N = 3, C = 2, L = 4 };

static void statistics(const float *x, int c, double *mean, double *var)
{
    *mean = *var = 0;
    for (int n = 0; n < N; n++)
        for (int l = 0; l < L; l++) *mean += (double)x[(n * C + c) * L + l] / (N * L);
    for (int n = 0; n < N; n++)
        for (int l = 0; l < L; l++)
            *var += pow((double)x[(n * C + c) * L + l] - *mean, 2) / (N * L);
}

/* Two steps of training, then evaluation with what they left. */
static void run_batch_norm(ctn_mode mode, bool affine)
{
    ctn_context *ctx = NULL;
    ctn_var *mean = NULL, *var = NULL;
    float x[N * C * L], y[N * C * L], scale[C] = {1.5f, -2}, shift[C] = {0.5f, 3};
    float rm[C] = {0.25f, -1}, rv[C] = {1, 2}, found[C];
    double em[C] = {0.25, -1}, ev[C] = {1, 2};
    assert_int_equal(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1, .mode = mode)),
                     CTN_OK);
    assert_int_equal(ctn_var_new(&mean, ctx, "mean", CTN_STATE, CTN_F32, CTN_SHAPE(C)), CTN_OK);
    assert_int_equal(ctn_var_new(&var, ctx, "var", CTN_STATE, CTN_F32, CTN_SHAPE(C)), CTN_OK);
    assert_int_equal(ctn_var_set(mean, rm, sizeof rm), CTN_OK);
    assert_int_equal(ctn_var_set(var, rv, sizeof rv), CTN_OK);
    for (int step = 0; step < 3; step++) {
        bool train = step < 2;
        ctn_set_training(ctx, train);
        for (int i = 0; i < N * C * L; i++) x[i] = (float)uniform(-2, 3);
        assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
        ctn_tensor *t = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(N, C, L));
        ctn_tensor *a = affine ? ctn_input(ctx, scale, CTN_F32, CTN_SHAPE(C)) : NULL;
        ctn_tensor *b = affine ? ctn_input(ctx, shift, CTN_F32, CTN_SHAPE(C)) : NULL;
        ctn_tensor *r = ctn_batch_norm(t, a, b, mean, var,
                                       CTN_OPT(ctn_batch_norm_opt, .eps = 1e-3, .momentum = 0.3));
        assert_int_equal(ctn_read(r, y, sizeof y), CTN_OK);
        assert_int_equal(ctn_scope_end(ctx), CTN_OK);
        for (int c = 0; c < C; c++) {
            double m = em[c], v = ev[c];
            if (train) {
                statistics(x, c, &m, &v);
                em[c] = 0.7 * em[c] + 0.3 * m;
                ev[c] = 0.7 * ev[c] + 0.3 * v * (N * L) / (N * L - 1.0);
            }
            for (int n = 0; n < N; n++) {
                for (int l = 0; l < L; l++) {
                    int i = (n * C + c) * L + l;
                    double h = ((double)x[i] - m) / sqrt(v + 1e-3);
                    if (affine) h = h * (double)scale[c] + (double)shift[c];
                    close_to("batch_norm", h, (double)y[i], 1e-5);
                }
            }
        }
        assert_int_equal(ctn_var_get(mean, found, sizeof found), CTN_OK);
        for (int c = 0; c < C; c++) close_to("running mean", em[c], (double)found[c], 1e-6);
        assert_int_equal(ctn_var_get(var, found, sizeof found), CTN_OK);
        for (int c = 0; c < C; c++) close_to("running variance", ev[c], (double)found[c], 1e-6);
    }
    ctn_var_free(mean);
    ctn_var_free(var);
    ctn_context_free(ctx);
}

static void test_batch_norm(void **state)
{
    (void)state;
    for (int affine = 0; affine < 2; affine++) {
        run_batch_norm(CTN_MODE_PLANNED, affine);
        run_batch_norm(CTN_MODE_EAGER, affine);
    }
}

static void test_errors(void **state)
{
    (void)state;
    ctn_context *ctx = NULL;
    ctn_var *state_of = NULL;
    float x[6] = {0};
    assert_int_equal(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)), CTN_OK);
    assert_int_equal(ctn_var_new(&state_of, ctx, "s", CTN_STATE, CTN_F32, CTN_SHAPE(3)), CTN_OK);
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    ctn_tensor *flat = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(6));
    ctn_tensor *wrong = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(3, 2));
    ctn_tensor *two = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(2));
    assert_null(ctn_batch_norm(flat, NULL, NULL, state_of, state_of, NULL));
    assert_int_equal(ctn_error_status(), CTN_ESHAPE);
    ctn_error_clear();
    assert_null(ctn_batch_norm(wrong, NULL, NULL, state_of, state_of, NULL));
    assert_int_equal(ctn_error_status(), CTN_ESHAPE);
    ctn_error_clear();
    assert_null(ctn_batch_norm(wrong, two, NULL, state_of, state_of, NULL));
    assert_int_equal(ctn_error_status(), CTN_EARG);
    ctn_error_clear();
    assert_null(ctn_group_norm(wrong, 3, NULL, NULL, 1e-5));
    assert_int_equal(ctn_error_status(), CTN_ESHAPE);
    ctn_error_clear();
    assert_null(ctn_channel_affine(ctn_input(ctx, x, CTN_F32, CTN_SHAPE(2, 3)), two, NULL));
    assert_int_equal(ctn_error_status(), CTN_ESHAPE);
    ctn_error_clear();
    ctn_scope_end(ctx);
    ctn_var_free(state_of);
    ctn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fast),       cmocka_unit_test(test_other),
        cmocka_unit_test(test_bits),       cmocka_unit_test(test_hard_numbers),
        cmocka_unit_test(test_not_finite), cmocka_unit_test(test_batch_norm),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
