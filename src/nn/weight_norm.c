/* SPDX-License-Identifier: Apache-2.0
 *
 * Weight normalisation (Salimans and Kingma, 2016): w = g v / |v|, with a norm for each slice along
 * one dimension. The parameter itself becomes v. ctn_use of it records the product, so modules and
 * gradients need not know.
 */
#include <math.h>

#include <catena/ops.h>

#include "nn/nn.h"

typedef struct {
    ctn_var *g;
    int naxes; /* that the norm sums over; 0: all */
    int64_t axes[CTN_MAX_DIMS];
} weight_norm;

static ctn_tensor *derive(const char *at, void *derived, ctn_tensor *v)
{
    const weight_norm *n = derived;
    ctn_tensor *square = ctn_sum_at(at, ctn_mul_at(at, v, v), n->naxes, n->axes, 1);
    ctn_tensor *g = ctn_use_at(at, n->g);
    return ctn_mul_at(at, v, ctn_div_at(at, g, ctn_sqrt_at(at, square)));
}

ctn_status ctn__derived_var(const char *who, ctn_module *m, const char *name, int dim,
                            ctn_var **out)
{
    char shape[128];
    if (!m || !name) return ctn_fail(CTN_EARG, "%s: needs a module and a name", who);
    if (m->ctx->level > 0)
        return ctn_fail(CTN_ESTATE, "%s: a scope is open; call it between scopes", who);
    for (size_t i = 0; i < m->own.n; i++) {
        ctn_var *v = m->own.at[i].var;
        if (strcmp(m->own.at[i].name, name) != 0 || v->kind != CTN_PARAM) continue;
        if (v->pool || v->parked)
            return ctn_fail(CTN_ESTATE, "%s: %s has an optimizer; make the optimizer afterwards",
                            who, name);
        if (v->derive) return ctn_fail(CTN_ESTATE, "%s: %s is already normalised", who, name);
        if (v->d.dtype != CTN_F32 && v->d.dtype != CTN_F64)
            return ctn_fail(CTN_EDTYPE, "%s: %s is %s, expected f32 or f64", who, name,
                            ctn_dtype_name(v->d.dtype));
        if (dim < -1 || dim >= v->d.ndim)
            return ctn_fail(CTN_ESHAPE, "%s: dim is %d, but %s is %s", who, dim, name,
                            ctn__shape_text(&v->d, shape, sizeof shape));
        *out = v;
        return CTN_OK;
    }
    return ctn_fail(CTN_ENOTFOUND, "%s: the module has no parameter '%s' of its own", who, name);
}

/* g = |v| */
static ctn_status set_norms(const ctn_var *v, ctn_var *g, int dim)
{
    const int64_t rows = ctn__count(&g->d), n = ctn__count(&v->d);
    int64_t inner = 1;
    for (int i = dim + 1; dim >= 0 && i < v->d.ndim; i++) inner *= v->d.dim[i];
    double *sum = ctn__calloc((size_t)rows + 1, sizeof *sum);
    if (!sum) return CTN_ENOMEM;
    for (int64_t i = 0; i < n; i++) {
        const double x = ctn__elem_get(v->data, v->d.dtype, i);
        sum[dim < 0 ? 0 : i / inner % rows] += x * x;
    }
    for (int64_t i = 0; i < rows; i++) ctn__elem_set(g->data, g->d.dtype, i, sqrt(sum[i]));
    ctn__free(sum);
    return CTN_OK;
}

ctn_status ctn_weight_norm_add(ctn_module *m, const char *name, int dim)
{
    ctn_var *v = NULL;
    char text[256];
    int64_t dims[CTN_MAX_DIMS];
    CTN_TRY(ctn__derived_var("weight_norm_add", m, name, dim, &v));
    weight_norm *n = ctn__calloc(1, sizeof *n);
    if (!n) return CTN_ENOMEM;
    for (int i = 0; i < v->d.ndim; i++) {
        dims[i] = i == dim ? v->d.dim[i] : 1;
        if (i != dim && dim >= 0) n->axes[n->naxes++] = i;
    }
    ctn_status st = CTN_OK;
    snprintf(text, sizeof text, "%s_g", name);
    CTN_TRY_GOTO(st, fail, ctn_module_param(&n->g, m, text, v->d.dtype, v->d.ndim, dims, NULL));
    CTN_TRY_GOTO(st, fail, set_norms(v, n->g, dim));
    v->derive = derive;
    v->derived = n;
    return CTN_OK;
fail:
    ctn__free(n);
    return st;
}
