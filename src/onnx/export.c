/* SPDX-License-Identifier: Apache-2.0
 *
 * Export: from the recorded graph of a scope to an ONNX model. Nodes are marked from the outputs
 * back to the inputs, then written in the order of recording, each by the emitter of its op
 * (emit.def). Nothing of the graph is computed. export_file.c writes the file.
 */
#include "onnx/export.h"

#ifdef CTN_HAVE_PROTOBUFC

#include "nn/nn.h"

enum { OLDEST = 18, NEWEST = 21 };

static ctn_status no_memory(void)
{
    return ctn_fail(CTN_ENOMEM, "onnx_export: out of memory");
}

/* ---- names ----------------------------------------------------------------------------------- */

static const char *name_of(const char *const *names, int i, const char *usual, char *buf, size_t n)
{
    for (int k = 0; names && k <= i; k++)
        if (!names[k]) names = NULL;
    if (names) return names[i];
    if (i == 0) return usual;
    snprintf(buf, n, "%s%d", usual, i + 1);
    return buf;
}

static bool is_taken(const ctn__emit *e, const char *name)
{
    for (size_t i = 0; i < e->stored.n; i++)
        if (strcmp(e->stored.at[i]->name, name) == 0) return true;
    return false;
}

/* Its first name in the module. A variable that is not in it, or without one, has its own name,
 * with a number if there are several of that name. */
const char *ctn__emit_var_name(ctn__emit *e, const ctn_var *v)
{
    for (int i = 0; i < e->names.n; i++)
        if (e->names.var[i] == v) return e->names.name[i];
    const char *name = v->name;
    for (int k = 2; name && is_taken(e, name); k++)
        name = ctn__arena_printf(&e->arena, "%s_%d", v->name, k);
    if (!name) e->st = no_memory();
    return name ? name : v->name;
}

/* "conv1.bias" of "conv1.weight". */
const char *ctn__emit_bias_name(ctn__emit *e, const ctn_var *weight)
{
    const char *w = ctn__emit_var_name(e, weight), *end = "weight";
    const size_t n = strlen(w), m = strlen(end);
    const bool usual = n >= m && strcmp(w + n - m, end) == 0;
    const char *name = usual ? ctn__arena_printf(&e->arena, "%.*sbias", (int)(n - m), w)
                             : ctn__arena_printf(&e->arena, "%s.bias", w);
    if (!name) e->st = no_memory();
    return name ? name : w;
}

char *ctn__emit_stored(ctn__emit *e, const char *name, const ctn_desc *d, const void *data)
{
    Onnx__TensorProto *t = ctn__emit_tensor(e, name, d, data);
    if (!t || !ctn__vec_push(&e->stored, t)) {
        if (e->st == CTN_OK) e->st = no_memory();
        return NULL;
    }
    return t->name;
}

/* ---- which nodes ----------------------------------------------------------------------------- */

/* The tensors that the emitter of n reads, at most CTN_MAX_IN. Patterns that become one ONNX
 * operator do not read what lies between. */
static int reads_of(const ctn__emit *e, const ctn__node *n, ctn_tensor **out)
{
    ctn__batch_norm_of b;
    ctn__rnn_of r;
    int k = 0;
    const ctn__node *conv = ctn__emit_folds(e, n);
    if (conv) {
        out[k++] = conv->in[0];
        return k;
    }
    if (ctn__emit_batch_norm_of(n, &b)) {
        ctn_tensor *all[] = {b.x, b.scale, b.shift, b.mean, b.var};
        for (; k < 5; k++) out[k] = all[k];
        return k;
    }
    const bool rnn = ctn__emit_rnn_of(n, &r);
    if (rnn) {
        out[k++] = r.x;
        out[k++] = r.weight;
        if (r.bias) out[k++] = r.bias;
    }
    const ctn__emit_entry *entry = ctn__emit_find(n->op);
    const uint32_t reads = entry && entry->reads ? entry->reads : UINT32_MAX;
    for (int i = rnn ? 1 : 0; i < n->nin; i++)
        if (reads & CTN_OPERAND(i)) out[k++] = n->in[i];
    return k;
}

