/* SPDX-License-Identifier: Apache-2.0
 *
 * The sweep kernels of one type; sweep.h has the formulas. sweep_body.h includes this file for f32
 * and f64 and defines T, SQRT and NAME, which adds the type to a name.
 */

/* The hyperparameters of a segment, rounded to T. The caller keeps them in registers. */
typedef struct {
    T gscale, lr, lr2, decay, keep, beta1, rest1, beta2, rest2, bias2, eps, start, least, most;
    T clip, lasso;
} NAME(hyper);

static inline NAME(hyper) NAME(rounded)(const ctn__sweep_seg *h)
{
    return (NAME(hyper)){(T)h->gscale, (T)h->lr,    (T)h->lr2,   (T)h->decay,
                         (T)h->keep,   (T)h->beta1, (T)h->rest1, (T)h->beta2,
                         (T)h->rest2,  (T)h->bias2, (T)h->eps,   (T)h->start,
                         (T)h->least,  (T)h->most,  (T)h->clip,  (T)h->lasso};
}

/* With decay = 0, w must not enter: 0 * infinity would turn an infinite parameter into NaN. */
static inline T NAME(direction)(T g, T w, T gscale, T decay)
{
    T d = gscale * g;
    return decay != 0 ? d + decay * w : d;
}

/* 1, -1, or 0 for 0 and NaN. */
static inline T NAME(sign)(T x)
{
    return (T)((x > 0) - (x < 0));
}

/* NaN stays NaN. */
static inline T NAME(between)(T x, T least, T most)
{
    x = x < least ? least : x;
    return x > most ? most : x;
}

static void NAME(sgd)(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo, int64_t hi)
{
    T *restrict w = p->w;
    const T *restrict g = p->g;
    const NAME(hyper) k = NAME(rounded)(h);
#pragma omp simd
    for (int64_t i = lo; i < hi; i++) {
        T d = NAME(direction)(g[i], w[i], k.gscale, k.decay);
        w[i] = k.keep * w[i] - k.lr * d;
    }
}

static void NAME(momentum)(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo,
                           int64_t hi)
{
    T *restrict w = p->w, *restrict m = p->s1;
    const T *restrict g = p->g;
    const NAME(hyper) k = NAME(rounded)(h);
#pragma omp simd
    for (int64_t i = lo; i < hi; i++) {
        T d = NAME(direction)(g[i], w[i], k.gscale, k.decay);
        m[i] = k.beta1 * m[i] + k.rest1 * d;
        w[i] = k.keep * w[i] - k.lr * m[i];
    }
}

static void NAME(nesterov)(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo,
                           int64_t hi)
{
    T *restrict w = p->w, *restrict m = p->s1;
    const T *restrict g = p->g;
    const NAME(hyper) k = NAME(rounded)(h);
#pragma omp simd
    for (int64_t i = lo; i < hi; i++) {
        T d = NAME(direction)(g[i], w[i], k.gscale, k.decay);
        m[i] = k.beta1 * m[i] + k.rest1 * d;
        w[i] = k.keep * w[i] - k.lr * (d + k.beta1 * m[i]);
    }
}

static void NAME(adam)(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo, int64_t hi)
{
    T *restrict w = p->w, *restrict m = p->s1, *restrict v = p->s2;
    const T *restrict g = p->g;
    const NAME(hyper) k = NAME(rounded)(h);
#pragma omp simd
    for (int64_t i = lo; i < hi; i++) {
        T d = NAME(direction)(g[i], w[i], k.gscale, k.decay);
        m[i] = k.beta1 * m[i] + k.rest1 * d;
        v[i] = k.beta2 * v[i] + k.rest2 * d * d;
        w[i] = k.keep * w[i] - k.lr * m[i] / (SQRT(v[i]) * k.bias2 + k.eps);
    }
}

