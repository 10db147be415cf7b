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

int ctn__onnx_ints(const ctn__onnx_call *c, const char *name, int64_t *to, int most)
{
    const Onnx__AttributeProto *a = ctn__onnx_attr(c->node, name);
    if (!a) return -1;
    const int n = a->n_ints > (size_t)most ? most : (int)a->n_ints;
    for (int i = 0; i < n; i++) to[i] = a->ints[i];
    return n;
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

#endif
