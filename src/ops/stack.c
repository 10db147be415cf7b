/* SPDX-License-Identifier: Apache-2.0
 *
 * stack: tensors of equal shape joined along a new axis. It is not an op of its own but concat
 * of views with one more dimension.
 */
#include "ops/common/along.h"

ctn_tensor *ctn_stack_at(const char *at, int n, ctn_tensor *const *x, int64_t axis)
{
    ctn_tensor *in[CTN_MAX_IN];
    char tx[128], ty[128];
    if (n < 1 || n > CTN_MAX_IN) {
        ctn_fail(CTN_EARG, "stack: got %d tensors, expected 1 to %d (%s)", n, CTN_MAX_IN, at);
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        if (x[0] && x[i] && !ctn__same_shape(&x[0]->d, &x[i]->d)) {
            ctn_fail(CTN_ESHAPE, "stack: input 0 is %s, input %d is %s; expected equal shapes (%s)",
                     ctn__shape_text(&x[0]->d, tx, sizeof tx), i,
                     ctn__shape_text(&x[i]->d, ty, sizeof ty), at);
            return NULL;
        }
        in[i] = ctn_unsqueeze_at(at, x[i], axis);
        if (!in[i]) return NULL;
    }
    return ctn_concat_at(at, n, in, axis);
}

ctn_tensor *ctn__stack_all(const char *at, int n, ctn_tensor **x)
{
    for (int i = 0; i < n; i++) x[i] = ctn_unsqueeze_at(at, x[i], 0);
    while (n > 1) {
        int pieces = 0;
        for (int i = 0; i < n; i += CTN_MAX_IN)
            x[pieces++] = ctn_concat_at(at, n - i < CTN_MAX_IN ? n - i : CTN_MAX_IN, x + i, 0);
        n = pieces;
    }
    return x[0];
}
