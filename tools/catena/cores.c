/* SPDX-License-Identifier: Apache-2.0
 *
 * The core plan of a job: which cores each rank of a machine computes on. Sets that the launcher
 * bound and that do not overlap are kept; a set that all ranks of a machine have in common is
 * divided into contiguous shares, whole cores in the order of NUMA nodes. Anything else, and fewer
 * cores than ranks, is refused unless --oversubscribe.
 *
 * A machine is what booted once: hosts that are containers of one machine share its cores too.
 * Invariant: every rank computes the same plan from the same gathered sets, so all go on or none
 * does.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* cpu_set_t */
#endif
#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <catena/info.h>

#include "launch.h"
#include "watchdog.h"

typedef struct {
    char machine[48];
    cpu_set_t cpus;
} seat;

struct cores {
    cpu_set_t mine;
    seat *all; /* [size]; one rank: NULL */
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

/* The lowest CPU of the core that this one belongs to. */
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

/* CPUs of a set, and where each core begins among them. */
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

/* CPUs of a set with those of one core together; at[k] is where core k begins, at[*cores] the end.
 */
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

typedef enum { PLAN_KEEP, PLAN_DIVIDE, PLAN_OVERLAP } plan;

static bool together(const seat *all, int a, int b)
{
    return all && strcmp(all[a].machine, all[b].machine) == 0;
}

/* How the ranks of the machine of `rank` are bound; how many there are, and how many stand before
 * it. */
static plan look(const launch *l, int rank, int *ranks, int *before)
{
    const seat *all = l->cores->all;
    *ranks = *before = 0;
    bool equal = true, apart = true;
    cpu_set_t both;
    for (int i = 0; i < l->size; i++) {
        if (!together(all, rank, i)) continue;
        ++*ranks;
        *before += i < rank;
        equal = equal && CPU_EQUAL(&all[i].cpus, &all[rank].cpus);
        for (int k = 0; k < i && apart; k++) {
            if (!together(all, i, k)) continue;
            CPU_AND(&both, &all[i].cpus, &all[k].cpus);
            apart = CPU_COUNT(&both) == 0;
        }
    }
    return apart ? PLAN_KEEP : equal ? PLAN_DIVIDE : PLAN_OVERLAP;
}

static void set_share(cpu_set_t *share, const place *p, const int *at, int first, int end)
{
    CPU_ZERO(share);
    for (int i = at[first]; i < at[end]; i++) CPU_SET((size_t)p[i].cpu, share);
}

static int refuse(const launch *l, const args *a, int rank, plan how, int ranks, int cores)
{
    watchdog_agree(); /* every rank comes to the same end */
    if (l->rank != 0) return EXIT_ENVIRONMENT;
    const char *host = l->hosts[rank];
    if (how == PLAN_OVERLAP)
        fprintf(
            stderr,
            "catena %s: the launcher bound the %d ranks of %s to cores that overlap: give each its "
            "own (mpirun --bind-to core --map-by slot:pe=N, srun --cpus-per-task=N), or bind none "
            "(--bind-to none, --cpu-bind=none) and Catena divides them; --oversubscribe takes it as it is\n",
            a->cmd->name, ranks, host);
    else
        fprintf(
            stderr,
            "catena %s: %d ranks on the %d core%s of %s: they would wait for each other; start fewer "
            "ranks there (mpirun --map-by ppr:%d:node, srun --ntasks-per-node=%d) or ask for more "
            "cores (--cpus-per-task); "
            "--oversubscribe takes it as it is\n",
            a->cmd->name, ranks, cores, cores == 1 ? "" : "s", host, cores, cores);
    return EXIT_ENVIRONMENT;
}

/* Whether the ranks of the machine of `rank` can have cores of their own, or need not. Only on the
 * machine itself is its topology to be seen; elsewhere the count of CPUs is good enough to refuse.
 */
static int check(const launch *l, const args *a, int rank, room *r)
{
    int ranks, before;
    const cpu_set_t *set = &l->cores->all[rank].cpus;
    plan how = look(l, rank, &ranks, &before);
    int cores = together(l->cores->all, rank, l->rank) ? order(set, r->p, r->at) : CPU_COUNT(set);
    if (how == PLAN_KEEP || (how == PLAN_DIVIDE && cores >= ranks)) return -1;
    if (!args_flag(a, "oversubscribe")) return refuse(l, a, rank, how, ranks, cores);
    if (l->rank == 0)
        log_line(
            "warning: OVERSUBSCRIBED: %d ranks share the %d core%s of %s; times mean nothing, and "
            "OMP_WAIT_POLICY=passive keeps waiting threads from burning them",
            ranks, cores, cores == 1 ? "" : "s", l->hosts[rank]);
    return -1;
}

static void take_share(launch *l, room *r)
{
    int before;
    const cpu_set_t *set = &l->cores->all[l->rank].cpus;
    plan how = look(l, l->rank, &l->machine_ranks, &before);
    const int cores = order(set, r->p, r->at), ranks = l->machine_ranks;
    cpu_set_t *share = &l->cores->mine;
    *share = *set;
    if (how != PLAN_DIVIDE) return;
    if (cores < ranks) set_share(share, r->p, r->at, before % cores, before % cores + 1);
    else set_share(share, r->p, r->at, cores * before / ranks, cores * (before + 1) / ranks);
}

/* All threads there are: MPI has started some, and later ones inherit from the one that makes them.
 */
static void bind_threads(const cpu_set_t *share)
{
    DIR *d = opendir("/proc/self/task");
    sched_setaffinity(0, sizeof *share, share);
    if (!d) return;
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') sched_setaffinity((pid_t)atoi(e->d_name), sizeof *share, share);
    closedir(d);
}

static ctn_status gather(launch *l)
{
    seat me = {0};
    l->cores = calloc(1, sizeof *l->cores);
    if (l->cores) l->cores->all = calloc((size_t)l->size, sizeof *l->cores->all);
    if (!l->cores || !l->cores->all)
        return ctn_fail(CTN_ENOMEM, "no memory for the core plan of %d ranks", l->size);
    if (!read_line("/proc/sys/kernel/random/boot_id", me.machine, sizeof me.machine))
        snprintf(me.machine, sizeof me.machine, "%.47s", l->host);
    if (sched_getaffinity(0, sizeof me.cpus, &me.cpus) != 0)
        for (long i = 0; i < sysconf(_SC_NPROCESSORS_ONLN); i++) CPU_SET((size_t)i, &me.cpus);
    return ctn_comm_allgather(l->comm, &me, sizeof me, l->cores->all);
}

int cores_divide(launch *l, const args *a)
{
    static room r;
    int ranks, before;
    if (!l->comm) return -1;
    if (gather(l) < 0) return report_failure(a->cmd->name, DOING_SETUP);
    for (int i = 0; i < l->size; i++) {
        look(l, i, &ranks, &before);
        int code =
            before > 0 ? -1 : check(l, a, i, &r); /* the first rank of a machine stands for it */
        if (code >= 0) return code;
    }
    take_share(l, &r);
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
        "%d of %d threads run on cores of other ranks: unset OMP_PROC_BIND, OMP_PLACES and "
        "GOMP_CPU_AFFINITY, or let the launcher bind the ranks",
        wrong, all);
}

