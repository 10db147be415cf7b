/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the net of a saved state as one file of weights. The arrays of a net are never divided
 * among ranks, but a state of several ranks has them in several files. Each array is compared with
 * its hash on the way, so that damage does not spread.
 */
#include "train/train.h"

#define NET "net."

typedef struct {
    const char *path;
    ctn__manifest m;
    ctn__st_file **file; /* of m; NULL: not opened yet */
    ctn__st_writer *w;
    char *values; /* of one array */
} export;

static bool of_net(const ctn__ckpt_array *a)
{
    return strncmp(a->name, NET, strlen(NET)) == 0;
}

/* Announces all arrays and makes room for the largest. */
static ctn_status announce(export *x)
{
    size_t largest = 1;
    int64_t count = 0;
    for (size_t i = 0; i < x->m.array.n; i++) {
        const ctn__ckpt_array *a = &x->m.array.at[i];
        if (!of_net(a)) continue;
        CTN_TRY(ctn__st_add(x->w, a->name + strlen(NET), a->dtype, a->ndim, a->dim));
        if (ctn__manifest_bytes(a) > largest) largest = ctn__manifest_bytes(a);
        count++;
    }
    if (count == 0) return ctn_fail(CTN_ENOTFOUND, "state_export: %s has no net", x->path);
    x->values = ctn__malloc(largest);
    return x->values ? CTN_OK : CTN_ENOMEM;
}

static ctn_status copy_array(export *x, const ctn__ckpt_array *a)
{
    ctn__st_file **f = &x->file[a->file];
    CTN_TRY(ctn__manifest_open(&x->m, x->path, a->file, f));
    const ctn__st_array *from = ctn__st_find(*f, a->name);
    const bool fits = from && from->bytes == ctn__manifest_bytes(a);
    if (fits) CTN_TRY(ctn__st_read(*f, from, x->values));
    const ctn__hash128 h = fits ? ctn__hash(x->values, from->bytes) : (ctn__hash128){0};
    if (!fits || h.lo != a->hash.lo || h.hi != a->hash.hi)
        return ctn_fail(CTN_EFORMAT,
                        "state_export: %s is damaged in %s; export another state (catena "
                        "checkpoint verify finds an intact one)",
                        a->name, x->path);
    return ctn__st_put(x->w, a->name + strlen(NET), x->values);
}

static ctn_status copy(export *x, const char *file)
{
    CTN_TRY(ctn__manifest_read(&x->m, x->path));
    x->file = ctn__calloc(x->m.file.n + 1, sizeof *x->file);
    if (!x->file) return CTN_ENOMEM;
    CTN_TRY(ctn__st_begin(&x->w, file));
    CTN_TRY(ctn__st_add_metadata(x->w, "format", "pt"));
    CTN_TRY(announce(x));
    for (size_t i = 0; i < x->m.array.n; i++)
        if (of_net(&x->m.array.at[i])) CTN_TRY(copy_array(x, &x->m.array.at[i]));
    return ctn__st_finish(x->w);
}

ctn_status ctn_state_export(const char *path, const char *file)
{
    export x = {.path = path};
    CTN_TRY(ctn__state_need("state_export", path));
    if (!file) return ctn_fail(CTN_EARG, "state_export: needs the name of a file to write");
    const ctn_status st = copy(&x, file);
    ctn__st_writer_free(x.w);
    for (size_t i = 0; x.file && i < x.m.file.n; i++) ctn__st_close(x.file[i]);
    ctn__free(x.file);
    ctn__free(x.values);
    ctn__manifest_free(&x.m);
    return st;
}
