/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention, recurrent layers, one layer in one direction at a time (the modules in nn.h stack
 * them), cells of trees, and losses of sequences. Included by ops.h, which says what all ops have
 * in common.
 */
#ifndef CATENA_OPS_SEQUENCE_H
#define CATENA_OPS_SEQUENCE_H

#include <catena/op.h>
#include <catena/ops_loss.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- attention ------------------------------------------------------------------------------ */

/* Attention: softmax(q k^T scale + mask) v over the last two dimensions. q (...,L,E), k
 * (...,M,E), v (...,M,F) -> (...,L,F). mask is added to the scores and must broadcast to
 * (...,L,M); mask NULL: no mask. Grouped queries: in dimension -3, q may have a multiple of the
 * heads of k and v. A query that sees no key gives zeros. In f32 with at most four dimensions the
 * memory is linear in L and M, except for the gradient of a mask; otherwise the (L,M) matrix is
 * kept. Errors: ESHAPE, EDTYPE, EARG. */
typedef struct {
    size_t struct_size;
    double scale;   /* 0: 1/sqrt(E) */
    int causal;     /* 1: query i sees keys 0 to i only (see first) */
    int64_t window; /* query i sees only keys with |i - key| < window; 0: no limit */
    double dropout; /* in training, probabilities are dropped at this rate */
    /* i64 or i32, one for each index of dimension 0 of q, which sees keys 0 to length - 1. */
    ctn_tensor *lengths;
    /* i64 or i32, one for each index of dimension 0 of q: query i has position first + i among the
     * keys, for causal and window. NULL: 0. */
    ctn_tensor *first;
    int composed; /* 1: use ordinary ops, which have all gradients of any order */
} ctn_attention_opt;
CTN_API ctn_tensor *ctn_attention_at(const char *at, ctn_tensor *q, ctn_tensor *k, ctn_tensor *v,
                                     ctn_tensor *mask, const ctn_attention_opt *opt);
#define ctn_attention(...) ctn_attention_at(CTN_HERE, __VA_ARGS__)

/* Rotary position embedding of x (...,T,E): row t is at position first + t, and pair i of its first
 * D elements is rotated by the angle position base^(-2 i / D). Errors: ESHAPE, EDTYPE, EARG. */
typedef struct {
    size_t struct_size;
    double base;     /* 0: 10000 */
    double first;    /* position of the first row; may change without a new plan */
    int64_t dims;    /* D, even; 0: E */
    int interleaved; /* 1: pairs (2 i, 2 i + 1) as in GPT-J; 0: (i, i + D/2) as in Llama */
    /* (N) i64 or i32: added to `first` for sample n of x (N,...,T,E); NULL: none. */
    ctn_tensor *positions;
} ctn_rotary_opt;
CTN_API ctn_tensor *ctn_rotary_at(const char *at, ctn_tensor *x, const ctn_rotary_opt *opt);
#define ctn_rotary(...) ctn_rotary_at(CTN_HERE, __VA_ARGS__)

/* ---- recurrent layers ----------------------------------------------------------------------- */

/* The weights of a layer with I inputs, a state of H elements and K gates: 4 in an LSTM (i, f, g,
 * o), 3 in a GRU (r, z, n), otherwise 1. Gates follow one another in the rows, as in PyTorch. */
typedef struct {
    ctn_tensor *w_ih, *w_hh; /* (K H,I), (K H,H) */
    ctn_tensor *b_ih, *b_hh; /* (K H); NULL: none */
    /* (P,H), LSTM only: h is projected to P elements, and w_hh is (4 H,P). NULL: none */
    ctn_tensor *w_hr;
} ctn_rnn_weights;

typedef struct {
    size_t struct_size;
    ctn_tensor *h0, *c0; /* initial state (N,H), with a projection h0 (N,P); NULL: zeros */
    /* (N) i64 or i32, 0 to T steps for each sample; NULL: all T. Beyond its length a sample's y is
     * zero and its state stays the same; in reverse it begins with its last step. A length out of
     * range gives EARG when the step runs. */
    ctn_tensor *lengths;
    int reverse; /* 1: from the last step to the first */
    int relu;    /* ctn_rnn only, 1: ReLU instead of tanh */
    /* 1: record ordinary ops for every step. Slower, but can be differentiated more than once. A
     * projection always does this. */
    int composed;
} ctn_rnn_opt;

/* One layer of an LSTM over x (T,N,I): y (T,N,H) has h of every step; h and c (N,H) are the final
 * state. Any of y, h, c may be NULL. Example: ctn_lstm(x, &w, CTN_OPT(ctn_rnn_opt, .reverse = 1),
 * &y, NULL, NULL). On an error they are set to NULL. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_status ctn_lstm_at(const char *at, ctn_tensor *x, const ctn_rnn_weights *w,
                               const ctn_rnn_opt *opt, ctn_tensor **y, ctn_tensor **h,
                               ctn_tensor **c);
#define ctn_lstm(...) ctn_lstm_at(CTN_HERE, __VA_ARGS__)

/* The same with the gates of a GRU: h' = (1 - z) n + z h, n = tanh(x W_n^T + b + r (h U_n^T + b')).
 * Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_status ctn_gru_at(const char *at, ctn_tensor *x, const ctn_rnn_weights *w,
                              const ctn_rnn_opt *opt, ctn_tensor **y, ctn_tensor **h);
#define ctn_gru(...) ctn_gru_at(CTN_HERE, __VA_ARGS__)

/* The same without gates: h' = tanh(x W^T + b + h U^T + b'), or relu. Errors: ESHAPE, EDTYPE,
 * EARG. */
