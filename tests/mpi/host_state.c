/* SPDX-License-Identifier: Apache-2.0
 *
 * An LD_PRELOAD library for a program that uses Catena. After every call of Catena that computes
 * or communicates, it checks that nothing of the program's own has changed: signal handlers, the
 * signal mask, affinity, the floating-point mode (of all OpenMP threads), OpenMP settings, MPI
 * error handlers. Used by test_insitu.sh and compiled by the program's mpicc.
 *
 * HOST_REPORT=PREFIX: writes one line per change and the number of checks to PREFIX.RANK.calls,
 * and the state at the end of the program to PREFIX.RANK.exit, to be compared with that of a
 * program without Catena. HOST_MODE=hard: rounding is upward and exceptions trap while MPI is
 * running. Built as a program (-DHOST_MAIN), it proves that it detects each kind of change.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT, feenableexcept, sched_getaffinity */
#endif
#include <catena/catena.h>
#include <catena/dist.h>
#include <catena/mpi.h>

#include <dlfcn.h>
#include <fenv.h>
#include <omp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

enum { SIGNALS = 65, THREADS = 64, HANDLERS = 3 };
/* The bytes of a signal set that Linux fills. The rest of sigset_t is undefined. */
enum { MASK = 8 };

typedef struct {
    unsigned control; /* MXCSR without its flags */
    int rounding, traps;
} fp;

typedef struct {
    struct sigaction action[SIGNALS];
    sigset_t mask;
    cpu_set_t cpus;
    int threads; /* of the team that was checked */
    fp mode[THREADS];
    int omp[8];
    /* of the world, of self, of the communicator given to Catena */
    MPI_Errhandler handler[HANDLERS];
} state;

static MPI_Comm given = MPI_COMM_NULL;
static state first;
static int looks, changes;
static FILE *report;

static fp fp_now(void)
{
    fp f = {.rounding = fegetround(), .traps = fegetexcept()};
#ifdef __SSE2__
    f.control = _mm_getcsr() & ~0x3fu;
#endif
    return f;
}

static void take_process(state *s)
{
    memset(s, 0, sizeof *s);
    for (int i = 1; i < SIGNALS; i++) sigaction(i, NULL, &s->action[i]);
    sigprocmask(SIG_SETMASK, NULL, &s->mask);
    sched_getaffinity(getpid(), sizeof s->cpus, &s->cpus);
    omp_sched_t kind;
    omp_get_schedule(&kind, &s->omp[1]);
    s->omp[0] = (int)kind;
    s->omp[2] = omp_get_max_threads();
    s->omp[3] = omp_get_dynamic();
    s->omp[4] = omp_get_max_active_levels();
    s->omp[5] = (int)omp_get_proc_bind();
    s->omp[6] = omp_get_thread_limit();
    s->omp[7] = omp_get_default_device();
#pragma omp parallel num_threads(omp_get_max_threads() < THREADS ? omp_get_max_threads() : THREADS)
    {
        s->mode[omp_get_thread_num()] = fp_now();
#pragma omp single
        s->threads = omp_get_num_threads();
    }
}

static void take(state *s)
{
    const MPI_Comm comms[HANDLERS] = {MPI_COMM_WORLD, MPI_COMM_SELF, given};
    take_process(s);
    for (int i = 0; i < HANDLERS; i++)
        if (comms[i] != MPI_COMM_NULL) MPI_Comm_get_errhandler(comms[i], &s->handler[i]);
}

static void changed(const char *what, int i, const char *call)
{
    changes++;
    if (report) fprintf(report, "changed: %s %d, seen after %s\n", what, i, call);
}

