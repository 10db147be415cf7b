/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of reductions, of ops along one axis, of indexing, and of cutting and joining. The
 * references visit the input one element at a time. The large reductions exercise the blocking:
 * several blocks, a short last one, wide rows with a remainder.
 */
#include <math.h>

#include "harness.h"

/* clang-format off */
#define S0() .ndim = 0
#define S1(a) .ndim = 1, .dim = {a}
#define S2(a, b) .ndim = 2, .dim = {a, b}
#define S3(a, b, c) .ndim = 3, .dim = {a, b, c}
#define S4(a, b, c, d) .ndim = 4, .dim = {a, b, c, d}
#define INDEX(n, ...) {.dtype = CTN_I64, .fill = FILL_INDEX, .lo = 0, .hi = n, __VA_ARGS__}
#define INDEX32(n, ...) {.dtype = CTN_I32, .fill = FILL_INDEX, .lo = 0, .hi = n, __VA_ARGS__}
#define DISTINCT(...) {.fill = FILL_DISTINCT, .lo = -3, .hi = 3, __VA_ARGS__}
/* clang-format on */

static int64_t ravel(int ndim, const int64_t *dim, const int64_t *index)
{
    int64_t i = 0;
    for (int k = 0; k < ndim; k++) i = i * dim[k] + index[k];
    return i;
}

static int axis_of(int ndim, int64_t axis)
{
    return (int)(axis < 0 ? axis + ndim : axis);
}

/* ---- reductions: p = keep, number of axes, axes ---------------------------------------------- */

/* The element of the result that element i of the input belongs to. */
static int64_t target(const op_case *c, int64_t i)
{
    const case_in *in = &c->in[0];
    int64_t at[CTN_MAX_DIMS] = {0}, y = 0;
    unravel(i, in->ndim, in->dim, at);
    for (int k = 0; k < in->ndim; k++) {
        int gone = c->p[1] == 0;
        for (int j = 0; j < c->p[1]; j++) gone |= axis_of(in->ndim, c->p[2 + j]) == k;
        if (!gone) y = y * in->dim[k] + at[k];
    }
    return y;
}

static void sum_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = 0;
    for (int64_t i = 0; i < case_count(&c->in[0]); i++) y[target(c, i)] += x[0][i];
}

static void mean_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    sum_ref(c, x, out, y);
    for (int64_t i = 0; i < desc_count(out); i++)
        y[i] /= (double)case_count(&c->in[0]) / (double)desc_count(out);
}

static void max_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = -INFINITY;
    for (int64_t i = 0; i < case_count(&c->in[0]); i++)
        y[target(c, i)] = fmax(y[target(c, i)], x[0][i]);
}

static void min_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = INFINITY;
    for (int64_t i = 0; i < case_count(&c->in[0]); i++)
        y[target(c, i)] = fmin(y[target(c, i)], x[0][i]);
}

#define REDUCE_CALL(name)                                                                    \
    static ctn_tensor *name##_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x) \
    {                                                                                        \
        (void)ctx;                                                                           \
        return ctn_##name(x[0], (int)c->p[1], c->p + 2, (int)c->p[0]);                       \
    }
REDUCE_CALL(sum)
REDUCE_CALL(mean)
REDUCE_CALL(max)
REDUCE_CALL(min)

/* The gradient of max among equal elements, where finite differences do not work. */
static ctn_tensor *max_ties_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    ctn_tensor *leaf = ctn_with_grad(x[0]), *gx = NULL;
    ctn_tensor *y = c->q[0] < 0 ? min_call(c, ctx, &leaf) : max_call(c, ctx, &leaf);
    return ctn_grad(ctn_sum(y, CTN_ALL_AXES, 0), 1, &leaf, &gx) < 0 ? NULL : gx;
}