CTN_API ctn_status ctn_rnn_at(const char *at, ctn_tensor *x, const ctn_rnn_weights *w,
                              const ctn_rnn_opt *opt, ctn_tensor **y, ctn_tensor **h);
#define ctn_rnn(...) ctn_rnn_at(CTN_HERE, __VA_ARGS__)

/* ---- cells of trees ------------------------------------------------------------------------- */

/* Tree LSTM (Tai et al.; Bowman et al.) of nodes with n children, n >= 0. c[k] (N,H) is the state
 * of child k, and x (N,(3+n) H) holds the gates a, i, o, f_1 to f_n one after another:
 *   c' = tanh(a) s(i) + sum over k of s(f_k) c[k],  h = tanh(c') s(o),  s(v) = 1/(1+exp(-v))
 * h and c_new (N,H) may be NULL. On an error they are set to NULL. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_status ctn_tree_lstm_at(const char *at, int n, ctn_tensor *const *c, ctn_tensor *x,
                                    ctn_tensor **h, ctn_tensor **c_new);
#define ctn_tree_lstm(...) ctn_tree_lstm_at(CTN_HERE, __VA_ARGS__)

/* S-LSTM (Zhu et al.) of nodes with two children. c1, c2 (N,H) are their states, and x1, x2 (N,4 H)
 * hold the gates a, i, f, o of each element of the state next to each other, as in Chainer:
 *   c' = tanh(a_1) s(i_1) + tanh(a_2) s(i_2) + s(f_1) c1 + s(f_2) c2,  h = tanh(c') s(o_1 + o_2)
 * h and c_new (N,H) may be NULL. On an error they are set to NULL. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_status ctn_slstm_at(const char *at, ctn_tensor *c1, ctn_tensor *c2, ctn_tensor *x1,
                                ctn_tensor *x2, ctn_tensor **h, ctn_tensor **c_new);
#define ctn_slstm(...) ctn_slstm_at(CTN_HERE, __VA_ARGS__)

/* ---- losses of sequences -------------------------------------------------------------------- */

typedef struct {
    size_t struct_size;
    /* (N) i64 or i32: sample n has input_lengths[n] steps and label_lengths[n] labels; NULL: T and
     * L. What follows them is not read. */
    ctn_tensor *input_lengths, *label_lengths;
    int64_t blank;           /* class of the blank, which is not a label; default 0 */
    ctn_reduction reduction; /* over the samples; none: the loss of each sample (N) */
    int per_label;     /* 1: each loss is divided by its number of labels, which is at least 1 */
    int zero_infinity; /* 1: the loss of a sample without an alignment is 0, not infinity */
    int composed;      /* 1: for gradients of gradients; slower */
} ctn_ctc_opt;
/* Connectionist temporal classification (Graves et al.): -log of the probability that the classes
 * of the T steps, after repetitions were merged and blanks removed, are the labels. x (T,N,V)
 * logits, labels (N,L) classes i64 or i32 -> (). log_softmax is part of it; log-probabilities are
 * logits too. A sample whose labels do not fit into its steps has the loss infinity and the
 * gradient 0. Chainer's mean is CTN_MEAN, PyTorch's mean is CTN_MEAN with per_label = 1. Gradients
 * of first order, with `composed` of any order. Errors: ESHAPE, EDTYPE, EARG; EARG for a length or
 * label out of range, when the step runs. */
CTN_API ctn_tensor *ctn_ctc_loss_at(const char *at, ctn_tensor *x, ctn_tensor *labels,
                                    const ctn_ctc_opt *opt);
#define ctn_ctc_loss(...) ctn_ctc_loss_at(CTN_HERE, __VA_ARGS__)

typedef struct {
    size_t struct_size;
    /* (N) i64 or i32, 1 to T steps for each sample; NULL: all T. What follows is not read. */
    ctn_tensor *lengths;
    ctn_reduction reduction; /* over the samples; none: the loss of each sample (N) */
} ctn_crf_opt;
/* Negative log-likelihood of labels under a linear-chain conditional random field. The score of a
 * sequence is the sum of x[t,n,label] over its steps and of cost[label,next label] over its pairs
 * of neighbours; its probability is exp(score) divided by the sum over all sequences. cost (K,K), x
 * (T,N,K) with T >= 1, labels (T,N) i64 or i32 -> (). Errors: ESHAPE, EDTYPE, EARG; EARG for a
 * label out of range, when the step runs. */
CTN_API ctn_tensor *ctn_crf_loss_at(const char *at, ctn_tensor *cost, ctn_tensor *x,
                                    ctn_tensor *labels, const ctn_crf_opt *opt);
#define ctn_crf_loss(...) ctn_crf_loss_at(CTN_HERE, __VA_ARGS__)
/* The labels with the highest score (Viterbi): path (T,N) i64, 0 after the end of a sample, and
 * score (N). path and score may be NULL. The first of equal labels is taken, from the last step to
 * the first. lengths (N) may be NULL, see ctn_crf_opt. On an error both are set to NULL. Errors:
 * ESHAPE, EDTYPE, EARG. */
CTN_API ctn_status ctn_crf_decode_at(const char *at, ctn_tensor *cost, ctn_tensor *x,
                                     ctn_tensor *lengths, ctn_tensor **path, ctn_tensor **score);
#define ctn_crf_decode(...) ctn_crf_decode_at(CTN_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
