/* SPDX-License-Identifier: Apache-2.0
 *
 * catena selftest: checks in less than a minute whether this build computes and communicates
 * correctly on these ranks. It prints a table, or a JSON object to attach to a support ticket. A
 * check is one function that every rank runs; its verdict is the worst of all ranks.
 *
 * Invariant: all ranks run the same checks in the same order, and they all finish a check that
 * fails on one rank.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <catena/info.h>
#include <catena/nn.h>
#include <catena/ops.h>
#include <catena/optim.h>

#include "launch.h"
#include "watchdog/watchdog.h"

typedef enum { WELL, SKIPPED, WRONG } verdict;

typedef struct {
    int verdict;
    char text[240];
} finding;

typedef struct {
    args *a;
    launch *l;
    ctn_context *ctx;
    json *j; /* NULL: text */
    int wrong;
} selftest;

static finding well(const char *fmt, ...) CTN_PRINTF(1, 2);
static finding wrong(const char *fmt, ...) CTN_PRINTF(1, 2);

#define FORMAT(f)                                 \
    va_list ap;                                   \
    va_start(ap, fmt);                            \
    vsnprintf((f).text, sizeof(f).text, fmt, ap); \
    va_end(ap)

static finding well(const char *fmt, ...)
{
    finding f = {.verdict = WELL};
    FORMAT(f);
    return f;
}

static finding wrong(const char *fmt, ...)
{
    finding f = {.verdict = WRONG};
    FORMAT(f);
    return f;
}

/* The library's error as a finding. */
static finding failed(void)
{
    finding f = wrong("%.*s", (int)strcspn(ctn_error_message(), "\n"), ctn_error_message());
    ctn_error_clear();
    return f;
}

/* ---- kernels against plain loops ------------------------------------------------------------- */

static void fill(float *x, int64_t n, uint32_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)((int)(seed >> 20) % 200 - 100) / 64;
    }
}

/* The largest difference between y[n] and ref[n], relative to the largest number in ref. */
static double difference(const float *y, const double *ref, int64_t n)
{
    double most = 1e-30, d = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(ref[i]));
    for (int64_t i = 0; i < n; i++) d = fmax(d, fabs(y[i] - ref[i]));
    return d / most;
}

enum { M = 67, K = 129, N = 45 };

static finding check_product(selftest *s)
{
    static float a[M * K], b[K * N];
    static double ref[M * N];
    finding f = {0};
    fill(a, M * K, 1);
    fill(b, K * N, 2);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < K; k++) sum += (double)a[i * K + k] * b[k * N + j];
            ref[i * N + j] = sum;
        }
    if (ctn_scope_begin(s->ctx) < 0) return failed();
    ctn_tensor *y = ctn_matmul(ctn_input(s->ctx, a, CTN_F32, CTN_SHAPE(M, K)),
                               ctn_input(s->ctx, b, CTN_F32, CTN_SHAPE(K, N)), 0, 0);
    const float *got = ctn_data(y);
    const double d = got ? difference(got, ref, M * N) : 1;
    f = !got ? failed() : d < 1e-5 ? well("largest error %.1e", d) : wrong("largest error %.1e", d);
    if (ctn_scope_end(s->ctx) < 0 && f.verdict == WELL) f = failed();
    return f;
}

enum { BATCH = 2, IN = 5, OUT = 19, SIDE = 13 };

