/* SPDX-License-Identifier: Apache-2.0
 *
 * Which instruction set our own vector kernels use: the best the machine has, at most what oneDNN is limited to
 * (ONEDNN_MAX_CPU_ISA), so that one variable limits both.
 */
#ifndef CTN_ENGINE_ISA_H
#define CTN_ENGINE_ISA_H

typedef enum { CTN__ISA_PORTABLE, CTN__ISA_AVX2, CTN__ISA_AVX512 } ctn__isa;

ctn__isa ctn__isa_in_use(void);
/* Use at most this one from now on, in the whole process; the machine may have less. Returns the one in use.
 * For tests. */
ctn__isa ctn__isa_limit(ctn__isa isa);

#endif
