/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fuzz targets share. Each fuzz_*.c is one target and is built in two ways: with
 * clang's libFuzzer (dev/fuzz), and with run.c, which runs it once over the files of its corpus
 * (ctest fuzz.NAME).
 */
#ifndef CTN_TESTS_FUZZ_H
#define CTN_TESTS_FUZZ_H

#include <catena/catena.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Writes the bytes to file `name` in a folder of this process, in memory if /dev/shm exists.
 * Result: the path, borrowed until the next call. Its folder is fuzz_folder(). */
const char *fuzz_file(const char *name, const uint8_t *data, size_t bytes);
const char *fuzz_folder(void);
/* Reads the first and last samples of a dataset, ignores errors, and frees the dataset. NULL is
 * fine. */
void fuzz_samples(ctn_dataset *ds);

#endif
