/* SPDX-License-Identifier: Apache-2.0
 *
 * Training steps on several ranks. Every rank runs the same loop and the same extensions on its
 * share of the samples; extensions that write or print do so on rank 0 only. What ranks must
 * agree on during the run (stop requests, the clock) travels with the gradients and costs no
 * extra message.
 *
 * Invariant: all ranks take the same number of steps. A rank that has used up its samples, or
 * could not read them, takes empty steps. The number of steps follows from what ctn__group_agree
 * compares: either all loaders share one dataset and are at the same position on every rank, or
 * each rank has its own dataset and the rank with the most batches decides.
 */
#include <math.h>

#include "comm/comm.h"
#include "data/loader.h"
#include "nn/nn.h"
#include "optim/optim.h"
#include "train/train.h"

static ctn__exchange *exchange(const ctn_trainer *tr)
{
    return tr->optim->pool->exchange;
}

ctn_comm *ctn__trainer_comm(const ctn_trainer *tr)
{
    return exchange(tr) ? ctn__exchange_comm(exchange(tr)) : NULL;
}

bool ctn__writes(const ctn_trainer *tr)
{
    const ctn_comm *c = ctn__trainer_comm(tr);
    return !c || ctn_comm_rank(c) == 0;
}

void ctn__group_give(ctn_trainer *tr, int64_t samples)
{
    ctn__exchange *x = exchange(tr);
    if (!x) return;
    ctn__exchange_give(x, CTN__GIVE_SAMPLES, (double)samples);
    ctn__exchange_give(x, CTN__GIVE_STOP, atomic_load(&tr->stop) != NULL);
    ctn__exchange_give(x, CTN__GIVE_DUE, ctn__writes(tr) ? ctn__triggers_due(tr) : 0);
    ctn__exchange_give(x, CTN__GIVE_LOSS, tr->losses.last.sum);
    ctn__exchange_give(x, CTN__GIVE_TARGETS, tr->losses.last.weight);
    ctn__exchange_give(x, CTN__GIVE_WRITTEN, ctn__checkpoint_written(tr));
    ctn__exchange_give(x, CTN__GIVE_CLOCK,
                       ctn__writes(tr) ? (double)(ctn__now_ns() - tr->began) * 1e-9 : 0);
}

void ctn__group_take(ctn_trainer *tr)
{
    const ctn__exchange *x = exchange(tr);
    ctn__step_losses *l = &tr->losses;
    l->mean = x ? ctn__exchange_total(x, CTN__GIVE_LOSS) / ctn__exchange_total(x, CTN__GIVE_TARGETS)
                : l->now.sum / l->now.weight;
    ctn__triggers_set(tr, x ? ctn__exchange_total(x, CTN__GIVE_DUE) : ctn__triggers_due(tr));
    if (!x) return;
    tr->samples += (int64_t)ctn__exchange_total(x, CTN__GIVE_SAMPLES);
    tr->agreed = ctn__exchange_total(x, CTN__GIVE_STOP) > 0;
    tr->written =
        (int)ctn__exchange_total(x, CTN__GIVE_WRITTEN) == ctn_comm_size(ctn__trainer_comm(tr));
}

double ctn__trainer_loss(const ctn_trainer *tr, int64_t *iteration)
{
    *iteration = tr->iteration - (exchange(tr) != NULL);
    return tr->losses.mean;
}

double ctn__group_clock(const ctn_trainer *tr)
{
    return ctn__exchange_total(exchange(tr), CTN__GIVE_CLOCK);
}

/* ---- random numbers -------------------------------------------------------------------------- */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static uint64_t step_of(const ctn_trainer *tr)
{
    return tr->before + (uint64_t)tr->iteration * (uint64_t)ctn__trainer_optims(tr);
}

/* A step has a number for each optimizer; its batches share them and differ in their share of the
 * samples. The context also counts other scopes, such as those of evaluations, whose number differs
 * between ranks. */
