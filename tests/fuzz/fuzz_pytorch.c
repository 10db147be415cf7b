/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of PyTorch: zip archives with a pickle. Bytes that are no archive are read as the
 * pickle of one, because a fuzzer does not find its way through the lengths of an archive.
 */
#include "fuzz.h"

#include "io/pickle.h"
#include "io/pytorch.h"

static uint64_t use(ctn__pt_file *f)
{
    uint64_t sum = 0;
    for (size_t i = 0; f && i < ctn__pt_count(f); i++) {
        const ctn_weights_array *a = ctn__pt_at(f, i);
        if (a->bytes > 1 << 20) continue; /* an expanded view may have any size */
        uint8_t *p = malloc(a->bytes + 1);
        if (!p || ctn__pt_read(f, a, p) < 0) abort();
        for (size_t k = 0; k < a->bytes; k++) sum += p[k];
        free(p);
    }
    ctn__pt_close(f);
    return sum;
}

static void put_number(uint8_t *p, int bytes, uint64_t n)
{
    for (int i = 0; i < bytes; i++) p[i] = (uint8_t)(n >> 8 * i);
}

static void append(uint8_t *p, size_t *at, const void *data, size_t bytes)
{
    if (bytes) memcpy(p + *at, data, bytes);
    *at += bytes;
}

/* Append an entry and, at `list`, its line of the directory. */
static void put_entry(uint8_t *p, size_t *at, uint8_t *list, size_t *listed, const char *name,
                      const uint8_t *data, size_t bytes)
{
    const size_t n = strlen(name);
    uint8_t head[30] = "PK\3\4", line[46] = "PK\1\2";
    put_number(head + 26, 2, n);
    put_number(line + 20, 4, bytes);
    put_number(line + 24, 4, bytes);
    put_number(line + 28, 2, n);
    put_number(line + 42, 4, *at);
    append(list, listed, line, sizeof line);
    append(list, listed, name, n);
    append(p, at, head, sizeof head);
    append(p, at, name, n);
    append(p, at, data, bytes);
}

static uint64_t as_pickle(const uint8_t *data, size_t bytes)
{
    static const uint8_t zeros[64];
    uint8_t list[256], end[22] = "PK\5\6";
    size_t at = 0, listed = 0;
    ctn__pt_file *f = NULL;
    uint8_t *p = malloc(bytes + 1024);
    if (!p) abort();
    put_entry(p, &at, list, &listed, "x/data.pkl", data, bytes);
    put_entry(p, &at, list, &listed, "x/data/0", zeros, sizeof zeros);
    put_number(end + 10, 2, 2);
    put_number(end + 12, 4, listed);
    put_number(end + 16, 4, at);
    memcpy(p + at, list, listed);
    memcpy(p + at + listed, end, sizeof end);
    if (ctn__pt_parse(&f, "x", p, at + listed + sizeof end) < 0) ctn_error_clear();
    const uint64_t sum = use(f);
    free(p);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    ctn__pt_file *f = NULL;
    uint64_t sum = 0;
    if (ctn__pt_parse(&f, "x", data, bytes) < 0) ctn_error_clear();
    sum += use(f);
    if (bytes < 4 || memcmp(data, "PK\3\4", 4) != 0) sum += as_pickle(data, bytes);
    return sum == UINT64_MAX; /* never true, but makes sure that the bytes are read */
}
