/* SPDX-License-Identifier: Apache-2.0
 *
 * Unit tests of the trace layer: counters, the ring of spans, the Chrome trace file.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#include "trace/trace.h"

static void test_counters(void **state)
{
    (void)state;
    ctn__trace *t = ctn__trace_new(0);
    assert_non_null(t);
    ctn__trace_add(t, CTN__COUNT_PLAN_HITS, 2);
    ctn__trace_add(t, CTN__COUNT_PLAN_HITS, 3);
    ctn__trace_set(t, CTN__COUNT_PLAN_BYTES, 1000);
    assert_int_equal(ctn__trace_count(t, CTN__COUNT_PLAN_HITS), 5);
    assert_int_equal(ctn__trace_count(t, CTN__COUNT_PLAN_BYTES), 1000);
    assert_string_equal(ctn__counter_name(CTN__COUNT_PLAN_HITS), "plan_hits");
    assert_false(ctn__trace_spans_on(t));
    ctn__trace_span(t, "ignored", 1, 2, 0);
    assert_int_equal(ctn__trace_spans(t), 0);
    ctn__trace_free(t);
    ctn__trace_free(NULL);
    assert_null(ctn__trace_new(-1));
    assert_int_equal(ctn_error_status(), CTN_EARG);
    ctn_error_clear();
}

static void test_ring(void **state)
{
    (void)state;
    ctn__trace *t = ctn__trace_new(4);
    assert_non_null(t);
    uint64_t before = ctn_allocations();
    ctn__span s;
    assert_false(ctn__trace_get(t, 0, &s));
    for (uint64_t i = 0; i < 10; i++) ctn__trace_span(t, "op", i * 10, i * 10 + 5, (int)i);
    assert_int_equal(ctn__trace_spans(t), 4);
    assert_int_equal(ctn__trace_lost(t), 6);
    for (int i = 0; i < 4; i++) {
        assert_true(ctn__trace_get(t, i, &s));
        assert_int_equal(s.lane, 6 + i);
        assert_int_equal(s.t0, (6 + i) * 10);
    }
    assert_false(ctn__trace_get(t, 4, &s));
    assert_false(ctn__trace_get(t, -1, &s));
    assert_int_equal(ctn_allocations(), before);
    ctn__trace_free(t);
}

static void *record(void *arg)
{
    ctn__trace *t = arg;
    for (int i = 0; i < 1000; i++) {
        ctn__trace_span(t, "thread", 1, 2, 3);
        ctn__trace_add(t, CTN__COUNT_KERNELS, 1);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    ctn__trace *t = ctn__trace_new(100);
    pthread_t th[4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&th[i], NULL, record, t), 0);
    for (int i = 0; i < 4; i++) pthread_join(th[i], NULL);
    assert_int_equal(ctn__trace_spans(t) + ctn__trace_lost(t), 4000);
    assert_int_equal(ctn__trace_count(t, CTN__COUNT_KERNELS), 4000);
    ctn__trace_free(t);
}

static void test_chrome(void **state)
{
    (void)state;
    ctn__trace *t = ctn__trace_new(8);
    char path[] = "/tmp/catena_trace_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    ctn__trace_span(t, "conv \"3x3\"\\\n", 5001500, 5003250, 0);
    ctn__trace_span(t, "relu", 5000000, 5000007, 1);
    ctn__trace_add(t, CTN__COUNT_PLAN_MISSES, 1);
    assert_int_equal(ctn__trace_write_chrome(t, path), CTN_OK);
    char text[4096];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    fclose(f);
    unlink(path);
    assert_non_null(strstr(text, "{\"traceEvents\":[\n"
                                 "{\"name\":\"conv \\\"3x3\\\"\\\\\\u000a\",\"ts\":1.500,"
                                 "\"dur\":1.750,\"ph\":\"X\",\"pid\":0,\"tid\":0},\n"
                                 "{\"name\":\"relu\",\"ts\":0.000,\"dur\":0.007,\"ph\":\"X\","
                                 "\"pid\":0,\"tid\":1}]"));
    assert_non_null(strstr(text, "\"plan_misses\":1"));
    assert_string_equal(text + n - 3, "}}\n");
    assert_int_equal(ctn__trace_write_chrome(t, "/nonexistent/folder/x.json"), CTN_EIO);
    assert_non_null(strstr(ctn_error_message(), "/nonexistent/folder/x.json"));
    ctn_error_clear();
    if (access("/dev/full", W_OK) == 0)
        assert_int_equal(ctn__trace_write_chrome(t, "/dev/full"), CTN_EIO);
    ctn_error_clear();
    ctn__trace_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_chrome),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
