/* SPDX-License-Identifier: Apache-2.0
 *
 * Configuration files of the command, read with a table that has an option of every type. Linked
 * with the command's own config.c and options.c.
 */
#include "fuzz.h"

#include "../../tools/catena/cli.h"

static int nothing(args *a)
{
    (void)a;
    return 0;
}

static const option options[] = {
    {"batch", "N", "0", "", GROUP_NONE},
    {"lr", "X", "", "", GROUP_NONE},
    {"model", "NAME", "", "", GROUP_NONE},
    {"schedule", "step|cosine", "step", "", GROUP_NONE},
    {"mean", "R,G,B,...", "", "", GROUP_NONE},
    {"flip", NULL, NULL, "", GROUP_NONE},
    {"data", "PATH", "", "", GROUP_NONE},
    {"json", NULL, NULL, "", GROUP_NONE},
    {0},
};

static const command cmd = {.name = "fuzz",
                            .operands = "",
                            .summary = "",
                            .options = options,
                            .examples = "",
                            .run = nothing,
                            .configure = " json "};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static FILE *silent;
    double list[4];
    args a = {.cmd = &cmd};
    /* Errors are printed to stderr, thousands per second. */
    if (!silent && (silent = fopen("/dev/null", "w"))) stderr = silent;
    for (int i = 0; options[i].name; i++) a.value[i] = options[i].def;
    if (config_parse(&a, "config.yaml", (const char *)data, bytes, FROM_CONFIG) < 0) {
        args_int(&a, "batch");
        args_real(&a, "lr");
        args_list(&a, "mean", 4, list);
    }
    args_free(&a);
    return 0;
}
