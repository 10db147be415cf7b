/* SPDX-License-Identifier: Apache-2.0
 *
 * Passes warnings and notices to the host's function.
 *
 * The lock guards only the pairs (function, user) and is not held during the call. Otherwise a host
 * whose function waits for a lock of its own, such as an interpreter lock, could deadlock with a
 * thread that holds that lock and warns.
 */
#include "base/base.h"

#include <pthread.h>
#include <stdarg.h>

#include <catena/log.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
typedef struct {
    ctn_log_fn fn;
    void *user;
} sink;
static sink warnings, notices;

static void set(sink *s, ctn_log_fn fn, void *user)
{
    pthread_mutex_lock(&lock);
    *s = (sink){fn, user};
    pthread_mutex_unlock(&lock);
}

void ctn_set_log(ctn_log_fn fn, void *user)
{
    set(&warnings, fn, user);
}

void ctn_set_notice(ctn_log_fn fn, void *user)
{
    set(&notices, fn, user);
}

static void tell(const sink *s, const char *fmt, va_list args)
{
    pthread_mutex_lock(&lock);
    const sink to = *s;
    pthread_mutex_unlock(&lock);
    if (to.fn == NULL) return;
    char text[2048]; /* longer messages are cut, because a warning must not allocate */
    if (vsnprintf(text, sizeof text, fmt, args) < 0) return;
    ctn__text_clean(text); /* it may contain names from files */
    ctn__text_join(fmt, text);
    to.fn(to.user, text);
}

void ctn__warn(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    tell(&warnings, fmt, args);
    va_end(args);
}

void ctn__notice(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    tell(&notices, fmt, args);
    va_end(args);
}
