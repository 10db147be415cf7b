/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the graph of a model: finds the converter of each node, replaces the names of values by
 * slots, and decides which constants become variables. The inner graphs of If, Loop and Scan see
 * the names of the graphs around them. A function of the model gets slots of its own at every call.
 */
#include "onnx/onnx.h"

#ifdef CTN_HAVE_PROTOBUFC

#include <math.h>

#include "onnx/kinds.h"

/* Names that can be seen, the newest last; chained by the hash of the name. */
typedef struct {
    const char *name;
    uint64_t hash;
    int slot, next;
} seen_name;

typedef struct {
    const char *op;
    ctn__text nodes;
    int count;
} refused_op;

enum { BUCKETS = 65536, SLOTS = 10000000, MOST_REFUSED = 50 };
enum { STEPS = 200000000 }; /* along chains: a file may have names whose hashes are alike */
typedef struct {
    ctn__onnx_model *model;
    ctn__onnx_budget *budget;
    const Onnx__FunctionProto **function; /* sorted by order_of */
    int64_t steps;
    int bucket[BUCKETS]; /* index in names; -1: empty */
    CTN__VEC(seen_name) names;
    size_t from; /* names before this one cannot be seen from inside a function */
    CTN__VEC(refused_op) refused;
    CTN__VEC(int) constant_of; /* per slot */
    CTN__VEC(size_t) inputs;   /* of the model that are not weights */
    int64_t opset;             /* of the domain "" where we are */
    int depth;
} builder;

/* ---- ops ------------------------------------------------------------------------------------- */

static const ctn__onnx_op ops[] = {
#define CTN__ONNX_OP(op, fn, ...) {.name = #op, .convert = ctn__onnx_do_##fn, __VA_ARGS__},
#include "onnx/onnx_ops.def"
#undef CTN__ONNX_OP
};

/* The table is in alphabetical order. */
const ctn__onnx_op *ctn__onnx_find(const char *domain, const char *name)
{
    size_t low = 0, high = sizeof ops / sizeof *ops;
    if (domain && *domain && strcmp(domain, "ai.onnx") != 0) return NULL;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        const int order = strcmp(name, ops[mid].name);
        if (order == 0) return &ops[mid];
        if (order < 0) high = mid;
        else low = mid + 1;
    }
    return NULL;
}

static const char *text(const char *s)
{
    return s ? s : "";
}

static ctn_status refuse(builder *b, const Onnx__NodeProto *n)
{
    char op[256];
    snprintf(op, sizeof op, "%s%s%s", text(n->domain), text(n->domain)[0] ? ":" : "",
             text(n->op_type));
    refused_op *r = NULL;
    for (size_t i = 0; i < b->refused.n; i++)
        if (strcmp(b->refused.at[i].op, op) == 0) r = &b->refused.at[i];
    if (!r && b->refused.n == MOST_REFUSED) return CTN_OK;
    if (!r) {
        const char *copy = ctn__arena_str(&b->model->arena, op);
        if (!copy || !ctn__vec_push(&b->refused, (refused_op){.op = copy})) return CTN_ENOMEM;
        r = &b->refused.at[b->refused.n - 1];
    }
    const char *name = text(n->name);
    if (!*name && n->n_output > 0) name = text(n->output[0]);
    if (r->count < 4) ctn__text_add(&r->nodes, "%s%s", r->count ? ", " : "", name);
    r->count++;
    return CTN_OK;
}

static ctn_status refusal(const builder *b)
{
    ctn__text all = {0};
    for (size_t i = 0; i < b->refused.n; i++) {
        const refused_op *r = &b->refused.at[i];
        ctn__text_add(&all, "%s%s (%s%s)", i ? "; " : "", r->op, r->nodes.s ? r->nodes.s : "",
                      r->count > 4 ? ", ..." : "");
    }
    ctn_fail(CTN_EUNSUPPORTED, "onnx_open: %s uses %s%zu ops that are not supported: %s",
             b->model->path, b->refused.n == MOST_REFUSED ? "at least " : "", b->refused.n,
             all.s ? all.s : "");
    ctn__text_free(&all);
    return CTN_EUNSUPPORTED;
}

/* ---- names ----------------------------------------------------------------------------------- */

static uint64_t hash_of(const char *name)
{
    return ctn__hash(name, strlen(name)).lo;
}

