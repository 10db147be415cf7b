/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of newer C libraries, for the portable archive and the wheel: what packaging/bundle.py
 * puts into them was built with a newer C library than they may ask for. It removes the versions of
 * exactly the symbols that this file defines, so the loader takes them from here or from the C
 * library, whichever comes first. Both do the same. Must be compiled as C99, so that it calls the
 * old functions itself.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The declarations of the new names, which headers give only to newer dialects of C. */
extern char __libc_single_threaded;
long __isoc23_strtol(const char *s, char **end, int base);
long long __isoc23_strtoll(const char *s, char **end, int base);
unsigned long __isoc23_strtoul(const char *s, char **end, int base);
unsigned long long __isoc23_strtoull(const char *s, char **end, int base);
int __isoc23_sscanf(const char *s, const char *format, ...);
int __isoc23_fscanf(FILE *file, const char *format, ...);
int pidfd_send_signal(int process, int number, siginfo_t *info, unsigned flags);
pid_t gettid(void);
int stat64(const char *path, struct stat *out);
int lstat64(const char *path, struct stat *out);
int fstat64(int file, struct stat *out);
int fstatat64(int folder, const char *path, struct stat *out, int flags);

/* If true, reference counts need no atomic operations. 0 is always right. */
char __libc_single_threaded = 0;

/* The new functions differ only in that they also accept the prefix 0b, which no caller needs. */
long __isoc23_strtol(const char *s, char **end, int base)
{
    return strtol(s, end, base);
}

long long __isoc23_strtoll(const char *s, char **end, int base)
{
    return strtoll(s, end, base);
}

unsigned long __isoc23_strtoul(const char *s, char **end, int base)
{
    return strtoul(s, end, base);
}

unsigned long long __isoc23_strtoull(const char *s, char **end, int base)
{
    return strtoull(s, end, base);
}

int __isoc23_sscanf(const char *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsscanf(s, format, arguments);
    va_end(arguments);
    return n;
}

int __isoc23_fscanf(FILE *file, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vfscanf(file, format, arguments);
    va_end(arguments);
    return n;
}

int pidfd_send_signal(int process, int number, siginfo_t *info, unsigned flags)
{
    return (int)syscall(SYS_pidfd_send_signal, process, number, info, flags);
}

pid_t gettid(void)
{
    return (pid_t)syscall(SYS_gettid);
}

/* Older C libraries have these under other names only. On 64-bit systems the kernel fills the same
 * struct, and stat and stat64 are the same. */
static int get(int folder, const char *path, void *out, int flags)
{
    return (int)syscall(SYS_newfstatat, folder, path, out, flags);
}

int stat(const char *path, struct stat *out)
{
    return get(AT_FDCWD, path, out, 0);
}

int lstat(const char *path, struct stat *out)
{
    return get(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}

int fstat(int file, struct stat *out)
{
    return (int)syscall(SYS_fstat, file, out);
}

int fstatat(int folder, const char *path, struct stat *out, int flags)
{
    return get(folder, path, out, flags);
}

int stat64(const char *path, struct stat *out)
{
    return get(AT_FDCWD, path, out, 0);
}

int lstat64(const char *path, struct stat *out)
{
    return get(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}

int fstat64(int file, struct stat *out)
{
    return (int)syscall(SYS_fstat, file, out);
}

int fstatat64(int folder, const char *path, struct stat *out, int flags)
{
    return get(folder, path, out, flags);
}
