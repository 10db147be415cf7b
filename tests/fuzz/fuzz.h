/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fuzz targets share. Each fuzz_*.c is one target and is built in two ways: with
 * clang's libFuzzer (dev/fuzz), and with run.c, which runs it once over the files of its corpus
 * (ctest fuzz.NAME).
 */
#ifndef CTN_TESTS_FUZZ_H
#define CTN_TESTS_FUZZ_H

#include <catena/catena.h>

#include <stdbool.h>
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

/* ---- changed files --------------------------------------------------------------------------- */

/* Random numbers that are a function of the seed alone. fuzz_draw: 0 to n - 1, and 0 if n is 0. */
typedef struct {
    uint64_t state;
} fuzz_random;
uint64_t fuzz_draw(fuzz_random *r, uint64_t n);

/* A number that readers may not expect; some are near `old`. */
uint64_t fuzz_number(fuzz_random *r, uint64_t old);

/* A file that is being changed: `bytes` of `room`. `other` is another file of the corpus, from
 * which parts are taken. */
typedef struct {
    uint8_t *data;
    size_t bytes, room;
    const uint8_t *other;
    size_t other_bytes;
    fuzz_random random;
} fuzz_doc;

/* Replace the bytes [from, to) by n others; false: there is no room. */
bool fuzz_splice(fuzz_doc *d, size_t from, size_t to, const void *with, size_t n);
/* Make a hostile file out of a valid one, with knowledge of its format. */
void fuzz_change(fuzz_doc *d);
/* Changes of texts, for any text inside the bytes [from, to). */
void fuzz_change_text(fuzz_doc *d, size_t from, size_t to);
/* Change a part of an ONNX model; false: these bytes are not one. */
bool fuzz_change_onnx(fuzz_doc *d);

/* Run `count` changed files of a corpus, or write them to a folder; returns the exit code. */
typedef struct {
    uint8_t *data;
    size_t bytes;
} fuzz_seed;
int fuzz_cases(const fuzz_seed *seeds, size_t n, uint64_t count, uint64_t first,
               const char *folder);

#endif
