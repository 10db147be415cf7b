/* SPDX-License-Identifier: Apache-2.0
 *
 * Which cores each rank of a machine computes on. Every rank reports the CPUs it may use; rank 0
 * makes the plan (cores_plan.c) and sends each rank its share. CPU sets that the launcher bound
 * and that do not overlap are kept. Ranks with the same set divide it into contiguous shares of
 * whole cores, ordered by NUMA node. Sets that overlap without being equal, and fewer cores than
 * ranks, are refused without --oversubscribe.
 *
 * A machine is identified by its boot: hosts that are containers on one machine share its cores.
 */
#include "cores.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch.h"
#include "watchdog/watchdog.h"

struct cores {
    cpu_set_t mine;
};

/* ---- the machine ----------------------------------------------------------------------------- */

static bool read_line(const char *path, char *buf, size_t n)
{
    FILE *f = fopen(path, "r");
    bool ok = f && fgets(buf, (int)n, f);
    if (f) fclose(f);
    if (ok) buf[strcspn(buf, "\n")] = 0;
    return ok;
}

/* The lowest CPU on the same core. */
static int core_of(int cpu)
{
    char path[128], text[64];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    return read_line(path, text, sizeof text) ? (int)strtol(text, NULL, 10) : cpu;
}

static int numa_of(int cpu)
{
    char path[128];
    int node = 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d", cpu);
    DIR *d = opendir(path);
    if (!d) return 0;
    for (struct dirent *e; (e = readdir(d));)
        if (strncmp(e->d_name, "node", 4) == 0) node = atoi(e->d_name + 4);
    closedir(d);
    return node;
}

typedef struct {
    int numa, core, cpu;
} place;

/* CPUs of a set, and the index at which each core begins. */
typedef struct {
    place p[CPU_SETSIZE];
    int at[CPU_SETSIZE + 1];
} room;

static int by_place(const void *x, const void *y)
{
    const place *a = x, *b = y;
    if (a->numa != b->numa) return a->numa - b->numa;
    if (a->core != b->core) return a->core - b->core;
    return a->cpu - b->cpu;
}

/* Sort the CPUs of a set by core. at[k] is where core k begins; the last entry is the end.
 * Returns the number of cores. */
static int order(const cpu_set_t *set, place *p, int *at)
{
    int n = 0, cores = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET((size_t)cpu, set)) p[n++] = (place){numa_of(cpu), core_of(cpu), cpu};
    qsort(p, (size_t)n, sizeof *p, by_place);
    for (int i = 0; i < n; i++)
        if (i == 0 || p[i].core != p[i - 1].core || p[i].numa != p[i - 1].numa) at[cores++] = i;
    at[cores] = n;
    return cores;
}

/* ---- the plan -------------------------------------------------------------------------------- */

static void set_text(const cpu_set_t *set, char *buf, size_t n)
{
    size_t used = 0;
    buf[0] = 0;
    for (int i = 0; i < CPU_SETSIZE && used + 16 < n; i++) {
        if (!CPU_ISSET((size_t)i, set)) continue;
        int end = i;
        while (end + 1 < CPU_SETSIZE && CPU_ISSET((size_t)end + 1, set)) end++;
        used += (size_t)snprintf(buf + used, n - used, end > i ? "%s%d-%d" : "%s%d",
                                 used ? "," : "", i, end);
        i = end;
    }
}

