/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX models as modules: opening, variables with the names of the model's weights, and the forward
 * function. The module and its copies share the opened model; each has variables of its own.
 */
#include <catena/onnx.h>

#include "base/readfile.h"

#ifdef CTN_HAVE_PROTOBUFC

#include "onnx/onnx.h"

typedef struct {
    ctn__onnx_model *model;
    ctn_var **var; /* owned by the module and its children */
} imported;

enum { LARGEST = 0x7fffffff }; /* bytes of a file: the limit of protobuf */
enum { SMALL = 64 };           /* elements of integer inputs that are looked at while recording */
enum { LEVELS = 32 };          /* of modules in each other, which the parts of a name become */

/* ---- the model ------------------------------------------------------------------------------- */

static void model_release(ctn__onnx_model *m)
{
    if (!m || --m->refs > 0) return;
    ctn__onnx_drop(m->proto);
    ctn__vec_free(&m->constants);
    ctn__arena_free(&m->arena);
    ctn__free(m->path);
    ctn__free(m);
}

static ctn_status model_open(ctn__onnx_model **out, const char *path, const void *bytes, size_t n,
                             const ctn_onnx_opt *opt)
{
    *out = NULL;
    ctn__onnx_model *m = ctn__calloc(1, sizeof *m);
    if (!m) return CTN_ENOMEM;
    m->refs = 1;
    m->frozen = opt->frozen != 0;
    m->path = ctn__strdup(path);
    ctn__onnx_budget budget;
    ctn__onnx_budget_begin(&budget, path);
    ctn_status st = m->path ? ctn__onnx_unpack(&m->proto, &budget, bytes, n) : CTN_ENOMEM;
    if (st == CTN_OK) st = ctn__onnx_build(m, &budget);
    if (st < 0) model_release(m);
    else *out = m;
    return st;
}

/* ---- variables ------------------------------------------------------------------------------- */

/* The child of this name, made if it does not exist; NULL after an error. */
static ctn_module *child_of(ctn_module *m, const char *name)
{
    for (size_t i = 0; i < m->children.n; i++)
        if (strcmp(m->children.at[i]->name, name) == 0) return m->children.at[i];
    ctn_module *child = NULL;
    if (ctn_module_new(&child, m->ctx, NULL, NULL, NULL) < 0) return NULL;
    if (ctn_module_add(m, name, child) == CTN_OK) return child;
    ctn_module_free(child);
    return NULL;
}

static bool taken(const ctn_module *m, const char *name, bool by_child)
{
    for (size_t i = 0; i < m->own.n; i++)
        if (strcmp(m->own.at[i].name, name) == 0) return true;
    for (size_t i = 0; i < m->children.n && by_child; i++)
        if (strcmp(m->children.at[i]->name, name) == 0) return true;
    return false;
}

/* A part of a name as the module can have it: not empty, and unique. */
static ctn_status free_name(const ctn_module *m, char *name, size_t room, bool last,
                            ctn__onnx_budget *budget)
{
    enum { NAMES_OF_A_NODE = 256, MODULE = 1024 }; /* what a search and a module take */
    const int64_t search = (int64_t)((m->own.n + m->children.n) / NAMES_OF_A_NODE);
    CTN_TRY(ctn__onnx_spend(budget, search, MODULE));
    if (*name == 0) snprintf(name, room, "_");
    for (size_t n = strlen(name); taken(m, name, last) && n + 1 < room; n++) {
        CTN_TRY(ctn__onnx_spend(budget, search, 0));
        name[n] = '_';
        name[n + 1] = 0;
    }
    return CTN_OK;
}

