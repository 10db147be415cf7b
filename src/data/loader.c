/* SPDX-License-Identifier: Apache-2.0
 *
 * Loader: a ring of batch buffers that threads fill in order, ahead of the caller. Batch t of the
 * run lives in slot t % slots. A thread claims t, fills the slot without holding the lock and
 * marks it ready; the caller takes t when it is ready and returns it on its next call. The
 * contents of batch t follow from the start state alone, so the number of threads and the depth
 * affect only the speed. Samples left out are counted and reported by the caller, in order.
 * Nothing is allocated after ctn_loader_new. With threads = 0 there is one slot, which the caller
 * fills.
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

/* Does any rank have a batch at this state? With drop_last there is none unless all ranks have a
 * full one, so that all ranks have the same number of batches. */
static bool any_left(const ctn_loader *l, const ctn_sampler_state *s)
{
    const int64_t at = (int64_t)s->position, left = l->sampler.total - at;
    const int64_t into = l->block > 0 ? at % l->step : 0; /* the step that a block belongs to */
    return l->drop_last ? left + into >= l->step : left > 0;
}

/* The end of the batches of all ranks at this state, which with blocks are one for each rank. */
static uint64_t round_end(const ctn_loader *l, const ctn_sampler_state *s)
{
    const uint64_t at = s->position, step = (uint64_t)l->step, total = (uint64_t)l->sampler.total;
    uint64_t end = at + step;
    if (l->block > 0) {
        end = at + (uint64_t)l->block * (uint64_t)l->sampler.size;
        if (end > at - at % step + step) end = at - at % step + step;
    }
    return end < total ? end : total;
}

/* Number of this rank's samples in the batch at a state. It may be 0 while other ranks have
 * some. */
static int64_t batch_size(const ctn_loader *l, const ctn_sampler_state *s)
{
    if (!any_left(l, s)) return 0;
    if (l->block > 0) {
        const uint64_t begin = s->position + (uint64_t)l->block * (uint64_t)l->sampler.rank;
        const int64_t n = (int64_t)(round_end(l, s) - begin);
        return n < 0 ? 0 : n < l->block ? n : l->block;
    }
    const int64_t left = ctn__sampler_left(&l->sampler, s->position);
    const int64_t share = (l->step - l->sampler.rank - 1) / l->sampler.size + 1;
    return left < share ? left : share;
}

/* Moves past the batches of all ranks at this state: the position is the same on every rank. */
static void advance(const ctn_loader *l, ctn_sampler_state *s)
{
    s->position = round_end(l, s);
}

static void next_epoch(ctn_sampler_state *s)
{
    s->epoch++;
    s->position = 0;
}

/* Assigns the batch at s to the slot and moves s past it. */
static void assign(const ctn_loader *l, struct ctn__slot *slot, ctn_sampler_state *s)
{
    slot->epoch = s->epoch;
    slot->position = s->position;
    slot->claimed = batch_size(l, s);
    slot->size = ctn__sizes_draw(l, s->epoch, s->position);
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
        while (batch_size(l, &l->ahead) == 0) {
            if (any_left(l, &l->ahead)) advance(l, &l->ahead);
            else next_epoch(&l->ahead);
        }
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

/* Binds the threads to these CPUs. The caller's own affinity does not change (rule 16). */
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
                        "loader: cannot bind threads to the %d CPUs of .cores (%d, ...): %s",
                        ncores, cores[0], strerror(err));
    return CTN_OK;
}

static void let_run(ctn_loader *l)
{
    pthread_mutex_lock(&l->lock);
    l->pause = false;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
}

/* The threads are created with every signal blocked, so that signal handlers of the host program
 * never run on them. The caller's own mask is restored. */
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
        return ctn_fail(CTN_EUNSUPPORTED, "loader: cannot start thread %d of %d: %s",
                        l->threads + 1, threads, strerror(err));
    return CTN_OK;
}

/* Offset of another part of a batch, with `bytes` per sample; adds to *total. SIZE_MAX: too
 * large. */
