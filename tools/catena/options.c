/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of a subcommand from its table: parsing, the --help text, and suggestions for what was
 * mistyped. `--name value` and `--name=value` are the same; options and operands may be mixed.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli.h"

enum { MAX_WORD = 64 };

/* Levenshtein distance, upper and lower case being equal; words beyond MAX_WORD are as far away as can
 * be. */
static size_t distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), row[MAX_WORD + 1];
    if (n > MAX_WORD || m > MAX_WORD) return MAX_WORD;
    for (size_t j = 0; j <= m; j++) row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            bool same = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 1]);
            size_t best = corner + !same;
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            corner = row[j];
            row[j] = best;
        }
    }
    return row[m];
}

const char *nearest(const char *word, const char *const *list)
{
    const char *best = NULL;
    size_t limit = strlen(word) / 2 + 2; /* about half of it must be right */
    for (; *list; list++) {
        bool begins = word[0] && strncasecmp(word, *list, strlen(word)) == 0;
        size_t d = begins ? 1 : distance(word, *list);
        if (d < limit) {
            limit = d;
            best = *list;
        }
    }
    return best;
}

static int option_index(const command *cmd, const char *name, size_t n)
{
    for (int i = 0; cmd->options[i].name; i++)
        if (strlen(cmd->options[i].name) == n && memcmp(cmd->options[i].name, name, n) == 0)
            return i;
    return -1;
}

static bool whole_number(const char *s, int64_t *out)
{
    char *end = NULL;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (errno != 0 || end == s || *end != 0 || v < 0 || v > INT32_MAX) return false;
    *out = v;
    return true;
}

static int unknown_option(const command *cmd, const char *word)
{
    const char *names[MAX_OPTIONS + 2];
    int n = 0;
    for (; cmd->options[n].name; n++) names[n] = cmd->options[n].name;
    names[n++] = "help";
    names[n] = NULL;
    const char *near = nearest(word + strspn(word, "-"), names);
    fprintf(stderr, "catena %s: unknown option '%s'", cmd->name, word);
    if (near) fprintf(stderr, "; did you mean --%s?", near);
    fprintf(stderr, " (catena %s --help lists them)\n", cmd->name);
    return EXIT_USAGE;
}

static int set_operand(args *a, const char *word)
{
    const command *cmd = a->cmd;
    if (!cmd->words || a->operand) {
        fprintf(stderr, "catena %s: unexpected argument '%s' (catena %s --help tells the usage)\n",
                cmd->name, word, cmd->name);
        return EXIT_USAGE;
    }
    for (const char *const *w = cmd->words(); *w; w++)
        if (strcmp(*w, word) == 0) a->operand = *w;
    if (a->operand) return -1;
    const char *near = nearest(word, cmd->words());
    fprintf(stderr, "catena %s: unknown argument '%s'", cmd->name, word);
    if (near) fprintf(stderr, "; did you mean %s?", near);
    fprintf(stderr, " (known:");
    for (const char *const *w = cmd->words(); *w; w++) fprintf(stderr, " %s", *w);
    fprintf(stderr, ")\n");
    return EXIT_USAGE;
}

/* argv[*i] is an option; *i moves to its last word. */
static int set_option(args *a, int argc, char **argv, int *i)
{
    const command *cmd = a->cmd;
    const char *word = argv[*i];
    if (word[1] != '-') return unknown_option(cmd, word);
    size_t n = strcspn(word + 2, "=");
    int k = option_index(cmd, word + 2, n);
    if (k < 0) return unknown_option(cmd, word);
    const option *o = &cmd->options[k];
    const char *value = word[2 + n] == '=' ? word + 3 + n : NULL;
    if (!o->arg && value) {
        fprintf(stderr, "catena %s: --%s takes no value\n", cmd->name, o->name);
        return EXIT_USAGE;
    }
    if (o->arg && !value && *i + 1 < argc) value = argv[++*i];
    if (o->arg && !value) {
        fprintf(stderr, "catena %s: --%s wants a value (%s)\n", cmd->name, o->name, o->arg);
        return EXIT_USAGE;
    }
    int64_t number;
    if (o->arg && strcmp(o->arg, "N") == 0 && !whole_number(value, &number)) {
        fprintf(stderr, "catena %s: --%s wants a whole number from 0 to %d, found '%s'\n",
                cmd->name, o->name, INT32_MAX, value);
        return EXIT_USAGE;
    }
    a->value[k] = o->arg ? value : "1";
    return -1;
}

int args_parse(args *a, const command *cmd, int argc, char **argv)
{
    *a = (args){.cmd = cmd};
    for (int i = 0; cmd->options[i].name; i++) a->value[i] = cmd->options[i].def;
    for (int i = 0; i < argc; i++) {
        int code;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            command_help(cmd);
            return EXIT_DONE;
        }
        if (argv[i][0] == '-' && argv[i][1] != 0) code = set_option(a, argc, argv, &i);
        else code = set_operand(a, argv[i]);
        if (code >= 0) return code;
    }
    if (cmd->words && !a->operand) {
        fprintf(stderr, "catena %s: name one of:", cmd->name);
        for (const char *const *w = cmd->words(); *w; w++) fprintf(stderr, " %s", *w);
        fprintf(stderr, " (catena %s --help tells more)\n", cmd->name);
        return EXIT_USAGE;
    }
    return -1;
}

static const char *value_of(const args *a, const char *name)
{
    int k = option_index(a->cmd, name, strlen(name));
    return k >= 0 ? a->value[k] : NULL;
}

bool args_flag(const args *a, const char *name)
{
    return value_of(a, name) != NULL;
}

const char *args_text(const args *a, const char *name)
{
    const char *s = value_of(a, name);
    return s ? s : "";
}

int64_t args_int(const args *a, const char *name)
{
    int64_t v = 0;
    const char *s = value_of(a, name);
    return s && whole_number(s, &v) ? v : 0;
}

static void option_help(const char *name, const char *arg, const char *help, const char *def)
{
    char left[64];
    snprintf(left, sizeof left, "--%s%s%s", name, arg ? " " : "", arg ? arg : "");
    printf("  %-18s %s", left, help);
    if (def) printf(" (default: %s)", def);
    printf("\n");
}

void command_help(const command *cmd)
{
    printf("Usage: catena %s%s%s [options]\n\n%s\n\nOptions:\n", cmd->name,
           cmd->operands[0] ? " " : "", cmd->operands, cmd->summary);
    for (const option *o = cmd->options; o->name; o++)
        option_help(o->name, o->arg, o->help, o->def);
    option_help("help", NULL, "this text", NULL);
    printf("\nExamples:\n%s", cmd->examples);
}
