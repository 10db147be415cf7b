/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts that ONNX graphs are made of (emit.h): nodes with their attributes, constants, sizes,
 * and the table of emitters.
 */
#include "onnx/emit.h"

#ifdef CTN_HAVE_PROTOBUFC

#include <stdarg.h>

/* ---- the table ------------------------------------------------------------------------------- */

#define CTN__EMIT(op, function, word, reads) {&ctn__op_##op, ctn__emit_##function, word, reads},
static const ctn__emit_entry table[] = {
#include "onnx/emit.def"
};
#undef CTN__EMIT

const ctn__emit_entry *ctn__emit_find(const ctn_op *op)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].op == op) return &table[i];
    return NULL;
}

/* ---- errors ---------------------------------------------------------------------------------- */

char *ctn__emit_fail(ctn__emit *e, const char *fmt, ...)
{
    char text[512];
    if (e->st < 0) return NULL;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    e->st = ctn_fail(CTN_EUNSUPPORTED, "onnx_export: %s: %s", e->op, text);
    return NULL;
}

static void *no_memory(ctn__emit *e)
{
    if (e->st == CTN_OK) e->st = ctn_fail(CTN_ENOMEM, "onnx_export: out of memory");
    return NULL;
}

static void *get(ctn__emit *e, size_t bytes)
{
    void *p = ctn__arena_zero(&e->arena, bytes);
    return p ? p : no_memory(e);
}

