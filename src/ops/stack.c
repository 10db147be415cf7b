/* SPDX-License-Identifier: Apache-2.0
 *
 * stack: tensors of equal shape joined along a new axis. It is not an op of its own but concat
 * of views with one more dimension.
 */
#include "ops/common/along.h"

ctn_tensor *ctn_stack_at(const char *at, int n, ctn_tensor *const *x, int64_t axis)
{
    char tx[128], ty[128];
    if (n < 1) {
        ctn_fail(CTN_EARG, "stack: got %d tensors, expected at least 1 (%s)", n, at);
        return NULL;
    }
    ctn_tensor *y = NULL, **in = ctn__malloc((size_t)n * sizeof(ctn_tensor *));
    if (!in) return NULL;
    for (int i = 0; i < n; i++) {
        if (x[0] && x[i] && !ctn__same_shape(&x[0]->d, &x[i]->d)) {
            ctn_fail(CTN_ESHAPE, "stack: input 0 is %s, input %d is %s; expected equal shapes (%s)",
                     ctn__shape_text(&x[0]->d, tx, sizeof tx), i,
                     ctn__shape_text(&x[i]->d, ty, sizeof ty), at);
            goto done;
        }
        in[i] = ctn_unsqueeze_at(at, x[i], axis);
        if (!in[i]) goto done;
    }
    y = ctn_concat_at(at, n, in, axis);
done:
    ctn__free(in);
    return y;
}
