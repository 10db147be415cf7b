/* SPDX-License-Identifier: Apache-2.0
 *
 * The embedding module: weight (V,D), by default normal with standard deviation 1.
 */
#include <catena/ops.h>

#include "nn/nn.h"

typedef struct {
    ctn_var *weight; /* owned by the module */
} embedding;

static ctn_tensor *embedding_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const embedding *e = self;
    return ctn_embedding_at(m->at, ctn_use_at(m->at, e->weight), x);
}

ctn_status ctn_embedding_new(ctn_module **m, ctn_context *ctx, int64_t rows, int64_t width,
                             const ctn_init *weight)
{
    if (!m) return ctn_fail(CTN_EARG, "embedding_new: NULL argument");
    *m = NULL;
    if (rows < 1 || width < 1)
        return ctn_fail(CTN_EARG, "embedding_new: %lld rows of %lld, both must be positive",
                        (long long)rows, (long long)width);
    embedding *e = ctn__calloc(1, sizeof *e);
    CTN_TRY(ctn__module_own(m, ctx, embedding_forward, e, sizeof *e, 1));
    const ctn_init *usual = CTN_OPT(ctn_init, .kind = CTN_INIT_NORMAL);
    ctn_status st = ctn_module_param(&e->weight, *m, "weight", ctn_context_float_type((*m)->ctx),
                                     CTN_SHAPE(rows, width), weight ? weight : usual);
    if (st < 0) {
        ctn_module_free(*m);
        *m = NULL;
    }
    return st;
}
