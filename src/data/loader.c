/* SPDX-License-Identifier: Apache-2.0
 *
 * Loader: a ring of batch buffers that threads fill ahead of the caller, in order. Batch t of the
 * run lives in slot t % slots; a thread claims t, fills the slot without the lock and marks it
 * ready; the caller takes t when it is ready and gives it back on its next call. What is in batch t
 * follows from the start state alone, so threads and depth change nothing but time; what was left
 * out is counted and reported by the caller, in order. Nothing is allocated after ctn_loader_new.
 * With threads = 0 there is one slot, filled by the caller.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_setaffinity_np */
#endif
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "data/loader.h"
#include "data/mix.h"

/* Is there a batch at a state, of this rank or of another? drop_last leaves out what is no full
 * batch on some rank, so that all ranks have as many. */
static bool any_left(const ctn_loader *l, const ctn_sampler_state *s)
{
    const int64_t left = l->sampler.total - (int64_t)s->position;
    return l->drop_last ? left / l->sampler.size >= l->batch : left > 0;
}

/* Samples of this rank in the batch at a state; 0 where other ranks may still have some. */
static int64_t batch_size(const ctn_loader *l, const ctn_sampler_state *s)
{
    if (!any_left(l, s)) return 0;
    const int64_t left = ctn__sampler_left(&l->sampler, s->position);
    return left < l->batch ? left : l->batch;
}

/* Behind the batch at a state, which is a batch of each rank: positions are the same on all. */
static void advance(const ctn_loader *l, ctn_sampler_state *s)
{
    const uint64_t left = (uint64_t)l->sampler.total - s->position;
    const uint64_t step = ctn__mul((size_t)l->batch, (size_t)l->sampler.size);
    s->position += step < left ? step : left;
}

static void next_epoch(ctn_sampler_state *s)
{
    s->epoch++;
    s->position = 0;
}

/* Slot gets the batch at s; s moves behind it. */
static void assign(const ctn_loader *l, struct ctn__slot *slot, ctn_sampler_state *s)
{
    slot->epoch = s->epoch;
    slot->position = s->position;
    slot->claimed = batch_size(l, s);
    atomic_store_explicit(&slot->at, -1, memory_order_relaxed);
    slot->ready = false;
    advance(l, s);
}

static void *thread_main(void *arg)
{
    ctn_loader *l = arg;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->stop && (l->pause || l->claimed - (l->taken - l->held) >= l->slots))
            pthread_cond_wait(&l->work, &l->lock);
        if (l->stop) break;
        struct ctn__slot *slot = &l->slot[l->claimed++ % l->slots];
        if (batch_size(l, &l->ahead) == 0) next_epoch(&l->ahead);
        assign(l, slot, &l->ahead);
        l->busy++;
        pthread_mutex_unlock(&l->lock);
        ctn__fill(l, slot);
        pthread_mutex_lock(&l->lock);
        l->busy--;
        slot->ready = true;
        pthread_cond_signal(&l->done); /* only the caller waits on it */
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Let the threads run on these CPUs only. The caller's own affinity stays (rule 16). */
static ctn_status bind_threads(const ctn_loader *l, const int *cores, int ncores)
{
    int last = 0, err = 0;
    for (int i = 0; i < ncores; i++) last = cores[i] > last ? cores[i] : last;
    const size_t bytes = CPU_ALLOC_SIZE((size_t)last + 1);
    cpu_set_t *set = ctn__calloc(1, bytes);
    if (!set) return CTN_ENOMEM;
    for (int i = 0; i < ncores; i++) CPU_SET_S((size_t)cores[i], bytes, set);
    for (int i = 0; i < l->threads && !err; i++)
        err = pthread_setaffinity_np(l->thread[i], bytes, set);
    ctn__free(set);
    if (err)
        return ctn_fail(CTN_EUNSUPPORTED,
                        "loader: threads cannot run on the %d CPUs of .cores (%d, ...): %s", ncores,
                        cores[0], strerror(err));
    return CTN_OK;
}

static void let_run(ctn_loader *l)
{
    pthread_mutex_lock(&l->lock);
    l->pause = false;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
}

/* The threads are created with every signal blocked, so that handlers of the host program never
 * run on them; the caller's own mask is put back. */
