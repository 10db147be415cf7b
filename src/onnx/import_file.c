/* SPDX-License-Identifier: Apache-2.0
 *
 * From the bytes of an ONNX file to messages, and from a tensor message to an array. Nothing in a
 * file is trusted: the depth and the memory of messages are limited before protobuf-c, which has no
 * limits, sees them; sizes are checked against shapes; external files must lie in the folder of the
 * model.
 */
#include "onnx/onnx.h"

#ifdef CTN_HAVE_PROTOBUFC

#include <ctype.h>
#include <unistd.h>

#include "base/readfile.h"

/* ---- messages -------------------------------------------------------------------------------- */

static void *message_alloc(void *user, size_t bytes)
{
    (void)user;
    return ctn__malloc(bytes);
}

static void message_free(void *user, void *p)
{
    (void)user;
    ctn__free(p);
}

static ProtobufCAllocator message_memory = {message_alloc, message_free, NULL};

/* One number of the wire format; false if the bytes end before it does. */
static bool varint(const uint8_t **p, const uint8_t *end, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; *p < end && shift < 64; shift += 7) {
        const uint8_t b = *(*p)++;
        *out |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) return true;
    }
    return false;
}

/* Checks the messages below this one, and pays for their memory. Malformed bytes end the check,
 * because protobuf-c refuses them. A single message that is given twice is refused: protobuf-c
 * merges the two, which takes quadratic time if there are many. */
static ctn_status check_messages(ctn__onnx_budget *budget, const ProtobufCMessageDescriptor *type,
                                 const uint8_t *p, const uint8_t *end, int depth)
{
    /* Bytes that a block of memory and its place in a list take, and an unknown field. */
    enum { BLOCK = 32, UNKNOWN = 128 };
    uint64_t seen = 0;
    if (depth == 0)
        return ctn_fail(CTN_EFORMAT, "onnx_open: %s: messages are nested deeper than %d levels",
                        budget->path, CTN__ONNX_DEPTH);
    while (p < end) {
        uint64_t key, n = 0;
        if (!varint(&p, end, &key)) return CTN_OK;
        const bool bytes = (key & 7) == 2;
        const ProtobufCFieldDescriptor *f =
            key >> 3 <= UINT32_MAX
                ? protobuf_c_message_descriptor_get_field(type, (unsigned)(key >> 3))
                : NULL;
        switch (key & 7) {
        case 0:
        case 2:
            if (!varint(&p, end, &n)) return CTN_OK;
            break;
        case 1: n = 8; break;
        case 5: n = 4; break;
        default: return CTN_OK;
        }
        if ((key & 7) == 0) n = 0; /* it was the value */
        if (n > (uint64_t)(end - p)) return CTN_OK;
        if (bytes || !f) CTN_TRY(ctn__onnx_spend(budget, 0, f ? BLOCK : UNKNOWN));
        if (!bytes) f = NULL;
        if (f && f->type == PROTOBUF_C_TYPE_MESSAGE) {
            const ProtobufCMessageDescriptor *inner = f->descriptor;
            const uint64_t bit = (uint64_t)1 << ((f - type->fields) & 63);
            if (f->label != PROTOBUF_C_LABEL_REPEATED && seen & bit)
                return ctn_fail(CTN_EFORMAT, "onnx_open: %s: field '%s' of %s is given twice",
                                budget->path, f->name, type->short_name);
            seen |= bit;
            CTN_TRY(ctn__onnx_spend(budget, 0, inner->sizeof_message));
            CTN_TRY(check_messages(budget, inner, p, p + n, depth - 1));
        }
        p += n;
    }
    return CTN_OK;
}

ctn_status ctn__onnx_unpack(Onnx__ModelProto **out, ctn__onnx_budget *budget, const void *bytes,
                            size_t n)
{
    const char *path = budget->path;
    const uint8_t *p = bytes;
    *out = NULL;
    CTN_TRY(check_messages(budget, &onnx__model_proto__descriptor, p, p + n, CTN__ONNX_DEPTH + 1));
    *out = onnx__model_proto__unpack(&message_memory, n, p);
    if (*out) return CTN_OK;
    return ctn_error_status() < 0
               ? ctn_error_status()
               : ctn_fail(CTN_EFORMAT, "onnx_open: %s is not an ONNX model", path);
}

