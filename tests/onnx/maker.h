/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds small ONNX models message by message, for the tests of the import. Texts and arrays that
 * are given to it must stay until pack.
 */
#ifndef CTN_TESTS_MAKER_H
#define CTN_TESTS_MAKER_H

#include <stdlib.h>
#include <string.h>

#include <catena/onnx.h>

#include "onnx/onnx.h"
#include "support/ok.h"

enum { MOST = 16 };

typedef struct {
    Onnx__ModelProto model;
    Onnx__GraphProto graph;
    Onnx__OperatorSetIdProto opset;
    Onnx__NodeProto node[MOST];
    Onnx__TensorProto tensor[MOST];
    Onnx__ValueInfoProto info[2 * MOST];
    Onnx__AttributeProto attr[MOST];
    Onnx__StringStringEntryProto entry[3];
    void *nodes[MOST], *tensors[MOST], *ins[MOST], *outs[MOST], *opsets[1], *entries[3];
    void *attrs[MOST][8];
    char *names[MOST][2 * MOST];
    int64_t dims[MOST][4];
    int ninfo, nattr;
    uint8_t *bytes;
    size_t n;
} maker;

static inline maker *make(int64_t opset)
{
    maker *k = calloc(1, sizeof *k);
    onnx__model_proto__init(&k->model);
    onnx__graph_proto__init(&k->graph);
    onnx__operator_set_id_proto__init(&k->opset);
    k->opset.version = opset;
    k->opset.has_version = 1;
    k->opsets[0] = &k->opset;
    k->model.opset_import = (Onnx__OperatorSetIdProto **)k->opsets;
    k->model.n_opset_import = 1;
    k->model.graph = &k->graph;
    k->graph.node = (Onnx__NodeProto **)k->nodes;
    k->graph.initializer = (Onnx__TensorProto **)k->tensors;
    k->graph.input = (Onnx__ValueInfoProto **)k->ins;
    k->graph.output = (Onnx__ValueInfoProto **)k->outs;
    return k;
}

static inline Onnx__ValueInfoProto *info(maker *k, const char *name)
{
    Onnx__ValueInfoProto *v = &k->info[k->ninfo++];
    onnx__value_info_proto__init(v);
    v->name = (char *)(uintptr_t)name;
    return v;
}

static inline void input(maker *k, const char *name)
{
    k->ins[k->graph.n_input++] = info(k, name);
}

static inline void output(maker *k, const char *name)
{
    k->outs[k->graph.n_output++] = info(k, name);
}

/* names: inputs and one output, separated by spaces; "-" is an input that is left out. */
static inline Onnx__NodeProto *node(maker *k, const char *op, const char *name, char *names)
{
    const size_t i = k->graph.n_node++;
    Onnx__NodeProto *n = &k->node[i];
    onnx__node_proto__init(n);
    n->op_type = (char *)(uintptr_t)op;
    n->name = (char *)(uintptr_t)name;
    n->input = k->names[i];
    for (char *p = strtok(names, " "); p; p = strtok(NULL, " "))
        k->names[i][n->n_input++] = strcmp(p, "-") == 0 ? (char *)(uintptr_t)"" : p;
    n->output = &k->names[i][--n->n_input];
    n->n_output = 1;
    n->attribute = (Onnx__AttributeProto **)k->attrs[i];
    k->nodes[i] = n;
    return n;
}

static inline Onnx__AttributeProto *attr(maker *k, Onnx__NodeProto *n, const char *name)
{
    Onnx__AttributeProto *a = &k->attr[k->nattr++];
    onnx__attribute_proto__init(a);
    a->name = (char *)(uintptr_t)name;
    n->attribute[n->n_attribute++] = a;
    return a;
}

static inline void int_attr(maker *k, Onnx__NodeProto *n, const char *name, int64_t v)
{
    Onnx__AttributeProto *a = attr(k, n, name);
    a->has_i = 1;
    a->i = v;
}

static inline void float_attr(maker *k, Onnx__NodeProto *n, const char *name, float v)
{
    Onnx__AttributeProto *a = attr(k, n, name);
    a->has_f = 1;
    a->f = v;
}

static inline void text_attr(maker *k, Onnx__NodeProto *n, const char *name, const char *v)
{
    Onnx__AttributeProto *a = attr(k, n, name);
    a->has_s = 1;
    a->s.data = (uint8_t *)(uintptr_t)v;
    a->s.len = strlen(v);
}

static inline void ints_attr(maker *k, Onnx__NodeProto *n, const char *name, int count, int64_t *v)
{
    Onnx__AttributeProto *a = attr(k, n, name);
    a->ints = v;
    a->n_ints = (size_t)count;
}

static inline Onnx__TensorProto *weight(maker *k, const char *name, int rows, int cols, float *data)
{
    const size_t i = k->graph.n_initializer++;
    Onnx__TensorProto *t = &k->tensor[i];
    onnx__tensor_proto__init(t);
    t->name = (char *)(uintptr_t)name;
    t->has_data_type = 1;
    t->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    k->dims[i][0] = rows;
    k->dims[i][1] = cols;
    t->dims = k->dims[i];
    t->n_dims = cols > 0 ? 2 : 1;
    t->float_data = data;
    t->n_float_data = (size_t)rows * (size_t)(cols > 0 ? cols : 1);
    k->tensors[i] = t;
    return t;
}

static inline void integers(maker *k, const char *name, int n, int64_t *data)
{
    Onnx__TensorProto *t = weight(k, name, n, 0, NULL);
    t->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
    t->n_float_data = 0;
    t->int64_data = data;
    t->n_int64_data = (size_t)n;
}

static inline void pack(maker *k)
{
    k->n = onnx__model_proto__get_packed_size(&k->model);
    k->bytes = malloc(k->n + 1);
    onnx__model_proto__pack(&k->model, k->bytes);
}

static inline void drop(maker *k)
{
    free(k->bytes);
    free(k);
}

static inline ctn_context *context(void)
{
    ctn_context *ctx = NULL;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
    return ctx;
}

static inline ctn_status open(ctn_module **m, ctn_context *ctx, const maker *k, int frozen)
{
    return ctn__onnx_open_bytes(m, ctx, "test.onnx", k->bytes, k->n,
                                CTN_OPT(ctn_onnx_opt, .frozen = frozen));
}

#endif