/* Mark the nodes that the outputs need. Inputs already have names, and nothing before them is
 * needed. With `count`, reads are counted. */
static void mark(ctn__emit *e, const ctn_tensors *outputs, bool count)
{
    const ctn_context *ctx = e->ctx;
    unsigned char *need = e->want + ctx->nodes.n; /* by the id of a tensor */
    ctn_tensor *in[CTN_MAX_IN + 3];
    memset(e->want, 0, ctx->nodes.n + ctx->tensors.n);
    for (int i = 0; i < outputs->n; i++) {
        need[outputs->t[i]->id] = 1;
        if (count) e->uses[outputs->t[i]->id]++;
    }
    for (size_t i = ctx->nodes.n; i-- > 0;) {
        const ctn__node *n = ctx->nodes.at[i];
        bool wanted = false;
        for (int k = 0; k < n->nout; k++)
            wanted = wanted || (need[n->out[k]->id] && !e->name[n->out[k]->id]);
        if (!wanted) continue;
        e->want[i] = 1;
        const int reads = n->event == CTN__EV_OP ? reads_of(e, n, in) : 0;
        for (int k = 0; k < reads; k++) {
            need[in[k]->id] = 1;
            if (count) e->uses[in[k]->id]++;
        }
    }
}

/* One error for all ops that have no form in ONNX. */
static ctn_status check_ops(const ctn__emit *e)
{
    ctn__text missing = {0};
    ctn_status st = CTN_OK;
    int count = 0;
    for (size_t i = 0; i < e->ctx->nodes.n; i++) {
        const ctn__node *n = e->ctx->nodes.at[i];
        if (!e->want[i] || (n->event == CTN__EV_OP && ctn__emit_find(n->op))) continue;
        const char *name = n->event == CTN__EV_OP ? n->op->name : "gradient";
        bool known = false;
        for (size_t k = 0; k < i && !known; k++) {
            const ctn__node *m = e->ctx->nodes.at[k];
            known = e->want[k] && m->event == n->event && m->op == n->op;
        }
        if (!known) ctn__text_add(&missing, "%s%s (%s)", count++ ? ", " : "", name, n->at);
    }
    if (missing.failed) st = no_memory();
    else if (count > 0)
        st = ctn_fail(CTN_EUNSUPPORTED, "onnx_export: these ops have no form in ONNX: %s%s",
                      missing.s, e->ctx->training ? "; the context is in training mode" : "");
    ctn__text_free(&missing);
    return st;
}

/* ---- leaves ---------------------------------------------------------------------------------- */

ctn_status ctn__emit_ready(const ctn_tensor *t)
{
    const ctn_var *v = t->var;
    if (!v) return CTN_OK;
    if (t->version != v->version)
        return ctn_fail(CTN_EUNSUPPORTED,
                        "onnx_export: the graph reads %s, which it has overwritten at %s", v->name,
                        v->written_at ? v->written_at : "?");
    return ctn__pool_settle(v->pool);
}

/* The value of a leaf that is not an input: an initializer or a constant. */
static ctn_status write_leaf(ctn__emit *e, ctn_tensor *t)
{
    char text[128];
    if (t->var) {
        const ctn_var *v = t->var;
        CTN_TRY(ctn__emit_ready(t));
        if (!ctn__emit_all_fixed(e, &v->d))
            return ctn_fail(
                CTN_EARG,
                "onnx_export: %s is %s, so any_batch and any_length must be other prime "
                "numbers: their multiples are sizes that are open in the model",
                v->name, ctn__shape_text(&v->d, text, sizeof text));
        e->name[t->id] = ctn__emit_stored(e, ctn__emit_var_name(e, v), &v->d, v->data);
        return e->st;
    }
    if (!ctn__emit_all_fixed(e, &t->d))
        return ctn_fail(CTN_EUNSUPPORTED,
                        "onnx_export: the data %s given at %s is not an input of the model, and "
                        "its size depends on sizes that are open in the model",
                        ctn__shape_text(&t->d, text, sizeof text), t->at);
    ctn_desc plain = t->d;
    ctn__plain(&plain);
    void *copy = ctn__malloc(ctn__bytes(&plain) + 1);
    if (!copy) return no_memory();
    ctn__copy_strided(copy, &plain, t->data, &t->d);
    e->op = "data";
    e->name[t->id] = ctn__emit_array(e, plain.dtype, plain.ndim, plain.dim, copy);
    ctn__free(copy);
    return e->st;
}

