/* SPDX-License-Identifier: Apache-2.0
 *
 * Where displayed text goes, and short forms of numbers, times and names. Used by all extensions
 * that print or draw. Leaves the process unchanged: the locale is read from the environment, not
 * set.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strcasestr */
#endif
#include "train/show.h"

#include <ctype.h>
#include <math.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/newfile.h"
#include "train/train.h"

/* ---- where ----------------------------------------------------------------------------------- */

static void write_stdout(void *user, const char *text)
{
    (void)user;
    fputs(text, stdout);
    fflush(stdout);
}

static bool says_utf8(void)
{
    static const char *const vars[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < 3; i++) {
        const char *s = getenv(vars[i]);
        if (s == NULL || s[0] == 0) continue; /* the first that is set decides */
        return strcasestr(s, "utf-8") != NULL || strcasestr(s, "utf8") != NULL;
    }
    return false;
}

ctn_status ctn__show_init(ctn__show *s, const char *who, const ctn_show_opt *opt)
{
    ctn_show_opt o;
    CTN_TRY(ctn__opt(who, &o, sizeof o, opt));
    if (o.columns < 0)
        return ctn_fail(CTN_EARG, "%s: columns is %d, it must not be negative", who, o.columns);
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    bool moves = term != NULL && strcmp(term, "dumb") != 0; /* can move the cursor */
    s->write = o.write != NULL ? o.write : write_stdout;
    s->user = o.user;
    s->terminal = o.terminal > 0 ||
                  (o.terminal == 0 && o.write == NULL && moves && isatty(STDOUT_FILENO) == 1);
    s->columns = o.columns;
    s->utf8 = says_utf8();
    s->colour = s->terminal && (no_color == NULL || no_color[0] == 0);
    return CTN_OK;
}

int ctn__show_columns(const ctn__show *s)
{
    struct winsize w;
    if (s->columns > 0) return s->columns;
    if (!s->terminal) return 1000;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0) return w.ws_col;
    const char *text = getenv("COLUMNS");
    long n = text != NULL ? strtol(text, NULL, 10) : 0;
    return n > 0 && n < 10000 ? (int)n : 80;
}

/* ---- numbers --------------------------------------------------------------------------------- */

enum { SMALL = 16 }; /* size of the buffer for a short form */

const char *ctn__show_point(char *buf)
{
    char *to = buf;
    for (const char *p = buf; *p != 0; p++) {
        if (isalnum((unsigned char)*p) || strchr("+-. ", *p) != NULL) *to++ = *p;
        else if (to == buf || to[-1] != '.') *to++ = '.'; /* the separator may have many bytes */
    }
    *to = 0;
    return buf;
}

const char *ctn__show_value(char *buf, double v)
{
    double a = fabs(v);
    if (!isfinite(v)) snprintf(buf, SMALL, "%s", isnan(v) ? "-" : v > 0 ? "inf" : "-inf");
    else if (a != 0 && (a < 1e-3 || a >= 99999.5)) snprintf(buf, SMALL, "%.2e", v);
    else snprintf(buf, SMALL, "%.*f", a < 100 ? 4 : a < 1000 ? 2 : 1, v);
    return ctn__show_point(buf);
}

const char *ctn__show_count(char *buf, double v)
{
    static const char *const unit[] = {"", "k", "M", "G", "T"};
    int u = 0;
    if (!(v >= 0) || v >= 1e15) {
        snprintf(buf, SMALL, "-");
        return buf;
    }
    for (double most = 9999.5; v >= most && u < 4; most = 999.5) {
        v /= 1000;
        u++;
    }
    snprintf(buf, SMALL, "%.*f%s", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, unit[u]);
    return ctn__show_point(buf);
}

const char *ctn__show_time(char *buf, double seconds)
{
    if (!(seconds >= 0) || seconds > 1e9) {
        snprintf(buf, SMALL, "--:--");
        return buf;
    }
    unsigned s = (unsigned)(seconds + 0.5), m = s / 60, h = m / 60;
    if (h >= 24) snprintf(buf, SMALL, "%ud %02uh", h / 24, h % 24);
    else if (h > 0) snprintf(buf, SMALL, "%u:%02u:%02u", h, m % 60, s % 60);
    else snprintf(buf, SMALL, "%u:%02u", m, s % 60);
    return buf;
}

/* ---- names ----------------------------------------------------------------------------------- */

bool ctn__show_hidden(const char *name)
{
    return strncmp(name, "param/", 6) == 0;
}

const char *ctn__show_last(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash != NULL ? slash + 1 : name;
}

void ctn__show_text(ctn__text *out, const char *s, bool markup)
{
    while (*s != 0) {
        const char *escape = NULL;
        int n = ctn__character(s);
        if (n == 0) escape = "?";
        else if (markup && *s == '&') escape = "&amp;";
        else if (markup && *s == '<') escape = "&lt;";
        else if (markup && *s == '>') escape = "&gt;";
        else if (markup && *s == '"') escape = "&quot;";
        else if (markup && *s == '\'') escape = "&#39;";
        if (escape != NULL) ctn__text_add(out, "%s", escape);
        else ctn__text_add(out, "%.*s", n, s);
        s += n > 0 ? n : 1;
    }
}

/* ---- files and extensions -------------------------------------------------------------------- */

ctn_status ctn__show_path(ctn__text *path, const char *who, const ctn_trainer *tr, const char *file)
{
    if (tr == NULL) return ctn_fail(CTN_EARG, "%s: no trainer", who);
    if (file == NULL || file[0] == 0) return ctn_fail(CTN_EARG, "%s: no file name", who);
    CTN_TRY(ctn__need_out(tr, who));
    ctn__text_add(path, "%s/%s", ctn_trainer_out(tr), file);
    return path->failed ? CTN_ENOMEM : CTN_OK;
}

ctn_status ctn__show_file(const char *path, ctn__text *text)
{
    ctn_status st = CTN_OK;
    ctn__newfile f = {.fd = -1, .quick = true};
    if (text->failed) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    CTN_TRY_GOTO(st, done, ctn__newfile_open(&f, path));
    CTN_TRY_GOTO(st, done, ctn__newfile_write(&f, text->s, text->n));
    CTN_TRY_GOTO(st, done, ctn__newfile_commit(&f));
done:
    ctn__newfile_close(&f);
    ctn__text_free(text);
    return st;
}

ctn_status ctn__show_forgive(ctn_status st)
{
    if (st != CTN_EIO) return st;
    ctn__warn("%s", ctn_error_message());
    ctn_error_clear();
    return CTN_OK;
}

ctn_status ctn__show_extend(ctn_trainer *tr, const char *kind, const char *file,
                            const ctn_trigger *when, ctn_trigger usual, ctn_extension e)
{
    ctn__text name = {0};
    ctn__text_add(&name, "%s%s%s", kind, file != NULL ? ":" : "", file != NULL ? file : "");
    for (size_t i = 0; i < name.n; i++)
        if ((unsigned char)name.s[i] <= ' ') name.s[i] = '_'; /* names must not have spaces */
    e.struct_size = sizeof e;
    e.name = name.s;
    if (e.priority == 0) e.priority = CTN_PRIORITY_SHOW;
    ctn_status st = CTN_ENOMEM;
    if (name.failed) e.release(e.self);
    else st = ctn__extend(tr, &e, when, usual);
    ctn__text_free(&name);
    return st;
}
