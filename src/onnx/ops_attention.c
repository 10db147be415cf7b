/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention and RotaryEmbedding of opset 23 and later. The usual forms of attention use the op of
 * Catena; limited scores, and results that show the scores, are recorded with ordinary ops.
 */
#include "onnx/onnx.h"

#ifdef CTN_HAVE_PROTOBUFC

#include <math.h>

#include "onnx/kinds.h"

typedef struct {
    ctn__onnx_call *c;
    bool flat;    /* inputs and result are (B,L,heads E) */
    int64_t past; /* keys before those of this call */
    bool causal, lengths;
    int64_t left, right; /* of the window; -1: no limit */
    double scale, limit; /* limit 0: none */
    ctn_tensor *q, *k, *v, *mask;
} attention;

/* Input i as (B,heads,L,E). */
static ctn_tensor *by_heads(ctn__onnx_call *c, int i, const char *heads)
{
    ctn_tensor *x = ctn__onnx_in(c, i);
    const int64_t n = ctn__onnx_int(c, heads, 0);
    if (!x || x->d.ndim != 3) return x;
    if (n < 1 || x->d.dim[2] % n != 0) {
        ctn__onnx_fail(c, CTN_ESHAPE, "%s is %lld", heads, (long long)n);
        return NULL;
    }
    x = ctn_reshape_at(c->at, x, CTN_SHAPE(x->d.dim[0], x->d.dim[1], n, x->d.dim[2] / n));
    return ctn_swapaxes_at(c->at, x, 1, 2);
}

static ctn_tensor *with_past(ctn__onnx_call *c, int i, ctn_tensor *x)
{
    if (!ctn__onnx_has(c, i)) return x;
    return ctn_concat_at(c->at, 2, (ctn_tensor *[]){ctn__onnx_in(c, i), x}, 2);
}

/* The mask as numbers that are added to scores of L queries and M keys. A mask that is shorter than
 * the keys hides the keys after its end. */
static ctn_tensor *additive(ctn__onnx_call *c, ctn_tensor *mask, const ctn_tensor *like, int64_t M)
{
    const char *at = c->at;
    if (!mask) return NULL;
    if (mask->d.dtype == CTN_BOOL)
        mask = ctn_where_at(at, mask, ctn__onnx_like(at, like, 0),
                            ctn__onnx_like(at, like, -INFINITY));
    if (!mask || mask->d.ndim < 1) return mask;
    const int last = mask->d.ndim - 1;
    if (mask->d.dim[last] >= M || mask->d.dim[last] == 1) return mask;
    int64_t after[CTN_MAX_DIMS] = {0};
    after[last] = M - mask->d.dim[last];
    return ctn_pad_at(at, mask, NULL, after, -INFINITY);
}

/* May query i of sample b see key j? Its position among the keys is that of its sample plus i. */
static bool visible(const attention *a, int64_t b, int64_t i, int64_t j)
{
    int64_t length = a->lengths ? ctn__onnx_int_of(a->c->in[6], b) : CTN__ONNX_LARGE;
    if (length < 0) length = 0;
    if (length > CTN__ONNX_LARGE) length = CTN__ONNX_LARGE;
    const int64_t at = i + (a->lengths ? length - a->q->d.dim[2] : a->past);
    if (j >= length || (a->causal && j > at)) return false;
    return (a->left < 0 || at - j <= a->left) && (a->right < 0 || j - at <= a->right);
}

/* The keys that positions and lengths hide, as (B,1,L,M), with one B if all samples are alike. */
static ctn_tensor *position_mask(const attention *a)
{
    const ctn_dtype type = a->q->d.dtype;
    const int64_t B = a->lengths ? a->q->d.dim[0] : 1;
    const int64_t L = a->q->d.dim[2], M = a->k->d.dim[2];
    const int64_t n = ctn__onnx_times(ctn__onnx_times(B, L), M);
    char *m = ctn__onnx_memory(a->c->run, n, ctn_dtype_size(type));
    for (int64_t i = 0; m && i < n; i++)
        ctn__elem_set(m, type, i, visible(a, i / M / L, i / M % L, i % M) ? 0 : -INFINITY);
    return ctn__onnx_array(a->c, m, type, CTN_SHAPE(B, 1, L, M));
}

