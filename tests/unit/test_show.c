/* SPDX-License-Identifier: Apache-2.0
 *
 * What a training shows as text: bars and tables, compared character by character at 80 and 40
 * columns, and never wider than the terminal at any width; short forms of numbers; what the
 * environment decides; escaping of names from outside.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/ok.h"
#include "train/show.h"

#include <cmocka.h>

/* ---- text ------------------------------------------------------------------------------------ */

/* The widest line in characters; escape sequences take no space. */
static int widest(const char *s)
{
    int most = 0, n = 0;
    for (; *s != 0; s++) {
        if (*s == '\n' || *s == '\r') n = 0;
        else if (*s == 0x1b) s += strcspn(s, "AJKmh");
        else if ((*s & 0xc0) != 0x80) n++;
        if (n > most) most = n;
    }
    return most;
}

static const ctn__view middle = {.p = {.iteration = 14200,
                                       .epoch = 14,
                                       .part = 0.26,
                                       .total = 0.4753,
                                       .samples = 1817600,
                                       .seconds = 1480},
                                 .rate = 1228.4,
                                 .left = 1634,
                                 .loss = 0.43118};

static void bars_are(const char *want, const ctn__view *v, int columns, bool utf8)
{
    ctn__text t = {0};
    ctn__show s = {.utf8 = utf8};
    ctn__progress_bars(&t, v, &s, columns);
    assert_string_equal(t.s, want);
    ctn__text_free(&t);
}

static void test_bars(void **state)
{
    (void)state;
    bars_are("total    ━━━━━━━━━━━━━━━━╸──────────────────  47%   1228 items/s    27:14 left\n"
             "epoch 15 ━━━━━━━━━──────────────────────────  26%  step 14200    loss 0.4312",
             &middle, 80, true);
    bars_are("total    ####.....  47%  1228/s   27:14\n"
             "epoch 15 ##.......  26% loss 0.4312",
             &middle, 40, false);
    ctn__view end = middle; /* the last step belongs to the epoch that it ends */
    end.p.epoch = 30;
    end.p.part = 0;
    end.p.total = 1;
    end.p.epoch_ended = 1;
    end.left = 0;
    bars_are("total    ━━━━━━━━━ 100%  1228/s    0:00\n"
             "epoch 30 ━━━━━━━━━ 100% loss 0.4312",
             &end, 40, true);
    ctn__view open = middle; /* open-ended; nothing is known yet */
    open.p.total = open.rate = open.left = -1;
    open.loss = NAN;
    bars_are("total    .........   --     -/s   24:40\n"
             "epoch 15 ##.......  26% loss -",
             &open, 40, false);
}

