/* SPDX-License-Identifier: Apache-2.0
 *
 * compare: equal, not_equal, less, less_equal, greater and greater_equal of two tensors of the
 * same type (except 16-bit floats), with broadcasting. They are one op; the relation is an
 * attribute. The result is bool and has no gradient. Every relation with NaN is false, except
 * not_equal.
 */
#include "ops/ops.h"

enum { RELATION, NATTR };
enum { EQ, NE, LT, LE }; /* greater is less with swapped inputs */
static const char *const attr_names[] = {"relation"};

static ctn_status compare_infer(ctn_infer_args *a)
{
    ctn_dtype t = a->in[0]->dtype;
    if (t != a->in[1]->dtype || t == CTN_BF16 || t == CTN_F16)
        return ctn_fail(
            CTN_EDTYPE,
            "%s: inputs are %s and %s, expected the same type: f32, f64, bool or an integer; "
            "use ctn_cast",
            a->name, ctn_dtype_name(t), ctn_dtype_name(a->in[1]->dtype));
    a->out[0].dtype = CTN_BOOL;
    return ctn__broadcast(&a->out[0], a->name, a->in[0], a->in[1]);
}

/* One loop for all relations, because a loop each would quadruple the code: less and equal count if
 * their masks are 1, and not_equal inverts. */
#define HOLDS(x, z) (((((x) < (z)) & less) | (((x) == (z)) & equal)) ^ inverted)

CTN__KERNEL(compare)
{
    const int64_t relation = a->attr[RELATION];
    const int less = relation == LT || relation == LE, equal = relation != LT;
    const int inverted = relation == NE;
    switch (a->din[0].dtype) {
    case CTN_F32: CTN__MAP2_T(a, float, uint8_t, HOLDS); break;
    case CTN_F64: CTN__MAP2_T(a, double, uint8_t, HOLDS); break;
    case CTN_I64: CTN__MAP2_T(a, int64_t, uint8_t, HOLDS); break;
    case CTN_I32: CTN__MAP2_T(a, int32_t, uint8_t, HOLDS); break;
    default: CTN__MAP2_T(a, uint8_t, uint8_t, HOLDS); break;
    }
}

ctn_op ctn__op_compare = {
    .struct_size = sizeof(ctn_op),
    .name = "compare",
    .nin = 2,
    .nout = 1,
    .flags = CTN_OP_STRIDED | CTN_OP_ELEMENTWISE,
    .order = 0,
    .attr_names = attr_names,
    .infer = compare_infer,
    .run = compare_run,
    .tiles = &compare_tiles,
};

static ctn_tensor *compare(const char *at, ctn_tensor *a, ctn_tensor *b, int64_t relation)
{
    ctn_tensor *in[2] = {a, b};
    return ctn__apply1(at, NULL, &ctn__op_compare, 2, in, NATTR, &relation, 0, NULL);
}

ctn_tensor *ctn_equal_at(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    return compare(at, a, b, EQ);
}

ctn_tensor *ctn_not_equal_at(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    return compare(at, a, b, NE);
}

ctn_tensor *ctn_less_at(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    return compare(at, a, b, LT);
}

ctn_tensor *ctn_less_equal_at(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    return compare(at, a, b, LE);
}

ctn_tensor *ctn_greater_at(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    return compare(at, b, a, LT);
}

ctn_tensor *ctn_greater_equal_at(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    return compare(at, b, a, LE);
}
