/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax, losses, classification metrics, normalisation over the last dimensions, dropout and
 * random tensors. Included by ops.h, which says what all ops have in common.
 */
#ifndef CATENA_OPS_LOSS_H
#define CATENA_OPS_LOSS_H

#include <catena/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a loss is reduced to one number: to its mean or its sum. With CTN_NONE it is not reduced: the
 * result is the loss of each element, or of each row where the comment says so. ctn_average of
 * that is a mean with a weight for each sample. */
typedef enum { CTN_MEAN = 0, CTN_SUM = 1, CTN_NONE = 2 } ctn_reduction;

/* ---- softmax -------------------------------------------------------------------------------- */

/* y = exp(x) / sum of exp(x) along axis. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_softmax_at(const char *at, ctn_tensor *x, int axis);
#define ctn_softmax(...) ctn_softmax_at(CTN_HERE, __VA_ARGS__)

/* y = x - log(sum of exp(x) along axis). Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_log_softmax_at(const char *at, ctn_tensor *x, int axis);
#define ctn_log_softmax(...) ctn_log_softmax_at(CTN_HERE, __VA_ARGS__)

/* ---- losses: x and t have the same shape and float type -> (), or that shape with CTN_NONE -- */

/* Binary cross-entropy with logits: -t log s(x) - (1-t) log(1-s(x)) with s(x) = 1/(1+exp(-x));
 * t is in 0 to 1. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_sigmoid_cross_entropy_at(const char *at, ctn_tensor *x, ctn_tensor *t,
                                                 ctn_reduction reduction);
#define ctn_sigmoid_cross_entropy(...) ctn_sigmoid_cross_entropy_at(CTN_HERE, __VA_ARGS__)

/* Mean squared error: (x - t)^2. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_mean_squared_error_at(const char *at, ctn_tensor *x, ctn_tensor *t,
                                              ctn_reduction reduction);
#define ctn_mean_squared_error(...) ctn_mean_squared_error_at(CTN_HERE, __VA_ARGS__)

/* Mean absolute error: |x - t|; its gradient at 0 is 0. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_mean_absolute_error_at(const char *at, ctn_tensor *x, ctn_tensor *t,
                                               ctn_reduction reduction);
#define ctn_mean_absolute_error(...) ctn_mean_absolute_error_at(CTN_HERE, __VA_ARGS__)

/* Huber loss, with d = |x - t|: d^2/2 where d <= delta, delta (d - delta/2) elsewhere. delta >
 * 0 may change from step to step. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_huber_at(const char *at, ctn_tensor *x, ctn_tensor *t, double delta,
                                 ctn_reduction reduction);
#define ctn_huber(...) ctn_huber_at(CTN_HERE, __VA_ARGS__)

/* Negative log-likelihood of t, in 0 to 1, under a Bernoulli distribution with logits x: the
 * same as sigmoid_cross_entropy. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_bernoulli_nll_at(const char *at, ctn_tensor *x, ctn_tensor *t,
                                         ctn_reduction reduction);
#define ctn_bernoulli_nll(...) ctn_bernoulli_nll_at(CTN_HERE, __VA_ARGS__)

/* Negative log-likelihood of t >= 0 under a Poisson distribution of rate exp(x), without the
 * term log t!, which does not depend on x: exp(x) - t x. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_poisson_nll_at(const char *at, ctn_tensor *x, ctn_tensor *t,
                                       ctn_reduction reduction);
#define ctn_poisson_nll(...) ctn_poisson_nll_at(CTN_HERE, __VA_ARGS__)

/* Negative log-likelihood of t under a normal distribution: (log(2 pi) + ln_var + (t - mean)^2
 * exp(-ln_var)) / 2. All three have the same shape. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_gaussian_nll_at(const char *at, ctn_tensor *mean, ctn_tensor *ln_var,
                                        ctn_tensor *t, ctn_reduction reduction);
#define ctn_gaussian_nll(...) ctn_gaussian_nll_at(CTN_HERE, __VA_ARGS__)

/* Kullback-Leibler divergence of a normal distribution from the standard one: (mean^2 +
 * exp(ln_var) - ln_var - 1) / 2. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_gaussian_kl_divergence_at(const char *at, ctn_tensor *mean,
                                                  ctn_tensor *ln_var, ctn_reduction reduction);
#define ctn_gaussian_kl_divergence(...) ctn_gaussian_kl_divergence_at(CTN_HERE, __VA_ARGS__)

/* Kullback-Leibler divergence: t (log t - x), 0 where t = 0; x are log-probabilities, t
 * probabilities. As in PyTorch, the mean is over all elements; for the mean over rows, divide
 * the sum by their number. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_kl_div_at(const char *at, ctn_tensor *x, ctn_tensor *t,
                                  ctn_reduction reduction);
#define ctn_kl_div(...) ctn_kl_div_at(CTN_HERE, __VA_ARGS__)

/* ---- losses of rows: -> (), or one loss per row (...) with CTN_NONE ------------------------- */

