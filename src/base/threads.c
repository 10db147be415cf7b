/* SPDX-License-Identifier: Apache-2.0
 *
 * The floating-point mode of a run's threads (rule 16) and the cores it holds (rule 17).
 *
 * Invariant: after leave, every thread of the team has exactly the floating-point control and flags
 * that it had before enter. enter and leave cost one empty parallel region each and allocate
 * nothing.
 */
#include "base/base.h"

#include <omp.h>
#include <pthread.h>
#include <stdalign.h>

/* Three functions per architecture set the mode. During a run, rounding is to nearest, nothing
 * traps (kernels also compute on the padding of blocked layouts), the flags are clear, and
 * denormals are flushed on input and output. */
#if defined(__SSE2__)
#include <xmmintrin.h>

typedef unsigned fp_state; /* MXCSR */

static fp_state fp_get(void)
{
    return _mm_getcsr();
}

static void fp_flush(void)
{
    _mm_setcsr(0x1f80 | 0x8000 | 0x0040); /* all masked, FTZ, DAZ */
}

static bool fp_leave(fp_state saved)
{
    bool underflow = (_mm_getcsr() & 0x0010) != 0;
    _mm_setcsr(saved);
    return underflow;
}

#elif defined(__aarch64__)

typedef struct {
    uint64_t fpcr, fpsr;
} fp_state;

static fp_state fp_get(void)
{
    fp_state s;
    __asm__ volatile("mrs %0, fpcr" : "=r"(s.fpcr));
    __asm__ volatile("mrs %0, fpsr" : "=r"(s.fpsr));
    return s;
}

static void fp_set(fp_state s)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(s.fpcr));
    __asm__ volatile("msr fpsr, %0" : : "r"(s.fpsr));
}

static void fp_flush(void)
{
    /* FZ (bit 24) only. Not FZ16: f16 needs its denormals, which start at 6e-5. */
    fp_set((fp_state){.fpcr = (uint64_t)1 << 24, .fpsr = 0});
}

static bool fp_leave(fp_state saved)
{
    bool underflow = (fp_get().fpsr & 8) != 0; /* UFC */
    fp_set(saved);
    return underflow;
}

#else /* unknown how to flush denormals; underflow is still counted */
#include <fenv.h>

typedef fenv_t fp_state;

static fp_state fp_get(void)
{
    fp_state s;
    fegetenv(&s);
    return s;
}

static void fp_flush(void)
{
    fesetenv(FE_DFL_ENV);
    feclearexcept(FE_ALL_EXCEPT);
}

static bool fp_leave(fp_state saved)
{
    bool underflow = fetestexcept(FE_UNDERFLOW) != 0;
    fesetenv(&saved);
    return underflow;
}
#endif

/* One cache line per thread, because all threads write at the same time. */
typedef struct {
    alignas(64) fp_state saved;
    bool used;
} slot;

struct ctn__fpmode {
    int threads;
    int dynamic; /* the caller's omp_get_dynamic() */
    slot at[];
};

ctn__fpmode *ctn__fpmode_new(int threads)
{
    if (threads < 1) {
        ctn_fail(CTN_EARG, "fpmode: %d threads, expected at least 1", threads);
        return NULL;
    }
    size_t bytes = sizeof(ctn__fpmode) + (size_t)threads * sizeof(slot);
    ctn__fpmode *m = ctn__aligned(bytes);
    if (m == NULL) return NULL;
    memset(m, 0, bytes);
    m->threads = threads;
    return m;
}

void ctn__fpmode_free(ctn__fpmode *m)
{
    ctn__free(m);
}

void ctn__fpmode_enter(ctn__fpmode *m)
{
    /* With OMP_DYNAMIC a later team may be smaller. A thread missing from it would keep the run's
     * mode. */
    m->dynamic = omp_get_dynamic();
    if (m->dynamic != 0) omp_set_dynamic(0);
#pragma omp parallel num_threads(m->threads)
    {
        slot *s = &m->at[omp_get_thread_num()];
        s->saved = fp_get();
        s->used = true;
        fp_flush();
    }
}

bool ctn__fpmode_leave(ctn__fpmode *m)
{
    bool underflow = false;
#pragma omp parallel num_threads(m->threads) reduction(|| : underflow)
    {
        /* This team may differ in size from that of enter. A thread that is new was created during
         * the run and inherited the run's mode, so it gets the caller's. */
        slot *s = &m->at[omp_get_thread_num()];
        underflow = fp_leave(s->used ? s->saved : m->at[0].saved);
    }
    for (int i = 0; i < m->threads; i++) m->at[i].used = false;
    if (m->dynamic != 0) omp_set_dynamic(m->dynamic);
    return underflow;
}

/* A thread that waits for cores. Lives on that thread's stack. */
typedef struct waiter {
    const ctn__coreset *set;
    struct waiter *next;
} waiter;

/* core_lock guards busy and queue, and nothing else is called while it is held. Running claims are
 * disjoint, so it is enough to remember their union. The queue is first come first served among
 * sets that intersect, so small claims cannot starve a claim of all cores. */
static pthread_mutex_t core_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t core_freed = PTHREAD_COND_INITIALIZER;
static ctn__coreset busy;
static waiter *queue;
static _Thread_local const ctn__coreset *held; /* by this thread */

static bool intersects(const ctn__coreset *a, const ctn__coreset *b)
{
    for (int i = 0; i < 16; i++)
        if ((a->word[i] & b->word[i]) != 0) return true;
    return false;
}

static bool must_wait(const waiter *w)
{
    if (intersects(w->set, &busy)) return true;
    for (const waiter *q = queue; q != w; q = q->next)
        if (intersects(w->set, q->set)) return true;
    return false;
}

void ctn__cores_claim(const ctn__coreset *c)
{
    waiter w = {c, NULL};
    waiter **at = &queue;
    pthread_mutex_lock(&core_lock);
    while (*at != NULL) at = &(*at)->next;
    *at = &w;
    while (must_wait(&w)) pthread_cond_wait(&core_freed, &core_lock);
    for (at = &queue; *at != &w;) at = &(*at)->next;
    *at = w.next;
    for (int i = 0; i < 16; i++) busy.word[i] |= c->word[i];
    pthread_mutex_unlock(&core_lock);
    held = c;
}

void ctn__cores_release(const ctn__coreset *c)
{
    pthread_mutex_lock(&core_lock);
    for (int i = 0; i < 16; i++) busy.word[i] &= ~c->word[i];
    pthread_cond_broadcast(&core_freed);
    pthread_mutex_unlock(&core_lock);
    held = NULL;
}

int ctn__cores_waiting(void)
{
    int n = 0;
    pthread_mutex_lock(&core_lock);
    for (const waiter *w = queue; w; w = w->next) n++;
    pthread_mutex_unlock(&core_lock);
    return n;
}

const ctn__coreset *ctn__cores_pause(void)
{
    const ctn__coreset *c = held;
    if (c) ctn__cores_release(c);
    return c;
}

void ctn__cores_resume(const ctn__coreset *c)
{
    if (c) ctn__cores_claim(c);
}
