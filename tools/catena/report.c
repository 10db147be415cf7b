/* SPDX-License-Identifier: Apache-2.0
 *
 * How the command speaks: errors and the library's warnings on stderr, JSON on stdout; and the
 * context every subcommand works in.
 */
#include <math.h>
#include <string.h>
#include <time.h>

#include <catena/info.h>

#include "cli.h"

int report_error(const char *what)
{
    const char *message = ctn_error_message();
    fprintf(stderr, "catena %s: %s\n", what, message[0] ? message : "failed without a message");
    return EXIT_FAILED;
}

void report_warning(void *unused, const char *message)
{
    (void)unused;
    fprintf(stderr, "catena: warning: %s\n", message);
}

static void quoted(const char *s)
{
    putchar('"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') printf("\\%c", c);
        else if (c < 0x20) printf("\\u%04x", c);
        else putchar(c);
    }
    putchar('"');
}

static void before(json *j, const char *name)
{
    if (j->more) putchar(',');
    if (j->depth > 0) printf("\n%*s", 2 * j->depth, "");
    if (name) {
        quoted(name);
        printf(": ");
    }
    j->more = true;
}

void json_open(json *j, const char *name, char bracket)
{
    before(j, name);
    putchar(bracket);
    j->depth++;
    j->more = false;
}

void json_close(json *j, char bracket)
{
    j->depth--;
    if (j->more) printf("\n%*s", 2 * j->depth, "");
    putchar(bracket);
    if (j->depth == 0) putchar('\n');
    j->more = j->depth > 0;
}

void json_text(json *j, const char *name, const char *value)
{
    before(j, name);
    if (value) quoted(value);
    else printf("null");
}

void json_int(json *j, const char *name, int64_t value)
{
    before(j, name);
    printf("%lld", (long long)value);
}

void json_real(json *j, const char *name, double value)
{
    before(j, name);
    if (isfinite(value)) printf("%.9g", value);
    else printf("null");
}

int check_threads(const args *a)
{
    ctn_machine m;
    ctn_machine_get(&m);
    int64_t asked = args_int(a, "threads"), n = asked > 0 ? asked : m.threads;
    if (n <= m.cpus) return -1;
    fprintf(
        stderr,
        "catena %s: %lld compute threads (from %s) on %d CPUs would wait for each other; use at "
        "most %d, or give the process more CPUs (taskset, cpuset)\n",
        a->cmd->name, (long long)n, asked > 0 ? "--threads" : m.threads_source, m.cpus, m.cpus);
    return EXIT_USAGE;
}

static const char *const precisions[] = {"f32", "bf16", "f16", NULL}; /* as ctn_precision counts */

static int precision_of(const args *a)
{
    for (int i = 0; precisions[i]; i++)
        if (strcmp(args_text(a, "precision"), precisions[i]) == 0) return i;
    return -1;
}

int check_precision(const args *a)
{
    if (precision_of(a) >= 0) return -1;
    fprintf(stderr, "catena %s: --precision is f32, bf16 or f16, not %s\n", a->cmd->name,
            args_text(a, "precision"));
    return EXIT_USAGE;
}

ctn_status open_context(ctn_context **ctx, const args *a, int64_t spans)
{
    int precision = precision_of(a);
    return ctn_context_new(ctx, CTN_OPT(ctn_context_opt, .threads = (int)args_int(a, "threads"),
                                        .spans = spans,
                                        .precision = precision > 0 ? (ctn_precision)precision
                                                                   : CTN_PRECISION_F32,
                                        .slow_precision = args_flag(a, "slow-precision")));
}

double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