static void max_ties_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    for (int64_t i = 0; i < desc_count(out); i++) {
        double best = x[0][i], equal = 0;
        for (int64_t j = 0; j < desc_count(out); j++)
            if (target(c, j) == target(c, i) && c->q[0] * x[0][j] > c->q[0] * best) best = x[0][j];
        for (int64_t j = 0; j < desc_count(out); j++)
            equal += target(c, j) == target(c, i) && x[0][j] == best;
        y[i] = x[0][i] == best ? 1 / equal : 0;
    }
}

/* ---- along one axis: p[0] is the axis -------------------------------------------------------- */

static ctn_tensor *argmax_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_argmax(x[0], c->p[0]);
}

/* The element of a line with rank r, ordered by value, then by place; -1 if there is none. */
static int64_t ranked(const op_case *c, const double *x, const int64_t *line, int64_t r)
{
    const case_in *in = &c->in[0];
    int axis = axis_of(in->ndim, c->p[0]);
    int64_t at[CTN_MAX_DIMS] = {0}, other[CTN_MAX_DIMS] = {0};
    for (int k = 0; k < in->ndim; k++) at[k] = other[k] = line[k];
    for (int64_t i = 0; i < in->dim[axis]; i++) {
        int64_t before = 0;
        at[axis] = i;
        double v = x[ravel(in->ndim, in->dim, at)];
        for (int64_t j = 0; j < in->dim[axis]; j++) {
            other[axis] = j;
            double w = x[ravel(in->ndim, in->dim, other)];
            before += w > v || (w == v && j < i);
        }
        if (before == r) return i;
    }
    return -1;
}

static void argmax_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const case_in *in = &c->in[0];
    int axis = axis_of(in->ndim, c->p[0]);
    int64_t at[CTN_MAX_DIMS] = {0}, line[CTN_MAX_DIMS] = {0};
    for (int64_t i = 0; i < desc_count(out); i++) {
        unravel(i, out->ndim, out->dim, at);
        for (int k = 0; k < in->ndim; k++) line[k] = k == axis ? 0 : at[k - (k > axis)];
        y[i] = (double)ranked(c, x[0], line, 0);
    }
}

/* p[1]: k */
static ctn_tensor *topk_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    ctn_tensor *y;
    (void)ctx;
    return ctn_topk(x[0], c->p[1], c->p[0], &y, NULL) < 0 ? NULL : y;
}

static ctn_tensor *topk_places_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    ctn_tensor *y;
    (void)ctx;
    return ctn_topk(x[0], c->p[1], c->p[0], NULL, &y) < 0 ? NULL : y;
}

static void topk_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const case_in *in = &c->in[0];
    int axis = axis_of(in->ndim, c->p[0]);
    int64_t at[CTN_MAX_DIMS] = {0};
    for (int64_t i = 0; i < desc_count(out); i++) {
        unravel(i, out->ndim, out->dim, at);
        int64_t place = ranked(c, x[0], at, at[axis]);
        at[axis] = place;
        y[i] = out->dtype == CTN_I64 ? (double)place : x[0][ravel(in->ndim, in->dim, at)];
    }
}

/* p[1]: reverse */
static ctn_tensor *cumsum_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_cumsum(x[0], c->p[0], (int)c->p[1]);
}

static void cumsum_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    int axis = axis_of(out->ndim, c->p[0]);
    int64_t at[CTN_MAX_DIMS] = {0};
    for (int64_t i = 0; i < desc_count(out); i++) {
        unravel(i, out->ndim, out->dim, at);
        int64_t own = at[axis], n = out->dim[axis];
        y[i] = 0;
        for (at[axis] = c->p[1] ? own : 0; at[axis] < (c->p[1] ? n : own + 1); at[axis]++)
            y[i] += x[0][ravel(out->ndim, out->dim, at)];
    }
}

/* ---- by indices ------------------------------------------------------------------------------ */

/* p: classes, dtype */
static ctn_tensor *one_hot_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_one_hot(x[0], c->p[0], (ctn_dtype)c->p[1]);
}

static void one_hot_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = x[0][i / c->p[0]] == (double)(i % c->p[0]);
}

static ctn_tensor *gather_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_gather(x[0], x[1], c->p[0]);
}

