/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the instruction set of our own kernels (isa.h). All kernels that use it give the same
 * bits with each set, except the f64 products.
 */
#include "engine/isa.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdatomic.h>

static atomic_int limit = CTN__ISA_AVX512;

#if defined(__x86_64__)
/* oneDNN's sets are bit masks; each contains the sets it builds on. */
static int engine_has(dnnl_cpu_isa_t isa)
{
    return (dnnl_get_effective_cpu_isa() & isa) == isa;
}
#endif

ctn__isa ctn__isa_in_use(void)
{
    int most = atomic_load_explicit(&limit, memory_order_relaxed);
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (most >= CTN__ISA_AVX512 && engine_has(dnnl_cpu_isa_avx512_core) &&
        __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
        return CTN__ISA_AVX512;
    if (most >= CTN__ISA_AVX2 && engine_has(dnnl_cpu_isa_avx2) && __builtin_cpu_supports("avx2"))
        return CTN__ISA_AVX2;
#endif
    (void)most;
    return CTN__ISA_PORTABLE;
}

ctn__isa ctn__isa_limit(ctn__isa isa)
{
    atomic_store_explicit(&limit, (int)isa, memory_order_relaxed);
    return ctn__isa_in_use();
}
