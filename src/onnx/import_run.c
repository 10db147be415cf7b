/* SPDX-License-Identifier: Apache-2.0
 *
 * One call of a model: walks the nodes of its graph and lets their converters record ops. Arrays
 * that are made on the way lie in the arena of the scope, because a plan may read them until the
 * scope ends.
 */
#include "onnx/onnx.h"

#ifdef CTN_HAVE_PROTOBUFC

#include <stdarg.h>

int64_t ctn__onnx_count(const ctn__onnx_value *v)
{
    int64_t n = 1;
    for (int i = 0; i < v->ndim; i++) n *= v->dim[i];
    return n;
}

static const char *node_name(const Onnx__NodeProto *n)
{
    if (n->name && *n->name) return n->name;
    return n->n_output > 0 ? n->output[0] : "";
}

ctn_status(ctn__onnx_fail)(const ctn__onnx_call *c, ctn_status st, const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return ctn_fail(st, "onnx: %s (node %s): %s", c->node->proto->op_type,
                    node_name(c->node->proto), text);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

bool ctn__onnx_has(const ctn__onnx_call *c, int i)
{
    return i >= 0 && i < c->nin && c->in[i] && (c->in[i]->dtype != 0 || c->in[i]->item);
}

bool ctn__onnx_is_host(const ctn__onnx_value *v)
{
    return v->host && (!v->t || !ctn__is_float(v->dtype)) && ctn__onnx_count(v) <= CTN__ONNX_SMALL;
}

bool ctn__onnx_all_host(const ctn__onnx_call *c)
{
    for (int i = 0; i < c->nin; i++)
        if (ctn__onnx_has(c, i) && !ctn__onnx_is_host(c->in[i])) return false;
    return true;
}

static ctn_status need_input(const ctn__onnx_call *c, int i)
{
    if (!ctn__onnx_has(c, i)) return ctn__onnx_fail(c, CTN_EFORMAT, "input %d is missing", i);
    if (c->in[i]->item)
        return ctn__onnx_fail(c, CTN_EFORMAT, "input %d is a sequence, expected a tensor", i);
    return CTN_OK;
}

ctn_tensor *ctn__onnx_record(ctn__onnx_run *run, ctn__onnx_value *v)
{
    if (v->t) return v->t;
    if (v->var) {
        v->t = ctn_use_at(run->at, v->var);
    } else if (v->host && v->dtype == CTN_F32 && v->ndim == 0) {
        float x;
        memcpy(&x, v->host, sizeof x);
        v->t = ctn_number_at(run->at, run->ctx, (double)x);
    } else if (v->host) {
        v->t = ctn_input_at(run->at, run->ctx, v->host, v->dtype, v->ndim, v->dim);
    } else {
        ctn_fail(CTN_EFORMAT, "onnx: %s: a value is a sequence or was never computed",
                 run->model->path);
    }
    return v->t;
}

ctn_tensor *ctn__onnx_in(ctn__onnx_call *c, int i)
{
    return need_input(c, i) < 0 ? NULL : ctn__onnx_record(c->run, c->in[i]);
}

ctn_status ctn__onnx_read(ctn__onnx_run *run, ctn__onnx_value *v)
{
    if (v->host) return CTN_OK;
    ctn_tensor *t = ctn__onnx_record(run, v);
    if (!t) return ctn_error_status();
    CTN_TRY(ctn__onnx_spend_elements(run, ctn__onnx_count(v), ctn_dtype_size(v->dtype)));
    v->host = ctn_data(t);
    return v->host ? CTN_OK : ctn_error_status();
}

ctn_status ctn__onnx_need(ctn__onnx_call *c, int i)
{
    CTN_TRY(need_input(c, i));
    return ctn__onnx_read(c->run, c->in[i]);
}

/* *x is input i, which has one element; NULL: it is left out. */
static ctn_status need_one(ctn__onnx_call *c, int i, const ctn__onnx_value **x)
{
    *x = NULL;
    if (!ctn__onnx_has(c, i)) return CTN_OK;
    CTN_TRY(need_input(c, i));
    const int64_t n = ctn__onnx_count(c->in[i]);
    if (n != 1)
        return ctn__onnx_fail(c, CTN_ESHAPE, "input %d has %lld elements, expected one number", i,
                              (long long)n);
    *x = c->in[i];
    return ctn__onnx_need(c, i);
}

ctn_status ctn__onnx_one_int(ctn__onnx_call *c, int i, int64_t *x)
{
    const ctn__onnx_value *v;
    CTN_TRY(need_one(c, i, &v));
    if (v) *x = ctn__onnx_int_of(v, 0);
    return CTN_OK;
}

ctn_status ctn__onnx_one_number(ctn__onnx_call *c, int i, double *x)
{
    const ctn__onnx_value *v;
    CTN_TRY(need_one(c, i, &v));
    if (v) *x = ctn__onnx_number_of(v, 0);
    return CTN_OK;
}

ctn_status ctn__onnx_need_all(ctn__onnx_call *c)
{
    for (int i = 0; i < c->nin; i++) {
        if (!ctn__onnx_has(c, i)) continue;
        const ctn__onnx_value *v = c->in[i];
        const bool trained =
            v->t ? v->t->node && v->t->node->needs_grad : v->var && v->var->trainable;
        if (trained && ctn__is_float(v->dtype) && c->ctx->training && c->ctx->grad_on)
            return ctn__onnx_fail(c, CTN_EGRAD,
                                  "has no gradient here; freeze the model or turn gradients off");
        CTN_TRY(ctn__onnx_need(c, i));
    }
    return CTN_OK;
}

int64_t ctn__onnx_int_of(const ctn__onnx_value *v, int64_t i)
{
    switch (v->dtype) {
    case CTN_I64: return ((const int64_t *)v->host)[i];
    case CTN_I32: return ((const int32_t *)v->host)[i];
    case CTN_U8:
    case CTN_BOOL: return ((const uint8_t *)v->host)[i];
    default: break;
    }
    return ctn__onnx_to_int(ctn__onnx_number_of(v, i));
}

int64_t ctn__onnx_to_int(double x)
{
    if (!(x > -9.2e18)) return INT64_MIN;
    return x < 9.2e18 ? (int64_t)x : INT64_MAX;
}

double ctn__onnx_number_of(const ctn__onnx_value *v, int64_t i)
{
    return ctn__elem_get(v->host, v->dtype, i);
}

/* ---- outputs --------------------------------------------------------------------------------- */

static void take_shape(ctn__onnx_value *v, const ctn_tensor *t)
{
    *v = (ctn__onnx_value){.dtype = t->d.dtype, .ndim = t->d.ndim};
    memcpy(v->dim, t->d.dim, sizeof v->dim);
}

ctn_status ctn__onnx_set(ctn__onnx_call *c, int k, ctn_tensor *t)
{
    if (!t)
        return ctn_error_status() < 0 ? ctn_error_status()
                                      : ctn__onnx_fail(c, CTN_EFORMAT, "recorded nothing");
    if (k >= c->nout || !c->out[k]) return CTN_OK;
    take_shape(c->out[k], t);
    c->out[k]->t = t;
    return CTN_OK;
}

void *ctn__onnx_set_host(ctn__onnx_call *c, int k, ctn_dtype dtype, int ndim, const int64_t *dims)
{
    ctn_desc d;
    if (ctn__desc_set(&d, c->node->proto->op_type, dtype, ndim, dims) < 0) return NULL;
    void *data = ctn__onnx_memory(c->run, ctn__count(&d), ctn_dtype_size(dtype));
    if (!data || k >= c->nout || !c->out[k]) return data;
    ctn__onnx_value *v = c->out[k];
    *v = (ctn__onnx_value){.dtype = dtype, .ndim = ndim, .host = data};
    memcpy(v->dim, d.dim, sizeof v->dim);
    return data;
}

ctn_status ctn__onnx_set_value(ctn__onnx_call *c, int k, const ctn__onnx_value *v)
{
    if (k < c->nout && c->out[k]) *c->out[k] = *v;
    return CTN_OK;
}

ctn_tensor *ctn__onnx_array(const ctn__onnx_call *c, const void *data, ctn_dtype dtype, int ndim,
                            const int64_t *dims)
{
    return data ? ctn_input_at(c->at, c->ctx, data, dtype, ndim, dims) : NULL;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static ctn_status run_node(ctn__onnx_run *run, const ctn__onnx_node *n)
{
    ctn__onnx_value *few[32];
    ctn__onnx_value **all = few;
    if (n->nin + n->nout > 32) {
        all = ctn__onnx_memory(run, (int64_t)n->nin + n->nout, sizeof *all);
        if (!all) return ctn_error_status();
    }
    CTN_TRY(ctn__onnx_spend(&run->budget, 1, 0));
    for (int i = 0; i < n->nin + n->nout; i++) {
        const int slot = i < n->nin ? n->in[i] : n->out[i - n->nin];
        all[i] = slot < 0 ? NULL : &run->values[slot];
        if (i >= n->nin && all[i]) *all[i] = (ctn__onnx_value){0};
        if (i < n->nin && all[i] && ctn__onnx_is_host(all[i]))
            CTN_TRY(ctn__onnx_spend_elements(run, ctn__onnx_count(all[i]), 0));
    }
    ctn__onnx_call c = {run, run->ctx, run->at, n, n->nin, n->nout, all, all + n->nin};
    ctn_status st = n->op->convert(&c);
    if (st == CTN_OK) st = ctn__onnx_spend_recorded(run);
    if (st < 0) {
        char where[300];
        snprintf(where, sizeof where, "(%s %s)", n->proto->op_type, node_name(n->proto));
        ctn_error_trace(ctn_error_status(), run->model->path, 0, where);
    }
    return st;
}

ctn_status ctn__onnx_graph_run(ctn__onnx_run *run, const ctn__onnx_graph *g)
{
    for (int i = 0; i < g->nnode; i++) {
        const ctn_status st = run_node(run, &g->node[i]);
        if (st < 0) return st;
    }
    return CTN_OK;
}

#endif
