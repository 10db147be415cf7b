/* SPDX-License-Identifier: Apache-2.0
 *
 * Emitters of sums and maxima over segments, of sparse products, and of Fourier transforms
 * (emit.h). Segments are found by the ids alone, so the sorted positions that our kernels read
 * (group_ids) do not appear in the model. A Fourier transform is a product with its matrix, which
 * every program can run.
 */
#include "onnx/emit.h"

#ifdef CTN_HAVE_PROTOBUFC

#include <math.h>

#include "ops/common/fft.h"

#define IN(i) ctn__emit_in(e, n, i)
#define NODE(...) CTN__NODE(e, __VA_ARGS__)

static void give(ctn__emit *e, const ctn__node *n, char *y)
{
    ctn__emit_out(e, n, 0, y);
}

/* ---- segments -------------------------------------------------------------------------------- */

/* Combine the rows of x with the rows `ids` of `into`. */
static char *scatter(ctn__emit *e, char *into, char *ids, char *x, const char *how)
{
    char *index = ctn__emit_unsqueeze(e, ctn__emit_as(e, ids, CTN_I64), 1);
    char *y = NODE("ScatterND", into, index, x);
    ctn__emit_text(e, "reduction", how);
    return y;
}

static char *rows_of(ctn__emit *e, char *x, char *ids)
{
    char *y = NODE("Gather", x, ids);
    ctn__emit_int(e, "axis", 0);
    return y;
}

void ctn__emit_segment_sum(ctn__emit *e, const ctn__node *n, const char *word)
{
    const ctn_desc *x = &n->in[0]->d;
    ctn_desc y = n->out[0]->d;
    const int axis = ctn__axis(x->ndim, n->attr[0]);
    (void)word;
    const int64_t segments = y.dim[axis];
    y.dim[axis] = y.dim[0];
    y.dim[0] = segments;
    char *into =
        n->nin > 4 ? ctn__emit_swap(e, IN(4), x->ndim, 0, axis) : ctn__emit_filled(e, &y, 0);
    char *sum = scatter(e, into, IN(1), ctn__emit_swap(e, IN(0), x->ndim, 0, axis), "add");
    give(e, n, ctn__emit_swap(e, sum, x->ndim, 0, axis));
}

/* 0 where a segment is empty. */
void ctn__emit_segment_max(ctn__emit *e, const ctn__node *n, const char *word)
{
    const ctn_desc *y = &n->out[0]->d;
    (void)word;
    char *most = scatter(e, ctn__emit_filled(e, y, -INFINITY), IN(1), IN(0), "max");
    char *empty = NODE("Equal", most, ctn__emit_number(e, y->dtype, -INFINITY));
    give(e, n, NODE("Where", empty, ctn__emit_number(e, y->dtype, 0), most));
}

void ctn__emit_segment_softmax(ctn__emit *e, const ctn__node *n, const char *word)
{
    ctn_desc d = n->out[0]->d;
    (void)word;
    d.dim[0] = n->in[2]->d.dim[0] - 1; /* offsets has one element more than there are segments */
    char *most = scatter(e, ctn__emit_filled(e, &d, -INFINITY), IN(1), IN(0), "max");
    char *exps = NODE("Exp", NODE("Sub", IN(0), rows_of(e, most, IN(1))));
    char *sum = scatter(e, ctn__emit_filled(e, &d, 0), IN(1), exps, "add");
    give(e, n, NODE("Div", exps, rows_of(e, sum, IN(1))));
}

/* (size + 1) zeros. */
static char *zeros_and_one(ctn__emit *e, int64_t size)
{
    const int64_t one = 1;
    char *shape = NODE("Add", ctn__emit_size(e, size), ctn__emit_list(e, 1, &one));
    return NODE("Expand", ctn__emit_number(e, CTN_I64, 0), shape);
}

static char *ones(ctn__emit *e, int64_t size)
{
    return ctn__emit_filled(e, &(ctn_desc){.dtype = CTN_I64, .ndim = 1, .dim = {size}}, 1);
}

static char *summed_up(ctn__emit *e, char *x)
{
    return NODE("CumSum", x, ctn__emit_number(e, CTN_I64, 0));
}

