/* SPDX-License-Identifier: Apache-2.0
 *
 * Sequential and list modules, whose children are named by their number.
 */
#include "nn/nn.h"

static ctn_tensor *sequential_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    (void)self;
    for (size_t i = 0; x && i < m->children.n; i++) x = ctn_call_at(m->at, m->children.at[i], x);
    return x;
}

void ctn__module_free_alone(ctn_module *m)
{
    for (size_t i = 0; i < m->children.n; i++) {
        ctn_module *c = m->children.at[i];
        c->parent = NULL;
        ctn__free(c->name);
        c->name = NULL;
    }
    m->children.n = 0;
    ctn_module_free(m);
}

static ctn_status numbered(ctn_module **out, ctn_context *ctx, ctn_forward_fn forward, int n,
                           ctn_module *const *modules)
{
    if (out) *out = NULL;
    if (!out || n < 0 || (n > 0 && !modules))
        return ctn_fail(CTN_EARG, "sequential or list: got %d modules at address %p", n,
                        (const void *)modules);
    ctn_status st = CTN_OK;
    ctn_module *m = NULL;
    CTN_TRY(ctn_module_new(&m, ctx, forward, NULL, NULL));
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        CTN_TRY_GOTO(st, fail, ctn_module_add(m, name, modules[i]));
    }
    *out = m;
    return CTN_OK;
fail: /* the caller keeps the modules */
    ctn__module_free_alone(m);
    return st;
}

ctn_status ctn_sequential_new(ctn_module **m, ctn_context *ctx, int n, ctn_module *const *modules)
{
    return numbered(m, ctx, sequential_forward, n, modules);
}

ctn_status ctn_module_list_new(ctn_module **m, ctn_context *ctx, int n, ctn_module *const *modules)
{
    return numbered(m, ctx, NULL, n, modules);
}
