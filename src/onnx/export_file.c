/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of an exported model: a ModelProto, and a second file with the values of the
 * initializers if the first would become larger than protobuf allows, or on request. In that file
 * each array begins at a multiple of 4096 bytes, so that programs can map it into memory.
 */
#include "onnx/export.h"

#ifdef CTN_HAVE_PROTOBUFC

#include "base/newfile.h"

enum { ALIGN = 4096 };
static const size_t MOST = (size_t)1 << 31;  /* bytes of a message, exclusive */
static const size_t GRAPH = (size_t)1 << 28; /* kept free for everything but initializers */

static void *get(ctn__emit *e, size_t bytes)
{
    void *p = ctn__arena_zero(&e->arena, bytes);
    if (!p && e->st == CTN_OK) e->st = ctn_fail(CTN_ENOMEM, "onnx_export: out of memory");
    return p;
}

/* ---- types of inputs and outputs ------------------------------------------------------------- */

static Onnx__TensorShapeProto__Dimension *dimension(ctn__emit *e, int64_t size)
{
    Onnx__TensorShapeProto__Dimension *d = get(e, sizeof *d);
    if (!d) return NULL;
    onnx__tensor_shape_proto__dimension__init(d);
    for (int k = 0; k < CTN__ONNX_MARKS; k++)
        if (e->any[k].mark > 0 && size == e->any[k].mark) {
            d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            d->dim_param = ctn__arena_str(&e->arena, e->any[k].name);
            return d->dim_param ? d : NULL;
        }
    if (!ctn__emit_fixed(e, size)) return d; /* open, without a name */
    d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    d->dim_value = size;
    return d;
}

static Onnx__ValueInfoProto *info(ctn__emit *e, char *name, const ctn_desc *d)
{
    Onnx__ValueInfoProto *v = get(e, sizeof *v);
    Onnx__TypeProto *type = get(e, sizeof *type);
    Onnx__TypeProto__Tensor *tensor = get(e, sizeof *tensor);
    Onnx__TensorShapeProto *shape = get(e, sizeof *shape);
    if (!v || !type || !tensor || !shape) return NULL;
    onnx__value_info_proto__init(v);
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor);
    onnx__tensor_shape_proto__init(shape);
    shape->dim = get(e, (size_t)d->ndim * sizeof *shape->dim + 1);
    if (!shape->dim) return NULL;
    for (int i = 0; i < d->ndim; i++) {
        shape->dim[i] = dimension(e, d->dim[i]);
        if (!shape->dim[i]) return NULL;
    }
    shape->n_dim = (size_t)d->ndim;
    tensor->has_elem_type = 1;
    tensor->elem_type = ctn__onnx_type(d->dtype);
    tensor->shape = shape;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    v->name = name;
    v->type = type;
    return v;
}

/* ---- the second file ------------------------------------------------------------------------- */

static Onnx__StringStringEntryProto *entry(ctn__emit *e, const char *key, char *value)
{
    Onnx__StringStringEntryProto *s = get(e, sizeof *s);
    char *k = ctn__arena_str(&e->arena, key);
    if (!s || !k || !value) {
        if (e->st == CTN_OK) e->st = ctn_fail(CTN_ENOMEM, "onnx_export: out of memory");
        return NULL;
    }
    onnx__string_string_entry_proto__init(s);
    s->key = k;
    s->value = value;
    return s;
}

/* Writes the values of one array at the end of f, and tells the model where they are. */
static ctn_status move_out(ctn__emit *e, ctn__newfile *f, char *location, Onnx__TensorProto *t)
{
    static const char zeros[ALIGN];
    const size_t gap = (size_t)(-f->at & (ALIGN - 1));
    CTN_TRY(ctn__newfile_write(f, zeros, gap));
    Onnx__StringStringEntryProto **x = get(e, 3 * sizeof *x);
    if (!x) return e->st;
    char *offset = ctn__arena_printf(&e->arena, "%llu", (unsigned long long)f->at);
    char *length = ctn__arena_printf(&e->arena, "%zu", t->raw_data.len);
    x[0] = entry(e, "location", location);
    x[1] = entry(e, "offset", offset);
    x[2] = entry(e, "length", length);
    if (e->st < 0) return e->st;
    CTN_TRY(ctn__newfile_write(f, t->raw_data.data, t->raw_data.len));
    t->has_raw_data = 0;
    t->raw_data.len = 0;
    t->raw_data.data = NULL;
    t->external_data = x;
    t->n_external_data = 3;
    t->has_data_location = 1;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    return CTN_OK;
}