static void refuse(const launch *l, const args *a, const core_report *r)
{
    char one[128], other[128];
    set_text(&r->one.cpus, one, sizeof one);
    set_text(&r->other.cpus, other, sizeof other);
    if (r->kind == CORES_OVERLAP)
        say(stderr,
            "catena %s: the launcher bound rank %d to CPUs %s and rank %d to CPUs %s of %s, "
            "which overlap but are not the same: give each rank its own cores (mpirun "
            "--bind-to core --map-by slot:pe=N, srun --cpus-per-task=N); or bind several ranks "
            "to the same cores (mpirun --bind-to numa) or none of them (--bind-to none, "
            "--cpu-bind=none), and Catena divides the cores among them; --oversubscribe "
            "runs with this binding anyway\n",
            a->cmd->name, r->one.rank, one, r->other.rank, other, l->hosts[r->one.rank]);
    else
        say(stderr,
            "catena %s: %d ranks share %d core%s (CPUs %s) of %s and would wait for each "
            "other: start fewer ranks there (mpirun --map-by ppr:%d:node, srun "
            "--ntasks-per-node=%d) or request more cores (--cpus-per-task); --oversubscribe "
            "runs anyway\n",
            a->cmd->name, r->ranks, r->one.cores, r->one.cores == 1 ? "" : "s", one,
            l->hosts[r->one.rank], r->room, r->room);
}

static void warn(const launch *l, const core_report *r)
{
    char what[128], more[64] = "";
    if (r->count > 1) snprintf(more, sizeof more, ", and %d other groups of ranks", r->count - 1);
    if (r->kind == CORES_OVERLAP)
        snprintf(what, sizeof what, "ranks %d and %d share cores", r->one.rank, r->other.rank);
    else
        snprintf(what, sizeof what, "%d ranks share the %d core%s", r->ranks, r->one.cores,
                 r->one.cores == 1 ? "" : "s");
    log_line("warning: OVERSUBSCRIBED: %s of %s%s; timings are meaningless, and waiting threads "
             "waste CPU time unless OMP_WAIT_POLICY=passive is set",
             what, l->hosts[r->one.rank], more);
}

/* On rank 0: compute the share of each rank. */
static ctn_status plan(const launch *l, const args *a, const seat *me, seat *seats, share *shares)
{
    CTN_TRY(ctn_comm_gather(l->comm, me, sizeof *me, seats, 0));
    const core_report r = cores_plan(seats, l->size, shares);
    const bool refused = r.kind != CORES_FIT && !args_flag(a, "oversubscribe");
    if (refused) refuse(l, a, &r);
    else if (r.kind != CORES_FIT) warn(l, &r);
    for (int i = 0; refused && i < l->size; i++) shares[i].code = EXIT_ENVIRONMENT;
    return CTN_OK;
}

/* Rank 0 makes the plan and sends each rank its own share only. */
static ctn_status agree(const launch *l, const args *a, const seat *me, share *mine)
{
    ctn_status st = CTN_OK;
    seat *seats = NULL;
    share *shares = NULL;
    if (l->rank != 0) {
        CTN_TRY(ctn_comm_gather(l->comm, me, sizeof *me, NULL, 0));
        return ctn_comm_scatter(l->comm, NULL, sizeof *mine, mine, 0);
    }
    seats = calloc((size_t)l->size, sizeof *seats);
    shares = calloc((size_t)l->size, sizeof *shares);
    if (!seats || !shares) {
        st = ctn_fail(CTN_ENOMEM, "no memory for the core plan of %d ranks", l->size);
        goto done;
    }
    CTN_TRY_GOTO(st, done, plan(l, a, me, seats, shares));
    CTN_TRY_GOTO(st, done, ctn_comm_scatter(l->comm, shares, sizeof *mine, mine, 0));
done:
    free(seats);
    free(shares);
    return st;
}

/* Whole cores; if there are more parts than cores, some parts get the same core. */
static void take_share(cpu_set_t *set, const room *r, int cores, int part, int parts)
{
    const int first = parts > cores ? part % cores : cores * part / parts;
    const int end = parts > cores ? first + 1 : cores * (part + 1) / parts;
    CPU_ZERO(set);
    for (int i = r->at[first]; i < r->at[end]; i++) CPU_SET((size_t)r->p[i].cpu, set);
}

/* Bind all existing threads, since MPI has started some; later threads inherit the binding. */
static void bind_threads(const cpu_set_t *set)
{
    DIR *d = opendir("/proc/self/task");
    sched_setaffinity(0, sizeof *set, set);
    if (!d) return;
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') sched_setaffinity((pid_t)atoi(e->d_name), sizeof *set, set);
    closedir(d);
}

