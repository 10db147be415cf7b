/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of the op test harness: guarded memory, replay of plans, and the checks of one case in a form
 * that reports instead of asserting, so that the harness can be tested with ops that are wrong.
 */
#ifndef CTN_TESTS_OPS_CHECK_H
#define CTN_TESTS_OPS_CHECK_H

#include <stdbool.h>

#include "harness.h"
#include "plan/plan.h"

/* What went wrong, in one line. */
typedef struct {
    char text[1024];
} fault;
/* Sets the text and returns false: `return fail_case(f, "...")`. */
bool fail_case(fault *f, const char *fmt, ...) CTN_PRINTF(2, 3);

/* ---- memory between guard zones (guard.c) ------------------------------------------------------- */

/* Everything the library allocates comes from here from now on. Before the first context. */
ctn_status guard_install(void);
/* 64-byte aligned, filled with 0xff: NaN to every float type. Never NULL. */
void *guard_new(size_t bytes);
void guard_free(void *p);
size_t guard_size(const void *p);
/* false where a zone of a living block, or of one released since the last call, was written. The zones are
 * made whole again. */
bool guard_check(fault *f);
int64_t guard_blocks(void); /* living */

/* ---- replay of a plan (replay.c) ---------------------------------------------------------------- */

/* Run the last plan of ctx again, inside the same scope, with every value and scratch in a guarded buffer
 * of its own filled with NaN. false where a kernel writes outside of its outputs, writes its inputs, or
 * the outputs differ in a bit from what the plan gave: a kernel that reads what nobody wrote, or a mistake
 * in sharing memory. */
bool replay_plan(ctn_context *ctx, fault *f);

/* ---- one case (harness.c) ----------------------------------------------------------------------- */

bool check_case(const op_case *c, fault *f);
/* Free what the checks share; false where the library did not give back all of its memory. */
bool check_finish(fault *f);

/* ---- the harness against ops that are wrong (selftest.c); for cmocka ------------------------------ */

void selftest_right(void **state);
void selftest_wrong_forward(void **state);
void selftest_wrong_gradient(void **state);
void selftest_wrong_second_gradient(void **state);
void selftest_too_far(void **state);
void selftest_not_repeatable(void **state);
void selftest_threads(void **state);
void selftest_writes_input(void **state);
void selftest_unwritten_scratch(void **state);
void selftest_eager(void **state);
void selftest_strides(void **state);
void selftest_not_recorded(void **state);

#endif
