/* SPDX-License-Identifier: Apache-2.0
 *
 * What eval and predict take from the training whose weights they use: the configuration that lies
 * beside the weights knows the sizes of the network and how its data was prepared.
 */
#include <string.h>
#include <unistd.h>

#include "task.h"

/* Of this run, not of the network. */
static const char own_options[] = " data target format stage batch loader-threads skip threads "
                                  "precision slow-precision seed weights out json split "
                                  "oversubscribe stall-seconds memory-gb ";

static bool inherited(const char *name)
{
    char spaced[128];
    snprintf(spaced, sizeof spaced, " %s ", name);
    return strstr(own_options, spaced) == NULL;
}

int task_inherit(args *a)
{
    char path[4096];
    const char *weights = args_text(a, "weights"), *slash = strrchr(weights, '/');
    snprintf(path, sizeof path, "%.*sconfig.yaml", slash ? (int)(slash + 1 - weights) : 0, weights);
    if (access(path, R_OK) != 0) return -1;
    args trained = {.cmd = &cmd_train};
    int code = config_read(&trained, path, FROM_CONFIG);
    for (int k = 0; code < 0 && a->cmd->options[k].name; k++) {
        const char *name = a->cmd->options[k].name;
        int from = option_find(&cmd_train, name, strlen(name));
        if (from < 0 || !trained.value[from] || a->from[k] != FROM_DEFAULT || !inherited(name))
            continue;
        a->value[k] = args_own(a, trained.value[from]);
        a->from[k] = FROM_CONFIG;
    }
    args_free(&trained);
    return code;
}
