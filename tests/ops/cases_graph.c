/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of rows by index, segments and sparse matrices. The references visit one element at a
 * time. The large cases have several ranges of segments per thread, tiles with a remainder and
 * segments that are longer than a run of f32 additions.
 */
#include <math.h>

#include "harness.h"

/* clang-format off */
#define S1(a) .ndim = 1, .dim = {a}
#define S2(a, b) .ndim = 2, .dim = {a, b}
#define S3(a, b, c) .ndim = 3, .dim = {a, b, c}
#define INDEX(n, ...) {.dtype = CTN_I64, .fill = FILL_INDEX, .lo = 0, .hi = n, __VA_ARGS__}
#define INDEX32(n, ...) {.dtype = CTN_I32, .fill = FILL_INDEX, .lo = 0, .hi = n, __VA_ARGS__}
#define DISTINCT(...) {.fill = FILL_DISTINCT, .lo = -3, .hi = 3, __VA_ARGS__}
/* clang-format on */

static int axis_of(int ndim, int64_t axis)
{
    return (int)(axis < 0 ? axis + ndim : axis);
}

/* Element i of a tensor like `from`, with coordinate `at` along the axis, as an element of one like
 * `to`, which is `length` long there. */
static int64_t moved(int64_t i, int ndim, const int64_t *from, int axis, int64_t at, int64_t length)
{
    int64_t index[CTN_MAX_DIMS] = {0}, y = 0;
    unravel(i, ndim, from, index);
    index[axis] = at;
    for (int k = 0; k < ndim; k++) y = y * (k == axis ? length : from[k]) + index[k];
    return y;
}

static int64_t coordinate(int64_t i, int ndim, const int64_t *dim, int axis)
{
    int64_t index[CTN_MAX_DIMS] = {0};
    unravel(i, ndim, dim, index);
    return index[axis];
}

/* ---- rows by index: p[0] is the axis --------------------------------------------------------- */

static ctn_tensor *index_select_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_index_select(x[0], x[1], c->p[0]);
}

static void index_select_ref(const op_case *c, const double *const *x, const ctn_desc *out,
                             double *y)
{
    const int axis = axis_of(out->ndim, c->p[0]);
    for (int64_t i = 0; i < desc_count(out); i++) {
        int64_t k = coordinate(i, out->ndim, out->dim, axis);
        y[i] = x[0][moved(i, out->ndim, out->dim, axis, (int64_t)x[1][k], c->in[0].dim[axis])];
    }
}

static ctn_tensor *index_add_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_index_add(x[0], x[1], x[2], c->p[0]);
}

static void index_add_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int axis = axis_of(out->ndim, c->p[0]);
    const case_in *src = &c->in[2];
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = x[0][i];
    for (int64_t i = 0; i < case_count(src); i++) {
        int64_t to = (int64_t)x[1][coordinate(i, src->ndim, src->dim, axis)];
        y[moved(i, src->ndim, src->dim, axis, to, out->dim[axis])] += x[2][i];
    }
}

static ctn_tensor *scatter_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_scatter(x[0], x[1], x[2], c->p[0]);
}

/* The element of an array with these dimensions at the coordinates of element i of index. */
static int64_t element(const case_in *index, int64_t i, const int64_t *dim, int axis, int64_t at)
{
    int64_t where[CTN_MAX_DIMS] = {0}, y = 0;
    unravel(i, index->ndim, index->dim, where);
    if (at >= 0) where[axis] = at;
    for (int k = 0; k < index->ndim; k++) y = y * dim[k] + where[k];
    return y;
}

static void scatter_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int axis = axis_of(out->ndim, c->p[0]);
    const case_in *index = &c->in[1];
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = x[0][i];
    for (int64_t i = 0; i < case_count(index); i++)
        y[element(index, i, out->dim, axis, (int64_t)x[1][i])] =
            x[2][element(index, i, c->in[2].dim, axis, -1)];
}

/* ---- segments: p[0] is their number ---------------------------------------------------------- */

#define SEGMENT_CALL(name)                                                                   \
    static ctn_tensor *name##_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x) \
    {                                                                                        \
        (void)ctx;                                                                           \
        return ctn_segment_##name(x[0], x[1], c->p[0]);                                      \
    }
