/* SPDX-License-Identifier: Apache-2.0
 *
 * MATLAB files of SVHN: the input as a file, and as the elements after a valid header.
 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    enum { HEADER = 128, MOST = 1 << 16 };
    static uint8_t file[HEADER + MOST];
    ctn_dataset *ds = NULL;
    fuzz_file("test_32x32.mat", data, bytes);
    if (ctn_svhn_open(&ds, fuzz_folder(), CTN_TEST, NULL) < 0) ctn_error_clear();
    fuzz_samples(ds);
    ds = NULL;
    if (bytes > MOST) bytes = MOST;
    memcpy(file + 124, "\0\1IM", 4);
    if (bytes > 0) memcpy(file + HEADER, data, bytes);
    fuzz_file("test_32x32.mat", file, HEADER + bytes);
    if (ctn_svhn_open(&ds, fuzz_folder(), CTN_TEST, NULL) < 0) ctn_error_clear();
    fuzz_samples(ds);
    return 0;
}