static ctn_status start_threads(ctn_loader *l, int threads)
{
    sigset_t all, old;
    sigfillset(&all);
    l->thread = ctn__calloc((size_t)threads, sizeof *l->thread);
    if (!l->thread) return CTN_ENOMEM;
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int err = 0;
    while (l->threads < threads &&
           (err = pthread_create(&l->thread[l->threads], NULL, thread_main, l)) == 0)
        l->threads++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (err)
        return ctn_fail(CTN_EUNSUPPORTED, "loader: thread %d of %d cannot be started: %s",
                        l->threads + 1, threads, strerror(err));
    return CTN_OK;
}

/* Offset of one more part of a batch, of `bytes` per sample; *total grows. SIZE_MAX: too large. */
static size_t add_part(const ctn_loader *l, size_t *total, size_t bytes)
{
    bytes = ctn__mul(bytes, (size_t)l->batch);
    if (bytes > SIZE_MAX / 8) return SIZE_MAX;
    size_t offset = *total;
    *total += (bytes + CTN__ALIGN - 1) / CTN__ALIGN * CTN__ALIGN;
    return offset;
}

static ctn_status make_slots(ctn_loader *l)
{
    size_t total = 0;
    bool fits = true;
    for (int f = 0; f < l->fields; f++) {
        l->offset[f] = add_part(l, &total, l->bytes[f]);
        fits = fits && l->offset[f] != SIZE_MAX;
    }
    if (l->mix.classes) l->labels = add_part(l, &total, sizeof(int64_t));
    if (!fits || l->labels == SIZE_MAX)
        return ctn_fail(CTN_EARG, "loader: a batch of %lld samples does not fit into memory",
                        (long long)l->batch);
    l->slot = ctn__calloc((size_t)l->slots, sizeof *l->slot);
    if (!l->slot) return CTN_ENOMEM;
    for (uint64_t i = 0; i < l->slots; i++) {
        l->slot[i].memory = ctn__aligned(total);
        if (!l->slot[i].memory) return CTN_ENOMEM;
    }
    return CTN_OK;
}

static void set_fields(ctn_loader *l)
{
    l->fields = ctn_dataset_fields(l->ds);
    for (int f = 0; f < l->fields; f++) {
        ctn_field one = *ctn_dataset_field(l->ds, f);
        if (f == 1 && l->mix.classes) one = (ctn_field){CTN_F32, 1, {l->mix.classes}, 0};
        l->bytes[f] = ctn__field_bytes(&one);
        l->field[f] = one;
        l->field[f].ndim++;
        l->field[f].shape[0] = l->batch;
        memcpy(l->field[f].shape + 1, one.shape, (size_t)one.ndim * sizeof one.shape[0]);
    }
}

/* Samples that may be left out in an epoch: this share of them, and at least one. */
static int64_t allowed(double share, int64_t count)
{
    const double n = share * (double)count + 1e-6; /* 0.29 * 100 is a little less than 29 */
    if (share == 0) return 0;
    return n >= (double)count ? count : n < 1 ? 1 : (int64_t)n;
}

static ctn_status check_threads(const ctn_loader_opt *o)
{
    if (o->threads < 0 || o->depth < 0)
        return ctn_fail(CTN_EARG, "loader: threads is %d and depth %d, expected 0 or more",
                        o->threads, o->depth);
    if (!(o->stall_s >= 0))
        return ctn_fail(CTN_EARG, "loader: stall_s is %g, expected 0 or more", o->stall_s);
    if (o->ncores < 0 || (o->ncores > 0) != (o->cores != NULL))
        return ctn_fail(CTN_EARG, "loader: ncores is %d, cores is %s", o->ncores,
                        o->cores ? "set" : "NULL");
    for (int i = 0; i < o->ncores; i++)
        if (o->cores[i] < 0 || o->cores[i] > 0xffff)
            return ctn_fail(CTN_EARG, "loader: cores has CPU %d, expected 0 to 65535", o->cores[i]);
    return CTN_OK;
}

static ctn_status check(const ctn_dataset *ds, const ctn_sampler *s, const ctn_loader_opt *o)
{
    const long long count = (long long)ctn_dataset_count(ds);
    if (s->total != ctn_dataset_count(ds))
        return ctn_fail(CTN_EARG, "loader: the dataset has %lld samples, the sampler is for %lld",
                        count, (long long)s->total);
    if (o->batch < 1)
        return ctn_fail(CTN_EARG, "loader: batch is %lld, expected at least 1 (set .batch)",
                        (long long)o->batch);
    if (o->drop_last && count > 0 && o->batch > count / s->size)
        return ctn_fail(
            CTN_EARG,
            "loader: batch is %lld, the dataset has %lld samples for %d ranks and drop_last is "
            "set: no batch would ever come",
            (long long)o->batch, count, s->size);
    if (!(o->skip >= 0 && o->skip <= 1))
        return ctn_fail(CTN_EARG, "loader: skip is %g, expected a share, 0 to 1", o->skip);
    return check_threads(o);
}