/* Hinge loss, one class against all others: the sum over the classes of max(0, 1 - s x)^p, where
 * s is 1 for the class of the row and -1 elsewhere. x (...,C), t (...) classes i64 or i32; p is 1
 * or 2. Errors: ESHAPE, EDTYPE, EARG; EARG for a class out of range, when the step runs. */
CTN_API ctn_tensor *ctn_hinge_at(const char *at, ctn_tensor *x, ctn_tensor *t, int p,
                                 ctn_reduction reduction);
#define ctn_hinge(...) ctn_hinge_at(CTN_HERE, __VA_ARGS__)

/* Contrastive loss, with d the 2-norm of a - b: d^2/2 where t is 1, max(0, margin - d)^2 / 2
 * where t is 0. a and b (...,C), t (...) of any type. margin may change from step to step.
 * Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_contrastive_at(const char *at, ctn_tensor *a, ctn_tensor *b, ctn_tensor *t,
                                       double margin, ctn_reduction reduction);
#define ctn_contrastive(...) ctn_contrastive_at(CTN_HERE, __VA_ARGS__)

/* Triplet loss: max(0, d(anchor, positive) - d(anchor, negative) + margin), where d is the
 * 2-norm of the difference. All three are (...,C). margin may change from step to step. Errors:
 * ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_triplet_at(const char *at, ctn_tensor *anchor, ctn_tensor *positive,
                                   ctn_tensor *negative, double margin, ctn_reduction reduction);
#define ctn_triplet(...) ctn_triplet_at(CTN_HERE, __VA_ARGS__)

/* DeCov: half of the sum of the squares of the covariances between different columns of x (N,C)
 * -> (). Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_decov_at(const char *at, ctn_tensor *x);
#define ctn_decov(...) ctn_decov_at(CTN_HERE, __VA_ARGS__)

/* How far embeddings of instances are pulled together and pushed apart. */
typedef struct {
    size_t struct_size;
    double pull, push; /* margins delta_v and delta_d; 0: 0.5 and 1.5 */
    int norm;          /* of distances, 1 or 2; 0: 2 */
} ctn_clustering_opt;
/* Discriminative loss of instance segmentation (De Brabandere et al.). x (N,C,...) are the
 * embeddings of pixels, t (N,...) i64 or i32 their instances: 1 to K, anything else is background.
 * For each sample, over the instances that it has, with means m_a:
 *   variance: the mean over the instances of the mean over their pixels of
 *             max(0, |x - m_a| - pull)^2
 *   distance: the mean over pairs of instances of max(0, 2 push - |m_a - m_b|)^2; 0 without pairs
 *   regular:  the mean over the instances of |m_a|
 * Each result () is the mean over the samples; a sample without instances counts as 0. variance,
 * distance and regular may be NULL. On an error they are NULL. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_status ctn_discriminative_margin_based_clustering_loss_at(
    const char *at, ctn_tensor *x, ctn_tensor *t, int64_t K, const ctn_clustering_opt *opt,
    ctn_tensor **variance, ctn_tensor **distance, ctn_tensor **regular);
#define ctn_discriminative_margin_based_clustering_loss(...) \
    ctn_discriminative_margin_based_clustering_loss_at(CTN_HERE, __VA_ARGS__)

/* ---- metrics, without gradient -------------------------------------------------------------- */

/* Top-k accuracy: the share of rows, 0 to 1, whose class is among the k largest logits. x
 * (...,C) logits, t (...) classes i64 or i32 -> () f32. Among equal logits the first counts as
 * larger. Rows of class -100 are ignored; the result is 0 if no rows remain. Errors: ESHAPE,
 * EDTYPE, EARG; EARG for a class out of range, when the step runs. */
CTN_API ctn_tensor *ctn_accuracy_at(const char *at, ctn_tensor *x, ctn_tensor *t, int k);
#define ctn_accuracy(...) ctn_accuracy_at(CTN_HERE, __VA_ARGS__)

/* Confusion matrix: element (i,j) is the number of rows of class i that were predicted as j.
 * pred is (...) classes i64 or i32, or (...,C) logits; t (...) classes i64 or i32 -> (C,C) i64.
 * Rows of class -100 are ignored. Errors: ESHAPE, EDTYPE, EARG; EARG for a class out of range,
 * when the step runs. */
