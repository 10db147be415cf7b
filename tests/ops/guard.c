/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory between guard zones, for the library (as its allocator) and for buffers of the tests.
 * Live blocks are kept in one list, so that all of them can be checked when a case ends. A lock
 * protects the list, because the library may allocate from any thread.
 */
#include <pthread.h>
#include <stdarg.h>

#include "check.h"

enum { ZONE = 256, PATTERN = 0xc5 };

typedef struct block block;
struct block {
    block *next, **link;
    char *start; /* as returned by malloc */
    char *p;     /* as returned to the user, with ZONE bytes of pattern before and after it */
    size_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects everything below */
static block *blocks;
static int64_t nblocks;
static char damage[256];            /* found when a block was released */
static size_t limit = SIZE_MAX / 2; /* bytes of a block; the library gets no larger one */

bool fail_case(fault *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f->text, sizeof f->text, fmt, ap);
    va_end(ap);
    return false;
}

static void draw_zones(block *b)
{
    memset(b->p - ZONE, PATTERN, ZONE);
    memset(b->p + b->bytes, PATTERN, ZONE);
}

/* Compares the first byte with PATTERN, and every other byte with its predecessor. This runs at
 * the speed of memcmp, which matters because all live blocks are checked after every case. */
static bool zone_whole(const unsigned char *z)
{
    return z[0] == PATTERN && memcmp(z, z + 1, ZONE - 1) == 0;
}

static bool zones_whole(const block *b, char *text, size_t n)
{
    for (int side = 0; side < 2; side++) {
        const unsigned char *z = (const unsigned char *)(side ? b->p + b->bytes : b->p - ZONE);
        if (zone_whole(z)) continue;
        for (int i = 0; i < ZONE; i++) {
            if (z[i] == PATTERN) continue;
            int64_t at = side ? (int64_t)b->bytes + i : i - ZONE;
            snprintf(text, n, "byte %lld of a block of %zu bytes was written", (long long)at,
                     b->bytes);
            return false;
        }
    }
    return true;
}

static block *block_of(const void *p)
{
    block *b = blocks;
    while (b && b->p != p) b = b->next;
    return b;
}

static void *take(void *user, size_t bytes, size_t align)
{
    (void)user;
    if (bytes > limit) return NULL;
    block *b = malloc(sizeof *b);
    char *start = malloc(bytes + 2 * ZONE + align);
    if (!b || !start) {
        free(b);
        free(start);
        return NULL;
    }
    uintptr_t at = ((uintptr_t)start + ZONE + align - 1) / align * align;
    *b = (block){.start = start, .p = start + (at - (uintptr_t)start), .bytes = bytes};
    memset(b->p, 0xff, bytes);
    draw_zones(b);
    pthread_mutex_lock(&lock);
    b->next = blocks;
    b->link = &blocks;
    if (b->next) b->next->link = &b->next;
    blocks = b;
    nblocks++;
    pthread_mutex_unlock(&lock);
    return b->p;
}

static void give_back(void *user, void *p)
{
    (void)user;
    if (!p) return;
    pthread_mutex_lock(&lock);
    block *b = block_of(p);
    if (b) {
        char text[128];
        if (!zones_whole(b, text, sizeof text) && !damage[0])
            snprintf(damage, sizeof damage, "%s", text);
        *b->link = b->next;
        if (b->next) b->next->link = b->link;
        nblocks--;
        free(b->start);
        free(b);
    } else if (!damage[0]) {
        snprintf(damage, sizeof damage, "%p was released but never allocated", p);
    }
    pthread_mutex_unlock(&lock);
}

ctn_status guard_install(void)
{
    return ctn_set_allocator(&(ctn_allocator){take, give_back, NULL});
}

void guard_limit(size_t bytes)
{
    limit = bytes;
}

void *guard_new(size_t bytes)
{
    void *p = take(NULL, bytes, CTN__ALIGN);
    if (!p) {
        fprintf(stderr, "out of memory for the tests themselves: %zu bytes\n", bytes);
        exit(1);
    }
    return p;
}

void guard_free(void *p)
{
    give_back(NULL, p);
}

size_t guard_size(const void *p)
{
    pthread_mutex_lock(&lock);
    const block *b = block_of(p);
    pthread_mutex_unlock(&lock);
    return b ? b->bytes : 0;
}

int64_t guard_blocks(void)
{
    pthread_mutex_lock(&lock);
    int64_t n = nblocks;
    pthread_mutex_unlock(&lock);
    return n;
}

bool guard_check(fault *f)
{
    char text[256];
    pthread_mutex_lock(&lock);
    snprintf(text, sizeof text, "%s", damage);
    damage[0] = 0;
    for (block *b = blocks; b; b = b->next) {
        char t[128];
        if (zones_whole(b, t, sizeof t)) continue;
        if (!text[0]) snprintf(text, sizeof text, "%s", t);
        draw_zones(b);
    }
    pthread_mutex_unlock(&lock);
    return text[0] ? fail_case(f, "guard: %s", text) : true;
}
