/* SPDX-License-Identifier: Apache-2.0
 *
 * An allocator for the library that refuses what the host cannot hold. When a large block is
 * requested, or many small ones together are, the memory that the process uses plus that block,
 * times the ranks on the host, is compared with the cgroup limits (v2 and v1, at every level) and
 * with the free memory of the machine. Pages of files do not count, because the system can reclaim
 * them.
 *
 * The library soon touches every page of its blocks, so a refusal is no false alarm. Memory that
 * others (MPI, oneDNN) allocate later is not taken into account.
 */
#include "memory.h"

#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LARGE = 32 << 20, HUGE = 2 << 20 };

static struct {
    int host_ranks, machine_ranks;
    double given; /* limit in bytes; 0: none */
    char host[64];
    char refused[1024];
} memory = {.host_ranks = 1, .machine_ranks = 1};

/* ---- limits ---------------------------------------------------------------------------------- */

static double number_in(const char *path)
{
    double v = 0;
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    if (fscanf(f, "%lf", &v) != 1) v = 0; /* "max" */
    fclose(f);
    return v < 1e18 ? v : 0; /* cgroup v1 writes "no limit" as a number near 2^63 */
}

typedef struct {
    double bytes; /* 0: none */
    char from[PATH_MAX];
} limit;

/* The smallest value in the files `name` from a group up to its root. */
static void look_up(limit *least, const char *root, char *group, const char *name)
{
    char path[PATH_MAX];
    for (;;) {
        snprintf(path, sizeof path, "%.1024s%.2048s/%s", root, strcmp(group, "/") ? group : "",
                 name);
        double v = number_in(path);
        if (v > 0 && (least->bytes == 0 || v < least->bytes)) {
            least->bytes = v;
            snprintf(least->from, sizeof least->from, "%s", path);
        }
        char *slash = strrchr(group, '/');
        if (!slash || !group[0] || strcmp(group, "/") == 0) return;
        *slash = 0;
    }
}

static void cgroup_limit(limit *least)
{
    char line[PATH_MAX];
    FILE *f = fopen("/proc/self/cgroup", "r");
    if (!f) return;
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *path = strrchr(line, ':');
        if (!path) continue;
        if (strncmp(line, "0::", 3) == 0) {
            char again[PATH_MAX];
            snprintf(again, sizeof again, "%s", path + 1);
            look_up(least, "/sys/fs/cgroup", again, "memory.max");
            look_up(least, "/sys/fs/cgroup/unified", path + 1, "memory.max");
        } else if (strstr(line, ":memory:")) {
            look_up(least, "/sys/fs/cgroup/memory", path + 1, "memory.limit_in_bytes");
        }
    }
    fclose(f);
}

/* A line of a /proc file, such as "MemTotal:" in meminfo, in bytes; below 0: there is none. */
static double line_of(const char *path, const char *what)
{
    char line[256];
    double kb = -1;
    FILE *f = fopen(path, "r");
    if (!f) return kb;
    while (kb < 0 && fgets(line, sizeof line, f))
        if (strncmp(line, what, strlen(what)) == 0) kb = strtod(line + strlen(what), NULL);
    fclose(f);
    return kb * 1024;
}

/* ---- allocations ----------------------------------------------------------------------------- */

static const double GB = 1e9;

typedef struct {
    char text[sizeof memory.refused];
} reason;

static void refuse(reason *why, double now, double more, int ranks, double most, const char *what)
{
    double sum = (now + more) * ranks;
    snprintf(
        why->text, sizeof why->text,
        "not enough memory on %s: %.2f GB in use plus %.2f GB needed next, in %d rank%s, make "
        "%.2f GB; %s %.2f GB: %.2f GB too much; use a smaller --batch, --recompute, --precision "
        "bf16, or fewer ranks per host",
        memory.host, now / GB, more / GB, ranks, ranks == 1 ? "" : "s", sum / GB, what, most / GB,
        (sum - most) / GB);
}

static bool within(double now, double more, reason *why)
{
    limit least = {.bytes = memory.given};
    const double all = line_of("/proc/meminfo", "MemTotal:");
    const double left = line_of("/proc/meminfo", "MemAvailable:");
    char what[PATH_MAX + 64] = "--memory-gb is";
    if (least.bytes == 0) cgroup_limit(&least);
    if (least.from[0]) snprintf(what, sizeof what, "the limit (%s) is", least.from);
    if (least.bytes > 0 && (now + more) * memory.host_ranks > least.bytes)
        refuse(why, now, more, memory.host_ranks, least.bytes, what);
    else if (all > 0 && (now + more) * memory.machine_ranks > all)
        refuse(why, now, more, memory.machine_ranks, all, "the machine has");
    else if (left > 0 && more > left) /* the other ranks may have allocated theirs already */
        refuse(why, now, more, 1, left + now, "the machine has left");
    else return true;
    return false;
}

/* Memory in use is what cannot be reclaimed: the private memory of this process, and its part of
 * the memory that the ranks of a host share. Finding that part is slow, so the first check
 * counts all shared memory. */
static bool fits(double more)
{
    reason why;
    const double own = fmax(line_of("/proc/self/status", "RssAnon:"), 0);
    const double shared = fmax(line_of("/proc/self/status", "RssShmem:"), 0);
    if (within(own + shared, more, &why)) return true;
    const double part = line_of("/proc/self/smaps_rollup", "Pss_Shmem:"); /* from Linux 5.3 on */
    if (part >= 0 && within(own + part, more, &why)) return true;
    memcpy(memory.refused, why.text, sizeof why.text);
    return false;
}

/* Requests huge pages as the library's default allocator does. */
static void *get(void *user, size_t bytes, size_t align)
{
    (void)user;
    static _Atomic size_t since; /* bytes of small blocks since the last check */
    void *p = NULL;
    bool huge = bytes >= HUGE;
    if (bytes >= LARGE || atomic_fetch_add(&since, bytes) + bytes >= LARGE) {
        atomic_store(&since, 0);
        if (!fits((double)bytes)) return NULL;
    }
    if (posix_memalign(&p, huge ? HUGE : align, bytes) != 0) return NULL;
#ifdef MADV_HUGEPAGE
    if (huge) (void)madvise(p, bytes & ~((size_t)HUGE - 1), MADV_HUGEPAGE);
#endif
    return p;
}

static void give_back(void *user, void *p)
{
    (void)user;
    free(p);
}

ctn_status memory_begin(void)
{
    static const ctn_allocator mine = {get, give_back, NULL};
    gethostname(memory.host, sizeof memory.host - 1);
    return ctn_set_allocator(&mine);
}

void memory_limit(const launch *l, double gb)
{
    memory.host_ranks = l->comm ? ctn_comm_local_size(l->comm) : 1;
    memory.machine_ranks = l->machine_ranks;
    memory.given = gb * GB;
}

const char *memory_refused(void)
{
    return memory.refused[0] ? memory.refused : NULL;
}
