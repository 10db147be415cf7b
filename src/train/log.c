/* SPDX-License-Identifier: Apache-2.0
 *
 * The log: a file with one JSON object per line, and the same rows in memory for tables and
 * plots. The saved state records the length of the file. A resumed training truncates the file
 * to that length and reads the remaining rows, so that the file never lists steps that were
 * undone.
 */
#include "train/train.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    char *path;
    int fd; /* -1: not open */
    int64_t position;
    int64_t end; /* of the file; differs from position after a state was loaded */
} journal;

/* ---- rows ------------------------------------------------------------------------------------ */

static int compare_names(const void *a, const void *b)
{
    const int x = ((const struct ctn__row_value *)a)->name;
    const int y = ((const struct ctn__row_value *)b)->name;
    return (x > y) - (x < y);
}

int64_t ctn_trainer_rows(const ctn_trainer *tr)
{
    return (int64_t)tr->rows.n;
}

double ctn_trainer_row_value(const ctn_trainer *tr, int64_t row, const char *name)
{
    if (row < 0 || row >= ctn_trainer_rows(tr) || !name) return NAN;
    const ctn__row *r = &tr->rows.at[row];
    const ctn__observed *v = ctn__value_find(tr, name);
    if (!v || r->n == 0) return NAN;
    const struct ctn__row_value key = {.name = (int)(v - tr->values.at)};
    const struct ctn__row_value *hit =
        bsearch(&key, r->at, (size_t)r->n, sizeof key, compare_names);
    return hit ? hit->v : NAN;
}

void ctn_trainer_row_progress(const ctn_trainer *tr, int64_t row, ctn_progress *out)
{
    if (row < 0 || row >= ctn_trainer_rows(tr)) *out = (ctn_progress){0};
    else *out = tr->rows.at[row].progress;
}

/* A row without values, with room for n. */
static ctn__row *new_row(ctn_trainer *tr, size_t n)
{
    const ctn__row r = {.at = ctn__calloc(n + 1, sizeof *r.at)};
    if (!r.at || !ctn__vec_push(&tr->rows, r)) {
        ctn__free(r.at);
        return NULL;
    }
    return &tr->rows.at[tr->rows.n - 1];
}

static void free_rows(ctn_trainer *tr)
{
    for (size_t i = 0; i < tr->rows.n; i++) ctn__free(tr->rows.at[i].at);
    tr->rows.n = 0;
}

/* Reported values enter the row as their mean since the last row; observed ones as they are. */
static ctn__row *close_row(ctn_trainer *tr)
{
    size_t n = 0;
    for (size_t i = 0; i < tr->values.n; i++) n += tr->values.at[i].fresh;
    ctn__row *r = new_row(tr, n);
    if (!r) return NULL;
    ctn_trainer_progress(tr, &r->progress);
    for (size_t i = 0; i < tr->values.n; i++) {
        ctn__observed *v = &tr->values.at[i];
        if (v->fresh) r->at[r->n++] = (struct ctn__row_value){(int)i, v->value};
        v->fresh = false;
    }
    return r;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* The shortest digits that read back as the same number. JSON has no infinities and NaNs. */
static void add_number(ctn__text *t, double x)
{
    char buf[40];
    if (!isfinite(x)) {
        ctn__text_add(t, "null");
        return;
    }
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(buf, sizeof buf, "%.*g", digits, x);
        if (strtod(buf, NULL) == x) break;
    }
    ctn__text_add(t, "%s", buf);
}

/* A row that was closed just now. */
static void add_row(const ctn_trainer *tr, const ctn__row *r, ctn__text *t)
{
    const ctn_progress *p = &r->progress;
    ctn__text_add(t, "{\"iteration\":%lld,\"epoch\":", (long long)p->iteration);
    add_number(t, (double)p->epoch + p->part);
    ctn__text_add(t, ",\"samples\":%lld", (long long)p->samples);
    ctn__text_add(t, ",\"seconds\":%.3f,\"compute_s\":%.3f,\"input_s\":%.3f,\"other_s\":%.3f",
                  p->seconds, p->compute_s, p->input_s, p->other_s);
    for (int i = 0, k = 0; i < (int)tr->values.n; i++) {
        const double v = k < r->n && r->at[k].name == i ? r->at[k++].v : (double)NAN;
        if (isnan(v) && !tr->values.at[i].reported) continue;
        ctn__text_add(t, ",\"%s\":", tr->values.at[i].name);
        add_number(t, v);
    }
    ctn__text_add(t, "}\n");
}

