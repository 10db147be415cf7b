/* SPDX-License-Identifier: Apache-2.0
 *
 * The cores this process may use, from hwloc. No other file includes hwloc.
 *
 * Read once per process into static memory. The set is the union of the process's affinity mask
 * and the OpenMP places: with OMP_PROC_BIND the runtime has already pinned the main thread, so the
 * mask alone would show only one core.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "base/base.h"

#include <errno.h>
#include <hwloc.h>
#include <limits.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

static ctn__topology topology;

enum { PLACE_CPUS = 8192 }; /* the maximum that Linux can be configured for */

static void add_omp_places(hwloc_bitmap_t set)
{
    int ids[PLACE_CPUS];
    int places = omp_get_num_places();
    for (int i = 0; i < places; i++) {
        int n = omp_get_place_num_procs(i);
        if (n <= 0 || n > PLACE_CPUS) continue;
        omp_get_place_proc_ids(i, ids);
        for (int k = 0; k < n; k++)
            if (ids[k] >= 0) hwloc_bitmap_set(set, (unsigned)ids[k]);
    }
}

/* Counts objects with at least one CPU in the set: half a core still counts as a core. */
static int count_in(hwloc_topology_t t, hwloc_obj_type_t type, hwloc_const_bitmap_t set)
{
    int n = 0;
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(t, type, o)) != NULL;)
        n += hwloc_bitmap_intersects(o->cpuset, set) ? 1 : 0;
    return n;
}

static bool read_hwloc(ctn__topology *out)
{
    bool ok = false;
    hwloc_topology_t t = NULL;
    hwloc_bitmap_t set = NULL;
    if (hwloc_topology_init(&t) != 0) return false;
#if HWLOC_API_VERSION >= 0x00020500
    /* Some hwloc backends move the calling thread between cores during discovery. */
    hwloc_topology_set_flags(t, HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING);
#endif
    hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE);
    set = hwloc_bitmap_alloc();
    if (set == NULL || hwloc_topology_load(t) != 0) goto done;
    hwloc_const_bitmap_t allowed = hwloc_topology_get_allowed_cpuset(t);
    if (hwloc_get_cpubind(t, set, HWLOC_CPUBIND_PROCESS) != 0) hwloc_bitmap_copy(set, allowed);
    add_omp_places(set);
    hwloc_bitmap_and(set, set, allowed);
    int cpus = hwloc_bitmap_weight(set);
    if (cpus <= 0) goto done;
    int cores = count_in(t, HWLOC_OBJ_CORE, set);
    int numa = count_in(t, HWLOC_OBJ_NUMANODE, set);
    *out = (ctn__topology){cpus, cores > 0 ? cores : cpus, numa > 0 ? numa : 1};
    ok = true;
done:
    hwloc_bitmap_free(set);
    hwloc_topology_destroy(t);
    return ok;
}

static void read_affinity(ctn__topology *out)
{
    cpu_set_t set;
    int cpus = 0;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) cpus = CPU_COUNT(&set);
    if (cpus < omp_get_num_procs()) cpus = omp_get_num_procs();
    if (cpus < 1) cpus = 1;
    *out = (ctn__topology){cpus, cpus, 1};
}

static void read_once(void)
{
    if (!read_hwloc(&topology)) read_affinity(&topology);
}

const ctn__topology *ctn__topology_get(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_once);
    return &topology;
}

/* OMP_NUM_THREADS may be a list, one number per nesting level; use the first. 0: not usable. */
static int omp_threads(void)
{
    const char *s = getenv("OMP_NUM_THREADS");
    if (s == NULL) return 0;
    char *end = NULL;
    errno = 0;
    long v = strtol(s, &end, 10);
    while (*end == ' ') end++;
    if (errno != 0 || end == s || (*end != 0 && *end != ',')) return 0;
    return v > 0 && v <= INT_MAX ? (int)v : 0;
}

int ctn__default_threads(const char **source)
{
    const char *from = "CATENA_THREADS";
    int64_t wanted = ctn__env_int(CTN__ENV_THREADS);
    int n = wanted > 0 && wanted <= INT_MAX ? (int)wanted : 0;
    if (n == 0 && wanted != 0)
        ctn__warn("CATENA_THREADS=%lld is not a valid number of threads; ignoring it",
                  (long long)wanted);
    if (n == 0) {
        from = "OMP_NUM_THREADS";
        n = omp_threads();
    }
    if (n == 0) {
        from = "physical cores of the cpuset";
        n = ctn__topology_get()->cores;
    }
    if (source != NULL) *source = from;
    return n;
}