/* The dots of a name separate children, as in other modules. */
static ctn_status make_variable(ctn_var **v, ctn_module *m, const ctn__onnx_constant *c,
                                bool frozen, ctn__onnx_budget *budget)
{
    char part[512];
    const char *p = c->name;
    int level = 0;
    for (const char *dot = strchr(p, '.'); dot; p = dot + 1, dot = strchr(p, '.')) {
        if (++level > LEVELS)
            return ctn_fail(CTN_EFORMAT,
                            "onnx_open: %s: the name '%.100s...' has more than %d parts",
                            budget->path, c->name, LEVELS);
        snprintf(part, sizeof part - 8, "%.*s", (int)(dot - p), p);
        CTN_TRY(free_name(m, part, sizeof part, false, budget));
        m = child_of(m, part);
        if (!m) return ctn_error_status();
    }
    snprintf(part, sizeof part - 8, "%s", p);
    CTN_TRY(free_name(m, part, sizeof part, true, budget));
    const bool state = c->uses & CTN__ONNX_USE_STATE && !(c->uses & CTN__ONNX_USE_WEIGHT);
    CTN_TRY((state ? ctn_module_state : ctn_module_param)(v, m, part, c->value.dtype, c->value.ndim,
                                                          c->value.dim, NULL));
    if (frozen && !state) ctn_var_set_trainable(*v, 0);
    return CTN_OK;
}

static ctn_status load_variable(ctn_var *v, const ctn__onnx_constant *c, const char *path)
{
    ctn__arena arena = {0};
    ctn__onnx_value value;
    ctn_status st = ctn__onnx_load(&value, &arena, path, c->proto);
    if (st == CTN_OK) st = ctn_var_set(v, value.host, ctn__bytes(&v->d));
    ctn__arena_free(&arena);
    return st;
}

/* Frees the values in a message after the variables have them. Calls of a function share its
 * messages, so this comes after all variables are filled. */
