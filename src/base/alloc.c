/* SPDX-License-Identifier: Apache-2.0
 *
 * All allocations of the library, through the host's memory functions if it has set any.
 *
 * Invariant: `live` counts the blocks that the current functions have allocated and not yet freed.
 * While it is not 0, the functions cannot be changed, because a block would be freed by the wrong
 * one. So nothing that lives until the end of the process may be allocated here.
 */
#include "base/base.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define CTN__HUGE_PAGE ((size_t)2 << 20)

/* Pools and arenas go into huge pages. Kernels walk through them row by row, and with 4 kB pages
 * each row costs a TLB miss. This is only a hint, which the kernel may ignore. */
static void *default_alloc(void *user, size_t bytes, size_t align)
{
    (void)user;
    void *p = NULL;
    bool huge = bytes >= CTN__HUGE_PAGE;
    if (posix_memalign(&p, huge ? CTN__HUGE_PAGE : align, bytes) != 0) return NULL;
#ifdef MADV_HUGEPAGE
    if (huge) (void)madvise(p, bytes & ~(CTN__HUGE_PAGE - 1), MADV_HUGEPAGE);
#endif
    return p;
}

static void default_release(void *user, void *p)
{
    (void)user;
    free(p);
}

static const ctn_allocator defaults = {default_alloc, default_release, NULL};
static ctn_allocator current = {default_alloc, default_release, NULL};
static _Atomic uint64_t total;
static _Atomic int64_t live;

ctn_status ctn_set_allocator(const ctn_allocator *a)
{
    if (a != NULL && (a->alloc == NULL || a->release == NULL))
        return ctn_fail(CTN_EARG, "set_allocator: set both alloc and release");
    int64_t blocks = atomic_load(&live);
    if (blocks != 0)
        return ctn_fail(CTN_ESTATE,
                        "set_allocator: %lld blocks are still allocated; call it before the first "
                        "context is made or after the last one is freed",
                        (long long)blocks);
    current = a != NULL ? *a : defaults;
    return CTN_OK;
}

uint64_t ctn_allocations(void)
{
    return atomic_load(&total);
}

static void *get(size_t bytes, size_t align)
{
    /* No object is larger than PTRDIFF_MAX, so the host's function never sees the SIZE_MAX that
     * ctn__mul returns on overflow. */
    void *p = NULL;
    if (bytes <= PTRDIFF_MAX) p = current.alloc(current.user, bytes > 0 ? bytes : 1, align);
    if (p == NULL) {
        ctn_fail(CTN_ENOMEM, "out of memory: cannot allocate %zu bytes", bytes);
        return NULL;
    }
    atomic_fetch_add(&total, 1);
    atomic_fetch_add(&live, 1);
    return p;
}

void *ctn__malloc(size_t bytes)
{
    return get(bytes, alignof(max_align_t));
}

void *ctn__calloc(size_t count, size_t bytes)
{
    size_t n = ctn__mul(count, bytes);
    void *p = ctn__malloc(n);
    if (p != NULL) memset(p, 0, n);
    return p;
}

void *ctn__aligned(size_t bytes)
{
    return get(bytes, CTN__ALIGN);
}

void ctn__free(void *p)
{
    if (p == NULL) return;
    current.release(current.user, p);
    atomic_fetch_sub(&live, 1);
}

void *ctn__grow(void *p, size_t used, size_t bytes)
{
    void *q = ctn__malloc(bytes);
    if (q == NULL) return NULL;
    if (used > 0) memcpy(q, p, used < bytes ? used : bytes);
    ctn__free(p);
    return q;
}

char *ctn__strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *p = ctn__malloc(n);
    if (p != NULL) memcpy(p, s, n);
    return p;
}

size_t ctn__mul(size_t a, size_t b)
{
    size_t r;
    return __builtin_mul_overflow(a, b, &r) ? SIZE_MAX : r;
}

bool ctn__vec_grow(void **at, size_t n, size_t *cap, size_t want, size_t elem)
{
    /* *at is really a T *; memcpy accesses it without breaking the aliasing rules. */
    void *p;
    memcpy(&p, at, sizeof p);
    size_t c = *cap < 4 ? 8 : ctn__mul(*cap, 2);
    if (c < want) c = want;
    p = ctn__grow(p, ctn__mul(n, elem), ctn__mul(c, elem));
    if (p == NULL) return false;
    memcpy(at, &p, sizeof p);
    *cap = c;
    return true;
}