static size_t add_part(const ctn_loader *l, size_t *total, size_t bytes)
{
    bytes = ctn__mul(bytes, (size_t)l->batch);
    if (bytes > SIZE_MAX / 8 || *total > SIZE_MAX / 8) return SIZE_MAX;
    size_t offset = *total;
    *total += (bytes + CTN__ALIGN - 1) / CTN__ALIGN * CTN__ALIGN;
    return offset;
}

static ctn_status make_slots(ctn_loader *l)
{
    size_t total = 0;
    bool fits = true;
    for (int f = 0; f < l->fields; f++) {
        size_t rows = l->lengths[f] ? (size_t)ctn__padded(l, l->longest[f]) : 1;
        if (l->join && l->longest[f] >= 0) rows = (size_t)ctn__join_room(l, l->longest[f]);
        l->offset[f] = add_part(l, &total, ctn__mul(l->bytes[f], rows));
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

/* Makes field f of a batch from that of a sample. */
static void set_field(ctn_loader *l, int f, const ctn_field *one)
{
    l->bytes[f] = ctn__field_bytes(one);
    l->field[f] = *one;
    l->field[f].ndim++;
    l->field[f].shape[0] = l->batch;
    memcpy(l->field[f].shape + 1, one->shape, (size_t)one->ndim * sizeof one->shape[0]);
    l->longest[f] = -1;
}

static ctn_status set_fields(ctn_loader *l, const double *pad_value)
{
    const int own = l->fields = ctn_dataset_fields(l->ds);
    for (int f = 0; f < own; f++) {
        ctn_field one = *ctn_dataset_field(l->ds, f);
        if (f == 1 && l->mix.classes) one = (ctn_field){CTN_F32, 1, {l->mix.classes}, 0};
        if (ctn__sized(l, f)) ctn__sizes_apply(&one, l->largest);
        set_field(l, f, &one);
        if (!ctn__ragged(&one)) continue;
        if (l->fields == CTN_DATA_FIELDS)
            return ctn_fail(CTN_EARG,
                            "loader: the dataset has %d fields, too many: a batch has at most %d "
                            "with those of the lengths",
                            own, CTN_DATA_FIELDS);
        CTN_TRY(ctn__pad_element("loader", f, one.dtype, pad_value[f], &l->pad[f]));
        l->longest[f] = ctn__longest(l->ds, f);
        l->lengths[f] = l->fields;
        set_field(l, l->fields++, &(ctn_field){.dtype = CTN_I64});
        if (!l->join) continue;
        l->field[f] = one;
        l->longest[l->lengths[f]] = l->longest[f];
    }
    return l->join ? ctn__join_check(l) : CTN_OK;
}

/* How many samples may be left out per epoch: this share of them, but at least one. */
static int64_t allowed(double share, int64_t count)
{
    const double n = share * (double)count + 1e-6; /* 0.29 * 100 is a little less than 29 */
    if (share == 0) return 0;
    return n >= (double)count ? count : n < 1 ? 1 : (int64_t)n;
}

static ctn_status check_threads(const ctn_loader_opt *o)
{
    if (o->threads < 0 || o->depth < 0)
        return ctn_fail(CTN_EARG, "loader: threads is %d and depth is %d, expected 0 or more",
                        o->threads, o->depth);
    if (!(o->stall_s >= 0))
        return ctn_fail(CTN_EARG, "loader: stall_s is %g, expected 0 or more", o->stall_s);
    if (o->ncores < 0 || (o->ncores > 0) != (o->cores != NULL))
        return ctn_fail(CTN_EARG, "loader: ncores is %d but cores is %s", o->ncores,
                        o->cores ? "set" : "NULL");
    for (int i = 0; i < o->ncores; i++)
        if (o->cores[i] < 0 || o->cores[i] > 0xffff)
            return ctn_fail(CTN_EARG, "loader: cores has CPU %d, expected 0 to 65535", o->cores[i]);
    return CTN_OK;
}

/* Samples of all ranks in a batch. */
static int64_t step_of(const ctn_sampler *s, const ctn_loader_opt *o)
{
    return o->total > 0 ? o->total : o->batch * s->size;
}

static ctn_status check(const ctn_dataset *ds, const ctn_sampler *s, const ctn_loader_opt *o)
{
    const long long count = (long long)ctn_dataset_count(ds);
    if (s->total != ctn_dataset_count(ds) && !s->fn)
        return ctn_fail(CTN_EARG, "loader: the dataset has %lld samples, the sampler is for %lld",
                        count, (long long)s->total);
    if (o->total < 0 || (o->total > 0 && o->total < s->size))
        return ctn_fail(CTN_EARG,
                        "loader: total is %lld, expected at least one for each of %d ranks",
                        (long long)o->total, s->size);
    if (o->total == 0 && o->batch > INT64_MAX / s->size)
        return ctn_fail(CTN_EARG,
                        "loader: a batch of %lld samples on each of %d ranks is too large",
                        (long long)o->batch, s->size);
    if (o->total == 0 && o->batch < 1)
        return ctn_fail(CTN_EARG, "loader: batch is %lld, expected at least 1 (set .batch)",
                        (long long)o->batch);
    if (o->drop_last && s->total > 0 && step_of(s, o) > s->total)
        return ctn_fail(
            CTN_EARG,
            "loader: batch is %lld, but an epoch has %lld samples for %d ranks and drop_last is "
            "set: no batch would ever come",
            (long long)((step_of(s, o) - 1) / s->size + 1), (long long)s->total, s->size);
    if (o->block < 0 ||
        (o->block > 0 && (o->total == 0 || (o->total - 1) / o->block + 1 < s->size)))
        return ctn_fail(CTN_EARG,
                        "loader: blocks of %lld samples need a total of at least one block for "
                        "each of %d ranks; it is %lld",
                        (long long)o->block, s->size, (long long)o->total);
    if (o->join_index != 0 && !o->join)
        return ctn_fail(CTN_EARG, "loader: join_index is %d, but join is 0", o->join_index);
    if (o->pad_multiple < 0 || o->pad_multiple > 1 << 30)
        return ctn_fail(CTN_EARG, "loader: pad_multiple is %lld, expected 0 to 2^30",
                        (long long)o->pad_multiple);
    if (!(o->skip >= 0 && o->skip <= 1))
        return ctn_fail(CTN_EARG, "loader: skip is %g, expected a share from 0 to 1", o->skip);
    return check_threads(o);
}

/* Timeouts must not change when somebody sets the system clock. */
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
    /* With an empty dataset there is nothing for threads to claim. */
    const bool some = ctn_sampler_count(s) > 0 && s->total >= o.block * s->size;
    const int threads = some ? o.threads : 0;
    const int depth = o.depth ? o.depth : threads < 2 ? 2 : threads;
    *l = (ctn_loader){
        .ds = ds,
        .sampler = *s,
        .batch = o.block > 0 ? o.block : (step_of(s, &o) - 1) / s->size + 1,
        .step = step_of(s, &o),
        .block = o.block,
        .drop_last = o.drop_last != 0,
        .allowed = allowed(o.skip, ctn_sampler_count(s)),
        .stall_ns = (uint64_t)(1e9 * fmin(o.stall_s > 0 ? o.stall_s : 30, 1e6)),
        .mix = mix,
        .pad_multiple = o.pad_multiple ? o.pad_multiple : 1,
        .join = o.join != 0,
        .join_index = o.join_index,
        .slots = threads ? (uint64_t)depth + 1 : 1, /* one more for the batch the caller holds */
        .next = s->state,
        .ahead = s->state,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .work = PTHREAD_COND_INITIALIZER,
        .pause = true, /* until all threads are bound to their CPUs */
    };
    init_done(l);
    ctn__sampler_retain(&l->sampler);
    ctn_status st = CTN_OK;
    CTN_TRY_GOTO(st, done, ctn__sizes_set(l, &o));
    CTN_TRY_GOTO(st, done, set_fields(l, o.pad_value));
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
    ctn__free(l->sizes);
    ctn__sampler_release(&l->sampler);
    ctn__free(l);
}

/* The samples that threads are reading; that of the batch the caller waits for comes first. */
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

/* Waits until the slot is ready. Warns, without holding the lock, if the wait is long, and again
 * after ever longer pauses. */
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
        limit += limit + l->stall_ns; /* makes the pauses 1, 2, 4, ... times the first */
    }
}

