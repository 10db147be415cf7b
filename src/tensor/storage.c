/* SPDX-License-Identifier: Apache-2.0
 *
 * Buffers that belong to a scope: outputs of plans, and values that a later gradient needs. Block
 * sizes are powers of two. Blocks are kept for the next scope, so a steady loop allocates nothing.
 */
#include "tensor/tensor.h"

struct ctn__block {
    ctn__block *next;
    size_t size;
    int bin;
    char pad[CTN__ALIGN - sizeof(void *) - sizeof(size_t) - sizeof(int)];
};

void *ctn__storage_get(ctn__storage *s, size_t bytes)
{
    int bin = 6;
    while (bin < 47 && ((size_t)1 << bin) < bytes) bin++;
    ctn__block *b = s->spare[bin];
    if (b) {
        s->spare[bin] = b->next;
    } else {
        size_t size = (size_t)1 << bin;
        b = ctn__aligned(sizeof *b + size);
        if (!b) return NULL;
        b->size = size;
        b->bin = bin;
        s->bytes += size;
    }
    b->next = s->used;
    s->used = b;
    return b + 1;
}

void ctn__storage_recycle(ctn__storage *s)
{
    while (s->used) {
        ctn__block *b = s->used;
        s->used = b->next;
        b->next = s->spare[b->bin];
        s->spare[b->bin] = b;
    }
}

void ctn__storage_free(ctn__storage *s)
{
    ctn__storage_recycle(s);
    for (int i = 0; i < 48; i++) {
        while (s->spare[i]) {
            ctn__block *b = s->spare[i];
            s->spare[i] = b->next;
            ctn__free(b);
        }
    }
    s->bytes = 0;
}
