/* SPDX-License-Identifier: Apache-2.0
 *
 * A tensor as text: `f32 (2,3)` and its rows. Large tensors are shortened in the middle of each
 * axis.
 */
#include <stdarg.h>

#include "graph/graph.h"

enum { EDGE = 3 }; /* elements shown at each end of a long axis */

typedef struct {
    char *buf;
    size_t n, len;
} sink;

static void put(sink *s, const char *fmt, ...) CTN_PRINTF(2, 3);
static void put(sink *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    size_t room = s->len < s->n ? s->n - s->len : 0;
    int k = vsnprintf(room ? s->buf + s->len : NULL, room, fmt, ap);
    va_end(ap);
    if (k > 0) s->len += (size_t)k;
}

static void rows(sink *s, const ctn_desc *d, const void *data, int axis, int64_t off, bool all)
{
    if (axis == d->ndim) {
        double v = ctn__elem_get(data, d->dtype, off);
        if (ctn__is_float(d->dtype)) put(s, "%10.4g", v);
        else put(s, "%lld", (long long)v);
        return;
    }
    put(s, "[");
    for (int64_t i = 0; i < d->dim[axis]; i++) {
        if (i > 0) {
            if (axis == d->ndim - 1) put(s, ", ");
            else put(s, ",\n%*s", axis + 1, "");
        }
        if (!all && d->dim[axis] > 2 * EDGE && i == EDGE) {
            put(s, "...");
            i = d->dim[axis] - EDGE - 1;
            continue;
        }
        rows(s, d, data, axis + 1, off + i * d->stride[axis], all);
    }
    put(s, "]");
}

int ctn__tensor_format(const ctn_desc *d, const void *data, char *buf, size_t n)
{
    sink s = {buf, n, 0};
    char shape[128];
    if (n > 0) buf[0] = 0;
    put(&s, "%s %s%s", ctn_dtype_name(d->dtype), ctn__shape_text(d, shape, sizeof shape),
        d->ndim > 0 ? "\n" : " ");
    rows(&s, d, data, 0, 0, ctn__count(d) <= 200);
    return (int)s.len;
}
