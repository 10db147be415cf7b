/* SPDX-License-Identifier: Apache-2.0
 *
 * crf_loss and crf_decode: the linear-chain conditional random field, recorded step by step with
 * other ops. alpha_t(k) is the logarithm of the sum of exp(score) over all labels of the first t
 * steps that end in k, in crf_decode the largest score of them:
 *   alpha_t(k) = x_t(k) + log(sum over j of exp(alpha_{t-1}(j) + cost(j,k)))
 * A sample keeps its alpha after its last step.
 */
#include "ops/common/loss.h"
#include "ops/common/rnn.h"

static bool is_index(ctn_dtype t)
{
    return t == CTN_I64 || t == CTN_I32;
}

/* labels may be NULL in crf_decode, lengths in both. */
static ctn_status check(const char *who, const char *at, const ctn_tensor *cost,
                        const ctn_tensor *x, const ctn_tensor *labels, const ctn_tensor *lengths)
{
    const ctn_desc *c = &cost->d, *d = &x->d;
    char tc[128], tx[128], tl[128];
    if (!ctn__is_f32_f64(d->dtype) || c->dtype != d->dtype)
        return ctn_fail(CTN_EDTYPE,
                        "%s: cost is %s, x is %s; expected the same type, f32 or f64 (%s)", who,
                        ctn_dtype_name(c->dtype), ctn_dtype_name(d->dtype), at);
    if (d->ndim != 3 || d->dim[0] < 1 || c->ndim != 2 || c->dim[0] != d->dim[2] ||
        c->dim[1] != d->dim[2])
        return ctn_fail(CTN_ESHAPE,
                        "%s: cost is %s, x is %s; expected (K,K) and (T,N,K) with T >= 1 (%s)", who,
                        ctn__shape_text(c, tc, sizeof tc), ctn__shape_text(d, tx, sizeof tx), at);
    if (labels &&
        (labels->d.ndim != 2 || labels->d.dim[0] != d->dim[0] || labels->d.dim[1] != d->dim[1]))
        return ctn_fail(CTN_ESHAPE, "%s: x is %s, labels are %s; expected (T,N,K) and (T,N) (%s)",
                        who, ctn__shape_text(d, tx, sizeof tx),
                        ctn__shape_text(&labels->d, tl, sizeof tl), at);
    if (lengths && (lengths->d.ndim != 1 || lengths->d.dim[0] != d->dim[1]))
        return ctn_fail(CTN_ESHAPE, "%s: x is %s, lengths are %s; expected (T,N,K) and (N) (%s)",
                        who, ctn__shape_text(d, tx, sizeof tx),
                        ctn__shape_text(&lengths->d, tl, sizeof tl), at);
    if ((labels && !is_index(labels->d.dtype)) || (lengths && !is_index(lengths->d.dtype)))
        return ctn_fail(CTN_EDTYPE, "%s: labels and lengths must be i64 or i32 (%s)", who, at);
    return CTN_OK;
}

/* Is step t within each sample? (N,1); NULL: it is. */
static ctn_tensor *within_at(const char *at, ctn_tensor *within, int64_t t)
{
    return within ? ctn_select_at(at, within, 0, t) : NULL;
}

/* alpha_{t-1}(j) + cost(j,k) as (N,j,k) */
static ctn_tensor *moves(const char *at, ctn_tensor *alpha, ctn_tensor *cost)
{
    return ctn_add_at(at, ctn_unsqueeze_at(at, alpha, 2), cost);
}

/* ---- the loss -------------------------------------------------------------------------------- */

static ctn_tensor *log_partition(const char *at, ctn_tensor *cost, ctn_tensor *x,
                                 ctn_tensor *within)
{
    const int64_t one = 1;
    ctn_tensor *alpha = ctn_select_at(at, x, 0, 0);
    for (int64_t t = 1; t < x->d.dim[0] && alpha; t++) {
        ctn_tensor *sum = ctn_logsumexp_at(at, moves(at, alpha, cost), 1, &one, 0);
        ctn_tensor *next = ctn_add_at(at, sum, ctn_select_at(at, x, 0, t));
        alpha = within ? ctn_where_at(at, within_at(at, within, t), next, alpha) : next;
    }
    return ctn_logsumexp_at(at, alpha, 1, &one, 0);
}

/* The sum over the steps of v (steps,N), which are steps first, first + 1, ... of the samples. */
static ctn_tensor *sum_within(const char *at, ctn_tensor *v, ctn_tensor *within, int64_t first)
{
    const int64_t zero = 0;
    if (!v) return NULL;
    if (within) {
        ctn_tensor *none = ctn_full_at(at, v->ctx, 0, v->d.dtype, CTN_SCALAR_SHAPE);
        ctn_tensor *in = ctn_slice_at(at, within, 0, first, v->d.dim[0]);
        v = ctn_where_at(at, ctn_squeeze_at(at, in, 2), v, none);
    }
    return ctn_sum_at(at, v, 1, &zero, 0);
}

