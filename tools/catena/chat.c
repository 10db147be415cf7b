/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversations of catena generate --chat: what the user says, or a whole conversation in JSON, as
 * the text that the model was trained with.
 */
#include <stdlib.h>
#include <string.h>

#include <catena/text.h>

#include "chat.h"

/* Append a text as JSON; there is room for 6 bytes per byte, and 2. */
static char *put_json(char *to, const char *text, size_t bytes)
{
    *to++ = '"';
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') *to++ = '\\';
        if (c < 0x20) to += sprintf(to, "\\u%04x", c);
        else *to++ = (char)c;
    }
    *to++ = '"';
    return to;
}

static char *put_message(char *to, const char *role, const char *text, size_t bytes)
{
    to += sprintf(to, "{\"role\":\"%s\",\"content\":", role);
    to = put_json(to, text, bytes);
    *to++ = '}';
    return to;
}

/* A conversation of the two messages. NULL: no memory. */
static char *make_messages(const char *system, const char *text, size_t bytes, size_t *n)
{
    const size_t before = strlen(system);
    char *made = malloc(6 * (before + bytes) + 128), *to = made;
    if (!made) return NULL;
    *to++ = '[';
    if (before) {
        to = put_message(to, "system", system, before);
        *to++ = ',';
    }
    to = put_message(to, "user", text, bytes);
    *to++ = ']';
    *n = (size_t)(to - made);
    return made;
}

static ctn_status render(const ctn_tokenizer *t, const char *messages, size_t bytes, char **out,
                         size_t *n)
{
    const int64_t all = ctn_tokenizer_chat(t, messages, bytes, NULL, NULL, 0);
    if (all < 0) return (ctn_status)all;
    *out = malloc((size_t)all + 1);
    if (!*out) return ctn_fail(CTN_ENOMEM, "no memory for a conversation");
    /* shorter now if it contains the time of day */
    const int64_t now = ctn_tokenizer_chat(t, messages, bytes, NULL, *out, (size_t)all + 1);
    *n = (size_t)(now < all ? now : all);
    return now < 0 ? (ctn_status)now : CTN_OK;
}

ctn_status chat_text(const ctn_tokenizer *t, const char *system, bool whole, const char *text,
                     size_t bytes, char **out, size_t *n)
{
    size_t length = bytes;
    char *made = whole ? NULL : make_messages(system, text, bytes, &length);
    *out = NULL;
    if (!whole && !made) return ctn_fail(CTN_ENOMEM, "no memory for a conversation");
    const ctn_status st = render(t, whole ? text : made, length, out, n);
    free(made);
    if (st == CTN_OK) return CTN_OK;
    free(*out);
    *out = NULL;
    return st;
}
