/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a random program in Catena, on one rank or as one of several. Errors are stored in `why`
 * instead of being asserted, so that a rank may be a thread.
 *
 * On several ranks, a program is either the same on all of them or "twisted": each rank has
 * different data, takes different branches, reads in different places and leaves out some
 * contributions. Even then the variables stay the same on all ranks, because assigned values are
 * averaged first.
 */
#ifndef RANDOM_MACHINE_H
#define RANDOM_MACHINE_H

#include <setjmp.h>

#include <catena/dist.h>

#include "random_program.h"

typedef enum { SGD, MOMENTUM, ADAM } optimizer;

/* Calls that end a program on the rank that makes them. After GIVES_UP the rank tells the others
 * itself (ctn_comm_break), after the rest the library does. */
typedef enum { NO_FAILURE, BAD_BACKWARD, BAD_STEP, BAD_LOSS, GIVES_UP, FAILURES } failure;

typedef struct {
    const program *g;
    const char *name; /* of the run, for messages */
    ctn_context_opt opt;
    optimizer optim[POOLS];
    double clip;
    ctn_comm *comm; /* NULL: one rank */
    bool twisted;
    bool hostile; /* calls that must be refused between the instructions (random_hostile.c) */
    /* One call that fails, before instruction `at` of run `run` (random_failure.c). */
    struct {
        failure how;
        int at, run;
    } fail;
    char cause[200]; /* the library's message, if that call was made */
    /* Called after the optimizers are created; may be NULL. */
    ctn_status (*distribute)(ctn_optim *o, int pool, void *user);
    void *user;
    /* called before the optimizers are freed; may be NULL */
    void (*look)(ctn_optim *o, int64_t *out);
    int64_t *looked; /* [POOLS] */
    ctn_dtype type;  /* of all values */
    record log;
    char why[700]; /* empty: no error */

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

/* Executes all runs of the program. */
void rm_run(machine *m);

/* One call that must be refused, and a scope that must fail. False, with `why` set, if not. */
bool rm_hostile_call(machine *m, int at, ctn_tensor *x);
bool rm_hostile_scope(machine *m);
/* Makes the call that fails; false if it does not, with `why` set anyhow. */
bool rm_fail(machine *m);

#endif
