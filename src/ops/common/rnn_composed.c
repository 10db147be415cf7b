/* SPDX-License-Identifier: Apache-2.0
 *
 * A recurrent layer made of ordinary ops, step by step. It can be differentiated any number of
 * times and has projections. It is also the reference of the op that is one kernel (rnn.c).
 */
#include "ops/common/rnn.h"

/* The steps are counted by a sum of ones; they and the lengths are exact as f32. */
ctn_tensor *ctn__rnn_within(const char *at, ctn_tensor *lengths, int64_t T, int64_t ahead)
{
    if (!lengths) return NULL;
    const int64_t N = lengths->d.dim[0];
    ctn_tensor *one = ctn_full_at(at, lengths->ctx, 1, CTN_F32, CTN_SHAPE(T, 1, 1));
    ctn_tensor *last = ctn_shift_at(at, ctn_cumsum_at(at, one, 0, 0), (double)ahead);
    ctn_tensor *n = ctn_reshape_at(at, ctn_cast_at(at, lengths, CTN_F32), CTN_SHAPE(1, N, 1));
    return ctn_less_equal_at(at, last, n);
}

/* q, split into the K gates; those of p likewise. */
static ctn_status gates(const ctn__rnn *l, ctn_tensor *p, ctn_tensor *h, ctn_tensor **kp,
                        ctn_tensor **kq)
{
    const int64_t K = ctn__rnn_gates(l->mode), H = l->w_hh->d.dim[0] / K, size[4] = {H, H, H, H};
    CTN_TRY(ctn_split_at(l->at, p, 1, (int)K, size, kp));
    return ctn_split_at(l->at, ctn_linear_at(l->at, h, l->w_hh, l->b_hh), 1, (int)K, size, kq);
}

static ctn_status lstm_step(const ctn__rnn *l, ctn_tensor *p, ctn_tensor **h, ctn_tensor **c)
{
    const char *at = l->at;
    ctn_tensor *kp[4], *kq[4], *k[4];
    CTN_TRY(gates(l, p, *h, kp, kq));
    for (int i = 0; i < 4; i++) {
        k[i] = ctn_add_at(at, kp[i], kq[i]);
        k[i] = i == 2 ? ctn_tanh_at(at, k[i]) : ctn_sigmoid_at(at, k[i]);
    }
    *c = ctn_add_at(at, ctn_mul_at(at, k[1], *c), ctn_mul_at(at, k[0], k[2]));
    *h = ctn_mul_at(at, k[3], ctn_tanh_at(at, *c));
    if (l->w_hr) *h = ctn_linear_at(at, *h, l->w_hr, NULL);
    return *h ? CTN_OK : ctn_error_status();
}

static ctn_status gru_step(const ctn__rnn *l, ctn_tensor *p, ctn_tensor **h)
{
    const char *at = l->at;
    ctn_tensor *kp[3], *kq[3];
    CTN_TRY(gates(l, p, *h, kp, kq));
    ctn_tensor *r = ctn_sigmoid_at(at, ctn_add_at(at, kp[0], kq[0]));
    ctn_tensor *z = ctn_sigmoid_at(at, ctn_add_at(at, kp[1], kq[1]));
    ctn_tensor *n = ctn_tanh_at(at, ctn_add_at(at, kp[2], ctn_mul_at(at, r, kq[2])));
    *h = ctn_add_at(at, n, ctn_mul_at(at, z, ctn_sub_at(at, *h, n)));
    return *h ? CTN_OK : ctn_error_status();
}

static ctn_status plain_step(const ctn__rnn *l, ctn_tensor *p, ctn_tensor **h)
{
    ctn_tensor *s = ctn_add_at(l->at, p, ctn_linear_at(l->at, *h, l->w_hh, l->b_hh));
    *h = l->mode == CTN__RNN_RELU ? ctn_relu_at(l->at, s) : ctn_tanh_at(l->at, s);
    return *h ? CTN_OK : ctn_error_status();
}

/* Row t of x (T,N,S) as (N,S). */
static ctn_tensor *step_of(const char *at, ctn_tensor *x, int64_t t)
{
    const int64_t *d = x->d.dim;
    return ctn_reshape_at(at, ctn_slice_at(at, x, 0, t, 1), CTN_SHAPE(d[1], d[2]));
}

/* One step; within (T,N,1) or NULL. *y is the step's output. */
static ctn_status step(const ctn__rnn *l, int64_t t, ctn_tensor *within, ctn_tensor **h,
                       ctn_tensor **c, ctn_tensor **y)
{
    const char *at = l->at;
    ctn_tensor *p = step_of(at, l->p, t), *old_h = *h, *old_c = *c;
    if (l->mode == CTN__RNN_LSTM) CTN_TRY(lstm_step(l, p, h, c));
    else if (l->mode == CTN__RNN_GRU) CTN_TRY(gru_step(l, p, h));
    else CTN_TRY(plain_step(l, p, h));
    *y = *h;
    if (!within) return CTN_OK;
    ctn_tensor *in = step_of(at, within, t);
    ctn_tensor *zero = ctn_full_at(at, l->p->ctx, 0, l->p->d.dtype, CTN_SCALAR_SHAPE);
    *y = ctn_where_at(at, in, *h, zero);
    *h = ctn_where_at(at, in, *h, old_h);
    if (*c) *c = ctn_where_at(at, in, *c, old_c);
    return *h ? CTN_OK : ctn_error_status();
}

ctn_status ctn__rnn_composed(const ctn__rnn *l, ctn_tensor **out)
{
    const int64_t T = l->p->d.dim[0];
    ctn_status st = CTN_OK;
    ctn_tensor *h = l->h0, *c = l->c0, *within = NULL;
    ctn_tensor **y = ctn__calloc((size_t)T, sizeof(ctn_tensor *));
    if (!y) return CTN_ENOMEM;
    if (l->lengths && !(within = ctn__rnn_within(l->at, l->lengths, T, 0))) st = ctn_error_status();
    for (int64_t k = 0; k < T && st == CTN_OK; k++) {
        const int64_t t = l->reverse ? T - 1 - k : k;
        st = step(l, t, within, &h, &c, &y[t]);
    }
    if (st == CTN_OK) {
        out[0] = ctn_stack_at(l->at, (int)T, y, 0);
        out[1] = h;
        out[2] = c;
        if (!out[0]) st = ctn_error_status();
    }
    ctn__free(y);
    return st;
}
