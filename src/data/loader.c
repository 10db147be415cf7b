/* SPDX-License-Identifier: Apache-2.0
 *
 * Loader: a ring of batch buffers that threads fill ahead of the caller, in order. Batch t of the
 * run lives in slot t % slots; a thread claims t, fills the slot without the lock and marks it
 * ready; the caller takes t when it is ready and gives it back on its next call. What is in batch t
 * follows from the start state alone, so threads and depth change nothing but time. Nothing is
 * allocated after ctn_loader_new. With threads = 0 there is one slot, filled by the caller.
 */
#include <pthread.h>
#include <signal.h>

#include "data/data.h"

struct slot {
    char *memory;             /* field f of the batch at offset[f] */
    uint64_t epoch, position; /* of the first sample */
    int64_t n;
    bool ready;
    ctn_status st;
    char error[512]; /* of the thread that filled it: error records are per thread */
};

struct ctn_loader {
    ctn_dataset *ds;
    ctn_sampler sampler; /* order and seed; changes only while no thread is filling */
    int64_t batch;
    bool drop_last;
    int fields;
    ctn_field field[CTN_DATA_FIELDS]; /* of a full batch */
    size_t bytes[CTN_DATA_FIELDS];    /* of one sample */
    size_t offset[CTN_DATA_FIELDS], memory;
    uint64_t slots;
    struct slot *slot;
    ctn_sampler_state next; /* next batch to deliver; the caller's thread only */
    int threads;            /* running */
    pthread_t *thread;

    pthread_mutex_t lock;    /* guards all below and slot[].ready; threads hold no other under it */
    pthread_cond_t work;     /* to the threads: a slot is free, or pause or stop changed */
    pthread_cond_t done;     /* to the caller: a slot became ready, or a thread idle */
    ctn_sampler_state ahead; /* next batch to claim */
    uint64_t claimed, taken; /* batches claimed by threads, and taken by the caller, so far */
    bool held;               /* the caller still has batch taken-1 */
    int busy;                /* threads filling */
    bool pause, stop;
};

/* Samples in the batch at a state, 0 at the end of the epoch. */
static int64_t batch_size(const ctn_loader *l, const ctn_sampler_state *s)
{
    int64_t rest = l->sampler.count - (int64_t)s->position;
    if (rest >= l->batch) return l->batch;
    return l->drop_last ? 0 : rest;
}

static void next_epoch(ctn_sampler_state *s)
{
    s->epoch++;
    s->position = 0;
}

/* Slot gets the batch at s, of n samples; s moves behind it. */
static void assign(struct slot *slot, ctn_sampler_state *s, int64_t n)
{
    slot->epoch = s->epoch;
    slot->position = s->position;
    slot->n = n;
    slot->ready = false;
    s->position += (uint64_t)n;
}

/* The dataset's error goes into the slot with the sample's number, and off this thread's record
 * unless an older error stands there. */
static void keep_error(struct slot *slot, ctn_status st, int64_t sample, bool had_error)
{
    const char *text = had_error ? "" : ctn_error_message();
    slot->st = st;
    snprintf(slot->error, sizeof slot->error, "loader: sample %lld (epoch %llu): %s",
             (long long)sample, (unsigned long long)slot->epoch,
             *text ? text : ctn_status_text(st));
    if (!had_error) ctn_error_clear();
}

static void fill(const ctn_loader *l, struct slot *slot)
{
    const bool had_error = ctn_error_status() != CTN_OK;
    slot->st = CTN_OK;
    for (int64_t i = 0; i < slot->n; i++) {
        int64_t sample = ctn_sampler_at(&l->sampler, slot->epoch, slot->position + (uint64_t)i);
        void *dst[CTN_DATA_FIELDS] = {0};
        for (int f = 0; f < l->fields; f++)
            dst[f] = slot->memory + l->offset[f] + (size_t)i * l->bytes[f];
        ctn_status st = ctn_dataset_get(l->ds, sample, dst);
        if (st < 0) {
            keep_error(slot, st, sample, had_error);
            return;
        }
    }
}

static void *thread_main(void *arg)
{
    ctn_loader *l = arg;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->stop && (l->pause || l->claimed - (l->taken - l->held) >= l->slots))
            pthread_cond_wait(&l->work, &l->lock);
        if (l->stop) break;
        struct slot *slot = &l->slot[l->claimed++ % l->slots];
        if (batch_size(l, &l->ahead) == 0) next_epoch(&l->ahead);
        assign(slot, &l->ahead, batch_size(l, &l->ahead));
        l->busy++;
        pthread_mutex_unlock(&l->lock);
        fill(l, slot);
        pthread_mutex_lock(&l->lock);
        l->busy--;
        slot->ready = true;
        pthread_cond_signal(&l->done); /* only the caller waits on it */
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
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

static ctn_status make_slots(ctn_loader *l)
{
    size_t total = 0;
    for (int f = 0; f < l->fields; f++) {
        size_t bytes = ctn__mul(l->bytes[f], (size_t)l->batch);
        if (bytes > SIZE_MAX / 8)
            return ctn_fail(CTN_EARG, "loader: a batch of %lld samples does not fit into memory",
                            (long long)l->batch);
        l->offset[f] = total;
        total += (bytes + CTN__ALIGN - 1) / CTN__ALIGN * CTN__ALIGN;
    }
    l->memory = total;
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
        const ctn_field *one = ctn_dataset_field(l->ds, f);
        l->bytes[f] = ctn__field_bytes(one);
        l->field[f] = (ctn_field){.dtype = one->dtype, .ndim = one->ndim + 1};
        l->field[f].shape[0] = l->batch;
        memcpy(l->field[f].shape + 1, one->shape, (size_t)one->ndim * sizeof one->shape[0]);
    }
}

