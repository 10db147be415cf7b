/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes of nodes, and lists that newer opsets pass as inputs and older ones as attributes.
 */
#include "onnx/onnx.h"

#ifdef CTN_HAVE_PROTOBUFC

static const Onnx__AttributeProto *find(Onnx__AttributeProto *const *a, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (a[i]->name && strcmp(a[i]->name, name) == 0) return a[i];
    return NULL;
}

/* An attribute inside a function may refer to one of the node that calls the function. */
const Onnx__AttributeProto *ctn__onnx_attr(const ctn__onnx_node *n, const char *name)
{
    const Onnx__AttributeProto *a = find(n->proto->attribute, n->proto->n_attribute, name);
    while (a && a->ref_attr_name && *a->ref_attr_name) {
        n = n->caller;
        if (!n) return NULL;
        name = a->ref_attr_name;
        a = find(n->proto->attribute, n->proto->n_attribute, name);
        if (!a && n->function)
            return find(n->function->attribute_proto, n->function->n_attribute_proto, name);
    }
    return a;
}

bool ctn__onnx_has_attr(const ctn__onnx_call *c, const char *name)
{
    return ctn__onnx_attr(c->node, name) != NULL;
}

int64_t ctn__onnx_int(const ctn__onnx_call *c, const char *name, int64_t otherwise)
{
    const Onnx__AttributeProto *a = ctn__onnx_attr(c->node, name);
    return a && a->has_i ? a->i : otherwise;
}

double ctn__onnx_float(const ctn__onnx_call *c, const char *name, double otherwise)
{
    const Onnx__AttributeProto *a = ctn__onnx_attr(c->node, name);
    return a && a->has_f ? (double)a->f : otherwise;
}

bool ctn__onnx_text_is(const ctn__onnx_call *c, const char *name, const char *text, bool otherwise)
{
    const Onnx__AttributeProto *a = ctn__onnx_attr(c->node, name);
    if (!a || !a->has_s) return otherwise;
    return a->s.len == strlen(text) && memcmp(a->s.data, text, a->s.len) == 0;
}

ctn_status ctn__onnx_list(ctn__onnx_call *c, const char *name, int i, int64_t *to, int most, int *n)
{
    const Onnx__AttributeProto *a = name ? ctn__onnx_attr(c->node, name) : NULL;
    *n = -1;
    if (!a && !ctn__onnx_has(c, i)) return CTN_OK;
    if (!a) CTN_TRY(ctn__onnx_need(c, i));
    const int64_t count = a ? (int64_t)a->n_ints : ctn__onnx_count(c->in[i]);
    if (count > most)
        return ctn__onnx_fail(c, CTN_ESHAPE, "got a list of %lld numbers, expected at most %d",
                              (long long)count, most);
    for (int k = 0; k < (int)count; k++) to[k] = a ? a->ints[k] : ctn__onnx_int_of(c->in[i], k);
    *n = (int)count;
    return CTN_OK;
}

ctn_status ctn__onnx_axis(const ctn__onnx_call *c, int64_t axis, int ndim, int *out)
{
    *out = 0;
    if (axis < -ndim || axis >= ndim)
        return ctn__onnx_fail(c, CTN_ESHAPE, "axis %lld of %d dimensions", (long long)axis, ndim);
    *out = (int)(axis < 0 ? axis + ndim : axis);
    return CTN_OK;
}

/* ---- the door -------------------------------------------------------------------------------- */

enum { MOST_ATTRS = 256 }; /* of a node; they are searched one by one */

/* Does the attribute have values of another type than it claims? It may have none: writers leave
 * out zeros. */
static bool other_values(const Onnx__AttributeProto *a)
{
    const struct {
        Onnx__AttributeProto__AttributeType type;
        bool given;
    } all[] = {
        {ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, a->has_f},
        {ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, a->has_i},
        {ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING, a->has_s},
        {ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR, a->t},
        {ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH, a->g},
        {ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS, a->n_floats > 0},
        {ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS, a->n_ints > 0},
        {ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS, a->n_strings > 0},
        {ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSORS, a->n_tensors > 0},
        {ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPHS, a->n_graphs > 0},
    };
    const bool claims = a->has_type && a->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED;
    int given = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        given += all[i].given;
        if (claims && all[i].given && all[i].type != a->type) return true;
    }
    return given > 1;
}

ctn_status ctn__onnx_check_attrs(const char *path, const char *who, size_t n,
                                 Onnx__AttributeProto *const *a)
{
    if (n > MOST_ATTRS)
        return ctn_fail(CTN_EFORMAT, "onnx_open: %s: %s has %zu attributes, expected at most %d",
                        path, who, n, MOST_ATTRS);
    for (size_t i = 0; i < n; i++) {
        if (!a[i]->name || !*a[i]->name)
            return ctn_fail(CTN_EFORMAT, "onnx_open: %s: an attribute of %s has no name", path,
                            who);
        if (other_values(a[i]))
            return ctn_fail(CTN_EFORMAT,
                            "onnx_open: %s: attribute '%.100s' of %s has values of another type "
                            "than it says, or of several types",
                            path, a[i]->name, who);
    }
    return CTN_OK;
}

#endif
