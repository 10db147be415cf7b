/* SPDX-License-Identifier: Apache-2.0
 *
 * What the recurrent layers share: rnn.c (the ops), rnn_body.h (their kernels) and rnn_composed.c
 * (the same layer made of ordinary ops). A layer runs over T steps of N samples with a state of H
 * elements and K gates: 4 in an LSTM (i, f, g, o), 3 in a GRU (r, z, n), otherwise 1. The products
 * with the inputs, p = x W_ih^T + b_ih, are computed for all steps at once by `linear`, so only
 * the products with the state, q = h W_hh^T + b_hh, remain in the recurrence:
 *
 *   LSTM   i, f, o = sigmoid(p + q), g = tanh(p + q), c' = f c + i g, h' = o tanh(c')
 *   GRU    r, z = sigmoid(p + q), n = tanh(p + r q), h' = n + z (h - n)
 *   RNN    h' = tanh(p + q) or relu(p + q)
 *
 * A sample does nothing in steps at or beyond its length: its state stays, its y is zero. So the
 * final state is that after its last step, and in reverse it begins with its last step.
 */
#ifndef CTN_OPS_COMMON_RNN_H
#define CTN_OPS_COMMON_RNN_H

#include "ops/common/along.h"

typedef enum { CTN__RNN_LSTM, CTN__RNN_GRU, CTN__RNN_TANH, CTN__RNN_RELU } ctn__rnn_mode;

static inline int64_t ctn__rnn_gates(int64_t mode)
{
    return mode == CTN__RNN_LSTM ? 4 : mode == CTN__RNN_GRU ? 3 : 1;
}

/* One layer in one direction. */
typedef struct {
    const char *at;
    ctn__rnn_mode mode;
    bool reverse;
    ctn_tensor *p;           /* (T,N,K H) */
    ctn_tensor *w_hh, *b_hh; /* (K H,P), (K H); b_hh NULL: none */
    ctn_tensor *w_hr;        /* (P,H) projection of an LSTM's h, or NULL; then P = H */
    ctn_tensor *h0, *c0;     /* (N,P), (N,H); c0 in an LSTM only */
    ctn_tensor *lengths;     /* (N), or NULL */
} ctn__rnn;

/* out: y (T,N,P), final h (N,P), and final c (N,H) in an LSTM. */
ctn_status ctn__rnn_composed(const ctn__rnn *l, ctn_tensor **out);

/* Whether step + ahead is within the sample's length, as bool (T,N,1). */
ctn_tensor *ctn__rnn_within(const char *at, ctn_tensor *lengths, int64_t T, int64_t ahead);

#endif