/* Time-outs of waiting must not follow when somebody sets the clock. */
static void init_done(ctn_loader *l)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&l->done, &attr);
    pthread_condattr_destroy(&attr);
}

ctn_status ctn_loader_new(ctn_loader **out, ctn_dataset *ds, const ctn_sampler *s,
                          const ctn_loader_opt *opt)
{
    if (!out || !ds || !s) return ctn_fail(CTN_EARG, "loader: NULL argument");
    *out = NULL;
    ctn_loader_opt o;
    CTN_TRY(ctn__opt("loader", &o, sizeof o, opt));
    CTN_TRY(check(ds, s, &o));
    ctn_mix_opt mix = {0};
    if (o.mix) CTN_TRY(ctn__mix_opt(&mix, o.mix, ctn_dataset_fields(ds), ctn_dataset_field(ds, 0)));
    ctn_loader *l = ctn__malloc(sizeof *l);
    if (!l) return CTN_ENOMEM;
    /* An empty dataset gives threads nothing to claim. */
    const int threads = ctn_sampler_count(s) ? o.threads : 0;
    const int depth = o.depth ? o.depth : threads < 2 ? 2 : threads;
    *l = (ctn_loader){
        .ds = ds,
        .sampler = *s,
        .batch = o.batch,
        .drop_last = o.drop_last != 0,
        .allowed = allowed(o.skip, ctn_sampler_count(s)),
        .stall_ns = (uint64_t)(1e9 * fmin(o.stall_s > 0 ? o.stall_s : 30, 1e6)),
        .mix = mix,
        .slots = threads ? (uint64_t)depth + 1 : 1, /* one more: the one the caller holds */
        .next = s->state,
        .ahead = s->state,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .work = PTHREAD_COND_INITIALIZER,
        .pause = true, /* until all threads are where they belong */
    };
    init_done(l);
    ctn__alias_retain(l->sampler.alias);
    ctn_status st = CTN_OK;
    set_fields(l);
    CTN_TRY_GOTO(st, done, make_slots(l));
    if (threads) CTN_TRY_GOTO(st, done, start_threads(l, threads));
    if (threads && o.ncores) CTN_TRY_GOTO(st, done, bind_threads(l, o.cores, o.ncores));
    let_run(l);
    *out = l;
    l = NULL;
done:
    ctn_loader_free(l);
    return st;
}

void ctn_loader_free(ctn_loader *l)
{
    if (!l) return;
    atomic_store(&l->drop, true);
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->threads; i++) pthread_join(l->thread[i], NULL);
    pthread_cond_destroy(&l->work);
    pthread_cond_destroy(&l->done);
    pthread_mutex_destroy(&l->lock);
    for (uint64_t i = 0; l->slot && i < l->slots; i++) ctn__free(l->slot[i].memory);
    ctn__free(l->slot);
    ctn__free(l->thread);
    ctn__alias_release(l->sampler.alias);
    ctn__free(l);
}

/* Samples that threads are at, that of the batch waited for first. */
static int being_read(const ctn_loader *l, int64_t *at, int most)
{
    int n = 0;
    for (uint64_t t = l->taken; t < l->claimed && n < most; t++) {
        const struct ctn__slot *slot = &l->slot[t % l->slots];
        at[n] = atomic_load_explicit(&slot->at, memory_order_relaxed);
        n += !slot->ready && at[n] >= 0;
    }
    return n;
}

/* Wait until the slot is ready. A long wait gives a warning, without the lock, then again after
 * twice the time. */
