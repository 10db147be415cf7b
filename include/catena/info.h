/* SPDX-License-Identifier: Apache-2.0
 *
 * How this library was built and which machine it runs on, for `catena info`, bug reports and
 * programs that manage their own threads.
 */
#ifndef CATENA_INFO_H
#define CATENA_INFO_H

#include <catena/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const char *name;  /* "onednn" */
    const char *value; /* "3.7.2"; "" means not built in */
    const char *help;  /* what it is for, one line */
} ctn_build_entry;

/* Number of entries about the build. Local. */
CTN_API int ctn_build_count(void);

/* Entry i, 0 <= i < ctn_build_count(). Local. Result: borrowed forever. Errors: EARG. */
CTN_API CTN_MUST_CHECK ctn_status ctn_build_get(int i, ctn_build_entry *out);

typedef struct {
    int cpus;                   /* logical CPUs this process may use (cpuset, affinity) */
    int cores;                  /* physical cores of these CPUs */
    int numa;                   /* NUMA nodes of these CPUs */
    int threads;                /* compute threads of a context by default */
    const char *threads_source; /* where that number comes from; borrowed forever */
} ctn_machine;

/* The machine as far as this process may use it. The hardware is examined once. Local. */
CTN_API void ctn_machine_get(ctn_machine *out);

#ifdef __cplusplus
}
#endif
#endif
