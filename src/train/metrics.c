/* SPDX-License-Identifier: Apache-2.0
 *
 * Metrics of all samples together, which are not means of the metrics of batches. A batch gives a
 * few sums or, for auc, the score and class of each row. The sums are f64 and those of classes are
 * counts, so they are the same on any number of ranks. A new metric is one line in the table.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include <catena/ops.h>

#include "train/train.h"

enum { NO_CLASS = -100 }; /* rows that are ignored, as in losses */

/* ---- rows with a class ----------------------------------------------------------------------- */

/* Results and classes of the rows of a batch. */
typedef struct {
    ctn_tensor *y;   /* (R,classes) logits, or (R) logits of class 1 of two */
    ctn_tensor *t;   /* (R) i64 or i32 */
    int64_t classes; /* columns of y; 1: it has none */
} rows;

static bool as_rows(const ctn__metric *m, ctn_tensor *y, ctn_tensor *t, rows *r)
{
    char ty[128], tt[128];
    const ctn_dtype type = t->d.dtype;
    const int n = t->d.ndim;
    if (!ctn__is_float(y->d.dtype) ||
        (type != CTN_I64 && type != CTN_I32 && type != CTN_U8 && type != CTN_BOOL)) {
        ctn_fail(CTN_EDTYPE, "%s: y is %s, t is %s; expected floats, and i64, i32, u8 or bool",
                 m->name, ctn_dtype_name(y->d.dtype), ctn_dtype_name(type));
        return false;
    }
    ctn_desc of_rows = y->d;
    of_rows.ndim = n;
    if (y->d.ndim < n || y->d.ndim > n + 1 || !ctn__same_shape(&of_rows, &t->d)) {
        ctn_fail(CTN_ESHAPE,
                 "%s: y is %s, t is %s; expected logits (...,C) or (...), classes (...)", m->name,
                 ctn__shape_text(&y->d, ty, sizeof ty), ctn__shape_text(&t->d, tt, sizeof tt));
        return false;
    }
    r->classes = y->d.ndim > n ? y->d.dim[n] : 1;
    const int64_t shape[2] = {ctn__count(&t->d), r->classes};
    r->y = ctn_reshape_at(y->at, y, r->classes > 1 ? 2 : 1, shape);
    r->t = ctn_reshape_at(y->at, t, 1, shape);
    if (type == CTN_U8 || type == CTN_BOOL) r->t = ctn_cast_at(y->at, r->t, CTN_I32);
    return r->y && r->t;
}

static bool two_classes(const ctn__metric *m, const rows *r)
{
    const long long classes = r->classes;
    if (classes <= 2) return true;
    if (m->all) ctn_fail(CTN_ESHAPE, "%s: got %lld classes, expected 2", m->name, classes);
    else
        ctn_fail(CTN_ESHAPE,
                 "%s: got %lld classes, expected 2; for more there are %s_macro and %s_micro",
                 m->name, classes, m->name, m->name);
    return false;
}

/* ---- precision, recall, F1 and intersection over union --------------------------------------- */

enum { F1, PRECISION, RECALL, IOU }; /* what */
enum { BINARY, MACRO, MICRO };       /* over */

/* For each class, its rows and those of them that are predicted right; then, for each class, how
 * often it is predicted. (3 classes) f64. */