static void wait_ready(ctn_loader *l, const struct ctn__slot *slot)
{
    const uint64_t start = ctn__now_ns();
    for (uint64_t limit = l->stall_ns; !slot->ready;) {
        const uint64_t until = start + limit;
        const struct timespec t = {(time_t)(until / 1000000000), (long)(until % 1000000000)};
        pthread_cond_timedwait(&l->done, &l->lock, &t);
        const uint64_t waited = ctn__now_ns() - start;
        if (slot->ready || waited < limit) continue;
        int64_t at[8];
        const int n = being_read(l, at, 8);
        pthread_mutex_unlock(&l->lock);
        ctn__fill_stalled(l, waited, at, n);
        pthread_mutex_lock(&l->lock);
        limit += limit + l->stall_ns; /* so the pauses are 1, 2, 4, ... times the first */
    }
}

/* The slot of the batch at l->next, filled; l->next moves behind it. The caller's last batch goes
 * back. NULL when this rank has no more samples of the epoch. */
static struct ctn__slot *take(ctn_loader *l)
{
    const uint64_t start = ctn__now_ns();
    pthread_mutex_lock(&l->lock);
    if (l->held) pthread_cond_signal(&l->work);
    l->held = false;
    struct ctn__slot *slot = batch_size(l, &l->next) ? &l->slot[l->taken % l->slots] : NULL;
    if (slot && l->threads) {
        wait_ready(l, slot);
        slot->ready = false; /* until it is filled again, one round later */
        advance(l, &l->next);
    } else if (slot) {
        assign(l, slot, &l->next);
        ctn__fill(l, slot);
    }
    l->taken += slot != NULL;
    l->held = slot != NULL;
    pthread_mutex_unlock(&l->lock);
    l->stats.wait_ns += ctn__now_ns() - start;
    return slot;
}

static ctn_status end_epoch(ctn_loader *l)
{
    ctn__fill_epoch_end(l);
    next_epoch(&l->next);
    return CTN_END;
}

static void give(ctn_loader *l, const struct ctn__slot *slot, ctn_batch *b)
{
    l->stats.batches++;
    l->stats.samples += (uint64_t)slot->n;
    b->n = slot->n;
    b->fields = l->fields;
    for (int f = 0; f < l->fields; f++) {
        b->data[f] = slot->memory + l->offset[f];
        b->field[f] = l->field[f];
        b->field[f].shape[0] = slot->n;
    }
}

ctn_status ctn_loader_next(ctn_loader *l, ctn_batch *b)
{
    if (!l || !b) return ctn_fail(CTN_EARG, "loader: NULL argument");
    *b = (ctn_batch){0};
    struct ctn__slot *slot;
    do { /* a batch from which all is left out is passed over */
        slot = take(l);
        if (!slot) return end_epoch(l);
        ctn_status st = ctn__fill_result(l, slot);
        if (st < 0) return st;
    } while (slot->n == 0);
    give(l, slot, b);
    return CTN_OK;
}

ctn_status ctn__loader_next_of_all(ctn_loader *l, ctn_batch *b)
{
    *b = (ctn_batch){0};
    if (!any_left(l, &l->next)) return end_epoch(l);
    struct ctn__slot *slot = take(l);
    if (!slot) {
        advance(l, &l->next);
        return CTN_OK;
    }
    ctn_status st = ctn__fill_result(l, slot);
    if (st == CTN_OK && slot->n > 0) give(l, slot, b);
    return st;
}

void ctn_loader_stats_get(const ctn_loader *l, ctn_loader_stats *out)
{
    if (!out) return;
    *out = l ? l->stats : (ctn_loader_stats){0};
    if (l) out->fill_ns = atomic_load(&l->fill_ns);
}

ctn_sampler_state ctn_loader_state_get(const ctn_loader *l)
{
    return l ? l->next : (ctn_sampler_state){0};
}

ctn_status ctn_loader_state_set(ctn_loader *l, const ctn_sampler_state *state)
{
    if (!l || !state) return ctn_fail(CTN_EARG, "loader: NULL argument");
    ctn_sampler moved = l->sampler; /* threads read the loader's own until they are idle */
    CTN_TRY(ctn_sampler_state_set(&moved, state));
    atomic_store(&l->drop, true);
    pthread_mutex_lock(&l->lock);
    l->pause = true;
    while (l->busy) pthread_cond_wait(&l->done, &l->lock);
    l->sampler = moved;
    l->next = l->ahead = *state;
    l->claimed = l->taken = 0;
    l->held = false;
    l->skipped = 0;
    l->unnamed = false;
    for (uint64_t i = 0; i < l->slots; i++) l->slot[i].ready = false;
    atomic_store(&l->drop, false);
    pthread_mutex_unlock(&l->lock);
    let_run(l);
    return CTN_OK;
}
