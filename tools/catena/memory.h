/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory limit for all ranks of a host together. Large allocations of the library, mainly
 * the arena of a new plan, are checked against it in advance, so a training that does not fit
 * ends with a message instead of being killed.
 */
#ifndef CATENA_MEMORY_H
#define CATENA_MEMORY_H

#include "launch.h"

/* Install the checking allocator. Call it before the library allocates anything. */
ctn_status memory_begin(void);
/* Set the limit in GB; 0: that of the cgroup. */
void memory_limit(const launch *l, double gb);
/* Why an allocation was refused; NULL: none was. */
const char *memory_refused(void);

#endif
