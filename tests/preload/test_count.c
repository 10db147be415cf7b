/* SPDX-License-Identifier: Apache-2.0
 *
 * Test of the allocation counter, run under LD_PRELOAD: it must count exactly and distinguish
 * the library named libcatena.so from the program. Does not use cmocka, which would allocate in
 * between.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int stand_in_allocate(void);

int main(void)
{
    void (*counts)(uint64_t *, uint64_t *);
    *(void **)&counts = dlsym(RTLD_DEFAULT, "preload_counts");
    if (!counts) {
        fprintf(stderr, "preload_counts not found: run with LD_PRELOAD=libpreload_count.so\n");
        return 1;
    }
    uint64_t catena[3], other[3];
    void *odd = NULL;
    counts(&catena[0], &other[0]);
    int bad = stand_in_allocate();
    counts(&catena[1], &other[1]);
    void *volatile p = malloc(1);
    void *volatile q = realloc(p, 1000);
    free(q);
    int refused = posix_memalign(&odd, 3, 8) == EINVAL;
    counts(&catena[2], &other[2]);

    int ok = !bad && refused && catena[1] - catena[0] == 5 && other[1] - other[0] == 0 &&
             catena[2] - catena[1] == 0 && other[2] - other[1] == 3;
    if (!ok)
        fprintf(stderr,
                "library: %d and %d, expected 5 and 0; program: %d and %d, expected 0 and 3\n",
                (int)(catena[1] - catena[0]), (int)(other[1] - other[0]),
                (int)(catena[2] - catena[1]), (int)(other[2] - other[1]));
    return !ok;
}
