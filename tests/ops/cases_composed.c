/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of products, of reductions and losses that are made of other ops, and of losses that are
 * not reduced. The op of a case is one that the call must record.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

/* clang-format off */
#define S0() .ndim = 0
#define S1(a) .ndim = 1, .dim = {a}
#define S2(a, b) .ndim = 2, .dim = {a, b}
#define S3(a, b, c) .ndim = 3, .dim = {a, b, c}
#define S4(a, b, c, d) .ndim = 4, .dim = {a, b, c, d}
/* clang-format on */

/* ---- reductions: p = what, keep, correction, number of axes, axes --------------------------- */

typedef enum { PROD, LSE, VAR, STD, NORM1, NORM2, NORMMAX, AVERAGE } reduction;
enum { WHAT, KEEP, CORRECTION, NAXES, AXIS0 };

static ctn_tensor *reduce_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    const int n = (int)c->p[NAXES], keep = (int)c->p[KEEP], correction = (int)c->p[CORRECTION];
    const int64_t *axes = n > 0 ? c->p + AXIS0 : NULL;
    switch ((reduction)c->p[WHAT]) {
    case PROD: return ctn_prod(x[0], n, axes, keep);
    case LSE: return ctn_logsumexp(x[0], n, axes, keep);
    case VAR: return ctn_variance(x[0], n, axes, correction, keep);
    case STD: return ctn_std(x[0], n, axes, correction, keep);
    case NORM1: return ctn_norm(x[0], 1, n, axes, keep);
    case NORM2: return ctn_norm(x[0], 2, n, axes, keep);
    case NORMMAX: return ctn_norm(x[0], INFINITY, n, axes, keep);
    default: return ctn_average(x[0], c->nin > 1 ? x[1] : NULL, n, axes, keep);
    }
}

/* Of n elements v with weights w. */
static double reduced(const op_case *c, const double *v, const double *w, int64_t n)
{
    double sum = 0, squares = 0, abs = 0, most = 0, product = 1, weights = 0, mean = 0, e = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += w[i] * v[i];
        weights += w[i];
        mean += v[i] / (double)n;
        squares += v[i] * v[i];
        abs += fabs(v[i]);
        most = fmax(most, fabs(v[i]));
        product *= v[i];
    }
    double spread = 0;
    for (int64_t i = 0; i < n; i++) {
        spread += (v[i] - mean) * (v[i] - mean);
        e += exp(v[i] - most);
    }
    switch ((reduction)c->p[WHAT]) {
    case PROD: return product;
    case LSE: return most + log(e);
    case VAR: return spread / (double)(n - c->p[CORRECTION]);
    case STD: return sqrt(spread / (double)(n - c->p[CORRECTION]));
    case NORM1: return abs;
    case NORM2: return sqrt(squares);
    case NORMMAX: return most;
    default: return sum / weights;
    }
}

static void reduce_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const case_in *in = &c->in[0];
    const int64_t n = case_count(in), m = desc_count(out), r = m > 0 ? n / m : 0;
    int64_t at[CTN_MAX_DIMS], *fill = calloc((size_t)m + 1, sizeof *fill);
    double *v = calloc((size_t)n + 1, sizeof *v), *w = calloc((size_t)n + 1, sizeof *w);
    unsigned gone = c->p[NAXES] == 0 ? ~0u : 0;
    for (int k = 0; k < c->p[NAXES]; k++)
        gone |= 1u << (c->p[AXIS0 + k] < 0 ? c->p[AXIS0 + k] + in->ndim : c->p[AXIS0 + k]);
    for (int64_t i = 0; i < n; i++) {
        int64_t to = 0;
        unravel(i, in->ndim, in->dim, at);
        for (int k = 0; k < in->ndim; k++)
            if (!(gone >> k & 1)) to = to * in->dim[k] + at[k];
        const int64_t place = to * r + fill[to]++;
        v[place] = x[0][i];
        w[place] = c->nin > 1 ? x[1][i % case_count(&c->in[1])] : 1; /* weights of the last axes */
    }
    for (int64_t i = 0; i < m; i++) y[i] = reduced(c, v + i * r, w + i * r, r);
    free(fill);
    free(v);
    free(w);
}

/* ---- along one axis: p = what, axis, reverse or pool; q = eps ------------------------------- */