SEGMENT_CALL(sum)
SEGMENT_CALL(mean)
SEGMENT_CALL(max)
SEGMENT_CALL(softmax)

static int64_t width_of(const case_in *in)
{
    int64_t D = 1;
    for (int k = 1; k < in->ndim; k++) D *= in->dim[k];
    return D;
}

static void sum_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t D = width_of(&c->in[0]);
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = 0;
    for (int64_t i = 0; i < case_count(&c->in[0]); i++)
        y[(int64_t)x[1][i / D] * D + i % D] += x[0][i];
}

static void mean_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t D = width_of(&c->in[0]);
    sum_ref(c, x, out, y);
    for (int64_t v = 0; v < c->p[0]; v++) {
        int64_t n = 0;
        for (int64_t e = 0; e < c->in[1].dim[0]; e++) n += (int64_t)x[1][e] == v;
        for (int64_t k = 0; k < D && n > 0; k++) y[v * D + k] /= (double)n;
    }
}

static void max_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t D = width_of(&c->in[0]);
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = -INFINITY;
    for (int64_t i = 0; i < case_count(&c->in[0]); i++) {
        double *to = &y[(int64_t)x[1][i / D] * D + i % D];
        *to = fmax(*to, x[0][i]);
    }
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = isinf(y[i]) ? 0 : y[i];
}

static void softmax_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t D = width_of(&c->in[0]), E = c->in[1].dim[0];
    for (int64_t i = 0; i < desc_count(out); i++) {
        double sum = 0;
        for (int64_t e = 0; e < E; e++)
            if (x[1][e] == x[1][i / D]) sum += exp(x[0][e * D + i % D] - x[0][i]);
        y[i] = 1 / sum;
    }
}

/* The gradient of max among equal elements, where finite differences do not work. */
static ctn_tensor *max_ties_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    ctn_tensor *leaf = ctn_with_grad(x[0]), *gx = NULL;
    ctn_tensor *y = ctn_segment_max(leaf, x[1], c->p[0]);
    return ctn_grad(ctn_sum(y, CTN_ALL_AXES, 0), 1, &leaf, &gx) < 0 ? NULL : gx;
}

static void max_ties_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t D = width_of(&c->in[0]), E = c->in[1].dim[0];
    for (int64_t i = 0; i < desc_count(out); i++) {
        double larger = 0, equal = 0;
        for (int64_t e = 0; e < E; e++) {
            if (x[1][e] != x[1][i / D]) continue;
            larger += x[0][e * D + i % D] > x[0][i];
            equal += x[0][e * D + i % D] == x[0][i];
        }
        y[i] = larger > 0 ? 0 : 1 / equal;
    }
}

/* The gradient of scatter with respect to src, with which only the last writer has any. */
static ctn_tensor *scatter_last_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    ctn_tensor *leaf = ctn_with_grad(x[2]), *g = NULL;
    ctn_tensor *y = ctn_scatter(x[0], x[1], leaf, c->p[0]);
    return ctn_grad(ctn_sum(y, CTN_ALL_AXES, 0), 1, &leaf, &g) < 0 ? NULL : g;
}

static void scatter_last_ref(const op_case *c, const double *const *x, const ctn_desc *out,
                             double *y)
{
    const int axis = axis_of(out->ndim, c->p[0]);
    const case_in *index = &c->in[1];
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = 0;
    for (int64_t i = 0; i < case_count(index); i++) {
        int last = 1;
        for (int64_t k = coordinate(i, index->ndim, index->dim, axis) + 1; k < index->dim[axis];
             k++)
            last &= x[1][element(index, i, index->dim, axis, k)] != x[1][i];
        y[element(index, i, out->dim, axis, -1)] = last;
    }
}

/* offsets and order, one after the other */
static ctn_tensor *group_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    ctn_tensor *out[2];
    if (ctn_group_ids(x[0], c->p[0], &out[0], &out[1]) < 0) return NULL;
    return c->p[1] ? out[0] : ctn_concat(2, out, 0);
}

