/* SPDX-License-Identifier: Apache-2.0
 *
 * CIFAR-10 and CIFAR-100 binary files. Most inputs are not a whole number of records, so the last
 * record is padded.
 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    enum { RECORD = 3073 };
    static uint8_t records[4 * (RECORD + 1)];
    ctn_dataset *ds = NULL;
    fuzz_file("test_batch.bin", data, bytes);
    if (ctn_cifar10_open(&ds, fuzz_folder(), CTN_TEST, NULL) < 0) ctn_error_clear();
    fuzz_samples(ds);
    ds = NULL;
    if (bytes > sizeof records) bytes = sizeof records;
    memset(records, 0, sizeof records);
    memcpy(records, data, bytes);
    fuzz_file("test_batch.bin", records, (bytes + RECORD - 1) / RECORD * RECORD);
    if (ctn_cifar10_open(&ds, fuzz_folder(), CTN_TEST, NULL) < 0) ctn_error_clear();
    fuzz_samples(ds);
    ds = NULL;
    fuzz_file("test.bin", records, (bytes + RECORD) / (RECORD + 1) * (RECORD + 1));
    if (ctn_cifar100_open(&ds, fuzz_folder(), CTN_TEST, NULL) < 0) ctn_error_clear();
    fuzz_samples(ds);
    return 0;
}
