/* SPDX-License-Identifier: Apache-2.0
 *
 * Bump allocation for objects that are freed together, such as the nodes of a scope.
 *
 * Invariant: chunks up to and including `cur` are in use, those after it are free. A reset frees
 * all of them but keeps their order, so a step that repeats the last one touches the same memory
 * and allocates nothing. Chunk k holds 4 KiB << k (at most 64 MiB), or more for a larger request.
 */
#include "base/base.h"

#include <stdalign.h>
#include <stdarg.h>

struct ctn__chunk {
    ctn__chunk *next;
    size_t bytes; /* of data */
    alignas(16) char data[];
};

enum { CHUNK_BYTES = 4096, MAX_DOUBLINGS = 14 };

static void enter(ctn__arena *a, ctn__chunk *c)
{
    a->cur = c;
    a->p = c->data;
    a->end = c->data + c->bytes;
}

/* A free chunk with room for `need`, unlinked from the list; NULL if there is none. */
static ctn__chunk *take_free(ctn__arena *a, size_t need)
{
    ctn__chunk **at = a->cur != NULL ? &a->cur->next : &a->first;
    for (; *at != NULL; at = &(*at)->next) {
        ctn__chunk *c = *at;
        if (c->bytes < need) continue;
        *at = c->next;
        return c;
    }
    return NULL;
}

static ctn__chunk *new_chunk(const ctn__arena *a, size_t need)
{
    int doublings = 0;
    for (const ctn__chunk *c = a->first; c != NULL && doublings < MAX_DOUBLINGS; c = c->next)
        doublings++;
    size_t bytes = (size_t)CHUNK_BYTES << doublings;
    if (bytes < need) bytes = need;
    ctn__chunk *c = ctn__malloc(sizeof *c + bytes);
    if (c != NULL) c->bytes = bytes;
    return c;
}

void *ctn__arena_slow(ctn__arena *a, size_t bytes)
{
    if (bytes > PTRDIFF_MAX - 64) {
        ctn_fail(CTN_ENOMEM, "out of memory: cannot allocate %zu bytes", bytes);
        return NULL;
    }
    size_t need = (bytes + 15) & ~(size_t)15;
    ctn__chunk *c = take_free(a, need);
    if (c == NULL) c = new_chunk(a, need);
    if (c == NULL) return NULL;
    /* Insert it right after cur. Free chunks that were too small stay free. */
    ctn__chunk **at = a->cur != NULL ? &a->cur->next : &a->first;
    c->next = *at;
    *at = c;
    enter(a, c);
    a->p += need;
    return c->data;
}

void *ctn__arena_zero(ctn__arena *a, size_t bytes)
{
    void *p = ctn__arena_get(a, bytes);
    if (p != NULL) memset(p, 0, bytes);
    return p;
}

char *ctn__arena_str(ctn__arena *a, const char *s)
{
    size_t n = strlen(s) + 1;
    char *p = ctn__arena_get(a, n);
    if (p != NULL) memcpy(p, s, n);
    return p;
}

char *ctn__arena_printf(ctn__arena *a, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int k = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (k < 0) {
        ctn_fail(CTN_EARG, "cannot format text: %s", fmt);
        return NULL;
    }
    char *p = ctn__arena_get(a, (size_t)k + 1);
    if (p == NULL) return NULL;
    va_start(args, fmt);
    vsnprintf(p, (size_t)k + 1, fmt, args);
    va_end(args);
    return p;
}

size_t ctn__arena_bytes(const ctn__arena *a)
{
    size_t bytes = 0;
    for (const ctn__chunk *c = a->first; c != NULL; c = c->next) bytes += sizeof *c + c->bytes;
    return bytes;
}

void ctn__arena_reset(ctn__arena *a)
{
    if (a->first != NULL) enter(a, a->first);
}

void ctn__arena_free(ctn__arena *a)
{
    for (ctn__chunk *c = a->first; c != NULL;) {
        ctn__chunk *next = c->next;
        ctn__free(c);
        c = next;
    }
    memset(a, 0, sizeof *a);
}
