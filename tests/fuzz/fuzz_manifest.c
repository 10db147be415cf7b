/* SPDX-License-Identifier: Apache-2.0
 *
 * The manifest of a checkpoint. The input is its lines; the head and the hash are added here,
 * because a fuzzer cannot find the hash. The bytes are also read as a whole manifest.
 */
#include "fuzz.h"

#include "io/checkpoint/checkpoint.h"

static void use(const ctn__manifest *m)
{
    size_t sum = 0;
    for (size_t i = 0; i < m->array.n; i++) {
        const ctn__ckpt_array *a = &m->array.at[i];
        const ctn__ckpt_array *found = ctn__manifest_find(m, a->name);
        int64_t begin, end;
        char name[256];
        if (!found || strcmp(found->name, a->name) != 0) abort();
        sum += ctn__manifest_bytes(a);
        snprintf(name, sizeof name, "%.*s", (int)strcspn(a->name, "["), a->name);
        const ctn__ckpt_array *slice = ctn__manifest_slices(m, name);
        if (slice && !ctn__manifest_slice(slice, name, &begin, &end)) abort();
        if (a->file < 0 || (size_t)a->file >= m->file.n) abort();
    }
    ctn__text found = {0};
    for (size_t f = 0; f < m->file.n && f < 4; f++)
        if (ctn__manifest_verify(m, fuzz_folder(), (int)f, &found) < 0) ctn_error_clear();
    if (sum == 1 && found.n == 1) abort(); /* both are read */
    ctn__text_free(&found);
}

static void parse(const char *text)
{
    ctn__manifest m = {0};
    if (ctn__manifest_parse(&m, "x", text) == CTN_OK) use(&m);
    ctn_error_clear();
    ctn__manifest_free(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    ctn__text lines = {0}, whole = {0};
    ctn__text_add(&lines, "%.*s", bytes < INT32_MAX ? (int)bytes : INT32_MAX, (const char *)data);
    if (ctn__manifest_finish(&lines, &whole) < 0) abort();
    parse(whole.s);
    parse(lines.s ? lines.s : "");
    ctn__text_free(&lines);
    ctn__text_free(&whole);
    return 0;
}
