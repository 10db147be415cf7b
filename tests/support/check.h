/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers that many tests use: assert that a call fails with a message, write a file, and
 * allocators that fail on request and count live blocks.
 */
#ifndef CTN_TESTS_CHECK_H
#define CTN_TESTS_CHECK_H

#include <stdatomic.h>
#include <stddef.h>

#include <catena/base.h>

/* Asserts that the call failed with this status and a message that contains `part`, and clears
 * the error. */
void assert_fails(ctn_status got, ctn_status want, const char *part);
void write_bytes(const char *path, const void *data, size_t n);

/* ctn_set_allocator(&(ctn_allocator){failing_alloc, failing_release, &f}) */
typedef struct {
    int left, live; /* allocations that still succeed; blocks not freed yet */
} failing;
void *failing_alloc(void *user, size_t bytes, size_t align);
void failing_release(void *user, void *p);

/* Fails once, at call number `fail_at`, and succeeds before and after it. */
typedef struct {
    long fail_at; /* counted from 1; 0: never */
    atomic_long calls, live;
} failing_once;
void *failing_once_alloc(void *user, size_t bytes, size_t align);
void failing_once_release(void *user, void *p);

#endif
