/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection by which rank 0 reports its exit code to `catena launch`: strangers who connect
 * and are silent, or never come to an end, neither hold it up nor keep the report away.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "start/verdict.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli.h"

enum { STRANGERS = 100 };

double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int dial(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    char token[64];
    int port = 0;
    assert_int_equal(sscanf(getenv("CATENA_LAUNCHED_BY"), "%40s %d", token, &port), 2);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a.sin_port = htons((uint16_t)port);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static void test_strangers(void **state)
{
    (void)state;
    static const char *const lines[] = {"", "x", "0123456789012345678901234567890 0\n", "%s %n"};
    verdict v;
    int fd[STRANGERS];
    verdict_open(&v, true);
    assert_true(v.door >= 0);
    for (int i = 0; i < STRANGERS; i++) {
        const char *line = lines[i % 4];
        fd[i] = dial();
        assert_int_equal(send(fd[i], line, strlen(line), 0), (ssize_t)strlen(line));
    }
    const double start = now_s();
    assert_false(verdict_read(&v));
    assert_true(now_s() - start < 0.5);
    verdict_begin();
    verdict_send(EXIT_DATA);
    assert_true(verdict_read(&v));
    assert_int_equal(v.code, EXIT_DATA);
    for (int i = 0; i < STRANGERS; i++) close(fd[i]);
    verdict_close(&v);
}

/* A report that comes in pieces is waited for, but not within a call. */
static void test_pieces(void **state)
{
    (void)state;
    verdict v;
    verdict_open(&v, true);
    const int fd = dial();
    assert_int_equal(send(fd, v.token, 5, 0), 5);
    assert_false(verdict_read(&v));
    assert_int_equal(send(fd, v.token + 5, strlen(v.token) - 5, 0), (ssize_t)strlen(v.token) - 5);
    assert_false(verdict_read(&v));
    assert_int_equal(send(fd, " 0\n", 3, 0), 3);
    assert_true(verdict_read(&v));
    assert_int_equal(v.code, EXIT_DONE);
    close(fd);
    verdict_close(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
