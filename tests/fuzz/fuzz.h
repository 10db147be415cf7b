/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fuzz targets share. Each fuzz_*.c is one target, built in two ways: with clang's libFuzzer
 * (dev/fuzz), and with run.c, which feeds it the files of its corpus once (ctest fuzz.NAME).
 */
#ifndef CTN_TESTS_FUZZ_H
#define CTN_TESTS_FUZZ_H

#include <catena/catena.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* The bytes as file `name` in a folder of this process, in memory where there is /dev/shm. Result: the
 * path, borrowed until the next call; its folder is fuzz_folder(). */
const char *fuzz_file(const char *name, const uint8_t *data, size_t bytes);
const char *fuzz_folder(void);
/* Read the first and last samples of a dataset, whatever they say, and free it. NULL is fine. */
void fuzz_samples(ctn_dataset *ds);

#endif