static void NAME(amsgrad)(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo, int64_t hi)
{
    T *restrict w = p->w, *restrict m = p->s1, *restrict v = p->s2, *restrict top = p->s3;
    const T *restrict g = p->g;
    const NAME(hyper) k = NAME(rounded)(h);
#pragma omp simd
    for (int64_t i = lo; i < hi; i++) {
        T d = NAME(direction)(g[i], w[i], k.gscale, k.decay);
        m[i] = k.beta1 * m[i] + k.rest1 * d;
        v[i] = k.beta2 * v[i] + k.rest2 * d * d;
        /* Written so that a NaN in v wins. v stays NaN from then on. */
        top[i] = top[i] > v[i] ? top[i] : v[i];
        w[i] = k.keep * w[i] - k.lr * m[i] / (SQRT(top[i]) * k.bias2 + k.eps);
    }
}

static void NAME(rmsprop)(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo, int64_t hi)
{
    T *restrict w = p->w, *restrict v = p->s1;
    const T *restrict g = p->g;
    const NAME(hyper) k = NAME(rounded)(h);
#pragma omp simd
    for (int64_t i = lo; i < hi; i++) {
        T d = NAME(direction)(g[i], w[i], k.gscale, k.decay);
        v[i] = k.beta2 * v[i] + k.rest2 * d * d;
        w[i] = k.keep * w[i] - k.lr * (d / (SQRT(v[i]) + k.eps));
    }
}

static void NAME(rmsprop_momentum)(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo,
                                   int64_t hi)
{
    T *restrict w = p->w, *restrict v = p->s1, *restrict b = p->s2;
    const T *restrict g = p->g;
    const NAME(hyper) k = NAME(rounded)(h);
#pragma omp simd
    for (int64_t i = lo; i < hi; i++) {
        T d = NAME(direction)(g[i], w[i], k.gscale, k.decay);
        v[i] = k.beta2 * v[i] + k.rest2 * d * d;
        b[i] = k.beta1 * b[i] + d / (SQRT(v[i]) + k.eps);
        w[i] = k.keep * w[i] - k.lr * b[i];
    }
}

static void NAME(rmsprop_centered)(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo,
                                   int64_t hi)
{
    T *restrict w = p->w, *restrict v = p->s1, *restrict mean = p->s2;
    const T *restrict g = p->g;
    const NAME(hyper) k = NAME(rounded)(h);
#pragma omp simd
    for (int64_t i = lo; i < hi; i++) {
        T d = NAME(direction)(g[i], w[i], k.gscale, k.decay);
        v[i] = k.beta2 * v[i] + k.rest2 * d * d;
        mean[i] = k.beta2 * mean[i] + k.rest2 * d;
        T spread = NAME(between)(v[i] - mean[i] * mean[i], 0, v[i]);
        w[i] = k.keep * w[i] - k.lr * (d / (SQRT(spread) + k.eps));
    }
}

static void NAME(rmsprop_graves)(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo,
                                 int64_t hi)
{
    T *restrict w = p->w, *restrict v = p->s1, *restrict mean = p->s2, *restrict b = p->s3;
    const T *restrict g = p->g;
    const NAME(hyper) k = NAME(rounded)(h);
#pragma omp simd
    for (int64_t i = lo; i < hi; i++) {
        T d = NAME(direction)(g[i], w[i], k.gscale, k.decay);
        v[i] = k.beta2 * v[i] + k.rest2 * d * d;
        mean[i] = k.beta2 * mean[i] + k.rest2 * d;
        T spread = NAME(between)(v[i] - mean[i] * mean[i], 0, v[i]);
        b[i] = k.beta1 * b[i] + d / (SQRT(spread) + k.eps);
        w[i] = k.keep * w[i] - k.lr * b[i];
    }
}

static void NAME(adagrad)(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo, int64_t hi)
{
    T *restrict w = p->w, *restrict v = p->s1;
    const T *restrict g = p->g;
    const NAME(hyper) k = NAME(rounded)(h);
#pragma omp simd
    for (int64_t i = lo; i < hi; i++) {
        T d = NAME(direction)(g[i], w[i], k.gscale, k.decay);
        v[i] = v[i] + k.start + d * d;
        w[i] = k.keep * w[i] - k.lr * (d / (SQRT(v[i]) + k.eps));
    }
}