static void drop_values(Onnx__TensorProto *t)
{
    ctn__free(t->raw_data.data);
    ctn__free(t->float_data);
    ctn__free(t->double_data);
    t->raw_data = (ProtobufCBinaryData){0};
    t->float_data = NULL;
    t->double_data = NULL;
    t->n_float_data = t->n_double_data = 0;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static ctn_status take_input(ctn__onnx_run *run, int i, ctn_tensor *x)
{
    const ctn_onnx_port *port = &run->model->in[i];
    ctn__onnx_value *v = &run->values[run->model->graph.in[i]];
    if (!x) return CTN_OK;
    if (x->d.dtype == CTN_F16 || x->d.dtype == CTN_BF16) x = ctn_cast_at(run->at, x, CTN_F32);
    if (!x) return ctn_error_status();
    bool fits = port->ndim < 0 || port->ndim == x->d.ndim;
    for (int k = 0; fits && k < port->ndim; k++)
        fits = port->dim[k] < 0 || port->dim[k] == x->d.dim[k];
    char got[128], want[128];
    if (!fits) {
        ctn_desc d = {.ndim = port->ndim};
        memcpy(d.dim, port->dim, sizeof d.dim);
        return ctn_fail(CTN_ESHAPE, "onnx: input %d ('%s') is %s, expected %s (%s)", i, port->name,
                        ctn__shape_text(&x->d, got, sizeof got),
                        ctn__shape_text(&d, want, sizeof want), run->at);
    }
    if (port->dtype && port->dtype != x->d.dtype)
        return ctn_fail(CTN_EDTYPE, "onnx: input %d ('%s') is %s, expected %s (%s)", i, port->name,
                        ctn_dtype_name(x->d.dtype), ctn_dtype_name(port->dtype), run->at);
    *v = (ctn__onnx_value){.dtype = x->d.dtype, .ndim = x->d.ndim, .t = x};
    v->widened = run->model->in_widened[i];
    memcpy(v->dim, x->d.dim, sizeof v->dim);
    if (!x->node && !x->var && x->data && !ctn__is_float(v->dtype) && ctn__is_plain(&x->d) &&
        ctn__onnx_count(v) <= SMALL)
        v->host = x->data;
    return CTN_OK;
}

static ctn_status run_model(const ctn_module *module, const char *at, int nx, ctn_tensor *const *x,
                            int ny, ctn_tensor **y)
{
    const imported *self = module->self;
    const ctn__onnx_model *m = self->model;
    ctn_context *ctx = module->ctx;
    if (nx != m->graph.nin)
        return ctn_fail(CTN_EARG, "onnx: got %d inputs, %s has %d (%s)", nx, m->path, m->graph.nin,
                        at);
    if (ny < 0 || ny > m->graph.nout)
        return ctn_fail(CTN_EARG, "onnx: asked for %d outputs, %s has %d (%s)", ny, m->path,
                        m->graph.nout, at);
    ctn__onnx_run run = {
        .model = m, .ctx = ctx, .at = at, .norm = &module->norm, .recorded = ctx->nodes.n};
    ctn__onnx_budget_begin(&run.budget, m->path);
    run.values = ctn__onnx_memory(&run, m->slots + 1, sizeof *run.values);
    if (!run.values) return ctn_error_status();
    memset(run.values, 0, (size_t)(m->slots + 1) * sizeof *run.values);
    for (size_t i = 0; i < m->constants.n; i++) {
        const ctn__onnx_constant *c = &m->constants.at[i];
        run.values[c->slot] = c->value;
        if (c->var >= 0) run.values[c->slot].var = self->var[c->var];
    }
    for (int i = 0; i < nx; i++) CTN_TRY(take_input(&run, i, x[i]));
    CTN_TRY(ctn__onnx_graph_run(&run, &m->graph));
    for (int i = 0; i < ny; i++) {
        y[i] = ctn__onnx_record(&run, &run.values[m->graph.out[i]]);
        if (!y[i]) return ctn_error_status();
    }
    return CTN_OK;
}

static ctn_tensors forward(void *self, ctn_module *m, ctn_tensors x)
{
    const imported *s = self;
    ctn_tensors y = {0};
    const int nx = s->model->graph.nin, ny = s->model->graph.nout;
    if (nx > CTN_MAX_TENSORS || ny > CTN_MAX_TENSORS) {
        ctn_fail(CTN_EARG, "onnx: %s has %d inputs and %d outputs, call it with ctn_onnx_run (%s)",
                 s->model->path, nx, ny, m->at);
        return y;
    }
    if (run_model(m, m->at, x.n, x.t, ny, y.t) == CTN_OK) y.n = ny;
    return y;
}

ctn_status ctn_onnx_run_at(const char *at, ctn_module *m, int nx, ctn_tensor *const *x, int ny,
                           ctn_tensor **y)
{
    for (int i = 0; i < ny; i++) y[i] = NULL;
    if (ctn_onnx_inputs(m) < 0) return ctn_fail(CTN_EARG, "onnx_run: not an ONNX model (%s)", at);
    CTN_TRY(ctn__need_scope(m->ctx, "onnx_run"));
    CTN_TRY(ctn_scope_begin(m->ctx));
    const int level = m->ctx->level;
    ctn_status st = run_model(m, at, nx, x, ny, y);
    while (m->ctx->level > level) ctn_scope_return(m->ctx, NULL);
    const ctn_status end = ctn_scope_return_n(m->ctx, st < 0 ? 0 : ny, y);
    if (st == CTN_OK) st = end;
    for (int i = 0; i < ny && st < 0; i++) y[i] = NULL;
    return st;
}

/* ---- the module ------------------------------------------------------------------------------ */

static void release(void *self)
{
    imported *s = self;
    model_release(s->model);
    ctn__free(s->var);
    ctn__free(s);
}

static ctn_status copy_module(void *self, ctn_module *m, ctn_module **copy);

/* A module for the model, of which it takes a reference on success. */
static ctn_status make_module(ctn_module **out, ctn_context *ctx, ctn__onnx_model *model)
{
    *out = NULL;
    imported *self = ctn__calloc(1, sizeof *self);
    ctn_var **var = ctn__calloc((size_t)model->vars + 1, sizeof *var);
    ctn_module *m = NULL;
    ctn_status st =
        self && var ? ctn_module_new_multi(&m, ctx, forward, self, release) : CTN_ENOMEM;
    if (st < 0) {
        ctn__free(self);
        ctn__free(var);
        return st;
    }
    ctn__onnx_budget budget;
    ctn__onnx_budget_begin(&budget, model->path);
    *self = (imported){model, var};
    m->norms = model->norms;
    model->refs++;
    for (size_t i = 0; i < model->constants.n && st == CTN_OK; i++) {
        const ctn__onnx_constant *c = &model->constants.at[i];
        if (c->var >= 0) st = make_variable(&var[c->var], m, c, model->frozen, &budget);
    }
    if (st == CTN_OK) st = ctn_module_set_copy(m, copy_module);
    if (st < 0) ctn_module_free(m);
    else *out = m;
    return st;
}

static ctn_status copy_module(void *self, ctn_module *m, ctn_module **copy)
{
    return make_module(copy, m->ctx, ((imported *)self)->model);
}

ctn_status ctn__onnx_open_bytes(ctn_module **m, ctn_context *ctx, const char *path,
                                const void *bytes, size_t n, const ctn_onnx_opt *opt)
{
    ctn_onnx_opt how;
    CTN_TRY(ctn__opt("onnx_open", &how, sizeof how, opt));
    ctn__onnx_model *model = NULL;
    CTN_TRY(model_open(&model, path, bytes, n, &how));
    ctn_status st = make_module(m, ctx, model);
    for (size_t i = 0; i < model->constants.n && st == CTN_OK; i++) {
        const ctn__onnx_constant *c = &model->constants.at[i];
        if (c->var >= 0) st = load_variable(((imported *)(*m)->self)->var[c->var], c, path);
    }
    for (size_t i = 0; i < model->constants.n; i++)
        if (model->constants.at[i].var >= 0) drop_values(model->constants.at[i].proto);
    if (st < 0) {
        ctn_module_free(*m);
        *m = NULL;
    }
    model_release(model);
    return st;
}

ctn_status ctn_onnx_open(ctn_module **m, ctn_context *ctx, const char *path,
                         const ctn_onnx_opt *opt)
{
    if (!m || !ctx || !path) return ctn_fail(CTN_EARG, "onnx_open: NULL argument");
    *m = NULL;
    char *bytes = NULL;
    size_t n = 0;
    CTN_TRY(ctn__file_whole("onnx_open", path, LARGEST, &bytes, &n));
    const ctn_status st = ctn__onnx_open_bytes(m, ctx, path, bytes, n, opt);
    ctn__free(bytes);
    return st;
}

static const ctn__onnx_model *model_of(const ctn_module *m)
{
    return m && m->forward_multi == forward ? ((const imported *)m->self)->model : NULL;
}

int ctn_onnx_inputs(const ctn_module *m)
{
    const ctn__onnx_model *model = model_of(m);
    return model ? model->graph.nin : -1;
}

int ctn_onnx_outputs(const ctn_module *m)
{
    const ctn__onnx_model *model = model_of(m);
    return model ? model->graph.nout : -1;
}

ctn_status ctn_onnx_input(const ctn_module *m, int i, ctn_onnx_port *out)
{
    if (!out || i < 0 || i >= ctn_onnx_inputs(m))
        return ctn_fail(CTN_EARG, "onnx_input: there is no input %d", i);
    *out = model_of(m)->in[i];
    return CTN_OK;
}

ctn_status ctn_onnx_output(const ctn_module *m, int i, ctn_onnx_port *out)
{
    if (!out || i < 0 || i >= ctn_onnx_outputs(m))
        return ctn_fail(CTN_EARG, "onnx_output: there is no output %d", i);
    *out = model_of(m)->out[i];
    return CTN_OK;
}

#else

static ctn_status missing(void)
{
    return ctn_fail(CTN_EUNSUPPORTED, "onnx: this library was built without protobuf-c");
}

ctn_status ctn_onnx_open(ctn_module **m, ctn_context *ctx, const char *path,
                         const ctn_onnx_opt *opt)
{
    (void)ctx, (void)path, (void)opt;
    if (m) *m = NULL;
    return missing();
}

ctn_status ctn_onnx_run_at(const char *at, ctn_module *m, int nx, ctn_tensor *const *x, int ny,
                           ctn_tensor **y)
{
    (void)at, (void)m, (void)nx, (void)x;
    for (int i = 0; i < ny; i++) y[i] = NULL;
    return missing();
}

int ctn_onnx_inputs(const ctn_module *m)
{
    (void)m;
    return -1;
}

int ctn_onnx_outputs(const ctn_module *m)
{
    (void)m;
    return -1;
}

ctn_status ctn_onnx_input(const ctn_module *m, int i, ctn_onnx_port *out)
{
    (void)m, (void)i, (void)out;
    return missing();
}

ctn_status ctn_onnx_output(const ctn_module *m, int i, ctn_onnx_port *out)
{
    (void)m, (void)i, (void)out;
    return missing();
}

#endif
