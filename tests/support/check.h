/* SPDX-License-Identifier: Apache-2.0
 *
 * What many tests check alike: a call that must fail with a message, a file of bytes, and an allocator
 * that fails after a number of calls and counts what is alive.
 */
#ifndef CTN_TESTS_CHECK_H
#define CTN_TESTS_CHECK_H

#include <stddef.h>

#include <catena/base.h>

/* The call fails with this status, and the message has this part; the error is cleared. */
void assert_fails(ctn_status got, ctn_status want, const char *part);
void write_bytes(const char *path, const void *data, size_t n);

/* ctn_set_allocator(&(ctn_allocator){failing_alloc, failing_release, &f}) */
typedef struct {
    int left, live; /* calls that succeed still; blocks not given back */
} failing;
void *failing_alloc(void *user, size_t bytes, size_t align);
void failing_release(void *user, void *p);

#endif
