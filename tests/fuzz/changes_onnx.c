/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes of ONNX models. The messages' descriptors say what every field is, and the lengths of the
 * messages around a change are made right again.
 */
#include "fuzz.h"

#ifdef CTN_HAVE_PROTOBUFC

#include "onnx.pb-c.h"

typedef struct {
    const ProtobufCMessageDescriptor *in; /* the message that has this field */
    const ProtobufCFieldDescriptor *field;
    int parent;     /* the part around it; -1: the model */
    int wire;       /* type on the wire */
    size_t begin;   /* of the key */
    size_t at, end; /* of the contents */
} part;

enum { MOST = 1 << 14, DEPTH = 40 };
enum { VARINT, FIXED64, BYTES, FIXED32 = 5 };

typedef struct {
    const uint8_t *data;
    part part[MOST];
    int n;
} parts;

static bool get_varint(const uint8_t *data, size_t *at, size_t end, uint64_t *n)
{
    *n = 0;
    for (int shift = 0; *at < end && shift < 64; shift += 7) {
        const uint8_t b = data[(*at)++];
        *n |= (uint64_t)(b & 127) << shift;
        if (b < 128) return true;
    }
    return false;
}

static size_t put_varint(uint8_t text[10], uint64_t n)
{
    size_t k = 0;
    for (; n > 127; n >>= 7) text[k++] = (uint8_t)(n | 128);
    text[k++] = (uint8_t)n;
    return k;
}

/* Lists the fields of a message and of those inside it; false: these bytes are not one. */
static bool list_parts(parts *p, const ProtobufCMessageDescriptor *in, size_t at, size_t end,
                       int parent, int depth)
{
    while (at < end) {
        part x = {.in = in, .parent = parent, .begin = at};
        uint64_t key, n = 0;
        if (!get_varint(p->data, &at, end, &key)) return false;
        x.wire = (int)(key & 7);
        x.at = at;
        if (x.wire == VARINT && !get_varint(p->data, &at, end, &n)) return false;
        if (x.wire == BYTES) {
            if (!get_varint(p->data, &at, end, &n)) return false;
            x.at = at;
        }
        if (x.wire == FIXED64) n = 8;
        if (x.wire == FIXED32) n = 4;
        if (x.wire == 3 || x.wire == 4 || x.wire > 5) return false;
        if (x.wire != VARINT && n > end - at) return false;
        if (x.wire != VARINT) at += (size_t)n;
        x.end = at;
        x.field = protobuf_c_message_descriptor_get_field(in, (unsigned)(key >> 3));
        if (!x.field || p->n == MOST) continue;
        const int own = p->n++;
        p->part[own] = x;
        if (x.wire == BYTES && x.field->type == PROTOBUF_C_TYPE_MESSAGE && depth < DEPTH &&
            !list_parts(p, x.field->descriptor, x.at, x.end, own, depth + 1))
            return false;
    }
    return true;
}

static bool list_model(parts *p, const uint8_t *data, size_t bytes)
{
    p->data = data;
    p->n = 0;
    return list_parts(p, &onnx__model_proto__descriptor, 0, bytes, -1, 0) && p->n > 0;
}

/* Replaces bytes inside part `around`, and mends the lengths of the messages around them. */
static void replace(fuzz_doc *d, const parts *p, int around, size_t from, size_t to,
                    const void *with, size_t n)
{
    uint8_t length[10];
    if (d->bytes + n + 10 * DEPTH > d->room) return;
    size_t grown = n - (to - from); /* modulo 2^64 */
    fuzz_splice(d, from, to, with, n);
    for (int i = around; i >= 0; i = p->part[i].parent) {
        const part *x = &p->part[i];
        uint64_t key;
        size_t at = x->begin;
        if (!get_varint(d->data, &at, x->at, &key)) return;
        const size_t k = put_varint(length, x->end - x->at + grown);
        fuzz_splice(d, at, x->at, length, k);
        grown += k - (x->at - at);
    }
}

/* ---- contents -------------------------------------------------------------------------------- */

static uint32_t hostile_float(fuzz_random *r)
{
    static const float floats[] = {0, -0.0f, 1, -1, 0.5f, 2, 1e-45f, 1e-30f, 1e9f, 3e38f, 1e20f};
    const uint64_t k = fuzz_draw(r, sizeof floats / sizeof *floats + 4);
    uint32_t bits = k % 2 ? 0x7fc00000u : k % 4 ? 0x7f800000u : 0xff800000u;
    if (k < sizeof floats / sizeof *floats) memcpy(&bits, &floats[k], 4);
    return bits;
}

static bool is_packed(const part *x)
{
    return x->wire == BYTES && x->field->type != PROTOBUF_C_TYPE_MESSAGE &&
           x->field->type != PROTOBUF_C_TYPE_STRING && x->field->type != PROTOBUF_C_TYPE_BYTES;
}

static bool is_float(const part *x)
{
    return x->field->type == PROTOBUF_C_TYPE_FLOAT || x->field->type == PROTOBUF_C_TYPE_DOUBLE;
}

static bool is_number(const part *x)
{
    return (x->wire == VARINT || is_packed(x)) && !is_float(x);
}