static void compare(const state *a, const state *b, const char *call)
{
    for (int i = 1; i < SIGNALS; i++)
        if (a->action[i].sa_handler != b->action[i].sa_handler ||
            a->action[i].sa_flags != b->action[i].sa_flags ||
            memcmp(&a->action[i].sa_mask, &b->action[i].sa_mask, MASK) != 0)
            changed("signal", i, call);
    if (memcmp(&a->mask, &b->mask, MASK) != 0) changed("signal mask", 0, call);
    if (!CPU_EQUAL(&a->cpus, &b->cpus)) changed("affinity", 0, call);
    for (int i = 0; i < a->threads && i < b->threads; i++)
        if (memcmp(&a->mode[i], &b->mode[i], sizeof(fp)) != 0)
            changed("floating-point mode of thread", i, call);
    for (int i = 0; i < 8; i++)
        if (a->omp[i] != b->omp[i]) changed("OpenMP setting", i, call);
    for (int i = 0; i < HANDLERS; i++)
        if (a->handler[i] != b->handler[i]) changed("MPI error handler", i, call);
}

static void look(const char *call)
{
    state now;
    take(&now);
    looks++;
    compare(&first, &now, call);
}

static FILE *open_report(const char *kind)
{
    const char *prefix = getenv("HOST_REPORT"), *rank = getenv("OMPI_COMM_WORLD_RANK");
    char path[4096];
    if (!prefix) return NULL;
    if (!rank) rank = getenv("PMI_RANK");
    snprintf(path, sizeof path, "%s.%s.%s", prefix, rank ? rank : "0", kind);
    return fopen(path, "w");
}

/* Names the object that a handler is in, because addresses differ between runs. */
static void write_handler(FILE *f, int i, const struct sigaction *a)
{
    Dl_info info;
    const char *slash = NULL;
    if (a->sa_handler == SIG_DFL || a->sa_handler == SIG_IGN) {
        if (a->sa_handler == SIG_IGN) fprintf(f, "signal %d ignored\n", i);
        return;
    }
    const bool known = dladdr(*(void *const *)&a->sa_sigaction, &info) != 0;
    if (known) slash = strrchr(info.dli_fname, '/');
    fprintf(f, "signal %d: %s of %s, flags %x\n", i, known && info.dli_sname ? info.dli_sname : "?",
            slash ? slash + 1 : "?", (unsigned)a->sa_flags);
}

static bool hard(void)
{
    const char *mode = getenv("HOST_MODE");
    return mode && strcmp(mode, "hard") == 0;
}

/* MPI itself traps when it starts (libxml2 divides by zero), so the hard mode is active only
 * between MPI_Init and MPI_Finalize. */
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    const int error = PMPI_Init_thread(argc, argv, required, provided);
    if (hard()) {
        fesetround(FE_UPWARD);
        feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
    }
    return error;
}

int MPI_Finalize(void)
{
    if (hard()) {
        fedisableexcept(FE_ALL_EXCEPT);
        fesetround(FE_TONEAREST);
    }
    return PMPI_Finalize();
}

__attribute__((destructor)) static void end(void)
{
    state s;
    FILE *f = open_report("exit");
    if (!f) return;
    take_process(&s);
    for (int i = 1; i < SIGNALS; i++) write_handler(f, i, &s.action[i]);
    for (int i = 1; i < SIGNALS; i++)
        if (sigismember(&s.mask, i) == 1) fprintf(f, "signal %d blocked\n", i);
    fprintf(f, "CPUs");
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &s.cpus)) fprintf(f, " %d", i);
    fprintf(f, "\nfloating point: control %x rounding %x traps %x\nOpenMP", s.mode[0].control,
            (unsigned)s.mode[0].rounding, (unsigned)s.mode[0].traps);
    for (int i = 0; i < 8; i++) fprintf(f, " %d", s.omp[i]);
    fprintf(f, "\n");
    fclose(f);
}

/* ---- calls of Catena that are checked -------------------------------------------------------- */

