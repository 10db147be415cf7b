/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of text files: line ends, parallel files, a file that is not held in memory, batches, a
 * failing allocator.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <catena/datasets.h>

#include <cmocka.h>

#include "support/check.h"

static void write_text(const char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}

static void check_line(ctn_dataset *ds, int64_t i, const char *line)
{
    char text[64] = {0};
    assert_int_equal(ctn_dataset_length(ds, 0, i), strlen(line));
    assert_int_equal(ctn_dataset_get(ds, i, (void *[]){text}), CTN_OK);
    assert_string_equal(text, line);
}

static void test_ends(void **state)
{
    (void)state;
    static const char *const same[] = {"one\n\nthr\xc3\xa9\n \r x\n", "one\n\nthr\xc3\xa9\n \r x",
                                       "one\r\n\r\nthr\xc3\xa9\r\n \r x\r\n"};
    ctn_dataset *ds = NULL;
    for (int k = 0; k < 3; k++) {
        write_text("a.txt", same[k]);
        assert_int_equal(ctn_text_lines_open(&ds, 1, (const char *[]){"a.txt"}), CTN_OK);
        assert_int_equal(ctn_dataset_count(ds), 4);
        check_line(ds, 0, "one");
        check_line(ds, 1, "");
        check_line(ds, 2, "thr\xc3\xa9");
        check_line(ds, 3, " \r x");
        char name[32];
        ctn_dataset_name(ds, 2, name, sizeof name);
        assert_string_equal(name, "a.txt:3");
        ctn_dataset_free(ds);
    }
    write_text("a.txt", "\n");
    assert_int_equal(ctn_text_lines_open(&ds, 1, (const char *[]){"a.txt"}), CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), 1);
    check_line(ds, 0, "");
    ctn_dataset_free(ds);
}

/* Lines longer than a piece of the scan, and line ends where two pieces meet. */
static void test_pieces(void **state)
{
    (void)state;
    enum { PIECE = 16 << 10 };
    static char text[3 * PIECE + 1], line[3 * PIECE];
    for (int shift = -2; shift <= 1; shift++) {
        ctn_dataset *ds = NULL;
        memset(text, 'x', sizeof text - 1);
        memcpy(text + PIECE + shift, "\r\n", 2);
        write_text("a.txt", text);
        assert_int_equal(ctn_text_lines_open(&ds, 1, (const char *[]){"a.txt"}), CTN_OK);
        assert_int_equal(ctn_dataset_count(ds), 2);
        assert_int_equal(ctn_dataset_length(ds, 0, 0), PIECE + shift);
        assert_int_equal(ctn_dataset_length(ds, 0, 1), 2 * PIECE - shift - 2);
        assert_int_equal(ctn_dataset_get(ds, 1, (void *[]){line}), CTN_OK);
        for (int i = 0; i < 2 * PIECE - shift - 2; i++) assert_int_equal(line[i], 'x');
        ctn_dataset_free(ds);
    }
}

static void test_pairs(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    ctn_sampler *order = NULL;
    ctn_loader *l = NULL;
    ctn_batch b;
    char de[8] = {0}, en[8] = {0};
    write_text("a.de", "Hund\nKatze\n");
    write_text("a.en", "dog\ncat\n");
    assert_int_equal(ctn_text_lines_open(&ds, 2, (const char *[]){"a.de", "a.en"}), CTN_OK);
    assert_int_equal(ctn_dataset_fields(ds), 2);
    assert_int_equal(ctn_dataset_get(ds, 1, (void *[]){de, en}), CTN_OK);
    assert_string_equal(de, "Katze");
    assert_string_equal(en, "cat");
    assert_int_equal(ctn_sampler_sequential(&order, 2), CTN_OK);
    assert_int_equal(ctn_loader_new(&l, ds, order, CTN_OPT(ctn_loader_opt, .batch = 2)), CTN_OK);
    assert_int_equal(ctn_loader_next(l, &b), CTN_OK);
    assert_int_equal(b.fields, 4);
    assert_memory_equal(b.data[0], "Hund\0Katze", 10);
    assert_memory_equal(b.data[1], "dogcat", 6);
    assert_int_equal(((int64_t *)b.data[2])[0], 4);
    ctn_loader_free(l);
    ctn_sampler_free(order);
    ctn_dataset_free(ds);
}

static void test_errors(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    const char *many[9] = {"a.de", "a.de", "a.de", "a.de", "a.de", "a.de", "a.de", "a.de", "a.de"};
    write_text("a.de", "Hund\nKatze\n");
    write_text("b.en", "dog\n");
    write_text("empty", "");
    assert_fails(ctn_text_lines_open(&ds, 2, (const char *[]){"a.de", "b.en"}), CTN_EFORMAT,
                 "a.de has 2 lines, b.en has 1");
    assert_fails(ctn_text_lines_open(&ds, 1, (const char *[]){"nowhere"}), CTN_EIO, "nowhere");
    assert_fails(ctn_text_lines_open(&ds, 1, (const char *[]){"empty"}), CTN_EFORMAT, "is empty");
    assert_fails(ctn_text_lines_open(&ds, 9, many), CTN_EARG, "got 9 files, expected 1 to 8");
    assert_fails(ctn_text_lines_open(&ds, 0, many), CTN_EARG, "got 0 files");
    assert_fails(ctn_text_lines_open(&ds, 1, (const char *[]){NULL}), CTN_EARG, "NULL");
    assert_null(ds);
}

static failing memory;

static void test_failing_allocator(void **state)
{
    (void)state;
    ctn_status st = CTN_ENOMEM;
    int n = 0;
    write_text("a.de", "Hund\nKatze\n");
    write_text("a.en", "dog\ncat\n");
    assert_int_equal(ctn_set_allocator(&(ctn_allocator){failing_alloc, failing_release, &memory}),
                     CTN_OK);
    for (; st == CTN_ENOMEM; n++) {
        ctn_dataset *ds = NULL;
        memory.left = n;
        st = ctn_text_lines_open(&ds, 2, (const char *[]){"a.de", "a.en"});
        ctn_dataset_free(ds);
        ctn_error_clear();
        assert_int_equal(memory.live, 0);
    }
    assert_int_equal(st, CTN_OK);
    assert_true(n > 4);
    assert_int_equal(ctn_set_allocator(NULL), CTN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failing_allocator), /* must run before anything else allocates */
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