/* offsets: each position is counted one after its id, and the counts are summed up. order: TopK
 * leaves equal ids in their order. */
void ctn__emit_group_ids(ctn__emit *e, const ctn__node *n, const char *word)
{
    const int64_t E = n->in[0]->d.dim[0], segments = n->attr[0];
    (void)word;
    char *ids = ctn__emit_as(e, IN(0), CTN_I64);
    char *next = NODE("Add", ids, ctn__emit_number(e, CTN_I64, 1));
    char *counts = scatter(e, zeros_and_one(e, segments), next, ones(e, E), "add");
    ctn__emit_out(e, n, 0, summed_up(e, counts));
    (void)NODE("TopK", ids, ctn__emit_size(e, E));
    char *order = ctn__emit_more(e);
    ctn__emit_int(e, "largest", 0);
    ctn__emit_out(e, n, 1, order);
}

/* The row of entry k is the number of rows that end at or before k: ones are added where rows end,
 * and summed up. */
void ctn__emit_spmm(ctn__emit *e, const ctn__node *n, const char *word)
{
    enum { ROWPTR, COL, X, VALUE };
    const ctn_desc *x = &n->in[X]->d, *y = &n->out[0]->d;
    const int64_t begin = 0, second = 1, end = INT64_MAX, before_last = -1, axis = 0;
    (void)word;
    char *at = ctn__emit_list(e, 1, &axis), *last = ctn__emit_list(e, 1, &end);
    char *stops = NODE("Slice", IN(ROWPTR), ctn__emit_list(e, 1, &second), last, at);
    char *counts = zeros_and_one(e, n->in[COL]->d.dim[0]);
    char *rows = summed_up(e, scatter(e, counts, stops, ones(e, y->dim[0]), "add"));
    rows =
        NODE("Slice", rows, ctn__emit_list(e, 1, &begin), ctn__emit_list(e, 1, &before_last), at);
    char *terms = rows_of(e, IN(X), IN(COL));
    if (n->nin > VALUE) {
        const ctn_desc *v = &n->in[VALUE]->d;
        int64_t dims[CTN_MAX_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1};
        for (int i = 0; i < v->ndim; i++) dims[i] = v->dim[i];
        terms = NODE("Mul", terms, ctn__emit_shaped(e, IN(VALUE), x->ndim, dims));
    }
    give(e, n, scatter(e, ctn__emit_filled(e, y, 0), rows, terms, "add"));
}

/* ---- Fourier transforms ---------------------------------------------------------------------- */

void ctn__emit_dft_matrix(ctn__emit *e, const ctn__node *n, const char *word)
{
    ctn_desc d = n->out[0]->d;
    ctn_prepare_args a = {.name = n->op->name, .nout = 1, .dout = &d, .nattr = n->nattr};
    (void)word;
    a.attr = n->attr;
    const ctn_status st = n->op->prepare(&a); /* computes the matrix */
    if (st < 0) {
        e->st = st;
        return;
    }
    give(e, n, ctn__emit_array(e, d.dtype, d.ndim, d.dim, a.priv));
    a.priv_free(a.priv);
}

static double factor_of(int64_t factor, int64_t n)
{
    const double c = factor == CTN__FFT_ONE    ? 1
                     : factor == CTN__FFT_ROOT ? sqrt((double)n)
                                               : (double)n;
    return 1 / c;
}

/* y = x D along one axis, where the elements of x (...,from) and of the result (...,to) may be
 * complex: pairs of real and imaginary part. D is real: (from,to), (from,2 to), (2 from,to) or
 * (2 from,2 to). */
