/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays in .npy files (NumPy's format, versions 1 to 3):
 *     "\x93NUMPY" major minor  length of the header (u16; u32 from version 2)  header  data
 * The header is a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
 * It is treated as hostile: each of the three keys must occur exactly once, nothing else may occur,
 * and the file must be long enough for its shape. files.c reads samples through this file.
 */
#include <catena/datasets.h>
#include "base/newfile.h"
#include "data/source.h"
#include "tensor/tensor.h"

#define HOST_IS_BIG (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
#define MAGIC "\x93NUMPY"

enum { MAGIC_BYTES = 6, PADDING = 64, HEADER_MOST = 1 << 20 };

ctn_dtype ctn__array_dtype(char kind, int bytes, bool keep_f64)
{
    if (kind == 'f' && bytes == 8) return keep_f64 ? CTN_F64 : CTN_F32;
    if (kind == 'f' && (bytes == 4 || bytes == 2)) return CTN_F32;
    if (kind == 'b' && bytes == 1) return CTN_BOOL;
    if (kind == 'u' && bytes == 1) return CTN_U8;
    if (kind == 'i' && bytes == 4) return CTN_I32;
    if ((kind == 'i' || kind == 'u') && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8))
        return CTN_I64;
    return (ctn_dtype)0;
}

/* ---- the header ------------------------------------------------------------------------------ */

struct text {
    const char *p, *end;
};

static char peek(struct text *t)
{
    while (t->p < t->end && (*t->p == ' ' || *t->p == '\n' || *t->p == '\t')) t->p++;
    return t->p < t->end ? *t->p : 0;
}

static bool take(struct text *t, char c)
{
    if (c == 0 || peek(t) != c) return false;
    t->p++;
    return true;
}

static bool take_word(struct text *t, const char *word)
{
    const size_t n = strlen(word);
    peek(t);
    if ((size_t)(t->end - t->p) < n || memcmp(t->p, word, n) != 0) return false;
    t->p += n;
    return true;
}

/* 'text' or "text" without escapes */
static bool take_string(struct text *t, char *out, size_t n)
{
    const char q = peek(t);
    if (q != '\'' && q != '"') return false;
    const char *from = ++t->p;
    while (t->p < t->end && *t->p != q && *t->p != '\\') t->p++;
    const size_t k = (size_t)(t->p - from);
    if (t->p == t->end || *t->p != q || k >= n) return false;
    memcpy(out, from, k);
    out[k] = 0;
    t->p++;
    return true;
}

static bool take_int(struct text *t, int64_t *out)
{
    int64_t v = 0;
    if (peek(t) < '0' || *t->p > '9') return false;
    for (; t->p < t->end && *t->p >= '0' && *t->p <= '9'; t->p++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *t->p - '0', &v))
            return false;
    take(t, 'L'); /* written by Python 2 */
    *out = v;
    return true;
}

static bool take_shape(struct text *t, ctn__npy *a)
{
    a->ndim = 0;
    if (!take(t, '(')) return false;
    while (!take(t, ')')) {
        int64_t n;
        if (!take_int(t, &n)) return false;
        if (a->ndim < CTN_MAX_DIMS) a->shape[a->ndim] = n;
        if (a->ndim <= CTN_MAX_DIMS) a->ndim++; /* the caller rejects CTN_MAX_DIMS + 1 */
        if (!take(t, ',') && peek(t) != ')') return false;
    }
    return true;
}

/* Parses a type: byte order, kind, bytes per element. */
static ctn_status parse_descr(ctn__npy *a, const char *path, const char *s)
{
    const char order = s[0];
    int bytes = 0;
    bool good = order != 0 && strchr("<>|=", order) && s[1] != 0 && s[2] >= '1' && s[2] <= '9';
    for (int i = 2; good && s[i]; i++) {
        good = s[i] >= '0' && s[i] <= '9' && i < 6;
        bytes = bytes * 10 + (s[i] - '0');
    }
    if (!good || ctn__array_dtype(s[1], bytes, false) == 0)
        return ctn_fail(CTN_EDTYPE,
                        "npy: %s: elements are '%s', expected floats of 2, 4 or 8 bytes, integers "
                        "or bool",
                        path, s);
    a->kind = s[1];
    a->bytes = bytes;
    a->swap = bytes > 1 && (order == '<' || order == '>') && (order == '>') != HOST_IS_BIG;
    return CTN_OK;
}

