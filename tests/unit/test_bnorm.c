/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalisation kernels (engine/bnorm.h): every way, type and instruction set of the
 * machine, with all fused combinations, against a naive reference in double precision on exactly
 * the stored numbers. Also checks bitwise equality over thread counts and instruction sets,
 * results that overwrite operands, that nothing is written outside of the outputs, and variances
 * of ill-conditioned data; ctn_batch_norm with its variables; and that the sign of y recomputed
 * from x equals that of y bit for bit, in kernels, ops, and steps of a network with and without
 * fusion.
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

#include "support/machine.h"

#include <catena/ops.h>
#include <catena/optim.h>

#include "engine/bnorm.h"
#include "engine/isa.h"
#include "ops/ops.h"

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
    size_t bytes; /* size of an operand in memory */
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
    memset(p, 0xff, bytes); /* NaN, so that nothing can be mistaken for zero */
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

static double get(const form *f, const void *p, int64_t o)
{
    return ctn__elem_get(p, f->type, o);
}

static double at(const form *f, const void *p, int64_t c, int64_t k)
{
    return get(f, p, place(f, c, k));
}

/* Loops over places have the channels innermost. Most forms are channels-last, and in memory
 * order the checks take a sixth of the time. */
static void *operand(const form *f, double offset, double spread)
{
    void *p = guarded(f->bytes);
    for (int64_t k = 0; k < f->M; k++)
        for (int64_t c = 0, o = place(f, 0, k); c < f->C; c++, o += f->d.stride[1])
            ctn__elem_set(p, f->type, o, offset + spread * (uniform(-1, 1) + uniform(-1, 1)));
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
    double *m, *v, *a, *b, *c, *ya, *yb; /* (C) each */
    void *scratch;
    size_t scratch_bytes;
} subject;

enum { ROWS = 7 };
typedef enum { NO_MASK, BY_Y, BY_X } mask;

