/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of `catena scale` and `catena plan` share. scale.c and plan.c are the commands.
 * schedule.c records what a step does (events.h), platform.c describes machines to the simulator,
 * simulator.c runs it, and estimate.c does without it.
 */
#ifndef CATENA_SCALE_H
#define CATENA_SCALE_H

#include <limits.h>

#include "cli.h"
#include "scale/events.h"

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

#define RECORDED_STEP "a recorded step: ./resnet50.step"

#define ALLREDUCE "allreduce" /* an operand that is not a network */

enum { MOST_WORDS = 64 };
/* Fill in the names of the networks and those of `more`, all NULL-terminated. Returns words. */
const char *const *networks_and(const char *words[MOST_WORDS], const char *const *more);
bool is_recorded(const char *operand); /* a file, not the name of a network */
/* What a step of the operand's network does and when: from a file, or by training a few steps. It
 * takes as long as --items-per-s says. Result: events_free. Errors: EIO, EFORMAT, those of the
 * training. */
ctn_status step_of(events *s, const args *a);

/* ---- chart.c --------------------------------------------------------------------------------- */

/* Write efficiency over numbers of ranks as an SVG file. Errors: EIO. */
ctn_status write_chart(const char *path, const char *title, int n, const int64_t *ranks,
                       const double *efficiency);

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
