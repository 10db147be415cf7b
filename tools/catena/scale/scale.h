/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of `catena scale` share. scale.c is the command, schedule.c records what a step
 * does, platform.c describes machines to the simulator, and simulator.c runs it.
 */
#ifndef CATENA_SCALE_H
#define CATENA_SCALE_H

#include <limits.h>

#include "cli.h"

/* ---- platform.c ------------------------------------------------------------------------------ */

/* A kind of machine, with published figures. */
typedef struct {
    const char *name;
    double gb_per_s;   /* of a link, in each direction */
    double latency_s;  /* of a link */
    double overhead_s; /* of MPI for each message, on either side */
    /* Writes the topology of at least this many nodes. Returns how many it has. */
    int64_t (*topology)(char *buf, size_t n, int64_t nodes);
    const char *source;
} platform;

const platform *platform_find(const char *name); /* NULL: there is none */
/* Write the description of a machine with this many nodes, and the list of their names. Errors:
 * EARG (too many), EIO. */
ctn_status platform_write(const platform *p, int64_t nodes, const char *xml, const char *hosts);

/* ---- schedule.c ------------------------------------------------------------------------------ */

typedef struct {
    double kernels_s, update_s; /* in one step of one rank */
    int64_t batch, elements;
} schedule;

/* Train a few steps of a network, and write down what one does and when. Errors: EIO, those of the
 * training. */
ctn_status schedule_record(schedule *s, const args *a, const char *path);

/* ---- simulator.c ----------------------------------------------------------------------------- */

/* Run the simulator's program with n words on this many ranks. folder: for temporary files. text
 * receives what it prints, lines of JSON. Errors: EUNSUPPORTED (no simulator), EIO, EENGINE. */
ctn_status simulate(const platform *p, int64_t ranks, const char *folder, int n,
                    const char *const *word, char *text, size_t room);
/* A value in a line of JSON. */
double simulated_number(const char *text, const char *name);
void simulated_word(const char *text, const char *name, char *out, size_t n);

/* ---- network.c ------------------------------------------------------------------------------- */

/* What the links of a machine can do, and the time of an allreduce with each algorithm. */
ctn_status scale_links(const args *a, const platform *p, int n, const int64_t *ranks,
                       const char *folder);
ctn_status scale_allreduce(const args *a, const platform *p, int n, const int64_t *ranks,
                           const char *folder);

#endif