static seat look(const launch *l)
{
    seat me = {.rank = l->rank};
    if (!read_line("/proc/sys/kernel/random/boot_id", me.machine, sizeof me.machine))
        snprintf(me.machine, sizeof me.machine, "%.39s", l->host);
    if (sched_getaffinity(0, sizeof me.cpus, &me.cpus) != 0)
        for (long i = 0; i < sysconf(_SC_NPROCESSORS_ONLN); i++) CPU_SET((size_t)i, &me.cpus);
    return me;
}

int cores_divide(launch *l, const args *a)
{
    static room r;
    share mine = {0};
    if (!l->comm) return -1;
    seat me = look(l);
    me.cores = order(&me.cpus, r.p, r.at);
    if (agree(l, a, &me, &mine) < 0) return report_failure(a->cmd->name, DOING_SETUP);
    if (mine.code >= 0) {
        watchdog_agree(); /* every rank ends with this code */
        return mine.code;
    }
    l->cores = calloc(1, sizeof *l->cores);
    if (!l->cores) {
        (void)ctn_fail(CTN_ENOMEM, "no memory for the core plan");
        return report_failure(a->cmd->name, DOING_SETUP);
    }
    l->machine_ranks = mine.machine_ranks;
    take_share(&l->cores->mine, &r, me.cores, mine.part, mine.parts);
    bind_threads(&l->cores->mine);
    return -1;
}

ctn_status cores_verify(const launch *l)
{
    cpu_set_t set, both;
    int wrong = 0, all = 0;
    DIR *d = l->cores ? opendir("/proc/self/task") : NULL;
    if (!d) return CTN_OK;
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.' || sched_getaffinity((pid_t)atoi(e->d_name), sizeof set, &set) != 0)
            continue;
        CPU_AND(&both, &set, &l->cores->mine);
        all++;
        wrong += !CPU_EQUAL(&both, &set);
    }
    closedir(d);
    if (wrong == 0) return CTN_OK;
    return ctn_fail(
        CTN_EENGINE,
        "%d of %d threads may run on cores of other ranks: unset OMP_PROC_BIND, OMP_PLACES and "
        "GOMP_CPU_AFFINITY, or let the launcher bind the ranks",
        wrong, all);
}

/* ---- shown ----------------------------------------------------------------------------------- */

void cores_text(const launch *l, char *buf, size_t n)
{
    cpu_set_t now;
    CPU_ZERO(&now);
    if (l->cores) now = l->cores->mine;
    else sched_getaffinity(0, sizeof now, &now);
    set_text(&now, buf, n);
}

typedef struct {
    cpu_set_t cpus;
    int threads, loaders;
} row;

ctn_status cores_show(launch *l, int threads, int loaders)
{
    char text[128];
    ctn_status st = CTN_OK;
    row me = {.threads = threads, .loaders = loaders};
    if (!l->comm) return CTN_OK;
    /* The kernel's view, not the plan. */
    sched_getaffinity(0, sizeof me.cpus, &me.cpus);
    if (l->rank != 0) return ctn_comm_gather(l->comm, &me, sizeof me, NULL, 0);
    row *rows = calloc((size_t)l->size, sizeof *rows);
    if (!rows) return ctn_fail(CTN_ENOMEM, "no memory for the core plan");
    CTN_TRY_GOTO(st, done, ctn_comm_gather(l->comm, &me, sizeof me, rows, 0));
    log_line("%d ranks started by %s, communicating over %s", l->size, l->launcher,
             ctn_comm_transport(l->comm));
    say(stderr, "  %5s  %-20s %-20s %8s %8s\n", "rank", "host", "cores", "threads", "loader");
    for (int i = 0; i < l->size; i++) {
        set_text(&rows[i].cpus, text, sizeof text);
        say(stderr, "  %5d  %-20s %-20s %8d %8d\n", i, l->hosts[i], text, rows[i].threads,
            rows[i].loaders);
    }
done:
    free(rows);
    return st;
}

void cores_free(launch *l)
{
    free(l->cores);
    l->cores = NULL;
}