/* ---- shown ----------------------------------------------------------------------------------- */

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

void cores_text(const launch *l, int rank, char *buf, size_t n)
{
    cpu_set_t now;
    CPU_ZERO(&now);
    if (!l->cores) sched_getaffinity(0, sizeof now, &now);
    else now = rank == l->rank ? l->cores->mine : l->cores->all[rank].cpus;
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
    row *rows = calloc((size_t)l->size, sizeof *rows);
    if (!rows) return ctn_fail(CTN_ENOMEM, "no memory for the core plan");
    sched_getaffinity(0, sizeof me.cpus,
                      &me.cpus); /* as the kernel has it, not as it was planned */
    CTN_TRY_GOTO(st, done, ctn_comm_allgather(l->comm, &me, sizeof me, rows));
    for (int i = 0; i < l->size; i++) l->cores->all[i].cpus = rows[i].cpus;
    if (l->rank != 0) goto done;
    log_line("%d ranks by %s over %s", l->size, l->launcher, ctn_comm_transport(l->comm));
    fprintf(stderr, "  %5s  %-20s %-20s %8s %8s\n", "rank", "host", "cores", "threads", "loader");
    for (int i = 0; i < l->size; i++) {
        set_text(&rows[i].cpus, text, sizeof text);
        fprintf(stderr, "  %5d  %-20s %-20s %8d %8d\n", i, l->hosts[i], text, rows[i].threads,
                rows[i].loaders);
    }
done:
    free(rows);
    return st;
}

void cores_free(launch *l)
{
    if (l->cores) free(l->cores->all);
    free(l->cores);
    l->cores = NULL;
}