static void gather_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    int64_t at[CTN_MAX_DIMS] = {0};
    for (int64_t i = 0; i < desc_count(out); i++) {
        unravel(i, out->ndim, out->dim, at);
        at[axis_of(out->ndim, c->p[0])] = (int64_t)x[1][i];
        y[i] = x[0][ravel(out->ndim, c->in[0].dim, at)];
    }
}

static ctn_tensor *scatter_add_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_scatter_add(x[0], x[1], x[2], c->p[0]);
}

static void scatter_add_ref(const op_case *c, const double *const *x, const ctn_desc *out,
                            double *y)
{
    int64_t at[CTN_MAX_DIMS] = {0};
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = x[0][i];
    for (int64_t i = 0; i < case_count(&c->in[1]); i++) {
        unravel(i, out->ndim, c->in[1].dim, at);
        double v = x[2][ravel(out->ndim, c->in[2].dim, at)];
        at[axis_of(out->ndim, c->p[0])] = (int64_t)x[1][i];
        y[ravel(out->ndim, out->dim, at)] += v;
    }
}

static ctn_tensor *put_rows_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)c, (void)ctx;
    return ctn_put_rows(x[0], x[1], x[2]);
}

static void put_rows_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t M = out->dim[out->ndim - 2], E = out->dim[out->ndim - 1];
    const int64_t T = c->in[1].dim[out->ndim - 2], all = desc_count(out);
    for (int64_t i = 0; i < all; i++) {
        const int64_t part = i / E / M, row = i / E % M - (int64_t)x[2][i / (all / out->dim[0])];
        y[i] = row >= 0 && row < T ? x[1][(part * T + row) * E + i % E] : x[0][i];
    }
}

static ctn_tensor *embedding_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)c, (void)ctx;
    return ctn_embedding(x[0], x[1]);
}

static void embedding_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    int64_t D = c->in[0].dim[1];
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = x[0][(int64_t)x[1][i / D] * D + i % D];
}

/* ---- cutting and joining --------------------------------------------------------------------- */

static ctn_tensor *concat_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_concat(c->nin, x, c->p[0]);
}

static void concat_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    int axis = axis_of(out->ndim, c->p[0]);
    int64_t at[CTN_MAX_DIMS] = {0};
    for (int64_t i = 0; i < desc_count(out); i++) {
        int k = 0;
        unravel(i, out->ndim, out->dim, at);
        for (; at[axis] >= c->in[k].dim[axis]; k++) at[axis] -= c->in[k].dim[axis];
        y[i] = x[k][ravel(out->ndim, c->in[k].dim, at)];
    }
}

static ctn_tensor *stack_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_stack(c->nin, x, c->p[0]);
}

static void stack_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    int axis = axis_of(out->ndim, c->p[0]);
    int64_t at[CTN_MAX_DIMS] = {0}, in[CTN_MAX_DIMS] = {0};
    for (int64_t i = 0; i < desc_count(out); i++) {
        unravel(i, out->ndim, out->dim, at);
        for (int k = 0; k < out->ndim - 1; k++) in[k] = at[k + (k >= axis)];
        y[i] = x[at[axis]][ravel(out->ndim - 1, c->in[0].dim, in)];
    }
}

/* p: axis, pieces, sizes. The pieces are joined in reverse order. */
static ctn_tensor *split_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    ctn_tensor *piece[8], *turned[8];
    int n = (int)c->p[1];
    (void)ctx;
    if (ctn_split(x[0], c->p[0], n, c->p + 2, piece) < 0) return NULL;
    for (int i = 0; i < n; i++) turned[i] = piece[n - 1 - i];
    return ctn_concat(n, turned, c->p[0]);
}

