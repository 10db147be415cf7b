/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs blocks of bytes into one buffer, for what one rank finds out about the data and sends to
 * the others: the names of an image folder, the indexes of shards. A block is its length (a u64
 * in this machine's byte order) and its bytes, padded to a multiple of 8 so that structs in it
 * are aligned.
 */
#include "data/source.h"

static size_t whole(uint64_t bytes)
{
    return (size_t)(bytes + 7) / 8 * 8;
}

void ctn__put_block(ctn__blocks *b, const void *p, size_t bytes)
{
    const uint64_t length = bytes;
    const size_t all = sizeof length + whole(length);
    if (b->at && b->n <= b->room && all <= b->room - b->n) {
        memset(b->at + b->n, 0, all);
        memcpy(b->at + b->n, &length, sizeof length);
        if (bytes) memcpy(b->at + b->n + sizeof length, p, bytes);
    }
    b->n += all;
}

const void *ctn__take_block(ctn__blocks *b, size_t *bytes)
{
    uint64_t length = 0;
    if (b->room - b->n < sizeof length) return NULL;
    memcpy(&length, b->at + b->n, sizeof length);
    b->n += sizeof length;
    if (length > b->room - b->n || whole(length) > b->room - b->n) return NULL;
    const void *p = b->at + b->n;
    b->n += whole(length);
    *bytes = (size_t)length;
    return p;
}

const char *ctn__take_text(ctn__blocks *b)
{
    size_t n = 0;
    const char *p = ctn__take_block(b, &n);
    return p && n > 0 && p[n - 1] == 0 ? p : NULL;
}
