/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory that the ranks of a host may use together. Large allocations of the library, above all
 * the arena of a new plan, are measured against it before they are made: a training that cannot fit
 * ends with a message instead of a kill.
 */
#ifndef CATENA_MEMORY_H
#define CATENA_MEMORY_H

#include "launch.h"

/* Watch the library's allocations from now on; before it has made any. gb: the limit, 0: look for
 * one. */
ctn_status memory_begin(void);
void memory_limit(const launch *l, double gb);
/* Why an allocation was refused, NULL when none was. */
const char *memory_refused(void);

#endif