static finding check_convolution(selftest *s)
{
    static float x[BATCH * IN * SIDE * SIDE], w[OUT * IN * 9];
    static double ref[BATCH * OUT * SIDE * SIDE];
    finding f = {0};
    fill(x, BATCH * IN * SIDE * SIDE, 3);
    fill(w, OUT * IN * 9, 4);
    for (int i = 0; i < BATCH * OUT * SIDE * SIDE; i++) {
        const int c = i % SIDE, r = i / SIDE % SIDE, o = i / (SIDE * SIDE) % OUT;
        const int n = i / (SIDE * SIDE * OUT);
        double sum = 0;
        for (int k = 0; k < IN * 9; k++) {
            const int in = k / 9, y = r + k / 3 % 3 - 1, z = c + k % 3 - 1;
            if (y >= 0 && y < SIDE && z >= 0 && z < SIDE)
                sum += (double)x[((n * IN + in) * SIDE + y) * SIDE + z] * w[o * IN * 9 + k];
        }
        ref[i] = sum;
    }
    if (ctn_scope_begin(s->ctx) < 0) return failed();
    ctn_tensor *y = ctn_conv(ctn_input(s->ctx, x, CTN_F32, CTN_SHAPE(BATCH, IN, SIDE, SIDE)),
                             ctn_input(s->ctx, w, CTN_F32, CTN_SHAPE(OUT, IN, 3, 3)), NULL,
                             CTN_OPT(ctn_conv_opt, .pad = {1}));
    const float *got = ctn_data(y);
    const double d = got ? difference(got, ref, BATCH * OUT * SIDE * SIDE) : 1;
    f = !got ? failed() : d < 1e-5 ? well("largest error %.1e", d) : wrong("largest error %.1e", d);
    if (ctn_scope_end(s->ctx) < 0 && f.verdict == WELL) f = failed();
    return f;
}

enum { ROWS = 24, FEATURES = 7 };

/* One step of least squares: w - lr dL/dw with dL/dw = 2/n sum (w x - t) x. */
static ctn_status train_step(selftest *s, ctn_module **m, ctn_optim **o, const float *x,
                             const float *t, float *w)
{
    CTN_TRY(ctn_linear_new(m, s->ctx, FEATURES, 1, CTN_OPT(ctn_linear_opt, .no_bias = 1)));
    ctn_vars v = ctn_params(*m);
    CTN_TRY(ctn_var_set(v.var[0], w, FEATURES * sizeof *w));
    CTN_TRY(ctn_sgd_new(o, v, CTN_OPT(ctn_sgd_opt, .lr = 0.125)));
    CTN_TRY(ctn_scope_begin(s->ctx));
    ctn_tensor *y = ctn_call(*m, ctn_input(s->ctx, x, CTN_F32, CTN_SHAPE(ROWS, FEATURES)));
    ctn_tensor *loss =
        ctn_mean_squared_error(y, ctn_input(s->ctx, t, CTN_F32, CTN_SHAPE(ROWS, 1)), CTN_MEAN);
    ctn_status st = ctn_backward(*o, loss);
    if (st >= 0) st = ctn_optim_step(*o);
    ctn_status end = ctn_scope_end(s->ctx);
    CTN_TRY(st);
    CTN_TRY(end);
    return ctn_var_get(v.var[0], w, FEATURES * sizeof *w);
}

static finding check_step(selftest *s)
{
    static float x[ROWS * FEATURES], t[ROWS], w[FEATURES];
    double ref[FEATURES];
    ctn_module *m = NULL;
    ctn_optim *o = NULL;
    fill(x, ROWS * FEATURES, 5);
    fill(t, ROWS, 6);
    fill(w, FEATURES, 7);
    for (int k = 0; k < FEATURES; k++) ref[k] = w[k];
    for (int i = 0; i < ROWS; i++) {
        double e = -t[i];
        for (int k = 0; k < FEATURES; k++) e += (double)w[k] * x[i * FEATURES + k];
        for (int k = 0; k < FEATURES; k++) ref[k] -= 0.125 * 2 / ROWS * e * x[i * FEATURES + k];
    }
    ctn_status st = train_step(s, &m, &o, x, t, w);
    ctn_optim_free(o);
    ctn_module_free(m);
    if (st < 0) return failed();
    const double d = difference(w, ref, FEATURES);
    return d < 1e-5 ? well("largest error %.1e", d) : wrong("largest error %.1e", d);
}

/* ---- communication --------------------------------------------------------------------------- */

/* Integers that f32 adds without rounding: sum over ranks of (i % 64 + rank). */
static ctn_status sum_once(ctn_comm *c, float *buf, int64_t n, int64_t *bad)
{
    const int rank = ctn_comm_rank(c), size = ctn_comm_size(c);
    for (int64_t i = 0; i < n; i++) buf[i] = (float)(i % 64 + rank);
    CTN_TRY(ctn_comm_allreduce(c, buf, n, CTN_F32));
    const int64_t ranks = (int64_t)size * (size - 1) / 2;
    for (int64_t i = 0; i < n; i++) *bad += buf[i] != (float)(i % 64 * size + ranks);
    return CTN_OK;
}