static void group_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    int64_t at = 0;
    (void)out;
    for (int64_t v = 0; v < c->p[0]; v++) {
        y[v] = (double)at;
        for (int64_t e = 0; e < c->in[0].dim[0]; e++)
            if ((int64_t)x[0][e] == v) {
                if (!c->p[1]) y[c->p[0] + 1 + at] = (double)e;
                at++;
            }
    }
    y[c->p[0]] = (double)at;
}

/* ---- sparse matrices: inputs rows, columns, x and perhaps values of the entries; p[0] rows --- */

static ctn_tensor *spmm_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    ctn_tensor *rowptr, *order, *value = NULL;
    if (ctn_group_ids(x[0], c->p[0], &rowptr, &order) < 0) return NULL;
    if (c->nin > 3) value = ctn_index_select(x[3], order, 0);
    return ctn_spmm(rowptr, ctn_index_select(x[1], order, 0), value, x[2]);
}

static void spmm_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t D = width_of(&c->in[2]), H = c->nin > 3 ? width_of(&c->in[3]) : 1;
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = 0;
    for (int64_t e = 0; e < c->in[0].dim[0]; e++)
        for (int64_t k = 0; k < D; k++) {
            double f = c->nin > 3 ? x[3][e * H + k / (D / H)] : 1;
            y[(int64_t)x[0][e] * D + k] += f * x[2][(int64_t)x[1][e] * D + k];
        }
}

/* The gradients of the sum of squares, with respect to x and to the values. */
static ctn_tensor *spmm_grad_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    ctn_tensor *in[4] = {x[0], x[1], x[2], x[3]}, *g = NULL;
    const int which = (int)c->p[1];
    in[which] = ctn_with_grad(x[which]);
    ctn_tensor *y = spmm_call(c, ctx, in);
    ctn_tensor *sum = ctn_scale(ctn_sum(ctn_square(y), CTN_ALL_AXES, 0), 0.5);
    return ctn_grad(sum, 1, &in[which], &g) < 0 ? NULL : g;
}

static void spmm_grad_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    enum { ROOM = 4096 };
    static double product[ROOM];
    const int64_t D = width_of(&c->in[2]), H = width_of(&c->in[3]);
    spmm_ref(c, x, &(ctn_desc){.ndim = 2, .dim = {c->p[0], D}}, product);
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = 0;
    for (int64_t e = 0; e < c->in[0].dim[0]; e++)
        for (int64_t k = 0; k < D; k++) {
            int64_t value = e * H + k / (D / H), of_x = (int64_t)x[1][e] * D + k;
            double g = product[(int64_t)x[0][e] * D + k];
            if (c->p[1] == 2) y[of_x] += g * x[3][value];
            else y[value] += g * x[2][of_x];
        }
}

