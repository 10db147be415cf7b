/* SPDX-License-Identifier: Apache-2.0
 *
 * Warnings on their way to the host's function.
 *
 * The lock guards only the pair (function, user). It is not held during the call: a host that waits
 * in its function for another lock of its own, such as an interpreter's, would otherwise deadlock
 * with a thread that holds that lock and warns.
 */
#include "base/base.h"

#include <pthread.h>
#include <stdarg.h>

#include <catena/log.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ctn_log_fn sink;
static void *sink_user;

void ctn_set_log(ctn_log_fn fn, void *user)
{
    pthread_mutex_lock(&lock);
    sink = fn;
    sink_user = user;
    pthread_mutex_unlock(&lock);
}

void ctn__warn(const char *fmt, ...)
{
    pthread_mutex_lock(&lock);
    ctn_log_fn fn = sink;
    void *user = sink_user;
    pthread_mutex_unlock(&lock);
    if (fn == NULL) return;
    char text[2048]; /* a longer message is cut: a warning must not need memory */
    va_list args;
    va_start(args, fmt);
    int k = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (k >= 0) fn(user, text);
}