static ctn_status parse_dictionary(ctn__npy *a, const char *path, struct text t)
{
    char key[16], descr[32] = "";
    int seen[3] = {0};
    if (!take(&t, '{')) return ctn_fail(CTN_EFORMAT, "npy: %s: damaged header", path);
    while (!take(&t, '}')) {
        bool good = take_string(&t, key, sizeof key) && take(&t, ':');
        if (good && strcmp(key, "descr") == 0) {
            if (peek(&t) == '[')
                return ctn_fail(CTN_EUNSUPPORTED,
                                "npy: %s: elements are records; save one array per file", path);
            good = !seen[0]++ && take_string(&t, descr, sizeof descr);
        } else if (good && strcmp(key, "fortran_order") == 0) {
            a->fortran = take_word(&t, "True");
            good = !seen[1]++ && (a->fortran || take_word(&t, "False"));
        } else if (good && strcmp(key, "shape") == 0) {
            good = !seen[2]++ && take_shape(&t, a);
        } else {
            good = false;
        }
        if (!good || (!take(&t, ',') && peek(&t) != '}'))
            return ctn_fail(CTN_EFORMAT, "npy: %s: damaged header", path);
    }
    if (peek(&t) != 0 || t.p != t.end || !seen[0] || !seen[1] || !seen[2])
        return ctn_fail(CTN_EFORMAT, "npy: %s: damaged header", path);
    return parse_descr(a, path, descr);
}

static ctn_status check_shape(const ctn__npy *a, const char *path, size_t size)
{
    size_t need = (size_t)a->bytes;
    if (a->ndim > CTN_MAX_DIMS)
        return ctn_fail(CTN_EUNSUPPORTED, "npy: %s: more than %d dimensions", path, CTN_MAX_DIMS);
    if (a->ndim == 0)
        return ctn_fail(CTN_ESHAPE,
                        "npy: %s: is one number, expected an array whose dimension 0 counts "
                        "samples",
                        path);
    for (int d = 0; d < a->ndim; d++) {
        if (d > 0 && a->shape[d] == 0)
            return ctn_fail(CTN_ESHAPE, "npy: %s: size 0 in dimension %d", path, d);
        need = ctn__mul(need, (size_t)a->shape[d]);
    }
    if (need > size - a->offset)
        return ctn_fail(CTN_EFORMAT, "npy: %s: has %zu bytes of data, but the header promises %zu",
                        path, size - a->offset, need);
    return CTN_OK;
}

/* Finds the start and the length of the header's text. */
static ctn_status find_text(const ctn__array_file *f, size_t *start, size_t *n)
{
    uint8_t p[12] = {0};
    const size_t size = f->bytes;
    CTN_TRY(ctn__array_file_read(f, p, size < sizeof p ? size : sizeof p, 0));
    if (size < MAGIC_BYTES + 4 || memcmp(p, MAGIC, MAGIC_BYTES) != 0)
        return ctn_fail(CTN_EFORMAT, "npy: %s: is not a .npy file", f->path);
    const int major = p[6];
    if (major < 1 || major > 3)
        return ctn_fail(CTN_EUNSUPPORTED, "npy: %s: version is %d, expected 1 to 3", f->path,
                        major);
    *start = major == 1 ? 10 : 12;
    *n = p[8] | (size_t)p[9] << 8;
    if (major > 1) *n |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (size < *start || *n > size - *start)
        return ctn_fail(CTN_EFORMAT, "npy: %s: ends within its header", f->path);
    if (*n > HEADER_MOST)
        return ctn_fail(CTN_EUNSUPPORTED, "npy: %s: the header has %zu bytes, the maximum is %d",
                        f->path, *n, HEADER_MOST);
    return CTN_OK;
}

ctn_status ctn__npy_parse(ctn__npy *a, const ctn__array_file *f)
{
    ctn_status st = CTN_OK;
    size_t start = 0, n = 0;
    memset(a, 0, sizeof *a);
    CTN_TRY(find_text(f, &start, &n));
    char *text = ctn__malloc(n);
    if (!text) return CTN_ENOMEM;
    a->offset = start + n;
    CTN_TRY_GOTO(st, done, ctn__array_file_read(f, text, n, start));
    CTN_TRY_GOTO(st, done, parse_dictionary(a, f->path, (struct text){text, text + n}));
    CTN_TRY_GOTO(st, done, check_shape(a, f->path, f->bytes));
done:
    ctn__free(text);
    return st;
}

/* ---- samples --------------------------------------------------------------------------------- */

static uint64_t load(const char *p, int bytes, bool swap)
{
    uint16_t h;
    uint32_t w;
    uint64_t d;
    switch (bytes) {
    case 1: return *(const uint8_t *)p;
    case 2: memcpy(&h, p, 2); return swap ? __builtin_bswap16(h) : h;
    case 4: memcpy(&w, p, 4); return swap ? __builtin_bswap32(w) : w;
    default: memcpy(&d, p, 8); return swap ? __builtin_bswap64(d) : d;
    }
}