/* clang-format off */
#define CASE(o, n, f, k, ...) \
    {.op = o, .name = n, .nin = k, .call = f##_call, .ref = f##_ref, __VA_ARGS__}

case_table cases_graph = {
    CASE("index_select", "rows", index_select, 2, .in = {{S2(5, 7)}, INDEX(5, S1(9))}, .p = {0},
         .grad = 2),
    CASE("index_select", "middle_i32", index_select, 2, .in = {{S3(3, 5, 4)}, INDEX32(5, S1(8))},
         .p = {1}, .grad = 1),
    CASE("index_select", "last", index_select, 2, .in = {{S2(4, 6)}, INDEX(6, S1(5))}, .p = {-1},
         .grad = 1),
    CASE("index_select", "last_large", index_select, 2,
         .in = {{S2(70, 300)}, INDEX32(300, S1(500))}, .p = {-1}, .grad = 1),
    CASE("index_select", "of_integers", index_select, 2,
         .in = {{.dtype = CTN_U8, .fill = FILL_INDEX, .hi = 9, S2(6, 3)}, INDEX(6, S1(4))}),
    CASE("index_select", "numbers", index_select, 2, .in = {{S1(40)}, INDEX(40, S1(300))},
         .grad = 1),
    CASE("index_select", "large", index_select, 2, .in = {{S2(50, 64)}, INDEX(50, S1(700))},
         .grad = 1),
    CASE("index_select", "nothing", index_select, 2, .in = {{S2(5, 7)}, INDEX(5, S1(0))},
         .grad = 1),
    CASE("index_select", "no_columns", index_select, 2, .in = {{S2(5, 0)}, INDEX(5, S1(3))}),

    CASE("segment_sum", "index_add_rows", index_add, 3,
         .in = {{S2(5, 3)}, INDEX(5, S1(8)), {S2(8, 3)}}, .grad = 2),
    CASE("segment_sum", "index_add_last", index_add, 3,
         .in = {{S3(2, 3, 6)}, INDEX32(6, S1(4)), {S3(2, 3, 4)}}, .p = {-1}, .grad = 1),
    CASE("segment_sum", "index_add_narrow", index_add, 3,
         .in = {{S3(11, 90, 3)}, INDEX(90, S1(200)), {S3(11, 200, 3)}}, .p = {1}, .grad = 1),
    CASE("segment_sum", "index_add_nothing", index_add, 3,
         .in = {{S2(5, 3)}, INDEX(5, S1(0)), {S2(0, 3)}}, .grad = 1),
    CASE("segment_sum", "rows", sum, 2, .in = {{S2(9, 3)}, INDEX(4, S1(9))}, .p = {6}, .grad = 2),
    CASE("segment_sum", "numbers_i32", sum, 2, .in = {{S1(30)}, INDEX32(7, S1(30))}, .p = {7},
         .grad = 1),
    CASE("segment_sum", "wide", sum, 2, .in = {{S3(40, 5, 30)}, INDEX(9, S1(40))}, .p = {9},
         .grad = 1),
    CASE("segment_sum", "large", sum, 2, .in = {{S2(2000, 64)}, INDEX(300, S1(2000))}, .p = {301},
         .grad = 1),
    CASE("segment_sum", "many_numbers", sum, 2, .in = {{S1(40000)}, INDEX(3000, S1(40000))},
         .p = {3000}, .grad = 1),
    CASE("segment_sum", "long_segments", sum, 2, .in = {{S2(5000, 17)}, INDEX(2, S1(5000))},
         .p = {2}, .grad = 1),
    CASE("segment_sum", "no_rows", sum, 2, .in = {{S2(0, 3)}, INDEX(4, S1(0))}, .p = {4},
         .grad = 1),
    CASE("segment_sum", "no_segments", sum, 2, .in = {{S2(0, 3)}, INDEX(4, S1(0))}, .p = {0}),
    CASE("segment_sum", "mean", mean, 2, .in = {{S2(9, 3)}, INDEX(4, S1(9))}, .p = {6}, .grad = 2),
    CASE("segment_sum", "mean_of_numbers", mean, 2, .in = {{S1(9)}, INDEX(4, S1(9))}, .p = {4},
         .grad = 1),
    CASE("segment_max", "rows", max, 2, .in = {DISTINCT(S2(9, 3)), INDEX(4, S1(9))}, .p = {6},
         .grad = 2),
    CASE("segment_max", "large", max, 2, .in = {DISTINCT(S2(900, 70)), INDEX32(50, S1(900))},
         .p = {50}, .grad = 1),
    CASE("segment_max", "no_rows", max, 2, .in = {{S2(0, 3)}, INDEX(4, S1(0))}, .p = {4},
         .grad = 1),
    CASE("segment_max", "ties", max_ties, 2,
         .in = {{.fill = FILL_INDEX, .hi = 3, S2(20, 2)}, INDEX(3, S1(20))}, .p = {3}),
    CASE("segment_softmax", "heads", softmax, 2, .in = {{S2(9, 3)}, INDEX(4, S1(9))}, .p = {6},
         .grad = 2),
    CASE("segment_softmax", "numbers_i32", softmax, 2,
         .in = {{.fill = FILL_UNIFORM, .lo = -50, .hi = 50, S1(40)}, INDEX32(5, S1(40))},
         .p = {5}, .grad = 1),
    CASE("segment_softmax", "large", softmax, 2, .in = {{S2(900, 33)}, INDEX(50, S1(900))},
         .p = {50}, .grad = 1),
    CASE("segment_softmax", "no_rows", softmax, 2, .in = {{S2(0, 3)}, INDEX(4, S1(0))}, .p = {4},
         .grad = 1),

    CASE("group_ids", "few", group, 1, .in = {INDEX(5, S1(12))}, .p = {7}),
    CASE("group_ids", "offsets_only", group, 1, .in = {INDEX32(5, S1(12))}, .p = {5, 1}),
    CASE("group_ids", "large", group, 1, .in = {INDEX(900, S1(40000))}, .p = {900}),
    CASE("group_ids", "more_ids_than_positions", group, 1, .in = {INDEX(900, S1(20))}, .p = {900}),
    CASE("group_ids", "none", group, 1, .in = {INDEX(5, S1(0))}, .p = {0}),

    CASE("scatter", "last", scatter, 3, .in = {{S2(5, 4)}, INDEX(4, S2(5, 9)), {S2(5, 9)}},
         .p = {-1}, .grad = 2),
    CASE("scatter", "smaller_index", scatter, 3, .p = {0}, .grad = 1,
         .in = {{S3(4, 5, 6)}, INDEX32(4, S3(7, 3, 5)), {S3(8, 3, 6)}}),
    CASE("scatter", "large", scatter, 3, .p = {0}, .grad = 1,
         .in = {{S2(10, 130)}, INDEX(10, S2(200, 130)), {S2(200, 130)}}),
    CASE("scatter", "of_integers", scatter, 3, .p = {0},
         .in = {INDEX(9, S2(4, 3)), INDEX(4, S2(2, 3)), INDEX(9, S2(2, 3))}),
    CASE("scatter", "nothing", scatter, 3, .in = {{S2(5, 4)}, INDEX(4, S2(0, 4)), {S2(0, 4)}},
         .p = {1}, .grad = 1),
    CASE("scatter", "gradient_of_src", scatter_last, 3,
         .in = {{S2(5, 4)}, INDEX(4, S2(5, 9)), {S2(6, 9)}}, .p = {-1}),
    CASE("scatter", "gradient_of_one_line", scatter_last, 3,
         .in = {{S1(3)}, INDEX(3, S1(17)), {S1(17)}}, .p = {0}),

    CASE("spmm", "ones", spmm, 3, .in = {INDEX(4, S1(11)), INDEX(6, S1(11)), {S2(6, 5)}},
         .p = {5}, .grad = 2),
    CASE("spmm", "values", spmm, 4,
         .in = {INDEX(4, S1(11)), INDEX32(6, S1(11)), {S2(6, 3)}, {S1(11)}}, .p = {5}, .grad = 2),
    CASE("spmm", "heads", spmm, 4,
         .in = {INDEX(4, S1(11)), INDEX(6, S1(11)), {S3(6, 2, 3)}, {S2(11, 2)}}, .p = {5},
         .grad = 2),
    CASE("spmm", "vector", spmm, 4, .in = {INDEX(4, S1(11)), INDEX(6, S1(11)), {S1(6)}, {S1(11)}},
         .p = {4}, .grad = 1),
    CASE("spmm", "large", spmm, 4,
         .in = {INDEX(90, S1(3000)), INDEX(80, S1(3000)), {S3(80, 2, 70)}, {S2(3000, 2)}},
         .p = {90}, .grad = 1),
    CASE("spmm", "empty", spmm, 4, .in = {INDEX(4, S1(0)), INDEX(6, S1(0)), {S2(6, 3)}, {S1(0)}},
         .p = {4}, .grad = 1),
    CASE("spmm", "gradient_of_x", spmm_grad, 4,
         .in = {INDEX(7, S1(300)), INDEX(6, S1(300)), {S2(6, 33)}, {S1(300)}}, .p = {7, 2},
         .tol32 = 3e-5),
    CASE("spmm", "gradient_of_values", spmm_grad, 4,
         .in = {INDEX(7, S1(30)), INDEX(6, S1(30)), {S3(6, 2, 35)}, {S2(30, 2)}}, .p = {7, 3},
         .tol32 = 3e-5),
    {0},
};
/* clang-format on */