static int find_name(builder *b, const char *name)
{
    const uint64_t hash = hash_of(name);
    for (int i = b->bucket[hash % BUCKETS]; i >= 0; i = b->names.at[i].next) {
        b->steps++;
        if (b->names.at[i].hash == hash && strcmp(b->names.at[i].name, name) == 0)
            return (size_t)i >= b->from ? b->names.at[i].slot : -1;
    }
    return -1;
}

static ctn_status add_name(builder *b, const char *name, int slot)
{
    const uint64_t hash = hash_of(name);
    int *first = &b->bucket[hash % BUCKETS];
    if (!ctn__vec_push(&b->names, ((seen_name){name, hash, slot, *first}))) return CTN_ENOMEM;
    *first = (int)b->names.n - 1;
    return CTN_OK;
}

static void forget_names(builder *b, size_t from)
{
    while (b->names.n > from) {
        const seen_name *s = &b->names.at[--b->names.n];
        b->bucket[s->hash % BUCKETS] = s->next;
    }
}

static ctn_status new_slot(builder *b, const char *name, int *slot)
{
    if (b->model->slots >= SLOTS)
        return ctn_fail(CTN_EUNSUPPORTED, "onnx_open: %s has more than %d values", b->model->path,
                        SLOTS);
    *slot = b->model->slots++;
    if (!ctn__vec_push(&b->constant_of, -1)) return CTN_ENOMEM;
    return add_name(b, name, *slot);
}

static ctn_status use_name(builder *b, const char *name, const char *who, int *slot)
{
    *slot = find_name(b, name);
    if (b->steps > STEPS)
        return ctn_fail(CTN_EUNSUPPORTED, "onnx_open: %s has too many names with equal hashes",
                        b->model->path);
    if (*slot >= 0) return CTN_OK;
    return ctn_fail(CTN_EFORMAT, "onnx_open: %s: %s reads '%s' before anything has computed it",
                    b->model->path, who, name);
}

/* ---- constants ------------------------------------------------------------------------------- */

static ctn_status add_constant(builder *b, const char *name, const ctn__onnx_constant *c)
{
    ctn__onnx_constant made = *c;
    made.name = name;
    made.var = -1;
    CTN_TRY(new_slot(b, name, &made.slot));
    b->constant_of.at[made.slot] = (int)b->model->constants.n;
    return ctn__vec_push(&b->model->constants, made) ? CTN_OK : CTN_ENOMEM;
}

static ctn_status tensor_constant(builder *b, const char *name, Onnx__TensorProto *t)
{
    ctn__onnx_constant c = {.proto = t};
    CTN_TRY(ctn__onnx_shape(&c.value, &c.place, b->model->path, t));
    return add_constant(b, name, &c);
}

/* An array of n numbers, without dimensions if n is -1. */
static ctn_status list_constant(builder *b, const char *name, ctn_dtype dtype, int64_t n,
                                const void *values)
{
    const size_t count = n < 0 ? 1 : (size_t)n;
    ctn__onnx_constant c = {.value = {.dtype = dtype, .ndim = n >= 0, .dim = {n < 0 ? 0 : n}}};
    CTN_TRY(ctn__onnx_spend(b->budget, 0, count * ctn_dtype_size(dtype)));
    char *data = ctn__arena_get(&b->model->arena, count * ctn_dtype_size(dtype) + 1);
    if (!data) return CTN_ENOMEM;
    if (count > 0) memcpy(data, values, count * ctn_dtype_size(dtype));
    c.value.host = data;
    return add_constant(b, name, &c);
}

