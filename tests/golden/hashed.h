/* SPDX-License-Identifier: Apache-2.0
 *
 * The C counterpart of hashed.py: weights and inputs computed from a name and an index, so that
 * Python and C get the same numbers without sharing a file.
 */
#ifndef CTN_GOLDEN_HASHED_H
#define CTN_GOLDEN_HASHED_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <catena/catena.h>

#include "support/ok.h"

static inline uint32_t hashed_bits(uint32_t key, uint32_t i)
{
    i = (i ^ key) * 2654435761u;
    i = (i ^ (i >> 16)) * 0x85ebca6bu;
    i = (i ^ (i >> 13)) * 0xc2b2ae35u;
    return i ^ (i >> 16);
}

static inline uint32_t hashed_key(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

/* From -1 to 1. */
static inline double hashed_uniform(uint32_t key, uint32_t i)
{
    return (double)hashed_bits(key, i) / 4294967296.0 * 2 - 1;
}

static inline int64_t hashed_count(const ctn_desc *d)
{
    int64_t n = 1;
    for (int i = 0; i < d->ndim; i++) n *= d->dim[i];
    return n;
}

static inline int hashed_ends(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* Fills every parameter according to its name. Scales whose names end in `small` (may be NULL)
 * are a tenth. States are not touched. */
static inline void hashed_fill(ctn_module *net, const char *small)
{
    ctn_vars p = ctn_params(net);
    for (int v = 0; v < p.n; v++) {
        int first = 0; /* a tied parameter goes by its first name */
        while (p.var[first] != p.var[v]) first++;
        if (first < v) continue;
        const ctn_desc *d = ctn_var_desc(p.var[v]);
        const uint32_t n = (uint32_t)hashed_count(d), key = hashed_key(p.name[v]);
        double a = 0.25, b = d->ndim < 2 && hashed_ends(p.name[v], "weight");
        const double c = d->ndim < 2 && small && hashed_ends(p.name[v], small) ? 0.1 : 1;
        if (d->ndim > 1) a = sqrt((d->ndim > 2 ? 6.0 : 3.0) / ((double)n / (double)d->dim[0]));
        float *w = malloc(n * sizeof *w);
        if (!w) fail_msg("no memory");
        for (uint32_t i = 0; i < n; i++) w[i] = (float)((hashed_uniform(key, i) * a + b) * c);
        OK(ctn_var_set(p.var[v], w, n * sizeof *w));
        free(w);
    }
}

/* CATENA_DATA/rest, or NULL if the variable is not set. */
static inline const char *data_path(char *buf, size_t n, const char *rest)
{
    const char *data = getenv("CATENA_DATA");
    if (!data || !data[0]) return NULL;
    snprintf(buf, n, "%s/%s", data, rest);
    return buf;
}

#endif
