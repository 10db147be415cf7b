/* SPDX-License-Identifier: Apache-2.0
 *
 * Mixup (Zhang et al. 2018) and cutmix (Yun et al. 2019) of a batch with itself in reverse order:
 * image i is mixed with image n-1-i, so both images of a pair are computed at once and no copy is
 * needed. One mixing ratio is drawn for the whole batch, from (seed, epoch, position).
 */
#include "data/mix.h"

#include <math.h>

#include "data/data.h"

/* Keeps these random numbers independent of others drawn from the same seed. */
#define MIX_STREAM UINT64_C(0x6d69787570212121)

/* A sequence of random numbers. */
typedef struct {
    uint64_t key, stream, next;
} source;

static double uniform(source *r)
{
    return ctn__uniform(r->key, r->stream, r->next++);
}

/* Logarithm of a gamma variate (Marsaglia and Tsang 2000); for shapes below 1 by Gamma(a) =
 * Gamma(a + 1) U^(1/a). Computed in logarithms, because small shapes would underflow a double. */
static double log_gamma_variate(source *r, double shape)
{
    double more = 0;
    if (shape < 1) {
        more = log(1 - uniform(r)) / shape;
        shape += 1;
    }
    const double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = ctn__normal(r->key, r->stream, r->next++), v = 1 + c * x;
        double u = 1 - uniform(r);
        if (v <= 0) continue;
        v = v * v * v;
        if (log(u) < 0.5 * x * x + d - d * v + d * log(v)) return log(d * v) + more;
    }
}

static double beta_variate(source *r, double shape)
{
    double a = log_gamma_variate(r, shape), b = log_gamma_variate(r, shape);
    return 1 / (1 + exp(b - a));
}

static void mixup(float *restrict a, float *restrict b, int64_t n, float part)
{
    const float rest = 1 - part;
    for (int64_t i = 0; i < n; i++) {
        float x = a[i], y = b[i];
        a[i] = part * x + rest * y;
        b[i] = part * y + rest * x;
    }
}

typedef struct {
    int64_t x, y, w, h;
} box;

static void exchange(float *restrict a, float *restrict b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float x = a[i];
        a[i] = b[i];
        b[i] = x;
    }
}

static void cutmix(float *a, float *b, const ctn_field *f, const box *cut)
{
    const int64_t C = f->shape[0], H = f->shape[1], W = f->shape[2];
    for (int64_t y = cut->y; y < cut->y + cut->h; y++) {
        if (f->channels_last) {
            int64_t at = (y * W + cut->x) * C;
            exchange(a + at, b + at, cut->w * C);
            continue;
        }
        for (int64_t c = 0; c < C; c++) {
            int64_t at = (c * H + y) * W + cut->x;
            exchange(a + at, b + at, cut->w);
        }
    }
}

/* A box with 1 - part of the area around a random point, clipped to the image. *part becomes the
 * share of the area outside it. */
static box draw_box(source *r, const ctn_field *f, double *part)
{
    const int64_t H = f->shape[1], W = f->shape[2];
    const double side = sqrt(1 - *part);
    int64_t cx = (int64_t)(uniform(r) * (double)W), cy = (int64_t)(uniform(r) * (double)H);
    int64_t hw = (int64_t)(side * (double)W / 2), hh = (int64_t)(side * (double)H / 2);
    int64_t x0 = cx - hw < 0 ? 0 : cx - hw, x1 = cx + hw > W ? W : cx + hw;
    int64_t y0 = cy - hh < 0 ? 0 : cy - hh, y1 = cy + hh > H ? H : cy + hh;
    *part = 1 - (double)((x1 - x0) * (y1 - y0)) / (double)(W * H);
    return (box){x0, y0, x1 - x0, y1 - y0};
}

static ctn_status mix_labels(const ctn_mix_opt *mix, int64_t n, const int64_t *labels, float *parts,
                             double part)
{
    memset(parts, 0, (size_t)n * (size_t)mix->classes * sizeof *parts);
    for (int64_t i = 0; i < n; i++) {
        if (labels[i] < 0 || labels[i] >= mix->classes)
            return ctn_fail(CTN_EARG, "mix: a label is %lld, but there are %lld classes",
                            (long long)labels[i], (long long)mix->classes);
    }
    for (int64_t i = 0; i < n; i++) {
        float *p = parts + i * mix->classes;
        p[labels[i]] += (float)part;
        p[labels[n - 1 - i]] += 1 - (float)part;
    }
    return CTN_OK;
}

ctn_status ctn__mix_opt(ctn_mix_opt *to, const ctn_mix_opt *from, int fields,
                        const ctn_field *field)
{
    CTN_TRY(ctn__opt("mix", to, sizeof *to, from));
    if (!(to->mixup >= 0 && to->mixup <= 1e6 && to->cutmix >= 0 && to->cutmix <= 1e6))
        return ctn_fail(CTN_EARG, "mix: mixup is %g and cutmix is %g, expected 0 to 1e6", to->mixup,
                        to->cutmix);
    if (to->classes < 1)
        return ctn_fail(CTN_EARG, "mix: classes is %lld, expected at least 1; set .classes",
                        (long long)to->classes);
    for (int f = 0; f < fields; f++)
        if (ctn__ragged(&field[f]))
            return ctn_fail(CTN_EARG,
                            "mix: field %d is ragged; only images of equal size can be "
                            "mixed",
                            f);
    if (fields < 2 || field[0].dtype != CTN_F32 || field[0].ndim != 3)
        return ctn_fail(CTN_EDTYPE, "mix: field 0 must be normalised images, f32 (C,H,W)");
    if (field[1].dtype != CTN_I64 || field[1].ndim != 0)
        return ctn_fail(CTN_EDTYPE, "mix: field 1 must be a class, a scalar i64");
    return CTN_OK;
}

ctn_status ctn__mix_batch(const ctn_mix_opt *mix, const ctn_sampler_state *at, int64_t n,
                          const ctn_field *image, float *images, const int64_t *labels,
                          float *parts)
{
    source r = {ctn__mix(ctn__mix(at->seed, MIX_STREAM), at->epoch), at->position, 0};
    double coin = uniform(&r), part = 1;
    const bool cut = mix->cutmix > 0 && (mix->mixup <= 0 || coin < 0.5);
    box b = {0};
    if (cut || mix->mixup > 0) part = beta_variate(&r, cut ? mix->cutmix : mix->mixup);
    if (cut) b = draw_box(&r, image, &part);
    CTN_TRY(mix_labels(mix, n, labels, parts, part));
    const int64_t size = image->shape[0] * image->shape[1] * image->shape[2];
    for (int64_t i = 0; i < n / 2; i++) {
        float *x = images + i * size, *y = images + (n - 1 - i) * size;
        if (cut) cutmix(x, y, image, &b);
        else if (part < 1) mixup(x, y, size, (float)part);
    }
    return CTN_OK;
}