static ctn_status check(const ctn_dataset *ds, const ctn_sampler *s, const ctn_loader_opt *o)
{
    const long long count = (long long)ctn_dataset_count(ds);
    if (s->count != ctn_dataset_count(ds))
        return ctn_fail(CTN_EARG, "loader: the dataset has %lld samples, the sampler is for %lld",
                        count, (long long)s->count);
    if (o->batch < 1)
        return ctn_fail(CTN_EARG, "loader: batch is %lld, expected at least 1 (set .batch)",
                        (long long)o->batch);
    if (o->threads < 0 || o->depth < 0)
        return ctn_fail(CTN_EARG, "loader: threads is %d and depth %d, expected 0 or more",
                        o->threads, o->depth);
    if (o->drop_last && count > 0 && o->batch > count)
        return ctn_fail(
            CTN_EARG,
            "loader: batch is %lld, the dataset has %lld samples and drop_last is set: no "
            "batch would ever come",
            (long long)o->batch, count);
    return CTN_OK;
}

ctn_status ctn_loader_new(ctn_loader **out, ctn_dataset *ds, const ctn_sampler *s,
                          const ctn_loader_opt *opt)
{
    if (!out || !ds || !s) return ctn_fail(CTN_EARG, "loader: NULL argument");
    *out = NULL;
    ctn_loader_opt o;
    CTN_TRY(ctn__opt("loader", &o, sizeof o, opt));
    CTN_TRY(check(ds, s, &o));
    ctn_loader *l = ctn__malloc(sizeof *l);
    if (!l) return CTN_ENOMEM;
    /* An empty dataset gives threads nothing to claim. */
    const int threads = s->count ? o.threads : 0;
    const int depth = o.depth ? o.depth : threads < 2 ? 2 : threads;
    *l = (ctn_loader){
        .ds = ds,
        .sampler = *s,
        .batch = o.batch,
        .drop_last = o.drop_last != 0,
        .slots = threads ? (uint64_t)depth + 1 : 1, /* one more: the one the caller holds */
        .next = s->state,
        .ahead = s->state,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .work = PTHREAD_COND_INITIALIZER,
        .done = PTHREAD_COND_INITIALIZER,
    };
    ctn_status st = CTN_OK;
    set_fields(l);
    CTN_TRY_GOTO(st, done, make_slots(l));
    if (threads) CTN_TRY_GOTO(st, done, start_threads(l, threads));
    *out = l;
    l = NULL;
done:
    ctn_loader_free(l);
    return st;
}

void ctn_loader_free(ctn_loader *l)
{
    if (!l) return;
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
    ctn__free(l);
}

/* The slot of the batch at l->next, filled; l->next moves behind it. */
static struct slot *take(ctn_loader *l, int64_t n)
{
    struct slot *slot = &l->slot[l->taken % l->slots];
    if (l->threads) {
        while (!slot->ready) pthread_cond_wait(&l->done, &l->lock);
        slot->ready = false; /* until it is filled again, one round later */
        l->next.position += (uint64_t)n;
    } else {
        assign(slot, &l->next, n);
        fill(l, slot);
    }
    l->taken++;
    l->held = true;
    return slot;
}

ctn_status ctn_loader_next(ctn_loader *l, ctn_batch *b)
{
    if (!l || !b) return ctn_fail(CTN_EARG, "loader: NULL argument");
    *b = (ctn_batch){0};
    int64_t n = batch_size(l, &l->next);
    pthread_mutex_lock(&l->lock);
    if (l->held) pthread_cond_signal(&l->work);
    l->held = false;
    struct slot *slot = n ? take(l, n) : NULL;
    pthread_mutex_unlock(&l->lock);
    if (!slot) {
        next_epoch(&l->next);
        return CTN_END;
    }
    if (slot->st < 0) return ctn_fail(slot->st, "%s", slot->error);
    b->n = n;
    b->fields = l->fields;
    for (int f = 0; f < l->fields; f++) {
        b->data[f] = slot->memory + l->offset[f];
        b->field[f] = l->field[f];
        b->field[f].shape[0] = n;
    }
    return CTN_OK;
}

ctn_sampler_state ctn_loader_state_get(const ctn_loader *l)
{
    return l ? l->next : (ctn_sampler_state){0};
}

ctn_status ctn_loader_state_set(ctn_loader *l, const ctn_sampler_state *state)
{
    if (!l || !state) return ctn_fail(CTN_EARG, "loader: NULL argument");
    pthread_mutex_lock(&l->lock);
    l->pause = true;
    while (l->busy) pthread_cond_wait(&l->done, &l->lock);
    ctn_status st = ctn_sampler_state_set(&l->sampler, state);
    if (st == CTN_OK) {
        l->next = l->ahead = *state;
        l->claimed = l->taken = 0;
        l->held = false;
        for (uint64_t i = 0; i < l->slots; i++) l->slot[i].ready = false;
    }
    l->pause = false;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    return st;
}