static ctn_tensor *score_of(const char *at, ctn_tensor *cost, ctn_tensor *x, ctn_tensor *labels,
                            ctn_tensor *within)
{
    const int64_t T = x->d.dim[0];
    if (within) { /* what follows the end need not be a label */
        ctn_tensor *zero = ctn_full_at(at, x->ctx, 0, labels->d.dtype, CTN_SCALAR_SHAPE);
        labels = ctn_where_at(at, ctn_squeeze_at(at, within, 2), labels, zero);
    }
    ctn_tensor *own = sum_within(at, ctn_select_item_at(at, x, labels), within, 0);
    if (T == 1) return own;
    ctn_tensor *rows = ctn_embedding_at(at, cost, ctn_slice_at(at, labels, 0, 0, T - 1));
    ctn_tensor *pairs = ctn_select_item_at(at, rows, ctn_slice_at(at, labels, 0, 1, T - 1));
    return ctn_add_at(at, own, sum_within(at, pairs, within, 1));
}

ctn_tensor *ctn_crf_loss_at(const char *at, ctn_tensor *cost, ctn_tensor *x, ctn_tensor *labels,
                            const ctn_crf_opt *opt)
{
    ctn_crf_opt o;
    if (!cost || !x || !labels || ctn__opt("crf_loss", &o, sizeof o, opt) < 0) return NULL;
    if (check("crf_loss", at, cost, x, labels, o.lengths) < 0) return NULL;
    ctn_tensor *within = ctn__rnn_within(at, o.lengths, x->d.dim[0], 0);
    ctn_tensor *score = score_of(at, cost, x, labels, within);
    ctn_tensor *each = ctn_sub_at(at, log_partition(at, cost, x, within), score);
    return ctn__loss_of_each(at, "crf_loss", each, o.reduction);
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* path[t] = the labels (N) of step t, from the last step to the first; back[t] (N,K) is the best
 * label of step t - 1 for each of step t. */
static void trace_back(const char *at, ctn_tensor *alpha, ctn_tensor *const *back, int64_t T,
                       ctn_tensor *within, ctn_tensor **path)
{
    ctn_tensor *label = ctn_argmax_at(at, alpha, 1);
    for (int64_t t = T - 1; t >= 0 && label; t--) {
        ctn_tensor *in = within ? ctn_squeeze_at(at, within_at(at, within, t), 1) : NULL;
        ctn_tensor *zero = ctn_full_at(at, label->ctx, 0, CTN_I64, CTN_SCALAR_SHAPE);
        path[t] = in ? ctn_where_at(at, in, label, zero) : label;
        if (t == 0) break;
        ctn_tensor *before = ctn_select_item_at(at, back[t], label);
        label = in ? ctn_where_at(at, in, before, label) : before;
    }
}

static ctn_status decode(const char *at, ctn_tensor *cost, ctn_tensor *x, ctn_tensor *within,
                         ctn_tensor **room, ctn_tensor **path, ctn_tensor **score)
{
    const int64_t T = x->d.dim[0], one = 1;
    ctn_tensor **back = room, **labels = room + T;
    ctn_tensor *alpha = ctn_select_at(at, x, 0, 0);
    for (int64_t t = 1; t < T && alpha; t++) {
        ctn_tensor *from = moves(at, alpha, cost);
        back[t] = ctn_argmax_at(at, from, 1);
        ctn_tensor *next =
            ctn_add_at(at, ctn_max_at(at, from, 1, &one, 0), ctn_select_at(at, x, 0, t));
        alpha = within ? ctn_where_at(at, within_at(at, within, t), next, alpha) : next;
    }
    *score = ctn_max_at(at, alpha, 1, &one, 0);
    trace_back(at, alpha, back, T, within, labels);
    *path = labels[0] ? ctn_stack_at(at, (int)T, labels, 0) : NULL;
    return *score && *path ? CTN_OK : ctn_error_status();
}

ctn_status ctn_crf_decode_at(const char *at, ctn_tensor *cost, ctn_tensor *x, ctn_tensor *lengths,
                             ctn_tensor **path, ctn_tensor **score)
{
    ctn_tensor *p = NULL, *s = NULL;
    if (path) *path = NULL;
    if (score) *score = NULL;
    if (!cost || !x)
        return ctn_error_status() < 0
                   ? ctn_error_status()
                   : ctn_fail(CTN_EARG, "crf_decode: cost or x is NULL (%s)", at);
    CTN_TRY(check("crf_decode", at, cost, x, NULL, lengths));
    ctn_tensor **room = ctn__calloc(2 * (size_t)x->d.dim[0], sizeof(ctn_tensor *));
    if (!room) return CTN_ENOMEM;
    ctn_tensor *within = ctn__rnn_within(at, lengths, x->d.dim[0], 0);
    const ctn_status st = decode(at, cost, x, within, room, &p, &s);
    ctn__free(room);
    if (st < 0) return st;
    if (path) *path = p;
    if (score) *score = s;
    return CTN_OK;
}
