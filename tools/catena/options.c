/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the options of a subcommand by its table: types, sources of values, and suggestions for
 * mistyped names. `--name value` and `--name=value` mean the same; options and operands may be
 * mixed.
 */
#define _GNU_SOURCE /* vasprintf */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cli.h"

enum { MAX_WORD = 64, MAX_LIST = 64, HASH_DIGITS = 16 };

/* ---- suggestions ----------------------------------------------------------------------------- */

/* Edit distance, ignoring case: an edit inserts, removes or changes a letter, or swaps two
 * adjacent ones. Words longer than MAX_WORD get the largest distance. */
static size_t distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), rows[3][MAX_WORD + 1];
    if (n > MAX_WORD || m > MAX_WORD) return MAX_WORD;
    for (size_t i = 0; i <= n; i++) {
        size_t *row = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        for (size_t j = 0; j <= m; j++) {
            size_t best = i + j;
            if (i > 0 && j > 0) {
                int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
                best = last[j - 1] + (x != y);
                if (last[j] + 1 < best) best = last[j] + 1;
                if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
                bool swapped = i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
                               y == tolower((unsigned char)a[i - 2]);
                if (swapped && before[j - 2] + 1 < best) best = before[j - 2] + 1;
            }
            row[j] = best;
        }
    }
    return rows[n % 3][m];
}

