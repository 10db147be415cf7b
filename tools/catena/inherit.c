/* SPDX-License-Identifier: Apache-2.0
 *
 * What eval and predict take over from the training that produced their weights: config.yaml
 * beside the weights names the network and has its sizes and the preparation of its data.
 */
#include <string.h>
#include <unistd.h>

#include "task.h"

/* Options that belong to the run and not to the network. */
static const char own_options[] = " data target format stage batch loader-threads skip threads "
                                  "precision slow-precision seed weights out json split "
                                  "oversubscribe stall-seconds memory-gb to input opset ";

static bool inherited(const char *name)
{
    char spaced[128];
    snprintf(spaced, sizeof spaced, " %s ", name);
    return strstr(own_options, spaced) == NULL;
}

/* config.yaml beside the weights; false: there is none. */
static bool config_beside(const char *weights, char *path, size_t n)
{
    const char *slash = strrchr(weights, '/');
    snprintf(path, n, "%.*sconfig.yaml", slash ? (int)(slash + 1 - weights) : 0, weights);
    return is_found(path);
}

const char *weights_of(const args *a)
{
    const char *weights = args_text(a, "weights");
    if (weights[0] || !a->operand || !is_folder(a->operand)) return weights;
    return is_published(a->operand) ? a->operand : "";
}

static const char *network_of(const args *trained)
{
    const int k = option_find(&cmd_train, "model", strlen("model"));
    return k >= 0 && trained->value[k] ? trained->value[k] : "";
}

bool task_trained_as(const char *weights, char *name, size_t n)
{
    char path[4096];
    args trained = {.cmd = &cmd_train};
    if (!config_beside(weights, path, sizeof path)) return false;
    const int code = config_read(&trained, path, FROM_CONFIG);
    snprintf(name, n, "%s", code < 0 ? network_of(&trained) : "");
    args_free(&trained);
    return name[0] != 0;
}

static int no_network(const args *a)
{
    say(stderr,
        "catena %s: which network? No config.yaml beside %s names it: give it as in "
        "catena %s resnet50 --weights ...\n",
        a->cmd->name, args_text(a, "weights"), a->cmd->name);
    return EXIT_USAGE;
}

void take_result(args *a)
{
    static const char *const files[] = {"best.safetensors", "weights.safetensors"};
    char path[4096];
    if (!a->operand || !is_folder(a->operand) || is_published(a->operand)) return;
    for (int i = 0; i < 2 && !args_given(a, "weights"); i++) {
        join(path, sizeof path, a->operand, files[i]);
        if (path[0] == 0 || access(path, R_OK) != 0) continue;
        args_settle(a, "weights", "%s", path);
        break;
    }
    a->operand = NULL; /* config.yaml names it */
}

int task_inherit(args *a)
{
    char path[4096];
    if (a->operand && is_published(a->operand)) return -1;
    if (!config_beside(args_text(a, "weights"), path, sizeof path))
        return a->operand ? -1 : no_network(a);
    args trained = {.cmd = &cmd_train};
    int code = config_read(&trained, path, FROM_CONFIG);
    if (code < 0 && !a->operand) {
        a->operand = args_own(a, network_of(&trained));
        a->operand_from = args_own(a, path);
        if (!a->operand || !a->operand_from) code = EXIT_MEMORY;
    }
    if (code < 0 && (!a->operand || !a->operand[0])) code = no_network(a);
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
