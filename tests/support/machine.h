/* SPDX-License-Identifier: Apache-2.0
 *
 * What the machine at hand can do, for tests that ask for more than every CPU has. Limits such as
 * ONEDNN_MAX_CPU_ISA count.
 */
#ifndef CTN_TESTS_MACHINE_H
#define CTN_TESTS_MACHINE_H

#include <stdbool.h>

/* Training in this precision is not refused, be it slow. */
bool test_has_bf16(void);
bool test_has_f16(void);

#endif