static subject subject_of(const form *f)
{
    subject s = {.f = f};
    s.x = operand(f, 0.5, 1);
    s.residual = operand(f, 0, 1);
    s.gy = operand(f, 0.25, 1);
    s.gy2 = operand(f, 0, 1);
    s.y = operand(f, 0, 1);
    double **rows[ROWS] = {&s.m, &s.v, &s.a, &s.b, &s.c, &s.ya, &s.yb};
    for (int i = 0; i < ROWS; i++) {
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
    double *const rows[ROWS] = {s->m, s->v, s->a, s->b, s->c, s->ya, s->yb};
    for (int i = 0; i < 5; i++) release(p[i], s->f->bytes);
    for (int i = 0; i < ROWS; i++) free(rows[i]);
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
    for (int64_t k = 0; k < f->M; k++) {
        for (int64_t c = 0, o = place(f, 0, k); c < f->C; c++, o += f->d.stride[1]) {
            double v = get(f, s->x, o) * s->a[c] + (bias ? s->b[c] : 0) +
                       (add ? get(f, s->residual, o) : 0);
            close_to("apply", relu && v < 0 ? 0 : v, get(f, y, o), rounding(f));
        }
    }
    release(y, f->bytes);
}

/* The y that ya and yb make from x. */
static void make_y(subject *s)
{
    const form *f = s->f;
    ctn__bnorm_apply(arg(f, s->x), s->ya, s->yb, arg(f, NULL), true, arg(f, s->y), s->scratch);
}

static ctn__bnorm_gradient gradient_of(const subject *s, mask by, bool join)
{
    const form *f = s->f;
    return (ctn__bnorm_gradient){.gy = arg(f, s->gy),
                                 .gy2 = arg(f, join ? s->gy2 : NULL),
                                 .y = arg(f, by == BY_Y ? s->y : NULL),
                                 .a = by == BY_X ? s->ya : NULL,
                                 .b = by == BY_X ? s->yb : NULL};
}

static double gradient(const subject *s, mask by, bool join, int64_t o)
{
    double g = get(s->f, s->gy, o) + (join ? get(s->f, s->gy2, o) : 0);
    return by != NO_MASK && !(get(s->f, s->y, o) > 0) ? 0 : g;
}

static void check_backward(subject *s, mask by, bool join, bool write)
{
    const form *f = s->f;
    void *g = write ? guarded(f->bytes) : NULL, *gx = guarded(f->bytes);
    const size_t rows = (size_t)f->C + 1;
    double *sum = calloc(rows, sizeof *sum), *dot = calloc(rows, sizeof *dot);
    struct {
        double sum, dot, size;
    } *want = calloc(rows, sizeof *want);
    ctn__bnorm_gradient in = gradient_of(s, by, join);
    if (by == BY_X) make_y(s);
    ctn__bnorm_reduce(&in, arg(f, s->x), s->m, arg(f, g), sum, dot, s->scratch);
    memcpy(gx, s->gy, f->bytes); /* overwrites gy */
    in.gy.p = gx;
    ctn__bnorm_grad_apply(&in, arg(f, s->x), s->a, s->b, s->c, arg(f, gx), s->scratch);
    for (int64_t k = 0; k < f->M; k++) {
        for (int64_t c = 0, o = place(f, 0, k); c < f->C; c++, o += f->d.stride[1]) {
            double v = gradient(s, by, join, o), x = get(f, s->x, o);
            want[c].sum += v;
            want[c].dot += v * (x - s->m[c]);
            want[c].size += fabs(v * (x - s->m[c]));
            if (write) close_to("g", v, get(f, g, o), rounding(f));
            close_to("gx", v * s->a[c] + x * s->b[c] + s->c[c], get(f, gx, o), 2 * rounding(f));
        }
    }
    for (int64_t c = 0; c < f->C; c++) {
        const double size = 1 + want[c].size;
        close_to("sum", want[c].sum / size, sum[c] / size, 1e-6);
        close_to("dot", want[c].dot / size, dot[c] / size, 1e-6);
    }
    free(sum);
    free(dot);
    free(want);
    if (g) release(g, f->bytes);
    release(gx, f->bytes);
}

static void check_form(ctn_dtype type, layout l, int ndim, const int64_t *dims)
{
    form f = form_of(type, l, ndim, dims);
    subject s = subject_of(&f);
    check_stats(&s);
    for (int i = 0; i < 16; i++) check_apply(&s, i & 1, i & 2, i & 4, i & 8);
    for (int i = 0; i < 12; i++) check_backward(&s, (mask)(i / 4), i & 1, i & 2);
    subject_free(&s);
}

/* A large form, in some of the variants only. */
static void check_long(ctn_dtype type, const int64_t *dims)
{
    form f = form_of(type, CHANNELS_LAST, 4, dims);
    subject s = subject_of(&f);
    check_stats(&s);
    check_apply(&s, true, true, true, false);
    check_backward(&s, BY_Y, true, true);
    check_backward(&s, BY_X, true, true);
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
    for (int i = CTN__ISA_PORTABLE; i <= CTN__ISA_BEST; i++)
        if (ctn__isa_limit((ctn__isa)i) == (ctn__isa)i) f();
    ctn__isa_limit(CTN__ISA_BEST);
}

static void fast_shapes(void)
{
    const ctn_dtype types[] = {CTN_F32, CTN_BF16};
    for (int t = 0; t < 2; t++) {
        check_shapes(types[t], CHANNELS_LAST);
        check_long(types[t], (int64_t[]){3, 2048, 7, 7});
        check_long(types[t], (int64_t[]){4, 64, 70, 33});   /* several blocks */
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

/* One element per channel, and none. */
static void few_elements(void)
{
    static const int64_t dims[][4] = {{1, 9, 1, 1}, {1, 200, 1, 1}, {0, 5, 3, 7}, {2, 0, 3, 7}};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        check_form(CTN_F32, CHANNELS_LAST, 4, dims[i]);
        check_form(CTN_BF16, CHANNELS_LAST, 4, dims[i]);
        check_form(CTN_F64, ROW_MAJOR, 4, dims[i]);
        check_form(CTN_F32, GAPPED, 4, dims[i]);
    }
}

static void test_few(void **state)
{
    (void)state;
    each_isa(few_elements);
}

/* ---- equal bits ------------------------------------------------------------------------------ */

/* All results of a form's functions, concatenated. */
static unsigned char *all_results(subject *s, size_t *bytes)
{
    const form *f = s->f;
    size_t row = (size_t)f->C * sizeof(double);
    *bytes = 6 * row + 5 * f->bytes;
    unsigned char *r = calloc(1, *bytes), *t = r + 6 * row;
    double *v = (double *)r;
    ctn__bnorm_gradient in = gradient_of(s, BY_Y, true), by_x = gradient_of(s, BY_X, true);
    ctn__bnorm_stats(arg(f, s->x), v, v + f->C, s->scratch);
    ctn__bnorm_reduce(&in, arg(f, s->x), v, arg(f, t), v + 2 * f->C, v + 3 * f->C, s->scratch);
    ctn__bnorm_apply(arg(f, s->x), s->a, s->b, arg(f, s->residual), true, arg(f, t + f->bytes),
                     s->scratch);
    ctn__bnorm_grad_apply(&in, arg(f, s->x), s->a, s->b, s->c, arg(f, t + 2 * f->bytes),
                          s->scratch);
    ctn__bnorm_reduce(&by_x, arg(f, s->x), v, arg(f, t + 3 * f->bytes), v + 4 * f->C, v + 5 * f->C,
                      s->scratch);
    ctn__bnorm_grad_apply(&by_x, arg(f, s->x), s->a, s->b, s->c, arg(f, t + 4 * f->bytes),
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
    ctn__isa_limit(CTN__ISA_PORTABLE);
    unsigned char *first = all_results(&s, &bytes);
    for (int isa = CTN__ISA_PORTABLE; isa <= CTN__ISA_BEST; isa++) {
        ctn__isa_limit((ctn__isa)isa);
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

/* ---- the sign of y from x -------------------------------------------------------------------- */

/* sum, dot, gx and, if requested, g, concatenated. */
static void backward(subject *s, mask by, bool join, bool write, unsigned char *out)
{
    const form *f = s->f;
    const size_t row = (size_t)f->C * sizeof(double);
    double *sums = (double *)out;
    unsigned char *gx = out + 2 * row, *g = gx + f->bytes;
    ctn__bnorm_gradient in = gradient_of(s, by, join);
    ctn__bnorm_reduce(&in, arg(f, s->x), s->m, arg(f, write ? g : NULL), sums, sums + f->C,
                      s->scratch);
    ctn__bnorm_grad_apply(&in, arg(f, s->x), s->a, s->b, s->c, arg(f, gx), s->scratch);
}

/* Channel 0 has y = x, with zeros, all values next to zero, and a NaN. */
static void check_sign(ctn_dtype type, layout l, int ndim, const int64_t *dims)
{
    const double edge[] = {0, -0.0, 1e-40, -1e-40, 1e-38, -1e-38, NAN};
    form f = form_of(type, l, ndim, dims);
    subject s = subject_of(&f);
    const size_t bytes = 2 * (size_t)f.C * sizeof(double) + 2 * f.bytes;
    unsigned char *by_y = calloc(1, bytes), *by_x = calloc(1, bytes);
    for (int64_t k = 0; k < 7; k++) ctn__elem_set(s.x, type, place(&f, 0, k + 3), edge[k]);
    s.ya[0] = 1;
    s.yb[0] = 0;
    for (int64_t c = 1; c < f.C; c++) s.yb[c] = -s.ya[c] * at(&f, s.x, c, c % f.M); /* y about 0 */
    make_y(&s);
    for (int i = 0; i < 4; i++) {
        backward(&s, BY_Y, i & 1, i & 2, by_y);
        backward(&s, BY_X, i & 1, i & 2, by_x);
        assert_memory_equal(by_y, by_x, bytes);
    }
    free(by_y);
    free(by_x);
    subject_free(&s);
}

static void fast_signs(void)
{
    const ctn_dtype types[] = {CTN_F32, CTN_BF16};
    for (int t = 0; t < 2; t++) {
        check_sign(types[t], CHANNELS_LAST, 4, (int64_t[]){3, 64, 50, 33});
        check_sign(types[t], CHANNELS_LAST, 4, (int64_t[]){2, 17, 40, 31});
        check_sign(types[t], CHANNELS_LAST, 4, (int64_t[]){3, 1029, 7, 7});
        check_sign(types[t], CHANNELS_LAST, 2, (int64_t[]){150, 7});
    }
}

static void test_sign(void **state)
{
    (void)state;
    each_isa(fast_signs);
    check_sign(CTN_F32, ROW_MAJOR, 4, (int64_t[]){3, 7, 40, 31});
    check_sign(CTN_F64, ROW_MAJOR, 4, (int64_t[]){3, 7, 40, 31});
    check_sign(CTN_F64, CHANNELS_LAST, 4, (int64_t[]){3, 7, 4, 31});
}

/* Outputs of the gradient of relu(batch_norm(x)), by y or by x and shift, concatenated. */
static void op_backward(mask by, bool join, ctn_dtype type, int ndim, const int64_t *dims,
                        void *const *in, unsigned char *out)
{
    ctn_context *ctx = NULL;
    const int64_t channels = dims[1], act[] = {1, 0}, attr[] = {by, join};
    const ctn_scalar scalar[] = {CTN_CONST(1e-5), CTN_CONST(0.1)};
    ctn_tensor *t[5], *o[CTN_MAX_OUT], *g[CTN_MAX_OUT];
    assert_int_equal(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 2)), CTN_OK);
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    for (int i = 0; i < 5; i++) /* x, gy, gy2, scale, shift */
        t[i] = i < 3 ? ctn_input(ctx, in[i], type, ndim, dims)
                     : ctn_input(ctx, in[i], type, 1, &channels);
    ctn_tensor *forward[] = {t[0], t[3], t[4], t[4], t[4]};
    assert_int_equal(ctn_apply(ctx, &ctn__op_batch_norm, 5, forward,
                               &(ctn_op_args){2, 2, act, scalar}, o),
                     CTN_OK);
    ctn_tensor *back[] = {t[1], t[0], o[1], o[2], t[3], by == BY_X ? t[4] : o[0], t[2]};
    assert_int_equal(ctn_apply(ctx,
                               by == BY_X ? &ctn__op_batch_norm_grad_x : &ctn__op_batch_norm_grad,
                               6 + join, back, &(ctn_op_args){.nattr = 2, .attr = attr}, g),
                     CTN_OK);
    for (int i = 0; i < 4; i++) {
        const size_t bytes = ctn__bytes(&g[i]->d);
        assert_int_equal(ctn_read(g[i], out, bytes), CTN_OK);
        out += bytes;
    }
    assert_int_equal(ctn_scope_end(ctx), CTN_OK);
    ctn_context_free(ctx);
}

/* A mean far from zero, so that the sign of many y depends on the last bits of scale and shift. */
static void check_op_sign(ctn_dtype type, int ndim, const int64_t *dims)
{
    form f = form_of(type, ROW_MAJOR, ndim, dims), vector = f;
    vector.bytes = (size_t)f.C * ctn_dtype_size(type);
    void *in[5] = {operand(&f, 1000, 0.05), operand(&f, 0, 1), operand(&f, 0, 1),
                   guarded(vector.bytes), guarded(vector.bytes)};
    const size_t bytes = 2 * f.bytes + 2 * vector.bytes;
    unsigned char *by_y = calloc(1, bytes), *by_x = calloc(1, bytes);
    for (int64_t c = 0; c < f.C; c++) {
        ctn__elem_set(in[3], type, c, uniform(0.5, 2));
        ctn__elem_set(in[4], type, c, uniform(-0.01, 0.01));
    }
    for (int join = 0; join < 2; join++) {
        op_backward(BY_Y, join, type, ndim, dims, in, by_y);
        op_backward(BY_X, join, type, ndim, dims, in, by_x);
        assert_memory_equal(by_y, by_x, bytes);
    }
    for (int i = 0; i < 5; i++) release(in[i], i < 3 ? f.bytes : vector.bytes);
    free(by_y);
    free(by_x);
}

static void op_signs(void)
{
    check_op_sign(CTN_F32, 2, (int64_t[]){5000, 7}); /* channels-last as well */
    check_op_sign(CTN_F32, 2, (int64_t[]){500, 130});
}

static void test_op_sign(void **state)
{
    (void)state;
    each_isa(op_signs);
    check_op_sign(CTN_F32, 4, (int64_t[]){3, 17, 20, 31});
    check_op_sign(CTN_F64, 4, (int64_t[]){3, 5, 20, 31});
    check_op_sign(CTN_F64, 2, (int64_t[]){500, 7});
}

/* ---- ill-conditioned data -------------------------------------------------------------------- */

/* The mean is 10^4 standard deviations away from zero, and the first element is far from all
 * others. */
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

/* NaN and infinity are preserved in bf16, and relu keeps NaN. */
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

/* Two training steps, then evaluation with the resulting statistics. */
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
        ctn_context_set_training(ctx, train);
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

/* ---- steps of a network ---------------------------------------------------------------------- */

enum { LAYERS = 3, CHANNELS = 8, SIDE = 9, PER_LAYER = 3, PARAMS = LAYERS * PER_LAYER, STEPS = 3 };
enum { FILTER = CHANNELS * CHANNELS * 9, PARAM_FLOATS = LAYERS * (FILTER + 2 * CHANNELS) };

typedef struct {
    ctn_var *param[PARAMS], *mean[LAYERS], *var[LAYERS];
} net;

static ctn_var *new_var(ctn_context *ctx, const char *name, ctn_var_kind kind, int ndim, double lo,
                        double hi)
{
    ctn_var *v = NULL;
    float values[FILTER];
    const int64_t dims[] = {CHANNELS, CHANNELS, 3, 3}, n = ndim == 1 ? CHANNELS : FILTER;
    for (int64_t i = 0; i < n; i++) values[i] = (float)uniform(lo, hi);
    assert_int_equal(ctn_var_new(&v, ctx, name, kind, CTN_F32, ndim, dims), CTN_OK);
    assert_int_equal(ctn_var_set(v, values, (size_t)n * sizeof *values), CTN_OK);
    return v;
}

static net new_net(ctn_context *ctx)
{
    static const char *const name[] = {"w0", "s0", "b0", "w1", "s1", "b1", "w2", "s2", "b2"};
    static const char *const state[] = {"m0", "m1", "m2", "v0", "v1", "v2"};
    net n;
    for (int i = 0; i < LAYERS; i++) {
        ctn_var **p = n.param + PER_LAYER * i;
        p[0] = new_var(ctx, name[PER_LAYER * i], CTN_PARAM, 4, -0.3, 0.3);
        p[1] = new_var(ctx, name[PER_LAYER * i + 1], CTN_PARAM, 1, 0.5, 1.5);
        p[2] = new_var(ctx, name[PER_LAYER * i + 2], CTN_PARAM, 1, -0.5, 0.5);
        n.mean[i] = new_var(ctx, state[i], CTN_STATE, 1, 0, 0);
        n.var[i] = new_var(ctx, state[LAYERS + i], CTN_STATE, 1, 1, 1);
    }
    return n;
}

static void net_free(net *n)
{
    for (int i = 0; i < PARAMS; i++) ctn_var_free(n->param[i]);
    for (int i = 0; i < LAYERS; i++) {
        ctn_var_free(n->mean[i]);
        ctn_var_free(n->var[i]);
    }
}

static ctn_tensor *layer(const net *n, int i, ctn_tensor *x)
{
    ctn_var *const *p = n->param + PER_LAYER * i;
    ctn_tensor *z = ctn_conv(x, ctn_use(p[0]), NULL, CTN_OPT(ctn_conv_opt, .pad = {1, 1}));
    return ctn_batch_norm(z, ctn_use(p[1]), ctn_use(p[2]), n->mean[i], n->var[i], NULL);
}

/* Two layers whose relu uses x, the first with two gradients to join, and one with a residual,
 * which uses y. */
static ctn_tensor *loss_of(const net *n, ctn_context *ctx, const float *x, bool recompute)
{
    ctn_tensor *t = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(4, CHANNELS, SIDE, SIDE));
    ctn_tensor *a = ctn_relu(layer(n, 0, t));
    if (recompute) assert_int_equal(ctn_recompute_begin(ctx), CTN_OK);
    ctn_tensor *b = ctn_relu(layer(n, 1, a));
    ctn_tensor *c = ctn_relu(ctn_add(layer(n, 2, b), a));
    if (recompute) assert_int_equal(ctn_recompute_end(ctx), CTN_OK);
    return ctn_scale(ctn_sum(ctn_mul(c, c), CTN_ALL_AXES, 0), 1e-3);
}

static int count(const char *text, const char *word)
{
    int n = 0;
    for (; (text = strstr(text, word)) != NULL; text++) n++;
    return n;
}

/* Parameters after some steps. Returns how many gradients of the plan use x. */
static int train_net(ctn_context_opt opt, bool recompute, float *params)
{
    ctn_context *ctx = NULL;
    ctn_optim *o = NULL;
    static char text[1 << 16];
    float x[4 * CHANNELS * SIDE * SIDE];
    seed = 5;
    opt.threads = 2;
    assert_int_equal(ctn_context_new(&ctx, &opt), CTN_OK);
    net n = new_net(ctx);
    assert_int_equal(ctn_sgd_new(&o, (ctn_vars){PARAMS, n.param, NULL},
                                 CTN_OPT(ctn_sgd_opt, .lr = 0.02)),
                     CTN_OK);
    ctn_context_set_training(ctx, 1);
    for (int step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < sizeof x / sizeof *x; i++) x[i] = (float)uniform(-1, 2);
        assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
        assert_int_equal(ctn_backward(o, loss_of(&n, ctx, x, recompute)), CTN_OK);
        assert_int_equal(ctn_optim_step(o), CTN_OK);
        assert_int_equal(ctn_scope_end(ctx), CTN_OK);
    }
    assert_in_range(ctn_context_plan_text(ctx, text, sizeof text), 1, sizeof text - 1);
    for (int i = 0; i < PARAMS; i++) {
        const size_t floats = i % PER_LAYER ? CHANNELS : FILTER;
        assert_int_equal(ctn_var_get(n.param[i], params, floats * sizeof *params), CTN_OK);
        params += floats;
    }
    ctn_optim_free(o);
    net_free(&n);
    ctn_context_free(ctx);
    return count(text, "batch_norm_grad_x");
}

static void test_net(void **state)
{
    (void)state;
    static float plain[PARAM_FLOATS], found[PARAM_FLOATS];
    const ctn_context_opt f32 = {.struct_size = sizeof f32},
                          bf16 = {.struct_size = sizeof bf16, .precision = CTN_PRECISION_BF16};
    ctn_context_opt unfused = f32;
    unfused.no_fuse = 1;
    assert_int_equal(train_net(unfused, false, plain), 0);
    assert_int_equal(train_net(f32, false, found), 2);
    assert_memory_equal(plain, found, sizeof plain);
    assert_int_equal(train_net(f32, true, found), 2);
    assert_memory_equal(plain, found, sizeof plain);
    if (!test_has_bf16()) return;
    assert_int_equal(train_net(bf16, false, found), 2);
    for (int i = 0; i < PARAM_FLOATS; i++)
        close_to("bf16", (double)plain[i], (double)found[i], 0.02);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fast),       cmocka_unit_test(test_other),
        cmocka_unit_test(test_bits),       cmocka_unit_test(test_hard_numbers),
        cmocka_unit_test(test_not_finite), cmocka_unit_test(test_batch_norm),
        cmocka_unit_test(test_errors),     cmocka_unit_test(test_sign),
        cmocka_unit_test(test_op_sign),    cmocka_unit_test(test_net),
        cmocka_unit_test(test_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