void ctn__onnx_drop(Onnx__ModelProto *proto)
{
    if (proto) onnx__model_proto__free_unpacked(proto, &message_memory);
}

/* ---- types ----------------------------------------------------------------------------------- */

ctn_dtype ctn__onnx_dtype(int32_t elem)
{
    switch (elem) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT:
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16:
    case ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16: return CTN_F32;
    case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE: return CTN_F64;
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT8: return CTN_U8;
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT8:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT16:
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT16:
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT32: return CTN_I32;
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT32:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT64:
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT64: return CTN_I64;
    case ONNX__TENSOR_PROTO__DATA_TYPE__BOOL: return CTN_BOOL;
    default: return 0;
    }
}

bool ctn__onnx_widened(int32_t elem)
{
    switch (elem) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT8:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT16:
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT16:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT32:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT64: return true;
    default: return false;
    }
}

/* Bytes of an element in raw data. */
static size_t raw_size(int32_t elem)
{
    switch (elem) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT64:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT64: return 8;
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT:
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT32:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT32: return 4;
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16:
    case ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16:
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT16:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT16: return 2;
    default: return 1;
    }
}

/* Raw data, which is little-endian, in the type of Catena. */
static void from_raw(void *to, int32_t elem, const uint8_t *raw, int64_t n)
{
    float *f = to;
    int32_t *i32 = to;
    int64_t *i64 = to;
    uint8_t *u8 = to;
    for (int64_t i = 0; i < n; i++) {
        uint16_t h = 0;
        uint32_t w = 0;
        if (raw_size(elem) == 2) memcpy(&h, raw + 2 * i, 2);
        switch (elem) {
        case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16: f[i] = ctn__f16_to_f32(h); break;
        case ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16: f[i] = ctn__bf16_to_f32(h); break;
        case ONNX__TENSOR_PROTO__DATA_TYPE__INT16: i32[i] = (int16_t)h; break;
        case ONNX__TENSOR_PROTO__DATA_TYPE__UINT16: i32[i] = h; break;
        case ONNX__TENSOR_PROTO__DATA_TYPE__INT8:
            i32[i] = raw[i] < 128 ? raw[i] : raw[i] - 256;
            break;
        case ONNX__TENSOR_PROTO__DATA_TYPE__BOOL: u8[i] = raw[i] != 0; break;
        case ONNX__TENSOR_PROTO__DATA_TYPE__UINT32:
            memcpy(&w, raw + 4 * i, 4);
            i64[i] = w;
            break;
        default: /* the same in both: copied at once */
            memcpy(to, raw, (size_t)n * raw_size(elem));
            return;
        }
    }
}

/* The lists that values can be in. */
enum { FLOATS, DOUBLES, INTS32, INTS64, UNSIGNED64, STRINGS, LISTS };

/* The list that this type uses. */
static int list_of(int32_t elem)
{
    switch (elem) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT: return FLOATS;
    case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE: return DOUBLES;
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT64: return INTS64;
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT32:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT64: return UNSIGNED64;
    default: return INTS32;
    }
}

/* The n values of the list of this type; there are as many (check_values). */
static void from_list(void *to, const Onnx__TensorProto *t, int64_t n)
{
    float *f = to;
    int32_t *i32 = to;
    int64_t *i64 = to;
    uint8_t *u8 = to;
    switch (list_of(t->data_type)) {
    case FLOATS: memcpy(to, t->float_data, (size_t)n * sizeof(float)); return;
    case DOUBLES: memcpy(to, t->double_data, (size_t)n * sizeof(double)); return;
    case INTS64: memcpy(to, t->int64_data, (size_t)n * sizeof(int64_t)); return;
    case UNSIGNED64:
        for (int64_t i = 0; i < n; i++) i64[i] = (int64_t)t->uint64_data[i];
        return;
    default: break;
    }
    for (int64_t i = 0; i < n; i++) {
        const int32_t v = t->int32_data[i];
        switch (t->data_type) {
        case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16: f[i] = ctn__f16_to_f32((uint16_t)v); break;
        case ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16: f[i] = ctn__bf16_to_f32((uint16_t)v); break;
        case ONNX__TENSOR_PROTO__DATA_TYPE__UINT8: u8[i] = (uint8_t)v; break;
        case ONNX__TENSOR_PROTO__DATA_TYPE__BOOL: u8[i] = v != 0; break;
        default: i32[i] = v; break;
        }
    }
}