typedef enum { CUMPROD, ARGMIN, NORMALIZE, COSINE, CRELU, MAXOUT } along;
enum { AXIS = 1, REVERSE = 2, POOL = 2 };

static ctn_tensor *along_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    switch ((along)c->p[WHAT]) {
    case CUMPROD: return ctn_cumprod(x[0], c->p[AXIS], (int)c->p[REVERSE]);
    case ARGMIN: return ctn_argmin(x[0], c->p[AXIS]);
    case NORMALIZE: return ctn_normalize(x[0], c->p[AXIS], c->q[0]);
    case COSINE: return ctn_cosine_similarity(x[0], x[1], c->p[AXIS], c->q[0]);
    case CRELU: return ctn_crelu(x[0], c->p[AXIS]);
    default: return ctn_maxout(x[0], c->p[POOL], c->p[AXIS]);
    }
}

/* One line of n elements with this step; b of the second input, y of the result. */
static void along_line(const op_case *c, const double *a, const double *b, double *y, int64_t n,
                       int64_t step)
{
    double p = 1, aa = 0, bb = 0, ab = 0;
    int64_t least = 0;
    for (int64_t i = 0; i < n; i++) {
        aa += a[i * step] * a[i * step];
        bb += b ? b[i * step] * b[i * step] : 0;
        ab += b ? a[i * step] * b[i * step] : 0;
        if (a[i * step] < a[least * step]) least = i;
    }
    if (c->p[WHAT] == ARGMIN) y[0] = (double)least;
    if (c->p[WHAT] == COSINE) y[0] = ab / fmax(sqrt(aa), c->q[0]) / fmax(sqrt(bb), c->q[0]);
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = (c->p[REVERSE] ? n - 1 - i : i) * step;
        if (c->p[WHAT] == CUMPROD) y[k] = p *= a[k];
        if (c->p[WHAT] == NORMALIZE) y[i * step] = a[i * step] / fmax(sqrt(aa), c->q[0]);
        if (c->p[WHAT] == CRELU) y[i * step] = fmax(a[i * step], 0);
        if (c->p[WHAT] == CRELU) y[(n + i) * step] = fmax(-a[i * step], 0);
        if (c->p[WHAT] != MAXOUT) continue;
        double *to = &y[i / c->p[POOL] * step];
        *to = i % c->p[POOL] == 0 ? a[i * step] : fmax(*to, a[i * step]);
    }
}

static void along_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const case_in *in = &c->in[0];
    const int axis = (int)(c->p[AXIS] < 0 ? c->p[AXIS] + in->ndim : c->p[AXIS]);
    int64_t outer = 1, inner = 1;
    const int64_t n = in->dim[axis];
    for (int i = 0; i < axis; i++) outer *= in->dim[i];
    for (int i = axis + 1; i < in->ndim; i++) inner *= in->dim[i];
    const int64_t m = outer * inner > 0 ? desc_count(out) / (outer * inner) : 0;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++)
            along_line(c, x[0] + o * n * inner + i, c->nin > 1 ? x[1] + o * n * inner + i : NULL,
                       y + o * m * inner + i, n, inner);
}

static ctn_tensor *covariance_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return c->nin > 1 ? ctn_cross_covariance(x[0], x[1]) : ctn_decov(x[0]);
}

/* Of one input: decov. */
static void covariance_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    (void)out;
    const int other = c->nin - 1;
    const int64_t rows = c->in[0].dim[0], I = c->in[0].dim[1], J = c->in[other].dim[1];
    if (other == 0) y[0] = 0;
    for (int64_t i = 0; i < I; i++)
        for (int64_t j = 0; j < J; j++) {
            double a = 0, b = 0, ab = 0;
            for (int64_t r = 0; r < rows; r++) {
                a += x[0][r * I + i] / (double)rows;
                b += x[other][r * J + j] / (double)rows;
                ab += x[0][r * I + i] * x[other][r * J + j] / (double)rows;
            }
            const double cov = ab - a * b;
            if (other > 0) y[i * J + j] = cov;
            else if (i != j) y[0] += 0.5 * cov * cov;
        }
}

/* ---- losses of elements and of rows: p = what, reduction, p of hinge; q = delta or margin --- */

