/* SPDX-License-Identifier: Apache-2.0
 *
 * What must hold of a training, in whatever mode and on however many ranks it runs. See pairs.h.
 */
#include "pairs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "support/folder.h"
#include "support/machine.h"

char why[1000];

/* Whether nothing depends on how the samples are divided among ranks, as the statistics of a batch
 * normalisation do. Unfreezing ends the freezing of statistics too. */
static bool any_ranks(const setup *s)
{
    if (s->apart) return false;
    return !s->norm || s->sync || (s->frozen_statistics && !s->unfreeze);
}

static bool near(double a, double b, double by)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= by * (1 + fabs(b));
}

static bool alike(double a, double b)
{
    return near(a, b, 0);
}

/* All ranks of group g must end alike, with the same weights and the same metrics. */
static void group_agrees(const life *l, int g)
{
    const bool same = any_ranks(l->s) || (l->s->apart && !l->s->norm);
    const result *a = &l->of[g * l->ranks];
    for (int r = 1; r < l->ranks && !why[0]; r++) {
        const result *b = a + r;
        if (l->s->apart && a->refused && b->refused) continue; /* each for its own reason */
        if (a->st != b->st && a->st != CTN_EPEER && b->st != CTN_EPEER)
            snprintf(why, sizeof why, "rank 0 ends with status %d (%s), rank %d with %d (%s)",
                     a->st, a->why, r, b->st, b->why);
        else if (a->st == CTN_OK && a->iterations != b->iterations)
            snprintf(why, sizeof why, "rank 0 ends after %d iterations, rank %d after %d",
                     (int)a->iterations, r, (int)b->iterations);
        else if (a->st == CTN_OK && same &&
                 (memcmp(a->w, b->w, sizeof a->w) != 0 || !alike(a->val, b->val)))
            snprintf(why, sizeof why, "ranks 0 and %d have other weights, or val/loss %.9g, %.9g",
                     r, a->val, b->val);
    }
}

/* All groups must end alike too: they have the same samples. On nodes of different sizes their
 * sums may be added up in different orders. */
static bool ranks_agree(const life *l)
{
    for (int g = 0; g < l->groups; g++) group_agrees(l, g);
    for (int r = 0; r < l->ranks && l->groups > 1 && !why[0]; r++) {
        const result *a = &l->of[r], *b = a + l->ranks;
        if (a->st != b->st && a->st != CTN_EPEER && b->st != CTN_EPEER)
            snprintf(why, sizeof why, "rank %d ends with status %d (%s), in another group %d (%s)",
                     r, a->st, a->why, b->st, b->why);
        else if (a->st == CTN_OK && a->iterations != b->iterations)
            snprintf(why, sizeof why, "rank %d ends after %d iterations, in another group after %d",
                     r, (int)a->iterations, (int)b->iterations);
    }
    return !why[0];
}

/* Where a run was stopped, the ranks' sums of losses are added up, so their mean may be rounded
 * differently. */
static void compare(const char *what, const result *a, const result *b, double by)
{
    if (why[0]) return;
    if (a->st != b->st || a->iterations != b->iterations)
        snprintf(why, sizeof why, "%s: status %d (%s) after %d iterations against %d (%s) after %d",
                 what, a->st, a->why, (int)a->iterations, b->st, b->why, (int)b->iterations);
    else if (by == 0 ? memcmp(a->w, b->w, sizeof a->w) != 0 || !near(a->loss, b->loss, 1e-14) ||
                           !near(a->val, b->val, 0)
                     : !near(a->loss, b->loss, by) || !near(a->val, b->val, by))
        snprintf(why, sizeof why, "%s: loss %.9g and %.9g, val/loss %.9g and %.9g%s", what, a->loss,
                 b->loss, a->val, b->val, by == 0 ? ", or a bit of the weights" : "");
}

static int ranks_of(const setup *s)
{
    return s->ranks ? s->ranks : 1;
}

bool possible(const setup *s)
{
    if (s->precision == CTN_PRECISION_F16) return test_has_f16();
    return s->precision != CTN_PRECISION_BF16 || test_has_bf16();
}

/* The first result that is not the report of another rank's failure. */
static const result *cause(const life *l)
{
    for (int r = 1; l->of->st == CTN_EPEER && r < l->ranks; r++)
        if (l->of[r].st != CTN_EPEER) return &l->of[r];
    return l->of;
}

/* Whether rank r has ended as it must, where one rank of the first group has failed: its group
 * ends with its message, the other group as if nothing had happened. After the last step, the
 * others have nothing to wait for. */
