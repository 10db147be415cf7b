/* SPDX-License-Identifier: Apache-2.0
 *
 * The modules of pooling and flattening, for sequential models. They have no parameters.
 */
#include <catena/ops.h>

#include "nn/nn.h"

typedef ctn_tensor *(*pool_fn)(const char *at, ctn_tensor *x, const ctn_pool_opt *opt);

typedef struct {
    pool_fn op;
    ctn_pool_opt how;
} pool;

static ctn_tensor *pool_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const pool *p = self;
    return p->op(m->at, x, &p->how);
}

static ctn_status new_pool(const char *who, pool_fn op, ctn_module **m, ctn_context *ctx,
                           const ctn_pool_opt *opt)
{
    ctn_pool_opt how;
    if (!m) return ctn_fail(CTN_EARG, "%s: NULL argument", who);
    *m = NULL;
    CTN_TRY(ctn__opt(who, &how, sizeof how, opt));
    if (how.kernel[0] < 1)
        return ctn_fail(CTN_EARG, "%s: kernel is %lld, it must be positive", who,
                        (long long)how.kernel[0]);
    how.struct_size = sizeof how;
    pool *p = ctn__malloc(sizeof *p);
    if (p) *p = (pool){op, how};
    return ctn__module_own(m, ctx, pool_forward, p, sizeof *p, 0);
}

ctn_status ctn_max_pool_new(ctn_module **m, ctn_context *ctx, const ctn_pool_opt *opt)
{
    return new_pool("max_pool_new", ctn_max_pool_at, m, ctx, opt);
}

ctn_status ctn_avg_pool_new(ctn_module **m, ctn_context *ctx, const ctn_pool_opt *opt)
{
    return new_pool("avg_pool_new", ctn_avg_pool_at, m, ctx, opt);
}

ctn_tensor *ctn__flatten(const char *at, ctn_tensor *x)
{
    if (!x) return NULL;
    int64_t rest = 1;
    for (int i = 1; i < ctn_ndim(x); i++) rest *= ctn_dim(x, i);
    return ctn_reshape_at(at, x, CTN_SHAPE(ctn_ndim(x) > 0 ? ctn_dim(x, 0) : 1, rest));
}

static ctn_tensor *flatten_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    (void)self;
    return ctn__flatten(m->at, x);
}

ctn_status ctn_flatten_new(ctn_module **m, ctn_context *ctx)
{
    return ctn_module_new(m, ctx, flatten_forward, NULL, NULL);
}
