/* SPDX-License-Identifier: Apache-2.0
 *
 * Control flow, which becomes straight code while it is recorded: If records one branch, Loop and
 * Scan record their body once per iteration, which counts as a node. A condition that is a recorded
 * tensor is read.
 */
#include "onnx/onnx.h"

#ifdef CTN_HAVE_PROTOBUFC

#include "onnx/kinds.h"

static ctn__onnx_value *slot(ctn__onnx_call *c, int i)
{
    return &c->run->values[i];
}

static ctn_status take_outputs(ctn__onnx_call *c, const ctn__onnx_graph *g)
{
    if (g->nout < c->nout)
        return ctn__onnx_fail(c, CTN_EFORMAT, "%d outputs, the graph has %d", c->nout, g->nout);
    for (int i = 0; i < c->nout; i++) CTN_TRY(ctn__onnx_set_value(c, i, slot(c, g->out[i])));
    return CTN_OK;
}

ctn_status ctn__onnx_do_function(ctn__onnx_call *c)
{
    const ctn__onnx_graph *g = &c->node->body[0];
    for (int i = 0; i < g->nin; i++)
        *slot(c, g->in[i]) = i < c->nin && c->in[i] ? *c->in[i] : (ctn__onnx_value){0};
    CTN_TRY(ctn__onnx_graph_run(c->run, g));
    return take_outputs(c, g);
}

ctn_status ctn__onnx_do_if(ctn__onnx_call *c)
{
    int64_t yes = 0;
    CTN_TRY(ctn__onnx_need(c, 0));
    CTN_TRY(ctn__onnx_one_int(c, 0, &yes));
    const ctn__onnx_graph *g = &c->node->body[yes == 0];
    CTN_TRY(ctn__onnx_graph_run(c->run, g));
    return take_outputs(c, g);
}

/* ---- collected results ----------------------------------------------------------------------- */

typedef struct {
    ctn_tensor **at;
    int64_t n, cap;
} collected;

static ctn_status collect(ctn__onnx_call *c, collected *l, ctn__onnx_value *v)
{
    if (l->n == l->cap) {
        const int64_t cap = l->cap ? 2 * l->cap : 16;
        ctn_tensor **at = ctn__onnx_memory(c->run, cap, sizeof(ctn_tensor *));
        if (!at) return ctn_error_status();
        if (l->n > 0) memcpy(at, l->at, (size_t)l->n * sizeof(ctn_tensor *));
        l->at = at;
        l->cap = cap;
    }
    ctn_tensor *t = ctn__onnx_record(c->run, v);
    if (!t) return ctn_error_status();
    l->at[l->n++] = t;
    return CTN_OK;
}

/* The results of all iterations along a new axis, the last first if reverse is set. */
static ctn_status stack(ctn__onnx_call *c, int k, collected *l, int64_t axis, bool reverse)
{
    if (l->n == 0)
        return ctn__onnx_fail(c, CTN_EUNSUPPORTED, "a loop without iterations has results");
    for (int64_t i = 0; reverse && i < l->n / 2; i++) {
        ctn_tensor *t = l->at[i];
        l->at[i] = l->at[l->n - 1 - i];
        l->at[l->n - 1 - i] = t;
    }
    return ctn__onnx_set(c, k, ctn_stack_at(c->at, (int)l->n, l->at, axis));
}

static collected *new_lists(ctn__onnx_call *c, int n)
{
    collected *l = ctn__onnx_memory(c->run, (int64_t)n + 1, sizeof *l);
    if (l) memset(l, 0, (size_t)(n + 1) * sizeof *l);
    return l;
}

/* ---- Loop ------------------------------------------------------------------------------------ */

static ctn_status truth(ctn__onnx_call *c, ctn__onnx_value *v, bool *out)
{
    *out = true;
    if (!v || v->dtype == 0) return CTN_OK;
    CTN_TRY(ctn__onnx_read(c->run, v));
    *out = ctn__onnx_count(v) > 0 && ctn__onnx_int_of(v, 0) != 0;
    return CTN_OK;
}