/* ---- external files -------------------------------------------------------------------------- */

static const char *entry(const Onnx__TensorProto *t, const char *key)
{
    for (size_t i = 0; i < t->n_external_data; i++)
        if (t->external_data[i]->key && strcmp(t->external_data[i]->key, key) == 0)
            return t->external_data[i]->value;
    return NULL;
}

/* A relative path without "..", so that it stays inside the folder of the model. */
static bool inside(const char *location)
{
    if (*location == '/' || *location == 0) return false;
    for (const char *p = location; p; p = strchr(p, '/')) {
        p += *p == '/';
        if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == 0)) return false;
    }
    return true;
}

static bool number(const char *text, uint64_t *out)
{
    char *end = NULL;
    if (!isdigit((unsigned char)*text)) return false;
    *out = strtoull(text, &end, 10);
    return *end == 0 && *out <= INT64_MAX;
}

/* Opens the file of t, which must have all of its bytes. */
static ctn_status open_external(int *fd, ctn__onnx_place *place, size_t bytes, const char *path,
                                const Onnx__TensorProto *t)
{
    const char *location = entry(t, "location"), *offset = entry(t, "offset");
    const char *length = entry(t, "length"), *name = t->name ? t->name : "";
    uint64_t n = bytes, at = 0;
    *fd = -1;
    if (!location || !inside(location))
        return ctn_fail(CTN_EFORMAT,
                        "onnx_open: %s: tensor '%s' has its values in '%s', which is not a file "
                        "inside the folder of the model",
                        path, name, location ? location : "");
    if ((offset && !number(offset, &at)) || (length && !number(length, &n)) || n != bytes)
        return ctn_fail(CTN_EFORMAT,
                        "onnx_open: %s: tensor '%s' has %zu bytes, its place in %s is given as "
                        "offset %s, length %s",
                        path, name, bytes, location, offset ? offset : "0",
                        length ? length : "not given");
    const char *slash = strrchr(path, '/');
    ctn__text file = {0};
    ctn__text_add(&file, "%.*s%s", slash ? (int)(slash - path + 1) : 0, path, location);
    struct stat info;
    ctn_status st = file.failed ? CTN_ENOMEM : ctn__file_open("onnx_open", file.s, fd, &info);
    if (st == CTN_OK && (at > (uint64_t)info.st_size || bytes > (uint64_t)info.st_size - at))
        st = ctn_fail(CTN_EIO,
                      "onnx_open: %s: tensor '%s' has %zu bytes from offset %llu of %s, which has "
                      "%lld bytes",
                      path, name, bytes, (unsigned long long)at, file.s, (long long)info.st_size);
    if (st == CTN_OK)
        *place = (ctn__onnx_place){(uint64_t)info.st_dev, (uint64_t)info.st_ino, at, at + bytes};
    if (st < 0 && *fd >= 0) {
        close(*fd);
        *fd = -1;
    }
    ctn__text_free(&file);
    return st;
}

