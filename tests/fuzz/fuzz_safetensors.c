/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors files. Bytes that begin with '{' are also read as an index of the files 1 and 2.
 */
#include "fuzz.h"

#include "io/safetensors.h"

/* Reads everything; f may be NULL. */
static uint64_t use(ctn__st_file *f)
{
    uint64_t sum = 0;
    for (size_t i = 0; f && i < ctn__st_count(f); i++) {
        const ctn__st_array *a = ctn__st_at(f, i);
        uint8_t *p = malloc(a->bytes + 1);
        if (!p || ctn__st_read(f, a, p) < 0) abort();
        for (size_t k = 0; k < a->bytes; k++) sum += p[k];
        free(p);
        if (!ctn__st_find(f, a->name)) abort();
    }
    for (size_t i = 0; f && i < ctn__st_metadata_count(f); i++) {
        const char *key = NULL;
        sum += strlen(ctn__st_metadata_at(f, i, &key)) + strlen(key);
    }
    ctn__st_close(f);
    return sum;
}

/* A file with one array of one byte. */
static void write_part(const char *name, char array)
{
    char text[128];
    const int n =
        snprintf(text + 8, sizeof text - 8,
                 "{\"%c\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", array);
    memset(text, 0, 8);
    text[0] = (char)n;
    fuzz_file(name, (const uint8_t *)text, (size_t)n + 9);
}

static uint64_t index_of(const uint8_t *data, size_t bytes)
{
    static int written;
    ctn__st_file *f = NULL;
    if (!written++) {
        write_part("1", 'a');
        write_part("2", 'b');
    }
    if (ctn__st_open(&f, fuzz_file("index.json", data, bytes)) < 0) ctn_error_clear();
    return use(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    ctn__st_file *f = NULL;
    if (ctn__st_parse(&f, "x", data, bytes) < 0) ctn_error_clear();
    uint64_t sum = use(f);
    if (bytes > 0 && data[0] == '{') sum += index_of(data, bytes);
    return sum == UINT64_MAX; /* never true, but makes sure that the bytes are read */
}