static ctn_status constant_node(builder *b, const ctn__onnx_node *node)
{
    const Onnx__NodeProto *n = node->proto;
    if (n->n_output < 1)
        return ctn_fail(CTN_EFORMAT, "onnx_open: %s: a Constant has no output", b->model->path);
    const char *name = n->output[0];
    const Onnx__AttributeProto *a = NULL;
    if ((a = ctn__onnx_attr(node, "value")) && a->t) return tensor_constant(b, name, a->t);
    if ((a = ctn__onnx_attr(node, "value_int"))) return list_constant(b, name, CTN_I64, -1, &a->i);
    if ((a = ctn__onnx_attr(node, "value_float")))
        return list_constant(b, name, CTN_F32, -1, &a->f);
    if ((a = ctn__onnx_attr(node, "value_ints")))
        return list_constant(b, name, CTN_I64, (int64_t)a->n_ints, a->ints);
    if ((a = ctn__onnx_attr(node, "value_floats")))
        return list_constant(b, name, CTN_F32, (int64_t)a->n_floats, a->floats);
    return ctn_fail(CTN_EUNSUPPORTED,
                    "onnx_open: %s: Constant '%s' is neither a tensor nor a number", b->model->path,
                    name);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static ctn_status build_nodes(builder *b, ctn__onnx_graph *g, size_t n,
                              Onnx__NodeProto *const *nodes, const ctn__onnx_node *caller);

static int *slot_list(builder *b, size_t n)
{
    enum { NAME = 32 }; /* bytes that stand for the work and memory of each name */
    if (ctn__onnx_spend(b->budget, 0, ctn__mul(n, NAME)) < 0) return NULL;
    return ctn__arena_zero(&b->model->arena, (n + 1) * sizeof(int));
}

static ctn_status build_graph(builder *b, ctn__onnx_graph *g, const Onnx__GraphProto *p,
                              const ctn__onnx_node *caller)
{
    const int first = b->model->slots;
    g->in = slot_list(b, p->n_input);
    g->out = slot_list(b, p->n_output);
    if (!g->in || !g->out) return ctn_error_status();
    CTN_TRY(ctn__onnx_spend(b->budget, (int64_t)p->n_initializer, 0));
    if (p->n_sparse_initializer > 0)
        return ctn_fail(CTN_EUNSUPPORTED, "onnx_open: %s has sparse weights", b->model->path);
    for (size_t i = 0; i < p->n_initializer; i++)
        CTN_TRY(tensor_constant(b, text(p->initializer[i]->name), p->initializer[i]));
    for (size_t i = 0; i < p->n_input; i++) {
        const char *name = text(p->input[i]->name);
        const int slot = find_name(b, name); /* older files list their weights as inputs too */
        if (slot >= first && b->constant_of.at[slot] >= 0) continue;
        if (b->depth == 0 && !ctn__vec_push(&b->inputs, i)) return CTN_ENOMEM;
        CTN_TRY(new_slot(b, name, &g->in[g->nin++]));
    }
    CTN_TRY(build_nodes(b, g, p->n_node, p->node, caller));
    for (size_t i = 0; i < p->n_output && b->refused.n == 0; i++)
        CTN_TRY(use_name(b, text(p->output[i]->name), "an output", &g->out[g->nout++]));
    return CTN_OK;
}

static ctn_status inner_graph(builder *b, ctn__onnx_graph *g, const Onnx__GraphProto *p,
                              const ctn__onnx_node *caller)
{
    const size_t names = b->names.n;
    CTN_TRY(build_graph(b, g, p, caller));
    forget_names(b, names);
    return CTN_OK;
}

static int order_of(const Onnx__FunctionProto *f, const char *name, const char *domain,
                    const char *overload)
{
    int order = strcmp(text(f->name), text(name));
    if (order == 0) order = strcmp(text(f->domain), text(domain));
    return order ? order : strcmp(text(f->overload), text(overload));
}

static int compare_functions(const void *a, const void *b)
{
    const Onnx__FunctionProto *const *f = a, *const *g = b;
    return order_of(*f, (*g)->name, (*g)->domain, (*g)->overload);
}

static ctn_status sort_functions(builder *b)
{
    const Onnx__ModelProto *m = b->model->proto;
    b->function = ctn__arena_get(&b->model->arena, (m->n_functions + 1) * sizeof *b->function);
    if (!b->function) return CTN_ENOMEM;
    for (size_t i = 0; i < m->n_functions; i++) {
        b->function[i] = m->functions[i];
        CTN_TRY(ctn__onnx_check_attrs(b->model->path, text(m->functions[i]->name),
                                      m->functions[i]->n_attribute_proto,
                                      m->functions[i]->attribute_proto));
    }
    qsort(b->function, m->n_functions, sizeof *b->function, compare_functions);
    for (size_t i = 1; i < m->n_functions; i++)
        if (compare_functions(&b->function[i - 1], &b->function[i]) == 0)
            return ctn_fail(CTN_EFORMAT, "onnx_open: %s has two functions '%s'", b->model->path,
                            text(b->function[i]->name));
    return CTN_OK;
}

static const Onnx__FunctionProto *find_function(const builder *b, const Onnx__NodeProto *n)
{
    size_t low = 0, high = b->model->proto->n_functions;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        const int order = order_of(b->function[mid], n->op_type, n->domain, n->overload);
        if (order == 0) return b->function[mid];
        if (order > 0) high = mid;
        else low = mid + 1;
    }
    return NULL;
}

