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

static const char *trained_text(const args *trained, const char *name)
{
    const int k = option_find(&cmd_train, name, strlen(name));
    return k >= 0 && trained->value[k] ? trained->value[k] : "";
}

static int nothing_held_out(const args *a, const char *why)
{
    say(stderr, "catena %s: --held-out: %s\n", a->cmd->name, why);
    return EXIT_USAGE;
}

/* With --held-out, the data is that of the training too, or what it was validated on. */
static int inherit_data(args *a, const args *trained)
{
    static const char *const names[] = {"data", "target"}, *const vals[] = {"val", "val-target"};
    const bool val = trained_text(trained, "val")[0] != 0;
    if (!args_flag(a, "held-out")) return -1;
    if (!args_given(a, "seed")) args_settle(a, "seed", "%s", trained_text(trained, "seed"));
    if (!val && args_real(a, "val-share") <= 0)
        return nothing_held_out(a, "the training had neither --val-share nor --val");
    if (args_given(a, "data")) return -1;
    for (int i = 0; i < 2; i++)
        if (!args_given(a, names[i]))
            args_settle(a, names[i], "%s", trained_text(trained, val ? vals[i] : names[i]));
    args_settle(a, "format", "%s", trained_text(trained, "format"));
    if (val) args_settle(a, "val-share", "0");
    return -1;
}

static const char *network_of(const args *trained)
{
    return trained_text(trained, "model");
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
    const bool published = a->operand && is_published(a->operand);
    if (published || !config_beside(args_text(a, "weights"), path, sizeof path)) {
        if (args_flag(a, "held-out"))
            return nothing_held_out(a, "it needs a result folder, such as ./result");
        return a->operand ? -1 : no_network(a);
    }
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
    if (code < 0) code = inherit_data(a, &trained);
    args_free(&trained);
    return code;
}
