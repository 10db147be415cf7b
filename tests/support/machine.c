/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the library as a user would: it creates a context or refuses.
 */
#include "support/machine.h"

#include <catena/catena.h>

static bool has(ctn_precision p)
{
    ctn_context *ctx = NULL;
    ctn_status st =
        ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .precision = p, .slow_precision = 1));
    ctn_context_free(ctx);
    if (st < 0) ctn_error_clear();
    return st != CTN_EUNSUPPORTED;
}

bool test_has_bf16(void)
{
    return has(CTN_PRECISION_BF16);
}

bool test_has_f16(void)
{
    return has(CTN_PRECISION_F16);
}
