/* SPDX-License-Identifier: Apache-2.0
 *
 * binary_accuracy: hits divided by the number of elements that count. No gradient.
 */
#include <math.h>

#include "ops/common/classes.h"

ctn_tensor *ctn_binary_accuracy_at(const char *at, ctn_tensor *x, ctn_tensor *t)
{
    char tx[128], tt[128];
    if (!x || !t) return ctn_mul_at(at, x, t);
    const ctn_dtype type = t->d.dtype;
    if (!ctn__is_class_type(type) && type != CTN_U8 && type != CTN_BOOL) {
        ctn_fail(CTN_EDTYPE, "binary_accuracy: t is %s, expected i64, i32, u8 or bool (%s)",
                 ctn_dtype_name(type), at);
        return NULL;
    }
    if (!ctn__same_shape(&x->d, &t->d)) {
        ctn_fail(CTN_ESHAPE, "binary_accuracy: x is %s, t is %s; expected equal shapes (%s)",
                 ctn__shape_text(&x->d, tx, sizeof tx), ctn__shape_text(&t->d, tt, sizeof tt), at);
        return NULL;
    }
    ctn_tensor *zero = ctn_full_at(at, x->ctx, 0, x->d.dtype, CTN_SCALAR_SHAPE);
    ctn_tensor *guess = ctn_cast_at(at, ctn_greater_equal_at(at, x, zero), type);
    ctn_tensor *hit = ctn_equal_at(at, guess, t);
    if (!ctn__is_class_type(type))
        return ctn_mean_at(at, ctn_cast_at(at, hit, CTN_F32), CTN_ALL_AXES, 0);
    ctn_tensor *none = ctn_full_at(at, x->ctx, CTN__NO_CLASS, type, CTN_SCALAR_SHAPE);
    ctn_tensor *counts = ctn_cast_at(at, ctn_not_equal_at(at, t, none), CTN_F32);
    ctn_tensor *hits = ctn_sum_at(at, ctn_cast_at(at, hit, CTN_F32), CTN_ALL_AXES, 0);
    ctn_tensor *n = ctn_sum_at(at, counts, CTN_ALL_AXES, 0);
    return ctn_div_at(at, hits, ctn_clip_at(at, n, 1, INFINITY));
}
