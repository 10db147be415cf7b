/* SPDX-License-Identifier: Apache-2.0
 *
 * Warnings and notices. The library never prints: what a user should know but is not an error goes to the host
 * program's functions, or nowhere when there are none.
 */
#ifndef CATENA_LOG_H
#define CATENA_LOG_H

#include <catena/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Takes one message, a line without newline that is valid during the call. May be called from any
 * thread, from several at once, and must not call back into a running context. */
typedef void (*ctn_log_fn)(void *user, const char *message);

/* Send warnings to fn (NULL: drop them, the default). Local; process-wide. A call of the former
 * function may still be running on another thread when this returns. */
CTN_API void ctn_set_log(ctn_log_fn fn, void *user);
/* Send notices to fn: a long operation, such as the timing of kernels, has started or finished. Otherwise as ctn_set_log. */
CTN_API void ctn_set_notice(ctn_log_fn fn, void *user);

#ifdef __cplusplus
}
#endif
#endif
