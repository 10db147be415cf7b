/* SPDX-License-Identifier: Apache-2.0
 *
 * tree_lstm and slstm: cells of trees, recorded with elementwise ops that the plan fuses. The
 * formulas are in catena/ops_sequence.h.
 */
#include "ops/ops.h"

/* c = tanh(a) s(i) + c */
static ctn_tensor *add_input(const char *at, ctn_tensor *c, ctn_tensor *a, ctn_tensor *i)
{
    ctn_tensor *v = ctn_mul_at(at, ctn_tanh_at(at, a), ctn_sigmoid_at(at, i));
    return c ? ctn_add_at(at, c, v) : v;
}

/* *c_new = c and *h = tanh(c) s(o), for those that are wanted. */
static ctn_status give(const char *at, ctn_tensor *c, ctn_tensor *o, ctn_tensor **h,
                       ctn_tensor **c_new)
{
    ctn_tensor *out = ctn_mul_at(at, ctn_tanh_at(at, c), ctn_sigmoid_at(at, o));
    if (!out) return ctn_error_status();
    if (h) *h = out;
    if (c_new) *c_new = c;
    return CTN_OK;
}

static ctn_status null_input(const char *who, const char *at)
{
    return ctn_error_status() < 0 ? ctn_error_status()
                                  : ctn_fail(CTN_EARG, "%s: an input is NULL (%s)", who, at);
}

/* Is c (N,H)? */
static ctn_status check_state(const char *who, const char *at, const ctn_tensor *c,
                              const ctn_tensor *x, int64_t H)
{
    char tc[128], tx[128];
    if (c->d.dtype == x->d.dtype && c->d.ndim == 2 && c->d.dim[0] == x->d.dim[0] &&
        c->d.dim[1] == H)
        return CTN_OK;
    return ctn_fail(c->d.dtype == x->d.dtype ? CTN_ESHAPE : CTN_EDTYPE,
                    "%s: x is %s %s, the state of a child is %s %s; expected (%lld,%lld) of the "
                    "same type (%s)",
                    who, ctn_dtype_name(x->d.dtype), ctn__shape_text(&x->d, tx, sizeof tx),
                    ctn_dtype_name(c->d.dtype), ctn__shape_text(&c->d, tc, sizeof tc),
                    (long long)x->d.dim[0], (long long)H, at);
}

ctn_status ctn_tree_lstm_at(const char *at, int n, ctn_tensor *const *c, ctn_tensor *x,
                            ctn_tensor **h, ctn_tensor **c_new)
{
    char t[128];
    if (h) *h = NULL;
    if (c_new) *c_new = NULL;
    if (!x) return null_input("tree_lstm", at);
    if (n < 0) return ctn_fail(CTN_EARG, "tree_lstm: got %d children (%s)", n, at);
    if (x->d.ndim != 2 || x->d.dim[1] % (3 + n))
        return ctn_fail(CTN_ESHAPE, "tree_lstm: x is %s, expected (N,%d H) for %d children (%s)",
                        ctn__shape_text(&x->d, t, sizeof t), 3 + n, n, at);
    const int64_t H = x->d.dim[1] / (3 + n);
    ctn_tensor *sum = NULL;
    for (int k = 0; k < n; k++) {
        if (!c[k]) return null_input("tree_lstm", at);
        CTN_TRY(check_state("tree_lstm", at, c[k], x, H));
        ctn_tensor *f = ctn_sigmoid_at(at, ctn_slice_at(at, x, 1, (3 + k) * H, H));
        ctn_tensor *kept = ctn_mul_at(at, f, c[k]);
        sum = sum ? ctn_add_at(at, sum, kept) : kept;
    }
    sum = add_input(at, sum, ctn_slice_at(at, x, 1, 0, H), ctn_slice_at(at, x, 1, H, H));
    return give(at, sum, ctn_slice_at(at, x, 1, 2 * H, H), h, c_new);
}

ctn_status ctn_slstm_at(const char *at, ctn_tensor *c1, ctn_tensor *c2, ctn_tensor *x1,
                        ctn_tensor *x2, ctn_tensor **h, ctn_tensor **c_new)
{
    enum { A, I, F, O, GATES };
    ctn_tensor *c[2] = {c1, c2}, *x[2] = {x1, x2}, *gate[2][GATES], *sum = NULL;
    char t1[128], t2[128];
    if (h) *h = NULL;
    if (c_new) *c_new = NULL;
    if (!c1 || !c2 || !x1 || !x2) return null_input("slstm", at);
    if (x1->d.ndim != 2 || x1->d.dim[1] % GATES || !ctn__same_shape(&x1->d, &x2->d))
        return ctn_fail(CTN_ESHAPE, "slstm: x1 is %s, x2 is %s; expected both (N,4 H) (%s)",
                        ctn__shape_text(&x1->d, t1, sizeof t1),
                        ctn__shape_text(&x2->d, t2, sizeof t2), at);
    const int64_t N = x1->d.dim[0], H = x1->d.dim[1] / GATES;
    for (int k = 0; k < 2; k++) {
        CTN_TRY(check_state("slstm", at, c[k], x[k], H));
        CTN_TRY(ctn_separate_at(at, ctn_reshape_at(at, x[k], CTN_SHAPE(N, H, GATES)), 2, GATES,
                                gate[k]));
        ctn_tensor *kept = ctn_mul_at(at, ctn_sigmoid_at(at, gate[k][F]), c[k]);
        sum = sum ? ctn_add_at(at, sum, kept) : kept;
    }
    for (int k = 0; k < 2; k++) sum = add_input(at, sum, gate[k][A], gate[k][I]);
    return give(at, sum, ctn_add_at(at, gate[0][O], gate[1][O]), h, c_new);
}