void ctn__group_place(ctn_trainer *tr, int64_t round, int optim)
{
    const ctn_loader *l = tr->loader;
    const ctn_comm *c = ctn__trainer_comm(tr);
    /* Each rank has its own dataset, or several ranks have parts of the same samples. */
    const bool apart = c && ctn_comm_size(c) != l->sampler.size;
    const int64_t rank = apart ? ctn_comm_rank(c) : l->sampler.rank;
    const int64_t size = apart ? ctn_comm_size(c) : l->sampler.size;
    const int64_t most = l->step * tr->o.accumulate, begin = tr->begin;
    ctn_share s = {.part = (uint64_t)(round * size + rank), .rows = tr->batch.n};
    if (s.rows > 0) {
        ctn__loader_place(l, &s.first, &s.every);
        s.first -= begin;
        s.total = smaller(most, l->sampler.total - begin);
    }
    if (apart) { /* as if the ranks' samples were dealt in turn */
        s.first = s.first * size + rank;
        s.every *= size;
        s.total = most * size;
    }
    ctn__group_place_at(tr, &s, optim);
}

void ctn__group_place_at(ctn_trainer *tr, const ctn_share *share, int optim)
{
    tr->ctx->share = *share;
    tr->ctx->step = step_of(tr) + (uint64_t)optim;
}

void ctn__group_leave(ctn_trainer *tr)
{
    const ctn_comm *c = ctn__trainer_comm(tr);
    tr->ctx->share = (ctn_share){.part = c ? (uint64_t)ctn_comm_rank(c) : 0};
    tr->ctx->step = step_of(tr);
}

ctn_status ctn__group_begin(ctn_trainer *tr)
{
    ctn_comm *c = ctn__trainer_comm(tr);
    uint64_t step = tr->ctx->step;
    if (c) CTN_TRY(ctn_comm_broadcast(c, &step, sizeof step, 0));
    tr->before = 0;
    tr->before = step - step_of(tr);
    return CTN_OK;
}

/* ---- what all ranks have in common ----------------------------------------------------------- */

bool ctn__group_apart(const ctn_trainer *tr)
{
    const ctn_comm *c = ctn__trainer_comm(tr);
    return c && ctn_comm_size(c) > 1 && tr->loader->sampler.size == 1;
}

static void add_setup(const ctn_trainer *tr, ctn__text *t)
{
    const ctn_loader *l = tr->loader;
    ctn__text_add(t, "Catena %s\na loader for %d rank%s\n", ctn_version_text(), l->sampler.size,
                  l->sampler.size == 1 ? "" : "s");
    if (!ctn__group_apart(tr))
        ctn__text_add(t, "%lld training samples\n", (long long)l->sampler.total);
    ctn__text_add(t, "batches of %lld samples, %lld of all ranks%s\n%lld batches per step\n",
                  (long long)l->batch, (long long)l->step,
                  l->drop_last ? ", dropping a smaller last one" : "", (long long)tr->o.accumulate);
}

/* " of optimizer generator", nothing for the trainer's own. */
static const char *of_optim(const ctn_trainer *tr, int i, char *out, size_t room)
{
    out[0] = 0;
    if (i > 0) snprintf(out, room, " of optimizer %s", tr->others.at[i - 1].name);
    return out;
}

/* The state of a sharded optimizer differs between ranks by design. */
static void add_optim(const ctn_trainer *tr, int i, ctn__text *t)
{
    const ctn_optim *o = ctn__trainer_optim(tr, i);
    const size_t bytes = (size_t)o->pool->count * o->pool->unit;
    char whose[160];
    ctn__hash128 h[3] = {{0}};
    of_optim(tr, i, whose, sizeof whose);
    ctn__text_add(t, "the optimizer %s%s with learning rate %.9g after %lld steps\n",
                  o->step_op.name, whose, ctn_optim_lr(o), (long long)ctn_optim_steps(o));
    if (ctn__optim_sharded(o)) return;
    for (int k = 0; k < o->nstates; k++) h[k] = ctn__hash(o->state[k], bytes);
    ctn__text_add(t, "a state%s with the hash %016llx\n", i ? whose : " of the optimizer",
                  (unsigned long long)ctn__hash(h, sizeof h).lo);
}

