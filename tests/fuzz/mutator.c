/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer makes half of its inputs with the changes of changes.c, and the rest with its own.
 */
#include "fuzz.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t room);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t bytes, const uint8_t *other,
                                 size_t other_bytes, uint8_t *out, size_t room, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed)
{
    fuzz_doc d = {data, bytes, room, data, 0, {seed}};
    if (bytes == 0 || fuzz_draw(&d.random, 2)) return LLVMFuzzerMutate(data, bytes, room);
    fuzz_change(&d);
    return d.bytes ? d.bytes : 1;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t bytes, const uint8_t *other,
                                 size_t other_bytes, uint8_t *out, size_t room, unsigned seed)
{
    if (bytes > room) return 0;
    memcpy(out, data, bytes);
    fuzz_doc d = {out, bytes, room, other, other_bytes, {seed}};
    fuzz_change(&d);
    return d.bytes;
}