/* Bars of 10 characters: rounded down to a half, or to a whole one without UTF-8; never longer. */
static void test_bar_lengths(void **state)
{
    (void)state;
    static const struct {
        double part;
        const char *wide, *plain, *percent;
    } cases[] = {
        {0, "──────────", "..........", "  0%"},    {0.049, "──────────", "..........", "  4%"},
        {0.05, "╸─────────", "..........", "  5%"}, {0.125, "━─────────", "#.........", " 12%"},
        {0.15, "━╸────────", "#.........", " 15%"}, {0.999, "━━━━━━━━━╸", "#########.", " 99%"},
        {1, "━━━━━━━━━━", "##########", "100%"},    {1.7, "━━━━━━━━━━", "##########", "100%"},
        {-1, "──────────", "..........", "  --"},   {NAN, "──────────", "..........", "  --"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int utf8 = 0; utf8 < 2; utf8++) {
            char want[256];
            const char *bar = utf8 ? cases[i].wide : cases[i].plain;
            ctn__view v = middle;
            v.p.total = v.p.part = cases[i].part;
            /* 24:40 is the time since the start, if the end is not known. */
            snprintf(want, sizeof want,
                     "total    %s %s  1228/s   %s\n"
                     "epoch 15 %s %s loss 0.4312",
                     bar, cases[i].percent, v.p.total >= 0 ? "27:14" : "24:40", bar,
                     cases[i].percent);
            bars_are(want, &v, 41, utf8);
        }
    /* Colours: the part that is done, the rest dimmed; nothing done has no first colour. */
    ctn__text t = {0};
    ctn__view v = middle;
    v.p.part = 0;
    v.p.total = 0.1;
    ctn__progress_bars(&t, &v, &(ctn__show){.colour = true, .terminal = true}, 41);
    assert_string_equal(t.s,
                        "total    \x1b[36m#\x1b[0;2m.........\x1b[0m  10%  1228/s   27:14\x1b[K\n"
                        "epoch 15 \x1b[0;2m..........\x1b[0m   0% loss 0.4312");
    ctn__text_free(&t);
}

/* At each level of detail a bar has a least length; below it, the next level is used. */
static void test_bar_levels(void **state)
{
    (void)state;
    static const struct {
        int columns;
        const char *text;
    } cases[] = {
        {61, "total    #######.........  47%   1228 items/s    27:14 left\n"
             "epoch 15 ####............  26%  step 14200    loss 0.4312"},
        {60, "total    #############................  47%  1228/s   27:14\n"
             "epoch 15 #######......................  26% loss 0.4312"},
        {39, "total    ###.....  47%  1228/s   27:14\n"
             "epoch 15 ##......  26% loss 0.4312"},
        {38, "total    ######.......  47%     27:14\n"
             "epoch 15 ###..........  26%    0.4312"},
        {31, "total    ##....  47%     27:14\n"
             "epoch 15 #.....  26%    0.4312"},
        {30, "total    #######........  47%\n"
             "epoch 15 ###............  26%"},
        {17, "total    ..  47%\n"
             "epoch 15 ..  26%"},
        {16, "####......  47%\n"
             "##........  26%"},
        {9, "#..  47%\n"
            "...  26%"},
        {8, "  47%\n"
            "  26%"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        bars_are(cases[i].text, &middle, cases[i].columns, false);
}

static void test_width(void **state)
{
    (void)state;
    ctn__view v[3] = {middle, middle, middle};
    v[1].p.iteration = 1234567890123;
    v[1].p.epoch = 1234567;
    v[1].rate = 123456789;
    v[1].left = 1e8;
    v[1].loss = -1.2345e-300;
    v[2].p.total = v[2].rate = v[2].left = -1;
    v[2].loss = NAN;
    static const char *const names[] = {"train/loss", "lr", "val/a name that is quite long",
                                        "val/accuracy", "val/loss"};
    const double values[] = {-1.2345e-300, 12345678, -99999, NAN, INFINITY};
    for (int columns = 2; columns < 200; columns++)
        for (int k = 0; k < 12; k++) {
            ctn__text t = {0};
            ctn__show s = {.utf8 = k & 1, .colour = k & 2, .terminal = true};
            ctn__progress_bars(&t, &v[k / 4], &s, columns);
            assert_true(columns < 6 || widest(t.s) < columns);
            t.n = 0;
            ctn__table_header(&t, names, 5, &s, columns);
            ctn__table_line(&t, names, values, 5, &v[0].p, columns);
            assert_true(columns < 7 || widest(t.s) < columns);
            ctn__text_free(&t);
        }
}

static void test_line(void **state)
{
    (void)state;
    ctn__text t = {0};
    ctn__progress_line(&t, &middle);
    assert_string_equal(t.s, " 47%  epoch 15 (26%), step 14200, loss 0.4312, 1228 items/s, 24:40, "
                             "27:14 left\n");
    ctn__text_free(&t);
}

static void test_table(void **state)
{
    (void)state;
    static const char *const names[] = {"train/accuracy", "train/loss", "lr", "val/loss",
                                        "val/accuracy"};
    const double values[] = {0.4821, 1.43118, 0.1, NAN, 0.60123};
    ctn_progress p = {.iteration = 391, .epoch = 1, .epoch_ended = 1, .seconds = 32};
    ctn__show plain = {0}, bold = {.colour = true};
    ctn__text t = {0};
    ctn__table_header(&t, names, 5, &plain, 80);
    ctn__table_line(&t, names, values, 5, &p, 80);
    assert_string_equal(
        t.s, "                     train                           val\n"
             "epoch       step  accuracy      loss        lr      loss  accuracy      time\n"
             "    1        391    0.4821    1.4312    0.1000         -    0.6012      0:32\n");
    t.n = 0;
    p.epoch_ended = 0;
    p.part = 0.5;
    ctn__table_header(&t, names, 5, &bold, 40);
    ctn__table_line(&t, names, values, 5, &p, 40);
    assert_string_equal(t.s, "\x1b[1m          train       val\n"
                             "epoch      loss      loss  accuracy\x1b[0m\n"
                             " 1.50    1.4312         -    0.6012\n");
    ctn__text_free(&t);
}

static void test_forms(void **state)
{
    (void)state;
    static const struct {
        double v;
        const char *value, *count, *time;
    } form[] = {
        {0, "0.0000", "0.00", "0:00"},
        {0.000012345, "1.23e-05", "0.00", "0:00"},
        {59.6, "59.6000", "59.6", "1:00"},
        {999.96, "999.96", "1000", "16:40"},
        {9999.6, "9999.6", "10.0k", "2:46:40"},
        {123456, "1.23e+05", "123k", "1d 10h"},
        {12345678, "1.23e+07", "12.3M", "142d 21h"},
        {-1, "-1.0000", "-", "--:--"},
        {NAN, "-", "-", "--:--"},
        {INFINITY, "inf", "-", "--:--"},
        {-1.2345e-300, "-1.23e-300", "-", "--:--"},
    };
    char buf[16];
    for (size_t i = 0; i < sizeof form / sizeof form[0]; i++) {
        assert_string_equal(ctn__show_value(buf, form[i].v), form[i].value);
        assert_string_equal(ctn__show_count(buf, form[i].v), form[i].count);
        assert_string_equal(ctn__show_time(buf, form[i].v), form[i].time);
    }
    char comma[] = "1,25", wide[] = "-1\xd9\xab"
                                    "5e-05";
    assert_string_equal(ctn__show_point(comma), "1.25");
    assert_string_equal(ctn__show_point(wide), "-1.5e-05");
}

/* The environment decides about characters and colours. Only a terminal gets escape sequences. */
static void test_where(void **state)
{
    (void)state;
    ctn__show s;
    const ctn_show_opt *there = CTN_OPT(ctn_show_opt, .write = NULL, .terminal = 1);
    unsetenv("LC_CTYPE");
    unsetenv("NO_COLOR");
    setenv("LC_ALL", "", 1);
    setenv("LANG", "de_DE.utf8", 1);
    OK(ctn__show_init(&s, "test", there));
    assert_true(s.terminal && s.colour && s.utf8);
    setenv("LC_ALL", "C", 1);
    setenv("NO_COLOR", "1", 1);
    OK(ctn__show_init(&s, "test", there));
    assert_true(s.terminal && !s.colour && !s.utf8);
    setenv("COLUMNS", "57", 1);
    if (isatty(1) != 1) assert_int_equal(ctn__show_columns(&s), 57);
    unsetenv("NO_COLOR");
    OK(ctn__show_init(&s, "test", CTN_OPT(ctn_show_opt, .terminal = -1)));
    assert_true(!s.terminal && !s.colour);
    setenv("TERM", "dumb", 1);
    OK(ctn__show_init(&s, "test", NULL));
    assert_true(!s.terminal && s.write != NULL);
    unsetenv("LC_ALL");
    assert_int_equal(ctn__show_init(&s, "test", &(ctn_show_opt){.columns = 80}), CTN_EARG);
    ctn_error_clear();
}

static void test_escape(void **state)
{
    (void)state;
    ctn__text t = {0};
    ctn__show_text(&t, "<b a='1'>\"&\"</b>\x1b[2J\n\x80 \xc3\xa4\xed\xa0\x80\xe2\x82", true);
    assert_string_equal(t.s,
                        "&lt;b a=&#39;1&#39;&gt;&quot;&amp;&quot;&lt;/b&gt;?[2J?? \xc3\xa4?????");
    t.n = 0;
    ctn__show_text(&t, "a<\x01\xf0\x9f\x98\x80", false);
    assert_string_equal(t.s, "a<?\xf0\x9f\x98\x80");
    ctn__text_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bars),       cmocka_unit_test(test_bar_lengths),
        cmocka_unit_test(test_bar_levels), cmocka_unit_test(test_width),
        cmocka_unit_test(test_line),       cmocka_unit_test(test_table),
        cmocka_unit_test(test_forms),      cmocka_unit_test(test_where),
        cmocka_unit_test(test_escape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