static double load_float(const char *p, int bytes, bool swap)
{
    const uint64_t u = load(p, bytes, swap);
    const uint32_t w = (uint32_t)u;
    float f;
    double d;
    if (bytes == 2) return (double)ctn__f16_to_f32((uint16_t)u);
    if (bytes == 4) {
        memcpy(&f, &w, sizeof f);
        return (double)f;
    }
    memcpy(&d, &u, sizeof d);
    return d;
}

/* Converts n elements that are `step` bytes apart to a contiguous dst. False: one does not fit. */
static bool convert(const ctn__npy *a, const char *src, ptrdiff_t step, int64_t n, ctn_dtype dtype,
                    void *dst)
{
    const int bytes = a->bytes;
    const bool swap = a->swap;
    switch (dtype) {
    case CTN_F32:
        for (int64_t i = 0; i < n; i++)
            ((float *)dst)[i] = (float)load_float(src + i * step, bytes, swap);
        return true;
    case CTN_F64:
        for (int64_t i = 0; i < n; i++)
            ((double *)dst)[i] = load_float(src + i * step, bytes, swap);
        return true;
    case CTN_I32:
        for (int64_t i = 0; i < n; i++)
            ((int32_t *)dst)[i] = (int32_t)load(src + i * step, 4, swap);
        return true;
    case CTN_I64: {
        const int shift = a->kind == 'i' ? (64 - 8 * bytes) & 63 : 0; /* sign extension */
        uint64_t large = 0;
        for (int64_t i = 0; i < n; i++) {
            const uint64_t u = load(src + i * step, bytes, swap);
            large |= u;
            ((int64_t *)dst)[i] = (int64_t)(u << shift) >> shift;
        }
        return a->kind == 'i' || large <= INT64_MAX;
    }
    case CTN_BOOL:
        for (int64_t i = 0; i < n; i++) ((uint8_t *)dst)[i] = src[i * step] != 0;
        return true;
    default:
        for (int64_t i = 0; i < n; i++) ((uint8_t *)dst)[i] = (uint8_t)src[i * step];
        return true;
    }
}

/* Reads n contiguous elements at offset. *good: all of them fit. */
static ctn_status read_row(const ctn__npy *a, const ctn__array_file *f, uint64_t offset, int64_t n,
                           ctn_dtype dtype, char *dst, bool *good)
{
    char piece[CTN__PIECE];
    const int64_t es = a->bytes, most = CTN__PIECE / es;
    const bool same = !a->swap && ctn_dtype_size(dtype) == (size_t)es && dtype != CTN_BOOL;
    *good = true;
    if (same && a->kind != 'u') return ctn__array_file_read(f, dst, (size_t)(n * es), offset);
    if (f->held) {
        *good = convert(a, f->held + offset, (ptrdiff_t)es, n, dtype, dst);
        return CTN_OK;
    }
    for (int64_t k; *good && n > 0; n -= k) {
        k = n < most ? n : most;
        CTN_TRY(ctn__array_file_read(f, piece, (size_t)(k * es), offset));
        *good = convert(a, piece, (ptrdiff_t)es, k, dtype, dst);
        offset += (uint64_t)(k * es);
        dst += (size_t)k * ctn_dtype_size(dtype);
    }
    return CTN_OK;
}

/* Reads n elements that are `step` bytes apart. If the file is not held in memory, each element
 * is a read of its own. */
static ctn_status read_apart(const ctn__npy *a, const ctn__array_file *f, uint64_t offset,
                             int64_t step, int64_t n, ctn_dtype dtype, char *dst, bool *good)
{
    char piece[8];
    *good = true;
    if (f->held) {
        *good = convert(a, f->held + offset, (ptrdiff_t)step, n, dtype, dst);
        return CTN_OK;
    }
    for (int64_t i = 0; *good && i < n; i++, dst += ctn_dtype_size(dtype)) {
        CTN_TRY(ctn__array_file_read(f, piece, (size_t)a->bytes, offset + (uint64_t)(i * step)));
        *good = convert(a, piece, 0, 1, dtype, dst);
    }
    return CTN_OK;
}

/* Reads a sample of a column-major file, one row of the result at a time. */
static ctn_status read_column_major(const ctn__npy *a, const ctn__array_file *f, int64_t index,
                                    int64_t inner, ctn_dtype dtype, char *dst, bool *good)
{
    const int last = a->ndim - 1;
    int64_t step[CTN_MAX_DIMS] = {0}, at[CTN_MAX_DIMS] = {0}; /* bytes; position in a sample */
    int64_t s = a->bytes;
    for (int d = 0; d < a->ndim; s *= a->shape[d++]) step[d] = s;
    for (int64_t done = 0; *good && done < inner; done += a->shape[last]) {
        uint64_t offset = a->offset + (uint64_t)(index * a->bytes);
        for (int d = 1; d < last; d++) offset += (uint64_t)(at[d] * step[d]);
        CTN_TRY(read_apart(a, f, offset, step[last], a->shape[last], dtype, dst, good));
        dst += (size_t)a->shape[last] * ctn_dtype_size(dtype);
        for (int d = last - 1; d > 0 && ++at[d] == a->shape[d]; d--) at[d] = 0;
    }
    return CTN_OK;
}

