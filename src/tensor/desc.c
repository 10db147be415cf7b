/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptions: shapes, row-major strides, broadcasting. Pure functions.
 */
#include "tensor/tensor.h"

size_t ctn_dtype_size(ctn_dtype t)
{
    switch (t) {
#define SIZE_CASE(id, value, bytes, name) \
    case id: return bytes;
        CTN_DTYPE_TABLE(SIZE_CASE)
#undef SIZE_CASE
    }
    return 0;
}

const char *ctn_dtype_name(ctn_dtype t)
{
    switch (t) {
#define NAME_CASE(id, value, bytes, name) \
    case id: return name;
        CTN_DTYPE_TABLE(NAME_CASE)
#undef NAME_CASE
    }
    return "unknown";
}

bool ctn__is_float(ctn_dtype t)
{
    return t == CTN_F32 || t == CTN_F64 || t == CTN_BF16 || t == CTN_F16;
}

bool ctn__is_f32_f64(ctn_dtype t)
{
    return t == CTN_F32 || t == CTN_F64;
}

int64_t ctn__count(const ctn_desc *d)
{
    int64_t n = 1;
    for (int i = 0; i < d->ndim; i++) n *= d->dim[i];
    return n;
}

size_t ctn__bytes(const ctn_desc *d)
{
    if (d->layout != 0) return (size_t)d->stride[0] * ctn_dtype_size(d->dtype);
    return (size_t)ctn__count(d) * ctn_dtype_size(d->dtype);
}

void ctn__plain(ctn_desc *d)
{
    int64_t s = 1;
    d->layout = 0;
    for (int i = d->ndim - 1; i >= 0; i--) {
        d->stride[i] = s;
        s *= d->dim[i] > 0 ? d->dim[i] : 1;
    }
}

bool ctn__is_plain(const ctn_desc *d)
{
    if (d->layout != 0) return false;
    int64_t s = 1;
    for (int i = d->ndim - 1; i >= 0; i--) {
        if (d->dim[i] == 0) return true;
        if (d->dim[i] != 1 && d->stride[i] != s) return false;
        s *= d->dim[i];
    }
    return true;
}

void ctn__channels_last(ctn_desc *d)
{
    ctn__plain(d);
    if (d->ndim < 3) return;
    int64_t c = d->dim[1] > 0 ? d->dim[1] : 1, s = c;
    d->stride[1] = 1;
    for (int i = d->ndim - 1; i >= 2; i--) {
        d->stride[i] = s;
        s *= d->dim[i] > 0 ? d->dim[i] : 1;
    }
    d->stride[0] = s;
}

bool ctn__is_channels_last(const ctn_desc *d)
{
    ctn_desc r = *d;
    ctn__channels_last(&r);
    return ctn__same_desc(&r, d);
}

bool ctn__same_shape(const ctn_desc *a, const ctn_desc *b)
{
    if (a->ndim != b->ndim) return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

bool ctn__same_desc(const ctn_desc *a, const ctn_desc *b)
{
    if (a->dtype != b->dtype || a->layout != b->layout || !ctn__same_shape(a, b)) return false;
    if (a->layout != 0) return true;
    for (int i = 0; i < a->ndim; i++)
        if (a->dim[i] > 1 && a->stride[i] != b->stride[i]) return false;
    return true;
}

/* unit: bytes of an element */
static ctn_status check_dims(const ctn_desc *d, const char *who, size_t unit)
{
    char t[192];
    size_t n = unit;
    if (d->ndim < 0 || d->ndim > CTN_MAX_DIMS)
        return ctn_fail(CTN_ESHAPE, "%s: got %d dimensions, expected at most %d", who, d->ndim,
                        CTN_MAX_DIMS);
    for (int i = 0; i < d->ndim; i++) {
        if (d->dim[i] < 0)
            return ctn_fail(CTN_ESHAPE, "%s: dimension %d is %lld, expected at least 0", who, i,
                            (long long)d->dim[i]);
        n = ctn__mul(n, d->dim[i] > 0 ? (size_t)d->dim[i] : 1);
    }
    if (n > CTN__MAX_BYTES)
        return ctn_fail(CTN_ESHAPE, "%s: a tensor of shape %s is too large for this machine", who,
                        ctn__shape_text(d, t, sizeof t));
    return CTN_OK;
}

ctn_status ctn__desc_check(const ctn_desc *d, const char *who)
{
    const size_t unit = ctn_dtype_size(d->dtype);
    if (unit == 0) return ctn_fail(CTN_EDTYPE, "%s: unknown data type %d", who, (int)d->dtype);
    return check_dims(d, who, unit);
}

ctn_status ctn__desc_set(ctn_desc *d, const char *who, ctn_dtype t, int ndim, const int64_t *dims)
{
    d->dtype = t;
    d->ndim = ndim;
    if (ndim > 0 && !dims) return ctn_fail(CTN_EARG, "%s: dims is NULL", who);
    for (int i = 0; i < ndim && i < CTN_MAX_DIMS; i++) d->dim[i] = dims[i];
    CTN_TRY(ctn__desc_check(d, who));
    ctn__plain(d);
    return CTN_OK;
}

ctn_status ctn__broadcast(ctn_desc *out, const char *who, const ctn_desc *a, const ctn_desc *b)
{
    int nd = a->ndim > b->ndim ? a->ndim : b->ndim;
    out->ndim = nd;
    for (int i = 1; i <= nd; i++) {
        int64_t x = i <= a->ndim ? a->dim[a->ndim - i] : 1;
        int64_t y = i <= b->ndim ? b->dim[b->ndim - i] : 1;
        if (x != y && x != 1 && y != 1) {
            char ta[128], tb[128];
            return ctn_fail(CTN_ESHAPE, "%s: shapes %s and %s cannot be broadcast together", who,
                            ctn__shape_text(a, ta, sizeof ta), ctn__shape_text(b, tb, sizeof tb));
        }
        out->dim[nd - i] = x == 1 ? y : x;
    }
    CTN_TRY(check_dims(out, who, 1)); /* its strides do not overflow */
    ctn__plain(out);
    return CTN_OK;
}

ctn_desc ctn__broadcast_view(const ctn_desc *d, const ctn_desc *to)
{
    ctn_desc r = *to;
    r.dtype = d->dtype;
    r.layout = d->layout;
    for (int i = 0; i < to->ndim; i++) {
        int j = i - (to->ndim - d->ndim);
        r.stride[i] = j < 0 || (d->dim[j] == 1 && to->dim[i] != 1) ? 0 : d->stride[j];
    }
    return r;
}

char *ctn__shape_text(const ctn_desc *d, char *buf, size_t n)
{
    size_t k = 0;
    for (int i = 0; i < d->ndim && k < n; i++)
        k += (size_t)snprintf(buf + k, n - k, "%s%lld", i ? "," : "(", (long long)d->dim[i]);
    if (k < n) snprintf(buf + k, n - k, d->ndim ? ")" : "()");
    return buf;
}

int ctn__axis(int ndim, int64_t axis)
{
    if (axis < 0) axis += ndim;
    return axis < 0 || axis >= ndim ? -1 : (int)axis;
}

void ctn__by_stride(const ctn_desc *d, int *order)
{
    for (int i = 0; i < d->ndim; i++) {
        int k = i;
        for (; k > 0 && d->stride[order[k - 1]] != 0; k--) {
            if (d->stride[i] != 0 && d->stride[order[k - 1]] >= d->stride[i]) break;
            order[k] = order[k - 1];
        }
        order[k] = i;
    }
}
