/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of ops, from ops.def. Tests walk it: an op without cases does not pass.
 */
#include "ops/ops.h"

ctn_op *const ctn__ops[] = {
#define CTN__OP(name) &ctn__op_##name,
#include "ops/ops.def"
#undef CTN__OP
};
const int ctn__nops = sizeof ctn__ops / sizeof *ctn__ops;
