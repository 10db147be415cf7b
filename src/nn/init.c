/* SPDX-License-Identifier: Apache-2.0
 *
 * Initial values of variables. Element i is a pure function of (context's seed, variable, i), so
 * the values depend only on the seed and on the order in which variables were created.
 */
#include <math.h>

#include "nn/nn.h"

typedef enum { CONSTANT, NORMAL, UNIFORM, ORTHOGONAL, IDENTITY, SAMPLING } shape_of;

/* variance = scale / (in * by_in + out * by_out); both 0: the kind does not use fans. */
static const struct {
    const char *name;
    shape_of draw;
    double scale, by_in, by_out;
} kinds[] = {
    [CTN_INIT_CONSTANT] = {"constant", CONSTANT, 0, 0, 0},
    [CTN_INIT_NORMAL] = {"normal", NORMAL, 0, 0, 0},
    [CTN_INIT_UNIFORM] = {"uniform", UNIFORM, 0, 0, 0},
    [CTN_INIT_LECUN_NORMAL] = {"lecun_normal", NORMAL, 1, 1, 0},
    [CTN_INIT_LECUN_UNIFORM] = {"lecun_uniform", UNIFORM, 1, 1, 0},
    [CTN_INIT_GLOROT_NORMAL] = {"glorot_normal", NORMAL, 2, 1, 1},
    [CTN_INIT_GLOROT_UNIFORM] = {"glorot_uniform", UNIFORM, 2, 1, 1},
    [CTN_INIT_HE_NORMAL] = {"he_normal", NORMAL, 2, 1, 0},
    [CTN_INIT_HE_UNIFORM] = {"he_uniform", UNIFORM, 2, 1, 0},
    [CTN_INIT_ORTHOGONAL] = {"orthogonal", ORTHOGONAL, 0, 0, 0},
    [CTN_INIT_IDENTITY] = {"identity", IDENTITY, 0, 0, 0},
    [CTN_INIT_UPSAMPLE] = {"upsample", SAMPLING, 0, 0, 0},
    [CTN_INIT_DOWNSAMPLE] = {"downsample", SAMPLING, 0, 0, 0},
};

typedef struct {
    uint64_t seed, stream;
    /* normal: mean, deviation; uniform: low, width; otherwise a is the factor or value */
    double a, b;
} drawing;

/* Standard deviation that follows from the fans of v. */
static ctn_status fan_std(const ctn_var *v, const ctn_init *o, double *std)
{
    const ctn_desc *d = &v->d;
    if (d->ndim < 2 && !(o->fan_in > 0 && o->fan_out > 0)) {
        char s[128];
        return ctn_fail(CTN_EARG,
                        "init: %s is %s, but %s needs (out,in,...); set fan_in and fan_out",
                        v->name, ctn__shape_text(d, s, sizeof s), kinds[o->kind].name);
    }
    double field = 1;
    for (int i = 2; i < d->ndim; i++) field *= (double)d->dim[i];
    double in = o->fan_in > 0 ? (double)o->fan_in : (double)d->dim[1] * field;
    double out = o->fan_out > 0 ? (double)o->fan_out : (double)d->dim[0] * field;
    double fans = kinds[o->kind].by_in * in + kinds[o->kind].by_out * out;
    *std = fans > 0 ? sqrt(kinds[o->kind].scale / fans) : 0;
    return CTN_OK;
}

static void fill_random(void *to, ctn_dtype t, int64_t n, shape_of draw, const drawing *r)
{
#pragma omp parallel for schedule(static) if (n > 16384)
    for (int64_t i = 0; i < n; i++) {
        double x = draw == NORMAL ? ctn__normal(r->seed, r->stream, (uint64_t)i)
                                  : ctn__uniform(r->seed, r->stream, (uint64_t)i);
        ctn__elem_set(to, t, i, r->a + r->b * x);
    }
}

static double dot(const double *x, const double *y, int64_t n)
{
    double s[4] = {0}; /* four sums, so that additions need not wait for each other */
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++) s[k] += x[i + k] * y[i + k];
    for (; i < n; i++) s[0] += x[i] * y[i];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

/* Make k rows of length n orthonormal, k <= n, by modified Gram-Schmidt. Each row is done twice,
 * which keeps orthogonality at rounding level. This is QR with a positive diagonal of R. */
static void orthonormalise(double *q, int64_t k, int64_t n)
{
    for (int64_t i = 0; i < k; i++) {
        double *x = q + i * n;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t j = 0; j < i; j++) {
                const double *y = q + j * n;
                double c = dot(x, y, n);
                for (int64_t e = 0; e < n; e++) x[e] -= c * y[e];
            }
        double norm = sqrt(dot(x, x, n));
        for (int64_t e = 0; e < n; e++) x[e] /= norm;
    }
}

static ctn_status fill_orthogonal(void *to, const ctn_var *v, const drawing *r)
{
    int64_t rows = v->d.dim[0], count = ctn__count(&v->d);
    int64_t cols = rows > 0 ? count / rows : 0, k = rows < cols ? rows : cols;
    if (count == 0) return CTN_OK;
    int64_t n = rows < cols ? cols : rows;
    double *q = ctn__malloc(ctn__mul((size_t)count, sizeof *q));
    if (!q) return CTN_ENOMEM;
    for (int64_t i = 0; i < count; i++) q[i] = ctn__normal(r->seed, r->stream, (uint64_t)i);
    orthonormalise(q, k, n);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            ctn__elem_set(to, v->d.dtype, i * cols + j,
                          r->a * (rows < cols ? q[i * n + j] : q[j * n + i]));
    ctn__free(q);
    return CTN_OK;
}

