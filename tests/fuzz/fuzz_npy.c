/* SPDX-License-Identifier: Apache-2.0
 *
 * .npy files.
 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    ctn_dataset *ds = NULL;
    const char *file = fuzz_file("x.npy", data, bytes);
    if (ctn_files_open(&ds, 1, &file, NULL) < 0) ctn_error_clear();
    fuzz_samples(ds);
    return 0;
}
