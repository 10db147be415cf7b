/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of data/ share: the sampler as a plain value (a loader keeps a copy of one), sizes
 * of fields, and reading of option structs.
 */
#ifndef CTN_DATA_DATA_H
#define CTN_DATA_DATA_H

#include <catena/data.h>
#include "base/base.h"

struct ctn_sampler {
    int64_t count;
    bool shuffle;
    ctn_sampler_state state;
};

/* Bytes of one sample's field, SIZE_MAX when they do not fit. dtype and shape are valid. */
size_t ctn__field_bytes(const ctn_field *f);
/* Checks the type and shape of a sample's field; `what` starts the message. */
ctn_status ctn__field_check(const char *what, int index, const ctn_field *f);

/* Copies the caller's options (NULL: none) over zeros: a caller compiled against an older,
 * shorter struct gets the defaults of what it does not know. Every option struct begins with
 * struct_size. */
static inline ctn_status ctn__data_opt(const char *what, void *to, size_t bytes, const void *from)
{
    memset(to, 0, bytes);
    if (!from) return CTN_OK;
    size_t given;
    memcpy(&given, from, sizeof given);
    if (given < sizeof given)
        return ctn_fail(CTN_EARG, "%s: struct_size is %zu: make the struct with CTN_OPT, or set it",
                        what, given);
    memcpy(to, from, given < bytes ? given : bytes);
    return CTN_OK;
}

#endif
