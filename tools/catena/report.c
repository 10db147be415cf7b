/* SPDX-License-Identifier: Apache-2.0
 *
 * Output that all subcommands share: errors and warnings on stderr, exit codes and JSON; and the
 * context that they work in.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <catena/info.h>

#include "memory.h"
#include "watchdog/watchdog.h"

/* ---- text from outside ----------------------------------------------------------------------- */

/* Length of the UTF-8 character at s; 0: it is invalid or a control character. */
static int character(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    static const unsigned long least[] = {0, 0, 0xa0, 0x800, 0x10000}; /* no C1 controls */
    if (s[0] < 0x80) return s[0] >= 0x20 && s[0] != 0x7f;
    const int n = s[0] >= 0xf8 ? 0 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc0 ? 2 : 0;
    unsigned long code = n > 0 ? s[0] & (0x7fu >> n) : 0;
    for (int i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (s[i] & 0x3f);
    }
    const bool fits = n > 0 && code >= least[n] && code <= 0x10ffff;
    return fits && (code < 0xd800 || code > 0xdfff) ? n : 0;
}

/* c: the character that becomes a line end. */
static void put_clean(FILE *f, const char *s, char c)
{
    const char *from = s;
    for (int n; *s; s += n) {
        n = *s == '\t' || (*s == c && c == '\n') ? 1 : character(s);
        if (n > 0) continue;
        fwrite(from, 1, (size_t)(s - from), f);
        fprintf(f, *s == c ? "\n" : "\\x%02x", (unsigned char)*s);
        from = s + 1;
        n = 1;
    }
    fwrite(from, 1, (size_t)(s - from), f);
}

static int lines_in(const char *s)
{
    int n = 0;
    for (; *s; s++) n += *s == '\n';
    return n;
}

/* lines: arguments may have line ends. Otherwise those become \x0a, because a name must not look
 * like a line of ours. */
static void print(FILE *f, const char *fmt, va_list ap, bool lines)
{
    char buf[4096], *text = buf, *marked = NULL, c = '\n'; /* cut only if there is no memory */
    va_list again, last;
    va_copy(again, ap);
    va_copy(last, ap);
    const int n = vsnprintf(buf, sizeof buf, fmt, ap);
    if (n >= (int)sizeof buf) text = malloc((size_t)n + 1);
    if (text && text != buf) vsnprintf(text, (size_t)n + 1, fmt, again);
    else if (!text) text = buf;
    va_end(again);
    /* If an argument has line ends, those of the format are told apart by a byte of their own. */
    if (n >= 0 && !lines && lines_in(text) != lines_in(fmt)) {
        for (c = 1; c < '\t' && strchr(text, c);) c++;
        marked = strdup(fmt);
        for (char *p = marked; p && *p; p++)
            if (*p == '\n') *p = c;
        if (marked && c < '\t')
            vsnprintf(text, text == buf ? sizeof buf : (size_t)n + 1, marked, last);
        else c = 0;
    }
    va_end(last);
    if (n >= 0) put_clean(f, text, c);
    free(marked);
    if (text != buf) free(text);
}

void vsay(FILE *f, const char *fmt, va_list ap)
{
    print(f, fmt, ap, false);
}

void say(FILE *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    print(f, fmt, ap, false);
    va_end(ap);
}

void say_lines(FILE *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    print(f, fmt, ap, true);
    va_end(ap);
}

void say_piece(char part[5], const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const bool more = ((unsigned char)text[i] & 0xc0) == 0x80;
        size_t have = strlen(part);
        if (!more || have == 4) {
            put_clean(stdout, part, '\n');
            have = 0;
        }
        part[have] = text[i];
        part[have + 1] = 0;
        if ((unsigned char)text[i] >= 0x80 && character(part) == 0) continue;
        put_clean(stdout, part, '\n');
        part[0] = 0;
    }
    if (n > 0) return;
    put_clean(stdout, part, '\n');
    part[0] = 0;
}

/* ---- exit codes ------------------------------------------------------------------------------ */

/* For each status the exit codes during setup, while data is opened, and while the command runs.
 * In a running training, errors about shapes and arguments come from the data: labels out of
 * range, or samples of another shape. */
