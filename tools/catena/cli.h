/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the command share: the table that describes a subcommand, parsed options,
 * JSON output and error reporting.
 *
 * A new subcommand is one file with one `command`, plus one line in main.c. Its option table is
 * the only schema: parsing, --help, the man page, and reading and writing configuration files
 * all follow it.
 */
#ifndef CATENA_CLI_H
#define CATENA_CLI_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <catena/context.h>

enum {
    EXIT_DONE = 0,
    EXIT_USAGE = 2,       /* command line or configuration */
    EXIT_ENVIRONMENT = 3, /* the machine, the build or the launch */
    EXIT_DATA = 4,        /* unreadable, damaged, or unsuitable for the network */
    EXIT_MEMORY = 5,
    EXIT_NONFINITE = 6,
    EXIT_OTHER_RANK = 7,
    EXIT_INTERNAL = 70,
    EXIT_REQUEUE = 85, /* a checkpoint was saved: run again with --resume */
    MAX_OPTIONS = 128
};

/* The headings of --help and of the man pages, in this order. If a command has common options,
 * plain --help shows only those, and `--help all` shows every group. */
typedef enum {
    GROUP_NONE,
    GROUP_COMMON,
    GROUP_DATA,
    GROUP_NETWORK,
    GROUP_OPTIMISATION,
    GROUP_SCHEDULE,
    GROUP_PRECISION,
    GROUP_OUTPUT,
    GROUP_CONFIG,
    GROUP_RANKS,
    GROUPS
} option_group;

/* One option. `arg` names its value and implies the type: NULL is a flag, "N" an integer, "X" a
 * number, "a|b|c" a choice, "A,..." a list of numbers, and anything else is text. A table ends
 * with a NULL name. */
typedef struct {
    const char *name, *arg, *def, *help;
    option_group group;
} option;

typedef enum { TYPE_FLAG, TYPE_WHOLE, TYPE_NUMBER, TYPE_CHOICE, TYPE_LIST, TYPE_TEXT } option_type;

/* Where a value came from, in order of increasing precedence. */
typedef enum { FROM_DEFAULT, FROM_SITE, FROM_ENVIRONMENT, FROM_CONFIG, FROM_FLAG } source;

typedef struct args args;

/* What a command does when a launcher starts several tasks. */
typedef enum {
    RANKS_ANY, /* each task works on its own */
    RANKS_ONE, /* refuses: the tasks would write the same files */
    RANKS_JOB  /* the tasks work together */
} command_ranks;

#define OWN_NETWORK "a network of your own (./mymodel.so), or a model in ONNX format (model.onnx)"
#define OWN_OR_RESULT "a result folder (./result), " OWN_NETWORK

typedef struct {
    const char *name;
    const char *operands;              /* as printed in the usage line, "" for none */
    const char *summary;               /* one line */
    const char *const *(*words)(void); /* valid operands, NULL-terminated; NULL: none */
    const option *options;
    const char *examples; /* commands, one per line, each with what it does */
    int (*run)(args *a);
    /* Called before MPI starts, which takes long. NULL: there is nothing to do. */
    void (*prepare)(void);
    int free_words; /* number of required operands that may be any text */
    bool optional;  /* the operand may be missing: the command finds it by itself */
    /* Besides `words`, the operand may be a path, which must contain a slash, to what this says,
     * with an example: "a thing: ./example". NULL: it may not. */
    const char *paths;
    bool more;          /* any number of operands may follow that of `words`: args.extra */
    const char *dash_n; /* the option that -n and -np, as of mpirun, stand for; NULL: none */
    /* What the words after `--` are, as printed in the usage line: they go to args.extra. NULL:
     * they are operands. */
    const char *after;
    /* Not NULL: the command reads configuration files. Lists the options that are not allowed
     * there: " json force ". */
    const char *configure;
    command_ranks ranks;
} command;

struct args {
    const command *cmd;
    const char *value[MAX_OPTIONS]; /* indexed as cmd->options, with defaults; flags: NULL or "1" */
    source from[MAX_OPTIONS];
    const char *operand, *operand2; /* NULL: not given */
    const char *operand_from;       /* the file or variable that gave it; NULL: the command line */
    char **extra;                   /* further words of the command line: command.more, .after */
    int nextra;
    void *owned;        /* strings that values point to, see args_own */
    struct launch *job; /* launch.h */
};

extern const command cmd_train, cmd_eval, cmd_predict, cmd_generate, cmd_pack;
extern const command cmd_info, cmd_bench, cmd_explain, cmd_tune, cmd_mpi_setup, cmd_selftest;
extern const command cmd_timeline, cmd_checkpoint, cmd_verify_resume, cmd_launch, cmd_scale;
extern const command cmd_plan, cmd_weights, cmd_export;

