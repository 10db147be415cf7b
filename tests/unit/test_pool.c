/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of the spatial ops in every layout, element type and instruction set. The cases of
 * tests/ops check f32 and f64 in row-major order. Here every other variant must give the same
 * bits: channels-last those of row-major, 16-bit floats those of f32 rounded once. Also tests
 * NaN and errors, which the cases cannot express.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "engine/isa.h"
#include "engine/pool.h"
#include "ops/ops.h"
#include "tensor/half.h"

enum { MAX_IN = 3, MAX_OUT = 2, THREADS = 3 };

static ctn_context *ctx;

static int set_up(void **state)
{
    (void)state;
    return ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = THREADS));
}

static int tear_down(void **state)
{
    (void)state;
    ctn_context_free(ctx);
    return 0;
}

/* ---- one op in one variant ------------------------------------------------------------------- */

typedef struct {
    ctn_op *op;
    const char *name;
    int nin, nout, nattr;
    ctn_desc din[MAX_IN], dout[MAX_OUT]; /* row-major; floats are f32 */
    int64_t attr[24];
} subject;

static bool is_spatial(const subject *s, bool out, int i)
{
    return (out ? s->op->spatial_out : s->op->spatial_in) >> i & 1;
}

static ctn_desc placed(const subject *s, bool out, int i, ctn_dtype t, bool last)
{
    ctn_desc d = out ? s->dout[i] : s->din[i];
    if (!is_spatial(s, out, i)) {
        if (t == CTN_F64 && d.dtype == CTN_F32) d.dtype = CTN_F64;
        return d;
    }
    if (d.dtype == CTN_F32) d.dtype = t;
    if (last) ctn__channels_last(&d);
    return d;
}

/* Stores row-major values v (doubles) in memory as d describes, and the reverse. */
static void *to_memory(const ctn_desc *d, const double *v)
{
    ctn_desc plain = *d;
    size_t bytes = ctn__bytes(d) + 64;
    char *dense = calloc(1, bytes), *p = calloc(1, bytes);
    ctn__plain(&plain);
    for (int64_t i = 0; v && i < ctn__count(d); i++) ctn__elem_set(dense, d->dtype, i, v[i]);
    if (v) ctn__copy_strided(p, d, dense, &plain);
    else memset(p, 0xcd, bytes);
    free(dense);
    return p;
}

static double *from_memory(const ctn_desc *d, const void *p)
{
    ctn_desc plain = *d;
    char *dense = calloc(1, ctn__bytes(d) + 64);
    double *v = calloc((size_t)ctn__count(d) + 1, sizeof *v);
    ctn__plain(&plain);
    ctn__copy_strided(dense, &plain, p, d);
    for (int64_t i = 0; i < ctn__count(d); i++) v[i] = ctn__elem_get(dense, d->dtype, i);
    free(dense);
    return v;
}

static void perform(const subject *s, ctn_dtype t, bool last, double *const *x, double **y)
{
    ctn_desc din[MAX_IN], dout[MAX_OUT];
    void *in[MAX_IN] = {NULL}, *out[MAX_OUT] = {NULL}, *scratch;
    for (int i = 0; i < s->nin; i++) {
        din[i] = placed(s, false, i, t, last);
        in[i] = to_memory(&din[i], x[i]);
    }
    for (int i = 0; i < s->nout; i++) {
        dout[i] = placed(s, true, i, t, last);
        out[i] = to_memory(&dout[i], NULL);
    }
    ctn_prepare_args p = {.name = s->op->name,
                          .nin = s->nin,
                          .nout = s->nout,
                          .nattr = s->nattr,
                          .din = din,
                          .dout = dout,
                          .attr = s->attr,
                          .threads = THREADS};
    if (s->op->prepare) assert_int_equal(s->op->prepare(&p), CTN_OK);
    scratch = malloc(p.scratch + 1);
    ctn_run_args r = {.nin = s->nin,
                      .nout = s->nout,
                      .nattr = s->nattr,
                      .in = (const void *const *)in,
                      .out = out,
                      .din = din,
                      .dout = dout,
                      .attr = s->attr,
                      .priv = p.priv,
                      .scratch = scratch};
    int was = ctn__threads_enter(THREADS);
    assert_int_equal((p.run ? p.run : s->op->run)(&r), CTN_OK);
    ctn__threads_leave(was);
    for (int i = 0; i < s->nout; i++) y[i] = from_memory(&dout[i], out[i]);
    if (p.priv_free) p.priv_free(p.priv);
    for (int i = 0; i < s->nin; i++) free(in[i]);
    for (int i = 0; i < s->nout; i++) free(out[i]);
    free(scratch);
}

static double rounded(double v, ctn_dtype t)
{
    uint16_t h;
    ctn__elem_set(&h, t, 0, v);
    return ctn__elem_get(&h, t, 0);
}

