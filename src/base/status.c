/* SPDX-License-Identifier: Apache-2.0
 *
 * Status texts, and the error record of each thread. The whole library reports errors through it.
 *
 * The record is a fixed thread-local buffer, so that reporting "out of memory" needs no memory. It
 * keeps the first message since the last clear. Later failures only add trace lines as they pass
 * through CTN_TRY.
 */
#include "base/base.h"

#include <stdarg.h>

enum {
    RECORD_BYTES = 4096,
    MESSAGE_BYTES = 3072 /* a long message leaves room for some lines of trace */
};

typedef struct {
    ctn_status st;
    size_t n; /* bytes of text without the final 0 */
    char text[RECORD_BYTES];
} record;

static _Thread_local record error;

const char *ctn_status_text(ctn_status st)
{
    switch (st) {
#define CTN_STATUS_CASE(name, value, text) \
    case name: return text;
        CTN_STATUS_TABLE(CTN_STATUS_CASE)
#undef CTN_STATUS_CASE
    }
    return "unknown status";
}

const char *ctn_error_message(void)
{
    return error.text;
}

ctn_status ctn_error_status(void)
{
    return error.st;
}

void ctn_error_clear(void)
{
    error.st = CTN_OK;
    error.n = 0;
    error.text[0] = 0;
}

/* Append to the record, never beyond `limit` bytes; a text that does not fit ends in "...".
 * Messages contain names from files, so this is where they become safe to print. */
static void append(size_t limit, const char *fmt, va_list args)
{
    if (error.n + 1 >= limit) return;
    size_t room = limit - error.n;
    char *from = error.text + error.n;
    int k = vsnprintf(from, room, fmt, args);
    if (k < 0) {
        from[0] = 0;
    } else if ((size_t)k < room) {
        error.n += (size_t)k;
    } else {
        error.n = limit - 1;
        memcpy(error.text + error.n - 3, "...", 3);
    }
    ctn__text_clean(from);
    ctn__text_join(fmt, from);
}

ctn_status(ctn_fail)(ctn_status st, const char *fmt, ...)
{
    if (st >= 0 || error.st < 0) return st;
    error.st = st;
    error.n = 0;
    va_list args;
    va_start(args, fmt);
    append(MESSAGE_BYTES, fmt, args);
    va_end(args);
    return st;
}

static void append_trace(const char *fmt, ...) CTN_PRINTF(1, 2);
static void append_trace(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    append(RECORD_BYTES, fmt, args);
    va_end(args);
}

ctn_status(ctn_error_trace)(ctn_status st, const char *file, int line, const char *func)
{
    if (st >= 0) return st;
    if (error.st == CTN_OK) ctn_fail(st, "%s", ctn_status_text(st));
    /* A different status is a later error. Its trace would mislead below the first message. */
    if (error.st == st && line > 0) append_trace("\n  at %s:%d %s", file, line, func);
    else if (error.st == st) append_trace("\n  at %s %s", file, func); /* `file` has the line */
    return st;
}