typedef enum {
    MSE,
    MAE,
    HUBER,
    BCE,
    POISSON,
    GAUSS,
    GAUSS_KL,
    KL,
    HINGE,
    CONTRASTIVE,
    TRIPLET
} loss;
enum { REDUCTION = 1, POWER = 2 };

static ctn_tensor *loss_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    const ctn_reduction r = (ctn_reduction)c->p[REDUCTION];
    switch ((loss)c->p[WHAT]) {
    case MSE: return ctn_mean_squared_error(x[0], x[1], r);
    case MAE: return ctn_mean_absolute_error(x[0], x[1], r);
    case HUBER: return ctn_huber(x[0], x[1], c->q[0], r);
    case BCE: return ctn_bernoulli_nll(x[0], x[1], r);
    case POISSON: return ctn_poisson_nll(x[0], x[1], r);
    case GAUSS: return ctn_gaussian_nll(x[0], x[1], x[2], r);
    case GAUSS_KL: return ctn_gaussian_kl_divergence(x[0], x[1], r);
    case KL: return ctn_kl_div(x[0], x[1], r);
    case HINGE: return ctn_hinge(x[0], x[1], (int)c->p[POWER], r);
    case CONTRASTIVE: return ctn_contrastive(x[0], x[1], x[2], c->q[0], r);
    default: return ctn_triplet(x[0], x[1], x[2], c->q[0], r);
    }
}

static double element(const op_case *c, double x, double t, double u)
{
    const double d = fabs(x - t), delta = c->q[0];
    switch ((loss)c->p[WHAT]) {
    case MSE: return d * d;
    case MAE: return d;
    case HUBER: return d <= delta ? d * d / 2 : delta * (d - delta / 2);
    case BCE: return t * log1p(exp(-x)) + (1 - t) * log1p(exp(x));
    case POISSON: return exp(x) - t * x;
    case GAUSS: return 0.5 * (log(2 * acos(-1)) + t + (u - x) * (u - x) / exp(t));
    case GAUSS_KL: return 0.5 * (x * x + exp(t) - t - 1);
    default: return t > 0 ? t * (log(t) - x) : 0;
    }
}

static double distance(const double *a, const double *b, int64_t n)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(s);
}

static double row(const op_case *c, const double *const *x, int64_t r, int64_t n)
{
    const double *a = x[0] + r * n, *b = x[1] + r * n;
    double s = 0;
    if (c->p[WHAT] == HINGE) {
        for (int64_t i = 0; i < n; i++)
            s += pow(fmax(0, 1 - (i == (int64_t)x[1][r] ? a[i] : -a[i])), (double)c->p[POWER]);
        return s;
    }
    const double d = distance(a, b, n);
    if (c->p[WHAT] == TRIPLET) return fmax(0, d - distance(a, x[2] + r * n, n) + c->q[0]);
    return 0.5 * (x[2][r] != 0 ? d * d : pow(fmax(0, c->q[0] - d), 2));
}

static void loss_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    (void)out;
    const bool rows = c->p[WHAT] >= HINGE;
    const int64_t all = case_count(&c->in[0]), last = rows ? c->in[0].dim[c->in[0].ndim - 1] : 1;
    const int64_t n = all / last;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double l =
            rows ? row(c, x, i, last) : element(c, x[0][i], x[1][i], c->nin > 2 ? x[2][i] : 0);
        if (c->p[REDUCTION] == CTN_NONE) y[i] = l;
        sum += l;
    }
    if (c->p[REDUCTION] != CTN_NONE) y[0] = c->p[REDUCTION] == CTN_MEAN ? sum / (double)n : sum;
}

/* ---- softmax cross-entropy of each row: p = 1: by linear_cross_entropy; q = smoothing ------- */

static ctn_tensor *xent_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    const int64_t ignore = 1;
    ctn_softmax_cross_entropy_opt o = {.struct_size = sizeof o,
                                       .reduction = CTN_NONE,
                                       .ignore = &ignore,
                                       .smoothing = c->q[0]};
    if (c->p[0]) return ctn_linear_cross_entropy(x[0], x[1], x[2], &o);
    o.weights = c->nin > 2 ? x[2] : NULL;
    return ctn_softmax_cross_entropy_with(x[0], x[1], &o);
}