/* Parses one "name":number pair at *p and moves *p past it. */
static bool next_pair(const char **p, char *name, size_t n, double *value)
{
    if (**p != '{' && **p != ',') return false;
    if (*++*p != '"') return false;
    const char *end = strchr(++*p, '"');
    if (!end || (size_t)(end - *p) >= n || end[1] != ':') return false;
    memcpy(name, *p, (size_t)(end - *p));
    name[end - *p] = 0;
    *p = end + 2;
    *value = NAN;
    if (strncmp(*p, "null", 4) == 0) {
        *p += 4;
        return true;
    }
    char *rest;
    *value = strtod(*p, &rest);
    bool ok = rest != *p;
    *p = rest;
    return ok;
}

static bool set_progress(ctn_progress *p, const char *name, double x)
{
    struct {
        const char *name;
        double *to;
    } times[] = {{"seconds", &p->seconds},
                 {"compute_s", &p->compute_s},
                 {"input_s", &p->input_s},
                 {"other_s", &p->other_s}};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (strcmp(name, times[i].name) == 0) {
            *times[i].to = x;
            return true;
        }
    if (!(x >= 0 && x < 9e18)) return false;
    if (strcmp(name, "iteration") == 0) p->iteration = (int64_t)x;
    else if (strcmp(name, "samples") == 0) p->samples = (int64_t)x;
    else if (strcmp(name, "epoch") == 0) {
        p->epoch = (int64_t)x;
        p->part = x - floor(x);
        p->epoch_ended = p->part == 0;
    } else return false;
    return true;
}

/* A line that we did not write is skipped: users may add lines of their own. Returns the number of
 * its values; -1: it is not a row. */
static int read_progress(const char *line, ctn_progress *p)
{
    char name[256];
    double x;
    int n = 0;
    bool counted = false;
    while (next_pair(&line, name, sizeof name, &x)) {
        counted |= strcmp(name, "iteration") == 0;
        n += !set_progress(p, name, x);
    }
    return counted && strcmp(line, "}") == 0 ? n : -1;
}

static ctn_status read_row(ctn_trainer *tr, const char *line)
{
    char name[256];
    double x;
    ctn_progress p = {0};
    const int n = read_progress(line, &p);
    if (n < 0) return CTN_OK;
    ctn__row *r = new_row(tr, (size_t)n);
    if (!r) return CTN_ENOMEM;
    r->progress = p;
    r->progress.total = ctn__trainer_total(tr, p.iteration, (double)p.epoch + p.part, p.seconds);
    while (next_pair(&line, name, sizeof name, &x)) {
        ctn__observed *v = NULL;
        if (set_progress(&p, name, x)) continue;
        CTN_TRY(ctn__value_get(tr, name, &v));
        if (v && !isnan(x)) r->at[r->n++] = (struct ctn__row_value){(int)(v - tr->values.at), x};
    }
    qsort(r->at, (size_t)r->n, sizeof *r->at, compare_names);
    return CTN_OK;
}

static ctn_status read_rows(ctn_trainer *tr, char *text)
{
    free_rows(tr);
    for (char *line = text, *end; line && (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = 0;
        CTN_TRY(read_row(tr, line));
    }
    return CTN_OK;
}

/* ---- the file -------------------------------------------------------------------------------- */

static ctn_status problem(const journal *j, const char *what)
{
    return ctn_fail(CTN_EIO, "log: cannot %s %s: %s", what, j->path, strerror(errno));
}

static ctn_status write_all(journal *j, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t k = pwrite(j->fd, p, n, (off_t)j->position);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return problem(j, "write");
        p += k;
        n -= (size_t)k;
        j->end = j->position += k;
    }
    return CTN_OK;
}

