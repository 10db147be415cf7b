/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a fuzz target without a fuzzer:
 *   fuzz_NAME FOLDER...                            every file of the folders; those of the first
 *                                                  also truncated and with bits flipped
 *   fuzz_NAME --cases COUNT [--seed K] FOLDER...   changed files (changes.c) from number K or 1 on
 *   fuzz_NAME --write TO --cases COUNT [--seed K] FOLDER...    writes them to a folder instead
 */
#include "fuzz.h"

#include <dirent.h>

enum { MOST = 1 << 20 };

typedef struct {
    fuzz_seed *at;
    size_t n, room;
} seeds;

static void run_file(const fuzz_seed *file, bool all_ways)
{
    uint8_t *data = file->data;
    const size_t bytes = file->bytes;
    LLVMFuzzerTestOneInput(data, bytes);
    if (!all_ways) return;
    for (size_t i = 1; i <= 16; i++) LLVMFuzzerTestOneInput(data, bytes * i / 17);
    for (size_t i = 0; i < 64 && i < bytes * 8; i++) {
        const size_t bit = bytes < 64 ? i : i * 37 % (bytes < 600 ? bytes * 8 : 4800);
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        LLVMFuzzerTestOneInput(data, bytes);
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static int add_file(seeds *s, const char *path)
{
    static uint8_t data[MOST];
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return -1;
    }
    const size_t bytes = fread(data, 1, MOST, f);
    fclose(f);
    if (s->n == s->room) {
        fuzz_seed *more = realloc(s->at, (s->room + 1000) * sizeof *more);
        if (!more) return -1;
        s->at = more;
        s->room += 1000;
    }
    /* exact size, so that a sanitizer sees reads beyond the end */
    uint8_t *exact = malloc(bytes ? bytes : 1);
    if (!exact) return -1;
    memcpy(exact, data, bytes);
    s->at[s->n++] = (fuzz_seed){exact, bytes};
    return 0;
}

/* In the order of their names, so that a case has the same number everywhere. */
static int add_folder(seeds *s, const char *folder)
{
    struct dirent **list = NULL;
    const int n = scandir(folder, &list, NULL, alphasort);
    int status = n < 0 ? -1 : 0;
    if (n < 0) perror(folder);
    for (int i = 0; i < n; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, list[i]->d_name);
        if (status == 0 && list[i]->d_name[0] != '.') status = add_file(s, path);
        free(list[i]);
    }
    free(list);
    return status;
}

int main(int argc, char **argv)
{
    seeds s = {0};
    uint64_t count = 0, first = 1;
    size_t own = 0; /* files of the first folder */
    const char *to = NULL;
    int code = 0;
    for (int i = 1; i < argc && code == 0; i++) {
        const bool more = i + 1 < argc;
        if (more && strcmp(argv[i], "--cases") == 0) count = strtoull(argv[++i], NULL, 10);
        else if (more && strcmp(argv[i], "--seed") == 0) first = strtoull(argv[++i], NULL, 10);
        else if (more && strcmp(argv[i], "--write") == 0) to = argv[++i];
        else if (add_folder(&s, argv[i]) < 0) code = 1;
        if (own == 0) own = s.n;
    }
    if (code == 0 && s.n == 0) code = 1;
    if (code == 0 && count) code = fuzz_cases(s.at, s.n, count, first, to);
    for (size_t i = 0; i < s.n; i++) {
        if (code == 0 && !count) run_file(&s.at[i], i < own);
        free(s.at[i].data);
    }
    free(s.at);
    printf("%zu files\n", s.n);
    return code;
}
