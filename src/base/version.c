/* SPDX-License-Identifier: Apache-2.0
 *
 * The version of this library. A program compares it with the CTN_VERSION it was compiled against.
 */
#include "base/base.h"

int ctn_version(void)
{
    return CTN_VERSION;
}

const char *ctn_version_text(void)
{
    return CTN_STR(CTN_VERSION_MAJOR) "." CTN_STR(CTN_VERSION_MINOR) "." CTN_STR(CTN_VERSION_PATCH);
}
