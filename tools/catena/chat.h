/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversations of catena generate --chat.
 */
#ifndef CATENA_CHAT_H
#define CATENA_CHAT_H

#include <catena/text.h>

#include "cli.h"

/* The text, for the tokenizer, of what a user says after a system message ("": none), or of a
 * conversation in JSON if `whole`. Free *out. */
ctn_status chat_text(const ctn_tokenizer *t, const char *system, bool whole, const char *text,
                     size_t bytes, char **out, size_t *n);

#endif
