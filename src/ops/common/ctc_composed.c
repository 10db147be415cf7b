/* SPDX-License-Identifier: Apache-2.0
 *
 * Connectionist temporal classification made of ordinary ops, step by step. It can be
 * differentiated any number of times. The states are described in ctc.h.
 */
#include <math.h>

#include "ops/common/ctc.h"
#include "ops/common/rnn.h"

static ctn_tensor *number(const char *at, ctn_tensor *like, double v)
{
    return ctn_full_at(at, like->ctx, v, like->d.dtype, CTN_SCALAR_SHAPE);
}

/* n columns of v in front of x (N,S). */
static ctn_tensor *columns_before(const char *at, ctn_tensor *x, int64_t n, double v)
{
    const int64_t before[2] = {0, n};
    return x ? ctn_pad_at(at, x, before, NULL, v) : NULL;
}

/* log(sum of exp) of n tensors of the same shape. */
static ctn_tensor *log_sum(const char *at, int n, ctn_tensor *const *x)
{
    const int64_t last = -1;
    return ctn_logsumexp_at(at, ctn_stack_at(at, n, x, -1), 1, &last, 0);
}

/* The class of each state (N,S). Labels beyond the end count as blanks, which are never reached. */
static ctn_tensor *classes(const char *at, ctn_tensor *const *in, int64_t blank)
{
    const int64_t N = in[CTN__CTC_LABELS]->d.dim[0], L = in[CTN__CTC_LABELS]->d.dim[1];
    ctn_context *ctx = in[CTN__CTC_LABELS]->ctx;
    ctn_tensor *end = ctn_full_at(at, ctx, (double)blank, CTN_I64, CTN_SHAPE(N, 1));
    if (L == 0) return end;
    ctn_tensor *within = ctn__rnn_within(at, in[CTN__CTC_SIZES], L, 0); /* (L,N,1) */
    within = ctn_transpose_at(at, within, CTN_SHAPE(1, 0, 2));
    ctn_tensor *label = ctn_cast_at(at, in[CTN__CTC_LABELS], CTN_I64);
    ctn_tensor *none = ctn_full_at(at, ctx, (double)blank, CTN_I64, CTN_SHAPE(N, L, 1));
    label = ctn_where_at(at, within, ctn_reshape_at(at, label, CTN_SHAPE(N, L, 1)), none);
    ctn_tensor *pair[2] = {none, label};
    ctn_tensor *both[2] = {ctn_reshape_at(at, ctn_concat_at(at, 2, pair, 2), CTN_SHAPE(N, 2 * L)),
                           end};
    return ctn_concat_at(at, 2, both, 1);
}

/* (N,S): 0 if a state can be reached from the one two before it, else CTN__CTC_NEVER. */
static ctn_tensor *skips(const char *at, ctn_tensor *class, int64_t blank, ctn_tensor *like)
{
    const int64_t S = class->d.dim[1];
    ctn_tensor *before = columns_before(at, class, 2, (double)blank);
    ctn_tensor *differ = ctn_not_equal_at(at, class, ctn_slice_at(at, before, 1, 0, S));
    ctn_tensor *label = ctn_not_equal_at(at, class, number(at, class, (double)blank));
    return ctn_where_at(at, ctn_logical_and_at(at, differ, label), number(at, like, 0),
                        number(at, like, CTN__CTC_NEVER));
}

/* -log Z from the last row alpha (N,S): of states 2 L and 2 L - 1. */
static ctn_tensor *loss_of(const char *at, ctn_tensor *alpha, ctn_tensor *sizes)
{
    const int64_t N = alpha->d.dim[0];
    /* exact in f32; one column in front, because 2 L - 1 is -1 without labels */
    ctn_tensor *before = ctn_scale_at(at, ctn_cast_at(at, sizes, CTN_F32), 2);
    ctn_tensor *at_end[2] = {ctn_shift_at(at, before, 1), before}, *end[2];
    alpha = columns_before(at, alpha, 1, CTN__CTC_NEVER);
    for (int i = 0; i < 2; i++) {
        ctn_tensor *index = ctn_cast_at(at, at_end[i], CTN_I64);
        end[i] = ctn_gather_at(at, alpha, ctn_reshape_at(at, index, CTN_SHAPE(N, 1)), 1);
    }
    ctn_tensor *z = log_sum(at, 2, end);
    if (!z) return NULL;
    ctn_tensor *y = ctn_neg_at(at, ctn_reshape_at(at, z, CTN_SHAPE(N)));
    ctn_tensor *possible =
        ctn_less_at(at, number(at, z, CTN__CTC_NEVER / 2), ctn_reshape_at(at, z, CTN_SHAPE(N)));
    return ctn_where_at(at, possible, y, number(at, z, INFINITY));
}

ctn_tensor *ctn__ctc_composed(const char *at, ctn_tensor *const *in, int64_t blank)
{
    ctn_tensor *lp = in[CTN__CTC_LP], *class = classes(at, in, blank);
    if (!lp || !class) return NULL;
    const int64_t T = lp->d.dim[0], N = lp->d.dim[1], S = class->d.dim[1];
    ctn_tensor *never = number(at, lp, CTN__CTC_NEVER), *skip = skips(at, class, blank, lp);
    ctn_tensor *within = ctn__rnn_within(at, in[CTN__CTC_STEPS], T, 0); /* (T,N,1) */
    ctn_tensor *emit = ctn_gather_at(at, lp, ctn_broadcast_to_at(at, class, CTN_SHAPE(T, N, S)), 2);
    emit = ctn_maximum_at(at, emit, never); /* of -infinity */
    ctn_tensor *zero = ctn_full_at(at, lp->ctx, 0, lp->d.dtype, CTN_SHAPE(N, 1));
    const int64_t after[2] = {0, S - 1};
    ctn_tensor *alpha = ctn_pad_at(at, zero, NULL, after, CTN__CTC_NEVER);
    for (int64_t t = 0; t < T && alpha; t++) {
        ctn_tensor *wide = columns_before(at, alpha, 2, CTN__CTC_NEVER);
        ctn_tensor *from[3] = {alpha, ctn_slice_at(at, wide, 1, 1, S),
                               ctn_add_at(at, ctn_slice_at(at, wide, 1, 0, S), skip)};
        ctn_tensor *next = ctn_add_at(at, log_sum(at, 3, from), ctn_select_at(at, emit, 0, t));
        alpha = ctn_where_at(at, ctn_select_at(at, within, 0, t), next, alpha);
    }
    return alpha ? loss_of(at, alpha, in[CTN__CTC_SIZES]) : NULL;
}
