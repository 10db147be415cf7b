/* SPDX-License-Identifier: Apache-2.0
 *
 * Internals of the op test harness: guarded memory, replay of plans, and the checks of one case.
 * The checks report faults instead of asserting, so that the harness itself can be tested with
 * ops that are wrong.
 */
#ifndef CTN_TESTS_OPS_CHECK_H
#define CTN_TESTS_OPS_CHECK_H

#include <stdbool.h>

#include "harness.h"
#include "plan/plan.h"

/* The fault that was found, in one line. */
typedef struct {
    char text[1024];
} fault;
/* Sets the text and returns false: `return fail_case(f, "...")`. */
bool fail_case(fault *f, const char *fmt, ...) CTN_PRINTF(2, 3);

/* ---- memory between guard zones (guard.c) --------------------------------------------------- */

/* Makes the library allocate from here. Call it before the first context is created. */
ctn_status guard_install(void);
/* 64-byte aligned and filled with 0xff, which is NaN in every float type. Never NULL. */
void *guard_new(size_t bytes);
void guard_free(void *p);
size_t guard_size(const void *p);
/* False if a zone of a live block, or of one released since the last call, was overwritten. The
 * zones are restored. */
bool guard_check(fault *f);
int64_t guard_blocks(void);     /* live */
void guard_limit(size_t bytes); /* of each block from now on */

/* ---- replay of a plan (replay.c) ------------------------------------------------------------ */

/* Runs the last plan of ctx again, inside the same scope, with every value and scratch in its
 * own guarded buffer filled with NaN. False if a kernel writes outside of its outputs or into
 * its inputs, or if the outputs are not bitwise those of the plan. The latter means that a
 * kernel reads memory nobody wrote, or that memory is shared wrongly. */
bool replay_plan(ctn_context *ctx, fault *f);

/* ---- one case (harness.c) ------------------------------------------------------------------- */

/* The values of an input. round: to f32, so that f32 and f64 start from the same numbers. The
 * caller frees them. */
double *case_fill(const op_case *c, int input, bool round);
bool check_case(const op_case *c, fault *f);
/* Frees what the checks share. False if the library did not free all of its memory. */
bool check_finish(fault *f);

/* ---- hostile operands (hostile.c) ------------------------------------------------------------ */

/* Around calls of check_hostile. */
bool hostile_start(fault *f);
void hostile_finish(void);
bool check_hostile(const op_case *c, fault *f);

/* ---- cases as ONNX models (onnx.c) ----------------------------------------------------------- */

/* Writes the cases of n tables to a folder. Returns the exit code. */
int write_onnx(const char *folder, const op_case *const *tables, int n);

/* ---- tests of the harness with ops that are wrong (selftest.c), for cmocka ------------------- */

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
