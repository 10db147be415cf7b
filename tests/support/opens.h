/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the files and folders that each rank opens. A thread that stands for a rank says where its
 * opens are counted (opens_of); other threads are not counted. Include this once in a program, and
 * define _GNU_SOURCE.
 */
#ifndef TESTS_OPENS_H
#define TESTS_OPENS_H

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

static _Thread_local atomic_long *opens_of; /* NULL: not counted */

#define REAL(name, type) ((type)dlsym(RTLD_NEXT, name))

static void opens_add(void)
{
    if (opens_of) ++*opens_of;
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    opens_add();
    return REAL("open", int (*)(const char *, int, mode_t))(path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    opens_add();
    return REAL("fopen", FILE * (*)(const char *, const char *))(path, mode);
}

DIR *opendir(const char *path)
{
    opens_add();
    return REAL("opendir", DIR * (*)(const char *))(path);
}

#endif
