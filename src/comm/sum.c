/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds received data to local data, and converts to and from the 16-bit types of the wire: f32 is
 * rounded to nearest even when it is sent and widened before it is added. Integers wrap. Called by
 * comm/pieces.c on one thread.
 *
 * The loops are plain, so that the compiler vectorises them. On x86-64 it makes three copies, and
 * the loader chooses the one for this machine. No copy fuses or reorders operations, so all give
 * the same bits.
 */
#include "comm/comm.h"
#include "tensor/half.h"

/* Needs ifunc, which musl lacks, and which runs before the start-up code of sanitizers. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COPIES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define COPIES
#endif

COPIES static void sum_f32(float *restrict y, const float *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] += x[i];
}

COPIES static void sum_f64(double *restrict y, const double *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] += x[i];
}

COPIES static void sum_i32(uint32_t *restrict y, const uint32_t *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] += x[i];
}

COPIES static void sum_i64(uint64_t *restrict y, const uint64_t *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] += x[i];
}

COPIES static void sum_bf16(float *restrict y, const uint16_t *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] += ctn__bf16_get(x[i]);
}

COPIES static void sum_f16(float *restrict y, const uint16_t *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] += ctn__f16_get(x[i]);
}

COPIES static void put_bf16(uint16_t *restrict y, const float *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = ctn__bf16_put(x[i]);
}

COPIES static void put_f16(uint16_t *restrict y, const float *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = ctn__f16_put(x[i]);
}

COPIES static void get_bf16(float *restrict y, const uint16_t *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = ctn__bf16_get(x[i]);
}

COPIES static void get_f16(float *restrict y, const uint16_t *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = ctn__f16_get(x[i]);
}

void ctn__sum_into(void *y, const void *x, int64_t n, ctn_dtype type, ctn_dtype wire)
{
    switch (wire) {
    case CTN_F32: sum_f32(y, x, n); break;
    case CTN_F64: sum_f64(y, x, n); break;
    case CTN_I32: sum_i32(y, x, n); break;
    case CTN_I64: sum_i64(y, x, n); break;
    case CTN_BF16: sum_bf16(y, x, n); break; /* type is f32 */
    case CTN_F16: sum_f16(y, x, n); break;
    default: break; /* the public calls reject other types */
    }
    (void)type;
}

/* Avoids memmove with NULL, which is not allowed even for 0 bytes. */
static void copy(void *y, const void *x, int64_t n, ctn_dtype type)
{
    if (n > 0) memmove(y, x, (size_t)n * ctn_dtype_size(type));
}

void ctn__to_wire(void *wire_out, const void *x, int64_t n, ctn_dtype type, ctn_dtype wire)
{
    if (wire == type) copy(wire_out, x, n, type);
    else if (wire == CTN_BF16) put_bf16(wire_out, x, n);
    else put_f16(wire_out, x, n);
}

void ctn__from_wire(void *y, const void *wire_in, int64_t n, ctn_dtype type, ctn_dtype wire)
{
    if (wire == type) copy(y, wire_in, n, type);
    else if (wire == CTN_BF16) get_bf16(y, wire_in, n);
    else get_f16(y, wire_in, n);
}
