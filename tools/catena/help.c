/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints --help and the man pages, both from the option table of a subcommand.
 */
#include <string.h>

#include "cli.h"

enum { LEFT = 26, RIGHT = 100 };

/* Print `help`, wrapped at spaces; continuation lines begin in column `left`. */
static void wrapped(const char *help, int left)
{
    const size_t room = (size_t)(RIGHT - left);
    while (strlen(help) > room) {
        size_t n = room;
        /* Not after a colon: "0: off" and "(default: 1)" stay together. */
        while (n > 0 && (help[n] != ' ' || help[n - 1] == ':')) n--;
        if (n == 0) n = room;
        printf("%.*s\n%*s", (int)n, help, left, "");
        help += n + strspn(help + n, " ");
    }
    printf("%s\n", help);
}

static void option_help(const option *o)
{
    char left[256], text[1024];
    snprintf(left, sizeof left, "--%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
    bool def = o->def && o->def[0];
    snprintf(text, sizeof text, "%s%s%s%s", o->help, def ? " (default: " : "", def ? o->def : "",
             def ? ")" : "");
    if (strlen(left) > LEFT) printf("  %s\n  %*s ", left, LEFT, "");
    else printf("  %-*s ", LEFT, left);
    wrapped(text, LEFT + 3);
}

static const option help_option = {"help", NULL, NULL, "this text", GROUP_NONE};
static const option help_all_option = {"help", "[all]", NULL,
                                       "the common options; with all: every option", GROUP_COMMON};

static const char *const headings[GROUPS] = {
    [GROUP_NONE] = "Options",
    [GROUP_COMMON] = "Common options",
    [GROUP_DATA] = "Data",
    [GROUP_NETWORK] = "Network and loss",
    [GROUP_OPTIMISATION] = "Optimisation",
    [GROUP_SCHEDULE] = "Learning-rate schedule",
    [GROUP_PRECISION] = "Precision, memory and threads",
    [GROUP_OUTPUT] = "Output",
    [GROUP_CONFIG] = "Configuration files",
    [GROUP_RANKS] = "Several ranks",
};

static bool has_group(const command *cmd, option_group g)
{
    for (const option *o = cmd->options; o->name; o++)
        if (o->group == g) return true;
    return false;
}

static const option *help_of(const command *cmd)
{
    return has_group(cmd, GROUP_COMMON) ? &help_all_option : &help_option;
}

static void group_help(const command *cmd, option_group g)
{
    const option *help = help_of(cmd);
    if (!has_group(cmd, g) && help->group != g) return;
    printf("\n%s:\n", headings[g]);
    for (const option *o = cmd->options; o->name; o++)
        if (o->group == g) option_help(o);
    if (help->group == g) option_help(help);
}

/* The first example, and the groups that were left out. */
static void short_end(const command *cmd)
{
    char rest[512];
    int n = snprintf(rest, sizeof rest, "catena %s --help all also lists", cmd->name);
    const char *between = ": ";
    for (option_group g = GROUP_COMMON + 1; g < GROUPS; g++) {
        if (!has_group(cmd, g)) continue;
        n += snprintf(rest + n, sizeof rest - (size_t)n, "%s%s", between, headings[g]);
        between = "; ";
    }
    printf("\nExample:\n%.*s\n", (int)strcspn(cmd->examples, "\n"), cmd->examples);
    printf("\n");
    wrapped(rest, 0);
}

void command_help(const command *cmd, bool all)
{
    printf("Usage: catena %s%s%s [options]", cmd->name, cmd->operands[0] ? " " : "", cmd->operands);
    if (cmd->after) printf(" [-- %s]", cmd->after);
    printf("\n\n%s\n", cmd->summary);
    if (cmd->words) {
        char names[4096];
        const char *word = cmd->operands + strspn(cmd->operands, "[");
        int n = snprintf(names, sizeof names, "%.*s is one of", (int)strcspn(word, "] "), word);
        for (const char *const *w = cmd->words(); *w && n < (int)sizeof names - 200; w++)
            n += snprintf(names + n, sizeof names - (size_t)n, " %s", *w);
        if (cmd->paths)
            snprintf(names + n, sizeof names - (size_t)n, ", or a path with a slash to %s",
                     cmd->paths);
        printf("\n");
        wrapped(names, 0);
    }
    if (!all && has_group(cmd, GROUP_COMMON)) {
        group_help(cmd, GROUP_COMMON);
        short_end(cmd);
        return;
    }
    for (option_group g = GROUP_NONE; g < GROUPS; g++) group_help(cmd, g);
    if (cmd->configure)
        printf("\nFlags override --config FILE (YAML; its keys are the names above), which "
               "overrides environment\nvariables (CATENA_TRAIN_NAME), which override "
               "etc/catena.yaml of the installation.\n");
    printf("\nExamples:\n%s", cmd->examples);
}

/* ---- troff ----------------------------------------------------------------------------------- */

/* Running text, with the characters escaped that are special to troff. */
static void troff(const char *s)
{
    if (*s == '.' || *s == '\'') printf("\\&");
    for (; *s; s++) {
        if (*s == '\\') printf("\\e");
        else if (*s == '-') printf("\\-");
        else putchar(*s);
    }
}

static void troff_option(const option *o)
{
    printf(".TP\n.B \\-\\-");
    troff(o->name);
    if (o->arg) {
        printf(" \\fI");
        troff(o->arg);
        printf("\\fR");
    }
    printf("\n");
    troff(o->help);
    if (o->def && o->def[0]) {
        printf(" (default: ");
        troff(o->def);
        printf(")");
    }
    printf("\n");
}

static void troff_group(const command *cmd, option_group g)
{
    const option *help = help_of(cmd);
    if (!has_group(cmd, g) && help->group != g) return;
    if (g != GROUP_NONE) printf(".SS %s\n", headings[g]);
    for (const option *o = cmd->options; o->name; o++)
        if (o->group == g) troff_option(o);
    if (help->group == g) troff_option(help);
}

static void troff_exit_codes(void)
{
    static const char *const codes[][2] = {
        {"0", "done"},
        {"2", "error in the command line or the configuration"},
        {"3", "problem with the machine, the build or the launch"},
        {"4", "unreadable or unsuitable data"},
        {"5", "not enough memory"},
        {"6", "a value is not finite"},
        {"7", "another rank failed"},
        {"70", "internal error"},
        {"85", "stopped early; the state was saved: run again with --resume"},
    };
    printf(".SH EXIT STATUS\n");
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        printf(".TP\n.B %s\n", codes[i][0]);
        troff(codes[i][1]);
        printf("\n");
    }
}

