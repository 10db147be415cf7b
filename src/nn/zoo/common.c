/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers shared by the families of the zoo; see zoo.h.
 */
#include <unistd.h>

#include "nn/zoo/zoo.h"

/* Sizes come from files too (config.c), so they are limited: products of two sizes do not
 * overflow. */
enum { SIZE_MOST = INT32_MAX };

ctn_status ctn__zoo_begin(ctn_module **m, ctn_context *ctx, ctn_forward_fn forward, size_t bytes,
                          size_t refs)
{
    *m = NULL;
    return ctn__module_own(m, ctx, forward, ctn__calloc(1, bytes), bytes, refs);
}

ctn_status ctn__zoo_end(ctn_module **m, ctn_status st)
{
    if (st < 0) {
        ctn_module_free(*m);
        *m = NULL;
    }
    return st;
}

ctn_status ctn__zoo_put(ctn_module *m, const char *name, ctn_status st, ctn_module **child)
{
    CTN_TRY(st);
    return ctn__zoo_end(child, ctn_module_add(m, name, *child));
}

ctn_status ctn__zoo_put_at(ctn_module *m, int number, ctn_status st, ctn_module **child)
{
    char name[16];
    snprintf(name, sizeof name, "%d", number);
    return ctn__zoo_put(m, name, st, child);
}

ctn_status ctn__zoo_conv(ctn_module **child, ctn_module *m, const char *name, int64_t in,
                         int64_t out, int64_t kernel, int64_t stride, int64_t groups)
{
    ctn_module *c = NULL;
    const ctn_init *by_out =
        CTN_OPT(ctn_init, .kind = CTN_INIT_HE_NORMAL, .fan_in = out * kernel * kernel);
    ctn_status st =
        ctn_conv_new(&c, m->ctx, in, out, CTN_SHAPE(kernel, kernel),
                     CTN_OPT(ctn_conv_module_opt, .stride = {stride}, .pad = {kernel / 2},
                             .groups = groups, .no_bias = 1, .weight = by_out));
    CTN_TRY(ctn__zoo_put(m, name, st, &c));
    if (child) *child = c;
    return CTN_OK;
}

ctn_status ctn__zoo_norm(ctn_module **child, ctn_module *m, const char *name, int64_t channels)
{
    ctn_module *c = NULL;
    CTN_TRY(ctn__zoo_put(m, name, ctn_batch_norm_new(&c, m->ctx, channels, NULL), &c));
    if (child) *child = c;
    return CTN_OK;
}

ctn_status ctn__zoo_default(const char *who, const char *what, int64_t *v, int64_t usual)
{
    if (*v < 0 || *v > SIZE_MOST)
        return ctn_fail(CTN_EARG, "%s: %s is %lld, expected 1 to %d (0: the default, %lld)", who,
                        what, (long long)*v, (int)SIZE_MOST, (long long)usual);
    if (*v == 0) *v = usual;
    return CTN_OK;
}

ctn_status ctn__zoo_layers(const char *who, int *layers, int usual)
{
    if (*layers < 0 || *layers > CTN__ZOO_LAYERS)
        return ctn_fail(CTN_EARG, "%s: got %d layers, expected 1 to %d (0: the default, %d)", who,
                        *layers, (int)CTN__ZOO_LAYERS, usual);
    if (*layers == 0) *layers = usual;
    return CTN_OK;
}

ctn_status ctn__zoo_fits(const char *who, double parameters)
{
    const double pages = (double)sysconf(_SC_PHYS_PAGES), page = (double)sysconf(_SC_PAGESIZE);
    const double bytes = parameters * sizeof(float), gb = 1e9;
    if (!(pages > 0 && page > 0) || bytes <= pages * page) return CTN_OK;
    return ctn_fail(CTN_ENOMEM,
                    "%s: a network of these sizes has %.3g parameters, which take %.3g GB; this "
                    "machine has %.3g GB of memory: check the sizes",
                    who, parameters, bytes / gb, pages * page / gb);
}
