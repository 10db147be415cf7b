/* SPDX-License-Identifier: Apache-2.0
 *
 * The print extension: a table with one line for every row of the log.
 *
 *                     train               val
 *     epoch     step      loss  accuracy      loss  accuracy     time
 *         1      391    1.4312    0.4821    1.1021    0.6012     0:32
 *
 * If not everything fits, columns are chosen in this order: losses, values of evaluations, other
 * values, step, time.
 */
#include <math.h>

#include "train/show.h"

enum { EPOCH = 5, STEP = 9, VALUE = 8, TIME = 8, GAP = 2, REPEAT = 20 };

static int width_of(const char *name)
{
    int n = (int)strlen(ctn__show_last(name));
    return n > VALUE ? n : VALUE;
}

static int rank_of(const char *name)
{
    if (strcmp(ctn__show_last(name), "loss") == 0) return 0;
    return strchr(name, '/') == NULL || strncmp(name, "train/", 6) == 0 ? 2 : 1;
}

typedef struct {
    bool step, time;
    uint64_t value[4]; /* bit i: name i has a column; names from 256 on never have one */
} columns_used;

static bool used(const columns_used *u, int i)
{
    return i < 256 && (u->value[i / 64] >> (i % 64) & 1) != 0;
}

static columns_used choose(const char *const *names, int n, int columns)
{
    columns_used u = {0};
    int left = columns - 1 - EPOCH;
    for (int rank = 0; rank < 3; rank++)
        for (int i = 0; i < n && i < 256; i++) {
            int w = GAP + width_of(names[i]);
            if (rank_of(names[i]) != rank || w > left) continue;
            u.value[i / 64] |= (uint64_t)1 << (i % 64);
            left -= w;
        }
    u.step = left >= GAP + STEP;
    if (u.step) left -= GAP + STEP;
    u.time = left >= GAP + TIME;
    return u;
}

/* The names of a resumed training come from its files. */
static void add_name(ctn__text *out, int width, int n, const char *name)
{
    const size_t from = out->n;
    ctn__text_add(out, "%*.*s", width, n, name);
    if (!out->failed) ctn__text_clean(out->s + from);
}

/* Prints the first part of the names above their columns, once for adjacent columns that share
 * it: "train" above all of its values. */
static void add_groups(ctn__text *out, const char *const *names, int n, const columns_used *u)
{
    int pad = EPOCH + (u->step ? GAP + STEP : 0); /* columns before the next group */
    bool any = false;
    for (int i = 0; i < n; i++) any |= used(u, i) && strchr(names[i], '/') != NULL;
    for (int i = 0; i < n && any;) {
        if (!used(u, i)) {
            i++;
            continue;
        }
        int length = (int)(ctn__show_last(names[i]) - names[i]), wide = 0, from = i;
        for (; i < n; i++) {
            if (!used(u, i)) continue;
            if ((int)(ctn__show_last(names[i]) - names[i]) != length ||
                strncmp(names[i], names[from], (size_t)length) != 0)
                break;
            wide += GAP + width_of(names[i]);
        }
        if (length == 0) {
            pad += wide;
            continue;
        }
        int text = length - 1 < wide - GAP ? length - 1 : wide - GAP;
        /* aligned with the right edge of the group's first column */
        int first = GAP + width_of(names[from]), before = text < first ? first - text : GAP;
        ctn__text_add(out, "%*s", pad + before, "");
        add_name(out, 0, text, names[from]);
        pad = wide - before - text;
    }
    if (any) ctn__text_add(out, "\n");
}

void ctn__table_header(ctn__text *out, const char *const *names, int n, const ctn__show *s,
                       int columns)
{
    columns_used u = choose(names, n, columns);
    if (s->colour) ctn__text_add(out, "\x1b[1m");
    add_groups(out, names, n, &u);
    ctn__text_add(out, "%*s", EPOCH, "epoch");
    if (u.step) ctn__text_add(out, "%*s", GAP + STEP, "step");
    for (int i = 0; i < n; i++)
        if (used(&u, i)) add_name(out, GAP + width_of(names[i]), -1, ctn__show_last(names[i]));
    if (u.time) ctn__text_add(out, "%*s", GAP + TIME, "time");
    ctn__text_add(out, "%s\n", s->colour ? "\x1b[0m" : "");
}

