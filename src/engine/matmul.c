/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products by oneDNN: C = act(A B + bias) with any strides, so transposes cost nothing.
 * Leading dimensions are batches; oneDNN needs the same number of dimensions in all operands.
 */
#include "engine/blas.h"

/* d with `nd` dimensions: ones are added in front */
static ctn_desc widen(const ctn_desc *d, int nd)
{
    ctn_desc r = *d;
    int add = nd - d->ndim;
    int64_t outer = d->ndim > 0 ? d->dim[0] * d->stride[0] : 1;
    if (outer <= 0) outer = 1;
    r.ndim = nd;
    for (int i = nd - 1; i >= 0; i--) {
        r.dim[i] = i >= add ? d->dim[i - add] : 1;
        r.stride[i] = i >= add ? d->stride[i - add] : outer;
    }
    return r;
}

/* d with the dimensions of the product c, without batch dimensions of one element: with AVX-512,
 * oneDNN (to 3.11 at least) reads and writes out of bounds if one of them follows a dimension in
 * which only B is broadcast. */
static ctn_desc fit(const ctn_desc *d, const ctn_desc *c)
{
    ctn_desc r = widen(d, c->ndim);
    r.ndim = 0;
    for (int i = 0; i < c->ndim; i++) {
        if (i < c->ndim - 2 && c->dim[i] == 1) continue;
        r.dim[r.ndim] = r.dim[i];
        r.stride[r.ndim++] = r.stride[i];
    }
    return r;
}

/* A product as one of the three functions of oneDNN's inner product y = x w^T, x (N,I), w (O,I). */
typedef struct {
    int arg[4];  /* numbers of A, B, bias and C; the bias may be absent */
    int x, w, y; /* which of A, B, C these are */
    int64_t n, i, o;
} inner;

static bool is_row_major(const ctn_desc *d)
{
    return d->stride[1] == 1 && d->stride[0] == d->dim[1];
}

static bool is_turned(const ctn_desc *d)
{
    return d->stride[0] == 1 && d->stride[1] == d->dim[0];
}

/* False: the strides fit none of them. */
static bool find_inner(inner *f, const ctn_desc *a, const ctn_desc *b)
{
    const int64_t m = a->dim[0], k = a->dim[1], n = b->dim[1];
    if (is_row_major(a) && is_turned(b))
        *f = (inner){
            {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST}, 0, 1, 2, m, k, n};
    else if (is_row_major(a) && is_row_major(b))
        *f = (inner){{DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, 0, DNNL_ARG_DIFF_SRC}, 2, 1, 0, m, n, k};
    else if (is_turned(a) && is_row_major(b))
        *f = (inner){{DNNL_ARG_DIFF_DST, DNNL_ARG_SRC, 0, DNNL_ARG_DIFF_WEIGHTS}, 1, 2, 0, k, n, m};
    else return false;
    return true;
}

static dnnl_status_t inner_pd(dnnl_primitive_desc_t *pd, const inner *f, ctn__engine *e,
                              dnnl_memory_desc_t const md[3], dnnl_memory_desc_t bias,
                              dnnl_primitive_attr_t attr)
{
    const_dnnl_memory_desc_t x = md[0], w = md[1], y = md[2];
    dnnl_primitive_desc_t hint = NULL;
    dnnl_status_t s =
        dnnl_inner_product_forward_primitive_desc_create(&hint, e->engine, dnnl_forward_training, x,
                                                         w, bias, y, attr);
    *pd = hint;
    if (s != dnnl_success || f->y == 2) return s;
    s = f->x == 2 ? dnnl_inner_product_backward_data_primitive_desc_create(pd, e->engine, x, w, y,
                                                                           hint, attr)
                  : dnnl_inner_product_backward_weights_primitive_desc_create(pd, e->engine, x, w,
                                                                              NULL, y, hint, attr);
    dnnl_primitive_desc_destroy(hint);
    if (s != dnnl_success) *pd = NULL;
    return s;
}