static ctn_tensor *class_parts(const ctn__metric *m, ctn_tensor *y, ctn_tensor *t)
{
    rows r;
    const char *at = y->at;
    if (!as_rows(m, y, t, &r) || (m->over == BINARY && !two_classes(m, &r))) return NULL;
    const int64_t classes = r.classes > 1 ? r.classes : 2;
    ctn_context *ctx = r.t->ctx;
    ctn_tensor *none = ctn_full_at(at, ctx, NO_CLASS, r.t->d.dtype, CTN_SCALAR_SHAPE);
    ctn_tensor *zero = ctn_full_at(at, ctx, 0, r.t->d.dtype, CTN_SCALAR_SHAPE);
    ctn_tensor *counts = ctn_not_equal_at(at, r.t, none);
    ctn_tensor *class = ctn_cast_at(at, ctn_where_at(at, counts, r.t, zero), CTN_I64);
    ctn_tensor *guess;
    if (r.classes > 1) {
        guess = ctn_argmax_at(at, r.y, 1);
    } else {
        ctn_tensor *middle = ctn_full_at(at, ctx, 0, r.y->d.dtype, CTN_SCALAR_SHAPE);
        guess = ctn_cast_at(at, ctn_greater_equal_at(at, r.y, middle), CTN_I64);
    }
    ctn_tensor *right = ctn_logical_and_at(at, counts, ctn_equal_at(at, class, guess));
    ctn_tensor *one = ctn_cast_at(at, counts, CTN_F64), *hit = ctn_cast_at(at, right, CTN_F64);
    ctn_tensor *pair = ctn_stack_at(at, 2, (ctn_tensor *[]){one, hit}, 1);
    ctn_tensor *of_class = ctn_segment_sum_at(at, pair, class, classes);
    ctn_tensor *both[2] = {ctn_reshape_at(at, of_class, CTN_SHAPE(2 * classes)),
                           ctn_segment_sum_at(at, one, guess, classes)};
    return both[0] && both[1] ? ctn_concat_at(at, 2, both, 0) : NULL;
}

static double share(int what, double actual, double hits, double guesses)
{
    const double above = what == F1 ? 2 * hits : hits;
    const double below = what == F1          ? actual + guesses
                         : what == PRECISION ? guesses
                         : what == RECALL    ? actual
                                             : actual + guesses - hits;
    return below > 0 ? above / below : 0;
}

static ctn_status class_finish(const ctn__metric *m, int64_t n, double *part, double *value)
{
    const int64_t classes = n / 3;
    const double *guesses = part + 2 * classes;
    double sum = 0, occurring = 0, all[3] = {0};
    for (int64_t c = 0; c < classes; c++) {
        const double now[3] = {part[2 * c], part[2 * c + 1], guesses[c]};
        for (int k = 0; k < 3; k++) all[k] += now[k];
        if (now[0] + now[2] <= 0) continue;
        sum += share(m->what, now[0], now[1], now[2]);
        occurring++;
    }
    if (all[0] <= 0) *value = NAN; /* no rows */
    else if (m->over == BINARY) *value = share(m->what, part[2], part[3], guesses[1]);
    else if (m->over == MICRO) *value = share(m->what, all[0], all[1], all[2]);
    else *value = sum / occurring;
    return CTN_OK;
}

/* ---- area under the ROC curve ---------------------------------------------------------------- */

/* Pairs of score and class. The score of two logits is their difference, which has the order of
 * the probability of class 1 without its rounding near 0 and 1. */
static ctn_tensor *auc_parts(const ctn__metric *m, ctn_tensor *y, ctn_tensor *t)
{
    rows r;
    const char *at = y->at;
    if (!as_rows(m, y, t, &r) || !two_classes(m, &r)) return NULL;
    ctn_tensor *score = ctn_cast_at(at, r.y, CTN_F64);
    if (r.classes == 2)
        score = ctn_sub_at(at, ctn_select_at(at, score, 1, 1), ctn_select_at(at, score, 1, 0));
    ctn_tensor *pair[2] = {score, ctn_cast_at(at, r.t, CTN_F64)};
    return pair[0] && pair[1] ? ctn_stack_at(at, 2, pair, 1) : NULL;
}

typedef struct {
    double score, class;
} scored;

static int by_score(const void *a, const void *b)
{
    const double x = ((const scored *)a)->score, y = ((const scored *)b)->score;
    return (x > y) - (x < y);
}

/* The share of pairs of a row of class 1 and a row of class 0 in which the former has the higher
 * score; equal scores count half. Counted in integers, so the order of the rows does not matter. */