static const struct {
    ctn_status status;
    int code[3];
} codes[] = {
    {CTN_OK, {EXIT_DONE, EXIT_DONE, EXIT_DONE}},
    {CTN_ENOMEM, {EXIT_MEMORY, EXIT_MEMORY, EXIT_MEMORY}},
    {CTN_EARG, {EXIT_USAGE, EXIT_DATA, EXIT_DATA}},
    {CTN_ESHAPE, {EXIT_DATA, EXIT_DATA, EXIT_DATA}},
    {CTN_EDTYPE, {EXIT_DATA, EXIT_DATA, EXIT_DATA}},
    {CTN_ESTATE, {EXIT_USAGE, EXIT_USAGE, EXIT_INTERNAL}}, /* a state of another setup */
    {CTN_EIO, {EXIT_ENVIRONMENT, EXIT_DATA, EXIT_ENVIRONMENT}},
    {CTN_EFORMAT, {EXIT_DATA, EXIT_DATA, EXIT_DATA}},
    {CTN_ENOTFOUND, {EXIT_DATA, EXIT_DATA, EXIT_DATA}},
    {CTN_EUNSUPPORTED, {EXIT_ENVIRONMENT, EXIT_ENVIRONMENT, EXIT_DATA}},
    {CTN_EENGINE, {EXIT_ENVIRONMENT, EXIT_ENVIRONMENT, EXIT_ENVIRONMENT}},
    {CTN_ENONFINITE, {EXIT_NONFINITE, EXIT_NONFINITE, EXIT_NONFINITE}},
    {CTN_EPEER, {EXIT_OTHER_RANK, EXIT_OTHER_RANK, EXIT_OTHER_RANK}},
};

int exit_code(ctn_status st, doing what)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].status == st) return codes[i].code[what];
    return EXIT_INTERNAL;
}

/* In a job of several ranks only one rank prints the error. */
static int tell_error(const char *name, int code, const char *text)
{
    if (watchdog_agreed()) { /* all ranks have the same error */
        if (log_rank == 0) log_line("error: %s", text);
        return code;
    }
    if (watchdog_runs()) return watchdog_failed(ctn_error_status(), code, text);
    if (log_stamped) log_line("error: %s", text);
    else say_lines(stderr, "catena %s: %s\n", name, text);
    return code;
}

/* The message, plus the first line of its trace that is in the user's code (their own network). */
static void without_trace(const char *message, char *text, size_t n)
{
    static const char begin[] = "\n  at ";
    const char *at = strstr(message, begin);
    snprintf(text, n, "%.*s", (int)(at ? (size_t)(at - message) : strlen(message)), message);
    for (; at; at = strstr(at + 1, begin)) {
        const char *file = at + sizeof begin - 1;
        while (strncmp(file, "../", 3) == 0) file += 3;
        if (strncmp(file, "src/", 4) == 0 || strncmp(file, "tools/", 6) == 0) continue;
        const size_t used = strlen(text);
        snprintf(text + used, n - used, "%.*s", (int)(1 + strcspn(at + 1, "\n")), at);
        return;
    }
}

int report_failure(const char *name, doing what)
{
    const char *message = ctn_error_message();
    int code = exit_code(ctn_error_status(), what);
    if (!message[0]) message = "failed without a message";
    if (code == EXIT_MEMORY && memory_refused()) message = memory_refused();
    if (code == EXIT_DONE) code = EXIT_INTERNAL;
    /* Errors of the loader are about data; other I/O errors concern result files. */
    if (ctn_error_status() == CTN_EIO && strncmp(message, "loader:", 7) == 0) code = EXIT_DATA;
    char text[2048];
    /* The trace of source lines helps only with errors in Catena itself. */
    if (code == EXIT_INTERNAL) snprintf(text, sizeof text, "%s", message);
    else without_trace(message, text, sizeof text);
    return tell_error(name, code, text);
}

int report_error(const char *name)
{
    return report_failure(name, DOING_RUN);
}

/* ---- lines ----------------------------------------------------------------------------------- */

bool log_stamped;
int log_rank;

void log_line_of(FILE *f, int rank, const char *host, const char *text)
{
    char when[UTC];
    say_lines(f, "%s rank %d %s: %s\n", utc_now(when), rank, host, text);
}

void log_line(const char *fmt, ...)
{
    char host[64] = "", line[4096];
    gethostname(host, sizeof host - 1);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    log_line_of(stderr, log_rank, host, line);
}

void report_warning(void *unused, const char *message)
{
    char line[2048];
    (void)unused;
    snprintf(line, sizeof line, "warning: %s", message);
    if (watchdog_line(line)) return;
    if (log_stamped) log_line("warning: %s", message);
    else say_lines(stderr, "catena: warning: %s\n", message);
}

