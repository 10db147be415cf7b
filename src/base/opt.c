/* SPDX-License-Identifier: Apache-2.0
 *
 * Optional arguments: copies the caller's struct over zero defaults. The struct may come from an
 * older (shorter) or newer (longer) version; its first field is always struct_size, which the copy
 * has too, so that it can be passed on.
 */
#include "base/base.h"

ctn_status ctn__opt(const char *who, void *to, size_t bytes, const void *from)
{
    size_t given;
    memset(to, 0, bytes);
    memcpy(to, &bytes, sizeof bytes);
    if (!from) return CTN_OK;
    memcpy(&given, from, sizeof given);
    if (given < sizeof given)
        return ctn_fail(CTN_EARG,
                        "%s: struct_size of the options is not set; use CTN_OPT(type, ...)", who);
    memcpy(to, from, given < bytes ? given : bytes);
    memcpy(to, &bytes, sizeof bytes);
    return CTN_OK;
}