static void split_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    int axis = axis_of(out->ndim, c->p[0]);
    int64_t at[CTN_MAX_DIMS] = {0};
    for (int64_t i = 0; i < desc_count(out); i++) {
        int64_t piece = c->p[1] - 1, begin = out->dim[axis];
        unravel(i, out->ndim, out->dim, at);
        for (begin -= c->p[2 + piece]; at[axis] >= c->p[2 + piece]; begin -= c->p[2 + piece])
            at[axis] -= c->p[2 + piece--];
        at[axis] += begin;
        y[i] = x[0][ravel(out->ndim, out->dim, at)];
    }
}

/* Only the second of three pieces is read, so the others get no gradient. */
static ctn_tensor *split_one_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    ctn_tensor *piece[8];
    (void)ctx;
    return ctn_split(x[0], c->p[0], (int)c->p[1], c->p + 2, piece) < 0 ? NULL : piece[1];
}

/* p: axis, start, length */
static ctn_tensor *slice_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_slice(x[0], c->p[0], c->p[1], c->p[2]);
}

static void cut_ref(const op_case *c, const double *x, int64_t axis, int64_t start,
                    const ctn_desc *out, double *y)
{
    int ax = axis_of(out->ndim, axis);
    int64_t at[CTN_MAX_DIMS] = {0};
    for (int64_t i = 0; i < desc_count(out); i++) {
        unravel(i, out->ndim, out->dim, at);
        at[ax] += start < 0 ? start + c->in[0].dim[ax] : start;
        y[i] = x[ravel(out->ndim, c->in[0].dim, at)];
    }
}

static void slice_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    cut_ref(c, x[0], c->p[0], c->p[1], out, y);
}

static void split_one_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    cut_ref(c, x[0], c->p[0], c->p[2], out, y);
}

/* p: padding before each dimension, then from p[4] after each; q: value */
static ctn_tensor *pad_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_pad(x[0], c->p, c->p + 4, c->q[0]);
}

static void pad_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    int64_t at[CTN_MAX_DIMS] = {0};
    for (int64_t i = 0; i < desc_count(out); i++) {
        int inside = 1;
        unravel(i, out->ndim, out->dim, at);
        for (int k = 0; k < out->ndim; k++) {
            at[k] -= c->p[k];
            inside &= at[k] >= 0 && at[k] < c->in[0].dim[k];
        }
        y[i] = inside ? x[0][ravel(out->ndim, c->in[0].dim, at)] : c->q[0];
    }
}

static ctn_tensor *tril_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_tril(x[0], c->p[0]);
}

static void tril_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    int64_t at[CTN_MAX_DIMS] = {0};
    for (int64_t i = 0; i < desc_count(out); i++) {
        unravel(i, out->ndim, out->dim, at);
        y[i] = at[out->ndim - 1] <= at[out->ndim - 2] + c->p[0] ? x[0][i] : 0;
    }
}

/* p: axis to remove, axis to insert */
static ctn_tensor *squeeze_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_unsqueeze(ctn_squeeze(x[0], c->p[0]), c->p[1]);
}

static void same_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    (void)c;
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = x[0][i];
}

