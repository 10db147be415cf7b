/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading a saved state on several ranks. Called by train/.
 */
#ifndef CTN_IO_STATE_H
#define CTN_IO_STATE_H

#include <catena/comm.h>
#include <catena/io.h>

/* Like ctn_state_load, on all ranks of c. Only rank 0 opens the file (path may be NULL on the
 * other ranks), and its arrays are broadcast one after another, straight to where they belong.
 * All ranks must have the same parts. They all succeed, or all fail with the same message. If a
 * part refuses its values on one rank only, that rank breaks the group. c NULL: one rank.
 * Collective. */
CTN_MUST_CHECK ctn_status ctn__state_load(ctn_comm *c, const char *path, int n,
                                          const ctn_state_part *parts);

#endif