static char *text_of(ctn__emit *e, const char *s)
{
    char *p = ctn__arena_str(&e->arena, s);
    return p ? p : no_memory(e);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* A slash, which no name of a variable should begin with, keeps these names apart from those. */
static char *new_name(ctn__emit *e)
{
    char *s = ctn__arena_printf(&e->arena, "/%s_%lld", e->op, (long long)e->numbered++);
    return s ? s : no_memory(e);
}

char *ctn__emit_node(ctn__emit *e, const char *type, int nin, char *const *in)
{
    Onnx__NodeProto *n = get(e, sizeof *n);
    if (!n) return NULL;
    onnx__node_proto__init(n);
    n->op_type = text_of(e, type);
    n->name = new_name(e);
    n->input = get(e, (size_t)nin * sizeof *n->input + 1);
    n->output = get(e, CTN_MAX_OUT * sizeof *n->output);
    if (!n->op_type || !n->name || !n->input || !n->output) return NULL;
    n->n_input = (size_t)nin;
    for (int i = 0; i < nin; i++) n->input[i] = in[i] ? in[i] : n->name;
    while (n->n_input > 0 && n->input[n->n_input - 1][0] == 0) n->n_input--;
    n->n_output = 1;
    n->output[0] = n->name;
    if (!ctn__vec_push(&e->nodes, n)) return no_memory(e);
    return n->name;
}

static Onnx__NodeProto *last(const ctn__emit *e)
{
    return e->nodes.n > 0 ? e->nodes.at[e->nodes.n - 1] : NULL;
}

char *ctn__emit_more(ctn__emit *e)
{
    Onnx__NodeProto *n = last(e);
    char *name = new_name(e);
    if (n && name && n->n_output < CTN_MAX_OUT) n->output[n->n_output++] = name;
    return name;
}

static Onnx__AttributeProto *attribute(ctn__emit *e, const char *name,
                                       Onnx__AttributeProto__AttributeType type)
{
    enum { MOST = 8 };
    Onnx__NodeProto *n = last(e);
    Onnx__AttributeProto *a = get(e, sizeof *a);
    if (n && !n->attribute) n->attribute = get(e, MOST * sizeof *n->attribute);
    if (e->st < 0 || !a || !n || !n->attribute || n->n_attribute == MOST) return &e->nowhere;
    onnx__attribute_proto__init(a);
    a->name = text_of(e, name);
    a->has_type = 1;
    a->type = type;
    n->attribute[n->n_attribute++] = a;
    return a;
}

void ctn__emit_int(ctn__emit *e, const char *name, int64_t v)
{
    Onnx__AttributeProto *a = attribute(e, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    a->has_i = 1;
    a->i = v;
}

void ctn__emit_ints(ctn__emit *e, const char *name, int n, const int64_t *v)
{
    Onnx__AttributeProto *a = attribute(e, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    a->ints = get(e, (size_t)n * sizeof *v + 1);
    a->n_ints = a->ints ? (size_t)n : 0;
    if (a->ints) memcpy(a->ints, v, a->n_ints * sizeof *v);
}

void ctn__emit_float(ctn__emit *e, const char *name, double v)
{
    Onnx__AttributeProto *a = attribute(e, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    a->has_f = 1;
    a->f = (float)v;
}

void ctn__emit_text(ctn__emit *e, const char *name, const char *v)
{
    Onnx__AttributeProto *a = attribute(e, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    char *s = text_of(e, v);
    a->has_s = 1;
    a->s.data = (uint8_t *)s;
    a->s.len = s ? strlen(s) : 0;
}

void ctn__emit_texts(ctn__emit *e, const char *name, int n, const char *const *v)
{
    Onnx__AttributeProto *a = attribute(e, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);
    a->strings = get(e, (size_t)n * sizeof *a->strings + 1);
    a->n_strings = a->strings ? (size_t)n : 0;
    for (size_t i = 0; i < a->n_strings; i++) {
        char *s = text_of(e, v[i]);
        a->strings[i].data = (uint8_t *)s;
        a->strings[i].len = s ? strlen(s) : 0;
    }
}

char *ctn__emit_in(const ctn__emit *e, const ctn__node *n, int i)
{
    return e->name[n->in[i]->id];
}

void ctn__emit_out(ctn__emit *e, const ctn__node *n, int i, char *value)
{
    e->name[n->out[i]->id] = value;
}

bool ctn__emit_used(const ctn__emit *e, const ctn__node *n, int i)
{
    return i < n->nout && e->uses[n->out[i]->id] > 0;
}

/* ---- constants ------------------------------------------------------------------------------- */

int ctn__onnx_type(ctn_dtype t)
{
    switch (t) {
    case CTN_F32: return ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    case CTN_F64: return ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE;
    case CTN_BF16: return ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16;
    case CTN_F16: return ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16;
    case CTN_I64: return ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
    case CTN_I32: return ONNX__TENSOR_PROTO__DATA_TYPE__INT32;
    case CTN_U8: return ONNX__TENSOR_PROTO__DATA_TYPE__UINT8;
    case CTN_BOOL: return ONNX__TENSOR_PROTO__DATA_TYPE__BOOL;
    }
    return ONNX__TENSOR_PROTO__DATA_TYPE__UNDEFINED;
}

Onnx__TensorProto *ctn__emit_tensor(ctn__emit *e, const char *name, const ctn_desc *d,
                                    const void *data)
{
    Onnx__TensorProto *t = get(e, sizeof *t);
    if (!t) return NULL;
    onnx__tensor_proto__init(t);
    if (name) t->name = text_of(e, name);
    t->dims = get(e, (size_t)d->ndim * sizeof *t->dims + 1);
    if (!t->dims) return NULL;
    t->n_dims = (size_t)d->ndim;
    memcpy(t->dims, d->dim, t->n_dims * sizeof *t->dims);
    t->has_data_type = 1;
    t->data_type = ctn__onnx_type(d->dtype);
    t->has_raw_data = 1;
    t->raw_data.len = (size_t)ctn__count(d) * ctn_dtype_size(d->dtype);
    t->raw_data.data = (uint8_t *)(uintptr_t)data; /* only read */
    return t;
}

/* A constant that has been written before; NULL: none. Only short ones are looked for: sizes, axes
 * and numbers, which would otherwise be most of the nodes. */
static char *same_constant(const ctn__emit *e, const ctn_desc *d, const void *data, size_t bytes)
{
    if (bytes > 64) return NULL;
    for (size_t i = e->nodes.n; i-- > 0;) {
        const Onnx__NodeProto *n = e->nodes.at[i];
        if (strcmp(n->op_type, "Constant") != 0 || n->n_attribute == 0) continue;
        const Onnx__TensorProto *t = n->attribute[0]->t;
        if (t && t->raw_data.len == bytes && t->data_type == ctn__onnx_type(d->dtype) &&
            t->n_dims == (size_t)d->ndim &&
            memcmp(t->dims, d->dim, t->n_dims * sizeof *t->dims) == 0 &&
            memcmp(t->raw_data.data, data, bytes) == 0)
            return n->output[0];
    }
    return NULL;
}

char *ctn__emit_array(ctn__emit *e, ctn_dtype t, int ndim, const int64_t *dims, const void *data)
{
    ctn_desc d = {.dtype = t, .ndim = ndim};
    for (int i = 0; i < ndim; i++) d.dim[i] = dims[i];
    const size_t bytes = (size_t)ctn__count(&d) * ctn_dtype_size(t);
    char *same = same_constant(e, &d, data, bytes);
    if (same) return same;
    void *copy = get(e, bytes + 1);
    if (copy && bytes > 0) memcpy(copy, data, bytes);
    char *name = ctn__emit_node(e, "Constant", 0, NULL);
    attribute(e, "value", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR)->t =
        ctn__emit_tensor(e, NULL, &d, copy);
    return name;
}

char *ctn__emit_list(ctn__emit *e, int n, const int64_t *v)
{
    return ctn__emit_array(e, CTN_I64, 1, (const int64_t[]){n}, v);
}

char *ctn__emit_reals(ctn__emit *e, ctn_dtype t, int ndim, const int64_t *dims, const double *v)
{
    int64_t count = 1;
    for (int i = 0; i < ndim; i++) count *= dims[i];
    void *p = get(e, (size_t)count * ctn_dtype_size(t) + 1);
    if (!p) return NULL;
    for (int64_t i = 0; i < count; i++) ctn__elem_set(p, t, i, v[i]);
    return ctn__emit_array(e, t, ndim, dims, p);
}

char *ctn__emit_number(ctn__emit *e, ctn_dtype t, double v)
{
    return ctn__emit_reals(e, t, 0, NULL, &v);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

bool ctn__emit_fixed(const ctn__emit *e, int64_t size)
{
    for (int k = 0; k < CTN__ONNX_MARKS; k++)
        if (e->any[k].mark > 0 && size > 0 && size % e->any[k].mark == 0) return false;
    for (size_t i = 0; i < e->made.n; i++)
        if (size > 0 && size % e->made.at[i].size == 0) return false;
    return true;
}

bool ctn__emit_all_fixed(const ctn__emit *e, const ctn_desc *d)
{
    for (int i = 0; i < d->ndim; i++)
        if (!ctn__emit_fixed(e, d->dim[i])) return false;
    return true;
}

char *ctn__emit_size(ctn__emit *e, int64_t size)
{
    char *product = NULL;
    for (size_t i = 0; i < e->made.n && !product; i++)
        if (size > 0 && size % e->made.at[i].size == 0) {
            size /= e->made.at[i].size;
            product = e->made.at[i].value;
        }
    for (int k = 0; k < CTN__ONNX_MARKS; k++)
        while (e->any[k].mark > 0 && size > 0 && size % e->any[k].mark == 0) {
            size /= e->any[k].mark;
            product = product ? CTN__NODE(e, "Mul", product, e->any[k].value) : e->any[k].value;
        }
    if (product && size == 1) return product;
    char *rest = ctn__emit_list(e, 1, &size);
    return product ? CTN__NODE(e, "Mul", product, rest) : rest;
}

void ctn__emit_follow(ctn__emit *e, int64_t to, char *value)
{
    const ctn__onnx_made made = {to, value};
    if (!ctn__vec_push(&e->made, made)) no_memory(e);
}

char *ctn__emit_shape(ctn__emit *e, int ndim, const int64_t *dims)
{
    char *part[CTN_MAX_DIMS + 1] = {NULL};
    bool fixed = true;
    for (int i = 0; i < ndim; i++) fixed = fixed && ctn__emit_fixed(e, dims[i]);
    if (fixed) return ctn__emit_list(e, ndim, dims);
    for (int i = 0; i < ndim; i++) part[i] = ctn__emit_size(e, dims[i]);
    char *name = ctn__emit_node(e, "Concat", ndim, part);
    ctn__emit_int(e, "axis", 0);
    return name;
}

/* ---- common nodes ---------------------------------------------------------------------------- */

/* One open size needs no computation: it is what remains. */
char *ctn__emit_shaped(ctn__emit *e, char *x, int ndim, const int64_t *dims)
{
    int64_t to[CTN_MAX_DIMS + 1] = {0};
    int open = 0;
    bool empty = false;
    for (int i = 0; i < ndim; i++) {
        const bool fixed = ctn__emit_fixed(e, dims[i]);
        to[i] = fixed ? dims[i] : -1;
        open += !fixed;
        empty = empty || dims[i] == 0;
    }
    char *shape = open > 1 ? ctn__emit_shape(e, ndim, dims) : ctn__emit_list(e, ndim, to);
    char *name = CTN__NODE(e, "Reshape", x, shape);
    if (empty) ctn__emit_int(e, "allowzero", 1);
    return name;
}

char *ctn__emit_turned(ctn__emit *e, char *x, int ndim, const int64_t *axes)
{
    char *name = CTN__NODE(e, "Transpose", x);
    ctn__emit_ints(e, "perm", ndim, axes);
    return name;
}

char *ctn__emit_swap(ctn__emit *e, char *x, int ndim, int a, int b)
{
    int64_t axes[CTN_MAX_DIMS + 1];
    if (a == b) return x;
    for (int i = 0; i < ndim; i++) axes[i] = i == a ? b : i == b ? a : i;
    return ctn__emit_turned(e, x, ndim, axes);
}

char *ctn__emit_as(ctn__emit *e, char *x, ctn_dtype t)
{
    char *name = CTN__NODE(e, "Cast", x);
    ctn__emit_int(e, "to", ctn__onnx_type(t));
    return name;
}

char *ctn__emit_scale(ctn__emit *e, char *x, ctn_dtype t, double by)
{
    return by == 1 ? x : CTN__NODE(e, "Mul", x, ctn__emit_number(e, t, by));
}

char *ctn__emit_unsqueeze(ctn__emit *e, char *x, int64_t axis)
{
    return CTN__NODE(e, "Unsqueeze", x, ctn__emit_list(e, 1, &axis));
}

char *ctn__emit_over(ctn__emit *e, const char *type, char *x, int n, const int64_t *axes, bool keep)
{
    char *name = CTN__NODE(e, type, x, ctn__emit_list(e, n, axes));
    ctn__emit_int(e, "keepdims", keep);
    return name;
}

char *ctn__emit_range(ctn__emit *e, int64_t size)
{
    char *end = CTN__NODE(e, "Squeeze", ctn__emit_size(e, size));
    return CTN__NODE(e, "Range", ctn__emit_number(e, CTN_I64, 0), end,
                     ctn__emit_number(e, CTN_I64, 1));
}

char *ctn__emit_filled(ctn__emit *e, const ctn_desc *d, double v)
{
    return CTN__NODE(e, "Expand", ctn__emit_number(e, d->dtype, v),
                     ctn__emit_shape(e, d->ndim, d->dim));
}

#endif
