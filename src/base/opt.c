/* SPDX-License-Identifier: Apache-2.0
 *
 * Optional arguments: a caller's struct, which may be of an older and shorter or a newer and longer version, over
 * defaults of zero. struct_size is the first field of each.
 */
#include "base/base.h"

ctn_status ctn__opt(const char *who, void *to, size_t bytes, const void *from)
{
    memset(to, 0, bytes);
    if (!from) return CTN_OK;
    size_t given;
    memcpy(&given, from, sizeof given);
    if (given < sizeof given)
        return ctn_fail(CTN_EARG, "%s: options without struct_size; use CTN_OPT(type, ...)", who);
    memcpy(to, from, given < bytes ? given : bytes);
    return CTN_OK;
}
