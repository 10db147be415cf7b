/* SPDX-License-Identifier: Apache-2.0
 *
 * confusion_matrix: element (i,j) is the number of rows of class i that were predicted as j.
 * Predictions are classes or logits. The largest logit is the prediction: the first among equal
 * ones, and NaN is the largest. No gradient.
 */
#include "ops/common/classes.h"

enum { CLASSES, NATTR };
static const char *const attr_names[] = {"classes"};

static ctn_status confusion_infer(ctn_infer_args *a)
{
    const ctn_desc *p = a->in[0], *t = a->in[1];
    int64_t C = a->attr[CLASSES];
    bool logits = ctn__is_float(p->dtype);
    char tp[128], tt[128];
    if ((!logits && !ctn__is_class_type(p->dtype)) || !ctn__is_class_type(t->dtype))
        return ctn_fail(CTN_EDTYPE,
                        "%s: predictions are %s, classes are %s; expected i64 or i32, "
                        "or f32 or f64 for predictions",
                        a->name, ctn_dtype_name(p->dtype), ctn_dtype_name(t->dtype));
    if (C < 1)
        return ctn_fail(CTN_EARG, "%s: got %lld classes, expected at least 1", a->name,
                        (long long)C);
    ctn_desc rows = *p;
    if (logits) rows.ndim = p->ndim - 1;
    if (rows.ndim < 0 || !ctn__same_shape(&rows, t) || (logits && p->dim[rows.ndim] != C))
        return ctn_fail(
            CTN_ESHAPE,
            "%s: shapes do not match: predictions are %s, classes are %s, for %lld classes",
            a->name, ctn__shape_text(p, tp, sizeof tp), ctn__shape_text(t, tt, sizeof tt),
            (long long)C);
    return ctn__desc_set(&a->out[0], a->name, CTN_I64, 2, (const int64_t[]){C, C});
}

#define LARGEST(T)                                        \
    static int64_t largest_##T(const T *x, int64_t C)     \
    {                                                     \
        int64_t at = 0;                                   \
        for (int64_t c = 1; c < C && x[at] == x[at]; c++) \
            if (!(x[c] <= x[at])) at = c;                 \
        return at;                                        \
    }
LARGEST(float)
LARGEST(double)

static int64_t predicted(const ctn_run_args *a, int64_t r)
{
    int64_t C = a->attr[CLASSES];
    if (a->din[0].dtype == CTN_F32) return largest_float((const float *)a->in[0] + r * C, C);
    if (a->din[0].dtype == CTN_F64) return largest_double((const double *)a->in[0] + r * C, C);
    return ctn__class_at(a->in[0], a->din[0].dtype, r);
}

static ctn_status confusion_run(const ctn_run_args *a)
{
    int64_t C = a->attr[CLASSES], rows = ctn__count(&a->din[1]);
    int64_t *pred = a->scratch, *y = a->out[0];
#pragma omp parallel for schedule(static) if (ctn__count(&a->din[0]) > CTN__GRAIN)
    for (int64_t r = 0; r < rows; r++) pred[r] = predicted(a, r);
    memset(y, 0, (size_t)(C * C) * sizeof *y);
    for (int64_t r = 0; r < rows; r++) {
        int64_t t = ctn__class_at(a->in[1], a->din[1].dtype, r);
        if (t == CTN__NO_CLASS) continue;
        if (t < 0 || t >= C || pred[r] < 0 || pred[r] >= C)
            return ctn_fail(CTN_EARG,
                            "confusion_matrix: row %lld has class %lld and prediction %lld, "
                            "outside 0 to %lld",
                            (long long)r, (long long)t, (long long)pred[r], (long long)C - 1);
        y[t * C + pred[r]]++;
    }
    return CTN_OK;
}

static ctn_status confusion_prepare(ctn_prepare_args *a)
{
    a->scratch = (size_t)ctn__count(&a->din[1]) * sizeof(int64_t); /* predictions */
    return CTN_OK;
}

ctn_op ctn__op_confusion_matrix = {
    .struct_size = sizeof(ctn_op),
    .name = "confusion_matrix",
    .nin = 2,
    .nout = 1,
    .order = 0,
    .prec = CTN_PREC_F32,
    .attr_names = attr_names,
    .infer = confusion_infer,
    .prepare = confusion_prepare,
    .run = confusion_run,
};

ctn_tensor *ctn_confusion_matrix_at(const char *at, ctn_tensor *pred, ctn_tensor *t, int64_t C)
{
    ctn_tensor *in[2] = {pred, t};
    int64_t attr[NATTR] = {C};
    return ctn__apply1(at, NULL, &ctn__op_confusion_matrix, 2, in, NATTR, attr, 0, NULL);
}
