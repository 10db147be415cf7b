/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a random program in Catena, on one rank or as one of several. What goes wrong is kept in `why`, so that a rank may be a thread.
 *
 * On several ranks a program is either the same on all, or twisted: each rank has other data, takes other branches, reads at
 * other places and leaves out some contributions. Variables stay the same on all ranks even then: what is assigned is averaged first.
 */
#ifndef RANDOM_MACHINE_H
#define RANDOM_MACHINE_H

#include <setjmp.h>

#include <catena/dist.h>

#include "random_program.h"

typedef enum { SGD, MOMENTUM, ADAM } optimizer;

typedef struct {
    const program *g;
    const char *name; /* of the run, for messages */
    ctn_context_opt opt;
    optimizer optim;
    double clip;
    ctn_comm *comm; /* NULL: one rank */
    bool twisted;
    /* After the optimizers are made; NULL: nothing. */
    ctn_status (*distribute)(ctn_optim *o, int pool, void *user);
    void *user;
    void (*look)(ctn_optim *o, int64_t *out); /* before they go; NULL: nobody looks */
    int64_t *looked;                          /* [POOLS] */
    record log;
    char why[700]; /* empty: all went well */

    int run;
    ctn_context *ctx;
    ctn_var *var[VARS];
    ctn_optim *optims[POOLS];
    ctn_retained *kept[RETAINED];
    ctn_tensor *r[REGS];
    int contributed[POOLS];
    void *data[LEN];
    jmp_buf out;
} machine;

/* All runs of the program. */
void rm_run(machine *m);

#endif