static void NAME(adadelta)(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo,
                           int64_t hi)
{
    T *restrict w = p->w, *restrict v = p->s1, *restrict u = p->s2;
    const T *restrict g = p->g;
    const NAME(hyper) k = NAME(rounded)(h);
#pragma omp simd
    for (int64_t i = lo; i < hi; i++) {
        T d = NAME(direction)(g[i], w[i], k.gscale, k.decay);
        v[i] = k.beta2 * v[i] + k.rest2 * d * d;
        T step = SQRT(u[i] + k.eps) / SQRT(v[i] + k.eps) * d;
        u[i] = k.beta2 * u[i] + k.rest2 * step * step;
        w[i] = k.keep * w[i] - k.lr * step;
    }
}

static void NAME(adamax)(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo, int64_t hi)
{
    T *restrict w = p->w, *restrict m = p->s1, *restrict u = p->s2;
    const T *restrict g = p->g;
    const NAME(hyper) k = NAME(rounded)(h);
#pragma omp simd
    for (int64_t i = lo; i < hi; i++) {
        T d = NAME(direction)(g[i], w[i], k.gscale, k.decay);
        T size = (d < 0 ? -d : d) + k.eps, old = k.beta2 * u[i];
        m[i] = k.beta1 * m[i] + k.rest1 * d;
        /* A NaN in either wins. */
        u[i] = old > size || old != old ? old : size;
        w[i] = k.keep * w[i] - k.lr * m[i] / u[i];
    }
}

static void NAME(nadam)(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo, int64_t hi)
{
    T *restrict w = p->w, *restrict m = p->s1, *restrict v = p->s2;
    const T *restrict g = p->g;
    const NAME(hyper) k = NAME(rounded)(h);
#pragma omp simd
    for (int64_t i = lo; i < hi; i++) {
        T d = NAME(direction)(g[i], w[i], k.gscale, k.decay);
        m[i] = k.beta1 * m[i] + k.rest1 * d;
        v[i] = k.beta2 * v[i] + k.rest2 * d * d;
        w[i] = k.keep * w[i] - (k.lr * m[i] + k.lr2 * d) / (SQRT(v[i]) * k.bias2 + k.eps);
    }
}

static void NAME(lion)(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo, int64_t hi)
{
    T *restrict w = p->w, *restrict m = p->s1;
    const T *restrict g = p->g;
    const NAME(hyper) k = NAME(rounded)(h);
#pragma omp simd
    for (int64_t i = lo; i < hi; i++) {
        T d = NAME(direction)(g[i], w[i], k.gscale, k.decay);
        T to = k.beta1 * m[i] + k.rest1 * d;
        m[i] = k.beta2 * m[i] + k.rest2 * d;
        w[i] = k.keep * w[i] - k.lr * NAME(sign)(to);
    }
}

static void NAME(bound)(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo, int64_t hi)
{
    T *restrict w = p->w, *restrict m = p->s1, *restrict v = p->s2;
    const T *restrict g = p->g;
    const NAME(hyper) k = NAME(rounded)(h);
#pragma omp simd
    for (int64_t i = lo; i < hi; i++) {
        T d = NAME(direction)(g[i], w[i], k.gscale, k.decay);
        m[i] = k.beta1 * m[i] + k.rest1 * d;
        v[i] = k.beta2 * v[i] + k.rest2 * d * d;
        T rate = NAME(between)(k.lr / (SQRT(v[i]) + k.eps), k.least, k.most);
        w[i] = k.keep * w[i] - rate * m[i];
    }
}

