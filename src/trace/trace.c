/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters and the ring of spans. A context owns one trace, and its executor and the threads that
 * work for it record into it.
 *
 * Invariant: spans are numbered from 0 in the order of recording, span k is in slot k % cap, and
 * the last min(next, cap) are kept. The lock guards `next` and the slots; counters are atomic.
 */
#include "trace/trace.h"

#include <pthread.h>
#include <stdatomic.h>

struct ctn__trace {
    _Atomic uint64_t count[CTN__COUNT_N];
    pthread_mutex_t lock;
    int64_t next, cap;
    ctn__span slot[]; /* (cap) */
};

static const char *const names[CTN__COUNT_N] = {
#define CTN__COUNTER(id, name) name,
#include "trace/counters.def"
#undef CTN__COUNTER
};

ctn__trace *ctn__trace_new(int64_t spans)
{
    if (spans < 0 || spans > INT32_MAX) {
        ctn_fail(CTN_EARG, "trace: got %lld spans, expected 0 to %d", (long long)spans, INT32_MAX);
        return NULL;
    }
    ctn__trace *t = ctn__calloc(1, sizeof *t + (size_t)spans * sizeof(ctn__span));
    if (t == NULL) return NULL;
    if (pthread_mutex_init(&t->lock, NULL) != 0) {
        ctn_fail(CTN_ENOMEM, "trace: cannot create a mutex");
        ctn__free(t);
        return NULL;
    }
    t->cap = spans;
    return t;
}

void ctn__trace_free(ctn__trace *t)
{
    if (t == NULL) return;
    pthread_mutex_destroy(&t->lock);
    ctn__free(t);
}

void ctn__trace_add(ctn__trace *t, ctn__counter id, uint64_t n)
{
    atomic_fetch_add_explicit(&t->count[id], n, memory_order_relaxed);
}

void ctn__trace_set(ctn__trace *t, ctn__counter id, uint64_t value)
{
    atomic_store_explicit(&t->count[id], value, memory_order_relaxed);
}

uint64_t ctn__trace_count(const ctn__trace *t, ctn__counter id)
{
    return atomic_load_explicit(&t->count[id], memory_order_relaxed);
}

const char *ctn__counter_name(ctn__counter id)
{
    return names[id];
}

bool ctn__trace_spans_on(const ctn__trace *t)
{
    return t->cap > 0;
}

void ctn__trace_message(ctn__trace *t, const char *name, uint64_t t0, uint64_t t1, int lane,
                        int64_t bytes)
{
    if (t->cap == 0) return;
    pthread_mutex_lock(&t->lock);
    t->slot[t->next++ % t->cap] = (ctn__span){name, t0, t1, lane, bytes};
    pthread_mutex_unlock(&t->lock);
}

void ctn__trace_span(ctn__trace *t, const char *name, uint64_t t0, uint64_t t1, int lane)
{
    ctn__trace_message(t, name, t0, t1, lane, 0);
}

static int64_t kept(const ctn__trace *t)
{
    return t->next < t->cap ? t->next : t->cap;
}

int64_t ctn__trace_spans(ctn__trace *t)
{
    pthread_mutex_lock(&t->lock);
    int64_t n = kept(t);
    pthread_mutex_unlock(&t->lock);
    return n;
}

int64_t ctn__trace_lost(ctn__trace *t)
{
    pthread_mutex_lock(&t->lock);
    int64_t n = t->next - kept(t);
    pthread_mutex_unlock(&t->lock);
    return n;
}

bool ctn__trace_get(ctn__trace *t, int64_t i, ctn__span *out)
{
    pthread_mutex_lock(&t->lock);
    int64_t n = kept(t);
    bool ok = i >= 0 && i < n;
    if (ok) *out = t->slot[(t->next - n + i) % t->cap];
    pthread_mutex_unlock(&t->lock);
    return ok;
}