static ctn_status write_values(ctn__emit *e, const char *path)
{
    ctn__newfile f = {.fd = -1};
    const char *slash = strrchr(path, '/');
    char *whole = ctn__arena_printf(&e->arena, "%s.data", path);
    char *location = ctn__arena_printf(&e->arena, "%s.data", slash ? slash + 1 : path);
    if (!whole || !location) return ctn_fail(CTN_ENOMEM, "onnx_export: out of memory");
    ctn_status st = ctn__newfile_open(&f, whole);
    for (size_t i = 0; st == CTN_OK && i < e->stored.n; i++)
        st = move_out(e, &f, location, e->stored.at[i]);
    if (st == CTN_OK) st = ctn__newfile_commit(&f);
    ctn__newfile_close(&f);
    return st;
}

/* ---- the model ------------------------------------------------------------------------------- */

ctn_status ctn__onnx_hash(const ctn__emit *e, ctn__hash128 *hash)
{
    Onnx__GraphProto g = ONNX__GRAPH_PROTO__INIT;
    g.node = e->nodes.at;
    g.n_node = e->nodes.n;
    const size_t n = onnx__graph_proto__get_packed_size(&g);
    uint8_t *bytes = ctn__malloc(n + 1);
    if (!bytes) return ctn_fail(CTN_ENOMEM, "onnx_export: no memory for a graph of %zu bytes", n);
    onnx__graph_proto__pack(&g, bytes);
    *hash = ctn__hash(bytes, n);
    ctn__free(bytes);
    return CTN_OK;
}

static ctn_status pack(const Onnx__ModelProto *m, const char *path)
{
    ctn__newfile f = {.fd = -1};
    const size_t n = onnx__model_proto__get_packed_size(m);
    uint8_t *bytes = n < MOST ? ctn__malloc(n) : NULL;
    if (n >= MOST)
        return ctn_fail(CTN_EUNSUPPORTED,
                        "onnx_export: the model takes %zu bytes, and ONNX allows "
                        "2 GB",
                        n);
    if (!bytes) return ctn_fail(CTN_ENOMEM, "onnx_export: no memory for a model of %zu bytes", n);
    onnx__model_proto__pack(m, bytes);
    ctn_status st = ctn__newfile_open(&f, path);
    if (st == CTN_OK) st = ctn__newfile_write(&f, bytes, n);
    if (st == CTN_OK) st = ctn__newfile_commit(&f);
    ctn__newfile_close(&f);
    ctn__free(bytes);
    return st;
}

ctn_status ctn__onnx_write(ctn__emit *e, const char *path, const ctn__onnx_ends *ends)
{
    Onnx__ModelProto m = ONNX__MODEL_PROTO__INIT;
    Onnx__GraphProto g = ONNX__GRAPH_PROTO__INIT;
    Onnx__OperatorSetIdProto set = ONNX__OPERATOR_SET_ID_PROTO__INIT, *sets[] = {&set};
    Onnx__ValueInfoProto *info_of[2 * CTN_MAX_TENSORS];
    char producer[] = "catena", version[64], graph[] = "catena", domain[] = "";
    size_t bytes = GRAPH;
    for (int i = 0; i < ends->n_in + ends->n_out; i++) {
        info_of[i] = info(e, ends->name[i], ends->d[i]);
        if (!info_of[i])
            return e->st < 0 ? e->st : ctn_fail(CTN_ENOMEM, "onnx_export: out of memory");
    }
    for (size_t i = 0; i < e->stored.n; i++) bytes += e->stored.at[i]->raw_data.len;
    if (e->opt.external || bytes >= MOST) CTN_TRY(write_values(e, path));
    snprintf(version, sizeof version, "%s", ctn_version_text());
    set.domain = domain;
    set.has_version = 1;
    set.version = e->opset;
    m.has_ir_version = 1;
    m.ir_version = e->opset <= 18 ? 8 : e->opset <= 20 ? 9 : 10;
    m.opset_import = sets;
    m.n_opset_import = 1;
    m.producer_name = producer;
    m.producer_version = version;
    m.graph = &g;
    g.name = graph;
    g.node = e->nodes.at;
    g.n_node = e->nodes.n;
    g.initializer = e->stored.at;
    g.n_initializer = e->stored.n;
    g.input = info_of;
    g.n_input = (size_t)ends->n_in;
    g.output = info_of + ends->n_in;
    g.n_output = (size_t)ends->n_out;
    return pack(&m, path);
}

#endif
