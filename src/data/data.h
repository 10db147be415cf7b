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

#endif
