/* SPDX-License-Identifier: Apache-2.0
 *
 * A library with the file name of libcatena that makes a known number of allocations, for
 * test_count.c.
 */
#include <stdlib.h>

__attribute__((visibility("default"))) int stand_in_allocate(void);

/* Five allocations, one of each kind. */
int stand_in_allocate(void)
{
    void *volatile a = malloc(10);
    void *volatile b = calloc(2, 10);
    void *volatile c = realloc(NULL, 10);
    void *volatile d = aligned_alloc(64, 64);
    void *e = NULL;
    int bad = posix_memalign(&e, 64, 100) != 0 || !a || !b || !c || !d;
    free(a);
    free(b);
    free(c);
    free(d);
    free(e);
    return bad;
}
