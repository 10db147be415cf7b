/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of --help and the man pages, both from the option table of a subcommand.
 */
#include <string.h>

#include "cli.h"

enum { LEFT = 26, RIGHT = 100 };

/* help, broken at spaces to lines that begin in column `left`. */
static void wrapped(const char *help, int left)
{
    const size_t room = (size_t)(RIGHT - left);
    while (strlen(help) > room) {
        size_t n = room;
        while (n > 0 && help[n] != ' ') n--;
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

static const option help_option = {"help", NULL, NULL, "this text"};

void command_help(const command *cmd)
{
    printf("Usage: catena %s%s%s [options]\n\n%s\n", cmd->name, cmd->operands[0] ? " " : "",
           cmd->operands, cmd->summary);
    if (cmd->words) {
        char all[4096];
        int n = snprintf(all, sizeof all, "%s is one of", cmd->operands);
        for (const char *const *w = cmd->words(); *w && n < (int)sizeof all - 200; w++)
            n += snprintf(all + n, sizeof all - (size_t)n, " %s", *w);
        if (cmd->paths)
            snprintf(all + n, sizeof all - (size_t)n,
                     ", or a path with a slash to a network of your own: ./mymodel.so");
        printf("\n");
        wrapped(all, 0);
    }
    printf("\nOptions:\n");
    for (const option *o = cmd->options; o->name; o++) option_help(o);
    option_help(&help_option);
    if (cmd->configure)
        printf("\nA value is taken from the flag, else from --config (YAML, the keys are the names "
               "above), else from\nCATENA_TRAIN_NAME in the environment, else from "
               "etc/catena.yaml of the installation, else the default.\n");
    printf("\nExamples:\n%s", cmd->examples);
}

/* ---- troff ---------------------------------------------------------------------------------------- */

/* Text of a running line: what troff would take for its own is escaped. */
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

static void troff_exit_codes(void)
{
    static const char *const codes[][2] = {
        {"0", "done"},
        {"2", "the command line or the configuration is wrong"},
        {"3", "environment or launch"},
        {"4", "data"},
        {"5", "memory"},
        {"6", "a value is not finite"},
        {"7", "another rank failed"},
        {"70", "internal error"},
        {"85", "stopped with work left, the state was saved; run again with --resume"},
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
    if (cmd->words) {
        printf(".SH DESCRIPTION\n%s is one of:", cmd->operands);
        for (const char *const *w = cmd->words(); *w; w++) {
            printf(" ");
            troff(*w);
        }
        printf("%s\n", cmd->paths ? ", or a path with a slash to a network of your own" : "");
    }
    printf(".SH OPTIONS\n");
    for (const option *o = cmd->options; o->name; o++) troff_option(o);
    troff_option(&help_option);
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