static ctn_status auc_finish(const ctn__metric *m, int64_t n, double *part, double *value)
{
    scored *row = (scored *)part;
    int64_t count = 0, of[2] = {0}, wins = 0; /* wins: twice the number */
    *value = NAN;
    for (int64_t i = 0; i < n / 2; i++) {
        if (row[i].class == NO_CLASS) continue;
        if (row[i].class != 0 && row[i].class != 1)
            return ctn_fail(CTN_EARG, "%s: a row has class %g, expected 0 or 1", m->name,
                            row[i].class);
        if (isnan(row[i].score)) return CTN_OK;
        row[count++] = row[i];
    }
    qsort(row, (size_t)count, sizeof *row, by_score);
    for (int64_t i = 0, end; i < count; i = end) {
        int64_t equal[2] = {0};
        for (end = i; end < count && row[end].score == row[i].score; end++)
            equal[row[end].class == 1]++;
        wins += equal[1] * (2 * of[0] + equal[0]);
        for (int k = 0; k < 2; k++) of[k] += equal[k];
    }
    if (of[0] > 0 && of[1] > 0) *value = (double)wins / (2 * (double)of[0] * (double)of[1]);
    return CTN_OK;
}

/* ---- regression ------------------------------------------------------------------------------ */

static bool same_floats(const ctn__metric *m, const ctn_tensor *y, const ctn_tensor *t)
{
    char ty[128], tt[128];
    if (!ctn__is_float(y->d.dtype) || !ctn__is_float(t->d.dtype)) {
        ctn_fail(CTN_EDTYPE, "%s: y is %s, t is %s; expected floats", m->name,
                 ctn_dtype_name(y->d.dtype), ctn_dtype_name(t->d.dtype));
        return false;
    }
    if (y->d.ndim < 1 || !ctn__same_shape(&y->d, &t->d)) {
        ctn_fail(CTN_ESHAPE, "%s: y is %s, t is %s; expected the same shape (N,...)", m->name,
                 ctn__shape_text(&y->d, ty, sizeof ty), ctn__shape_text(&t->d, tt, sizeof tt));
        return false;
    }
    return true;
}

enum { ABSOLUTE, SQUARED }; /* what */

/* (K) -> its sums over everything but the columns. */
static ctn_tensor *by_column(ctn_tensor *x, int64_t columns)
{
    int64_t axes[CTN_MAX_DIMS] = {0};
    if (!x) return NULL;
    for (int i = 2; i < x->d.ndim; i++) axes[i - 1] = i;
    ctn_tensor *sum = ctn_sum_at(x->at, x, x->d.ndim > 1 ? x->d.ndim - 1 : 1, axes, 0);
    return ctn_reshape_at(x->at, sum, CTN_SHAPE(columns));
}

/* The elements of a column; then the sums over each column of t, t^2 and (y - t)^2. With f32
 * targets the difference of the sums loses no more than the targets themselves have lost. */
static ctn_tensor *r2_parts(const ctn__metric *m, ctn_tensor *y, ctn_tensor *t)
{
    const char *at = y->at;
    if (!same_floats(m, y, t)) return NULL;
    const int64_t columns = y->d.ndim > 1 ? y->d.dim[1] : 1;
    const int64_t each = columns > 0 ? ctn__count(&y->d) / columns : 0;
    y = ctn_cast_at(at, y, CTN_F64);
    t = ctn_cast_at(at, t, CTN_F64);
    ctn_tensor *all[4] = {y ? ctn_full_at(at, y->ctx, (double)each, CTN_F64, CTN_SHAPE(1)) : NULL,
                          by_column(t, columns), by_column(ctn_square_at(at, t), columns),
                          by_column(ctn_squared_difference_at(at, y, t), columns)};
    return all[0] && all[1] && all[2] && all[3] ? ctn_concat_at(at, 4, all, 0) : NULL;
}

static ctn_status r2_finish(const ctn__metric *m, int64_t n, double *part, double *value)
{
    const int64_t columns = (n - 1) / 3;
    const double *sum = part + 1, *square = sum + columns, *error = square + columns;
    double total = 0;
    (void)m;
    for (int64_t k = 0; k < columns; k++) {
        const double spread = square[k] - sum[k] * sum[k] / part[0];
        const bool flat = spread <= 16 * DBL_EPSILON * square[k]; /* t is constant */
        total += flat ? error[k] <= 0 : 1 - error[k] / spread;
    }
    *value = part[0] > 0 ? total / (double)columns : NAN;
    return CTN_OK;
}