static ctn_status find_opset(builder *b, size_t n, Onnx__OperatorSetIdProto *const *sets)
{
    b->opset = CTN__ONNX_NEWEST; /* for models that only use ops of other domains */
    for (size_t i = 0; i < n; i++) {
        const char *domain = text(sets[i]->domain);
        if (*domain == 0 || strcmp(domain, "ai.onnx") == 0) b->opset = sets[i]->version;
    }
    if (b->opset < CTN__ONNX_OLDEST || b->opset > CTN__ONNX_NEWEST)
        return ctn_fail(CTN_EUNSUPPORTED, "onnx_open: %s uses opset %lld, expected %d to %d",
                        b->model->path, (long long)b->opset, CTN__ONNX_OLDEST, CTN__ONNX_NEWEST);
    return CTN_OK;
}

static ctn_status build_function(builder *b, ctn__onnx_node *node)
{
    const Onnx__FunctionProto *f = node->function;
    ctn__onnx_graph *g = &node->body[0];
    const size_t names = b->names.n, from = b->from;
    const int64_t opset = b->opset;
    g->in = slot_list(b, f->n_input);
    g->out = slot_list(b, f->n_output);
    if (!g->in || !g->out) return ctn_error_status();
    b->from = names;
    if (f->n_opset_import > 0) CTN_TRY(find_opset(b, f->n_opset_import, f->opset_import));
    for (size_t i = 0; i < f->n_input; i++)
        CTN_TRY(new_slot(b, text(f->input[i]), &g->in[g->nin++]));
    CTN_TRY(build_nodes(b, g, f->n_node, f->node, node));
    for (size_t i = 0; i < f->n_output && b->refused.n == 0; i++)
        CTN_TRY(use_name(b, text(f->output[i]), "an output", &g->out[g->nout++]));
    forget_names(b, names);
    b->from = from;
    b->opset = opset;
    return CTN_OK;
}

/* Statistics of data, which our own export writes as f64, are cast where they are used. */
static bool is_statistic(const ctn__onnx_constant *c, const ctn__onnx_op *op)
{
    return c->value.dtype == CTN_F64 && strcmp(op->name, "Cast") == 0;
}

static void note_use(builder *b, const ctn__onnx_node *node, int i)
{
    const int k = b->constant_of.at[node->in[i]];
    if (k < 0) return;
    const uint32_t bit = i < 32 ? 1u << i : 0;
    const ctn__onnx_op *op = node->op;
    ctn__onnx_constant *c = &b->model->constants.at[k];
    b->model->norms |= (op->states & bit) != 0;
    c->uses |= op->weights & bit                         ? CTN__ONNX_USE_WEIGHT
               : op->hosts & bit                         ? CTN__ONNX_USE_HOST
               : op->states & bit || is_statistic(c, op) ? CTN__ONNX_USE_STATE
                                                         : CTN__ONNX_USE_PLAIN;
}

/* The inner graphs of a node. They are built before its outputs get names. */
static ctn_status build_bodies(builder *b, ctn__onnx_node *node)
{
    static const char *const attr[][2] = {{"then_branch", "else_branch"}, {"body", NULL}};
    if (node->function) return build_function(b, node);
    const int which = strcmp(node->op->name, "If") != 0;
    if (which && strcmp(node->op->name, "Loop") != 0 && strcmp(node->op->name, "Scan") != 0 &&
        strcmp(node->op->name, "SequenceMap") != 0)
        return CTN_OK;
    for (int i = 0; i < 2 && attr[which][i]; i++) {
        const Onnx__AttributeProto *a = ctn__onnx_attr(node, attr[which][i]);
        if (!a || !a->g)
            return ctn_fail(CTN_EFORMAT, "onnx_open: %s: %s '%s' has no %s", b->model->path,
                            node->op->name, text(node->proto->name), attr[which][i]);
        CTN_TRY(inner_graph(b, &node->body[i], a->g, node->caller));
    }
    return CTN_OK;
}

static ctn_status build_node(builder *b, ctn__onnx_node *node)
{
    const Onnx__NodeProto *p = node->proto;
    char who[300];
    snprintf(who, sizeof who, "%s '%s'", text(p->op_type), text(p->name));
    node->opset = b->opset;
    node->in = slot_list(b, p->n_input);
    node->out = slot_list(b, p->n_output);
    if (!node->in || !node->out) return ctn_error_status();
    for (size_t i = 0; i < p->n_input; i++) {
        node->in[node->nin++] = -1;
        if (!*text(p->input[i])) continue;
        CTN_TRY(use_name(b, p->input[i], who, &node->in[i]));
        note_use(b, node, (int)i);
    }
    if (b->depth >= CTN__ONNX_DEPTH)
        return ctn_fail(CTN_EFORMAT, "onnx_open: %s: graphs and functions are nested too deeply",
                        b->model->path);
    b->depth++;
    CTN_TRY(build_bodies(b, node));
    b->depth--;
    for (size_t i = 0; i < p->n_output; i++) {
        node->out[node->nout++] = -1;
        if (*text(p->output[i])) CTN_TRY(new_slot(b, p->output[i], &node->out[i]));
    }
    return CTN_OK;
}