/* Scores and their softmax in full. Output 3 shows them: 0 as products, 1 limited, 2 with the mask,
 * 3 after the softmax. */
static ctn_tensor *in_full(attention *a)
{
    const char *at = a->c->at;
    const int64_t shown = ctn__onnx_int(a->c, "qk_matmul_output_mode", 0);
    if (!a->q || !a->k || !a->v) return NULL;
    const int64_t share = a->k->d.dim[1] > 0 ? a->q->d.dim[1] / a->k->d.dim[1] : 1;
    if (share > 1) {
        a->k = ctn_repeat_at(at, a->k, share, 1);
        a->v = ctn_repeat_at(at, a->v, share, 1);
    }
    ctn_tensor *s = ctn_scale_at(at, ctn_matmul_at(at, a->q, a->k, 0, 1), a->scale), *all[4];
    all[0] = s;
    if (a->limit > 0)
        s = ctn_scale_at(at, ctn_tanh_at(at, ctn_scale_at(at, s, 1 / a->limit)), a->limit);
    all[1] = s;
    if (a->mask) s = ctn_add_at(at, s, a->mask);
    all[2] = s;
    ctn_tensor *p = ctn_softmax_at(at, s, -1);
    if (a->mask) /* a query that sees no key gives zeros */
        p = ctn_where_at(at, ctn_not_equal_at(at, p, p), ctn__onnx_like(at, p, 0), p);
    all[3] = p;
    if (ctn__onnx_set(a->c, 3, all[shown >= 0 && shown < 4 ? shown : 0]) < 0) return NULL;
    return ctn_matmul_at(at, p, a->v, 0, 0);
}

static ctn_status open_attention(ctn__onnx_call *c, attention *a)
{
    *a = (attention){.c = c, .limit = ctn__onnx_float(c, "softcap", 0)};
    a->q = by_heads(c, 0, "q_num_heads");
    a->k = with_past(c, 4, by_heads(c, 1, "kv_num_heads"));
    a->v = with_past(c, 5, by_heads(c, 2, "kv_num_heads"));
    if (!a->q || !a->k || !a->v) return ctn_error_status();
    if (a->q->d.ndim != 4 || a->k->d.ndim != 4 || a->v->d.ndim != 4)
        return ctn__onnx_fail(c, CTN_ESHAPE, "expected queries, keys and values of 3 or 4 axes");
    if (!ctn__is_float(a->q->d.dtype))
        return ctn__onnx_fail(c, CTN_EARG, "the queries are %s, expected floats",
                              ctn_dtype_name(a->q->d.dtype));
    a->flat = c->in[0]->ndim == 3;
    a->past = ctn__onnx_has(c, 4) ? c->in[4]->dim[2] : 0;
    a->scale = ctn__onnx_float(c, "scale", 1 / sqrt((double)a->q->d.dim[3]));
    if (ctn__onnx_has(c, 3)) {
        a->mask = additive(c, ctn__onnx_in(c, 3), a->q, a->k->d.dim[2]);
        if (!a->mask) return ctn_error_status();
    }
    a->causal = ctn__onnx_int(c, "is_causal", 0) != 0;
    a->left = ctn__onnx_int(c, "left_window_size", -1);
    a->right = ctn__onnx_int(c, "right_window_size", -1);
    a->lengths = ctn__onnx_has(c, 6);
    if (a->lengths) {
        CTN_TRY(ctn__onnx_need(c, 6));
        if (ctn__onnx_count(c->in[6]) != a->q->d.dim[0])
            return ctn__onnx_fail(c, CTN_ESHAPE, "one length per sample is needed");
    }
    return CTN_OK;
}

