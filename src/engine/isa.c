/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the instruction set of our own kernels (isa.h). All kernels that use it give the same
 * bits with each set, except matrix products.
 */
#include "engine/isa.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdatomic.h>
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif

static atomic_int limit = CTN__ISA_BEST;

int ctn__sve_bits(void)
{
#if defined(__aarch64__) && defined(__linux__)
    enum { HAS_SVE = 1 << 22, GET_LENGTH = 51, LENGTH = 0xffff }; /* of Linux's interface */
    const int bytes = getauxval(AT_HWCAP) & HAS_SVE ? prctl(GET_LENGTH) : 0;
    return bytes > 0 ? 8 * (bytes & LENGTH) : 0;
#else
    return 0;
#endif
}

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
#elif defined(__aarch64__)
    if (most >= CTN__ISA_SVE && ctn__sve_bits() > 0) return CTN__ISA_SVE;
#endif
    (void)most;
    return CTN__ISA_PORTABLE;
}

ctn__isa ctn__isa_limit(ctn__isa isa)
{
    atomic_store_explicit(&limit, (int)isa, memory_order_relaxed);
    return ctn__isa_in_use();
}
