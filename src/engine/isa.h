/* SPDX-License-Identifier: Apache-2.0
 *
 * The instruction set of our own vector kernels: the best that the machine has, on x86 limited like
 * oneDNN's by ONEDNN_MAX_CPU_ISA, so that one variable limits both. Kernels are compiled once per
 * set. Those for SVE do not depend on the length of the vectors.
 */
#ifndef CTN_ENGINE_ISA_H
#define CTN_ENGINE_ISA_H

typedef enum {
    CTN__ISA_PORTABLE, /* what every CPU of the architecture has: SSE2, NEON */
#if defined(__x86_64__) && defined(__GNUC__)
    CTN__ISA_AVX2,
    CTN__ISA_AVX512,
#elif defined(__aarch64__) && defined(__GNUC__)
    CTN__ISA_SVE,
#endif
    CTN__ISA_COUNT,
    CTN__ISA_BEST = CTN__ISA_COUNT - 1
} ctn__isa;

/* One variant of a kernel per set, as the initialiser of an array that is indexed by the set. */
#if defined(__x86_64__) && defined(__GNUC__)
#define CTN__FOR_AVX2 __attribute__((target("avx2")))
#define CTN__FOR_AVX512 \
    __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,prefer-vector-width=512")))
#define CTN__ISA_TABLE(name) {name##_portable, name##_avx2, name##_avx512}
#elif defined(__aarch64__) && defined(__GNUC__)
#define CTN__FOR_SVE __attribute__((target("+sve")))
#define CTN__ISA_TABLE(name) {name##_portable, name##_sve}
#else
#define CTN__ISA_TABLE(name) {name##_portable}
#endif

/* Compile the function name_body, whose definition follows, for one instruction set or for all. It
 * uses IEEE operations only, so every instruction set gives the same bits. */
#define CTN__COMPILE(target, name, parameters, call) \
    target static void name parameters               \
    {                                                \
        call;                                        \
    }
#if defined(__x86_64__) && defined(__GNUC__)
#define CTN__COMPILE_BETTER(name, parameters, call)            \
    CTN__COMPILE(CTN__FOR_AVX2, name##_avx2, parameters, call) \
    CTN__COMPILE(CTN__FOR_AVX512, name##_avx512, parameters, call)
#elif defined(__aarch64__) && defined(__GNUC__)
#define CTN__COMPILE_BETTER(name, parameters, call) \
    CTN__COMPILE(CTN__FOR_SVE, name##_sve, parameters, call)
#else
#define CTN__COMPILE_BETTER(name, parameters, call)
#endif
#define CTN__COMPILE_ALL(name, parameters, arguments)                         \
    static inline __attribute__((always_inline)) void name##_body parameters; \
    CTN__COMPILE(, name##_portable, parameters, name##_body arguments)        \
    CTN__COMPILE_BETTER(name, parameters, name##_body arguments)

/* CTN__PER_ISA(name, (parameters), (arguments)) { body } defines the array name[], indexed by
 * instruction set, for loops that are not elementwise. Sums in it use a fixed
 * number of lanes, so that every instruction set gives the same bits. The name may be a macro
 * call. */
#define CTN__PER_ISA(name, parameters, arguments) CTN__PER_ISA_(name, parameters, arguments)
#define CTN__PER_ISA_(name, parameters, arguments)                \
    CTN__COMPILE_ALL(name, parameters, arguments)                 \
    static void(*const name[]) parameters = CTN__ISA_TABLE(name); \
    static inline void name##_body parameters

ctn__isa ctn__isa_in_use(void);
/* Limits the instruction set of the whole process from now on; the machine may have less. Returns
 * the one in use. For tests. */
ctn__isa ctn__isa_limit(ctn__isa isa);
/* Bits of an SVE vector; 0: the CPU has no SVE. */
int ctn__sve_bits(void);

#endif
