/* SPDX-License-Identifier: Apache-2.0
 *
 * The capabilities of this machine, for tests that need more than every CPU has. Limits such as
 * ONEDNN_MAX_CPU_ISA are taken into account.
 */
#ifndef CTN_TESTS_MACHINE_H
#define CTN_TESTS_MACHINE_H

#include <stdbool.h>

/* Whether training in this precision is possible, even if it is slow. */
bool test_has_bf16(void);
bool test_has_f16(void);

#endif
