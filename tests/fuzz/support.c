/* SPDX-License-Identifier: Apache-2.0
 *
 * Files and datasets for the fuzz targets.
 */
#include "fuzz.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[64], path[256];

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0) perror(folder);
}

const char *fuzz_folder(void)
{
    if (folder[0]) return folder;
    snprintf(folder, sizeof folder, "%s/catena-fuzz-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(folder)) {
        perror(folder);
        exit(2);
    }
    atexit(remove_folder);
    return folder;
}

const char *fuzz_file(const char *name, const uint8_t *data, size_t bytes)
{
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f) != 0) {
        perror(path);
        exit(2);
    }
    return path;
}

void fuzz_samples(ctn_dataset *ds)
{
    const int64_t count = ctn_dataset_count(ds);
    void *dst[CTN_DATA_FIELDS] = {0};
    for (int f = 0; f < ctn_dataset_fields(ds); f++) {
        const ctn_field *field = ctn_dataset_field(ds, f);
        size_t bytes = ctn_dtype_size(field->dtype);
        for (int d = 0; d < field->ndim; d++) bytes *= (size_t)field->shape[d];
        if (bytes > (size_t)1 << 26) goto done; /* a valid header may ask for more than there is */
        dst[f] = malloc(bytes + 1);
        if (!dst[f]) goto done;
    }
    for (int64_t i = 0; i < count && i < 8; i++)
        if (ctn_dataset_get(ds, i, dst) < 0) ctn_error_clear();
    if (count && ctn_dataset_get(ds, count - 1, dst) < 0) ctn_error_clear();
done:
    for (int f = 0; f < CTN_DATA_FIELDS; f++) free(dst[f]);
    ctn_dataset_free(ds);
    ctn_error_clear();
}