enum { LARGEST = 1000003 };

static finding check_algorithm(selftest *s, const char *name)
{
    /* The last one again, because the first sum of a length may include measurements. */
    static const int64_t counts[] = {1, 7, 1000, 65537, LARGEST, LARGEST};
    int64_t bad = 0;
    double seconds = 0;
    ctn_comm *c = s->l->comm;
    const bool chosen = strcmp(name, "auto") == 0;
    ctn_status st = ctn_comm_set_algorithm(c, name);
    if (st < 0) {
        finding f = failed();
        if (st == CTN_EARG) f.verdict = SKIPPED; /* does not support this number of ranks */
        return f;
    }
    float *buf = malloc(LARGEST * sizeof *buf);
    if (!buf) return wrong("no memory");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        double t0 = now_s();
        if (sum_once(c, buf, counts[i], &bad) < 0) {
            free(buf);
            return failed();
        }
        seconds = now_s() - t0;
    }
    free(buf);
    if (ctn_comm_broadcast(c, &seconds, sizeof seconds, 0) < 0)
        return failed(); /* all ranks show rank 0's time */
    if (bad) return wrong("%lld sums are not exact", (long long)bad);
    return well("exact; 4 MB in %.1f ms%s%s", 1e3 * seconds, chosen ? " by " : "",
                chosen ? ctn_comm_algorithm(c) : "");
}

/* ---- the folder ------------------------------------------------------------------------------ */

enum { ROUNDS = 10 };

