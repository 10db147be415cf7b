/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks what all ranks must have in common. Rank 0 sends its text to every rank, which compares it
 * with its own, and one small sum tells whether any rank differs. Only then do the ranks show each
 * other their differences, so that all of them fail with the same message.
 *
 * Cost if all agree: two broadcasts and one small sum, which is 3 log2(p) messages for rank 0 and
 * fewer for the other ranks.
 */
#include "comm/comm.h"

/* The first line in which a rank differs from rank 0. */
typedef struct {
    int32_t line; /* its number; -1: no difference */
    char text[252];
} difference;

/* Line k of a text, without the newline; NULL if there are fewer lines. */
static const char *line_at(const char *text, int k, size_t *n)
{
    for (; *text; text += *text == '\n', k--) {
        *n = strcspn(text, "\n");
        if (k == 0) return text;
        text += *n;
    }
    return NULL;
}

static void compare(const char *mine, const char *first, difference *d)
{
    for (int k = 0;; k++) {
        size_t n = 0, m = 0;
        const char *a = line_at(mine, k, &n), *b = line_at(first, k, &m);
        *d = (difference){.line = a || b ? k : -1};
        if (!a && !b) return;
        if (a && b && n == m && memcmp(a, b, n) == 0) continue;
        if (!a) a = "nothing", n = strlen(a);
        snprintf(d->text, sizeof d->text, "%.*s", (int)n, a);
        return;
    }
}

static bool same(const difference *a, const difference *b)
{
    return a->line == b->line && strcmp(a->text, b->text) == 0;
}

/* "rank 3 has", "ranks 1, 2 and 5 have", "ranks 1, 2, 3, 4 and 96 others have" */
static void name_ranks(const difference *all, int size, int r, ctn__text *t)
{
    enum { NAMED = 4 };
    int n = 0, k = 0;
    for (int q = r; q < size; q++) n += same(&all[q], &all[r]);
    ctn__text_add(t, n == 1 ? "rank" : "ranks");
    const int named = n <= NAMED + 1 ? n : NAMED;
    for (int q = r; q < size && k < named; q++)
        if (same(&all[q], &all[r])) {
            const char *between = k == 0 ? " " : k == n - 1 ? " and " : ", ";
            ctn__text_add(t, "%s%d", between, q);
            k++;
        }
    if (n > named) ctn__text_add(t, " and %d others", n - named);
    ctn__text_add(t, n == 1 ? " has" : " have");
}

/* Reports the lowest rank that differs, and all ranks with the same difference. */
static ctn_status tell(const difference *all, int size, const char *first)
{
    ctn__text t = {0};
    int r = 0, others = 0;
    size_t n = 0;
    while (all[r].line < 0) r++;
    for (int q = r; q < size; q++) others += all[q].line >= 0 && !same(&all[q], &all[r]);
    const char *line = line_at(first, all[r].line, &n);
    if (!line) line = "nothing", n = strlen(line);
    name_ranks(all, size, r, &t);
    ctn__text_add(&t, " %s, rank 0 has %.*s", all[r].text, (int)n, line);
    if (others == 1) ctn__text_add(&t, "; another rank differs too");
    if (others > 1) ctn__text_add(&t, "; %d other ranks differ too", others);
    ctn_status st = t.failed ? CTN_ENOMEM : ctn_fail(CTN_EARG, "%s", t.s);
    ctn__text_free(&t);
    return st;
}

ctn_status ctn__comm_alone(ctn_comm *c, ctn_status st)
{
    if (st < 0 && st != CTN_EPEER && c) ctn_comm_break(c, ctn_error_message());
    return st;
}

ctn_status ctn_comm_agree(ctn_comm *c, const char *text)
{
    if (!c || !text) return ctn_fail(CTN_EARG, "comm_agree: communicator or text is NULL");
    const int size = ctn_comm_size(c), rank = ctn_comm_rank(c);
    ctn_status st = CTN_OK;
    difference mine, *all = NULL;
    int64_t n = (int64_t)strlen(text), differing, scratch;
    CTN_TRY(ctn_comm_broadcast(c, &n, sizeof n, 0));
    char *first = ctn__calloc((size_t)n + 1, 1);
    if (!first) return ctn__comm_alone(c, CTN_ENOMEM);
    if (rank == 0) memcpy(first, text, (size_t)n);
    CTN_TRY_GOTO(st, done, ctn_comm_broadcast(c, first, (size_t)n, 0));
    compare(text, first, &mine);
    differing = mine.line >= 0;
    CTN_TRY_GOTO(st, done, ctn__comm_sum(c, &differing, 1, CTN_I64, &scratch));
    if (differing == 0) goto done;
    all = ctn__calloc((size_t)size, sizeof *all);
    if (!all) CTN_TRY_GOTO(st, done, ctn__comm_alone(c, CTN_ENOMEM));
    CTN_TRY_GOTO(st, done, ctn_comm_allgather(c, &mine, sizeof mine, all));
    st = tell(all, size, first);
done:
    ctn__free(first);
    ctn__free(all);
    return st;
}

ctn_status ctn__comm_status_of(ctn_comm *c, ctn_status st, int root)
{
    char text[512] = "";
    if (!c) return st;
    int32_t status = (int32_t)st;
    CTN_TRY(ctn_comm_broadcast(c, &status, sizeof status, root));
    if (status >= 0) return (ctn_status)status;
    const char *why = ctn_error_message();
    snprintf(text, sizeof text, "%.*s", (int)strcspn(why, "\n"), why);
    CTN_TRY(ctn_comm_broadcast(c, text, sizeof text, root));
    return ctn_comm_rank(c) == root ? st : ctn_fail((ctn_status)status, "%s", text);
}

ctn_status ctn__comm_root_status(ctn_comm *c, ctn_status st)
{
    return ctn__comm_status_of(c, st, 0);
}
