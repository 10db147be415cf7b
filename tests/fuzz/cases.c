/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a fuzz target over changed files, all in one process. Case number k is a function of k and
 * of the corpus alone. A case that crashes, or that takes more than SECONDS of processor time or
 * MEGABYTES of memory, is written to a file, and its number is printed.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { SECONDS = 5, WALL_SECONDS = 120, MEGABYTES = 2048, LARGEST = 1 << 20 };

/* The case that runs. A signal handler reads it. */
static struct {
    const uint8_t *data;
    size_t bytes;
    unsigned long long number;
    clock_t begin;
    time_t wall;
    long pages; /* the process had before */
} now;

static void print_error(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0) _exit(2);
}

/* Only calls that a signal handler may make, and snprintf of numbers, which in practice is one. */
static void write_case(void)
{
    char name[64], text[160];
    if (!now.data) return;
    snprintf(name, sizeof name, "hostile-%llu", now.number);
    const int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd >= 0) {
        if (write(fd, now.data, now.bytes) < 0) print_error("cannot write the case\n");
        close(fd);
    }
    snprintf(text, sizeof text, "case %llu failed (--cases 1 --seed %llu); its file is %s\n",
             now.number, now.number, name);
    print_error(text);
    now.data = NULL;
}

static void on_signal(int number)
{
    write_case();
    signal(number, SIG_DFL);
    raise(number);
}

static long resident_pages(void)
{
    char text[64] = "";
    const int fd = open("/proc/self/statm", O_RDONLY);
    if (fd < 0) return 0;
    const ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    const char *second = n > 0 ? strchr(text, ' ') : NULL;
    return second ? atol(second) : 0;
}

static void on_tick(int number)
{
    (void)number;
    if (!now.data) return;
    const long long mb = (resident_pages() - now.pages) * (sysconf(_SC_PAGESIZE) >> 10) >> 10;
    const char *why = NULL;
    if ((clock() - now.begin) / CLOCKS_PER_SEC >= SECONDS) why = "it takes too long\n";
    else if (time(NULL) - now.wall >= WALL_SECONDS) why = "it waits for something\n";
    else if (mb >= MEGABYTES) why = "it takes too much memory\n";
    if (!why) return;
    print_error(why);
    abort(); /* a stack trace follows from the core or the debugger */
}

extern void __sanitizer_set_death_callback(void (*)(void)) __attribute__((weak));

static void watch(void)
{
    static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    const bool sanitized = __sanitizer_set_death_callback != NULL;
    if (sanitized) __sanitizer_set_death_callback(write_case);
    for (int i = 0; i < (sanitized ? 1 : 5); i++) signal(signals[i], on_signal);
    struct sigaction tick = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &tick, NULL);
    const struct itimerval tenth = {{0, 100000}, {0, 100000}};
    setitimer(ITIMER_REAL, &tenth, NULL);
}

static void run_case(const uint8_t *data, size_t bytes, uint64_t number)
{
    /* exact size, so that a sanitizer sees reads beyond the end */
    uint8_t *exact = malloc(bytes ? bytes : 1);
    if (!exact) return;
    memcpy(exact, data, bytes);
    now.bytes = bytes;
    now.number = number;
    now.begin = clock();
    now.wall = time(NULL);
    now.pages = resident_pages();
    now.data = exact;
    LLVMFuzzerTestOneInput(exact, bytes);
    now.data = NULL;
    free(exact);
}

static bool write_file(const char *folder, const uint8_t *data, size_t bytes, uint64_t number)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%llu", folder, (unsigned long long)number);
    FILE *f = fopen(path, "wb");
    const bool good = f && fwrite(data, 1, bytes, f) == bytes;
    if (!good) perror(path);
    return f && fclose(f) == 0 && good;
}

int fuzz_cases(const fuzz_seed *seeds, size_t n, uint64_t count, uint64_t first, const char *folder)
{
    const size_t room = LARGEST + (1 << 16);
    fuzz_doc d = {.data = malloc(room), .room = room};
    if (!d.data) return 1;
    if (!folder) watch();
    int code = 0;
    for (uint64_t k = first; k < first + count && code == 0; k++) {
        d.random.state = k * 0x2545f4914f6cdd1du;
        const fuzz_seed *seed = &seeds[fuzz_draw(&d.random, n)];
        const fuzz_seed *other = &seeds[fuzz_draw(&d.random, n)];
        memcpy(d.data, seed->data, seed->bytes);
        d.bytes = seed->bytes;
        d.other = other->data;
        d.other_bytes = other->bytes;
        fuzz_change(&d);
        if (!folder) run_case(d.data, d.bytes, k);
        else if (!write_file(folder, d.data, d.bytes, k)) code = 1;
    }
    free(d.data);
    printf("%llu cases from seed %llu\n", (unsigned long long)count, (unsigned long long)first);
    return code;
}
