/* SPDX-License-Identifier: Apache-2.0
 *
 * accuracy: the fraction of rows whose class is among the k largest logits. Logits are ranked as
 * by argmax or a stable sort, with NaN as the largest: before a class come the classes to its
 * left whose logit is not smaller and those to its right whose logit is larger. A class whose
 * own logit is NaN is a miss. No gradient.
 */
#include "ops/common/classes.h"

enum { K, NATTR };
static const char *const attr_names[] = {"k"};

static ctn_status accuracy_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0], *t = a->in[1];
    char tx[128], tt[128];
    if (!ctn__is_f32_f64(x->dtype) || !ctn__is_class_type(t->dtype))
        return ctn_fail(CTN_EDTYPE,
                        "%s: x is %s, classes are %s; expected f32 or f64, and i64 or i32", a->name,
                        ctn_dtype_name(x->dtype), ctn_dtype_name(t->dtype));
    ctn_desc rows = *x;
    rows.ndim = x->ndim - 1;
    if (x->ndim < 1 || !ctn__same_shape(&rows, t))
        return ctn_fail(CTN_ESHAPE, "%s: x is %s, classes are %s; expected one class per row of x",
                        a->name, ctn__shape_text(x, tx, sizeof tx),
                        ctn__shape_text(t, tt, sizeof tt));
    if (a->attr[K] < 1 || a->attr[K] > x->dim[x->ndim - 1])
        return ctn_fail(CTN_EARG, "%s: k is %lld, x is %s; expected 1 to the number of classes",
                        a->name, (long long)a->attr[K], ctn__shape_text(x, tx, sizeof tx));
    a->out[0].dtype = CTN_F32;
    a->out[0].ndim = 0;
    return CTN_OK;
}

#define BEFORE(T)                                                \
    static int64_t before_##T(const T *x, int64_t C, int64_t t)  \
    {                                                            \
        T own = x[t];                                            \
        int64_t n = 0;                                           \
        for (int64_t c = 0; c < t; c++) n += !(x[c] < own);      \
        for (int64_t c = t + 1; c < C; c++) n += !(x[c] <= own); \
        return own == own ? n : C;                               \
    }
BEFORE(float)
BEFORE(double)

static ctn_status accuracy_run(const ctn_run_args *a)
{
    const ctn_desc *x = &a->din[0], *t = &a->din[1];
    int64_t C = x->dim[x->ndim - 1], rows = ctn__count(t), k = a->attr[K];
    int64_t hits = 0, counted = 0, bad = -1;
#pragma omp parallel for schedule(static) reduction(+ : hits, counted) \
    reduction(max : bad) if (rows * C > CTN__GRAIN)
    for (int64_t r = 0; r < rows; r++) {
        int64_t c = ctn__class_at(a->in[1], t->dtype, r);
        if (c == CTN__NO_CLASS) continue;
        if (c < 0 || c >= C) {
            bad = r;
            continue;
        }
        int64_t n = x->dtype == CTN_F32 ? before_float((const float *)a->in[0] + r * C, C, c)
                                        : before_double((const double *)a->in[0] + r * C, C, c);
        hits += n < k;
        counted++;
    }
    if (bad >= 0)
        return ctn_fail(CTN_EARG, "accuracy: the class of row %lld is outside 0 to %lld",
                        (long long)bad, (long long)C - 1);
    *(float *)a->out[0] = counted > 0 ? (float)((double)hits / (double)counted) : 0;
    return CTN_OK;
}

ctn_op ctn__op_accuracy = {
    .struct_size = sizeof(ctn_op),
    .name = "accuracy",
    .nin = 2,
    .nout = 1,
    .order = 0,
    .prec = CTN_PREC_F32,
    .attr_names = attr_names,
    .infer = accuracy_infer,
    .run = accuracy_run,
};

ctn_tensor *ctn_accuracy_at(const char *at, ctn_tensor *x, ctn_tensor *t, int k)
{
    ctn_tensor *in[2] = {x, t};
    int64_t attr[NATTR] = {k};
    return ctn__apply1(at, NULL, &ctn__op_accuracy, 2, in, NATTR, attr, 0, NULL);
}
