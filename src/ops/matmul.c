/* SPDX-License-Identifier: Apache-2.0
 *
 * matmul: C = op(A) op(B), where op transposes the last two dimensions if asked to. Leading
 * dimensions are batches and broadcast. Transposes only change strides, so they cost nothing.
 * The gradients are two more matmuls, summed over the broadcast dimensions.
 */
#include "ops/ops.h"

enum { TRANS_A, TRANS_B, NATTR };
static const char *const attr_names[] = {"trans_a", "trans_b"};

/* d with its last two dimensions swapped if t is set. */
static ctn_desc turned(const ctn_desc *d, int64_t t)
{
    ctn_desc r = *d;
    int i = d->ndim - 2, j = d->ndim - 1;
    if (t) {
        r.dim[i] = d->dim[j];
        r.dim[j] = d->dim[i];
        r.stride[i] = d->stride[j];
        r.stride[j] = d->stride[i];
    }
    return r;
}

static ctn_status matmul_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0], *y = a->in[1];
    char tx[128], ty[128];
    if (x->dtype != y->dtype || !ctn__is_float(x->dtype))
        return ctn_fail(CTN_EDTYPE, "matmul: inputs are %s and %s, expected the same float type",
                        ctn_dtype_name(x->dtype), ctn_dtype_name(y->dtype));
    if (x->ndim < 2 || y->ndim < 2) goto bad;
    ctn_desc p = turned(x, a->attr[TRANS_A]), q = turned(y, a->attr[TRANS_B]);
    if (p.dim[p.ndim - 1] != q.dim[q.ndim - 2]) goto bad;
    int64_t m = p.dim[p.ndim - 2], n = q.dim[q.ndim - 1];
    p.ndim -= 2;
    q.ndim -= 2;
    a->out[0].dtype = x->dtype;
    if (ctn__broadcast(&a->out[0], a->name, &p, &q) < 0) return ctn_error_status();
    if (a->out[0].ndim + 2 > CTN_MAX_DIMS) goto bad;
    a->out[0].dim[a->out[0].ndim++] = m;
    a->out[0].dim[a->out[0].ndim++] = n;
    return CTN_OK;
bad:
    return ctn_fail(CTN_ESHAPE, "matmul: shapes do not match: A is %s%s, B is %s%s",
                    ctn__shape_text(x, tx, sizeof tx), a->attr[TRANS_A] ? " transposed" : "",
                    ctn__shape_text(y, ty, sizeof ty), a->attr[TRANS_B] ? " transposed" : "");
}

/* Called only if there are no elements to sum: the result is zeros. */
static ctn_status matmul_run(const ctn_run_args *a)
{
    const ctn_desc *c = &a->dout[0];
    memset(a->out[0], 0, (size_t)ctn__count(c) * ctn_dtype_size(c->dtype));
    return CTN_OK;
}

static ctn_status run_f64(const ctn_run_args *a)
{
    ctn_desc p = turned(&a->din[0], a->attr[TRANS_A]), q = turned(&a->din[1], a->attr[TRANS_B]);
    ctn__product_f64(&p, &q, &a->dout[0], a->in[0], a->in[1], a->out[0], a->env->threads,
                     a->scratch);
    return CTN_OK;
}

static ctn_status prim_run(const ctn_run_args *a)
{
    void *ptr[4] = {(void *)(uintptr_t)a->in[0], (void *)(uintptr_t)a->in[1], NULL, a->out[0]};
    return ctn__prim_run(a->priv, ptr, a->scratch);
}

static ctn_status by_prim(ctn_prepare_args *a, ctn__product_maker *make)
{
    const ctn_desc p = turned(&a->din[0], a->attr[TRANS_A]);
    const ctn_desc q = turned(&a->din[1], a->attr[TRANS_B]);
    ctn__prim *prim;
    CTN_TRY(make(&prim, a->engine, &p, &q, NULL, &a->dout[0], CTN__ELT_NONE));
    return prim ? ctn__with_prim(a, prim, prim_run) : CTN_END;
}

static ctn_status by_matmul(ctn_prepare_args *a)
{
    return by_prim(a, ctn__prim_matmul);
}

static ctn_status by_inner(ctn_prepare_args *a)
{
    return by_prim(a, ctn__prim_inner);
}

static ctn_status matmul_prepare(ctn_prepare_args *a)
{
    static const ctn__way ways[] = {{"matmul", by_matmul}, {"inner", by_inner}};
    const ctn_desc *c = &a->dout[0];
    for (int i = 0; i < 2; i++) ctn__ask_matrix(&a->din[i]);
    const ctn_desc p = turned(&a->din[0], a->attr[TRANS_A]);
    const int64_t K = p.dim[p.ndim - 1];
    a->flops = ctn__work(2.0 * (double)ctn__count(c) * (double)K);
    a->kernel = "empty";
    if (ctn__count(c) == 0 || K == 0) return CTN_OK;
    if (c->dtype == CTN_F64) {
        a->kernel = "own:blocked";
        a->scratch = ctn__product_f64_scratch(a->threads);
        a->run = run_f64;
        return CTN_OK;
    }
    return ctn__choose(a, a->flops, a->flops < CTN__WORTH_CHOOSING ? 1 : 2, ways);
}

static ctn_status matmul_grad(const ctn_grad_args *a)
{
    ctn_tensor *A = a->in[0], *B = a->in[1], *g = a->gout[0];
    int ta = a->attr[TRANS_A] != 0, tb = a->attr[TRANS_B] != 0;
    if (a->need[0]) { /* gA = gC op(B)^T, or its transpose */
        ctn_tensor *gA =
            ta ? ctn_matmul_at(a->at, B, g, tb, 1) : ctn_matmul_at(a->at, g, B, 0, !tb);
        CTN_TRY(ctn__grad_to(a, 0, ctn__sum_to(a->at, gA, &A->d)));
    }
    if (a->need[1] && B->d.ndim == 2 && A->d.ndim > 2 && !ta) { /* the batch is only more rows */
        A = ctn__rows_of(a->at, A);
        g = ctn__rows_of(a->at, g);
        ctn_tensor *gB = tb ? ctn_matmul_at(a->at, g, A, 1, 0) : ctn_matmul_at(a->at, A, g, 1, 0);
        CTN_TRY(ctn__grad_to(a, 1, gB));
    } else if (a->need[1]) { /* gB = op(A)^T gC, or its transpose */
        ctn_tensor *gB =
            tb ? ctn_matmul_at(a->at, g, A, 1, ta) : ctn_matmul_at(a->at, A, g, !ta, 0);
        CTN_TRY(ctn__grad_to(a, 1, ctn__sum_to(a->at, gB, &B->d)));
    }
    return CTN_OK;
}

ctn_op ctn__op_matmul = {
    .struct_size = sizeof(ctn_op),
    .name = "matmul",
    .nin = 2,
    .nout = 1,
    .flags = CTN_OP_STRIDED,
    .order = -1,
    .prec = CTN_PREC_LOW,
    .grad_in = CTN_OPERANDS(2),
    .attr_names = attr_names,
    .infer = matmul_infer,
    .grad = matmul_grad,
    .prepare = matmul_prepare,
    .run = matmul_run,
};

ctn_tensor *ctn_matmul_at(const char *at, ctn_tensor *a, ctn_tensor *b, int trans_a, int trans_b)
{
    ctn_tensor *in[2] = {a, b};
    int64_t attr[NATTR] = {trans_a != 0, trans_b != 0};
    return ctn__apply1(at, NULL, &ctn__op_matmul, 2, in, NATTR, attr, 0, NULL);
}