/* ---- all variants ---------------------------------------------------------------------------- */

static void expect_equal(const subject *s, int k, const double *y, const double *z, ctn_dtype t,
                         const char *how)
{
    const ctn_desc *d = &s->dout[k];
    bool low = t == CTN_BF16 || t == CTN_F16, spatial = is_spatial(s, true, k);
    for (int64_t i = 0; i < ctn__count(d); i++) {
        double want = low && spatial && d->dtype == CTN_F32 ? rounded(y[i], t) : y[i];
        bool ok = spatial ? want == z[i] : fabs(want - z[i]) <= 1e-5 * fmax(1, fabs(want));
        if (!ok)
            fail_msg("%s %s, %s, %s: result %d, element %lld: expected %.9g, found %.9g",
                     s->op->name, s->name, ctn_dtype_name(t), how, k, (long long)i, want, z[i]);
    }
}

static void all_ways(const subject *s, double *const *x)
{
    static const ctn_dtype types[] = {CTN_F32, CTN_F64, CTN_BF16, CTN_F16};
    for (int t = 0; t < 4; t++) {
        double *y[MAX_OUT], *z[MAX_OUT];
        ctn__isa_limit(CTN__ISA_PORTABLE); /* the f32 result is the reference for 16 bits */
        perform(s, types[t] == CTN_F64 ? CTN_F64 : CTN_F32, false, x, y);
        for (int k = 0; k < 2 * CTN__ISA_COUNT; k++) {
            char how[64];
            snprintf(how, sizeof how, "%s, instruction set %d",
                     k % 2 ? "channels-last" : "row-major", k / 2);
            ctn__isa_limit((ctn__isa)(k / 2));
            perform(s, types[t], k % 2, x, z);
            for (int i = 0; i < s->nout; i++) {
                expect_equal(s, i, y[i], z[i], types[t], how);
                free(z[i]);
            }
        }
        for (int i = 0; i < s->nout; i++) free(y[i]);
    }
    ctn__isa_limit(CTN__ISA_BEST);
}

/* Numbers with few digits, which every type can represent, with ties, whose places must agree. */
static double *numbers(const ctn_desc *d, uint64_t stream)
{
    double *v = calloc((size_t)ctn__count(d) + 1, sizeof *v);
    for (int64_t i = 0; i < ctn__count(d); i++)
        v[i] = floor(64 * ctn__uniform(7, stream, (uint64_t)i)) / 8 - 4;
    return v;
}

/* The op that made y, with the shapes it was recorded with. */
static subject subject_of(const ctn_tensor *y, const char *name)
{
    const ctn__node *n = y->node;
    subject s = {.op = n->op, .name = name, .nin = n->nin, .nout = n->nout, .nattr = n->nattr};
    for (int i = 0; i < n->nin; i++) s.din[i] = n->in[i]->d;
    for (int i = 0; i < n->nout; i++) s.dout[i] = n->out[i]->d;
    for (int i = 0; i < n->nattr; i++) s.attr[i] = n->attr[i];
    return s;
}

/* Checks the op of y, its gradient (x and y exchanged) and, for max_pool, the gradient of that. */
static void check_op(const ctn_tensor *y, const char *name, ctn_op *grad, ctn_op *grad_grad)
{
    assert_non_null(y);
    subject s = subject_of(y, name), g = s;
    double *x[MAX_IN] = {NULL}, *index[MAX_OUT] = {NULL};
    for (int i = 0; i < s.nin; i++) x[i] = numbers(&s.din[i], (uint64_t)i);
    all_ways(&s, x);
    if (grad_grad) perform(&s, CTN_F32, false, x, index);
    for (int i = 0; i < s.nin; i++) free(x[i]);
    if (!grad) return;
    g.op = grad;
    g.nout = 1;
    g.din[0] = s.dout[0];
    g.dout[0] = s.din[0];
    if (grad_grad) {
        g.nin = 2;
        g.din[1] = s.dout[1];
        x[1] = index[1];
    }
    x[0] = numbers(&g.din[0], 5);
    all_ways(&g, x);
    free(x[0]);
    if (!grad_grad) return;
    g.op = grad_grad;
    g.din[0] = s.din[0];
    g.dout[0] = s.dout[0];
    x[0] = numbers(&g.din[0], 6);
    all_ways(&g, x);
    free(x[0]);
    free(index[0]);
    free(index[1]);
}

static ctn_tensor *image(int ndim, const int64_t *dims)
{
    return ctn_full(ctx, 0, CTN_F32, ndim, dims);
}

#define POOL(...) CTN_OPT(ctn_pool_opt, __VA_ARGS__)