CTN_API ctn_tensor *ctn_confusion_matrix_at(const char *at, ctn_tensor *pred, ctn_tensor *t,
                                            int64_t C);
#define ctn_confusion_matrix(...) ctn_confusion_matrix_at(CTN_HERE, __VA_ARGS__)

/* The share of elements, 0 to 1, for which x >= 0 exactly where t = 1. x are logits, t of the
 * same shape 0 or 1 in i64, i32, u8 or bool -> () f32. Elements with t = -100 are ignored; the
 * result is 0 if none remain. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_binary_accuracy_at(const char *at, ctn_tensor *x, ctn_tensor *t);
#define ctn_binary_accuracy(...) ctn_binary_accuracy_at(CTN_HERE, __VA_ARGS__)

/* Coefficient of determination: 1 - (sum of (t - x)^2) / (sum of (t - mean t)^2), with sums over
 * the first dimension, then the mean over the columns. x and t (N,...) -> (). A column whose t
 * is constant counts as 1 if x equals it and as 0 otherwise. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_r2_score_at(const char *at, ctn_tensor *x, ctn_tensor *t);
#define ctn_r2_score(...) ctn_r2_score_at(CTN_HERE, __VA_ARGS__)

/* Precision, recall, F1 score and number of rows of each class, (C) f32, from a confusion matrix
 * (C,C) of ctn_confusion_matrix; 0 where the divisor is 0. Results that are not needed may be
 * NULL. Errors: ESHAPE. */
CTN_API ctn_status ctn_classification_summary_at(const char *at, ctn_tensor *confusion,
                                                 ctn_tensor **precision, ctn_tensor **recall,
                                                 ctn_tensor **f1, ctn_tensor **support);
#define ctn_classification_summary(...) ctn_classification_summary_at(CTN_HERE, __VA_ARGS__)

/* ---- normalisation -------------------------------------------------------------------------- */

/* Layer normalisation: y = (x - m) / sqrt(v + eps) * weight + bias, where m and v are the mean
 * and variance over the last n dimensions together. weight and bias may be NULL; they have the
 * shape of these dimensions. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_layer_norm_at(const char *at, ctn_tensor *x, int n, ctn_tensor *weight,
                                      ctn_tensor *bias, double eps);
#define ctn_layer_norm(...) ctn_layer_norm_at(CTN_HERE, __VA_ARGS__)

/* y = x / sqrt(mean of x^2 + eps) * weight, with the mean over the last n dimensions together.
 * weight may be NULL; it has the shape of these dimensions. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_rms_norm_at(const char *at, ctn_tensor *x, int n, ctn_tensor *weight,
                                    double eps);
#define ctn_rms_norm(...) ctn_rms_norm_at(CTN_HERE, __VA_ARGS__)

/* ---- random numbers, a function of (seed, step, call, element), for any number of threads --- */

/* In training, each element is 0 with probability rate and otherwise x / (1 - rate). In
 * evaluation, the result is x itself. 0 <= rate < 1; it may change from step to step. Errors:
 * EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_dropout_at(const char *at, ctn_tensor *x, double rate);
#define ctn_dropout(...) ctn_dropout_at(CTN_HERE, __VA_ARGS__)

/* Normal distribution with this mean and standard deviation, f32 or f64. Both may change from
 * step to step. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_random_normal_at(const char *at, ctn_context *ctx, double mean, double std,
                                         ctn_dtype dtype, int ndim, const int64_t *dims);
#define ctn_random_normal(...) ctn_random_normal_at(CTN_HERE, __VA_ARGS__)

/* Uniform distribution in [lo, hi), f32 or f64; lo itself if lo == hi. Both may change from
 * step to step. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_random_uniform_at(const char *at, ctn_context *ctx, double lo, double hi,
                                          ctn_dtype dtype, int ndim, const int64_t *dims);
#define ctn_random_uniform(...) ctn_random_uniform_at(CTN_HERE, __VA_ARGS__)

/* A sample of the normal distribution with this mean and variance exp(ln_var), which broadcast:
 * mean + exp(ln_var / 2) z with z standard normal, so that gradients flow to both. Errors:
 * ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_gaussian_at(const char *at, ctn_tensor *mean, ctn_tensor *ln_var);
#define ctn_gaussian(...) ctn_gaussian_at(CTN_HERE, __VA_ARGS__)

/* A sample of the relaxed categorical distribution: softmax((x + g) / tau) along the axis, where
 * x are logits, g follows the standard Gumbel distribution, and tau > 0. tau may change from
 * step to step. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_gumbel_softmax_at(const char *at, ctn_tensor *x, double tau, int axis);
#define ctn_gumbel_softmax(...) ctn_gumbel_softmax_at(CTN_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
