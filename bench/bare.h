/* SPDX-License-Identifier: Apache-2.0
 *
 * What the bare-engine programs share: oneDNN called directly, without Catena. They show what the
 * engine alone needs for the work of a training step, so a step of Catena can be judged against
 * them. Any failure ends the program: there is nothing to clean up in a benchmark.
 */
#ifndef BENCH_BARE_H
#define BENCH_BARE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <oneapi/dnnl/dnnl.h>

#define MUST(call)                                                          \
    do {                                                                    \
        const dnnl_status_t status_ = (call);                               \
        if (status_ != dnnl_success) {                                      \
            fprintf(stderr, "%s: oneDNN status %d\n", #call, (int)status_); \
            exit(1);                                                        \
        }                                                                   \
    } while (0)

enum { BARE_ARGS = 10 };

typedef struct {
    dnnl_primitive_t prim;
    int nargs;
    dnnl_exec_arg_t arg[BARE_ARGS];
} bare_call;

static dnnl_engine_t bare_engine;
static dnnl_stream_t bare_stream;

static inline void bare_begin(void)
{
    MUST(dnnl_engine_create(&bare_engine, dnnl_cpu, 0));
    MUST(dnnl_stream_create(&bare_stream, bare_engine, dnnl_stream_default_flags));
}

/* With BENCH_CPU set, CPU time of all threads: for one thread on a busy machine. */
static inline double bare_seconds(void)
{
    struct timespec t;
    clock_gettime(getenv("BENCH_CPU") ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* New memory filled with small numbers of both signs, so that no kernel meets zeros, NaN or
 * subnormals. */
static inline dnnl_memory_t bare_memory(const_dnnl_memory_desc_t d)
{
    dnnl_memory_t m;
    dnnl_data_type_t type;
    void *data;
    const size_t bytes = dnnl_memory_desc_get_size(d);
    MUST(dnnl_memory_create(&m, d, bare_engine, DNNL_MEMORY_ALLOCATE));
    MUST(dnnl_memory_get_data_handle(m, &data));
    MUST(dnnl_memory_desc_query(d, dnnl_query_data_type, &type));
    memset(data, 0, bytes);
    for (size_t i = 0; type == dnnl_f32 && i < bytes / 4; i++)
        ((float *)data)[i] = (float)(i % 89) / 400 - 0.11f;
    for (size_t i = 0; type == dnnl_bf16 && i < bytes / 2; i++)
        ((uint16_t *)data)[i] = (uint16_t)((i % 2 ? 0xbc00 : 0x3c00) + i % 113);
    return m;
}

static inline void bare_arg(bare_call *c, int which, dnnl_memory_t m)
{
    c->arg[c->nargs++] = (dnnl_exec_arg_t){which, m};
}

static inline void bare_run(const bare_call *c)
{
    MUST(dnnl_primitive_execute(c->prim, bare_stream, c->nargs, c->arg));
}

/* C (b,m,n) = A (b,m,k) B (b,k,n); a transposed operand is stored the other way round. */
static inline bare_call bare_product(int64_t b, int64_t m, int64_t k, int64_t n, int ta, int tb)
{
    bare_call c = {0};
    dnnl_memory_desc_t x, y, z;
    dnnl_primitive_desc_t pd;
    MUST(dnnl_memory_desc_create_with_tag(&x, 3, (dnnl_dims_t){b, m, k}, dnnl_f32,
                                          ta ? dnnl_acb : dnnl_abc));
    MUST(dnnl_memory_desc_create_with_tag(&y, 3, (dnnl_dims_t){b, k, n}, dnnl_f32,
                                          tb ? dnnl_acb : dnnl_abc));
    MUST(dnnl_memory_desc_create_with_tag(&z, 3, (dnnl_dims_t){b, m, n}, dnnl_f32, dnnl_abc));
    MUST(dnnl_matmul_primitive_desc_create(&pd, bare_engine, x, y, NULL, z, NULL));
    MUST(dnnl_primitive_create(&c.prim, pd));
    bare_arg(&c, DNNL_ARG_SRC, bare_memory(x));
    bare_arg(&c, DNNL_ARG_WEIGHTS, bare_memory(y));
    bare_arg(&c, DNNL_ARG_DST, bare_memory(z));
    return c;
}

#endif