static void test_max_pool(void **state)
{
    (void)state;
    ctn_op *g = &ctn__op_max_pool_grad, *gg = &ctn__op_max_pool_grad_grad;
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    check_op(ctn_max_pool(image(CTN_SHAPE(2, 64, 15, 16)),
                          POOL(.kernel = {3}, .stride = {2}, .pad = {1})),
             "resnet", g, gg);
    check_op(ctn_max_pool(image(CTN_SHAPE(1, 300, 6, 7)), POOL(.kernel = {2}, .ceil = 1)),
             "300 channels", g, gg);
    check_op(ctn_max_pool(image(CTN_SHAPE(3, 5, 11)),
                          POOL(.kernel = {5}, .stride = {1}, .pad = {2})),
             "signal", g, gg);
    check_op(ctn_max_pool(image(CTN_SHAPE(2, 7, 5, 6, 7)),
                          POOL(.kernel = {3, 2, 4}, .stride = {2})),
             "volume", g, gg);
    check_op(ctn_max_pool(image(CTN_SHAPE(1, 9, 20, 18)), POOL(.kernel = {17}, .stride = {1})),
             "i32 places", g, gg);
    check_op(ctn_max_pool(image(CTN_SHAPE(2, 3, 9, 9)), POOL(.kernel = {2}, .stride = {4})), "gaps",
             g, gg);
    assert_int_equal(ctn_scope_end(ctx), CTN_OK);
}

static void test_linear(void **state)
{
    (void)state;
    ctn_op *avg = &ctn__op_avg_pool_grad, *ad = &ctn__op_adaptive_avg_pool_grad;
    ctn_op *rs = &ctn__op_resize_grad;
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    check_op(ctn_avg_pool(image(CTN_SHAPE(2, 64, 15, 16)),
                          POOL(.kernel = {3}, .stride = {2}, .pad = {1})),
             "3x3", avg, NULL);
    check_op(ctn_avg_pool(image(CTN_SHAPE(2, 5, 6, 7)),
                          POOL(.kernel = {2}, .ceil = 1, .exclude_pad = 1)),
             "2x2", avg, NULL);
    check_op(ctn_avg_pool(image(CTN_SHAPE(2, 7, 5, 6, 7)),
                          POOL(.kernel = {3, 2, 4}, .stride = {4})),
             "volume with gaps", avg, NULL);
    check_op(ctn_global_avg_pool(image(CTN_SHAPE(2, 2048, 7, 7))), "global", avg, NULL);
    check_op(ctn_global_avg_pool(image(CTN_SHAPE(1, 3, 700, 3))), "global, long", avg, NULL);
    check_op(ctn_adaptive_avg_pool(image(CTN_SHAPE(2, 33, 10, 13)), CTN_SHAPE(7, 7)), "7x7", ad,
             NULL);
    check_op(ctn_resize(image(CTN_SHAPE(2, 20, 7, 9)), CTN_RESIZE_NEAREST, CTN_SHAPE(14, 11)),
             "nearest", rs, NULL);
    check_op(ctn_resize(image(CTN_SHAPE(1, 600, 7, 9)), CTN_RESIZE_LINEAR, CTN_SHAPE(14, 18)),
             "linear", rs, NULL);
    check_op(ctn_resize(image(CTN_SHAPE(1, 3, 4, 9, 5)), CTN_RESIZE_LINEAR, CTN_SHAPE(8, 4, 7)),
             "linear volume", rs, NULL);
    assert_int_equal(ctn_scope_end(ctx), CTN_OK);
}

static void test_prelu(void **state)
{
    static const int64_t shapes[][4] = {{2, 3, 17, 19}, {3, 70, 5, 4}, {2, 1, 8, 8}};
    (void)state;
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    for (int k = 0; k < 6; k++) {
        int64_t slopes = k < 3 ? shapes[k][1] : 1;
        ctn_tensor *x = image(4, shapes[k % 3]), *slope = image(1, &slopes), *out[2];
        ctn_tensor *y = ctn_prelu(x, slope), *in[3] = {x, slope, y};
        check_op(y, "prelu", NULL, NULL);
        assert_int_equal(ctn_apply(NULL, &ctn__op_prelu_grad, 3, in, NULL, out), CTN_OK);
        check_op(out[0], "prelu_grad", NULL, NULL);
    }
    assert_int_equal(ctn_scope_end(ctx), CTN_OK);
}

/* ---- conversions ----------------------------------------------------------------------------- */

static void test_halves(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 0x10000; i++) {
        uint16_t h = (uint16_t)i;
        assert_int_equal(ctn__bits_of(ctn__bf16_get(h)), ctn__bits_of(ctn__bf16_to_f32(h)));
        assert_int_equal(ctn__bits_of(ctn__f16_get(h)), ctn__bits_of(ctn__f16_to_f32(h)));
    }
    for (uint64_t u = 0; u <= 0xffffffffu; u += 1021) {
        float f = ctn__float_of((uint32_t)u);
        assert_int_equal(ctn__bf16_put(f), ctn__f32_to_bf16(f));
        assert_int_equal(ctn__f16_put(f), ctn__f32_to_f16(f));
    }
}