/* One line for the parameters of each optimizer, and one for those of none. */
static ctn_status add_weights(const ctn_trainer *tr, ctn__text *t)
{
    ctn__common_params all = {0};
    char whose[160];
    const ctn_status st = ctn__trainer_params(tr, &all);
    for (size_t i = 0, end; st == CTN_OK && i < all.n; i = end) {
        ctn__hash128 h[2] = {{0}};
        for (end = i; end < all.n && all.at[end].optim == all.at[i].optim; end++) {
            h[1].lo = ctn__common_hash(&all.at[end]);
            h[0] = ctn__hash(h, sizeof h);
        }
        ctn__text_add(t, "%sweights%s with the hash %016llx\n", all.at[i].optim < 0 ? "other " : "",
                      of_optim(tr, all.at[i].optim, whose, sizeof whose),
                      (unsigned long long)h[0].lo);
    }
    ctn__vec_free(&all);
    return st;
}

/* When it runs, as " every 4 iterations". */
static void add_trigger(const ctn_trigger *g, ctn__text *t)
{
    static const char *const often[] = {[CTN_EVERY_EPOCHS] = "every %g epochs",
                                        [CTN_EVERY_ITERATIONS] = "every %g iterations",
                                        [CTN_EVERY_SECONDS] = "every %g seconds",
                                        [CTN_ONCE] = "once at iteration %g",
                                        [CTN_SHARE_OF_TIME] = "in %g percent of the time"};
    const char *how = g->kind <= CTN_SHARE_OF_TIME ? often[g->kind] : NULL;
    ctn__text_add(t, " ");
    if (how) ctn__text_add(t, how, g->n);
    else if (g->key)
        ctn__text_add(t, "at the %s %s", g->kind == CTN_WHEN_MAX ? "largest" : "smallest", g->key);
    else
        ctn__text_add(t, "at %s",
                      g->kind == CTN_AT_EPOCHS       ? "epochs"
                      : g->kind == CTN_AT_ITERATIONS ? "iterations"
                                                     : "the end");
    for (int k = 0; k < CTN_TRIGGER_AT && g->at[k] > 0; k++) ctn__text_add(t, " %g", g->at[k]);
    if (g->apart > 0) ctn__text_add(t, ", at least %g seconds apart", g->apart);
}

/* Those of the library may be collective when they are called. */
static void add_extensions(const ctn_trainer *tr, ctn__text *t)
{
    for (size_t i = 0; i < tr->ext.n; i++) {
        const ctn__extended *x = tr->ext.at[i];
        if (!x->built_in || x->e.rank0_only) continue;
        ctn__text_add(t, "the extension %s", x->e.name);
        add_trigger(&x->trigger.t, t);
        ctn__text_add(t, "\n");
    }
}

static ctn_status add_place(const ctn_trainer *tr, ctn__text *t)
{
    const ctn_sampler_state s = ctn_loader_get_state(tr->loader);
    const ctn_trainer_opt *o = &tr->o;
    for (int i = 0; i < ctn__trainer_optims(tr); i++) add_optim(tr, i, t);
    ctn__text_add(t, "limits of %lld epochs, %lld iterations and %g seconds (0: none)\n",
                  (long long)o->epochs, (long long)o->iterations, o->seconds);
    ctn__text_add(t, "%lld iterations, %lld epochs and %lld samples done\n",
                  (long long)tr->iteration, (long long)tr->epoch, (long long)tr->samples);
    if (!ctn__group_apart(tr))
        ctn__text_add(t, "samples in the order of seed %llu, epoch %llu, from position %llu\n",
                      (unsigned long long)s.seed, (unsigned long long)s.epoch,
                      (unsigned long long)s.position);
    CTN_TRY(add_weights(tr, t));
    add_extensions(tr, t);
    return CTN_OK;
}

