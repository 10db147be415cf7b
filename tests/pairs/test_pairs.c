/* SPDX-License-Identifier: Apache-2.0
 *
 * Every pair of features that can meet in one training. A small network is trained with both of
 * them, and three things must hold:
 *
 *   planned = eager   losses and weights agree
 *   resumed = whole   a run that is stopped, saved, loaded and continued has the same bits
 *   ranks             the losses on one rank and on several agree
 *
 * Or the library refuses the pair before the first step, on every rank, with a message. What is
 * refused is in docs/pairs.md, and a pair that behaves differently from that page is a failure.
 *
 *   test_pairs                 a selection of pairs
 *   test_pairs all             all of them
 *   test_pairs write FILE      all of them, and writes the page
 *   test_pairs FEATURE [FEATURE]   the pairs of one feature, or one pair with its values
 *   test_pairs random COUNT [SEED] trainings with up to eight features on 1 to 4 ranks (random.c);
 *                                  COUNT 1 prints the values
 */
#include "pairs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/folder.h"

#ifndef CTN_HAVE_YYJSON
int main(void)
{
    printf("skipped: built without yyjson\n");
    return 77;
}
#else

/* ---- the table ------------------------------------------------------------------------------- */

enum { ALTERNATIVES, TESTED, REFUSED, NOT_HERE };
static verdict table[MOST_FEATURES][MOST_FEATURES];
static char kind[MOST_FEATURES][MOST_FEATURES];

/* Alternatives do not meet. A feature by itself is a pair too. */
static bool meet(int a, int b)
{
    return a == b || !features[a].kind || features[a].kind != features[b].kind;
}

static setup setup_of(int a, int b)
{
    setup s = {0};
    apply(&s, &features[a]);
    apply(&s, &features[b]);
    if (features[a].at == offsetof(setup, ranks)) apply(&s, &features[a]);
    return s;
}

/* What the page says of a pair: the message with which it is refused, or NULL. */
static const char *page_says(const char *page, int a, int b)
{
    static char message[400];
    char row[200];
    snprintf(row, sizeof row, "\n| %s | %s | ", features[a].name, features[b].name);
    const char *at = page ? strstr(page, row) : NULL;
    if (!at) return NULL;
    at += strlen(row);
    snprintf(message, sizeof message, "%.*s", (int)(strcspn(at, "\n") - 2), at);
    return message;
}

static char *page_read(void)
{
    static char page[200000];
    FILE *f = fopen(CTN_TESTS_DIR "/../docs/pairs.md", "r");
    if (!f) return NULL;
    page[fread(page, 1, sizeof page - 1, f)] = 0;
    fclose(f);
    return page;
}

/* Tries one pair. Returns whether it behaves as the page says; page NULL: whatever it does. */
static bool run_pair(int a, int b, const char *page)
{
    const setup s = setup_of(a, b);
    if (!possible(&s)) {
        kind[a][b] = NOT_HERE;
        return true;
    }
    const verdict v = table[a][b] = try_pair(&s);
    kind[a][b] = v.refused ? REFUSED : TESTED;
    if (!why[0] && page) {
        const char *said = page_says(page, a, b);
        if (!said != !v.refused || (said && strcmp(said, v.message) != 0))
            snprintf(why, sizeof why, "docs/pairs.md says: %s; this build: %s",
                     said ? said : "works", v.refused ? v.message : "works");
    }
    if (why[0]) printf("%s + %s: %s\n", features[a].name, features[b].name, why);
    return !why[0];
}

static void write_page(FILE *f)
{
    fprintf(
        f,
        "# Features that meet\n\n"
        "`tests/pairs/test_pairs.c` trains a small network with every pair of these %d "
        "features. For a pair\nthat works, eager and planned mode agree, a run that is stopped "
        "and resumed has the same bits as one\nthat is not, and one rank and several have the "
        "same losses. A pair that does not work is refused before\nthe first step. The test "
        "writes this page.\n\n"
        "`+` works, `R` is refused (see below), `.` are alternatives, `?` was not tried, because "
        "the CPU that\nwrote this page does not train in that type.\n\n```text\n",
        nfeatures);
    for (int a = 0; a < nfeatures; a++) {
        fprintf(f, "%-33s", features[a].name);
        for (int b = 0; b <= a; b++) fputc(".+R?"[(int)kind[b][a]], f);
        fputc('\n', f);
    }
    fprintf(f, "```\n\nThe columns are the same features from left to right.\n\n"
               "| feature | with | message |\n|---|---|---|\n");
    for (int a = 0; a < nfeatures; a++)
        for (int b = a; b < nfeatures; b++)
            if (kind[a][b] == REFUSED)
                fprintf(f, "| %s | %s | %s |\n", features[a].name, features[b].name,
                        table[a][b].message);
}