/* Returns the filled slot of the batch at l->next, moves l->next past it, and frees the slot of the
 * caller's last batch. NULL: this rank has no more samples in the epoch. */
static struct ctn__slot *take(ctn_loader *l)
{
    const uint64_t start = ctn__now_ns();
    pthread_mutex_lock(&l->lock);
    if (l->held) pthread_cond_signal(&l->work);
    l->held = false;
    struct ctn__slot *slot = batch_size(l, &l->next) ? &l->slot[l->taken % l->slots] : NULL;
    if (slot && l->threads) {
        wait_ready(l, slot);
        slot->ready = false; /* until it is filled again in the next round */
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
        if (ctn__sized(l, f)) ctn__sizes_apply(&b->field[f], slot->size);
        const bool joined = l->join && l->longest[f] >= 0;
        b->field[f].shape[0] = joined ? slot->padded[f] : slot->n;
        if (l->lengths[f] && !joined) b->field[f].shape[1] = slot->padded[f];
    }
}

ctn_status ctn_loader_next(ctn_loader *l, ctn_batch *b)
{
    if (!l || !b) return ctn_fail(CTN_EARG, "loader: NULL argument");
    *b = (ctn_batch){0};
    struct ctn__slot *slot;
    do { /* skip batches whose samples were all left out */
        slot = take(l);
        if (!slot && l->block > 0 && any_left(l, &l->next)) { /* other ranks have blocks */
            advance(l, &l->next);
            continue;
        }
        if (!slot) return end_epoch(l);
        ctn_status st = ctn__fill_result(l, slot);
        if (st < 0) return st;
    } while (!slot || slot->n == 0);
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

void ctn__loader_place(const ctn_loader *l, int64_t *first, int64_t *every)
{
    *first = (int64_t)ctn__fill_first(l, &l->slot[(l->taken - 1) % l->slots]);
    *every = l->block > 0 ? 1 : l->sampler.size;
}

void ctn__loader_no_rows(const ctn_loader *l, ctn_batch *b)
{
    static const double nothing = 0; /* an address to read nothing from */
    const uint64_t at = l->next.position, step = (uint64_t)l->step;
    *b = (ctn_batch){.fields = l->fields};
    for (int f = 0; f < l->fields; f++) {
        b->data[f] = (void *)(uintptr_t)&nothing;
        b->field[f] = l->field[f];
        if (ctn__sized(l, f))
            ctn__sizes_apply(&b->field[f],
                             ctn__sizes_draw(l, l->next.epoch, at > step ? at - step : 0));
        b->field[f].shape[0] = 0;
        if (l->lengths[f] && !(l->join && l->longest[f] >= 0))
            b->field[f].shape[1] = ctn__padded(l, 1);
    }
}

void ctn_loader_get_stats(const ctn_loader *l, ctn_loader_stats *out)
{
    if (!out) return;
    *out = l ? l->stats : (ctn_loader_stats){0};
    if (l) out->fill_ns = atomic_load(&l->fill_ns);
}

ctn_sampler_state ctn_loader_get_state(const ctn_loader *l)
{
    return l ? l->next : (ctn_sampler_state){0};
}

ctn_status ctn_loader_set_state(ctn_loader *l, const ctn_sampler_state *state)
{
    if (!l || !state) return ctn_fail(CTN_EARG, "loader: NULL argument");
    ctn_sampler moved = l->sampler; /* a copy: threads read the loader's until they are idle */
    CTN_TRY(ctn_sampler_set_state(&moved, state));
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
