/* SPDX-License-Identifier: Apache-2.0
 *
 * Class labels as accuracy, confusion_matrix and linear_cross_entropy read them: i64 or i32,
 * CTN__NO_CLASS for rows that are ignored.
 */
#ifndef CTN_OPS_COMMON_CLASSES_H
#define CTN_OPS_COMMON_CLASSES_H

#include "ops/ops.h"

enum { CTN__NO_CLASS = -100 }; /* the default `ignore` of softmax_cross_entropy */

static inline bool ctn__is_class_type(ctn_dtype t)
{
    return t == CTN_I64 || t == CTN_I32;
}

static inline int64_t ctn__class_at(const void *t, ctn_dtype type, int64_t i)
{
    return type == CTN_I64 ? ((const int64_t *)t)[i] : ((const int32_t *)t)[i];
}

#endif
