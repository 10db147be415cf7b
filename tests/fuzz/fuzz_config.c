/* SPDX-License-Identifier: Apache-2.0
 *
 * config.json of a published model, from which a network is made.
 */
#include "fuzz.h"

#include "nn/zoo/zoo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    ctn_context *ctx = NULL;
    ctn_module *net = NULL;
    ctn__config_mb = 64;
    if (ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)) < 0) abort();
    if (ctn_zoo_open(&net, ctx, fuzz_file("config.json", data, bytes)) < 0) ctn_error_clear();
    ctn_module_free(net);
    ctn_context_free(ctx);
    return 0;
}