static int64_t own_batches(const ctn_loader *l)
{
    const ctn_sampler *s = &l->sampler;
    return s->total / l->step + (!l->drop_last && s->total % l->step > 0);
}

/* Packs a count and the rank that has it into one number, such that the maximum over ranks has
 * the largest count and, among equal counts, the lowest rank. */
static const double RANKS = 1 << 22;

static double with_rank(double count, int rank)
{
    return count * RANKS + (RANKS - 1 - rank);
}

static int rank_in(double x)
{
    return (int)(RANKS - 1 - (x - floor(x / RANKS) * RANKS));
}

/* Finds the rank with the most batches, where each rank has its own dataset. */
static ctn_status find_most(ctn_trainer *tr)
{
    ctn_comm *c = ctn__trainer_comm(tr);
    const double mine = (double)own_batches(tr->loader);
    double ends[2] = {with_rank(mine, ctn_comm_rank(c)), with_rank(-mine, ctn_comm_rank(c))};
    CTN_TRY(ctn__comm_max_small(c, 2, ends));
    const int64_t most = (int64_t)floor(ends[0] / RANKS), least = -(int64_t)floor(ends[1] / RANKS);
    tr->batches = most;
    if (least < most && ctn__writes(tr))
        ctn__warn(
            "trainer: rank %d has %lld batches in an epoch, rank %d has %lld: ranks with fewer "
            "batches take the last steps of each epoch without samples",
            rank_in(ends[1]), (long long)least, rank_in(ends[0]), (long long)most);
    return CTN_OK;
}

/* Either all optimizers exchange their gradients, or none does. */
static ctn_status check_optims(const ctn_trainer *tr)
{
    ctn_comm *c[2] = {NULL}; /* of the trainer's own optimizer, and of another */
    for (int i = 0; i < ctn__trainer_optims(tr); i++) {
        const ctn__exchange *x = ctn__trainer_optim(tr, i)->pool->exchange;
        c[i > 0] = x ? ctn__exchange_comm(x) : NULL;
        if (i == 0 || (!c[0] && !c[1])) continue;
        const int size[2] = {c[0] ? ctn_comm_size(c[0]) : 1, c[1] ? ctn_comm_size(c[1]) : 1};
        if (size[0] == size[1]) continue;
        const char *name = tr->others.at[i - 1].name;
        const ctn_status st =
            !c[1] ? ctn_fail(CTN_ESTATE,
                             "trainer: optimizer %s is not distributed, but the trainer's own is: "
                             "call ctn_dist_optim for it too",
                             name)
            : !c[0]
                ? ctn_fail(CTN_ESTATE,
                           "trainer: the trainer's own optimizer is not distributed, but optimizer "
                           "%s is: call ctn_dist_optim for it too",
                           name)
                : ctn_fail(CTN_ESTATE,
                           "trainer: optimizer %s is distributed over %d ranks, the trainer's own "
                           "over %d: use one communicator",
                           name, size[1], size[0]);
        return ctn__comm_alone(c[0], ctn__comm_alone(c[1], st));
    }
    return CTN_OK;
}

ctn_status ctn__group_agree(ctn_trainer *tr, bool state)
{
    ctn_comm *c = ctn__trainer_comm(tr);
    ctn__text t = {0};
    CTN_TRY(check_optims(tr));
    if (!c) return CTN_OK;
    if (state) CTN_TRY(ctn__trainer_settle(tr));
    add_setup(tr, &t);
    ctn_status st = state ? add_place(tr, &t) : CTN_OK;
    if (t.failed) st = CTN_ENOMEM;
    CTN_TRY_GOTO(st, done, ctn__comm_alone(c, st));
    st = ctn_comm_agree(c, t.s);
done:
    ctn__text_free(&t);
    if (st == CTN_OK && state && ctn__group_apart(tr)) st = find_most(tr);
    return st;
}

/* ---- batches --------------------------------------------------------------------------------- */

int64_t ctn__group_batches(const ctn_trainer *tr)
{
    return tr->batches > 0 ? tr->batches : own_batches(tr->loader);
}