static bool ends_right(const life *l, int r)
{
    const result *x = &l->of[r], *own = &l->of[l->s->fail_rank];
    char text[100];
    snprintf(text, sizeof text, "%s", own->why);
    if (r >= l->ranks) return x->st == CTN_OK;
    if (x->refused) return true; /* the training is impossible anyway, which this rank saw first */
    if (x == own) return x->st < 0 && x->st != CTN_EPEER && text[0];
    if (x->st == CTN_OK) return l->s->fails == IN_EXTENSION && x->iterations == own->iterations;
    return x->st == CTN_EPEER && strstr(x->why, text);
}

static void check_failure(const life *l)
{
    const int who = l->s->fail_rank;
    const result *own = &l->of[who];
    /* A sample may fail that no batch needs any more. */
    const bool ends = l->failed && (l->s->fails != IN_READ || own->st < 0);
    for (int r = 0; r < l->ranks * l->groups && !why[0]; r++) {
        const result *x = &l->of[r];
        if (ends ? ends_right(l, r) : x->st == CTN_OK) continue;
        snprintf(why, sizeof why,
                 "%s: rank %d ends with status %d (%.200s), rank %d of %d with %d (%.200s)",
                 ends ? "a failure" : "no failure", who, own->st, own->why, r, l->ranks, x->st,
                 x->why);
    }
}

/* A new folder for each life, and for each group in it. */
static void live(life *l, ctn_mode mode, int ranks)
{
    mkdir(l->dir, 0777);
    mkdir("pair/other", 0777);
    lived(l, mode, ranks);
}

static void eager_agrees(const setup *s, const life *whole, double loose)
{
    static life other; /* large */
    other = (life){.s = s, .dir = "pair"};
    live(&other, CTN_MODE_EAGER, ranks_of(s));
    compare("eager against planned", other.of, whole->of, loose);
    remove_all("pair");
}

static void resumed_agrees(const setup *s, const life *whole)
{
    static life other;
    other = (life){.s = s, .dir = "pair", .stop = s->stop ? s->stop : STOP};
    live(&other, CTN_MODE_PLANNED, ranks_of(s));
    ranks_agree(&other);
    if (!why[0] && other.of->st < 0)
        snprintf(why, sizeof why, "stopped: status %d: %s", other.of->st, other.of->why);
    other.stop = 0;
    other.load = true;
    if (!why[0]) live(&other, CTN_MODE_PLANNED, ranks_of(s));
    compare("resumed against whole", other.of, whole->of, 0);
    remove_all("pair");
}

/* One rank against several, or two against one. */
static void sizes_agree(const setup *s, const life *whole, double loose)
{
    static life other;
    const int ranks = ranks_of(s) == 1 ? 2 : 1;
    setup far = *s;
    far.algorithm = NULL;
    far.world = 0;
    if (ranks == 1) far.ranks = far.shard = far.shard_second = far.wire = far.bad_rank = 0;
    other = (life){.s = &far, .dir = "pair"};
    live(&other, CTN_MODE_PLANNED, ranks);
    if (other.fired[0] == whole->fired[0]) /* the rank of the bad step had samples in it */
        compare(ranks == 1 ? "1 rank against several" : "2 ranks against 1", other.of, whole->of,
                loose);
    remove_all("pair");
}

verdict try_pair(const setup *s)
{
    verdict v = {0};
    static life whole;
    const bool rough = s->precision == CTN_PRECISION_BF16 || s->precision == CTN_PRECISION_F16;
    const double loose = rough || s->wire ? 0.02 : 1e-5;
    /* What has become infinite or NaN depends on the order of the operations. */
    const bool finite = s->bad <= BAD_NAN || (s->nonfinite && s->bad < BAD_SAMPLE);
    whole = (life){.s = s, .dir = "pair"};
    why[0] = 0;
    live(&whole, CTN_MODE_PLANNED, ranks_of(s));
    remove_all("pair");
    const result *first = cause(&whole);
    if (!s->fails || first->refused) ranks_agree(&whole);
    if (!why[0] && first->refused) {
        v.refused = true;
        snprintf(v.message, sizeof v.message, "%s", first->why);
        if (!v.message[0]) snprintf(why, sizeof why, "refused without a message");
    } else if (s->fails) {
        check_failure(&whole);
    } else if (!why[0] && first->st < 0) {
        snprintf(why, sizeof why, "failed with status %d: %s", first->st, first->why);
    }
    if (v.refused || s->fails || why[0]) return v;
    if (finite) eager_agrees(s, &whole, loose);
    if (!why[0]) resumed_agrees(s, &whole);
    if (!why[0] && finite && any_ranks(s)) sizes_agree(s, &whole, loose);
    return v;
}