static void xent_row(const op_case *c, const double *logit, const double *soft, int64_t t,
                     const double *w, int64_t C, double *y)
{
    double sum = 0;
    *y = 0;
    for (int64_t k = 0; k < C; k++) sum += exp(logit[k]);
    for (int64_t k = 0; k < C && (soft || t != 1); k++) {
        const double q = (1 - c->q[0]) * (soft ? soft[k] : k == t) + c->q[0] / (double)C;
        *y -= (w ? w[k] : 1) * q * (logit[k] - log(sum));
    }
}

static void xent_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const bool linear = c->p[0] != 0, soft = !linear && c->in[1].dtype == 0;
    const int64_t I = c->in[0].dim[c->in[0].ndim - 1], C = linear ? c->in[1].dim[0] : I;
    double *logit = calloc((size_t)C, sizeof *logit);
    for (int64_t r = 0; r < desc_count(out); r++) {
        for (int64_t k = 0; k < C; k++) {
            logit[k] = linear ? 0 : x[0][r * C + k];
            for (int64_t i = 0; i < I && linear; i++) logit[k] += x[0][r * I + i] * x[1][k * I + i];
        }
        const double *classes = linear ? x[2] : x[1];
        xent_row(c, logit, soft ? x[1] + r * C : NULL, soft ? -1 : (int64_t)classes[r],
                 !linear && c->nin > 2 ? x[2] : NULL, C, &y[r]);
    }
    free(logit);
}

/* ---- metrics: p = what ---------------------------------------------------------------------- */

typedef enum { BINARY, R2, PRECISION, RECALL, F1, SUPPORT } metric;

static ctn_tensor *metric_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    ctn_tensor *v = NULL, **to[4] = {NULL};
    if (c->p[WHAT] == BINARY) return ctn_binary_accuracy(x[0], x[1]);
    if (c->p[WHAT] == R2) return ctn_r2_score(x[0], x[1]);
    to[c->p[WHAT] - PRECISION] = &v;
    ctn_tensor *m = ctn_confusion_matrix(x[0], x[1], 4);
    return ctn_classification_summary(m, to[0], to[1], to[2], to[3]) < 0 ? NULL : v;
}

static void summary_ref(const op_case *c, const double *const *x, double *y)
{
    for (int k = 0; k < 4; k++) {
        double hits = 0, rows = 0, calls = 0;
        for (int64_t i = 0; i < case_count(&c->in[0]); i++) {
            rows += x[1][i] == k;
            calls += x[0][i] == k;
            hits += x[0][i] == k && x[1][i] == k;
        }
        const double den = c->p[WHAT] == PRECISION ? calls
                           : c->p[WHAT] == RECALL  ? rows
                                                   : (calls + rows) / 2;
        y[k] = c->p[WHAT] == SUPPORT ? rows : den > 0 ? hits / den : 0;
    }
}

static void metric_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    (void)out;
    const int64_t n = case_count(&c->in[0]);
    double hits = 0, counted = 0;
    if (c->p[WHAT] >= PRECISION) {
        summary_ref(c, x, y);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        counted += x[1][i] != -100;
        hits += (x[0][i] >= 0) == x[1][i];
    }
    y[0] = counted > 0 ? hits / counted : 0;
    if (c->p[WHAT] == BINARY) return;
    const int64_t N = c->in[0].dim[0], C = n / N;
    y[0] = 0;
    for (int64_t k = 0; k < C; k++) {
        double mean = 0, wrong = 0, spread = 0;
        for (int64_t i = 0; i < N; i++) mean += x[1][i * C + k] / (double)N;
        for (int64_t i = 0; i < N; i++) {
            wrong += pow(x[1][i * C + k] - x[0][i * C + k], 2);
            spread += pow(x[1][i * C + k] - mean, 2);
        }
        y[0] += (1 - (spread > 0 ? wrong / spread : wrong > 0)) / (double)C;
    }
}

/* ---- random: only the repeated runs are checked; see also tests/unit/test_elementary.c ------ */

typedef enum { RRELU, GAUSSIAN, GUMBEL } sampled;

static ctn_tensor *random_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    if (c->p[WHAT] == RRELU) return ctn_rrelu(x[0], 0.1, 0.4);
    return c->p[WHAT] == GAUSSIAN ? ctn_gaussian(x[0], x[1]) : ctn_gumbel_softmax(x[0], 0.7, -1);
}