void report_notice(void *unused, const char *message)
{
    (void)unused;
    if (log_rank != 0) return;
    if (log_stamped) log_line("%s", message);
    else say_lines(stderr, "catena: %s\n", message);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static FILE *to(const json *j)
{
    return j->to ? j->to : stdout;
}

void json_quoted(FILE *f, const char *s)
{
    fputc('"', f);
    for (int n; *s; s += n > 0 ? n : 1) {
        const unsigned char c = (unsigned char)*s, next = (unsigned char)s[1];
        n = character(s);
        if (c == '"' || c == '\\') fprintf(f, "\\%c", c);
        else if (n > 0) fwrite(s, 1, (size_t)n, f);
        else if (c < 0x80) fprintf(f, "\\u%04x", c);
        else if (c == 0xc2 && (next & 0xc0) == 0x80) fprintf(f, "\\u%04x", next), n = 2;
        else fputs("\\ufffd", f); /* invalid UTF-8 */
    }
    fputc('"', f);
}

bool is_utf8(const char *s)
{
    for (int n; *s; s += n) {
        n = (unsigned char)*s < 0x80 ? 1 : character(s);
        if (n == 0 && (unsigned char)s[0] == 0xc2 && (s[1] & 0xc0) == 0x80) n = 2; /* a control */
        if (n == 0) return false;
    }
    return true;
}

ctn_status json_hold(json *j)
{
    j->to = open_memstream(&j->held, &j->bytes);
    return j->to ? CTN_OK : ctn_fail(CTN_ENOMEM, "no memory for JSON");
}

ctn_status json_release(json *j, bool print)
{
    const bool bad = fclose(j->to) != 0;
    if (print && !bad) fwrite(j->held, 1, j->bytes, stdout);
    free(j->held);
    *j = (json){0};
    return bad ? ctn_fail(CTN_ENOMEM, "no memory for JSON") : CTN_OK;
}

static void before(json *j, const char *name)
{
    if (j->more) fputc(',', to(j));
    if (j->depth > 0) fprintf(to(j), "\n%*s", 2 * j->depth, "");
    if (name) {
        json_quoted(to(j), name);
        fputs(": ", to(j));
    }
    j->more = true;
}

void json_open(json *j, const char *name, char bracket)
{
    before(j, name);
    fputc(bracket, to(j));
    j->depth++;
    j->more = false;
}

void json_close(json *j, char bracket)
{
    j->depth--;
    if (j->more) fprintf(to(j), "\n%*s", 2 * j->depth, "");
    fputc(bracket, to(j));
    if (j->depth == 0) fputc('\n', to(j));
    j->more = j->depth > 0;
}

void json_text(json *j, const char *name, const char *value)
{
    before(j, name);
    if (value) json_quoted(to(j), value);
    else fputs("null", to(j));
}

void json_int(json *j, const char *name, int64_t value)
{
    before(j, name);
    fprintf(to(j), "%lld", (long long)value);
}

void json_bool(json *j, const char *name, bool value)
{
    before(j, name);
    fputs(value ? "true" : "false", to(j));
}

void json_real(json *j, const char *name, double value)
{
    before(j, name);
    if (isfinite(value)) fprintf(to(j), "%.9g", value);
    else fputs("null", to(j));
}

/* ---- the context ----------------------------------------------------------------------------- */

int check_threads(const args *a)
{
    ctn_machine m;
    ctn_machine_get(&m);
    int64_t asked = args_int(a, "threads"), n = asked > 0 ? asked : m.threads;
    if (n <= m.cpus) return -1;
    say(stderr,
        "catena %s: %lld compute threads (from %s) on %d CPUs would wait for each other: use at "
        "most %d, or give the process more CPUs (taskset, cpuset)\n",
        a->cmd->name, (long long)n, asked > 0 ? "--threads" : m.threads_source, m.cpus, m.cpus);
    return EXIT_USAGE;
}

static const char *const precisions[] = {"f32", "bf16", "f16", "f64",
                                         NULL}; /* as in ctn_precision */

static int precision_of(const args *a)
{
    for (int i = 0; precisions[i]; i++)
        if (strcmp(args_text(a, "precision"), precisions[i]) == 0) return i;
    return -1;
}

int check_precision(const args *a)
{
    if (precision_of(a) >= 0) return -1;
    say(stderr, "catena %s: --precision must be f32, bf16, f16 or f64, not %s\n", a->cmd->name,
        args_text(a, "precision"));
    return EXIT_USAGE;
}

ctn_status open_context(ctn_context **ctx, const args *a, int64_t spans)
{
    int precision = precision_of(a);
    return ctn_context_new(ctx, CTN_OPT(ctn_context_opt, .threads = (int)args_int(a, "threads"),
                                        .spans = spans, .seed = (uint64_t)args_int(a, "seed"),
                                        .precision = precision > 0 ? (ctn_precision)precision
                                                                   : CTN_PRECISION_F32,
                                        .slow_precision = args_flag(a, "slow-precision")));
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

const char *shape_text(int ndim, const int64_t *dim, char buf[SHAPE_TEXT])
{
    int n = snprintf(buf, SHAPE_TEXT, "(");
    for (int i = 0; i < ndim; i++)
        n += snprintf(buf + n, (size_t)(SHAPE_TEXT - n), "%s%lld", i ? "," : "", (long long)dim[i]);
    snprintf(buf + n, (size_t)(SHAPE_TEXT - n), ")");
    return buf;
}

void best_and_median(double *x, int64_t n, double *best, double *median)
{
    qsort(x, (size_t)n, sizeof *x, by_value);
    *best = x[0];
    *median = (x[(n - 1) / 2] + x[n / 2]) / 2;
}

double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

const char *utc_now(char buf[UTC])
{
    const time_t t = time(NULL);
    struct tm tm;
    buf[0] = 0;
    if (gmtime_r(&t, &tm)) strftime(buf, UTC, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return buf;
}