enum { PART = 24 }; /* a run without arguments tries one pair of this many */

static int number_of(const char *name)
{
    for (int i = 0; i < nfeatures; i++)
        if (strcmp(features[i].name, name) == 0) return i;
    fprintf(stderr, "test_pairs: there is no feature '%s'\n", name);
    exit(2);
}

/* ---- many features --------------------------------------------------------------------------- */

enum { SECONDS = 300 }; /* a training takes less than one, a hundred times that under tsan */

static uint32_t first_seed = 1;
static int programs;

static void random_trainings(void **state)
{
    (void)state;
    int wrong = 0, refused = 0;
    fill_samples();
    loud = programs == 1;
    for (int i = 0; i < programs; i++) {
        char text[700] = "", name[32];
        const setup s =
            random_setup((first_seed + (uint32_t)i) * 2654435761u | 1, text, sizeof text);
        if (!possible(&s)) continue;
        snprintf(name, sizeof name, "seed %u", first_seed + (uint32_t)i);
        test_deadline(SECONDS, name);
        if (loud) printf("%s\n", text);
        const verdict v = try_pair(&s);
        refused += v.refused;
        if (loud && v.refused) printf("refused: %s\n", v.message);
        if (!why[0]) continue;
        wrong++;
        printf("seed %u, %s: %s\n", first_seed + (uint32_t)i, text, why);
    }
    test_deadline(0, NULL);
    printf("%d random trainings, %d refused, %d wrong\n", programs, refused, wrong);
    assert_int_equal(wrong, 0);
}

/* ---- selection ------------------------------------------------------------------------------- */

static int words;
static char **word;
static bool all, writes;

static void pairs(void **state)
{
    (void)state;
    const char *page = writes ? NULL : page_read();
    const int one = words > 0 ? number_of(word[0]) : -1,
              other = words > 1 ? number_of(word[1]) : -1;
    int tried = 0, wrong = 0;
    fill_samples();
    loud = other >= 0;
    for (int a = 0; a < nfeatures; a++)
        for (int b = a; b < nfeatures; b++) {
            if (!meet(a, b) || (one >= 0 && a != one && b != one)) continue;
            if (other >= 0 && !(a == one && b == other) && !(a == other && b == one)) continue;
            if (!all && one < 0 && (a * 7 + b) % PART != 0) continue;
            tried++;
            wrong += !run_pair(a, b, page);
        }
    printf("%d pairs of %d features, %d wrong\n", tried, nfeatures, wrong);
    assert_int_equal(wrong, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pairs)},
                            random[] = {cmocka_unit_test(random_trainings)};
    char own[] = "pairs-XXXXXX"; /* several may run at the same time */
    writes = argc == 3 && strcmp(argv[1], "write") == 0;
    all = writes || (argc == 2 && strcmp(argv[1], "all") == 0);
    const bool at_random = argc > 2 && strcmp(argv[1], "random") == 0;
    if (at_random) programs = atoi(argv[2]);
    if (at_random && argc > 3) first_seed = (uint32_t)strtoul(argv[3], NULL, 10);
    words = all ? 0 : argc - 1;
    word = argv + 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    FILE *f = writes ? fopen(argv[2], "w") : NULL;
    if (writes && !f) return perror(argv[2]), 1;
    if (!mkdtemp(own) || chdir(own) != 0) return perror(own), 1;
    const int failed = at_random ? cmocka_run_group_tests(random, NULL, NULL)
                                 : cmocka_run_group_tests(tests, NULL, NULL);
    if (chdir("..") == 0) remove_all(own);
    if (f) write_page(f);
    return failed || (f && fclose(f) != 0);
}

#endif
