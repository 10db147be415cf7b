/* SPDX-License-Identifier: Apache-2.0
 *
 * Trainings with several features at a time, for test_pairs.c: the table of features, one life of a
 * training on one rank or several, and what must hold of it.
 */
#ifndef CTN_TESTS_PAIRS_H
#define CTN_TESTS_PAIRS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <catena/dist.h>
#include <catena/train.h>

#include "support/world.h"

enum {
    SAMPLES = 44,
    MOST_SAMPLES = 60,
    WIDTH = 6,
    HIDDEN = 8,
    CLASSES = 3,
    STEP = 12,
    EVAL = 10,
    BAD = 4,
    STOP = 6
};
enum { VALUES = 400 }; /* maximum number of saved values of the network */

/* ---- features -------------------------------------------------------------------------------- */

/* What is not finite: the loss of one step, or a value of one sample. */
enum { BAD_NAN = 1, BAD_INFINITE, BAD_NEGATIVE, BAD_SAMPLE, BAD_LARGE_SAMPLE, BAD_KINDS };

/* A call that fails on one rank: in the loss, in a kernel of the loss, when a sample is read, in an
 * extension, in the loss of an evaluation. */
typedef enum { NONE, IN_LOSS, IN_KERNEL, IN_READ, IN_EXTENSION, IN_EVALUATION, FAILURES } failure;

/* What a training consists of. All zero: plain SGD on one rank. */
typedef struct {
    int optim; /* index of optims[] */
    int precision, ranks, shard, when, progress, complete, exact, wire, bucket;
    int norm, sync, frozen_statistics, dropout, recompute, lora, freeze, unfreeze, two, tied;
    int clip, clip_value, lasso, noise, scale, lr_scale, decay_group, schedule;
    int average, plateau, early_stop, nonfinite, spikes, statistics, replicas, state, memory;
    int accumulate, drop_last, threads, weights, log;
    int samples, stop; /* 0: SAMPLES, STOP */
    /* Only random trainings set the rest. */
    int second, shard_second;  /* the second optimizer; 0: Adam */
    int bad, bad_at, bad_rank; /* kind of a step or a sample that is not finite; iteration */
    failure fails;             /* a call that fails on one rank */
    int fail_at, fail_rank;
    bool apart; /* each rank has samples of its own: */
    int part[WORLD_GROUP];
    const char *algorithm; /* NULL: ring */
    uint32_t world;        /* bits for test_world_random; 0: one group on one node */
} setup;

/* Features with the same letter are alternatives. A feature sets one or two fields. */
typedef struct {
    const char *name;
    char kind;
    size_t at;
    int value;
    size_t also;
    int its;
} feature;

enum { MOST_FEATURES = 100, OPTIMS = 17 };
extern const feature features[]; /* features.c */
extern const int nfeatures;

typedef ctn_status (*optim_fn)(ctn_optim **o, ctn_vars vars);
extern const optim_fn optims[OPTIMS];

void apply(setup *s, const feature *f);

/* ---- one training (training.c) --------------------------------------------------------------- */

/* The results of one rank. */
typedef struct {
    ctn_status st;
    bool refused; /* before the first step */
    char why[300];
    int64_t iterations;
    double loss, val; /* train/loss and val/loss at the end */
    int n;            /* values of the network, as double, exact */
    double w[VALUES];
} result;

typedef struct {
    const setup *s;
    const char *dir; /* states and other files */
    int stop;        /* stop after this iteration, and save; 0: run to the end */
    bool load;
    int ranks, groups;
    atomic_bool fired[WORLD_GROUPS];       /* the one bad step of this life has happened */
    atomic_bool failed;                    /* the call that fails was made */
    result of[WORLD_GROUPS * WORLD_GROUP]; /* of the first group, then of the second */
} life;

extern bool loud; /* print the values */

void fill_samples(void);
void lived(life *l, ctn_mode mode, int ranks);

/* ---- what must hold (verdict.c) -------------------------------------------------------------- */

extern char why[1000]; /* what did not hold; "": everything */

/* The result of a pair: tested, or refused with a message. */
typedef struct {
    bool refused;
    char message[300];
} verdict;

verdict try_pair(const setup *s);
bool possible(const setup *s); /* on this CPU */

/* ---- many features (random.c) ---------------------------------------------------------------- */

/* Appends what it consists of to text. */
setup random_setup(uint32_t seed, char *text, size_t room);

#endif