ctn_status ctn__npy_read(const ctn__npy *a, const ctn__array_file *f, int64_t first, int64_t n,
                         ctn_dtype dtype, void *dst)
{
    int64_t inner = 1;
    bool good = true;
    for (int d = 1; d < a->ndim; d++) inner *= a->shape[d];
    if (a->fortran && a->ndim > 1) {
        char *to = dst;
        for (int64_t i = 0; i < n && good; i++, to += (size_t)inner * ctn_dtype_size(dtype))
            CTN_TRY(read_column_major(a, f, first + i, inner, dtype, to, &good));
    } else {
        const uint64_t offset = a->offset + (uint64_t)(first * inner * a->bytes);
        CTN_TRY(read_row(a, f, offset, n * inner, dtype, dst, &good));
    }
    if (good) return CTN_OK;
    return ctn_fail(CTN_EFORMAT, "npy: %s: rows %lld to %lld have numbers too large for i64",
                    f->path, (long long)first, (long long)(first + n - 1));
}

/* ---- writing --------------------------------------------------------------------------------- */

static const char *descr_of(ctn_dtype t)
{
    switch (t) {
    case CTN_F32: return "f4";
    case CTN_F64: return "f8";
    case CTN_F16: return "f2";
    case CTN_I64: return "i8";
    case CTN_I32: return "i4";
    case CTN_U8: return "u1";
    case CTN_BOOL: return "b1";
    default: return NULL;
    }
}

static ctn_status header_text(ctn__text *h, int64_t count, const ctn_field *field)
{
    const char *descr = descr_of(field->dtype);
    if (!descr)
        return ctn_fail(CTN_EDTYPE, "npy_save: .npy files cannot store %s",
                        ctn_dtype_name(field->dtype));
    const char order = ctn_dtype_size(field->dtype) == 1 ? '|' : HOST_IS_BIG ? '>' : '<';
    ctn__text_add(h, "{'descr': '%c%s', 'fortran_order': False, 'shape': (%lld,", order, descr,
                  (long long)count);
    for (int d = 0; d < field->ndim; d++)
        ctn__text_add(h, "%s%lld", d ? ", " : " ", (long long)field->shape[d]);
    ctn__text_add(h, "), }");
    const size_t rest = (MAGIC_BYTES + 4 + h->n + 1) % PADDING; /* aligns the data */
    ctn__text_add(h, "%*s\n", rest ? (int)(PADDING - rest) : 0, "");
    return h->failed ? CTN_ENOMEM : CTN_OK;
}

ctn_status ctn_npy_save(const char *path, int64_t count, const ctn_field *field, const void *data)
{
    if (!path || !field || (!data && count > 0))
        return ctn_fail(CTN_EARG, "npy_save: NULL argument");
    if (count < 0)
        return ctn_fail(CTN_EARG, "npy_save: count is %lld, expected 0 or more", (long long)count);
    CTN_TRY(ctn__field_check_fixed("npy_save", 0, field));
    if (field->channels_last)
        return ctn_fail(CTN_EARG, "npy_save: the field is channels-last, expected row-major");
    ctn_status st = CTN_OK;
    ctn__text h = {0};
    ctn__newfile f = {.fd = -1};
    CTN_TRY_GOTO(st, done, header_text(&h, count, field));
    /* version 1.0; a header with at most 7 dimensions fits its 16-bit length */
    const uint8_t start[] = {1, 0, (uint8_t)h.n, (uint8_t)(h.n >> 8)};
    CTN_TRY_GOTO(st, done, ctn__newfile_open(&f, path));
    CTN_TRY_GOTO(st, done, ctn__newfile_write(&f, MAGIC, MAGIC_BYTES));
    CTN_TRY_GOTO(st, done, ctn__newfile_write(&f, start, sizeof start));
    CTN_TRY_GOTO(st, done, ctn__newfile_write(&f, h.s, h.n));
    CTN_TRY_GOTO(st, done, ctn__newfile_write(&f, data, (size_t)count * ctn__field_bytes(field)));
    CTN_TRY_GOTO(st, done, ctn__newfile_commit(&f));
done:
    ctn__newfile_close(&f);
    ctn__text_free(&h);
    return st;
}