/* A number, or one of a packed list, becomes another one, or is repeated or removed. */
static void change_varint(fuzz_doc *d, const parts *p, const part *x)
{
    uint8_t text[20];
    uint64_t old = 0;
    size_t from = x->at, to = x->at;
    const uint64_t stop = fuzz_draw(&d->random, x->wire == BYTES ? 6 : 1);
    for (uint64_t i = 0; i <= stop && to < x->end; i++) {
        from = to;
        if (!get_varint(d->data, &to, x->end, &old)) return;
    }
    size_t n = put_varint(text, fuzz_number(&d->random, old));
    const uint64_t how = fuzz_draw(&d->random, 8);
    if (x->wire == BYTES && how == 0) n = 0;
    if (x->wire == BYTES && how == 1) n += put_varint(text + n, old);
    replace(d, p, x->wire == BYTES ? (int)(x - p->part) : x->parent, from, to, text, n);
}

/* An element of values that are stored as they are: floats, doubles and raw data. */
static void change_fixed(fuzz_doc *d, const parts *p, const part *x)
{
    const size_t n = x->end - x->at, width = n >= 8 && fuzz_draw(&d->random, 2) ? 8 : 4;
    if (x->wire == BYTES && fuzz_draw(&d->random, 8) == 0) {
        const size_t cut = x->at + (size_t)fuzz_draw(&d->random, n);
        replace(d, p, (int)(x - p->part), cut, x->end, NULL, 0);
        return;
    }
    if (n < width) return;
    uint8_t *to = d->data + x->at + (size_t)fuzz_draw(&d->random, n / width) * width;
    uint64_t v = fuzz_number(&d->random, *to);
    if (is_float(x) ? width == 4 : width == 4 && fuzz_draw(&d->random, 2))
        v = hostile_float(&d->random);
    memcpy(to, &v, width);
}

/* ---- structure ------------------------------------------------------------------------------- */

/* Another part with this field, of this model or of the other one; NULL: there is none. */
static const part *similar(fuzz_random *r, const parts *p, const part *x)
{
    const int start = (int)fuzz_draw(r, (uint64_t)p->n);
    for (int i = 0; i < p->n; i++) {
        const part *y = &p->part[(start + i) % p->n];
        if (y != x && y->in == x->in && y->field == x->field && y->wire == x->wire) return y;
    }
    return NULL;
}

/* Another part takes the place of this one, or comes before it. */
static void take_part(fuzz_doc *d, const parts *p, const part *x, bool keep)
{
    static parts others;
    const parts *from = p;
    if (fuzz_draw(&d->random, 2) && list_model(&others, d->other, d->other_bytes)) from = &others;
    const part *y = similar(&d->random, from, x);
    if (!y) return;
    const size_t n = y->end - y->begin;
    uint8_t *copy = malloc(n);
    if (!copy) return;
    memcpy(copy, from->data + y->begin, n);
    replace(d, p, x->parent, x->begin, keep ? x->begin : x->end, copy, n);
    free(copy);
}

static void change_structure(fuzz_doc *d, const parts *p, const part *x)
{
    uint8_t length[10];
    uint64_t key;
    size_t at = x->begin;
    const size_t n = x->end - x->begin;
    switch (fuzz_draw(&d->random, 8)) {
    case 0: replace(d, p, x->parent, x->begin, x->end, NULL, 0); break;
    case 1: { /* twice */
        uint8_t *copy = malloc(n);
        if (!copy) return;
        memcpy(copy, d->data + x->begin, n);
        replace(d, p, x->parent, x->begin, x->begin, copy, n);
        free(copy);
        break;
    }
    case 2: /* a length that is wrong */
        if (x->wire != BYTES || fuzz_draw(&d->random, 4) || !get_varint(d->data, &at, x->at, &key))
            break;
        replace(d, p, x->parent, at, x->at, length,
                put_varint(length, fuzz_number(&d->random, x->end - x->at)));
        break;
    case 3: take_part(d, p, x, true); break;
    default: take_part(d, p, x, false); break;
    }
}

/* ---- models ---------------------------------------------------------------------------------- */

static bool in_class(const part *x, uint64_t class)
{
    const ProtobufCType type = x->field->type;
    const bool string = x->wire == BYTES && type == PROTOBUF_C_TYPE_STRING;
    switch (class) {
    case 0:
    case 1:
    case 2: return is_number(x);
    case 3: return is_float(x) || (x->wire == BYTES && type == PROTOBUF_C_TYPE_BYTES);
    case 4: return string;
    case 5: /* in nodes and below them */
        return x->in == &onnx__node_proto__descriptor ||
               x->in == &onnx__attribute_proto__descriptor ||
               x->in == &onnx__tensor_proto__descriptor;
    default: return true;
    }
}

bool fuzz_change_onnx(fuzz_doc *d)
{
    static parts list;
    const parts *p = &list;
    if (!list_model(&list, d->data, d->bytes)) return false;
    const uint64_t class = fuzz_draw(&d->random, 8);
    const int start = (int)fuzz_draw(&d->random, (uint64_t)p->n);
    const part *x = &p->part[start];
    for (int i = 0; i < p->n && !in_class(x, class); i++) x = &p->part[(start + i) % p->n];
    if (!in_class(x, class)) return true;
    if (class < 3) change_varint(d, p, x);
    else if (class == 3) change_fixed(d, p, x);
    else if (class == 4 && fuzz_draw(&d->random, 3) == 0) {
        const size_t from = x->at, n = x->end - x->at;
        uint8_t text[512];
        fuzz_doc word = {text, n, sizeof text, NULL, 0, d->random};
        if (n >= 128) return true;
        memcpy(text, d->data + from, n);
        fuzz_change_text(&word, 0, n);
        d->random = word.random;
        replace(d, p, (int)(x - p->part), from, x->end, text, word.bytes);
    } else change_structure(d, p, x);
    return true;
}

#else

bool fuzz_change_onnx(fuzz_doc *d)
{
    (void)d;
    return false;
}

#endif