int64_t ctn__group_used(const ctn_trainer *tr)
{
    if (ctn__group_apart(tr)) return tr->in_epoch - tr->held;
    const ctn_loader *l = tr->loader;
    const uint64_t at = ctn__trainer_position(tr).position;
    const uint64_t step = (uint64_t)l->step;
    return (int64_t)(at / step + (at % step > 0));
}

ctn_status ctn__group_next(ctn_trainer *tr)
{
    ctn_status st = tr->dry ? CTN_END : ctn__loader_next_of_all(tr->loader, &tr->batch);
    if (st < 0 || !ctn__group_apart(tr)) return st;
    tr->dry = st == CTN_END && tr->in_epoch < tr->batches;
    if (st == CTN_END && !tr->dry) {
        tr->in_epoch = 0;
        return CTN_END;
    }
    if (tr->dry) tr->batch = (ctn_batch){0};
    tr->in_epoch++;
    return CTN_OK;
}

/* ---- states ---------------------------------------------------------------------------------- */

/* In a shared dataset, rank 0's position is that of every rank. Where each rank has its own
 * dataset, all ranks have used the same number of batches. */
ctn_status ctn__group_resume(ctn_trainer *tr, const uint64_t shift[2])
{
    ctn_context_state c;
    ctn_sampler_state s = tr->restored, now = ctn_loader_get_state(tr->loader);
    ctn_context_get_state(tr->ctx, &c);
    c.seed += shift[0];
    CTN_TRY(ctn_context_set_state(tr->ctx, &c));
    s.seed += shift[1];
    tr->held = tr->dry = false;
    tr->in_epoch = tr->loaded.batches;
    if (ctn__group_apart(tr)) {
        const uint64_t total = (uint64_t)tr->loader->sampler.total;
        const uint64_t at = ctn__mul((size_t)tr->in_epoch, (size_t)tr->loader->batch);
        s.position = at < total ? at : total;
    }
    /* If the loader is already there, keep the batches it has prefetched. */
    if (s.seed == now.seed && s.epoch == now.epoch && s.position == now.position) return CTN_OK;
    return ctn_loader_set_state(tr->loader, &s);
}

static ctn_status take_sum(void *user, const ctn__weighted *v)
{
    ctn_trainer *tr = user;
    ctn__observed *o = NULL;
    ctn_status st = ctn__value_get(tr, v->name, &o);
    if (!o) return st;
    o->sum = ctn__writes(tr) ? v->sum : 0;
    o->weight = ctn__writes(tr) ? v->weight : 0;
    o->reported = true;
    return CTN_OK;
}

/* Afterwards rank 0 has the sum of the losses of the step just done. */
static ctn_status collect_loss(ctn_trainer *tr)
{
    ctn_comm *c = ctn__trainer_comm(tr);
    double theirs[2];
    if (!c || !tr->losses.wanted) return CTN_OK;
    CTN_TRY(ctn__comm_sum(c, &tr->losses.now, 2, CTN_F64, theirs));
    if (!ctn__writes(tr)) tr->losses.now = (ctn__step_sum){0};
    return CTN_OK;
}

ctn_status ctn__group_values(ctn_trainer *tr)
{
    CTN_TRY(collect_loss(tr));
    return ctn__trainer_comm(tr) && tr->merge.fn ? ctn__values_merge(tr, take_sum, tr) : CTN_OK;
}

ctn_status ctn__group_states(ctn_trainer *tr)
{
    ctn_comm *c = ctn__trainer_comm(tr);
    if (!c || !tr->o.net) return CTN_OK;
    ctn_vars all = {0};
    CTN_TRY(ctn__module_vars(tr->o.net, &all));
    for (int i = 0; i < all.n; i++) {
        ctn_var *v = all.var[i];
        if (v->kind != CTN_STATE) continue;
        v->version++;
        CTN_TRY(ctn_comm_broadcast(c, v->data, ctn__bytes(&v->d), 0));
    }
    return CTN_OK;
}
