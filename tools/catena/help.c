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
        say(stdout, "%.*s\n%*s", (int)n, help, left, "");
        help += n + strspn(help + n, " ");
    }
    say(stdout, "%s\n", help);
}

static void option_help(const option *o)
{
    char left[256], text[1024];
    snprintf(left, sizeof left, "--%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
    bool def = o->def && o->def[0];
    snprintf(text, sizeof text, "%s%s%s%s", o->help, def ? " (default: " : "", def ? o->def : "",
             def ? ")" : "");
    if (strlen(left) > LEFT) say(stdout, "  %s\n  %*s ", left, LEFT, "");
    else say(stdout, "  %-*s ", LEFT, left);
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
    say(stdout, "\n%s:\n", headings[g]);
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
    say(stdout, "\nExample:\n%.*s\n", (int)strcspn(cmd->examples, "\n"), cmd->examples);
    say(stdout, "\n");
    wrapped(rest, 0);
}

void command_help(const command *cmd, bool all)
{
    say(stdout, "Usage: catena %s%s%s [options]", cmd->name, cmd->operands[0] ? " " : "",
        cmd->operands);
    if (cmd->after) say(stdout, " [-- %s]", cmd->after);
    say(stdout, "\n\n%s\n", cmd->summary);
    if (cmd->words) {
        char names[4096];
        const char *word = cmd->operands + strspn(cmd->operands, "[");
        int n = snprintf(names, sizeof names, "%.*s is one of", (int)strcspn(word, "] "), word);
        for (const char *const *w = cmd->words(); *w && n < (int)sizeof names - 200; w++)
            n += snprintf(names + n, sizeof names - (size_t)n, " %s", *w);
        if (cmd->paths)
            snprintf(names + n, sizeof names - (size_t)n, ", or a path with a slash to %s",
                     cmd->paths);
        say(stdout, "\n");
        wrapped(names, 0);
    }
    if (!all && has_group(cmd, GROUP_COMMON)) {
        group_help(cmd, GROUP_COMMON);
        short_end(cmd);
        return;
    }
    for (option_group g = GROUP_NONE; g < GROUPS; g++) group_help(cmd, g);
    if (cmd->configure)
        say(stdout, "\nFlags override --config FILE (YAML; its keys are the names above), which "
                    "overrides environment\nvariables (CATENA_TRAIN_NAME), which override "
                    "etc/catena.yaml of the installation.\n");
    say_lines(stdout, "\nExamples:\n%s", cmd->examples);
}

/* ---- troff ----------------------------------------------------------------------------------- */

/* Running text, with the characters escaped that are special to troff. */
static void troff(const char *s)
{
    if (*s == '.' || *s == '\'') say(stdout, "\\&");
    for (; *s; s++) {
        if (*s == '\\') say(stdout, "\\e");
        else if (*s == '-') say(stdout, "\\-");
        else putchar(*s);
    }
}

static void troff_option(const option *o)
{
    say(stdout, ".TP\n.B \\-\\-");
    troff(o->name);
    if (o->arg) {
        say(stdout, " \\fI");
        troff(o->arg);
        say(stdout, "\\fR");
    }
    say(stdout, "\n");
    troff(o->help);
    if (o->def && o->def[0]) {
        say(stdout, " (default: ");
        troff(o->def);
        say(stdout, ")");
    }
    say(stdout, "\n");
}

static void troff_group(const command *cmd, option_group g)
{
    const option *help = help_of(cmd);
    if (!has_group(cmd, g) && help->group != g) return;
    if (g != GROUP_NONE) say(stdout, ".SS %s\n", headings[g]);
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
    say(stdout, ".SH EXIT STATUS\n");
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        say(stdout, ".TP\n.B %s\n", codes[i][0]);
        troff(codes[i][1]);
        say(stdout, "\n");
    }
}

void command_man(const command *cmd)
{
    say(stdout, ".TH CATENA-%s 1 \"\" \"catena %s\"\n.SH NAME\ncatena\\-%s \\- ", cmd->name,
        ctn_version_text(), cmd->name);
    troff(cmd->summary);
    say(stdout, "\n.SH SYNOPSIS\n.B catena %s\n", cmd->name);
    if (cmd->operands[0]) say(stdout, ".I %s\n", cmd->operands);
    say(stdout, "[options]\n");
    if (cmd->after) say(stdout, "[\\-\\- %s]\n", cmd->after);
    if (cmd->words) {
        say(stdout, ".SH DESCRIPTION\n%.*s is one of:", (int)strcspn(cmd->operands, " "),
            cmd->operands);
        for (const char *const *w = cmd->words(); *w; w++) {
            say(stdout, " ");
            troff(*w);
        }
        if (cmd->paths) {
            say(stdout, ", or a path with a slash to ");
            troff(cmd->paths);
        }
        say(stdout, "\n");
    }
    say(stdout, ".SH OPTIONS\n");
    for (option_group g = GROUP_NONE; g < GROUPS; g++) troff_group(cmd, g);
    say(stdout, ".SH EXAMPLES\n.nf\n");
    troff(cmd->examples);
    say(stdout, ".fi\n");
    troff_exit_codes();
    say(stdout, ".SH SEE ALSO\n.BR catena (1)\n");
}

void overview_man(const command *const *all, int n)
{
    say(stdout,
        ".TH CATENA 1 \"\" \"catena %s\"\n.SH NAME\ncatena \\- train neural networks on CPUs\n"
        ".SH SYNOPSIS\n.B catena\n.I command\n[options]\n.SH COMMANDS\n",
        ctn_version_text());
    for (int i = 0; i < n; i++) {
        say(stdout, ".TP\n.BR catena\\-%s (1)\n", all[i]->name);
        troff(all[i]->summary);
        say(stdout, "\n");
    }
    troff_exit_codes();
}
