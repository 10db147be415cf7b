/* SPDX-License-Identifier: Apache-2.0
 *
 * The instruction set of our own vector kernels: the best that the machine has, limited like
 * oneDNN's by ONEDNN_MAX_CPU_ISA, so that one variable limits both.
 */
#ifndef CTN_ENGINE_ISA_H
#define CTN_ENGINE_ISA_H

typedef enum { CTN__ISA_PORTABLE, CTN__ISA_AVX2, CTN__ISA_AVX512 } ctn__isa;

ctn__isa ctn__isa_in_use(void);
/* Limits the instruction set of the whole process from now on; the machine may have less. Returns
 * the one in use. For tests. */
ctn__isa ctn__isa_limit(ctn__isa isa);

#endif
