/* SPDX-License-Identifier: Apache-2.0
 *
 * HDF5 files: the arrays /a, /g/b and /c of the input. A finding may be one of the HDF5 library.
 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char *const arrays[] = {"/a", "/g/b", "/c"};
    char path[300];
    const char *file = fuzz_file("x.h5", data, bytes), *const paths[] = {path};
    for (int i = 0; i < 3; i++) {
        ctn_dataset *ds = NULL;
        snprintf(path, sizeof path, "%s:%s", file, arrays[i]);
        if (ctn_files_open(&ds, 1, paths, NULL) < 0) ctn_error_clear();
        fuzz_samples(ds);
    }
    return 0;
}
