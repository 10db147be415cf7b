/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of newer C libraries, for the wheel: what dev/wheel puts into it was built with a newer
 * one than the wheel may ask for. dev/wheel removes the versions of exactly the symbols that this
 * file defines. It must be compiled as C99, so that it calls the old functions itself.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The declarations of the new names, which headers give only to newer dialects of C. */
long __isoc23_strtol(const char *s, char **end, int base);
long long __isoc23_strtoll(const char *s, char **end, int base);
unsigned long __isoc23_strtoul(const char *s, char **end, int base);
unsigned long long __isoc23_strtoull(const char *s, char **end, int base);
int __isoc23_sscanf(const char *s, const char *format, ...);
int __isoc23_fscanf(FILE *file, const char *format, ...);
int pidfd_send_signal(int process, int number, siginfo_t *info, unsigned flags);

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
