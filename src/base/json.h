/* SPDX-License-Identifier: Apache-2.0
 *
 * yyjson with Catena's memory functions, for the files that read or write JSON. In a build without
 * yyjson (CTN_HAVE_YYJSON), this header must not be included.
 */
#ifndef CTN_BASE_JSON_H
#define CTN_BASE_JSON_H

#include <yyjson.h>

#include "base/base.h"

static inline void *ctn__json_malloc(void *ctx, size_t bytes)
{
    (void)ctx;
    return ctn__malloc(bytes);
}

static inline void *ctn__json_realloc(void *ctx, void *p, size_t old, size_t bytes)
{
    (void)ctx;
    return ctn__grow(p, old < bytes ? old : bytes, bytes);
}

static inline void ctn__json_free(void *ctx, void *p)
{
    (void)ctx;
    ctn__free(p);
}

static const yyjson_alc ctn__json_memory = {ctn__json_malloc, ctn__json_realloc, ctn__json_free,
                                            NULL};

#endif
