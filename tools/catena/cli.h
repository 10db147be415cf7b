/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the command share: the table of a subcommand, parsed options, JSON output and the
 * way errors are told.
 *
 * A new subcommand is one file with one `command` and one line in main.c. Its option table is the one
 * schema: parsing, --help, man pages, the configuration file and what is written back come from it.
 */
#ifndef CATENA_CLI_H
#define CATENA_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <catena/context.h>

enum {
    EXIT_DONE = 0,
    EXIT_USAGE = 2,       /* command line or configuration */
    EXIT_ENVIRONMENT = 3, /* the machine, the build, the launch */
    EXIT_DATA = 4,        /* cannot be read, damaged, does not fit the network */
    EXIT_MEMORY = 5,
    EXIT_NONFINITE = 6,
    EXIT_OTHER_RANK = 7,
    EXIT_INTERNAL = 70,
    EXIT_REQUEUE = 85, /* the state was saved: run again with --resume */
    MAX_OPTIONS = 128
};

/* One option. The name of its value tells the type: NULL a flag, "N" a whole number, "X" a number, "a|b|c" a
 * choice, "A,..." a list of numbers, anything else text. Tables end with a NULL name. */
typedef struct {
    const char *name, *arg, *def, *help;
} option;

typedef enum { TYPE_FLAG, TYPE_WHOLE, TYPE_NUMBER, TYPE_CHOICE, TYPE_LIST, TYPE_TEXT } option_type;

/* Where a value came from, weakest first. */
typedef enum { FROM_DEFAULT, FROM_SITE, FROM_ENVIRONMENT, FROM_CONFIG, FROM_FLAG } source;

typedef struct args args;

/* What several tasks of a launcher mean to a command. */
typedef enum {
    RANKS_ANY, /* each works for itself */
    RANKS_ONE, /* refused: they would write the same files */
    RANKS_JOB  /* they work together */
} command_ranks;

typedef struct {
    const char *name;
    const char *operands;              /* as printed in the usage line, "" for none */
    const char *summary;               /* one line */
    const char *const *(*words)(void); /* what the operand may be, NULL-terminated; NULL: none */
    const option *options;
    const char *examples; /* lines of commands with what they do */
    int (*run)(args *a);
    int free_words; /* operands that may be anything, of which all must be given */
    bool paths;     /* beside `words` the operand may be a path: it has a slash */
    const char
        *configure; /* it reads configuration; options that do not belong there: " json force " */
    command_ranks ranks;
} command;

struct args {
    const command *cmd;
    const char *value[MAX_OPTIONS]; /* of cmd->options, defaults filled in; flags: NULL or "1" */
    source from[MAX_OPTIONS];
    const char *operand, *operand2; /* NULL when there is none */
    void *owned;                    /* texts that values point to, see args_own */
    struct launch *job;             /* launch.h */
};

extern const command cmd_train, cmd_eval, cmd_predict, cmd_pack;
extern const command cmd_info, cmd_bench, cmd_explain, cmd_tune, cmd_mpi_setup, cmd_selftest;
extern const command cmd_timeline;

/* ---- options.c --------------------------------------------------------------------------------- */

/* Fill a from argv after the subcommand's name. -1: go on; otherwise the exit code, all told. Free it in
 * any case. */
int args_parse(args *a, const command *cmd, int argc, char **argv);
void args_free(args *a);
bool args_flag(const args *a, const char *name);
int64_t args_int(const args *a, const char *name);
double args_real(const args *a, const char *name);
const char *args_text(const args *a, const char *name); /* "" when not given */
bool args_is(const args *a, const char *name, const char *value);
bool args_given(const args *a, const char *name); /* not by default */
/* The numbers of a list, at most max of them; returns how many there are. */
int args_list(const args *a, const char *name, int max, double *out);
/* What the program settled on, so that it is written back: FROM_DEFAULT stays. */
void args_settle(args *a, const char *name, const char *fmt, ...) CTN_PRINTF(3, 4);
/* A copy of s that lives as long as a; NULL without memory. */
const char *args_own(args *a, const char *s);
int option_find(const command *cmd, const char *name, size_t n); /* -1: none */
option_type option_type_of(const option *o);
/* Whether text is a value of the option; false writes what was expected to why. */
bool option_accepts(const option *o, const char *text, char *why, size_t n);
/* Set by a name of a weaker source; ignored when a stronger one has set it. -1: go on; else the exit code. */
int args_set(args *a, int k, const char *text, source from, const char *where);
/* The word of a NULL-terminated list nearest to a mistyped one, NULL when none is near. */
const char *nearest(const char *word, const char *const *list);
/* The option nearest to a mistyped name, NULL when none is near. */
const char *nearest_option(const command *cmd, const char *name);

