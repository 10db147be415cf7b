/* SPDX-License-Identifier: Apache-2.0
 *
 * Spectral normalisation (Miyato et al., 2018): w / s, where s = u^T W v is nearly the largest
 * singular value of w as a matrix W. In training, every use first improves u and v:
 *   u = W v / |W v|;  v = W^T u / |W^T u|
 * No gradient flows through u and v. They are states, so they are saved with the module.
 */
#include <math.h>

#include <catena/ops.h>

#include "nn/nn.h"

typedef struct {
    ctn_var *u, *v; /* (rows), (cols) */
    ctn_context *ctx;
    int64_t rows, cols;
    int ndim, dim, iterations;
    double eps;
} spectral_norm;

/* (rows,cols) */
static ctn_tensor *as_matrix(const char *at, const spectral_norm *n, ctn_tensor *w)
{
    int64_t axes[CTN_MAX_DIMS] = {n->dim};
    for (int i = 0, k = 1; i < n->ndim; i++)
        if (i != n->dim) axes[k++] = i;
    if (n->dim != 0) w = ctn_transpose_at(at, w, n->ndim, axes);
    return ctn_reshape_at(at, w, CTN_SHAPE(n->rows, n->cols));
}

static ctn_tensor *unit(const char *at, const spectral_norm *n, ctn_tensor *x)
{
    ctn_tensor *norm = ctn_sqrt_at(at, ctn_sum_at(at, ctn_mul_at(at, x, x), CTN_ALL_AXES, 0));
    return ctn_div_at(at, x, ctn_clip_at(at, norm, n->eps, INFINITY));
}

static ctn_status keep(const char *at, ctn_var *to, ctn_tensor *x, int64_t length)
{
    return ctn_assign_at(at, to, ctn_reshape_at(at, x, CTN_SHAPE(length)));
}

static ctn_tensor *derive(const char *at, void *derived, ctn_tensor *w)
{
    const spectral_norm *n = derived;
    ctn_tensor *W = as_matrix(at, n, w), *fixed = ctn_detach_at(at, W);
    ctn_tensor *u = ctn_reshape_at(at, ctn_use_at(at, n->u), CTN_SHAPE(n->rows, 1));
    ctn_tensor *v = ctn_reshape_at(at, ctn_use_at(at, n->v), CTN_SHAPE(n->cols, 1));
    if (ctn_context_training(n->ctx)) {
        for (int i = 0; i < n->iterations; i++) {
            u = unit(at, n, ctn_matmul_at(at, fixed, v, 0, 0));
            v = unit(at, n, ctn_matmul_at(at, fixed, u, 1, 0));
        }
        if (keep(at, n->u, u, n->rows) < 0 || keep(at, n->v, v, n->cols) < 0) return NULL;
    }
    ctn_tensor *s = ctn_matmul_at(at, u, ctn_matmul_at(at, W, v, 0, 0), 1, 0); /* (1,1) */
    return ctn_div_at(at, w, ctn_reshape_at(at, s, CTN_SHAPE(1)));
}

static void normalise(double *x, int64_t n, double eps)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
    for (int64_t i = 0; i < n; i++) x[i] /= fmax(sqrt(sum), eps);
}

/* u and v after 15 iterations from the random v in n->v. */
static ctn_status start(const spectral_norm *n, const ctn_var *w)
{
    const ctn_dtype type = w->d.dtype;
    int64_t inner = 1;
    for (int i = n->dim + 1; i < n->ndim; i++) inner *= w->d.dim[i];
    double *u = ctn__calloc((size_t)(n->rows + n->cols) + 1, sizeof *u), *v = u ? u + n->rows : u;
    if (!u) return CTN_ENOMEM;
    for (int64_t c = 0; c < n->cols; c++) v[c] = ctn__elem_get(n->v->data, type, c);
    normalise(v, n->cols, n->eps);
    for (int round = 0; round < 15; round++) {
        for (int back = 0; back < 2; back++) {
            double *to = back ? v : u;
            const double *from = back ? u : v;
            memset(to, 0, (size_t)(back ? n->cols : n->rows) * sizeof *to);
            for (int64_t i = 0; i < n->rows * n->cols; i++) {
                const int64_t r = i / inner % n->rows, c = i / inner / n->rows * inner + i % inner;
                to[back ? c : r] += ctn__elem_get(w->data, type, i) * from[back ? r : c];
            }
            normalise(to, back ? n->cols : n->rows, n->eps);
        }
    }
    for (int64_t r = 0; r < n->rows; r++) ctn__elem_set(n->u->data, type, r, u[r]);
    for (int64_t c = 0; c < n->cols; c++) ctn__elem_set(n->v->data, type, c, v[c]);
    ctn__free(u);
    return CTN_OK;
}

static ctn_status add_states(spectral_norm *n, ctn_module *m, const char *name, const ctn_var *w)
{
    char text[256];
    const ctn_init *random = CTN_OPT(ctn_init, .kind = CTN_INIT_NORMAL, .std = 1);
    snprintf(text, sizeof text, "%s_u", name);
    CTN_TRY(ctn_module_state(&n->u, m, text, w->d.dtype, CTN_SHAPE(n->rows), NULL));
    snprintf(text, sizeof text, "%s_v", name);
    CTN_TRY(ctn_module_state(&n->v, m, text, w->d.dtype, CTN_SHAPE(n->cols), random));
    return start(n, w);
}

ctn_status ctn_spectral_norm_add(ctn_module *m, const char *name, const ctn_spectral_norm_opt *opt)
{
    ctn_spectral_norm_opt a = {0};
    ctn_var *w = NULL;
    CTN_TRY(ctn__opt("spectral_norm_add", &a, sizeof a, opt));
    CTN_TRY(ctn__derived_var("spectral_norm_add", m, name, a.dim, &w));
    if (w->d.ndim < 2 || a.dim < 0 || ctn__count(&w->d) == 0) {
        char shape[128];
        return ctn_fail(CTN_ESHAPE,
                        "spectral_norm_add: %s is %s and dim is %d, expected a matrix at least",
                        name, ctn__shape_text(&w->d, shape, sizeof shape), a.dim);
    }
    if (a.iterations < 0 || a.eps < 0)
        return ctn_fail(CTN_EARG,
                        "spectral_norm_add: iterations is %d and eps %g, expected at least 0",
                        a.iterations, a.eps);
    spectral_norm *n = ctn__calloc(1, sizeof *n);
    if (!n) return CTN_ENOMEM;
    n->ctx = m->ctx;
    n->ndim = w->d.ndim;
    n->dim = a.dim;
    n->rows = w->d.dim[a.dim];
    n->cols = ctn__count(&w->d) / n->rows;
    n->iterations = a.iterations > 0 ? a.iterations : 1;
    n->eps = a.eps > 0 ? a.eps : 1e-12;
    const ctn_status st = add_states(n, m, name, w);
    if (st < 0) {
        ctn__free(n);
        return st;
    }
    w->derive = derive;
    w->derived = n;
    return CTN_OK;
}
