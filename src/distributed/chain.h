/* SPDX-License-Identifier: Apache-2.0
 *
 * The messages of a chain, and the check that those of all ranks fit together. Used by chain.c and
 * its tests.
 */
#ifndef CTN_DISTRIBUTED_CHAIN_H
#define CTN_DISTRIBUTED_CHAIN_H

#include "distributed/distributed.h"

/* What a rank does in its chain, in order. */
typedef enum {
    CTN__CHAIN_RECV = 'r',
    CTN__CHAIN_SEND = 's',
    CTN__CHAIN_END = 'e' /* a part whose result is not sent */
} ctn__chain_kind;

/* Adds one line to t. */
void ctn__chain_line(ctn__text *t, int rank, ctn__chain_kind kind, int peer, const char *at);
/* Checks the lines of all ranks, those of rank 0 first; `size` ranks. Local, and with the same
 * result on every rank that gets the same text. Errors: EARG (with both source lines), ENOMEM. */
ctn_status ctn__chain_check(const char *text, int size);

#endif
