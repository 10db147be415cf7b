/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the parameters of all ranks, trained or frozen, which are replicas of each other. A hash
 * of all of them is compared by one small reduction: the ranks agree if the largest and the
 * smallest hash are the same. Only if they differ do the ranks collect the hashes of single
 * parameters, to tell which ones and whose.
 */
#include "comm/comm.h"
#include "optim/optim.h"
#include "train/train.h"

/* The words of a hash are small enough to be exact in a double. */
static ctn_status differ(ctn_comm *c, ctn__hash128 h, bool *differs)
{
    double v[8];
    for (int i = 0; i < 4; i++) {
        const uint64_t word = i < 2 ? h.lo : h.hi;
        v[i] = (double)(uint32_t)(word >> 32 * (i % 2));
        v[i + 4] = -v[i];
    }
    CTN_TRY(ctn__comm_max_small(c, 8, v));
    *differs = false;
    for (int i = 0; i < 4; i++) *differs |= v[i] != -v[i + 4];
    return CTN_OK;
}

/* The hash that most ranks have. */
static uint64_t usual(const uint64_t *hash, int size)
{
    int most = 0;
    uint64_t best = hash[0];
    for (int r = 0; r < size; r++) {
        int n = 0;
        for (int q = 0; q < size; q++) n += hash[q] == hash[r];
        if (n > most) most = n, best = hash[r];
    }
    return best;
}

/* A parameter of all ranks. */
static ctn_status report(const ctn_trainer *tr, const ctn__common_param *p, const uint64_t *hash,
                         int size)
{
    const char *optim = p->optim > 0 ? tr->others.at[p->optim - 1].name : "";
    ctn__text who = {0};
    const uint64_t most = usual(hash, size);
    int n = 0;
    for (int r = 0; r < size; r++) {
        if (hash[r] == most) continue;
        if (n++ < 8) ctn__text_add(&who, "%s%d", n == 1 ? "" : ", ", r);
    }
    if (n > 8) ctn__text_add(&who, " and %d others", n - 8);
    ctn_status st =
        ctn_fail(CTN_ESTATE,
                 "replicas: after iteration %lld, %s%s%s has other values on rank%s %s than "
                 "on %s: the memory or the network of a node is faulty; resume from "
                 "the last state without that node",
                 (long long)tr->iteration, optim, *optim ? "." : "", p->name, n == 1 ? "" : "s",
                 who.failed ? "?" : who.s, size == 2 ? "rank 0" : "the other ranks");
    ctn__text_free(&who);
    return st;
}

/* Collects the hashes of one parameter after the other, up to the first that differs. All ranks
 * find the same and fail with the same message. A rank that told the others would disturb those
 * which are still collecting. */
static ctn_status find(ctn_trainer *tr, ctn_comm *c, const ctn__common_params *params)
{
    const int size = ctn_comm_size(c);
    uint64_t *all = ctn__calloc((size_t)size, sizeof *all);
    ctn_status st = all ? CTN_OK : CTN_ENOMEM;
    size_t i = 0;
    int r = size; /* the first rank that differs from rank 0 in parameter i */
    for (; st == CTN_OK && i < params->n; i++) {
        const uint64_t mine = ctn__common_hash(&params->at[i]);
        st = ctn_comm_allgather(c, &mine, sizeof mine, all);
        for (r = 1; st == CTN_OK && r < size && all[r] == all[0];) r++;
        if (r < size) break;
    }
    tr->shared = st == CTN_OK;
    if (st == CTN_OK && r < size) st = report(tr, &params->at[i], all, size);
    else if (st == CTN_OK) /* a fault of the moment */
        st = ctn_fail(CTN_ESTATE,
                      "replicas: after iteration %lld, the hashes of the parameters "
                      "differ between ranks, but not those of any single one: the "
                      "memory of a node is faulty",
                      (long long)tr->iteration);
    ctn__free(all);
    return st;
}

static ctn_status call(void *self, ctn_trainer *tr)
{
    ctn_comm *c = ctn__trainer_comm(tr);
    ctn__common_params all = {0};
    ctn__hash128 h[2] = {{0}};
    bool differs = false;
    (void)self;
    if (!c || ctn_comm_size(c) == 1) return CTN_OK;
    CTN_TRY(ctn__trainer_values(tr));
    ctn_status st = ctn__trainer_params(tr, &all);
    for (size_t i = 0; st == CTN_OK && i < all.n; i++) {
        h[1].lo = ctn__common_hash(&all.at[i]);
        h[0] = ctn__hash(h, sizeof h);
    }
    if (st == CTN_OK) st = differ(c, h[0], &differs);
    if (st == CTN_OK && differs) st = find(tr, c, &all);
    ctn__vec_free(&all);
    return st;
}

ctn_status ctn_extend_replicas(ctn_trainer *tr, const ctn_trigger *when)
{
    if (!tr) return ctn_fail(CTN_EARG, "extend_replicas: no trainer");
    return ctn__extend(
        tr, &(ctn_extension){.name = "replicas", .priority = CTN_PRIORITY_SAVE + 1, .call = call},
        when, (ctn_trigger){.kind = CTN_EVERY_ITERATIONS, .n = 1000});
}