void ctn__table_line(ctn__text *out, const char *const *names, const double *values, int n,
                     const ctn_progress *p, int columns)
{
    char buf[32];
    columns_used u = choose(names, n, columns);
    double epochs = (double)p->epoch + (p->epoch_ended ? 0 : p->part);
    snprintf(buf, sizeof buf, "%.*f", p->epoch_ended || p->part == 0 ? 0 : 2, epochs);
    ctn__text_add(out, "%*s", EPOCH, ctn__show_point(buf));
    if (u.step) ctn__text_add(out, "%*lld", GAP + STEP, (long long)p->iteration);
    for (int i = 0; i < n; i++)
        if (used(&u, i))
            ctn__text_add(out, "%*s", GAP + width_of(names[i]), ctn__show_value(buf, values[i]));
    if (u.time) ctn__text_add(out, "%*s", GAP + TIME, ctn__show_time(buf, p->seconds));
    ctn__text_add(out, "\n");
}

/* ---- the extension --------------------------------------------------------------------------- */

typedef struct {
    ctn__show show;
    ctn__arena mem;
    CTN__VEC(const char *) names; /* the caller's, or all seen so far */
    CTN__VEC(double) values;
    bool all;
    int64_t rows;  /* already printed, or present before this run */
    int lines;     /* since the last header */
    int columns;   /* of the last header */
    size_t headed; /* names in the last header; 0: no header yet */
} table;

static ctn_status collect(table *t, const ctn_trainer *tr)
{
    t->names.n = 0;
    const char *name;
    for (int i = 0; (name = ctn_trainer_name(tr, i)) != NULL; i++)
        if (!ctn__show_hidden(name) && !ctn__vec_push(&t->names, name)) return CTN_ENOMEM;
    return CTN_OK;
}

static ctn_status print_row(table *t, const ctn_trainer *tr, int64_t row, ctn__text *out)
{
    int n = (int)t->names.n, columns = ctn__show_columns(&t->show);
    ctn_progress p;
    ctn_trainer_row_progress(tr, row, &p);
    t->values.n = 0;
    for (int i = 0; i < n; i++)
        if (!ctn__vec_push(&t->values, ctn_trainer_row_value(tr, row, t->names.at[i])))
            return CTN_ENOMEM;
    if (t->lines % REPEAT == 0 || t->headed != t->names.n || t->columns != columns) {
        ctn__table_header(out, t->names.at, n, &t->show, columns);
        t->headed = t->names.n;
        t->columns = columns;
        t->lines = 0;
    }
    t->lines++;
    ctn__table_line(out, t->names.at, t->values.at, n, &p, columns);
    return CTN_OK;
}

static ctn_status print_start(void *self, ctn_trainer *tr)
{
    table *t = self;
    t->rows = ctn_trainer_rows(tr);
    return CTN_OK;
}

static ctn_status print_call(void *self, ctn_trainer *tr)
{
    table *t = self;
    ctn__text out = {0};
    ctn_status st = CTN_OK;
    if (t->rows >= ctn_trainer_rows(tr)) return CTN_OK;
    if (t->all) CTN_TRY_GOTO(st, done, collect(t, tr));
    if (t->show.terminal) ctn__text_add(&out, "\r\x1b[J"); /* erase the progress bars */
    while (t->rows < ctn_trainer_rows(tr))
        CTN_TRY_GOTO(st, done, print_row(t, tr, t->rows++, &out));
    if (out.failed) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    t->show.write(t->show.user, out.s);
done:
    ctn__text_free(&out);
    return st;
}

static void print_release(void *self)
{
    table *t = self;
    if (t == NULL) return;
    ctn__vec_free(&t->names);
    ctn__vec_free(&t->values);
    ctn__arena_free(&t->mem);
    ctn__free(t);
}

ctn_status ctn_extend_print(ctn_trainer *tr, const ctn_trigger *when, const char *const *names,
                            const ctn_show_opt *opt)
{
    ctn_status st = CTN_OK;
    if (tr == NULL) return ctn_fail(CTN_EARG, "extend_print: no trainer");
    table *t = ctn__calloc(1, sizeof *t);
    if (t == NULL) return CTN_ENOMEM;
    t->all = names == NULL;
    CTN_TRY_GOTO(st, fail, ctn__show_init(&t->show, "extend_print", opt));
    for (int i = 0; names != NULL && names[i] != NULL; i++) {
        const char *copy = ctn__arena_str(&t->mem, names[i]);
        if (copy == NULL || !ctn__vec_push(&t->names, copy)) CTN_TRY_GOTO(st, fail, CTN_ENOMEM);
    }
    ctn_extension e = {.rank0_only = 1,
                       .start = print_start,
                       .call = print_call,
                       .finish = print_call,
                       .release = print_release,
                       .self = t};
    /* Checks after every step whether the log has grown. */
    return ctn__show_extend(tr, "print", NULL, when,
                            (ctn_trigger){.kind = CTN_EVERY_ITERATIONS, .n = 1}, e);
fail:
    print_release(t);
    return st;
}