static void transform(ctn__emit *e, const ctn__node *n, bool complex_in, bool complex_out,
                      const double *D)
{
    const ctn_desc *x = &n->in[0]->d, *y = &n->out[0]->d;
    const int axis = (int)n->attr[CTN__FFT_AXIS], nd = complex_in ? x->ndim - 1 : x->ndim;
    const int64_t from = x->dim[axis] * (complex_in ? 2 : 1);
    const int64_t to = y->dim[axis] * (complex_out ? 2 : 1);
    int64_t dims[CTN_MAX_DIMS + 1];
    char *matrix = ctn__emit_reals(e, x->dtype, CTN_SHAPE(from, to), D);
    char *t = ctn__emit_swap(e, IN(0), x->ndim, axis, nd - 1);
    memcpy(dims, x->dim, (size_t)x->ndim * sizeof *dims);
    dims[axis] = dims[nd - 1];
    dims[nd - 1] = from;
    if (complex_in) t = ctn__emit_shaped(e, t, nd, dims);
    t = NODE("MatMul", t, matrix);
    dims[nd - 1] = y->dim[axis];
    dims[nd] = 2;
    if (complex_out) t = ctn__emit_shaped(e, t, nd + 1, dims);
    give(e, n, ctn__emit_swap(e, t, complex_out ? nd + 1 : nd, axis, nd - 1));
}

/* Room for the matrix. NULL: the export has failed. */
static double *matrix_for(ctn__emit *e, const ctn__node *n, int64_t rows, int64_t columns)
{
    const int axis = (int)n->attr[CTN__FFT_AXIS];
    if (!ctn__emit_fixed(e, n->in[0]->d.dim[axis])) {
        ctn__emit_fail(e, "the transformed axis has a size that is open in the model");
        return NULL;
    }
    double *D = ctn__calloc((size_t)(rows * columns), sizeof *D);
    if (!D) e->st = CTN_ENOMEM;
    return D;
}

void ctn__emit_fft(ctn__emit *e, const ctn__node *n, const char *word)
{
    const int64_t N = n->in[0]->d.dim[n->attr[CTN__FFT_AXIS]];
    const double u = factor_of(n->attr[CTN__FFT_FACTOR], N);
    const int sign = n->attr[CTN__FFT_INVERSE] ? 1 : -1;
    double c, s, *D = matrix_for(e, n, 2 * N, 2 * N);
    (void)word;
    if (!D) return;
    for (int64_t j = 0; j < N; j++)
        for (int64_t k = 0; k < N; k++) {
            double *at = D + 4 * j * N + 2 * k;
            ctn__fft_root(j * k % N, N, &c, &s);
            at[0] = at[2 * N + 1] = u * c;
            at[1] = u * sign * s;
            at[2 * N] = -u * sign * s;
        }
    transform(e, n, true, true, D);
    ctn__free(D);
}

/* Of n frequencies, those that stand for two count twice if `weighted`. */
static double weight_of(const ctn__node *n, int64_t k, int64_t N)
{
    const bool twice = n->attr[CTN__FFT_WEIGHTED] && k > 0 && 2 * k != N;
    return factor_of(n->attr[CTN__FFT_FACTOR], N) * (twice ? 2 : 1);
}

void ctn__emit_rfft(ctn__emit *e, const ctn__node *n, const char *word)
{
    const int64_t N = n->in[0]->d.dim[n->attr[CTN__FFT_AXIS]], F = N / 2 + 1;
    double c, s, *D = matrix_for(e, n, N, 2 * F);
    (void)word;
    if (!D) return;
    for (int64_t j = 0; j < N; j++)
        for (int64_t k = 0; k < F; k++) {
            ctn__fft_root(j * k % N, N, &c, &s);
            D[2 * (j * F + k)] = weight_of(n, k, N) * c;
            D[2 * (j * F + k) + 1] = -weight_of(n, k, N) * s;
        }
    transform(e, n, false, true, D);
    ctn__free(D);
}

void ctn__emit_irfft(ctn__emit *e, const ctn__node *n, const char *word)
{
    const int64_t N = n->attr[CTN__FFT_LENGTH], F = N / 2 + 1;
    double c, s, *D = matrix_for(e, n, 2 * F, N);
    (void)word;
    if (!D) return;
    for (int64_t k = 0; k < F; k++)
        for (int64_t j = 0; j < N; j++) {
            ctn__fft_root(j * k % N, N, &c, &s);
            D[2 * k * N + j] = weight_of(n, k, N) * c;
            D[(2 * k + 1) * N + j] = -weight_of(n, k, N) * s;
        }
    transform(e, n, true, false, D);
    ctn__free(D);
}

#endif