static bool lock(int fd, short type)
{
    for (double end = now_s() + 10; now_s() < end;) {
        struct flock k = {.l_type = type, .l_whence = SEEK_SET};
        if (fcntl(fd, F_SETLK, &k) == 0) return true;
        if (errno != EACCES && errno != EAGAIN && errno != EINTR) return false;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    return false;
}

/* Every rank increments a number in a file ROUNDS times. If an increment is lost, locking
 * failed. */
static finding raise_number(const char *path)
{
    char text[32];
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return wrong("cannot open %s, which rank 0 created: %s", path, strerror(errno));
    for (int i = 0; i < ROUNDS; i++) {
        ssize_t n = -1;
        if (lock(fd, F_WRLCK)) n = pread(fd, text, sizeof text - 1, 0);
        if (n >= 0) {
            text[n] = 0;
            int k = snprintf(text, sizeof text, "%ld\n", strtol(text, NULL, 10) + 1);
            if (pwrite(fd, text, (size_t)k, 0) != k) n = -1;
        }
        if (n < 0 || !lock(fd, F_UNLCK)) {
            finding f = wrong("cannot lock: %s", strerror(errno));
            close(fd);
            return f;
        }
    }
    close(fd);
    return well("locks work");
}

static finding check_locks(selftest *s)
{
    char path[4096], name[64];
    long pid = (long)getpid();
    FILE *f = NULL;
    ctn_comm *c = s->l->comm;
    if (c && ctn_comm_broadcast(c, &pid, sizeof pid, 0) < 0) return failed();
    snprintf(name, sizeof name, ".catena-selftest.%ld", pid);
    join(path, sizeof path, args_text(s->a, "out"), name);
    if (s->l->rank == 0 && (f = fopen(path, "wx"))) {
        fputs("0\n", f);
        fclose(f);
    }
    if (c && ctn_comm_barrier(c) < 0) return failed();
    finding r = s->l->rank == 0 && !f ? wrong("cannot write %s: %s", path, strerror(errno))
                                      : raise_number(path);
    if (c && ctn_comm_barrier(c) < 0) return failed();
    long sum = -1;
    if (s->l->rank == 0 && f && (f = fopen(path, "r"))) {
        if (fscanf(f, "%ld", &sum) != 1) sum = -1;
        fclose(f);
        unlink(path);
        if (r.verdict == WELL && sum != (long)ROUNDS * s->l->size)
            r = wrong("only %ld of %ld increments arrived: locks do not work across ranks", sum,
                      (long)ROUNDS * s->l->size);
    }
    return r;
}

/* ---- clocks ---------------------------------------------------------------------------------- */

static double wall(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The clock of this rank relative to rank 0's: the median over many readings, each taken right
 * after a barrier. */
static finding check_clock(selftest *s)
{
    enum { TIMES = 31 };
    double offset[TIMES], least = 1e9;
    ctn_comm *c = s->l->comm;
    double *all = malloc((size_t)s->l->size * sizeof *all);
    if (!all) return wrong("no memory");
    for (int i = 0; i < TIMES; i++) {
        double t0 = wall();
        ctn_status st = ctn_comm_barrier(c);
        double now = wall();
        if (st >= 0) st = ctn_comm_allgather(c, &now, sizeof now, all);
        if (st < 0) {
            free(all);
            return failed();
        }
        offset[i] = now - all[0];
        least = fmin(least, now - t0);
    }
    free(all);
    qsort(offset, TIMES, sizeof *offset, by_size);
    double d = offset[TIMES / 2], known = fmax(fabs(offset[TIMES - 4] - offset[3]) / 2, least / 2);
    if (fabs(d) > 1 + known)
        return wrong("clock differs from rank 0's by %+.3f s: timestamps will be wrong", d);
    return well("%+.3f ms from rank 0 (+- %.3f)", 1e3 * d, 1e3 * known);
}

/* ---- core binding ---------------------------------------------------------------------------- */

static finding check_binding(selftest *s)
{
    char text[128];
    ctn_machine m;
    ctn_machine_get(&m);
    if (cores_verify(s->l) < 0) return failed();
    cores_text(s->l, text, sizeof text);
    const int n = ctn_context_threads(s->ctx);
    return well("%d thread%s on CPUs %s", n, n == 1 ? "" : "s", text);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const char *const verdicts[] = {"ok", "skipped", "FAILED"};

static void show(selftest *s, const char *name, const finding *all)
{
    int worst = 0, same = 1;
    for (int i = 1; i < s->l->size; i++) {
        if (all[i].verdict > all[worst].verdict) worst = i;
        same = same && strcmp(all[i].text, all[0].text) == 0;
    }
    s->wrong += all[worst].verdict == WRONG;
    if (s->l->rank != 0) return;
    if (s->j) {
        json_open(s->j, NULL, '{');
        json_text(s->j, "check", name);
        json_text(s->j, "result", verdicts[all[worst].verdict]);
        json_open(s->j, "ranks", '[');
        for (int i = 0; i < s->l->size; i++) json_text(s->j, NULL, all[i].text);
        json_close(s->j, ']');
        json_close(s->j, '}');
        return;
    }
    say(stdout, "%-24s %-8s ", name, verdicts[all[worst].verdict]);
    if (same || s->l->size == 1) say(stdout, "%s\n", all[0].text);
    else if (all[worst].verdict == WRONG)
        say(stdout, "rank %d on %s: %s\n", worst, s->l->hosts[worst], all[worst].text);
    else {
        say(stdout, "\n");
        for (int i = 0; i < s->l->size; i++)
            say(stdout, "  rank %-4d %-16s %s\n", i, s->l->hosts[i], all[i].text);
    }
    fflush(stdout);
}

static ctn_status gather(selftest *s, const char *name, finding f)
{
    ctn_status st = CTN_OK;
    finding *all = calloc((size_t)s->l->size, sizeof *all);
    watchdog_at(AT_COMPUTE, 0);
    if (!all) return ctn_fail(CTN_ENOMEM, "no memory for the results of %d ranks", s->l->size);
    all[0] = f;
    if (s->l->comm) st = ctn_comm_allgather(s->l->comm, &f, sizeof f, all);
    if (st >= 0) show(s, name, all);
    free(all);
    return st;
}

static ctn_status communicate(selftest *s)
{
    const char *name;
    char title[64];
    if (!s->l->comm)
        return gather(s, "allreduce",
                      (finding){SKIPPED, "only one rank: start it with mpirun or srun"});
    for (int i = 0; (name = ctn_comm_algorithm_name(i)); i++) {
        snprintf(title, sizeof title, "allreduce %s", name);
        CTN_TRY(gather(s, title, check_algorithm(s, name)));
    }
    CTN_TRY(gather(s, "allreduce auto", check_algorithm(s, "auto")));
    return gather(s, "clock", check_clock(s));
}

static ctn_status run_all(selftest *s)
{
    CTN_TRY(gather(s, "binding", check_binding(s)));
    CTN_TRY(gather(s, "matrix product", check_product(s)));
    CTN_TRY(gather(s, "convolution", check_convolution(s)));
    CTN_TRY(gather(s, "training step", check_step(s)));
    CTN_TRY(communicate(s));
    return gather(s, "file locks", check_locks(s));
}

static void begin(selftest *s)
{
    const launch *l = s->l;
    if (l->rank != 0) return;
    const char *by = l->launcher ? l->launcher : "no launcher";
    const char *over = l->comm ? ctn_comm_transport(l->comm) : "nothing";
    if (!s->j) {
        say(stdout, "catena %s, %d rank%s on %d host%s, started by %s, over %s\n",
            ctn_version_text(), l->size, l->size == 1 ? "" : "s",
            l->comm ? ctn_comm_nodes(l->comm) : 1,
            l->comm && ctn_comm_nodes(l->comm) > 1 ? "s" : "", by, over);
        return;
    }
    json_open(s->j, NULL, '{');
    json_text(s->j, "version", ctn_version_text());
    json_int(s->j, "ranks", l->size);
    json_text(s->j, "launcher", l->launcher);
    json_text(s->j, "transport", over);
    json_open(s->j, "hosts", '[');
    for (int i = 0; i < l->size; i++) json_text(s->j, NULL, l->hosts ? l->hosts[i] : l->host);
    json_close(s->j, ']');
    json_open(s->j, "checks", '[');
}

static int run(args *a)
{
    json out = {0};
    selftest s = {.a = a, .l = a->job, .j = args_flag(a, "json") ? &out : NULL};
    double t0 = now_s();
    int code = cores_divide(a->job, a);
    if (code < 0) code = check_threads(a);
    if (code >= 0) return code;
    watchdog_stall(args_real(a, "stall-seconds"));
    begin(&s);
    ctn_status st = open_context(&s.ctx, a, 0);
    if (st >= 0) st = run_all(&s);
    if (st < 0) return report_failure("selftest", DOING_SETUP);
    ctn_context_free(s.ctx);
    if (s.wrong && a->job->comm) watchdog_agree(); /* all ranks know the verdict */
    code = s.wrong ? EXIT_ENVIRONMENT : EXIT_DONE;
    if (a->job->rank != 0) return code;
    if (s.j) {
        json_close(s.j, ']');
        json_int(s.j, "failed", s.wrong);
        json_real(s.j, "seconds", now_s() - t0);
        json_close(s.j, '}');
    } else {
        say(stdout, "%s, %.1f s\n", s.wrong ? "some checks FAILED" : "all checks passed",
            now_s() - t0);
    }
    return code;
}

static const option options[] = {
    {"out", "DIR", ".", "folder in which to test file locks; use the one for your results",
     GROUP_NONE},
    {"threads", "N", "0", "number of compute threads; 0: as shown by catena info", GROUP_PRECISION},
    LAUNCH_OPTIONS,
    {"json", NULL, NULL, "print one JSON object", GROUP_NONE},
    {0},
};

const command cmd_selftest = {
    .name = "selftest",
    .operands = "",
    .summary = "Check that this build computes and communicates correctly on these ranks.",
    .options = options,
    .examples = "  catena selftest                                     this machine alone\n"
                "  mpirun -np 4 catena selftest --json > selftest.json four ranks, for a ticket\n"
                "  srun --mpi=pmix catena selftest --out /scratch/me\n",
    .run = run,
    .ranks = RANKS_JOB,
};