static ctn_tensor *relative_parts(const ctn__metric *m, ctn_tensor *y, ctn_tensor *t)
{
    const char *at = y->at;
    if (!same_floats(m, y, t)) return NULL;
    y = ctn_cast_at(at, y, CTN_F64);
    t = ctn_cast_at(at, t, CTN_F64);
    ctn_tensor *sum[2] = {ctn_sum_at(at, ctn_squared_difference_at(at, y, t), CTN_ALL_AXES, 0),
                          ctn_sum_at(at, ctn_square_at(at, t), CTN_ALL_AXES, 0)};
    return sum[0] && sum[1] ? ctn_stack_at(at, 2, sum, 0) : NULL;
}

static ctn_status relative_finish(const ctn__metric *m, int64_t n, double *part, double *value)
{
    (void)m, (void)n;
    *value = part[1] > 0 ? sqrt(part[0] / part[1]) : 0;
    return CTN_OK;
}

/* The sum of the errors, absolute or squared, and their number. */
static ctn_tensor *error_parts(const ctn__metric *m, ctn_tensor *y, ctn_tensor *t)
{
    const char *at = y->at;
    if (!same_floats(m, y, t)) return NULL;
    const double count = (double)ctn__count(&y->d);
    y = ctn_cast_at(at, y, CTN_F64);
    t = ctn_cast_at(at, t, CTN_F64);
    ctn_tensor *error = m->what == SQUARED ? ctn_squared_difference_at(at, y, t)
                                           : ctn_abs_at(at, ctn_sub_at(at, y, t));
    ctn_tensor *sum[2] = {ctn_sum_at(at, error, CTN_ALL_AXES, 0),
                          y ? ctn_full_at(at, y->ctx, count, CTN_F64, CTN_SCALAR_SHAPE) : NULL};
    return sum[0] && sum[1] ? ctn_stack_at(at, 2, sum, 0) : NULL;
}

static ctn_status error_finish(const ctn__metric *m, int64_t n, double *part, double *value)
{
    (void)n;
    const double mean = part[1] > 0 ? part[0] / part[1] : (double)NAN;
    *value = m->what == SQUARED ? sqrt(mean) : mean;
    return CTN_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define TABLE(X)                                                             \
    X("f1", F1, BINARY, false, class_parts, class_finish)                    \
    X("f1_macro", F1, MACRO, false, class_parts, class_finish)               \
    X("f1_micro", F1, MICRO, false, class_parts, class_finish)               \
    X("precision", PRECISION, BINARY, false, class_parts, class_finish)      \
    X("precision_macro", PRECISION, MACRO, false, class_parts, class_finish) \
    X("precision_micro", PRECISION, MICRO, false, class_parts, class_finish) \
    X("recall", RECALL, BINARY, false, class_parts, class_finish)            \
    X("recall_macro", RECALL, MACRO, false, class_parts, class_finish)       \
    X("recall_micro", RECALL, MICRO, false, class_parts, class_finish)       \
    X("miou", IOU, MACRO, false, class_parts, class_finish)                  \
    X("auc", 0, 0, true, auc_parts, auc_finish)                              \
    X("r2", 0, 0, false, r2_parts, r2_finish)                                \
    X("relative_l2", 0, 0, false, relative_parts, relative_finish)           \
    X("mae", ABSOLUTE, 0, false, error_parts, error_finish)                  \
    X("rmse", SQUARED, 0, false, error_parts, error_finish)

#define ROW(name, what, over, all, parts, finish) {name, what, over, all, parts, finish},
static const ctn__metric table[] = {TABLE(ROW)};
#undef ROW
enum { METRICS = sizeof table / sizeof *table };

#define NAME(name, what, over, all, parts, finish) name,
static const char *const names[] = {TABLE(NAME) NULL};
#undef NAME

const char *const *ctn_metric_names(void)
{
    return names;
}

const ctn__metric *ctn__metric_find(const char *name)
{
    for (int i = 0; i < METRICS; i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    ctn__text all = {0};
    for (int i = 0; i < METRICS; i++) ctn__text_add(&all, " %s", table[i].name);
    if (!all.failed)
        ctn_fail(CTN_EARG, "report_metric: no metric '%s'; known metrics:%s", name, all.s);
    ctn__text_free(&all);
    return NULL;
}

const ctn__metric *ctn__metric_number(int i)
{
    return i >= 0 && i < METRICS ? &table[i] : NULL;
}

int ctn__metric_index(const ctn__metric *m)
{
    return (int)(m - table);
}
