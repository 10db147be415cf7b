/* SPDX-License-Identifier: Apache-2.0
 *
 * Failures are reported through cmocka, as if they came from the test itself.
 */
#include "support/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void assert_fails(ctn_status got, ctn_status want, const char *part)
{
    if (got != want || !strstr(ctn_error_message(), part))
        fail_msg("status %d, expected %d; \"%s\" not in \"%s\"", got, want, part,
                 ctn_error_message());
    ctn_error_clear();
}

void write_bytes(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void *aligned(size_t bytes, size_t align)
{
    void *p = NULL;
    int error = posix_memalign(&p, align < sizeof p ? sizeof p : align, bytes ? bytes : 1);
    /* What is read before it is written is neither 0 nor negative. */
    if (!error) memset(p, 0x11, bytes < 4096 ? bytes : 4096);
    return error ? NULL : p;
}

void *failing_alloc(void *user, size_t bytes, size_t align)
{
    failing *f = user;
    void *p = f->left-- > 0 ? aligned(bytes, align) : NULL;
    f->live += p != NULL;
    return p;
}

void failing_release(void *user, void *p)
{
    ((failing *)user)->live -= p != NULL;
    free(p);
}

void *failing_once_alloc(void *user, size_t bytes, size_t align)
{
    failing_once *f = user;
    void *p = ++f->calls == f->fail_at ? NULL : aligned(bytes, align);
    f->live += p != NULL;
    return p;
}

void failing_once_release(void *user, void *p)
{
    ((failing_once *)user)->live -= p != NULL;
    free(p);
}