#define REAL(name)          \
    __typeof__(name) *real; \
    *(void **)&real = dlsym(RTLD_NEXT, #name)

ctn_status ctn_context_new(ctn_context **ctx, const ctn_context_opt *opt)
{
    REAL(ctn_context_new);
    if (!report) report = open_report("calls");
    take(&first);
    ctn_status st = real(ctx, opt);
    look("ctn_context_new");
    return st;
}

ctn_status ctn_comm_adopt(ctn_comm **out, const char *abi, const void *handle,
                          const ctn_comm_opt *opt)
{
    REAL(ctn_comm_adopt);
    memcpy(&given, handle, sizeof given);
    MPI_Comm_get_errhandler(given, &first.handler[2]);
    ctn_status st = real(out, abi, handle, opt);
    look("ctn_comm_adopt");
    return st;
}

ctn_status ctn_comm_adopt_fortran(ctn_comm **out, int handle, const ctn_comm_opt *opt)
{
    REAL(ctn_comm_adopt_fortran);
    given = MPI_Comm_f2c((MPI_Fint)handle);
    MPI_Comm_get_errhandler(given, &first.handler[2]);
    ctn_status st = real(out, handle, opt);
    look("ctn_comm_adopt_fortran");
    return st;
}

ctn_status ctn_dist_optim(ctn_optim *o, ctn_comm *c, const ctn_dist_opt *opt)
{
    REAL(ctn_dist_optim);
    ctn_status st = real(o, c, opt);
    look("ctn_dist_optim");
    return st;
}

ctn_status ctn_optim_step_at(const char *at, ctn_optim *o)
{
    REAL(ctn_optim_step_at);
    ctn_status st = real(at, o);
    look("ctn_optim_step");
    return st;
}

ctn_status ctn_scope_end(ctn_context *ctx)
{
    REAL(ctn_scope_end);
    ctn_status st = real(ctx);
    look("ctn_scope_end");
    return st;
}

void ctn_comm_free(ctn_comm *c)
{
    REAL(ctn_comm_free);
    real(c);
    look("ctn_comm_free");
}

void ctn_context_free(ctn_context *ctx)
{
    REAL(ctn_context_free);
    real(ctx);
    look("ctn_context_free");
    if (!report) return;
    fprintf(report, "checks %d, changes %d\n", looks, changes);
    fclose(report);
    report = NULL;
}

#ifdef HOST_MAIN
static void on_signal(int n)
{
    (void)n;
}

/* Makes one change of each kind. It is not undone: the next comparison starts from the new
 * state. */
static void change(int kind)
{
    sigset_t mask;
    cpu_set_t cpus;
    switch (kind) {
    case 0: signal(SIGUSR1, on_signal); break;
    case 1:
        sigemptyset(&mask);
        sigaddset(&mask, SIGUSR2);
        sigprocmask(SIG_BLOCK, &mask, NULL);
        break;
    case 2:
        sched_getaffinity(0, sizeof cpus, &cpus);
        for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&cpus) > 1; i++) CPU_CLR(i, &cpus);
        sched_setaffinity(0, sizeof cpus, &cpus);
        break;
    case 3: fesetround(FE_DOWNWARD); break;
    case 4: feenableexcept(FE_OVERFLOW); break;
    case 5:
#ifdef __SSE2__
#pragma omp parallel num_threads(2)
        if (omp_get_thread_num() == 1) _mm_setcsr(_mm_getcsr() ^ 0x8040); /* in another thread */
#else
        fesetround(FE_UPWARD);
#endif
        break;
    case 6: omp_set_num_threads(omp_get_max_threads() + 1); break;
    case 7: omp_set_dynamic(!omp_get_dynamic()); break;
    case 8: omp_set_schedule(omp_sched_guided, 77); break;
    default: MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN); break;
    }
}

int main(int argc, char **argv)
{
    cpu_set_t cpus;
    int wrong = 0;
    omp_set_num_threads(2);
    MPI_Init(&argc, &argv);
    sched_getaffinity(0, sizeof cpus, &cpus);
    for (int kind = 0; kind < 10; kind++) {
        if (kind == 2 && CPU_COUNT(&cpus) == 1) continue; /* there is only one CPU to set */
        take(&first);
        changes = 0;
        look("nothing");
        const int idle = changes;
        change(kind);
        look("a change");
        if (idle == 0 && changes > 0) continue;
        printf("host_state: change %d: %d seen before it, %d after it\n", kind, idle, changes);
        wrong = 1;
    }
    MPI_Finalize();
    return wrong;
}
#endif