/* ---- help.c -------------------------------------------------------------------------------------- */

void command_help(const command *cmd);
void command_man(const command *cmd); /* troff */
void overview_man(const command *const *all, int n);

/* ---- config.c ------------------------------------------------------------------------------------ */

/* Values of a YAML file, or of n bytes of one that `path` names in messages. -1: go on; else the exit code. */
int config_read(args *a, const char *path, source from);
int config_parse(args *a, const char *path, const char *text, size_t n, source from);
/* The site file of the installation, where there is one, and the variables of the environment. */
int config_site(args *a);
int config_environment(args *a);
/* The name of the variable of option k; false: it has none. */
bool config_variable(const command *cmd, int k, char *name, size_t n);
/* All values as a file that config_read takes. Errors: EIO. */
ctn_status config_write(const args *a, const char *path, const char *comment);

/* ---- report.c ------------------------------------------------------------------------------------ */

/* What was being done when a status came: the same one means something else. */
typedef enum { DOING_SETUP, DOING_DATA, DOING_RUN } doing;
int exit_code(ctn_status st, doing what);
/* The library's error of this thread, on stderr. Returns its exit code. */
int report_error(const char *name);
int report_failure(const char *name, doing what);
void report_warning(void *unused, const char *message); /* a ctn_log_fn */
void report_notice(void *unused, const char *message);  /* another */
/* How many kernels of the last plan are slow reference loops; warns about them once (slow.c). */
ctn_status slow_kernels(ctn_context *ctx, int64_t *count);
/* A line on stderr with the time in UTC, rank and host; and whether warnings and errors are such lines. */
void log_line(const char *fmt, ...) CTN_PRINTF(1, 2);
void log_line_of(FILE *f, int rank, const char *host, const char *text);
extern bool log_stamped;
extern int log_rank;

/* One JSON object after the other; name NULL inside of arrays. */
typedef struct {
    int depth;
    bool more; /* something stands before on this level */
    FILE *to;  /* NULL: stdout */
} json;
void json_quoted(FILE *f, const char *s);                     /* one text by itself */
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
/* Of n values, which are sorted. */
void best_and_median(double *x, int64_t n, double *best, double *median);
/* A file that appears under its name whole or not at all: a kill in between leaves the former one. Errors: EIO. */
ctn_status file_open(FILE **f, const char *path);
ctn_status file_close(FILE *f, const char *path);
/* folder/name; "" when it does not fit. */
const char *join(char *buf, size_t n, const char *folder, const char *name);

/* ---- timeline.c ---------------------------------------------------------------------------------- */

#define TIMELINE_OPTIONS                                                                     \
    {"timeline", "FILE", "", "write a trace of the ranks for Perfetto or chrome://tracing"}, \
        {"timeline-steps", "N", "20", "number of steps in the timeline, the last ones"},     \
        {"timeline-ranks", "N", "64",                                                        \
         "maximum number of ranks in the timeline, rank 0 and others evenly spread; 0: all"}

/* As the library counts them. */
int timeline_ranks(const args *a);
/* Whether there is a timeline and this rank is in it. */
bool timeline_records(const args *a);
/* Spans that a context has to keep for --timeline; 0: nobody asked for it. */
int64_t timeline_room(const args *a);

/* ---- info.c -------------------------------------------------------------------------------------- */

/* The object of `catena info --json`. */
ctn_status info_json(json *j);

#endif
