/* SPDX-License-Identifier: Apache-2.0
 *
 * The folder of the library, where data/hdf5.c and comm/plugin.c look for plug-ins.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include <dlfcn.h>

#include "base/base.h"

void ctn__own_folder(ctn__text *out)
{
    Dl_info info;
    if (dladdr((void *)ctn__own_folder, &info) == 0 || !info.dli_fname) return;
    const char *slash = strrchr(info.dli_fname, '/');
    if (slash) ctn__text_add(out, "%.*s/", (int)(slash - info.dli_fname), info.dli_fname);
}