/* clang-format off */
#define REDUCE(o, n, ...) \
    {.op = #o, .name = n, .nin = 1, .call = o##_call, .ref = o##_ref, __VA_ARGS__}
#define ONE(o, n, c, r, ...) {.op = o, .name = n, .nin = 1, .call = c, .ref = r, __VA_ARGS__}

case_table cases_shape = {
    REDUCE(sum, "run_of_blocks", .in = {{S1(13000)}}),
    REDUCE(sum, "many_blocks", .in = {{S2(7, 12345)}}),
    REDUCE(sum, "rows_of_blocks", .in = {{S2(3, 9001)}}, .p = {0, 1, 1}),
    REDUCE(sum, "short_rows", .in = {{S2(2000, 10)}}, .p = {0, 1, -1}),
    REDUCE(sum, "middle_rows", .in = {{S2(33, 1063)}}, .p = {1, 1, 1}),
    REDUCE(sum, "few_columns", .in = {{S2(9001, 3)}}, .p = {0, 1, 0}),
    REDUCE(sum, "folded_blocks", .in = {{S2(70001, 5)}}, .p = {0, 1, 0}),
    REDUCE(sum, "blocks_of_columns", .in = {{S2(2500, 70)}}, .p = {0, 1, 0}),
    REDUCE(sum, "tiles_of_columns", .in = {{S2(1030, 515)}}, .p = {1, 1, -2}),
    REDUCE(sum, "inner_columns", .in = {{S3(40, 600, 7)}}, .p = {0, 1, 1}),
    REDUCE(sum, "channels", .in = {{S4(5, 6, 40, 41)}}, .p = {0, 3, 0, 2, 3}),
    REDUCE(sum, "outer_and_inner", .in = {{S3(4, 5, 6)}}, .p = {0, 2, 0, -1}, .grad = 2),
    REDUCE(sum, "of_no_rows", .in = {{S2(0, 5)}}, .p = {0, 1, 0}, .grad = 1),
    REDUCE(sum, "of_no_columns", .in = {{S2(5, 0)}}, .p = {0, 1, 0}),

    REDUCE(mean, "all", .in = {{S3(3, 4, 5)}}, .grad = 2),
    REDUCE(mean, "rows", .in = {{S2(17, 33)}}, .p = {1, 1, -1}, .grad = 2),
    REDUCE(mean, "columns", .in = {{S2(33, 17)}}, .p = {0, 1, 0}, .grad = 1),
    REDUCE(mean, "blocks", .in = {{S2(3000, 37)}}, .p = {0, 1, 0}, .grad = 1),
    REDUCE(mean, "scalar", .in = {{S0()}}, .grad = 1),
    REDUCE(mean, "no_results", .in = {{S2(0, 5)}}, .p = {0, 1, 1}),
    REDUCE(mean, "of_nothing", .in = {{S2(5, 0)}}, .p = {0, 1, 1}),

    REDUCE(max, "all", .in = {DISTINCT(S3(3, 4, 5))}, .grad = 2),
    REDUCE(max, "rows", .in = {DISTINCT(S2(7, 31))}, .p = {0, 1, -1}, .grad = 2),
    REDUCE(max, "columns", .in = {DISTINCT(S2(31, 7))}, .p = {1, 1, 0}, .grad = 1),
    REDUCE(max, "outer_and_inner", .in = {DISTINCT(S3(4, 5, 6))}, .p = {0, 2, 0, 2}, .grad = 1),
    REDUCE(max, "middle", .in = {DISTINCT(S3(4, 50, 300))}, .p = {0, 1, 1}, .grad = 1),
    REDUCE(max, "large", .in = {DISTINCT(S2(100, 301))}, .p = {0, 1, 1}, .grad = 1),
    REDUCE(max, "scalar", .in = {{S0()}}, .grad = 1),
    REDUCE(max, "no_results", .in = {{S2(0, 5)}}, .p = {0, 1, 1}, .grad = 1),
    ONE("max", "ties", max_ties_call, max_ties_ref, .q = {1}, .p = {0, 1, 1},
        .in = {{S2(5, 20), .fill = FILL_INDEX, .lo = 0, .hi = 4}}),
    REDUCE(min, "all", .in = {DISTINCT(S3(3, 4, 5))}, .grad = 2),
    REDUCE(min, "rows", .in = {DISTINCT(S2(7, 31))}, .p = {0, 1, -1}, .grad = 1),
    REDUCE(min, "columns", .in = {DISTINCT(S2(31, 700))}, .p = {0, 1, 0}, .grad = 1),
    ONE("min", "ties", max_ties_call, max_ties_ref, .q = {-1}, .p = {0, 1, 0},
        .in = {{S2(20, 5), .fill = FILL_INDEX, .lo = 0, .hi = 4}}),

    ONE("argmax", "last", argmax_call, argmax_ref, .in = {{S2(9, 13)}}, .p = {-1}),
    ONE("argmax", "first", argmax_call, argmax_ref, .in = {{S3(13, 2, 5)}}, .p = {0}),
    ONE("argmax", "ties", argmax_call, argmax_ref, .p = {1},
        .in = {{S3(3, 11, 5), .fill = FILL_INDEX, .lo = 0, .hi = 3}}),
    ONE("argmax", "no_rows", argmax_call, argmax_ref, .in = {{S2(0, 4)}}, .p = {1}),
    ONE("topk", "last", topk_call, topk_ref, .in = {DISTINCT(S2(5, 17))}, .p = {-1, 4}, .grad = 2),
    ONE("topk", "first_axis", topk_call, topk_ref, .in = {DISTINCT(S3(9, 2, 3))}, .p = {0, 3},
        .grad = 1),
    ONE("topk", "all_of_it", topk_call, topk_ref, .in = {DISTINCT(S1(23))}, .p = {0, 23},
        .grad = 1),
    ONE("topk", "none", topk_call, topk_ref, .in = {DISTINCT(S2(3, 4))}, .p = {1, 0}),
    ONE("topk", "large", topk_call, topk_ref, .in = {DISTINCT(S2(60, 101))}, .p = {1, 10},
        .grad = 1),
    ONE("topk", "places", topk_places_call, topk_ref, .p = {-1, 6},
        .in = {{S2(7, 19), .fill = FILL_INDEX, .lo = 0, .hi = 5}}),
    ONE("topk", "places_first_axis", topk_places_call, topk_ref, .p = {0, 6},
        .in = {{S2(19, 7), .fill = FILL_INDEX, .lo = 0, .hi = 5}}),
    ONE("topk", "no_rows", topk_call, topk_ref, .in = {{S2(0, 4)}}, .p = {1, 2}, .grad = 1),
    ONE("cumsum", "last", cumsum_call, cumsum_ref, .in = {{S2(5, 33)}}, .p = {-1}, .grad = 2),
    ONE("cumsum", "first", cumsum_call, cumsum_ref, .in = {{S3(9, 3, 5)}}, .p = {0}, .grad = 1),
    ONE("cumsum", "reverse", cumsum_call, cumsum_ref, .in = {{S3(2, 7, 70)}}, .p = {1, 1},
        .grad = 1),
    ONE("cumsum", "large", cumsum_call, cumsum_ref, .in = {{S3(3, 90, 130)}}, .p = {1}, .grad = 1),
    ONE("cumsum", "no_rows", cumsum_call, cumsum_ref, .in = {{S2(0, 3)}}, .p = {0}, .grad = 1),

    ONE("one_hot", "f32", one_hot_call, one_hot_ref, .in = {INDEX(7, S2(3, 5))}, .p = {7, CTN_F32}),
    ONE("one_hot", "i64_from_i32", one_hot_call, one_hot_ref, .in = {INDEX32(4, S1(9))},
        .p = {4, CTN_I64}),
    ONE("one_hot", "bool", one_hot_call, one_hot_ref, .in = {INDEX(4, S0())}, .p = {4, CTN_BOOL}),
    ONE("one_hot", "large", one_hot_call, one_hot_ref, .in = {INDEX(40, S1(900))},
        .p = {40, CTN_F64}),
    ONE("one_hot", "no_rows", one_hot_call, one_hot_ref, .in = {INDEX(3, S1(0))},
        .p = {3, CTN_F32}),
    {.op = "gather", .name = "last", .nin = 2, .in = {{S2(5, 7)}, INDEX(7, S2(5, 9))}, .p = {-1},
     .call = gather_call, .ref = gather_ref, .grad = 2},
    {.op = "gather", .name = "middle", .nin = 2, .in = {{S3(4, 5, 6)}, INDEX(5, S3(3, 8, 5))},
     .p = {1},
     .call = gather_call, .ref = gather_ref, .grad = 1},
    {.op = "gather", .name = "first_i32", .nin = 2, .in = {{S2(6, 4)}, INDEX32(6, S2(9, 4))},
     .p = {0},
     .call = gather_call, .ref = gather_ref, .grad = 1},
    {.op = "gather", .name = "of_integers", .nin = 2, .p = {1}, .call = gather_call,
     .ref = gather_ref,
     .in = {{.dtype = CTN_U8, .fill = FILL_INDEX, .hi = 9, S2(3, 4)}, INDEX(4, S2(3, 2))}},
    {.op = "gather", .name = "large", .nin = 2, .in = {{S2(70, 300)}, INDEX(300, S2(70, 300))},
     .p = {1},
     .call = gather_call, .ref = gather_ref, .grad = 1},
    {.op = "gather", .name = "no_rows", .nin = 2, .in = {{S2(3, 4)}, INDEX(4, S2(0, 4))}, .p = {1},
     .call = gather_call, .ref = gather_ref, .grad = 1},
    {.op = "scatter_add", .name = "last", .nin = 3,
     .in = {{S2(5, 4)}, INDEX(4, S2(5, 9)), {S2(5, 9)}},
     .p = {-1}, .call = scatter_add_call, .ref = scatter_add_ref, .grad = 2},
    {.op = "scatter_add", .name = "smaller_index", .nin = 3, .p = {0}, .grad = 1,
     .in = {{S3(4, 5, 6)}, INDEX32(4, S3(7, 3, 5)), {S3(8, 3, 6)}}, .call = scatter_add_call,
     .ref = scatter_add_ref},
    {.op = "scatter_add", .name = "large", .nin = 3, .p = {0}, .grad = 1,
     .in = {{S2(10, 130)}, INDEX(10, S2(200, 130)), {S2(200, 130)}}, .call = scatter_add_call,
     .ref = scatter_add_ref},
    {.op = "scatter_add", .name = "nothing", .nin = 3,
     .in = {{S2(5, 4)}, INDEX(4, S2(0, 4)), {S2(0, 4)}},
     .p = {1}, .call = scatter_add_call, .ref = scatter_add_ref, .grad = 1},
    {.op = "put_rows", .name = "one_row", .nin = 3,
     .in = {{S3(3, 5, 4)}, {S3(3, 1, 4)}, INDEX(5, .ndim = 1, .dim = {3})},
     .call = put_rows_call, .ref = put_rows_ref},
    {.op = "put_rows", .name = "rows_of_heads", .nin = 3,
     .in = {{.ndim = 4, .dim = {2, 3, 9, 6}}, {.ndim = 4, .dim = {2, 3, 4, 6}},
            INDEX32(6, .ndim = 1, .dim = {2})},
     .call = put_rows_call, .ref = put_rows_ref},
    {.op = "put_rows", .name = "no_rows", .nin = 3,
     .in = {{S3(2, 3, 4)}, {S3(2, 0, 4)}, INDEX(4, .ndim = 1, .dim = {2})},
     .call = put_rows_call, .ref = put_rows_ref},
    {.op = "embedding", .name = "matrix_of_indices", .nin = 2,
     .in = {{S2(7, 5)}, INDEX(7, S2(3, 4))},
     .call = embedding_call, .ref = embedding_ref, .grad = 2},
    {.op = "embedding", .name = "one_i32", .nin = 2, .in = {{S2(7, 5)}, INDEX32(7, S0())},
     .call = embedding_call, .ref = embedding_ref, .grad = 1},
    {.op = "embedding", .name = "large", .nin = 2, .in = {{S2(50, 33)}, INDEX(50, S2(20, 40))},
     .call = embedding_call, .ref = embedding_ref, .grad = 1},
    {.op = "embedding", .name = "no_rows", .nin = 2, .in = {{S2(7, 5)}, INDEX(7, S1(0))},
     .call = embedding_call, .ref = embedding_ref, .grad = 1},

    {.op = "concat", .name = "first", .nin = 3, .in = {{S2(2, 3)}, {S2(1, 3)}, {S2(4, 3)}},
     .p = {0},
     .call = concat_call, .ref = concat_ref, .grad = 2},
    {.op = "concat", .name = "last_with_empty", .nin = 3,
     .in = {{S2(4, 3)}, {S2(4, 0)}, {S2(4, 1)}},
     .p = {-1}, .call = concat_call, .ref = concat_ref, .grad = 1},
    {.op = "concat", .name = "large", .nin = 2, .in = {{S2(1, 40000)}, {S2(1, 20001)}}, .p = {1},
     .call = concat_call, .ref = concat_ref, .grad = 1},
    {.op = "concat", .name = "one", .nin = 1, .in = {{S1(3)}}, .p = {0}, .call = concat_call,
     .ref = concat_ref, .grad = 1},
    {.op = "concat", .name = "of_integers", .nin = 2, .in = {INDEX(9, S1(3)), INDEX(9, S1(4))},
     .p = {0},
     .call = concat_call, .ref = concat_ref},
    {.op = "concat", .name = "stack_first", .nin = 3,
     .in = {{S2(2, 3)}, {S2(2, 3)}, {S2(2, 3)}}, .p = {0},
     .call = stack_call, .ref = stack_ref, .grad = 1},
    {.op = "concat", .name = "stack_last", .nin = 2, .in = {{S2(2, 3)}, {S2(2, 3)}}, .p = {-1},
     .call = stack_call, .ref = stack_ref, .grad = 1},
    ONE("split", "last", split_call, split_ref, .in = {{S2(3, 7)}}, .p = {-1, 3, 2, 4, 1},
        .grad = 2),
    ONE("split", "first_with_empty", split_call, split_ref, .in = {{S3(7, 2, 3)}},
        .p = {0, 4, 3, 0, 3, 1},
        .grad = 1),
    ONE("split", "only_one_read", split_one_call, split_one_ref, .in = {{S3(2, 7, 3)}},
        .p = {1, 3, 2, 4, 1},
        .grad = 2),
    ONE("slice", "middle", slice_call, slice_ref, .in = {{S3(2, 7, 3)}}, .p = {1, 2, 4}, .grad = 2),
    ONE("slice", "from_the_end", slice_call, slice_ref, .in = {{S2(5, 9)}}, .p = {-1, -3, 2},
        .grad = 1),
    ONE("slice", "nothing", slice_call, slice_ref, .in = {{S2(5, 9)}}, .p = {0, 5, 0}, .grad = 1),
    ONE("slice", "large", slice_call, slice_ref, .in = {{S2(300, 101)}}, .p = {1, 1, 99},
        .grad = 1),
    ONE("slice", "no_rows", slice_call, slice_ref, .in = {{S2(0, 9)}}, .p = {1, 3, 2}, .grad = 1),
    ONE("pad", "both_sides", pad_call, pad_ref, .in = {{S3(2, 3, 4)}},
        .p = {1, 0, 2, 0, 0, 3, 1}, .q = {1.5},
        .grad = 2),
    ONE("pad", "no_padding", pad_call, pad_ref, .in = {{S2(2, 3)}}, .grad = 1),
    ONE("pad", "around_nothing", pad_call, pad_ref, .in = {{S2(0, 3)}}, .p = {1, 1}, .q = {-2},
        .grad = 1),
    ONE("tril", "square", tril_call, tril_ref, .in = {{S2(6, 6)}}, .p = {0}, .grad = 2),
    ONE("tril", "below", tril_call, tril_ref, .in = {{S3(2, 5, 3)}}, .p = {-2}, .grad = 1),
    ONE("tril", "above", tril_call, tril_ref, .in = {{S3(2, 3, 7)}}, .p = {2}, .grad = 1),
    ONE("tril", "all", tril_call, tril_ref, .in = {{S2(3, 4)}}, .p = {INT64_MAX / 2}),
    ONE("tril", "large", tril_call, tril_ref, .in = {{S3(3, 90, 90)}}, .p = {1}, .grad = 1),
    ONE("tril", "no_rows", tril_call, tril_ref, .in = {{S2(0, 4)}}, .p = {0}, .grad = 1),
    ONE("reshape", "squeeze", squeeze_call, same_ref, .in = {{S3(3, 1, 4)}}, .p = {1, -1},
        .grad = 1),
    {0},
};
/* clang-format on */
