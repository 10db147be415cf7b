/* SPDX-License-Identifier: Apache-2.0
 *
 * Warnings and notices. The library never prints. Messages that are not errors go to functions
 * of the host program, or are dropped if there are none.
 */
#ifndef CATENA_LOG_H
#define CATENA_LOG_H

#include <catena/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Receives one message: a line without a newline, valid during the call. It may be called from
 * any thread and from several at once, and must not call back into a running context. */
typedef void (*ctn_log_fn)(void *user, const char *message);

/* Send warnings to fn; fn NULL: drop them, which is the default. When this returns, another
 * thread may still be inside the previous function. Local; process-wide. */
CTN_API void ctn_set_log(ctn_log_fn fn, void *user);
/* Send notices to fn; fn NULL: drop them, which is the default. A notice says that a long
 * operation, such as timing kernels, has started or finished, or that the op of a line runs on a
 * kernel that is hundreds of times slower than others. Otherwise like ctn_set_log. Local;
 * process-wide. */
CTN_API void ctn_set_notice(ctn_log_fn fn, void *user);

#ifdef __cplusplus
}
#endif
#endif