/* ---- numbers and errors ---------------------------------------------------------------------- */

static void test_nan_and_infinity(void **state)
{
    float x[8] = {1, NAN, 3, 2, -INFINITY, -INFINITY, -INFINITY, -INFINITY}, y[2], g[8];
    (void)state;
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    ctn_tensor *t = ctn_with_grad(ctn_input(ctx, x, CTN_F32, CTN_SHAPE(1, 1, 8))), *gx;
    ctn_tensor *p = ctn_max_pool(t, POOL(.kernel = {4}));
    assert_int_equal(ctn_grad(ctn_sum(p, CTN_ALL_AXES, 0), 1, &t, &gx), CTN_OK);
    assert_int_equal(ctn_read(p, y, sizeof y), CTN_OK);
    assert_int_equal(ctn_read(gx, g, sizeof g), CTN_OK);
    assert_int_equal(ctn_scope_end(ctx), CTN_OK);
    assert_true(isnan(y[0]) && y[1] == -INFINITY);
    for (int i = 0; i < 8; i++) assert_true(g[i] == (i == 1 || i == 4 ? 1.0f : 0.0f));
}

static void expect_error(const ctn_tensor *t, ctn_status st, const char *text)
{
    assert_null(t);
    assert_int_equal(ctn_error_status(), st);
    if (!strstr(ctn_error_message(), text))
        fail_msg("\"%s\" is not in: %s", text, ctn_error_message());
    ctn_error_clear();
}

static void test_errors(void **state)
{
    (void)state;
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    ctn_tensor *x = image(CTN_SHAPE(2, 3, 5, 5)), *flat = image(CTN_SHAPE(2, 3));
    expect_error(ctn_max_pool(x, POOL(.kernel = {6})), CTN_ESHAPE,
                 "a kernel of 6 does not fit dimension 2 of length 5");
    expect_error(ctn_max_pool(x, NULL), CTN_ESHAPE, "max_pool: kernel 0");
    expect_error(ctn_max_pool(x, POOL(.kernel = {3}, .pad = {2})), CTN_ESHAPE,
                 "padding at most half the kernel");
    expect_error(ctn_avg_pool(x, POOL(.kernel = {INT64_MAX}, .pad = {INT64_MAX / 2})), CTN_ESHAPE,
                 "avg_pool: kernel");
    expect_error(ctn_avg_pool(flat, POOL(.kernel = {1})), CTN_ESHAPE, "x is (2,3)");
    expect_error(ctn_global_avg_pool(image(CTN_SHAPE(2, 3, 0, 4))), CTN_ESHAPE,
                 "spatial dimensions of 1 to");
    expect_error(ctn_global_avg_pool(NULL), CTN_EARG, "x is NULL");
    expect_error(ctn_adaptive_avg_pool(x, CTN_SHAPE(0, 2)), CTN_ESHAPE, "size 0 is 0");
    expect_error(ctn_resize(x, CTN_RESIZE_LINEAR, CTN_SHAPE(4)), CTN_ESHAPE, "got 1 sizes");
    expect_error(ctn_resize(x, (ctn_resize_kind)9, CTN_SHAPE(4, 4)), CTN_EARG, "kind 9");
    expect_error(ctn_max_pool(ctn_cast(x, CTN_I32), POOL(.kernel = {2})), CTN_EDTYPE, "i32");
    expect_error(ctn_depth_to_space(x, 2), CTN_ESHAPE, "C a multiple of r^2");
    expect_error(ctn_space_to_depth(x, 2), CTN_ESHAPE, "H and W multiples of r");
    expect_error(ctn_prelu(x, image(CTN_SHAPE(5))), CTN_ESHAPE, "the slope is (5)");
    expect_error(ctn_spatial_dropout(x, 1), CTN_EARG, "rate is 1");
    expect_error(ctn_attention(flat, flat, x, NULL, NULL), CTN_ESHAPE, "attention: q is (2,3)");
    assert_int_equal(ctn_scope_end(ctx), CTN_OK);
}

static void test_evaluation(void **state)
{
    (void)state;
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    int was = ctn_context_set_training(ctx, 0);
    ctn_tensor *x = image(CTN_SHAPE(2, 3, 5, 5));
    assert_ptr_equal(ctn_spatial_dropout(x, 0.5), x);
    ctn_context_set_training(ctx, was);
    assert_int_equal(ctn_scope_end(ctx), CTN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves),           cmocka_unit_test(test_max_pool),
        cmocka_unit_test(test_linear),           cmocka_unit_test(test_prelu),
        cmocka_unit_test(test_nan_and_infinity), cmocka_unit_test(test_errors),
        cmocka_unit_test(test_evaluation),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
