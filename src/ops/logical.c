/* SPDX-License-Identifier: Apache-2.0
 *
 * logical: `and` and `or` of bool tensors, with broadcasting. `not` has one input and is
 * therefore an op of its own, logical_not. No gradients.
 */
#include "ops/ops.h"

enum { RELATION, NATTR };
enum { AND, OR };
static const char *const attr_names[] = {"relation"};

static ctn_status bool_inputs(const ctn_infer_args *a)
{
    for (int i = 0; i < a->nin; i++)
        if (a->in[i]->dtype != CTN_BOOL)
            return ctn_fail(CTN_EDTYPE,
                            "%s: input %d is %s, expected bool; compare or use ctn_cast", a->name,
                            i, ctn_dtype_name(a->in[i]->dtype));
    return CTN_OK;
}

static ctn_status logical_infer(ctn_infer_args *a)
{
    CTN_TRY(bool_inputs(a));
    a->out[0].dtype = CTN_BOOL;
    return ctn__broadcast(&a->out[0], a->name, a->in[0], a->in[1]);
}

/* In a user's memory any nonzero byte means true. */
#define IS_AND(x, z) ((x) != 0 && (z) != 0)
#define IS_OR(x, z) ((x) != 0 || (z) != 0)

CTN__KERNEL(logical)
{
    if (a->attr[RELATION] == AND) CTN__MAP2_T(a, uint8_t, uint8_t, IS_AND);
    else CTN__MAP2_T(a, uint8_t, uint8_t, IS_OR);
}

ctn_op ctn__op_logical = {
    .struct_size = sizeof(ctn_op),
    .name = "logical",
    .nin = 2,
    .nout = 1,
    .flags = CTN_OP_STRIDED | CTN_OP_ELEMENTWISE,
    .order = 0,
    .inplace = CTN_OPERANDS(2),
    .attr_names = attr_names,
    .infer = logical_infer,
    .run = logical_run,
    .tiles = &logical_tiles,
};

static ctn_tensor *logical(const char *at, ctn_tensor *a, ctn_tensor *b, int64_t relation)
{
    ctn_tensor *in[2] = {a, b};
    return ctn__apply1(at, NULL, &ctn__op_logical, 2, in, NATTR, &relation, 0, NULL);
}

ctn_tensor *ctn_logical_and_at(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    return logical(at, a, b, AND);
}

ctn_tensor *ctn_logical_or_at(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    return logical(at, a, b, OR);
}

static ctn_status logical_not_infer(ctn_infer_args *a)
{
    CTN_TRY(bool_inputs(a));
    a->out[0] = *a->in[0];
    return CTN_OK;
}

#define NOT(x) ((x) == 0)

CTN__KERNEL(logical_not)
{
    CTN__MAP1_T(a, uint8_t, NOT);
}

ctn_op ctn__op_logical_not = {
    .struct_size = sizeof(ctn_op),
    .name = "logical_not",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = 0,
    .inplace = CTN_OPERAND(0),
    .infer = logical_not_infer,
    .run = logical_not_run,
    .tiles = &logical_not_tiles,
};

ctn_tensor *ctn_logical_not_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_logical_not, x);
}