/* Two leaves of one variable, one of which carries gradients, have one name. */
static char *same_variable(const ctn__emit *e, const ctn_tensor *t)
{
    for (uint32_t i = 0; t->var && i < e->ctx->tensors.n; i++) {
        const ctn_tensor *other = e->ctx->tensors.at[i];
        if (other->var == t->var && other->version == t->version && e->name[i]) return e->name[i];
    }
    return NULL;
}

static ctn_status need_leaf(ctn__emit *e, ctn_tensor *t)
{
    if (e->name[t->id] || t->node) return CTN_OK;
    e->name[t->id] = same_variable(e, t);
    return e->name[t->id] ? CTN_OK : write_leaf(e, t);
}

/* ---- the graph ------------------------------------------------------------------------------- */

static ctn_status write_nodes(ctn__emit *e)
{
    ctn_tensor *in[CTN_MAX_IN + 3];
    for (size_t i = 0; i < e->ctx->nodes.n; i++) {
        const ctn__node *n = e->ctx->nodes.at[i];
        if (!e->want[i]) continue;
        const int reads = reads_of(e, n, in);
        for (int k = 0; k < reads; k++) CTN_TRY(need_leaf(e, in[k]));
        const ctn__emit_entry *entry = ctn__emit_find(n->op);
        e->op = n->op->name;
        entry->emit(e, n, entry->word);
        if (e->st < 0) {
            ctn_error_trace(e->st, n->at, 0, n->op->name);
            return e->st;
        }
    }
    return CTN_OK;
}

/* The size of the first dimension of an input that is a mark, when the model runs. */
static ctn_status find_sizes(ctn__emit *e, const ctn_tensors *inputs)
{
    for (int k = 0; k < CTN__ONNX_MARKS; k++) {
        ctn__onnx_any *a = &e->any[k];
        for (int i = 0; i < inputs->n && a->mark > 0 && !a->value; i++)
            for (int d = 0; d < inputs->t[i]->d.ndim && !a->value; d++) {
                if (inputs->t[i]->d.dim[d] != a->mark) continue;
                e->op = a->name;
                a->value = CTN__NODE(e, "Shape", e->name[inputs->t[i]->id]);
                ctn__emit_int(e, "start", d);
                ctn__emit_int(e, "end", d + 1);
            }
        if (a->mark > 0 && !a->value && e->st == CTN_OK)
            return ctn_fail(CTN_EARG, "onnx_export: any_%s is %lld, but no input has that size",
                            a->name, (long long)a->mark);
    }
    return e->st;
}

/* Outputs get their names: the node that made the value, and all that read it, use the name. A
 * value that already has one (an input, a variable, an earlier output) is copied. */
static ctn_status name_output(ctn__emit *e, ctn_tensor *t, char *name)
{
    char *was = e->name[t->id];
    if (was[0] != '/') {
        e->op = "output";
        char *copy = CTN__NODE(e, "Identity", was);
        if (copy) e->nodes.at[e->nodes.n - 1]->output[0] = name;
        return e->st;
    }
    for (size_t i = 0; i < e->nodes.n; i++) {
        Onnx__NodeProto *n = e->nodes.at[i];
        for (size_t k = 0; k < n->n_input; k++)
            if (n->input[k] == was) n->input[k] = name;
        for (size_t k = 0; k < n->n_output; k++)
            if (n->output[k] == was) n->output[k] = name;
    }
    for (size_t i = 0; i < e->ctx->tensors.n; i++)
        if (e->name[i] == was) e->name[i] = name;
    return CTN_OK;
}

static bool is_prime(int64_t n)
{
    for (int64_t k = 2; k * k <= n; k++)
        if (n % k == 0) return false;
    return n > 1;
}