/* Reads the part of the file that is kept. It is shorter than the state says if somebody
 * truncated the file. */
static ctn_status read_file(journal *j, char **out)
{
    struct stat info = {0};
    int64_t n = 0;
    if (fstat(j->fd, &info) != 0) return problem(j, "read");
    if (!S_ISREG(info.st_mode) || info.st_nlink > 1) {
        errno = EMLINK; /* the other name may be that of any file of the user */
        return problem(j, "use");
    }
    const int64_t most = j->position < info.st_size ? j->position : info.st_size;
    char *text = ctn__malloc((size_t)most + 1);
    if (!text) return CTN_ENOMEM;
    while (n < most) {
        ssize_t k = pread(j->fd, text + n, (size_t)(most - n), (off_t)n);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) {
            ctn__free(text);
            return problem(j, "read");
        }
        if (k == 0) break;
        n += k;
    }
    while (n < j->position && n > 0 && text[n - 1] != '\n') n--;
    if (n < j->position)
        ctn__warn("log: %s is shorter than when the state was saved: some rows are missing",
                  j->path);
    j->position = n;
    text[n] = 0;
    *out = text;
    return CTN_OK;
}

static ctn_status start(void *self, ctn_trainer *tr)
{
    journal *j = self;
    char *text = NULL;
    if (!ctn__writes(tr)) return CTN_OK;
    if (j->fd >= 0 && j->position == j->end) return CTN_OK; /* a second run of this trainer */
    if (j->fd < 0)
        j->fd = open(j->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (j->fd < 0) return problem(j, "open");
    CTN_TRY(read_file(j, &text));
    ctn_status st = read_rows(tr, text);
    ctn__free(text);
    CTN_TRY(st);
    if (ftruncate(j->fd, (off_t)j->position) != 0) return problem(j, "truncate");
    j->end = j->position;
    return CTN_OK;
}

static ctn_status call(void *self, ctn_trainer *tr)
{
    ctn__text t = {0};
    CTN_TRY(ctn__values_publish(tr));
    const ctn__row *r = close_row(tr);
    if (!r) return CTN_ENOMEM;
    if (!ctn__writes(tr)) return CTN_OK;
    add_row(tr, r, &t);
    ctn_status st = t.failed ? CTN_ENOMEM : write_all(self, t.s, t.n);
    ctn__text_free(&t);
    return st;
}

/* The file is synced first: a saved state must never be ahead of the log on the disk. */
static ctn_status visit(void *self, ctn_state_fn fn, void *user)
{
    journal *j = self;
    if (j->fd >= 0 && fsync(j->fd) != 0 && errno != EINVAL) return problem(j, "sync");
    int64_t position = j->position;
    CTN_TRY(fn(user, "position", CTN_I64, 0, NULL, &position));
    if (position < 0) return ctn_fail(CTN_EFORMAT, "log: the saved position is negative");
    j->position = position;
    return CTN_OK;
}

static void release(void *self)
{
    journal *j = self;
    if (j->fd >= 0) close(j->fd);
    ctn__free(j->path);
    ctn__free(j);
}

ctn_status ctn_extend_log(ctn_trainer *tr, const ctn_trigger *when, const char *file)
{
    ctn__text path = {0};
    CTN_TRY(ctn__need_out(tr, "extend_log"));
    journal *j = ctn__malloc(sizeof *j);
    if (!j) return CTN_ENOMEM;
    ctn__text_add(&path, "%s/%s", tr->o.out, file ? file : "log.jsonl");
    *j = (journal){.path = path.failed ? NULL : ctn__strdup(path.s), .fd = -1};
    ctn__text_free(&path);
    if (!j->path) {
        ctn__free(j);
        return CTN_ENOMEM;
    }
    return ctn__extend(tr,
                       &(ctn_extension){.name = "log",
                                        .priority = CTN_PRIORITY_LOG,
                                        .start = start,
                                        .call = call,
                                        .visit = visit,
                                        .release = release,
                                        .self = j},
                       when, (ctn_trigger){.kind = CTN_EVERY_EPOCHS, .n = 1});
}