ctn_status ctn__prim_inner(ctn__prim **out, ctn__engine *e, const ctn_desc *a, const ctn_desc *b,
                           const ctn_desc *bias, const ctn_desc *c, ctn__elt act)
{
    ctn_status st = CTN_OK;
    inner f;
    dnnl_memory_desc_t md[3] = {NULL}, more = NULL;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    *out = NULL;
    if (c->ndim != 2 || a->ndim != 2 || b->ndim != 2 || a->dtype != CTN_F32 ||
        c->dtype != CTN_F32 || !is_row_major(c) || !find_inner(&f, a, b) ||
        (f.y != 2 && (bias || act != CTN__ELT_NONE)))
        return CTN_OK;
    const int64_t dim[3][2] = {{f.n, f.i}, {f.o, f.i}, {f.n, f.o}};
    for (int i = 0; i < 3; i++) {
        ctn_desc d = {.dtype = CTN_F32, .ndim = 2, .dim = {dim[i][0], dim[i][1]}};
        ctn__plain(&d);
        CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&md[i], e, &d));
    }
    if (bias) CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&more, e, bias));
    CTN_TRY_GOTO(st, done, ctn__dnnl_attr(&attr, act));
    if (inner_pd(&pd, &f, e, md, more, attr) == dnnl_success &&
        strstr(ctn__dnnl_kernel(pd), "gemm:jit")) {
        const int at[3] = {f.x, f.w, f.y};
        const_dnnl_memory_desc_t mine[4] = {NULL, NULL, more, NULL}; /* of A, B, bias, C */
        for (int i = 0; i < 3; i++) mine[at[i] == 2 ? 3 : at[i]] = md[i];
        st = ctn__prim_make(out, e, pd, 4, f.arg, mine, "inner product");
    } else if (pd) {
        dnnl_primitive_desc_destroy(pd);
    }
done:
    if (attr) dnnl_primitive_attr_destroy(attr);
    if (more) dnnl_memory_desc_destroy(more);
    for (int i = 0; i < 3; i++)
        if (md[i]) dnnl_memory_desc_destroy(md[i]);
    return st;
}

ctn_status ctn__prim_matmul(ctn__prim **out, ctn__engine *e, const ctn_desc *a, const ctn_desc *b,
                            const ctn_desc *bias, const ctn_desc *c, ctn__elt act)
{
    ctn_status st = CTN_OK;
    dnnl_memory_desc_t md[4] = {NULL};
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    *out = NULL;
    int nd = c->ndim;
    /* The weight gradient of a linear layer, whose inner dimension is the batch. */
    const int64_t k = b->dim[b->ndim - 2];
    const bool gradient = k >= 16 && c->dim[0] >= 2 * k && c->dim[nd - 1] >= 2 * k && is_turned(a);
    /* One row: oneDNN's product would copy B first. */
    const bool row = c->dim[0] == 1 && is_row_major(b);
    if (nd == 2 && !bias && act == CTN__ELT_NONE && (gradient || row)) {
        CTN_TRY(ctn__prim_inner(out, e, a, b, NULL, c, act));
        if (*out) return CTN_OK;
    }
    const ctn_desc wa = fit(a, c), wb = fit(b, c), wc = fit(c, c);
    CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&md[0], e, &wa));
    CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&md[1], e, &wb));
    if (bias) {
        const ctn_desc wbias = fit(bias, c);
        CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&md[2], e, &wbias));
    }
    CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&md[3], e, &wc));
    CTN_TRY_GOTO(st, done, ctn__dnnl_attr(&attr, act));
    CTN__DNNL(st, done, "matmul",
              dnnl_matmul_primitive_desc_create(&pd, e->engine, md[0], md[1], md[2], md[3], attr));
    CTN__DNNL(st, done, "matmul", ctn__dnnl_settle(pd));
    if (ctn__dnnl_is_loops(pd) && ctn__blas_name()) {
        CTN_TRY_GOTO(st, done, ctn__blas_matmul(out, e, a, b, bias, c, act));
        if (*out) goto done;
    }
    static const int args[4] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST};
    st = ctn__prim_make(out, e, pd, 4, args, (const_dnnl_memory_desc_t *)md, "matmul");
    pd = NULL; /* ctn__prim_make owns it, even if it failed */
done:
    if (pd) dnnl_primitive_desc_destroy(pd);
    if (attr) dnnl_primitive_attr_destroy(attr);
    for (int i = 0; i < 4; i++)
        if (md[i]) dnnl_memory_desc_destroy(md[i]);
    return st;
}
