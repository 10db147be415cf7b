/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading of a saved state on several ranks; for train/.
 */
#ifndef CTN_IO_STATE_H
#define CTN_IO_STATE_H

#include <catena/comm.h>
#include <catena/io.h>

/* As ctn_state_load, on all ranks of c: only rank 0 opens the file (the others need not have a path), and its
 * arrays go to all ranks one after another, straight to where they belong. Ranks must have the same parts. All
 * ranks fail or none does, with the same message; where a part refuses its values on one rank alone, the group
 * is broken. c NULL: one rank. Collective. */
CTN_MUST_CHECK ctn_status ctn__state_load(ctn_comm *c, const char *path, int n,
                                          const ctn_state_part *parts);

#endif