const command *command_find(const char *name); /* NULL: there is none (main.c) */
extern const char *command_line;               /* as it was typed, without quotes (main.c) */

/* ---- options.c ------------------------------------------------------------------------------- */

/* Parse argv, which starts after the subcommand's name, into a. Returns -1 to continue,
 * otherwise the exit code; the error was then printed. Call args_free in either case. */
int args_parse(args *a, const command *cmd, int argc, char **argv);
void args_free(args *a);
bool args_flag(const args *a, const char *name);
int64_t args_int(const args *a, const char *name);
double args_real(const args *a, const char *name);
const char *args_text(const args *a, const char *name); /* "" when not given */
bool args_is(const args *a, const char *name, const char *value);
bool args_given(const args *a, const char *name); /* not a default */
/* The numbers of a list, at most max. Returns their count. */
int args_list(const args *a, const char *name, int max, double *out);
/* Record the value that the program chose, so that it is written to config.yaml. The source of
 * the value does not change. */
void args_settle(args *a, const char *name, const char *fmt, ...) CTN_PRINTF(3, 4);
/* A copy of s that lives as long as a; NULL if out of memory. */
const char *args_own(args *a, const char *s);
int option_find(const command *cmd, const char *name, size_t n); /* -1: none */
option_type option_type_of(const option *o);
/* Whether a value of the option is a path. --target may be one, or names of columns. */
bool option_is_path(const option *o, const char *value);
/* Whether text is a valid value of the option. Describes a valid value in `why`. */
bool option_accepts(const option *o, const char *text, char *why, size_t n);
/* Set option k. Ignored if a source of higher precedence has set it. Returns -1 to continue,
 * else the exit code. */
int args_set(args *a, int k, const char *text, source from, const char *where);
/* The word in a NULL-terminated list that is closest to a mistyped one; NULL: none is close. */
const char *nearest(const char *word, const char *const *list);
/* The option that is closest to a mistyped name; NULL: none is close. */
const char *nearest_option(const command *cmd, const char *name);

/* ---- help.c ---------------------------------------------------------------------------------- */

/* all: every option, even if the command has common ones. */
void command_help(const command *cmd, bool all);
void command_man(const command *cmd); /* troff */
void overview_man(const command *const *all, int n);

/* ---- completion.c ---------------------------------------------------------------------------- */

#define COMPLETION_SHELLS "bash|zsh|fish"
/* Print the completion script of a shell; NULL: none was named. Returns the exit code. */
int print_completion(const char *shell, const command *const *all, int n);

/* ---- config.c -------------------------------------------------------------------------------- */

/* Read values from a YAML file, or from n bytes of one that messages call `path`. Relative paths
 * in it start from the folder of the file. Returns -1 to continue, else the exit code. */
int config_read(args *a, const char *path, source from);
int config_parse(args *a, const char *path, const char *text, size_t n, source from);
/* Read the installation's site file, if there is one, and the environment variables. */
int config_site(args *a);
int config_environment(args *a);
/* The name of the environment variable for option k; false: it has none. */
bool config_variable(const command *cmd, int k, char *name, size_t n);
/* Write all values, paths as absolute ones, to a file that config_read can read. Errors: EIO. */
ctn_status config_write(const args *a, const char *path, const char *comment);

/* ---- report.c -------------------------------------------------------------------------------- */

/* What the command was doing when it failed: the exit code of a status depends on it. */
typedef enum { DOING_SETUP, DOING_DATA, DOING_RUN } doing;
int exit_code(ctn_status st, doing what);
/* Print the library's error of this thread to stderr. Returns its exit code. */
int report_error(const char *name);
int report_failure(const char *name, doing what);
void report_warning(void *unused, const char *message); /* a ctn_log_fn */
void report_notice(void *unused, const char *message);  /* another */
/* Print to a terminal or a log: like fprintf, but control characters and invalid UTF-8, which names
 * from files may contain, become \x1b and so on. Line ends in the arguments do so too, because a
 * name must not look like a line of ours; those of the format and tabs stay. All that the command
 * prints goes this way (dev/layers checks it), except JSON. */
void say(FILE *f, const char *fmt, ...) CTN_PRINTF(2, 3);
/* The same with arguments that are texts of several lines. */
void say_lines(FILE *f, const char *fmt, ...) CTN_PRINTF(2, 3);
void vsay(FILE *f, const char *fmt, va_list ap);
/* The same to stdout for text that comes in pieces: `part`, zero at first, keeps the beginning of a
 * character until the rest comes, or until there is no more: n 0. */