/* clang-format off */
#define X(...) {__VA_ARGS__}
#define FEW .fill = FILL_INDEX, .lo = -1, .hi = 3 /* -1, 0, 1 and 2 */
#define BETWEEN(a, b) .fill = FILL_UNIFORM, .lo = a, .hi = b
#define CLASSES(t, n, ...) {.dtype = t, __VA_ARGS__, .fill = FILL_INDEX, .lo = 0, .hi = n}
#define AXES(...) __VA_ARGS__
#define REDUCE(op_, name_, what, keep, axes, ord, ...) \
    {.op = op_, .name = name_, .nin = 1, .in = {X(__VA_ARGS__)}, .p = {what, keep, 1, axes}, \
     .call = reduce_call, .ref = reduce_ref, .grad = ord}
/* Every reduction over some shapes; fill is where it is differentiable. */
#define REDUCES(op_, name_, what, fill) \
    REDUCE(op_, name_ "all", what, 0, AXES(0), 2, S2(3, 4), fill), \
    REDUCE(op_, name_ "rows", what, 0, AXES(1, -1), 2, S2(3, 5), fill), \
    REDUCE(op_, name_ "columns", what, 1, AXES(1, 0), 2, S2(5, 3), fill), \
    REDUCE(op_, name_ "middle", what, 0, AXES(1, 1), 1, S3(2, 5, 3), fill), \
    REDUCE(op_, name_ "outer_two", what, 0, AXES(2, 0, 2), 1, S3(3, 2, 4), fill), \
    REDUCE(op_, name_ "long", what, 0, AXES(1, 1), 0, S2(3, 1009), fill), \
    REDUCE(op_, name_ "wide", what, 0, AXES(1, 0), 0, S2(9, 1031), fill), \
    REDUCE(op_, name_ "no_results", what, 0, AXES(1, 1), 1, S2(0, 3), fill)
#define ALONG(op_, name_, what, axis, extra, ord, ...) \
    {.op = op_, .name = name_, .nin = 1, .in = {X(__VA_ARGS__)}, .p = {what, axis, extra}, \
     .q = {1e-3}, .call = along_call, .ref = along_ref, .grad = ord}
#define PAIR(op_, name_, axis, ord, ...) \
    {.op = op_, .name = name_, .nin = 2, .in = {X(__VA_ARGS__), X(__VA_ARGS__)}, \
     .p = {COSINE, axis}, .q = {1e-3}, .call = along_call, .ref = along_ref, .grad = ord}
#define LOSS(op_, name_, what, r, delta, ord, n, ...) \
    {.op = op_, .name = name_, .nin = n, .p = {what, r}, .q = {delta}, .in = {__VA_ARGS__}, \
     .call = loss_call, .ref = loss_ref, .grad = ord}
/* A loss that is only composed: all reductions, an empty and a larger tensor. */
#define LOSSES(op_, name_, what, delta, n, INS) \
    LOSS(op_, name_ "mean", what, CTN_MEAN, delta, 2, n, INS(S2(4, 3))), \
    LOSS(op_, name_ "sum", what, CTN_SUM, delta, 2, n, INS(S3(2, 3, 2))), \
    LOSS(op_, name_ "none", what, CTN_NONE, delta, 2, n, INS(S2(4, 3))), \
    LOSS(op_, name_ "empty", what, CTN_SUM, delta, 1, n, INS(S2(0, 3))), \
    LOSS(op_, name_ "big", what, CTN_NONE, delta, 0, n, INS(S2(211, 97)))
#define EACH(op_, name_, what, delta, INS) \
    LOSS(op_, name_ "none", what, CTN_NONE, delta, 2, 2, INS(S2(4, 3))), \
    LOSS(op_, name_ "none_scalar", what, CTN_NONE, delta, 1, 2, INS(S0())), \
    LOSS(op_, name_ "none_empty", what, CTN_NONE, delta, 1, 2, INS(S2(0, 3))), \
    LOSS(op_, name_ "none_big", what, CTN_NONE, delta, 0, 2, INS(S2(211, 97)))