static ctn_status begin(ctn__emit *e, const ctn_onnx_export_opt *opt, ctn_context *ctx)
{
    CTN_TRY(ctn__opt("onnx_export", &e->opt, sizeof e->opt, opt));
    e->ctx = ctx;
    e->opset = e->opt.opset ? e->opt.opset : OLDEST;
    if (e->opset < OLDEST || e->opset > NEWEST)
        return ctn_fail(CTN_EARG, "onnx_export: opset is %d, expected %d to %d", e->opset, OLDEST,
                        NEWEST);
    e->any[0] = (ctn__onnx_any){.mark = e->opt.any_batch, .name = "batch"};
    e->any[1] = (ctn__onnx_any){.mark = e->opt.any_length, .name = "length"};
    for (int k = 0; k < CTN__ONNX_MARKS; k++)
        if (e->any[k].mark != 0 && !is_prime(e->any[k].mark))
            return ctn_fail(CTN_EARG, "onnx_export: any_%s is %lld, expected 0 or a prime number",
                            e->any[k].name, (long long)e->any[k].mark);
    if (e->opt.module) CTN_TRY(ctn__module_vars(e->opt.module, &e->names));
    const size_t tensors = ctx->tensors.n;
    e->name = ctn__calloc(tensors + 1, sizeof *e->name);
    e->uses = ctn__calloc(tensors + 1, sizeof *e->uses);
    e->want = ctn__calloc(ctx->nodes.n + tensors + 1, 1);
    return e->name && e->uses && e->want ? CTN_OK : no_memory();
}

static void end(ctn__emit *e)
{
    ctn__free(e->name);
    ctn__free(e->uses);
    ctn__free(e->want);
    ctn__vec_free(&e->nodes);
    ctn__vec_free(&e->stored);
    ctn__vec_free(&e->made);
    ctn__vec_free(&e->visible);
    ctn__arena_free(&e->arena);
}

/* The model keeps its names apart: variables, inputs and outputs. */
static ctn_status check_names(const ctn__emit *e, const ctn__onnx_ends *ends)
{
    for (int i = 0; i < ends->n_in + ends->n_out; i++) {
        const char *name = ends->name[i];
        bool twice = is_taken(e, name);
        for (int k = 0; k < i; k++) twice = twice || strcmp(ends->name[k], name) == 0;
        if (twice) return ctn_fail(CTN_EARG, "onnx_export: two values are called '%s'", name);
    }
    return CTN_OK;
}

static ctn_status name_ends(ctn__emit *e, ctn__onnx_ends *ends)
{
    char buf[32];
    for (int i = 0; i < ends->n_in + ends->n_out; i++) {
        const bool in = i < ends->n_in;
        const char *s = in ? name_of(e->opt.in_names, i, "input", buf, sizeof buf)
                           : name_of(e->opt.out_names, i - ends->n_in, "output", buf, sizeof buf);
        ends->name[i] = ctn__arena_str(&e->arena, s);
        if (!ends->name[i]) return no_memory();
        if (ends->name[i][0] == 0 || ends->name[i][0] == '/')
            return ctn_fail(CTN_EARG, "onnx_export: '%s' is not a name for an %s", s,
                            in ? "input" : "output");
    }
    return CTN_OK;
}

/* With path NULL, *check receives the hash of the graph. Otherwise the model is written, and if
 * check is not NULL, the graph must have that hash. */
