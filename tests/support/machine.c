/* SPDX-License-Identifier: Apache-2.0
 *
 * Asked of the library as a user would: a context is made, or refused.
 */
#include "support/machine.h"

#include <catena/catena.h>

bool test_has_bf16(void)
{
    ctn_context *ctx = NULL;
    ctn_status st =
        ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .precision = CTN_PRECISION_BF16));
    ctn_context_free(ctx);
    if (st < 0) ctn_error_clear();
    return st != CTN_EUNSUPPORTED;
}
