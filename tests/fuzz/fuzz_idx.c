/* SPDX-License-Identifier: Apache-2.0
 *
 * idx files, as images and as labels, plain and gzip.
 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    ctn_dataset *ds = NULL;
    if (ctn_idx_open(&ds, fuzz_file("x-idx", data, bytes), NULL, NULL) < 0) ctn_error_clear();
    fuzz_samples(ds);
    /* Two files in one input: first the images, as long as one of 28 x 28, then the labels. */
    ds = NULL;
    const size_t cut = bytes < 16 + 784 ? bytes / 2 : 16 + 784;
    char images[256];
    snprintf(images, sizeof images, "%s", fuzz_file("y-idx", data, cut));
    if (ctn_idx_open(&ds, images, fuzz_file("z-idx", data + cut, bytes - cut), NULL) < 0)
        ctn_error_clear();
    fuzz_samples(ds);
    return 0;
}