static ctn_status write_graph(ctn__emit *e, const char *path, const ctn_tensors *inputs,
                              const ctn_tensors *outputs, ctn__hash128 *check)
{
    ctn__onnx_ends ends = {.n_in = inputs->n, .n_out = outputs->n};
    CTN_TRY(name_ends(e, &ends));
    for (int i = 0; i < inputs->n; i++) {
        ends.d[i] = &inputs->t[i]->d;
        e->name[inputs->t[i]->id] = ends.name[i];
    }
    const int fold = e->opt.fold_batch_norm;
    e->opt.fold_batch_norm = 0; /* whether to fold depends on who reads the convolution */
    mark(e, outputs, true);
    e->opt.fold_batch_norm = fold;
    if (fold) mark(e, outputs, false);
    CTN_TRY(check_ops(e));
    CTN_TRY(find_sizes(e, inputs));
    CTN_TRY(write_nodes(e));
    for (int i = 0; i < outputs->n; i++) {
        CTN_TRY(need_leaf(e, outputs->t[i]));
        ends.d[inputs->n + i] = &outputs->t[i]->d;
        CTN_TRY(name_output(e, outputs->t[i], ends.name[inputs->n + i]));
    }
    CTN_TRY(check_names(e, &ends));
    if (!check) return ctn__onnx_write(e, path, &ends);
    ctn__hash128 hash;
    CTN_TRY(ctn__onnx_hash(e, &hash));
    if (path && memcmp(&hash, check, sizeof hash) != 0)
        return ctn_fail(CTN_EUNSUPPORTED,
                        "onnx_export: with another batch size the graph has other numbers or ops, "
                        "so no model takes any; set the batch size in the options");
    *check = hash;
    return path ? ctn__onnx_write(e, path, &ends) : CTN_OK;
}

static ctn_status check_list(const ctn_tensors *l, const char *what)
{
    if (l->n < 1 || l->n > CTN_MAX_TENSORS)
        return ctn_error_status() < 0
                   ? ctn_error_status()
                   : ctn_fail(CTN_EARG, "onnx_export: got %d %s, expected 1 to %d", l->n, what,
                              CTN_MAX_TENSORS);
    for (int i = 0; i < l->n; i++) {
        if (!l->t[i])
            return ctn_error_status() < 0
                       ? ctn_error_status()
                       : ctn_fail(CTN_EARG, "onnx_export: number %d of the %s is NULL", i, what);
        CTN_TRY(ctn__usable(l->t[i], "onnx_export", ""));
    }
    return CTN_OK;
}

static ctn_status write_scope(const char *path, const ctn_tensors *inputs,
                              const ctn_tensors *outputs, const ctn_onnx_export_opt *opt,
                              ctn__hash128 *check)
{
    ctn__emit e = {.nowhere = ONNX__ATTRIBUTE_PROTO__INIT};
    CTN_TRY(check_list(inputs, "inputs"));
    CTN_TRY(check_list(outputs, "outputs"));
    CTN_TRY(ctn__need_scope(outputs->t[0]->ctx, "onnx_export"));
    ctn_status st = begin(&e, opt, outputs->t[0]->ctx);
    if (st == CTN_OK) st = write_graph(&e, path, inputs, outputs, check);
    end(&e);
    return st;
}

ctn_status ctn_onnx_export(const char *path, ctn_tensors inputs, ctn_tensors outputs,
                           const ctn_onnx_export_opt *opt)
{
    if (!path) return ctn_fail(CTN_EARG, "onnx_export: path is NULL");
    return write_scope(path, &inputs, &outputs, opt, NULL);
}

/* ---- modules --------------------------------------------------------------------------------- */

static bool divides(int64_t prime, int n, const ctn_field *in, const ctn_vars *vars)
{
    for (int i = 0; i < n; i++)
        for (int d = 0; d < in[i].ndim; d++)
            if (in[i].shape[d] % prime == 0) return true;
    for (int i = 0; i < vars->n; i++)
        for (int d = 0; d < vars->var[i]->d.ndim; d++)
            if (vars->var[i]->d.dim[d] % prime == 0) return true;
    return false;
}

/* The next prime number of a list, from number *k on, that divides no size of the inputs and
 * variables; *k is then the one after it. */
static int64_t free_prime(int n, const ctn_field *in, const ctn_vars *vars, int *k)
{
    static const int64_t prime[] = {1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049};
    const int count = sizeof prime / sizeof *prime;
    while (*k < count - 1 && divides(prime[*k], n, in, vars)) ++*k;
    return prime[*k < count ? (*k)++ : count - 1];
}

