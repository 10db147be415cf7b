/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays of bytes in a MATLAB 5 file, as SVHN has them. After a header of 128 bytes come elements:
 *     type (u32)   bytes (u32)   data, padded to 8 bytes
 * Up to 4 bytes of data lie in the tag itself. An array is an element of type 14 that contains
 * others: flags, dimensions, name, values, which are column-major. Usually it is compressed: type
 * 15, whose data is a zlib stream of such an element. The file is treated as hostile.
 */
#include "data/source.h"

#ifdef CTN_HAVE_ZLIB
#define ZLIB_CONST
#include <zlib.h>
#endif

enum {
    HEADER = 128,
    INT8 = 1,
    UINT8 = 2,
    INT32 = 5,
    UINT32 = 6,
    MATRIX = 14,
    PACKED = 15,
    DEFLATE_RATIO = 1032 /* maximum compression ratio of deflate */
};

typedef struct {
    const uint8_t *at;
    size_t n;
} bytes;

static ctn_status bad(const char *path, const char *what)
{
    return ctn_fail(CTN_EFORMAT, "mat: %s: %s", path, what);
}

static uint32_t word(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Takes the next element from b; false: it is cut off. The last one may lack its padding. */
static bool take(bytes *b, uint32_t *type, bytes *data)
{
    if (b->n < 8) return false;
    *type = word(b->at);
    const bool small = *type >> 16 != 0;
    *data = (bytes){b->at + (small ? 4 : 8), small ? *type >> 16 : word(b->at + 4)};
    *type &= 0xffff;
    if (data->n > (small ? 4 : b->n - 8)) return false;
    size_t used = small ? 8 : 8 + data->n;
    if (*type != PACKED) used = (used + 7) / 8 * 8;
    if (used > b->n) used = b->n;
    *b = (bytes){b->at + used, b->n - used};
    return true;
}

/* The element that a zlib stream contains; the caller frees *out. */
static ctn_status unpack(const char *path, bytes from, uint8_t **out, size_t *n)
{
#ifdef CTN_HAVE_ZLIB
    uint8_t head[8] = {0};
    z_stream z = {.next_in = from.at, .avail_in = (uInt)from.n};
    if (inflateInit(&z) != Z_OK) return ctn_fail(CTN_ENOMEM, "mat: %s: out of memory", path);
    z.next_out = head;
    z.avail_out = sizeof head;
    ctn_status st = CTN_OK;
    int r = inflate(&z, Z_NO_FLUSH);
    *n = sizeof head + (size_t)word(head + 4);
    if (r < 0 || z.avail_out > 0 || *n > ctn__mul(from.n, DEFLATE_RATIO)) {
        st = bad(path, "damaged zlib data");
    } else if (!(*out = ctn__malloc(*n))) {
        st = CTN_ENOMEM;
    } else {
        memcpy(*out, head, sizeof head);
        z.next_out = *out + sizeof head;
        z.avail_out = (uInt)(*n - sizeof head);
        if (z.avail_out > 0) r = inflate(&z, Z_FINISH);
        if (r != Z_STREAM_END || z.avail_out > 0) st = bad(path, "damaged zlib data");
    }
    inflateEnd(&z);
    return st;
#else
    (void)from;
    (void)out;
    (void)n;
    return ctn_fail(CTN_EUNSUPPORTED,
                    "mat: %s is compressed, but Catena was built without zlib (Debian: zlib1g-dev)",
                    path);
#endif
}

/* Reads one array whose parts are in b. */
static ctn_status read_array(const char *path, bytes b, ctn__mat_array *a)
{
    uint32_t type[4] = {0};
    bytes part[4] = {{0}}; /* flags, dimensions, name, values */
    for (int i = 0; i < 4; i++)
        if (!take(&b, &type[i], &part[i])) return bad(path, "an array is cut off");
    if (type[0] != UINT32 || type[1] != INT32 || type[2] != INT8 ||
        part[1].n > 4 * sizeof a->dim / sizeof a->dim[0] || part[2].n >= sizeof a->name)
        return bad(path, "an array has an unknown form");
    memcpy(a->name, part[2].at, part[2].n);
    size_t values = 1;
    a->ndim = (int)(part[1].n / 4);
    for (int d = 0; d < a->ndim; d++) {
        a->dim[d] = word(part[1].at + 4 * d);
        values = ctn__mul(values, (size_t)a->dim[d]);
    }
    if (type[3] != UINT8 || values != part[3].n) return CTN_OK; /* an array of another type */
    a->data = ctn__malloc(values);
    if (!a->data) return CTN_ENOMEM;
    if (values > 0) memcpy(a->data, part[3].at, values);
    return CTN_OK;
}

/* Reads the array in the next element if it has one of the names. */
static ctn_status read_next(const char *path, bytes *file, int n, ctn__mat_array *a)
{
    uint32_t type = 0;
    bytes data = {0};
    uint8_t *memory = NULL;
    size_t room = 0;
    ctn_status st = CTN_OK;
    ctn__mat_array found = {0};
    if (!take(file, &type, &data)) return bad(path, "the file is cut off");
    if (type == PACKED) {
        CTN_TRY_GOTO(st, done, unpack(path, data, &memory, &room));
        bytes inner = {memory, room};
        if (!take(&inner, &type, &data)) CTN_TRY_GOTO(st, done, bad(path, "an array is cut off"));
    }
    if (type == MATRIX) CTN_TRY_GOTO(st, done, read_array(path, data, &found));
    for (int i = 0; i < n; i++) {
        if (strcmp(a[i].name, found.name) != 0 || a[i].data) continue;
        a[i] = found;
        found.data = NULL;
    }
done:
    ctn__free(memory);
    ctn__free(found.data);
    return st;
}

ctn_status ctn__mat_read(const char *path, int n, ctn__mat_array *a)
{
    char *all = NULL;
    size_t size = 0;
    CTN_TRY(ctn__file_whole("mat", path, UINT32_MAX, &all, &size));
    ctn_status st = CTN_OK;
    bytes file = {(const uint8_t *)all, size};
    if (size < HEADER || memcmp(all + 124, "\0\1IM", 4) != 0)
        st = bad(path, "is not a little-endian MATLAB 5 file");
    else file = (bytes){file.at + HEADER, size - HEADER};
    while (st == CTN_OK && file.n > 0) st = read_next(path, &file, n, a);
    for (int i = 0; i < n && st == CTN_OK; i++)
        if (!a[i].data)
            st = ctn_fail(CTN_EFORMAT, "mat: %s: has no array %s of u8", path, a[i].name);
    ctn__free(all);
    return st;
}
