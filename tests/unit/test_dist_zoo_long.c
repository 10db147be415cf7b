/* SPDX-License-Identifier: Apache-2.0
 *
 * The networks that test_dist_zoo.c leaves out, because they have layers of millions of parameters
 * whatever their options are.
 * Labels: nightly
 */
#include "zoo_ranks.h"

#include <unistd.h>

/* ---- the networks ---------------------------------------------------------------------------- */

static ctn_status googlenet(ctn_module **m, ctn_context *ctx)
{
    return ctn_zoo_googlenet(m, ctx, CTN_OPT(ctn_googlenet_opt, .classes = CLASSES));
}
static ctn_status vgg(ctn_module **m, ctn_context *ctx)
{
    return ctn_zoo_vgg(m, ctx, CTN_OPT(ctn_vgg_opt, .depth = 11, .classes = CLASSES));
}

static const network networks[] = {
    {"googlenet", googlenet, IMAGES, FLOATS(3, 3, 16, 16), 0.001, false},
    {"vgg11", vgg, IMAGES, FLOATS(3, 3, 32, 32), 0.0005, false},
};

/* Values, gradients and momentum of 129 million parameters, on 4 ranks. */
static bool has_memory(void)
{
    return (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) > 12e9;
}

static void all(void **state)
{
    (void)state;
    if (!has_memory()) print_message("vgg11 is left out: it needs 12 GB\n");
    compare_all(has_memory() ? 2 : 1, networks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