#define APART(...) {__VA_ARGS__, .fill = FILL_AWAY}, {__VA_ARGS__, BETWEEN(-0.1, 0.1)}
#define TARGET(...) {__VA_ARGS__}, {__VA_ARGS__, BETWEEN(0.05, 0.95)}
#define ANY(...) {__VA_ARGS__}, {__VA_ARGS__}
#define THREE(...) {__VA_ARGS__}, {__VA_ARGS__}, {__VA_ARGS__}
#define XENT(name_, n, how, smooth, ord, ...) \
    {.op = "softmax_cross_entropy", .name = name_, .nin = n, .p = {how}, .q = {smooth}, \
     .in = {__VA_ARGS__}, .call = xent_call, .ref = xent_ref, .grad = ord}
#define METRIC(op_, name_, what, ...) \
    {.op = op_, .name = name_, .nin = 2, .p = {what}, .in = {__VA_ARGS__}, .call = metric_call, \
     .ref = metric_ref, .tol64 = 1e-7}
#define RANDOM(op_, name_, what, n, ...) \
    {.op = op_, .name = name_, .nin = n, .p = {what}, .in = {__VA_ARGS__}, .call = random_call}

case_table cases_composed = {
    REDUCES("prod", "", PROD, FEW),
    REDUCE("prod", "normal", PROD, 0, AXES(1, 1), 2, S2(3, 6)),
    REDUCE("prod", "scalar", PROD, 0, AXES(0), 2, S0()),
    REDUCE("prod", "one", PROD, 0, AXES(1, 0), 2, S2(1, 4), FEW),
    REDUCE("prod", "nothing", PROD, 0, AXES(1, 0), 1, S2(0, 4)),
    REDUCE("prod", "4d", PROD, 1, AXES(2, 1, 2), 1, S4(2, 3, 2, 3), FEW),
    REDUCES("exp", "logsumexp_", LSE, BETWEEN(-3, 3)),
    REDUCE("exp", "logsumexp_spread", LSE, 0, AXES(1, 1), 1, S2(4, 6), BETWEEN(-300, 300)),
    REDUCES("square", "var_", VAR, BETWEEN(-3, 3)),
    REDUCES("sqrt", "std_", STD, BETWEEN(-3, 3)),
    REDUCES("abs", "norm_1_", NORM1, .fill = FILL_AWAY),
    REDUCES("sqrt", "norm_2_", NORM2, BETWEEN(-3, 3)),
    REDUCE("max", "norm_max_all", NORMMAX, 0, AXES(0), 1, S2(3, 4), .fill = FILL_DISTINCT, .lo = -3,
           .hi = 3.5),
    REDUCE("max", "norm_max_rows", NORMMAX, 1, AXES(1, -1), 1, S2(3, 5), .fill = FILL_DISTINCT,
           .lo = -3, .hi = 3.5),
    REDUCES("mean", "average_", AVERAGE, BETWEEN(-3, 3)),
    {.op = "div", .name = "average_weights", .nin = 2, .p = {AVERAGE, 0, 0, 1, 1}, .grad = 2,
     .in = {X(S2(4, 5)), X(S2(4, 5), BETWEEN(0.5, 2))}, .call = reduce_call, .ref = reduce_ref},
    {.op = "div", .name = "average_weights_row", .nin = 2, .p = {AVERAGE, 1, 0, 0}, .grad = 2,
     .in = {X(S3(2, 4, 5)), X(S1(5), BETWEEN(0.5, 2))}, .call = reduce_call, .ref = reduce_ref},

    ALONG("cumprod", "rows", CUMPROD, 1, 0, 2, S2(3, 5), FEW),
    ALONG("cumprod", "rows_reverse", CUMPROD, -1, 1, 2, S2(3, 5), FEW),
    ALONG("cumprod", "many_rows", CUMPROD, 1, 0, 1, S2(37, 5), FEW),
    ALONG("cumprod", "many_rows_reverse", CUMPROD, 1, 1, 1, S2(37, 5), FEW),
    ALONG("cumprod", "columns", CUMPROD, 0, 0, 2, S2(4, 3), FEW),
    ALONG("cumprod", "columns_reverse", CUMPROD, 0, 1, 2, S2(4, 3), FEW),
    ALONG("cumprod", "normal", CUMPROD, 1, 0, 2, S3(2, 4, 3)),
    ALONG("cumprod", "one", CUMPROD, 0, 0, 2, S2(1, 3), FEW),
    ALONG("cumprod", "wide", CUMPROD, 0, 1, 1, S2(3, 131), FEW),
    ALONG("cumprod", "big", CUMPROD, 1, 0, 0, S3(17, 31, 67), BETWEEN(-1.2, 1.2)),
    ALONG("cumprod", "empty", CUMPROD, 1, 0, 1, S2(3, 0)),
    ALONG("cumprod", "no_rows", CUMPROD, 1, 1, 1, S2(0, 3)),
    ALONG("argmax", "argmin_rows", ARGMIN, 1, 0, 0, S2(5, 7)),
    ALONG("argmax", "argmin_ties", ARGMIN, 0, 0, 0, S2(9, 7), FEW),
    ALONG("div", "normalize_rows", NORMALIZE, 1, 0, 2, S2(3, 5)),
    ALONG("div", "normalize_columns", NORMALIZE, 0, 0, 1, S3(3, 2, 2)),
    ALONG("div", "normalize_zeros", NORMALIZE, 1, 0, 0, S2(3, 5), .fill = FILL_INDEX, .hi = 1),
    ALONG("div", "normalize_empty", NORMALIZE, 1, 0, 1, S2(0, 5)),
    PAIR("div", "cosine_rows", 1, 2, S2(3, 5)),
    PAIR("div", "cosine_first", 0, 1, S3(4, 2, 3)),
    PAIR("div", "cosine_zeros", -1, 0, S2(3, 5), .fill = FILL_INDEX, .hi = 1),
    ALONG("concat", "crelu", CRELU, 1, 0, 2, S3(2, 3, 4), .fill = FILL_AWAY),
    ALONG("concat", "crelu_empty", CRELU, -1, 0, 1, S2(0, 4), .fill = FILL_AWAY),
    ALONG("max", "maxout", MAXOUT, 1, 3, 2, S2(4, 6), .fill = FILL_DISTINCT, .lo = -2, .hi = 2),
    ALONG("max", "maxout_first", MAXOUT, 0, 2, 1, S3(4, 2, 3), .fill = FILL_DISTINCT, .lo = -2,
          .hi = 2),
    ALONG("max", "maxout_one", MAXOUT, -1, 1, 1, S2(3, 4)),
    {.op = "matmul", .name = "cross_covariance", .nin = 2, .in = {X(S2(7, 3)), X(S2(7, 4))},
     .call = covariance_call, .ref = covariance_ref, .grad = 2, .engine_sums = 2},
    {.op = "tril", .name = "decov", .nin = 1, .in = {X(S2(7, 4))}, .call = covariance_call,
     .ref = covariance_ref, .grad = 2, .engine_sums = 2},

    EACH("square", "mean_squared_error_", MSE, 0, APART),
    EACH("abs", "mean_absolute_error_", MAE, 0, APART),
    EACH("clip", "huber_", HUBER, 0.75, APART),
    EACH("softplus", "sigmoid_cross_entropy_", BCE, 0, TARGET),
    LOSS("softplus", "sigmoid_cross_entropy_none_large", BCE, CTN_NONE, 0, 1, 2,
         {S1(50), BETWEEN(-30, 30)}, {S1(50), .fill = FILL_INDEX, .hi = 2, .no_grad = 1}),
    LOSSES("exp", "poisson_nll_", POISSON, 0, 2, ANY),
    LOSSES("exp", "gaussian_nll_", GAUSS, 0, 3, THREE),
    LOSSES("expm1", "gaussian_kl_", GAUSS_KL, 0, 2, ANY),
    LOSSES("log", "kl_div_", KL, 0, 2, TARGET),
    LOSS("log", "kl_div_zeros", KL, CTN_SUM, 0, 0, 2, X(S1(9)),
         {S1(9), .fill = FILL_INDEX, .hi = 2}),
    {.op = "one_hot", .name = "hinge_mean", .nin = 2, .p = {HINGE, CTN_MEAN, 1}, .grad = 1,
     .in = {X(S2(5, 4)), CLASSES(CTN_I64, 4, S1(5))}, .call = loss_call, .ref = loss_ref},
    {.op = "one_hot", .name = "hinge_squared_none", .nin = 2, .p = {HINGE, CTN_NONE, 2}, .grad = 2,
     .in = {X(S3(2, 3, 4)), CLASSES(CTN_I32, 4, S2(2, 3))}, .call = loss_call, .ref = loss_ref},
    LOSS("relu", "contrastive_mean", CONTRASTIVE, CTN_MEAN, 3, 2, 3, X(S2(7, 3)), X(S2(7, 3)),
         CLASSES(CTN_I64, 2, S1(7))),
    LOSS("relu", "contrastive_none", CONTRASTIVE, CTN_NONE, 3, 2, 3, X(S3(2, 3, 4)),
         X(S3(2, 3, 4)), CLASSES(CTN_BOOL, 2, S2(2, 3))),
    LOSS("relu", "triplet_mean", TRIPLET, CTN_MEAN, 1, 2, 3, X(S2(7, 3)), X(S2(7, 3)), X(S2(7, 3))),
    LOSS("relu", "triplet_none", TRIPLET, CTN_NONE, 1, 2, 3, X(S2(7, 3)), X(S2(7, 3)), X(S2(7, 3))),

    XENT("none", 2, 0, 0, 2, X(S2(6, 5)), CLASSES(CTN_I64, 5, S1(6))),
    XENT("none_rows", 2, 0, 0, 2, X(S3(2, 3, 4)), CLASSES(CTN_I32, 4, S2(2, 3))),
    XENT("none_one_row", 2, 0, 0, 2, X(S1(4)), CLASSES(CTN_I64, 4, S0())),
    XENT("none_weights_smoothing", 3, 0, 0.2, 2, X(S2(9, 4)), CLASSES(CTN_I64, 4, S1(9)),
         {S1(4), BETWEEN(0.5, 2), .no_grad = 1}),
    XENT("none_soft", 2, 0, 0.1, 2, X(S2(3, 5)), {S2(3, 5), BETWEEN(0, 0.4), .no_grad = 1}),
    XENT("none_many", 2, 0, 0, 0, X(S2(67, 301)), CLASSES(CTN_I64, 301, S1(67))),
    XENT("none_no_rows", 2, 0, 0, 1, X(S2(0, 5)), CLASSES(CTN_I64, 5, S1(0))),
    XENT("none_linear", 3, 1, 0, 2, X(S3(2, 3, 4)), X(S2(7, 4)), CLASSES(CTN_I64, 7, S2(2, 3))),

    METRIC("compare", "binary_accuracy_i64", BINARY, X(S2(9, 5)), CLASSES(CTN_I64, 2, S2(9, 5))),
    METRIC("compare", "binary_accuracy_bool", BINARY, X(S1(30)), CLASSES(CTN_BOOL, 2, S1(30))),
    METRIC("compare", "binary_accuracy_ignored", BINARY, X(S1(6)),
           {.dtype = CTN_I32, S1(6), .fill = FILL_INDEX, .lo = -100, .hi = -99}),
    METRIC("compare", "binary_accuracy_empty", BINARY, X(S1(0)), CLASSES(CTN_I64, 2, S1(0))),
    METRIC("compare", "r2_score", R2, X(S2(9, 3)), X(S2(9, 3))),
    METRIC("compare", "r2_score_flat", R2, X(S1(9), FEW), X(S1(9), .fill = FILL_INDEX, .hi = 1)),
    METRIC("tril", "precision", PRECISION, CLASSES(CTN_I64, 3, S1(40)),
           CLASSES(CTN_I64, 4, S1(40))),
    METRIC("tril", "recall", RECALL, CLASSES(CTN_I64, 4, S1(40)), CLASSES(CTN_I32, 3, S1(40))),
    METRIC("tril", "f1", F1, CLASSES(CTN_I64, 3, S1(40)), CLASSES(CTN_I64, 3, S1(40))),
    METRIC("tril", "support", SUPPORT, CLASSES(CTN_I64, 4, S1(40)), CLASSES(CTN_I64, 4, S1(40))),

    RANDOM("random_uniform", "rrelu", RRELU, 1, X(S2(5, 7), .fill = FILL_AWAY)),
    RANDOM("random_uniform", "rrelu_empty", RRELU, 1, X(S2(0, 7))),
    RANDOM("random_normal", "gaussian", GAUSSIAN, 2, X(S2(5, 7)), X(S1(7))),
    RANDOM("random_normal", "gaussian_wide", GAUSSIAN, 2, X(S2(1, 7)), X(S2(3, 1))),
    RANDOM("random_uniform", "gumbel_softmax", GUMBEL, 1, X(S2(5, 4))),
    {0},
};