const char *nearest(const char *word, const char *const *list)
{
    const char *best = NULL;
    size_t limit = strlen(word) / 2 + 2; /* about half of the letters must be right */
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

const char *nearest_option(const command *cmd, const char *name)
{
    const char *names[MAX_OPTIONS + 2];
    int n = 0;
    for (; cmd->options[n].name; n++) names[n] = cmd->options[n].name;
    names[n++] = "help";
    names[n] = NULL;
    return nearest(name, names);
}

/* ---- types ----------------------------------------------------------------------------------- */

option_type option_type_of(const option *o)
{
    if (!o->arg) return TYPE_FLAG;
    if (strcmp(o->arg, "N") == 0) return TYPE_WHOLE;
    if (strcmp(o->arg, "X") == 0) return TYPE_NUMBER;
    if (strchr(o->arg, '|')) return TYPE_CHOICE;
    return strstr(o->arg, ",...") ? TYPE_LIST : TYPE_TEXT;
}

bool option_is_path(const option *o, const char *value)
{
    if (!o->arg) return false;
    if (strcmp(o->name, "target") == 0 || strcmp(o->name, "val-target") == 0)
        return names_array(value);
    if (strcmp(o->name, "model") == 0) return strchr(value, '/') || is_onnx_name(value);
    return strcmp(o->arg, "PATH") == 0 || strcmp(o->arg, "FILE") == 0 || strcmp(o->arg, "DIR") == 0;
}

static bool number(const char *s, double *out)
{
    char *end = NULL;
    double v = strtod(s, &end);
    /* strtod also accepts 0x10, nan and inf, which are mistakes here. */
    if (end == s || *end != 0 || !isfinite(v) || strpbrk(s, "xXnN")) return false;
    *out = v;
    return true;
}

static bool whole_number(const char *s, int64_t *out)
{
    double v = 0;
    if (!number(s, &v) || v != floor(v) || v < 0 || v > INT32_MAX) return false;
    *out = (int64_t)v;
    return true;
}

static bool is_choice(const char *choices, const char *word)
{
    size_t n = strlen(word);
    for (const char *c = choices; n > 0; c++) {
        if (strncmp(c, word, n) == 0 && (c[n] == '|' || c[n] == 0)) return true;
        c = strchr(c, '|');
        if (!c) break;
    }
    return false;
}

/* Numbers separated by commas; an empty list is valid. Sizes are integers and must fit an int. */
static bool is_list(const char *s, bool sizes)
{
    for (int n = 0; *s; n++) {
        char *end = NULL;
        double v = strtod(s, &end);
        if (end == s || !isfinite(v) || n == MAX_LIST) return false;
        if (sizes && (v != floor(v) || v < 0 || v > INT32_MAX)) return false;
        end += strspn(end, " ");
        if (*end != 0 && *end != ',') return false;
        s = *end == ',' ? end + 1 + strspn(end + 1, " ") : end;
        if (*end == ',' && *s == 0) return false;
    }
    return true;
}

bool option_accepts(const option *o, const char *text, char *why, size_t n)
{
    const char *arg = o->arg ? o->arg : "";
    int64_t w;
    double v;
    switch (option_type_of(o)) {
    case TYPE_FLAG:
        snprintf(why, n, "true or false");
        return is_choice("true|false|yes|no|on|off|1|0", text);
    case TYPE_WHOLE:
        snprintf(why, n, "an integer from 0 to %d", INT32_MAX);
        return whole_number(text, &w);
    case TYPE_NUMBER: snprintf(why, n, "a number"); return number(text, &v);
    case TYPE_CHOICE: snprintf(why, n, "one of %s", arg); return is_choice(arg, text);
    case TYPE_LIST: {
        const bool sizes = arg[0] == 'N';
        snprintf(why, n, "at most %d numbers separated by commas%s", MAX_LIST,
                 sizes ? ", each an integer from 0 to 2147483647" : "");
        return is_list(text, sizes);
    }
    default:
        if (strcmp(arg, "HASH") != 0) return true;
        snprintf(why, n, "%d hexadecimal digits", HASH_DIGITS);
        return strlen(text) == HASH_DIGITS && strspn(text, "0123456789abcdef") == HASH_DIGITS;
    }
}

/* ---- values ---------------------------------------------------------------------------------- */

typedef struct text {
    struct text *next;
    char s[];
} text;

const char *args_own(args *a, const char *s)
{
    size_t n = strlen(s) + 1;
    text *t = malloc(sizeof *t + n);
    if (!t) return NULL;
    memcpy(t->s, s, n);
    t->next = a->owned;
    a->owned = t;
    return t->s;
}

void args_free(args *a)
{
    for (text *t = a->owned, *next; t; t = next) {
        next = t->next;
        free(t);
    }
    a->owned = NULL;
}

int option_find(const command *cmd, const char *name, size_t n)
{
    for (int i = 0; cmd->options[i].name; i++)
        if (strlen(cmd->options[i].name) == n && memcmp(cmd->options[i].name, name, n) == 0)
            return i;
    return -1;
}

/* An option with patterns may be given several times: "a" and "b" is "a,b". */
static const char *joined(args *a, int k, const char *value)
{
    char both[4096];
    const char *before = a->value[k];
    if (a->from[k] != FROM_FLAG || strncmp(a->cmd->options[k].arg, "PATTERN", 7) != 0) return value;
    snprintf(both, sizeof both, "%s,%s", before, value);
    return args_own(a, both);
}

int args_set(args *a, int k, const char *value, source from, const char *where)
{
    const option *o = &a->cmd->options[k];
    char why[512];
    if (!option_accepts(o, value, why, sizeof why)) {
        say(stderr, "catena %s: %s%s%s must be %s, not '%s'\n", a->cmd->name, where,
            from == FROM_FLAG ? "--" : "", o->name, why, value);
        return EXIT_USAGE;
    }
    if (a->from[k] > from) return -1;
    if (!o->arg) value = is_choice("true|yes|on|1", value) ? "1" : NULL;
    else value = from == FROM_FLAG ? joined(a, k, value) : args_own(a, value);
    a->value[k] = value;
    a->from[k] = from;
    return -1;
}

void args_settle(args *a, const char *name, const char *fmt, ...)
{
    char *buf = NULL;
    int k = option_find(a->cmd, name, strlen(name));
    if (k < 0) return;
    va_list ap;
    va_start(ap, fmt);
    const bool good = vasprintf(&buf, fmt, ap) >= 0;
    va_end(ap);
    const char *s = good ? args_own(a, buf) : NULL;
    if (s) a->value[k] = s;
    if (good) free(buf);
}

static const char *value_of(const args *a, const char *name)
{
    int k = option_find(a->cmd, name, strlen(name));
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

bool args_is(const args *a, const char *name, const char *value)
{
    return strcmp(args_text(a, name), value) == 0;
}

bool args_given(const args *a, const char *name)
{
    int k = option_find(a->cmd, name, strlen(name));
    return k >= 0 && a->from[k] > FROM_DEFAULT;
}

int64_t args_int(const args *a, const char *name)
{
    int64_t v = 0;
    const char *s = value_of(a, name);
    return s && whole_number(s, &v) ? v : 0;
}

double args_real(const args *a, const char *name)
{
    double v = 0;
    const char *s = value_of(a, name);
    return s && number(s, &v) ? v : 0;
}

int args_list(const args *a, const char *name, int max, double *out)
{
    int n = 0;
    for (const char *s = args_text(a, name); *s && n < max; n++) {
        char *end = NULL;
        out[n] = strtod(s, &end);
        if (end == s) break;
        s = end + strspn(end, ", ");
    }
    return n;
}

/* ---- the command line ------------------------------------------------------------------------ */

/* What people type from habit: names that other programs have for an option, or for something
 * that is not an option here. */
static const struct {
    const char *typed, *option, *instead;
} habits[] = {
    {"learning-rate", "lr", NULL},
    {"lr-scheduler", "schedule", NULL},
    {"scheduler", "schedule", NULL},
    {"batch-size", "batch", NULL},
    {"weight-decay", "decay", NULL},
    {"wd", "decay", NULL},
    {"workers", "loader-threads", NULL},
    {"num-workers", "loader-threads", NULL},
    {"pretrained", "weights", NULL},
    {"checkpoint", "resume", NULL},
    {"output", "out", NULL},
    {"output-dir", "out", NULL},
    {"amp", "precision", NULL},
    {"bf16", "precision", NULL},
    {"fp16", "precision", NULL},
    {"opt", "optimizer", NULL},
    {"arch", NULL, "the network is the first word: catena train resnet50 ..."},
    {"model", NULL, "the network is the first word: catena train resnet50 ..."},
    {"unfreeze", "unfreeze-at", NULL},
    {"freeze-bn", "freeze-statistics", NULL},
    {"device", NULL, "Catena runs on CPUs; --threads sets how many"},
    {"gpu", NULL, "Catena runs on CPUs; --threads sets how many"},
};

static int unknown_option(const command *cmd, const char *word)
{
    const char *name = word + strspn(word, "-"), *near = nearest_option(cmd, name), *instead = NULL;
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++) {
        const size_t n = strcspn(name, "=");
        if (strncmp(habits[i].typed, name, n) != 0 || habits[i].typed[n]) continue;
        const char *o = habits[i].option;
        if (o && option_find(cmd, o, strlen(o)) >= 0) near = o;
        if (habits[i].instead) instead = habits[i].instead;
    }
    say(stderr, "catena %s: unknown option '%s'", cmd->name, word);
    if (instead) say(stderr, "; %s", instead);
    else if (near) say(stderr, "; did you mean --%s?", near);
    say(stderr, " (catena %s --help all lists them)\n", cmd->name);
    return EXIT_USAGE;
}

/* Names of networks in earlier versions. */
static const char *const renamed[][2] = {
    {"cifar-resnet20", "resnet20_cifar"}, {"cifar-resnet32", "resnet32_cifar"},
    {"cifar-resnet44", "resnet44_cifar"}, {"cifar-resnet56", "resnet56_cifar"},
    {"mobilenet-v2", "mobilenet_v2"},
};

static int unknown_word(const command *cmd, const char *word)
{
    const char *near = nearest(word, cmd->words());
    if (cmd->paths && access(word, F_OK) == 0) {
        say(stderr, "catena %s: '%s' is a file or folder here: write ./%s\n", cmd->name, word,
            word);
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (strcmp(word, renamed[i][0]) == 0) near = renamed[i][1];
    say(stderr, "catena %s: unknown argument '%s'", cmd->name, word);
    if (near) say(stderr, "; did you mean %s?", near);
    say(stderr, " (known:");
    for (const char *const *w = cmd->words(); *w; w++) say(stderr, " %s", *w);
    if (cmd->paths) say(stderr, ", or %s", cmd->paths);
    say(stderr, ")\n");
    return EXIT_USAGE;
}

static int set_operand(args *a, const char *word)
{
    const command *cmd = a->cmd;
    const char **slot = !a->operand ? &a->operand : &a->operand2;
    if (cmd->free_words > (a->operand != NULL) + (a->operand2 != NULL)) {
        *slot = word;
        return -1;
    }
    if (!cmd->words || a->operand) {
        say(stderr, "catena %s: unexpected argument '%s' (see catena %s --help)\n", cmd->name, word,
            cmd->name);
        return EXIT_USAGE;
    }
    for (const char *const *w = cmd->words(); *w; w++)
        if (strcmp(*w, word) == 0) a->operand = *w;
    if (!a->operand && cmd->paths && (strchr(word, '/') || is_onnx_name(word))) a->operand = word;
    return a->operand ? -1 : unknown_word(cmd, word);
}

/* argv[*i] is an option; *i advances to its last word. */
static int set_option(args *a, int argc, char **argv, int *i)
{
    const command *cmd = a->cmd;
    const char *word = argv[*i];
    const bool dash_n = cmd->dash_n && (strcmp(word, "-n") == 0 || strcmp(word, "-np") == 0);
    if (word[1] != '-' && !dash_n) return unknown_option(cmd, word);
    const char *name = dash_n ? cmd->dash_n : word + 2;
    size_t n = strcspn(name, "=");
    int k = option_find(cmd, name, n);
    if (k < 0) return unknown_option(cmd, word);
    const option *o = &cmd->options[k];
    const char *value = name[n] == '=' ? name + n + 1 : NULL;
    if (!o->arg && value) {
        say(stderr, "catena %s: --%s takes no value\n", cmd->name, o->name);
        return EXIT_USAGE;
    }
    if (o->arg && !value && *i + 1 < argc) value = argv[++*i];
    if (o->arg && !value) {
        say(stderr, "catena %s: --%s needs a value (%s)\n", cmd->name, o->name, o->arg);
        return EXIT_USAGE;
    }
    return args_set(a, k, o->arg ? value : "1", FROM_FLAG, "");
}

static int missing(const args *a)
{
    const command *cmd = a->cmd;
    if (cmd->free_words && (!a->operand || (cmd->free_words > 1 && !a->operand2))) {
        say(stderr, "catena %s: expected %s (see catena %s --help)\n", cmd->name, cmd->operands,
            cmd->name);
        return EXIT_USAGE;
    }
    if (!cmd->words || a->operand || cmd->optional) return -1;
    if (option_find(cmd, "resume", 6) >= 0 && args_flag(a, "resume") &&
        !args_text(a, "config")[0]) {
        say(stderr, "catena %s: %s has no config.yaml to resume with\n", cmd->name,
            args_text(a, "out"));
        return EXIT_USAGE;
    }
    say(stderr, "catena %s: give one of:", cmd->name);
    for (const char *const *w = cmd->words(); *w; w++) say(stderr, " %s", *w);
    say(stderr, " (see catena %s --help)\n", cmd->name);
    return EXIT_USAGE;
}

/* A result folder from somebody else must not choose a file that --timeline overwrites, nor another
 * result folder: only the command line and --config can. */
static void forget_places(args *a, const char *file, const char *out)
{
    const int t = option_find(a->cmd, "timeline", 8), o = option_find(a->cmd, "out", 3);
    if (o >= 0) a->value[o] = out;
    if (t < 0 || a->from[t] != FROM_CONFIG || !a->value[t] || !a->value[t][0]) return;
    say(stderr,
        "catena %s: no timeline is written: to write the one that %s names, add "
        "--timeline %s\n",
        a->cmd->name, file, a->value[t]);
    a->value[t] = "";
}

/* Read the sources that flags override: the site file, the environment, and --config or, with
 * --resume, the config.yaml of the result folder. */
static int configure(args *a)
{
    char path[4096];
    bool found = false;
    int code = config_site(a);
    if (code < 0) code = config_environment(a);
    const char *file = args_text(a, "config"), *out = args_text(a, "out");
    if (!file[0] && args_flag(a, "resume") && join(path, sizeof path, out, "config.yaml")[0] &&
        is_found(path)) {
        file = path;
        found = true;
    }
    if (code < 0 && file[0]) code = config_read(a, file, FROM_CONFIG);
    if (code < 0 && found) forget_places(a, file, out);
    int k = option_find(a->cmd, "model", 5);
    if (code >= 0 || k < 0) return code;
    /* The network is an operand on the command line and a key in a file. */
    if (a->operand) {
        a->value[k] = a->operand;
        a->from[k] = FROM_FLAG;
    } else if (a->value[k] && a->value[k][0]) {
        code = set_operand(a, a->value[k]);
        a->operand_from = a->from[k] == FROM_CONFIG ? args_own(a, file)
                          : a->from[k] == FROM_SITE ? "etc/catena.yaml of the installation"
                                                    : "a variable of the environment";
        if (!a->operand_from) code = EXIT_MEMORY;
    }
    return code;
}

/* Whether the next operand belongs to args.extra. dashes: it comes after `--`. */
static bool is_extra(const args *a, bool dashes)
{
    return dashes && a->cmd->after ? true : a->cmd->more && a->operand;
}

static int set_words(args *a, int argc, char **argv)
{
    bool dashes = false;
    for (int i = 0; i < argc; i++) {
        int code = -1;
        if (!dashes && strcmp(argv[i], "--") == 0) {
            dashes = true;
        } else if (!dashes && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)) {
            command_help(a->cmd, i + 1 < argc && strcmp(argv[i + 1], "all") == 0);
            return EXIT_DONE;
        } else if (!dashes && argv[i][0] == '-' && argv[i][1] != 0) {
            code = set_option(a, argc, argv, &i);
        } else if (is_extra(a, dashes)) {
            argv[a->nextra++] = argv[i]; /* over a word that was read before */
        } else {
            code = set_operand(a, argv[i]);
        }
        if (code >= 0) return code;
    }
    return -1;
}

int args_parse(args *a, const command *cmd, int argc, char **argv)
{
    *a = (args){.cmd = cmd, .extra = argv};
    for (int i = 0; cmd->options[i].name; i++) a->value[i] = cmd->options[i].def;
    int code = set_words(a, argc, argv);
    if (code < 0 && cmd->configure) code = configure(a);
    return code >= 0 ? code : missing(a);
}