/* Inputs: trip count, condition, carried values. The body adds results to be stacked. */
ctn_status ctn__onnx_do_loop(ctn__onnx_call *c)
{
    const ctn__onnx_graph *g = &c->node->body[0];
    const int carried = c->nin > 2 ? c->nin - 2 : 0, scans = c->nout - carried;
    bool go = true;
    if (g->nin != carried + 2 || g->nout != c->nout + 1 || scans < 0)
        return ctn__onnx_fail(c, CTN_EFORMAT, "the body does not fit the loop");
    int64_t trips = INT64_MAX;
    CTN_TRY(ctn__onnx_one_int(c, 0, &trips));
    if (ctn__onnx_has(c, 1)) CTN_TRY(truth(c, c->in[1], &go));
    collected *lists = new_lists(c, scans);
    ctn__onnx_value *state = ctn__onnx_memory(c->run, carried + 1, sizeof(ctn__onnx_value));
    if (!lists || !state) return ctn_error_status();
    for (int i = 0; i < carried; i++)
        state[i] = c->in[2 + i] ? *c->in[2 + i] : (ctn__onnx_value){0};
    for (int64_t k = 0; k < trips && go; k++) {
        CTN_TRY(ctn__onnx_spend(&c->run->budget, 1, 0));
        int64_t *count = ctn__onnx_memory(c->run, 1, sizeof *count);
        uint8_t *one = ctn__onnx_memory(c->run, 1, 1);
        if (!count || !one) return ctn_error_status();
        *count = k;
        *one = 1;
        *slot(c, g->in[0]) = (ctn__onnx_value){.dtype = CTN_I64, .host = count};
        *slot(c, g->in[1]) = (ctn__onnx_value){.dtype = CTN_BOOL, .host = one};
        for (int i = 0; i < carried; i++) *slot(c, g->in[2 + i]) = state[i];
        CTN_TRY(ctn__onnx_graph_run(c->run, g));
        for (int i = 0; i < carried; i++) state[i] = *slot(c, g->out[1 + i]);
        for (int i = 0; i < scans; i++)
            CTN_TRY(collect(c, &lists[i], slot(c, g->out[1 + carried + i])));
        CTN_TRY(truth(c, slot(c, g->out[0]), &go));
    }
    for (int i = 0; i < carried; i++) CTN_TRY(ctn__onnx_set_value(c, i, &state[i]));
    for (int i = 0; i < scans; i++)
        if (c->out[carried + i]) CTN_TRY(stack(c, carried + i, &lists[i], 0, false));
    return CTN_OK;
}

/* ---- Scan ------------------------------------------------------------------------------------ */

static int64_t list_item(const ctn__onnx_call *c, const char *name, int i)
{
    const Onnx__AttributeProto *a = ctn__onnx_attr(c->node, name);
    return a && (size_t)i < a->n_ints ? a->ints[i] : 0;
}

ctn_status ctn__onnx_do_scan(ctn__onnx_call *c)
{
    const ctn__onnx_graph *g = &c->node->body[0];
    const int64_t given = ctn__onnx_int(c, "num_scan_inputs", 0);
    if (c->node->opset < 9) return ctn__onnx_fail(c, CTN_EUNSUPPORTED, "Scan before opset 9");
    if (given < 1 || given > c->nin || g->nin != c->nin || g->nout != c->nout)
        return ctn__onnx_fail(c, CTN_EFORMAT, "the body does not fit the inputs");
    const int scanned = (int)given, carried = c->nin - scanned, scans = c->nout - carried;
    if (scans < 0) return ctn__onnx_fail(c, CTN_EFORMAT, "the body does not fit the outputs");
    collected *lists = new_lists(c, scans);
    ctn__onnx_value *state = ctn__onnx_memory(c->run, carried + 1, sizeof *state);
    if (!lists || !state) return ctn_error_status();
    int64_t T = -1;
    for (int i = 0; i < scanned; i++) {
        const ctn_tensor *x = ctn__onnx_in(c, carried + i);
        if (!x) return ctn_error_status();
        int axis;
        CTN_TRY(ctn__onnx_axis(c, list_item(c, "scan_input_axes", i), x->d.ndim, &axis));
        if (T >= 0 && T != x->d.dim[axis])
            return ctn__onnx_fail(c, CTN_ESHAPE, "the scanned inputs have %lld and %lld steps",
                                  (long long)T, (long long)x->d.dim[axis]);
        T = x->d.dim[axis];
    }
    for (int i = 0; i < carried; i++)
        if (!c->in[i]) return ctn__onnx_fail(c, CTN_EFORMAT, "an initial state is missing");
    for (int i = 0; i < carried; i++) *slot(c, g->in[i]) = *c->in[i];
    for (int64_t t = 0; t < T; t++) {
        CTN_TRY(ctn__onnx_spend(&c->run->budget, 1, 0));
        for (int i = 0; i < scanned; i++) {
            const bool back = list_item(c, "scan_input_directions", i);
            ctn_tensor *x = ctn_select_at(c->at, ctn__onnx_in(c, carried + i),
                                          list_item(c, "scan_input_axes", i), back ? T - 1 - t : t);
            if (!x) return ctn_error_status();
            ctn__onnx_value v = {.dtype = x->d.dtype, .ndim = x->d.ndim, .t = x};
            memcpy(v.dim, x->d.dim, sizeof v.dim);
            *slot(c, g->in[carried + i]) = v;
        }
        CTN_TRY(ctn__onnx_graph_run(c->run, g));
        for (int i = 0; i < scans; i++)
            CTN_TRY(collect(c, &lists[i], slot(c, g->out[carried + i])));
        /* all before any is set: the body may hand on its inputs in another order */
        for (int i = 0; i < carried; i++) state[i] = *slot(c, g->out[i]);
        for (int i = 0; i < carried; i++) *slot(c, g->in[i]) = state[i];
    }
    for (int i = 0; i < carried; i++) CTN_TRY(ctn__onnx_set_value(c, i, slot(c, g->in[i])));
    for (int i = 0; i < scans; i++)
        if (c->out[carried + i])
            CTN_TRY(stack(c, carried + i, &lists[i], list_item(c, "scan_output_axes", i),
                          list_item(c, "scan_output_directions", i)));
    return CTN_OK;
}

#endif
