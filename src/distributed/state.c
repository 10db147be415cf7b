/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of networks whose parts are on different ranks. They are made like those of a trainer
 * (io/checkpoint), but every rank writes all of its own state to a file of its own, and the names
 * of its arrays begin with its number.
 */
#include <catena/dist.h>

#include "comm/comm.h"
#include "io/checkpoint/checkpoint.h"
#include "optim/optim.h"

enum { KEPT = 2 };

typedef struct {
    ctn_state_part *at;
    ctn__arena names;
} part_list;

/* The status of the highest rank that has failed, on all ranks. */
static ctn_status of_all(ctn_comm *c, ctn_status st)
{
    if (!c) return st;
    double failed = st < 0 ? ctn_comm_rank(c) : -1;
    CTN_TRY(ctn__comm_max_small(c, 1, &failed));
    return failed < 0 ? CTN_OK : ctn__comm_status_of(c, st, (int)failed);
}

static ctn_status check(const char *who, const char *dir, int n, const ctn_state_part *parts)
{
    if (!dir || n < 1 || !parts) return ctn_fail(CTN_EARG, "%s: needs a folder and parts", who);
    for (int i = 0; i < n; i++) {
        if (!parts[i].prefix || !parts[i].visit || !parts[i].object)
            return ctn_fail(CTN_EARG, "%s: part %d is incomplete", who, i);
        const ctn_optim *o = ctn__part_optim(&parts[i]);
        if (o && o->ctx->level > 0) return ctn_fail(CTN_ESTATE, "%s: call it between scopes", who);
        if (o && ctn__optim_sharded(o))
            return ctn_fail(CTN_EARG,
                            "%s: the optimizer '%s' is sharded, which is not possible here", who,
                            parts[i].prefix);
    }
    return CTN_OK;
}

/* The parts with the names that they have in the file. Free them even after an error. */
static ctn_status name_parts(part_list *l, const ctn_comm *c, int n, const ctn_state_part *parts)
{
    l->at = ctn__calloc((size_t)n, sizeof *l->at);
    if (!l->at) return CTN_ENOMEM;
    for (int i = 0; i < n; i++) {
        const char *prefix = parts[i].prefix;
        l->at[i] = parts[i];
        l->at[i].prefix = ctn__arena_printf(&l->names, "rank%d%s%s", c ? ctn_comm_rank(c) : 0,
                                            *prefix ? "." : "", prefix);
        if (!l->at[i].prefix) return CTN_ENOMEM;
    }
    return CTN_OK;
}

static void free_parts(part_list *l)
{
    ctn__free(l->at);
    ctn__arena_free(&l->names);
}

ctn_status ctn_dist_state_save(ctn_comm *c, const char *dir, int n, const ctn_state_part *parts)
{
    part_list l = {0};
    ctn__saver *s = NULL;
    ctn_status st = check("dist_state_save", dir, n, parts);
    if (st == CTN_OK) st = name_parts(&l, c, n, parts);
    if (st == CTN_OK) st = ctn__saver_new(&s, c, dir, KEPT);
    CTN_TRY_GOTO(st, done, of_all(c, st));
    ctn__saver_apart(s);
    CTN_TRY_GOTO(st, done, ctn__saver_begin(s, n, l.at, 0, NULL));
    CTN_TRY_GOTO(st, done, ctn__saver_vote(s));
    CTN_TRY_GOTO(st, done, ctn__saver_wait(s));
done:
    ctn__saver_free(s);
    free_parts(&l);
    return st;
}

ctn_status ctn_dist_state_load(ctn_comm *c, const char *dir, int n, const ctn_state_part *parts)
{
    part_list l = {0};
    ctn__ckpt *k = NULL;
    ctn_status st = check("dist_state_load", dir, n, parts);
    if (st == CTN_OK) st = name_parts(&l, c, n, parts);
    CTN_TRY_GOTO(st, done, of_all(c, st));
    CTN_TRY_GOTO(st, done, ctn__ckpt_open(&k, c, dir));
    CTN_TRY_GOTO(st, done, ctn__ckpt_load_apart(k, n, l.at));
done:
    ctn__ckpt_close(k);
    free_parts(&l);
    return st;
}