/* An input of which nothing is read: all elements are one. */
static ctn_tensor *stand_in(ctn_context *ctx, const ctn_field *f, int64_t batch)
{
    static const int64_t nothing[CTN_MAX_DIMS];
    static const double zero;
    int64_t dims[CTN_MAX_DIMS] = {batch};
    if (f->ndim < 0 || f->ndim > CTN_MAX_DIMS - 1) {
        ctn_fail(CTN_EARG, "onnx_export: an input has %d dimensions, expected at most %d", f->ndim,
                 CTN_MAX_DIMS - 1);
        return NULL;
    }
    for (int i = 0; i < f->ndim; i++) dims[1 + i] = f->shape[i];
    return ctn_input_strided_at("the exported module", ctx, &zero, f->dtype, f->ndim + 1, dims,
                                nothing);
}

static ctn_status record(ctn_module *m, const char *path, int n, const ctn_field *in, int64_t batch,
                         const ctn_onnx_export_opt *o, ctn__hash128 *check)
{
    ctn_tensors x = {.n = n};
    for (int i = 0; i < n; i++) {
        x.t[i] = stand_in(m->ctx, &in[i], batch);
        if (!x.t[i]) return ctn_error_status();
    }
    ctn_tensors y = ctn_call_multi_at("the exported module", m, x);
    return y.n > 0 ? write_scope(path, &x, &y, o, check) : ctn_error_status();
}

static ctn_status record_scope(ctn_module *m, const char *path, int n, const ctn_field *in,
                               const ctn_onnx_export_opt *o, ctn__hash128 *check)
{
    CTN_TRY(ctn_scope_begin(m->ctx));
    const ctn_status st = record(m, path, n, in, o->batch > 0 ? o->batch : o->any_batch, o, check);
    const ctn_status ended = ctn_scope_end(m->ctx);
    return st < 0 ? st : ended;
}

/* A model for any batch size is recorded twice, with different sizes, and must come out the same:
 * then nothing in it depends on the size in a way that the model does not show. */
static ctn_status write_module(ctn_module *m, const char *path, int n, const ctn_field *in,
                               ctn_onnx_export_opt *o)
{
    ctn_vars vars = {0};
    ctn__hash128 check;
    int k = 0;
    if (o->batch > 0) return record_scope(m, path, n, in, o, NULL);
    CTN_TRY(ctn__module_vars(o->module, &vars));
    o->any_batch = free_prime(n, in, &vars, &k);
    CTN_TRY(record_scope(m, NULL, n, in, o, &check));
    o->any_batch = free_prime(n, in, &vars, &k);
    return record_scope(m, path, n, in, o, &check);
}

ctn_status ctn_onnx_export_module(ctn_module *m, const char *path, int n, const ctn_field *in,
                                  const ctn_onnx_export_opt *opt)
{
    ctn_onnx_export_opt o;
    if (!m || !path || !in || n < 1 || n > CTN_MAX_TENSORS)
        return ctn_fail(CTN_EARG, "onnx_export: needs a module, a path and 1 to %d inputs",
                        CTN_MAX_TENSORS);
    CTN_TRY(ctn__opt("onnx_export", &o, sizeof o, opt));
    o.struct_size = sizeof o;
    o.any_batch = 0;
    if (!o.module) o.module = m;
    const int training = ctn_context_set_training(m->ctx, 0);
    const int grad = ctn_context_set_grad(m->ctx, 0);
    const bool eager = m->ctx->eager;
    m->ctx->eager = false; /* the inputs have no values, so nothing may run */
    const ctn_status st = write_module(m, path, n, in, &o);
    m->ctx->eager = eager;
    ctn_context_set_grad(m->ctx, grad);
    ctn_context_set_training(m->ctx, training);
    return st;
}

#else

ctn_status ctn_onnx_export(const char *path, ctn_tensors inputs, ctn_tensors outputs,
                           const ctn_onnx_export_opt *opt)
{
    (void)path, (void)inputs, (void)outputs, (void)opt;
    return ctn_fail(CTN_EUNSUPPORTED, "onnx_export: this build has no protobuf-c");
}

ctn_status ctn_onnx_export_module(ctn_module *m, const char *path, int n, const ctn_field *in,
                                  const ctn_onnx_export_opt *opt)
{
    (void)m, (void)path, (void)n, (void)in, (void)opt;
    return ctn_fail(CTN_EUNSUPPORTED, "onnx_export: this build has no protobuf-c");
}

#endif
