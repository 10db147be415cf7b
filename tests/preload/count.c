/* SPDX-License-Identifier: Apache-2.0
 *
 * An LD_PRELOAD library that counts heap allocations, separately for libcatena.so and for
 * everything else (oneDNN, libgomp, libc, the program), by the return address. A benchmark finds
 * preload_counts() with dlsym(RTLD_DEFAULT, "preload_counts"). With PRELOAD_COUNT_PRINT set, the
 * totals are printed to stderr at exit.
 *
 * Invariant: nothing here allocates or takes a lock while counting. The real functions are
 * called by glibc's __libc_ names, because dlsym might allocate, and libcatena's address range
 * is looked up in advance, because dladdr inside of malloc would take the loader's lock.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

EXPORT void preload_counts(uint64_t *catena, uint64_t *other);

static _Atomic uint64_t catena_calls, other_calls;
static _Atomic uintptr_t range_begin, range_end;

static int find_range(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash ? slash + 1 : info->dlpi_name;
    if (strncmp(name, "libcatena.so", strlen("libcatena.so")) != 0) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type != PT_LOAD || !(h->p_flags & PF_X)) continue;
        uintptr_t begin = info->dlpi_addr + h->p_vaddr;
        atomic_store(&range_begin, begin);
        atomic_store(&range_end, begin + h->p_memsz);
    }
    return 1;
}

static inline void count(const void *caller)
{
    uintptr_t at = (uintptr_t)caller;
    int catena = at >= atomic_load_explicit(&range_begin, memory_order_relaxed) &&
                 at < atomic_load_explicit(&range_end, memory_order_relaxed);
    atomic_fetch_add_explicit(catena ? &catena_calls : &other_calls, 1, memory_order_relaxed);
}

EXPORT void *malloc(size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_malloc(bytes);
}

EXPORT void *calloc(size_t n, size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_calloc(n, bytes);
}

EXPORT void *realloc(void *p, size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_realloc(p, bytes);
}

EXPORT void *aligned_alloc(size_t align, size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_memalign(align, bytes);
}

EXPORT int posix_memalign(void **p, size_t align, size_t bytes)
{
    count(__builtin_return_address(0));
    if (align == 0 || align % sizeof(void *) != 0 || (align & (align - 1)) != 0) return EINVAL;
    int before = errno;
    void *got = __libc_memalign(align, bytes);
    errno = before; /* posix_memalign reports errors by its result only */
    if (!got) return ENOMEM;
    *p = got;
    return 0;
}

/* Calls so far, of all threads. Also finds a libcatena.so that was loaded late by dlopen. Its
 * calls before the first preload_counts are counted as other calls. */
EXPORT void preload_counts(uint64_t *catena, uint64_t *other)
{
    if (atomic_load(&range_end) == 0) dl_iterate_phdr(find_range, NULL);
    *catena = atomic_load(&catena_calls);
    *other = atomic_load(&other_calls);
}

/* The loader maps every linked library before it runs the first constructor. */
__attribute__((constructor)) static void start(void)
{
    dl_iterate_phdr(find_range, NULL);
}

__attribute__((destructor)) static void finish(void)
{
    if (!getenv("PRELOAD_COUNT_PRINT")) return;
    uint64_t catena, other;
    preload_counts(&catena, &other);
    fprintf(stderr, "allocations: catena %llu, other %llu\n", (unsigned long long)catena,
            (unsigned long long)other);
}
