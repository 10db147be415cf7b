/* SPDX-License-Identifier: Apache-2.0
 *
 * Padding of ragged fields: the element that fills the rest of a sample, of any type, and how long
 * the samples of a batch become.
 */
#include <math.h>

#include "data/loader.h"
#include "tensor/tensor.h"

int64_t ctn__padded(const ctn_loader *l, int64_t n)
{
    const int64_t m = l->pad_multiple, rows = n > 1 ? n : 1;
    return rows > INT64_MAX - m ? rows : (rows + m - 1) / m * m;
}

/* Smallest and largest integer of type t that a double holds exactly; floats have no range. */
static bool range_of(ctn_dtype t, double *least, double *most)
{
    switch (t) {
    case CTN_I64: *most = 0x1p53, *least = -*most; return true;
    case CTN_I32: *most = INT32_MAX, *least = INT32_MIN; return true;
    case CTN_U8: *most = UINT8_MAX, *least = 0; return true;
    case CTN_BOOL: *most = 1, *least = 0; return true;
    default: return false;
    }
}

ctn_status ctn__pad_element(const char *who, int f, ctn_dtype t, double value, uint64_t *out)
{
    double least = 0, most = 0;
    if (range_of(t, &least, &most) && !(value >= least && value <= most && value == floor(value)))
        return ctn_fail(CTN_EARG, "%s: pad_value[%d] is %g, but the field is %s", who, f, value,
                        ctn_dtype_name(t));
    *out = 0;
    const float narrow = (float)value;
    switch (t) {
    case CTN_F64: memcpy(out, &value, sizeof value); break;
    case CTN_F32: memcpy(out, &narrow, sizeof narrow); break;
    case CTN_BF16: memcpy(out, &(uint16_t){ctn__f32_to_bf16(narrow)}, 2); break;
    case CTN_F16: memcpy(out, &(uint16_t){ctn__f32_to_f16(narrow)}, 2); break;
    case CTN_I64: memcpy(out, &(int64_t){(int64_t)value}, 8); break;
    case CTN_I32: memcpy(out, &(int32_t){(int32_t)value}, 4); break;
    default: memcpy(out, &(uint8_t){(uint8_t)value}, 1); break;
    }
    return CTN_OK;
}

void ctn__pad_fill(void *dst, uint64_t element, size_t size, size_t n)
{
    char *to = dst;
    if (element == 0) memset(to, 0, n * size);
    else
        for (size_t i = 0; i < n; i++) memcpy(to + i * size, &element, size);
}