static bool is_external(const Onnx__TensorProto *t)
{
    return t->has_data_location && t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

static ctn_status read_external(uint8_t *to, size_t bytes, const char *path,
                                const Onnx__TensorProto *t)
{
    int fd = -1;
    ctn__onnx_place at = {0};
    CTN_TRY(open_external(&fd, &at, bytes, path, t));
    const ctn_status st =
        ctn__file_read("onnx_open", entry(t, "location"), fd, to, bytes, at.begin);
    close(fd);
    return st;
}

/* ---- a tensor -------------------------------------------------------------------------------- */

/* The n values must be in exactly one place, and all of them. */
static ctn_status check_values(ctn__onnx_place *place, const char *path, const Onnx__TensorProto *t,
                               int64_t n)
{
    const char *name = t->name ? t->name : "";
    const size_t lists[LISTS] = {t->n_float_data, t->n_double_data, t->n_int32_data,
                                 t->n_int64_data, t->n_uint64_data, t->n_string_data};
    const size_t bytes = ctn__mul((size_t)n, raw_size(t->data_type));
    const bool external = is_external(t), raw = t->raw_data.len > 0;
    const int list = list_of(t->data_type);
    int places = external + raw;
    bool other = false;
    for (int i = 0; i < LISTS; i++) {
        places += lists[i] > 0;
        other |= lists[i] > 0 && i != list;
    }
    if (places > 1 || other)
        return ctn_fail(CTN_EFORMAT,
                        "onnx_open: %s: tensor '%s' has values in several places or in the list of "
                        "another type, expected one of raw data, an external file, and the list of "
                        "ONNX type %d",
                        path, name, (int)t->data_type);
    if (!external && (raw ? t->raw_data.len != bytes : lists[list] != (size_t)n))
        return ctn_fail(CTN_EFORMAT, "onnx_open: %s: tensor '%s' has %lld elements, but %zu %s",
                        path, name, (long long)n, raw ? t->raw_data.len : lists[list],
                        raw ? "bytes" : "values");
    *place = (ctn__onnx_place){.begin = (uintptr_t)t, .end = (uintptr_t)t + 1};
    if (!external || n == 0) return CTN_OK;
    int fd;
    CTN_TRY(open_external(&fd, place, bytes, path, t));
    close(fd);
    return CTN_OK;
}

ctn_status ctn__onnx_shape(ctn__onnx_value *v, ctn__onnx_place *place, const char *path,
                           const Onnx__TensorProto *t)
{
    ctn__onnx_place unused;
    *v = (ctn__onnx_value){0};
    const char *name = t->name ? t->name : "";
    v->dtype = ctn__onnx_dtype(t->data_type);
    v->widened = ctn__onnx_widened(t->data_type);
    if (v->dtype == 0)
        return ctn_fail(CTN_EUNSUPPORTED, "onnx_open: %s: tensor '%s' has ONNX type %d", path, name,
                        (int)t->data_type);
    if (t->n_dims > CTN_MAX_DIMS)
        return ctn_fail(CTN_EUNSUPPORTED, "onnx_open: %s: tensor '%s' has %zu dimensions", path,
                        name, t->n_dims);
    if (t->segment)
        return ctn_fail(CTN_EUNSUPPORTED, "onnx_open: %s: tensor '%s' is stored in segments", path,
                        name);
    v->ndim = (int)t->n_dims;
    ctn_desc d;
    if (v->ndim > 0) memcpy(v->dim, t->dims, t->n_dims * sizeof *v->dim);
    CTN_TRY(ctn__desc_set(&d, "onnx_open", v->dtype, v->ndim, v->dim));
    return check_values(place ? place : &unused, path, t, ctn__onnx_count(v));
}

ctn_status ctn__onnx_load(ctn__onnx_value *v, ctn__arena *arena, const char *path,
                          const Onnx__TensorProto *t)
{
    CTN_TRY(ctn__onnx_shape(v, NULL, path, t));
    const int64_t n = ctn__onnx_count(v);
    const size_t bytes = (size_t)n * raw_size(t->data_type);
    void *to = ctn__arena_get(arena, ctn__mul((size_t)n, ctn_dtype_size(v->dtype)) + 1);
    if (!to) return CTN_ENOMEM;
    v->host = to;
    if (n == 0) return CTN_OK;
    if (!is_external(t)) {
        if (t->raw_data.len > 0) from_raw(to, t->data_type, t->raw_data.data, n);
        else from_list(to, t, n);
        return CTN_OK;
    }
    uint8_t *buf = ctn__malloc(bytes);
    if (!buf) return CTN_ENOMEM;
    ctn_status st = read_external(buf, bytes, path, t);
    if (st == CTN_OK) from_raw(to, t->data_type, buf, n);
    ctn__free(buf);
    return st;
}

#endif