static void fill_identity(void *to, const ctn_var *v, double value)
{
    int64_t rows = v->d.dim[0], cols = v->d.dim[1];
    memset(to, 0, ctn__bytes(&v->d));
    for (int64_t i = 0; i < rows && i < cols; i++)
        ctn__elem_set(to, v->d.dtype, i * cols + i, value);
}

/* Element i of the hat function over n elements, whose slope is 1 / ((n + 1) / 2). */
static double hat(int64_t i, int64_t n)
{
    const int64_t half = (n + 1) / 2;
    return 1 - fabs((double)i - (double)(n - 1) / 2) / (double)half;
}

/* Each channel gets the product of the hat functions of all spatial dimensions, divided by their
 * sums if the kernel reduces images. */
static void fill_sampling(void *to, const ctn_var *v, bool reduce, double factor)
{
    const ctn_desc *d = &v->d;
    int64_t size = 1;
    for (int k = 2; k < d->ndim; k++) {
        double sum = 0;
        for (int64_t i = 0; i < d->dim[k]; i++) sum += hat(i, d->dim[k]);
        if (reduce && sum > 0) factor /= sum;
        size *= d->dim[k];
    }
    memset(to, 0, ctn__bytes(d));
    for (int64_t c = 0; c < d->dim[0]; c++) {
        const int64_t at = (d->dim[1] == 1 ? c : c * d->dim[1] + c) * size;
        for (int64_t i = 0; i < size; i++) {
            double x = factor;
            for (int64_t k = d->ndim - 1, q = i; k >= 2; q /= d->dim[k--])
                x *= hat(q % d->dim[k], d->dim[k]);
            ctn__elem_set(to, d->dtype, at + i, x);
        }
    }
}

static ctn_status prepare(const ctn_var *v, const ctn_init *o, drawing *r)
{
    shape_of draw = kinds[o->kind].draw;
    double gain = o->gain != 0 ? o->gain : 1, std = 0;
    char s[128];
    *r = (drawing){.seed = v->ctx->seed, .stream = ctn__mix(0x696e6974 /* init */, v->uid)};
    if (draw != CONSTANT && draw != IDENTITY && !ctn__is_float(v->d.dtype))
        return ctn_fail(CTN_EDTYPE, "init: %s is %s, but %s needs a float type", v->name,
                        ctn_dtype_name(v->d.dtype), kinds[o->kind].name);
    if ((draw == ORTHOGONAL && v->d.ndim < 2) || (draw == IDENTITY && v->d.ndim != 2))
        return ctn_fail(CTN_EARG, "init: %s is %s, but %s needs %s dimensions", v->name,
                        ctn__shape_text(&v->d, s, sizeof s), kinds[o->kind].name,
                        draw == IDENTITY ? "2" : "at least 2");
    if (draw == SAMPLING && (v->d.ndim < 3 || (v->d.dim[1] != v->d.dim[0] && v->d.dim[1] != 1)))
        return ctn_fail(CTN_EARG, "init: %s is %s, but %s needs (C,C,k...) or (C,1,k...)", v->name,
                        ctn__shape_text(&v->d, s, sizeof s), kinds[o->kind].name);
    if (kinds[o->kind].scale > 0) {
        CTN_TRY(fan_std(v, o, &std));
        std *= gain;
        r->a = draw == NORMAL ? 0 : -sqrt(3.0) * std; /* uniform in +-b has variance b^2 / 3 */
        r->b = draw == NORMAL ? std : 2 * sqrt(3.0) * std;
    } else if (draw == NORMAL) {
        r->a = o->mean;
        r->b = o->std != 0 ? o->std : 1;
    } else if (draw == UNIFORM) {
        r->a = o->low;
        r->b = o->low == 0 && o->high == 0 ? 1 : o->high - o->low;
    } else {
        r->a = draw == CONSTANT ? o->value : gain;
    }
    return CTN_OK;
}

ctn_status ctn_var_init(ctn_var *v, const ctn_init *init)
{
    ctn_status st = CTN_OK;
    ctn_init o;
    drawing r;
    if (!v) return ctn_fail(CTN_EARG, "init: no variable");
    CTN_TRY(ctn__opt("init", &o, sizeof o, init));
    if ((int)o.kind < 0 || (size_t)o.kind >= sizeof kinds / sizeof *kinds)
        return ctn_fail(CTN_EARG, "init: unknown kind %d for %s", (int)o.kind, v->name);
    CTN_TRY(prepare(v, &o, &r));
    size_t bytes = ctn__bytes(&v->d);
    int64_t n = ctn__count(&v->d);
    void *to = ctn__aligned(bytes);
    if (!to) return CTN_ENOMEM;
    switch (kinds[o.kind].draw) {
    case CONSTANT:
        for (int64_t i = 0; i < n; i++) ctn__elem_set(to, v->d.dtype, i, r.a);
        break;
    case NORMAL:
    case UNIFORM: fill_random(to, v->d.dtype, n, kinds[o.kind].draw, &r); break;
    case ORTHOGONAL: CTN_TRY_GOTO(st, done, fill_orthogonal(to, v, &r)); break;
    case IDENTITY: fill_identity(to, v, r.a); break;
    case SAMPLING: fill_sampling(to, v, o.kind == CTN_INIT_DOWNSAMPLE, r.a); break;
    }
    CTN_TRY_GOTO(st, done, ctn_var_set(v, to, bytes));
done:
    ctn__free(to);
    return st;
}