void command_man(const command *cmd)
{
    printf(".TH CATENA-%s 1 \"\" \"catena %s\"\n.SH NAME\ncatena\\-%s \\- ", cmd->name,
           ctn_version_text(), cmd->name);
    troff(cmd->summary);
    printf("\n.SH SYNOPSIS\n.B catena %s\n", cmd->name);
    if (cmd->operands[0]) printf(".I %s\n", cmd->operands);
    printf("[options]\n");
    if (cmd->after) printf("[\\-\\- %s]\n", cmd->after);
    if (cmd->words) {
        printf(".SH DESCRIPTION\n%.*s is one of:", (int)strcspn(cmd->operands, " "), cmd->operands);
        for (const char *const *w = cmd->words(); *w; w++) {
            printf(" ");
            troff(*w);
        }
        if (cmd->paths) {
            printf(", or a path with a slash to ");
            troff(cmd->paths);
        }
        printf("\n");
    }
    printf(".SH OPTIONS\n");
    for (option_group g = GROUP_NONE; g < GROUPS; g++) troff_group(cmd, g);
    printf(".SH EXAMPLES\n.nf\n");
    troff(cmd->examples);
    printf(".fi\n");
    troff_exit_codes();
    printf(".SH SEE ALSO\n.BR catena (1)\n");
}

void overview_man(const command *const *all, int n)
{
    printf(".TH CATENA 1 \"\" \"catena %s\"\n.SH NAME\ncatena \\- train neural networks on CPUs\n"
           ".SH SYNOPSIS\n.B catena\n.I command\n[options]\n.SH COMMANDS\n",
           ctn_version_text());
    for (int i = 0; i < n; i++) {
        printf(".TP\n.BR catena\\-%s (1)\n", all[i]->name);
        troff(all[i]->summary);
        printf("\n");
    }
    troff_exit_codes();
}