static const ctn__onnx_op call_function = {.name = "function", .convert = ctn__onnx_do_function};

/* Constants, and Identity of constants, are not nodes of a call. */
static ctn_status build_nodes(builder *b, ctn__onnx_graph *g, size_t n,
                              Onnx__NodeProto *const *nodes, const ctn__onnx_node *caller)
{
    CTN_TRY(ctn__onnx_spend(b->budget, (int64_t)n, ctn__mul(n, sizeof *g->node)));
    g->node = ctn__arena_zero(&b->model->arena, ctn__mul(n + 1, sizeof *g->node));
    if (!g->node) return CTN_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const Onnx__NodeProto *p = nodes[i];
        ctn__onnx_node *node = &g->node[g->nnode];
        CTN_TRY(
            ctn__onnx_check_attrs(b->model->path, text(p->op_type), p->n_attribute, p->attribute));
        *node = (ctn__onnx_node){.proto = p, .caller = caller, .function = find_function(b, p)};
        node->op = node->function ? &call_function : ctn__onnx_find(p->domain, text(p->op_type));
        if (!node->op) {
            CTN_TRY(refuse(b, p));
            CTN_TRY(ctn__onnx_spend(b->budget, (int64_t)p->n_output, 0));
            for (size_t k = 0; k < p->n_output; k++) { /* so that the search can go on */
                int slot;
                CTN_TRY(new_slot(b, text(p->output[k]), &slot));
            }
            continue;
        }
        if (strcmp(node->op->name, "Constant") == 0) {
            CTN_TRY(constant_node(b, node));
            continue;
        }
        if (strcmp(node->op->name, "Identity") == 0 && p->n_input == 1 && p->n_output == 1) {
            const int slot = find_name(b, text(p->input[0]));
            if (slot >= 0 && b->constant_of.at[slot] >= 0) {
                CTN_TRY(add_name(b, text(p->output[0]), slot));
                continue;
            }
        }
        CTN_TRY(build_node(b, node));
        g->nnode++;
    }
    return CTN_OK;
}

/* ---- inputs and outputs ---------------------------------------------------------------------- */

static void describe(ctn_onnx_port *port, const Onnx__ValueInfoProto *v)
{
    *port = (ctn_onnx_port){.name = text(v->name), .ndim = -1};
    const Onnx__TypeProto *type = v->type;
    if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) return;
    port->dtype = ctn__onnx_dtype(type->tensor_type->elem_type);
    const Onnx__TensorShapeProto *shape = type->tensor_type->shape;
    if (!shape || shape->n_dim > CTN_MAX_DIMS) return;
    port->ndim = (int)shape->n_dim;
    for (int i = 0; i < port->ndim; i++) {
        const Onnx__TensorShapeProto__Dimension *d = shape->dim[i];
        const bool fixed = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        port->dim[i] = fixed && d->dim_value > 0 ? d->dim_value : -1;
    }
}

