/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two forms of connectionist temporal classification share: the op (ctc.c) and the
 * composition of other ops (ctc_composed.c).
 *
 * The labels l_1 to l_L of a sample become a path of S = 2 L + 1 states: blank, l_1, blank, l_2,
 * ..., l_L, blank. In each step an alignment stays in its state, moves to the next one, or skips a
 * blank between two different labels. It begins in one of the first two states and ends in one of
 * the last two.
 */
#ifndef CTN_OPS_COMMON_CTC_H
#define CTN_OPS_COMMON_CTC_H

#include "ops/ops.h"

/* The logarithm of the probability of what cannot happen. It is finite, so that differences of two
 * of them are not NaN. */
#define CTN__CTC_NEVER (-1e30)

/* The inputs of the op: lp (T,N,V), labels (N,L), input_lengths (N), label_lengths (N). */
enum { CTN__CTC_LP, CTN__CTC_LABELS, CTN__CTC_STEPS, CTN__CTC_SIZES, CTN__CTC_NIN };
/* The losses (N) of these inputs, recorded with other ops. */
ctn_tensor *ctn__ctc_composed(const char *at, ctn_tensor *const *in, int64_t blank);

#endif
