/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a fuzz target without a fuzzer: once over every file of the given folders, and again with
 * the file truncated and with bits flipped.
 */
#include "fuzz.h"

#include <dirent.h>

static void all_ways(uint8_t *data, size_t bytes)
{
    LLVMFuzzerTestOneInput(data, bytes);
    for (size_t i = 1; i <= 16; i++) LLVMFuzzerTestOneInput(data, bytes * i / 17);
    for (size_t i = 0; i < 64 && i < bytes * 8; i++) {
        const size_t bit = bytes < 64 ? i : i * 37 % (bytes < 600 ? bytes * 8 : 4800);
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        LLVMFuzzerTestOneInput(data, bytes);
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    enum { MOST = 1 << 20 };
    uint8_t *data = malloc(MOST);
    if (!f || !data) {
        perror(path);
        if (f) fclose(f);
        free(data);
        return 0;
    }
    const size_t bytes = fread(data, 1, MOST, f);
    fclose(f);
    /* exact size, so that a sanitizer sees reads beyond the end */
    uint8_t *exact = malloc(bytes ? bytes : 1);
    if (exact) {
        memcpy(exact, data, bytes);
        all_ways(exact, bytes);
    }
    free(exact);
    free(data);
    return 1;
}

int main(int argc, char **argv)
{
    int files = 0;
    for (int i = 1; i < argc; i++) {
        DIR *d = opendir(argv[i]);
        if (!d) {
            perror(argv[i]);
            return 1;
        }
        for (struct dirent *e; (e = readdir(d)) != NULL;) {
            char path[1024];
            if (e->d_name[0] == '.') continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], e->d_name);
            files += run_file(path);
        }
        closedir(d);
    }
    printf("%d files\n", files);
    return files ? 0 : 1;
}