static ctn_status describe_all(const builder *b)
{
    ctn__onnx_model *m = b->model;
    const Onnx__GraphProto *p = m->proto->graph;
    m->in = ctn__arena_zero(&m->arena, (p->n_input + 1) * sizeof *m->in);
    m->out = ctn__arena_zero(&m->arena, (p->n_output + 1) * sizeof *m->out);
    m->in_widened = ctn__arena_zero(&m->arena, p->n_input + 1);
    if (!m->in || !m->out || !m->in_widened) return CTN_ENOMEM;
    for (size_t i = 0; i < b->inputs.n; i++) {
        const Onnx__ValueInfoProto *v = p->input[b->inputs.at[i]];
        if (v->type && v->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
            m->in_widened[i] = ctn__onnx_widened(v->type->tensor_type->elem_type);
        describe(&m->in[i], v);
    }
    for (size_t i = 0; i < p->n_output; i++) describe(&m->out[i], p->output[i]);
    return CTN_OK;
}

/* ---- variables ------------------------------------------------------------------------------- */

/* Parameters of modules have dotted names; constants that a program wrote do not. */
static bool is_of_module(const ctn__onnx_constant *c)
{
    return c->value.ndim > 0 && c->name[0] != '/' && strchr(c->name, '.');
}

static int compare_places(const void *a, const void *b)
{
    const ctn__onnx_place *p = &(*(const ctn__onnx_constant *const *)a)->place;
    const ctn__onnx_place *q = &(*(const ctn__onnx_constant *const *)b)->place;
    if (p->device != q->device) return p->device < q->device ? -1 : 1;
    if (p->file != q->file) return p->file < q->file ? -1 : 1;
    return p->begin < q->begin ? -1 : p->begin > q->begin;
}

/* Pays for values that are used more than once: a tensor of a function that is called often, or
 * many tensors with the same place in a file. Others take about as much memory as the file. */
static ctn_status pay_for_copies(builder *b)
{
    const ctn__onnx_model *m = b->model;
    const ctn__onnx_constant **c = ctn__malloc((m->constants.n + 1) * sizeof *c);
    size_t n = 0;
    ctn_status st = c ? CTN_OK : CTN_ENOMEM;
    for (size_t i = 0; i < m->constants.n && c; i++)
        if (m->constants.at[i].proto) c[n++] = &m->constants.at[i];
    if (n > 0) qsort(c, n, sizeof *c, compare_places);
    uint64_t end = 0;
    for (size_t i = 0; i < n && st == CTN_OK; i++) {
        const ctn__onnx_place *p = &c[i]->place;
        if (i == 0 || p->device != c[i - 1]->place.device || p->file != c[i - 1]->place.file)
            end = 0;
        if (p->begin < end)
            st = ctn__onnx_spend(b->budget, 0,
                                 (size_t)ctn__onnx_count(&c[i]->value) *
                                     ctn_dtype_size(c[i]->value.dtype));
        if (p->end > end) end = p->end;
    }
    ctn__free(c);
    return st;
}

/* A float constant is a variable, unless an op needs it while it is recorded, or it is one number
 * that no op has as a weight and that has no name of a parameter. */
static ctn_status choose_variables(ctn__onnx_model *m)
{
    for (size_t i = 0; i < m->constants.n; i++) {
        ctn__onnx_constant *c = &m->constants.at[i];
        const int64_t n = ctn__onnx_count(&c->value);
        const bool many =
            (n > 1 || is_of_module(c)) && c->uses & (CTN__ONNX_USE_PLAIN | CTN__ONNX_USE_STATE);
        const bool var = c->proto && ctn__is_float(c->value.dtype) && n > 0 &&
                         !(c->uses & CTN__ONNX_USE_HOST) &&
                         (many || c->uses & (CTN__ONNX_USE_WEIGHT | CTN__ONNX_USE_STATE));
        if (var) c->var = m->vars++;
        else if (c->proto) CTN_TRY(ctn__onnx_load(&c->value, &m->arena, m->path, c->proto));
    }
    return CTN_OK;
}

static void builder_free(builder *b)
{
    for (size_t i = 0; i < b->refused.n; i++) ctn__text_free(&b->refused.at[i].nodes);
    ctn__vec_free(&b->refused);
    ctn__vec_free(&b->names);
    ctn__vec_free(&b->constant_of);
    ctn__vec_free(&b->inputs);
    ctn__free(b);
}

ctn_status ctn__onnx_build(ctn__onnx_model *m, ctn__onnx_budget *budget)
{
    const Onnx__ModelProto *p = m->proto;
    if (!p->graph) return ctn_fail(CTN_EFORMAT, "onnx_open: %s has no graph", m->path);
    builder *b = ctn__calloc(1, sizeof *b);
    if (!b) return CTN_ENOMEM;
    b->model = m;
    b->budget = budget;
    for (int i = 0; i < BUCKETS; i++) b->bucket[i] = -1;
    ctn_status st = find_opset(b, p->n_opset_import, p->opset_import);
    if (st == CTN_OK) st = sort_functions(b);
    if (st == CTN_OK) st = build_graph(b, &m->graph, p->graph, NULL);
    if (st == CTN_OK && b->refused.n > 0) st = refusal(b);
    if (st == CTN_OK) st = describe_all(b);
    if (st == CTN_OK) st = pay_for_copies(b);
    if (st == CTN_OK) st = choose_variables(m);
    builder_free(b);
    return st;
}

#endif