void say_piece(char part[5], const char *text, size_t n);
/* Count the slow reference kernels in the last plan; warns about them once (slow.c). */
ctn_status slow_kernels(ctn_context *ctx, int64_t *count);
/* Print a line to stderr with the UTC time, the rank and the host. log_stamped: warnings and
 * errors look like that too. */
void log_line(const char *fmt, ...) CTN_PRINTF(1, 2);
void log_line_of(FILE *f, int rank, const char *host, const char *text);
extern bool log_stamped;
extern int log_rank;

bool is_utf8(const char *s);
/* A JSON writer; name is NULL inside arrays. */
typedef struct {
    int depth;
    bool more; /* this level already has an element */
    FILE *to;  /* NULL: stdout */
    char *held;
    size_t bytes;
} json;
/* Hold back what is written from now on, until json_release prints all of it, or nothing. */
ctn_status json_hold(json *j);
ctn_status json_release(json *j, bool print);
void json_quoted(FILE *f, const char *s);                     /* one string by itself */
void json_open(json *j, const char *name, char bracket);      /* '{' or '[' */
void json_close(json *j, char bracket);                       /* '}' or ']' */
void json_text(json *j, const char *name, const char *value); /* NULL value: null */
void json_int(json *j, const char *name, int64_t value);
void json_bool(json *j, const char *name, bool value);
void json_real(json *j, const char *name, double value); /* not finite: null */

/* Refuse more threads than CPUs, from --threads or a variable. Returns -1 to continue, otherwise
 * the exit code. */
int check_threads(const args *a);
/* Accept --precision f32, bf16, f16 or f64. Returns -1 to continue, otherwise the exit code. */
int check_precision(const args *a);
/* Make a context with --threads (0: the default), with --precision if the command has that
 * option, and with room for `spans` spans of a trace. */
ctn_status open_context(ctn_context **ctx, const args *a, int64_t spans);

double now_s(void); /* monotonic */
enum { UTC = 32 };
const char *utc_now(char buf[UTC]); /* 2026-01-31T12:00:00Z */
enum { SHAPE_TEXT = CTN_MAX_DIMS * 21 + 3 };
const char *shape_text(int ndim, const int64_t *dim, char buf[SHAPE_TEXT]); /* (2,3) */
/* Of n values. Sorts x. */
void best_and_median(double *x, int64_t n, double *best, double *median);

/* ---- files.c --------------------------------------------------------------------------------- */

/* Write a file atomically: until file_close, the old content stays in place. Errors: EIO. */
ctn_status file_open(FILE **f, const char *path);
ctn_status file_close(FILE *f, const char *path);
/* Remove a folder that this process has made, with all that is in it, as far as possible. */
void remove_tree(const char *path);
/* Remove all saved states in a folder, which need not exist. Errors: EARG (one is a link or has
 * other files), ENOMEM. */
ctn_status remove_states(const char *path);
bool ends_with(const char *s, const char *end);
bool same_file(const char *a, const char *b); /* false if one of them does not exist */
/* Whether a file that nobody has named lies here. A pipe would block, and a huge file is no
 * configuration and no list of names. */
bool is_found(const char *path);
/* Opens such a file for reading. NULL with errno: it cannot be read, or is no regular file. */
FILE *open_regular(const char *path);
bool is_onnx_name(const char *path);
bool names_array(const char *path); /* a file of arrays, or an array in a file */
/* folder/name; "" if it does not fit. */
const char *join(char *buf, size_t n, const char *folder, const char *name);

/* ---- timeline.c ------------------------------------------------------------------------------ */

/* clang-format off */
#define TIMELINE_OPTIONS                                                               \
    {"timeline", "FILE", "",                                                           \
     "file for a trace of the ranks, for Perfetto or chrome://tracing", GROUP_OUTPUT}, \
    {"timeline-steps", "N", "20",                                                      \
     "number of steps in the timeline; the last steps are kept", GROUP_OUTPUT},        \
    {"timeline-ranks", "N", "64",                                                      \
     "maximum number of ranks in the timeline, rank 0 and others evenly spaced; 0: "   \
     "all", GROUP_OUTPUT}
/* clang-format on */

/* --timeline-ranks as the library expects it. */
int timeline_ranks(const args *a);
/* Whether a timeline was requested and includes this rank. */
bool timeline_records(const args *a);
/* Number of spans that a context has to keep for --timeline; 0: not requested. */
int64_t timeline_room(const args *a);

/* ---- info.c ---------------------------------------------------------------------------------- */

void cpu_name(char *buf, size_t n); /* model name; "unknown" if the system does not say */
/* Write the object that `catena info --json` prints. */
ctn_status info_json(json *j);

#endif