ctn_status ctn__onnx_do_attention(ctn__onnx_call *c)
{
    attention a;
    CTN_TRY(open_attention(c, &a));
    CTN_TRY(ctn__onnx_set(c, 1, a.k));
    CTN_TRY(ctn__onnx_set(c, 2, a.v));
    const bool full = a.limit > 0 || (c->nout > 3 && c->out[3]);
    const bool simple = !full && !a.lengths && a.past == 0 && a.left < 0 && a.right < 0;
    if (!simple && (a.causal || a.lengths || a.left >= 0 || a.right >= 0)) {
        ctn_tensor *hidden = position_mask(&a);
        if (!hidden) return ctn_error_status();
        a.mask = a.mask ? ctn_add_at(c->at, a.mask, hidden) : hidden;
        if (!a.mask) return ctn_error_status();
    }
    const ctn_attention_opt *opt =
        CTN_OPT(ctn_attention_opt, .scale = a.scale, .causal = simple && a.causal);
    ctn_tensor *y = full ? in_full(&a) : ctn_attention_at(c->at, a.q, a.k, a.v, a.mask, opt);
    if (y && a.flat) {
        const int64_t *d = y->d.dim, dims[3] = {d[0], d[2], d[1] * d[3]};
        y = ctn_reshape_at(c->at, ctn_swapaxes_at(c->at, y, 1, 2), 3, dims);
    }
    return ctn__onnx_set(c, 0, y);
}

/* ---- rotary embedding ------------------------------------------------------------------------ */

/* x (B,heads,T,E), or (B,T,heads E) with num_heads; cos and sin (B,T,D/2), or (P,D/2) with
 * positions (B,T). Pairs of the first D elements are rotated. */
ctn_status ctn__onnx_do_rotary(ctn__onnx_call *c)
{
    const char *at = c->at;
    ctn_tensor *x = by_heads(c, 0, "num_heads"), *angle[2];
    if (!x) return ctn_error_status();
    if (x->d.ndim != 4) return ctn__onnx_fail(c, CTN_ESHAPE, "expected 3 or 4 dimensions");
    const int64_t B = x->d.dim[0], H = x->d.dim[1], T = x->d.dim[2], E = x->d.dim[3];
    const int64_t given = ctn__onnx_int(c, "rotary_embedding_dim", 0), D = given > 0 ? given : E;
    for (int i = 0; i < 2; i++) {
        angle[i] = ctn__onnx_in(c, 1 + i);
        if (ctn__onnx_has(c, 3)) angle[i] = ctn_embedding_at(at, angle[i], ctn__onnx_in(c, 3));
        angle[i] = ctn_unsqueeze_at(at, angle[i], 1); /* (B,1,T,D/2) */
    }
    ctn_tensor *part = D < E ? ctn_slice_at(at, x, 3, 0, D) : x, *a, *b;
    const bool pairs = ctn__onnx_int(c, "interleaved", 0);
    if (pairs) {
        a = ctn_slice_step_at(at, part, 3, 0, D / 2, 2);
        b = ctn_slice_step_at(at, part, 3, 1, D / 2, 2);
    } else {
        a = ctn_slice_at(at, part, 3, 0, D / 2);
        b = ctn_slice_at(at, part, 3, D / 2, D / 2);
    }
    ctn_tensor *re = ctn_sub_at(at, ctn_mul_at(at, a, angle[0]), ctn_mul_at(at, b, angle[1]));
    ctn_tensor *im = ctn_add_at(at, ctn_mul_at(at, a, angle[1]), ctn_mul_at(at, b, angle[0]));
    ctn_tensor *both[2] = {re, im}, *y;
    if (pairs) y = ctn_reshape_at(at, ctn_stack_at(at, 2, both, 4), CTN_SHAPE(B, H, T, D));
    else y = ctn_concat_at(at, 2, both, 3);
    if (D < E) y = ctn_concat_at(at, 2, (ctn_tensor *[]){y, ctn_slice_at(at, x, 3, D, E - D)}, 3);
    if (c->in[0]->ndim == 3)
        y = ctn_reshape_at(at, ctn_swapaxes_at(at, y, 1, 2), CTN_SHAPE(B, T, H * E));
    return ctn__onnx_set(c, 0, y);
}

#endif
