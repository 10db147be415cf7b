/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the command share: the table of a subcommand, parsed options, JSON output and the
 * way errors are told. Exit codes: 0 done, 1 it failed, 2 the command line or a setting is
 * wrong.
 *
 * A new subcommand is one file with one `command` and one line in main.c.
 */
#ifndef CATENA_CLI_H
#define CATENA_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <catena/context.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, MAX_OPTIONS = 16 };

/* One option: arg NULL makes a flag, "N" a whole number that is checked while parsing, any other name
 * free text. Tables end with a NULL name. */
typedef struct {
    const char *name, *arg, *def, *help;
} option;

typedef struct args args;

typedef struct {
    const char *name;
    const char *operands;              /* as printed in the usage line, "" for none */
    const char *summary;               /* one line */
    const char *const *(*words)(void); /* what the operand may be, NULL-terminated; NULL: none */
    const option *options;
    const char *examples; /* lines of commands with what they do */
    int (*run)(const args *a);
} command;

struct args {
    const command *cmd;
    const char *value[MAX_OPTIONS]; /* of cmd->options, defaults filled in; flags: NULL or "1" */
    const char *operand;            /* NULL when there is none */
};

extern const command cmd_info, cmd_bench, cmd_explain, cmd_tune;

/* ---- options.c --------------------------------------------------------------------------------- */

/* Fill a from argv after the subcommand's name. -1: go on; otherwise the exit code, all told. */
int args_parse(args *a, const command *cmd, int argc, char **argv);
bool args_flag(const args *a, const char *name);
int64_t args_int(const args *a, const char *name);
const char *args_text(const args *a, const char *name); /* "" when not given */
void command_help(const command *cmd);
/* The word of a NULL-terminated list nearest to a mistyped one, NULL when none is near. */
const char *nearest(const char *word, const char *const *list);

/* ---- report.c ------------------------------------------------------------------------------------ */

/* The library's error of this thread, on stderr. Returns EXIT_FAILED. */
int report_error(const char *what);
void report_warning(void *unused, const char *message); /* a ctn_log_fn */

/* One JSON object after the other on stdout; name NULL inside of arrays. */
typedef struct {
    int depth;
    bool more; /* something stands before on this level */
} json;
void json_open(json *j, const char *name, char bracket);      /* '{' or '[' */
void json_close(json *j, char bracket);                       /* '}' or ']' */
void json_text(json *j, const char *name, const char *value); /* NULL value: null */
void json_int(json *j, const char *name, int64_t value);
void json_real(json *j, const char *name, double value); /* not finite: null */

/* More threads than CPUs, by --threads or a variable, are refused. -1: go on; otherwise the exit code. */
int check_threads(const args *a);
/* --precision f32, bf16 or f16. -1: go on; otherwise the exit code. */
int check_precision(const args *a);
/* With --threads, 0: the default, --precision where the command has one, and room for a trace. */
ctn_status open_context(ctn_context **ctx, const args *a, int64_t spans);

double now_s(void); /* monotonic */

#endif