static void NAME(amsbound)(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo,
                           int64_t hi)
{
    T *restrict w = p->w, *restrict m = p->s1, *restrict v = p->s2, *restrict top = p->s3;
    const T *restrict g = p->g;
    const NAME(hyper) k = NAME(rounded)(h);
#pragma omp simd
    for (int64_t i = lo; i < hi; i++) {
        T d = NAME(direction)(g[i], w[i], k.gscale, k.decay);
        m[i] = k.beta1 * m[i] + k.rest1 * d;
        v[i] = k.beta2 * v[i] + k.rest2 * d * d;
        /* Written so that a NaN in v wins. v stays NaN from then on. */
        top[i] = top[i] > v[i] ? top[i] : v[i];
        T rate = NAME(between)(k.lr / (SQRT(top[i]) + k.eps), k.least, k.most);
        w[i] = k.keep * w[i] - rate * m[i];
    }
}

static void NAME(smorms3)(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo, int64_t hi)
{
    T *restrict w = p->w, *restrict m = p->s1, *restrict v = p->s2, *restrict memory = p->s3;
    const T *restrict g = p->g;
    const NAME(hyper) k = NAME(rounded)(h);
#pragma omp simd
    for (int64_t i = lo; i < hi; i++) {
        T d = NAME(direction)(g[i], w[i], k.gscale, k.decay);
        T old = memory[i] + k.start, r = 1 / (1 + old);
        m[i] = (1 - r) * m[i] + r * d;
        v[i] = (1 - r) * v[i] + r * d * d;
        T x = m[i] * m[i] / (v[i] + k.eps);
        memory[i] = 1 + old * (1 - x);
        w[i] = k.keep * w[i] - (x > k.lr ? k.lr : x) * d / (SQRT(v[i]) + k.eps);
    }
}

static void NAME(msvag)(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo, int64_t hi)
{
    T *restrict w = p->w, *restrict m = p->s1, *restrict v = p->s2;
    const T *restrict g = p->g;
    const NAME(hyper) k = NAME(rounded)(h);
#pragma omp simd
    for (int64_t i = lo; i < hi; i++) {
        T d = NAME(direction)(g[i], w[i], k.gscale, k.decay);
        m[i] = k.beta1 * m[i] + k.rest1 * d;
        v[i] = k.beta1 * v[i] + k.rest1 * d * d;
        T M = k.bias2 * m[i], MM = M * M, V = k.bias2 * v[i];
        T below = MM + k.start * NAME(between)(V - MM, 0, V);
        w[i] = k.keep * w[i] - k.lr * (below == 0 ? 0 : M * MM / below);
    }
}

static void NAME(lamb)(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo, int64_t hi)
{
    const T *restrict w = p->w;
    T *restrict g = p->g, *restrict m = p->s1, *restrict v = p->s2;
    const NAME(hyper) k = NAME(rounded)(h);
#pragma omp simd
    for (int64_t i = lo; i < hi; i++) {
        T d = k.gscale * g[i];
        m[i] = k.beta1 * m[i] + k.rest1 * d;
        v[i] = k.beta2 * v[i] + k.rest2 * d * d;
        g[i] = k.lr * m[i] / (SQRT(v[i]) * k.bias2 + k.eps) + k.lr2 * w[i];
    }
}

static void NAME(gradient)(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo,
                           int64_t hi)
{
    const T *restrict w = p->w;
    T *restrict g = p->g;
    const NAME(hyper) k = NAME(rounded)(h);
#pragma omp simd
    for (int64_t i = lo; i < hi; i++) {
        T d = NAME(between)(k.gscale * g[i], -k.clip, k.clip);
        g[i] = d + k.lasso * NAME(sign)(w[i]);
    }
}

/* 16 partial sums for any vector length, added up in one fixed order. The product of two floats is
 * exact in double. */
static double NAME(dot)(const void *va, const void *vb, int64_t n)
{
    const T *a = va, *b = vb;
    double sum[16] = {0}, total = 0;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
#pragma omp simd
        for (int64_t j = 0; j < 16; j++) sum[j] += (double)a[i + j] * (double)b[i + j];
    }
    for (int64_t j = 0; i + j < n; j++) sum[j] += (double)a[i + j] * (double)b[i + j];
    for (int64_t j = 0; j < 16; j++) total += sum[j];
    return total;
}
