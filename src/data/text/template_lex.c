/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokens of a chat template, with jinja2's trim_blocks and lstrip_blocks: a newline right after
 * a block or comment belongs to it, and so does white space between the start of a line and one. A
 * minus inside a tag takes all white space on that side, a plus takes none.
 */
#include "data/text/template.h"

typedef struct {
    const char *who, *begin, *p, *end;
    int line;
    ctn__ttokens *out;
    char open[CTN__T_NESTED]; /* the closing bracket of each open one */
    int opened;
} lexer;

static ctn_status wrong(const lexer *x, const char *what)
{
    return ctn_fail(CTN_EFORMAT, "%s, line %d: %s", x->who, x->line, what);
}

/* Continue at `to`. */
static void go(lexer *x, const char *to)
{
    for (; x->p < to; x->p++) x->line += *x->p == '\n';
}

static ctn_status push(lexer *x, ctn__ttype type, const char *s, size_t n)
{
    const ctn__ttoken token = {type, s, n, x->line};
    return ctn__vec_push(x->out, token) ? CTN_OK : CTN_ENOMEM;
}

static const char *skip_space(const char *p, const char *end)
{
    while (p < end) {
        uint32_t c = 0;
        const size_t n = ctn__utf8_get(p, end, &c);
        if (!ctn__t_is_space(c)) break;
        p += n;
    }
    return p;
}

static const char *strip_end(const char *begin, const char *end)
{
    while (end > begin) {
        const char *q = end - 1;
        uint32_t c = 0;
        while (q > begin && end - q < 4 && ((unsigned char)*q & 0xC0) == 0x80) q--;
        ctn__utf8_get(q, end, &c);
        if (!ctn__t_is_space(c)) break;
        end = q;
    }
    return end;
}

static bool begins(const char *p, const char *end, const char *with)
{
    const size_t n = strlen(with);
    return (size_t)(end - p) >= n && memcmp(p, with, n) == 0;
}

/* Data before a tag with this sign. */
static ctn_status push_data(lexer *x, const char *from, const char *to, char sign, bool print)
{
    if (sign == '-') {
        to = strip_end(from, to);
    } else if (sign != '+' && !print) {
        const char *line = to;
        while (line > from && line[-1] != '\n') line--;
        const bool starts = line > from || from == x->begin || from[-1] == '\n';
        if (starts && skip_space(line, to) == to) to = line;
    }
    return to > from ? push(x, CTN__TT_DATA, from, (size_t)(to - from)) : CTN_OK;
}

static char sign_at(const char *p, const char *end)
{
    return p < end && (*p == '-' || *p == '+') ? *p : 0;
}

/* What a tag takes of the text after its end at p. */
static const char *after_tag(const lexer *x, const char *p, char sign)
{
    if (sign == '-') return skip_space(p, x->end);
    return sign != '+' && p < x->end && *p == '\n' ? p + 1 : p;
}

static ctn_status lex_comment(lexer *x, const char *body)
{
    const char *stop = ctn__t_search(body, (size_t)(x->end - body), "#}", 2);
    if (!stop) return wrong(x, "a comment has no end: #} is missing");
    const char sign = stop > body ? sign_at(stop - 1, stop) : 0;
    go(x, after_tag(x, stop + 2, sign));
    return CTN_OK;
}

/* Matches {% word %} at p, where the sign and its end are stored. NULL: it is something else. */
static const char *match_tag(const lexer *x, const char *p, const char *word, char *before,
                             char *after)
{
    if (!begins(p, x->end, "{%")) return NULL;
    p += 2;
    *before = sign_at(p, x->end);
    p = skip_space(p + (*before != 0), x->end);
    if (!begins(p, x->end, word)) return NULL;
    p = skip_space(p + strlen(word), x->end);
    *after = sign_at(p, x->end);
    p += *after != 0;
    return begins(p, x->end, "%}") ? p + 2 : NULL;
}

/* From after {% raw %} to after {% endraw %}. */
static ctn_status lex_raw(lexer *x, const char *body)
{
    char before = 0, after = 0;
    for (const char *p = body; p < x->end; p++) {
        const char *stop = *p == '{' ? match_tag(x, p, "endraw", &before, &after) : NULL;
        if (!stop) continue;
        CTN_TRY(push_data(x, body, p, before, false));
        go(x, after_tag(x, stop, after));
        return CTN_OK;
    }
    return wrong(x, "{% raw %} has no {% endraw %}");
}

/* ---- inside a tag ---------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static ctn_status lex_text(lexer *x)
{
    const char *p = x->p + 1;
    while (p < x->end && *p != *x->p) p += *p == '\\' && p + 1 < x->end ? 2 : 1;
    if (p >= x->end) return wrong(x, "a text has no end: a quote is missing");
    CTN_TRY(push(x, CTN__TT_TEXT, x->p + 1, (size_t)(p - x->p - 1)));
    go(x, p + 1);
    return CTN_OK;
}

static const char *digits(const lexer *x, const char *p)
{
    while (p < x->end && is_digit(*p)) p++;
    return p;
}

static ctn_status lex_number(lexer *x)
{
    const char *p = digits(x, x->p);
    ctn__ttype type = CTN__TT_INT;
    const bool whole = x->p > x->begin && x->p[-1] == '.'; /* a.0.1 */
    if (!whole && p + 1 < x->end && *p == '.' && is_digit(p[1])) {
        p = digits(x, p + 1);
        type = CTN__TT_REAL;
    }
    if (!whole && p + 1 < x->end && (*p == 'e' || *p == 'E')) {
        const char *q = p + 1 + (p[1] == '-' || p[1] == '+');
        if (q < x->end && is_digit(*q)) {
            p = digits(x, q);
            type = CTN__TT_REAL;
        }
    }
    if (p < x->end && is_letter(*p)) return wrong(x, "a number is followed by a letter");
    CTN_TRY(push(x, type, x->p, (size_t)(p - x->p)));
    go(x, p);
    return CTN_OK;
}

static ctn_status balance(lexer *x, char c)
{
    if (c == '(' || c == '[' || c == '{') {
        if (x->opened == CTN__T_NESTED) return wrong(x, "too many brackets inside each other");
        x->open[x->opened++] = (char)(c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == ')' || c == ']' || c == '}') {
        if (x->opened == 0 || x->open[x->opened - 1] != c)
            return wrong(x, "a closing bracket does not match an opening one");
        x->opened--;
    }
    return CTN_OK;
}

static ctn_status lex_operator(lexer *x)
{
    static const char *const two[] = {"//", "**", "==", "!=", ">=", "<=", NULL};
    size_t n = 0;
    for (const char *const *o = two; *o && n == 0; o++) n = begins(x->p, x->end, *o) ? 2 : 0;
    if (n == 0 && *x->p && strchr("+-/*%~[](){}<>=.:|,;", *x->p)) n = 1;
    if (n == 0) {
        return ctn_fail(CTN_EFORMAT, "%s, line %d: unexpected character '%.*s'", x->who, x->line,
                        ctn__character(x->p), x->p);
    }
    if (n == 1) CTN_TRY(balance(x, *x->p));
    CTN_TRY(push(x, CTN__TT_OPERATOR, x->p, n));
    go(x, x->p + n);
    return CTN_OK;
}

static ctn_status lex_word(lexer *x)
{
    const char *p = x->p;
    if (*p == '"' || *p == '\'') return lex_text(x);
    if (is_digit(*p)) return lex_number(x);
    if (!is_letter(*p)) return lex_operator(x);
    while (p < x->end && (is_letter(*p) || is_digit(*p))) p++;
    CTN_TRY(push(x, CTN__TT_NAME, x->p, (size_t)(p - x->p)));
    go(x, p);
    return CTN_OK;
}

static ctn_status lex_tag(lexer *x, bool print)
{
    const char *close = print ? "}}" : "%}";
    for (x->opened = 0;;) {
        go(x, skip_space(x->p, x->end));
        if (x->p >= x->end) return wrong(x, "a tag has no end: }} or %} is missing");
        const char sign = sign_at(x->p, x->end);
        const char *p = x->p + (sign == '-' || (sign == '+' && !print));
        if (x->opened == 0 && begins(p, x->end, close)) {
            CTN_TRY(push(x, print ? CTN__TT_PRINT_END : CTN__TT_BLOCK_END, p, 2));
            go(x, print && sign != '-' ? p + 2 : after_tag(x, p + 2, sign));
            return CTN_OK;
        }
        CTN_TRY(lex_word(x));
    }
}

/* ---- the whole template ---------------------------------------------------------------------- */

/* Data, and the tag that ends it. */
static ctn_status lex_part(lexer *x)
{
    const char *from = x->p, *p = from, *body = NULL;
    char before = 0, after = 0;
    while (p < x->end && !begins(p, x->end, "{{") && !begins(p, x->end, "{%") &&
           !begins(p, x->end, "{#"))
        p++;
    if (p == x->end) {
        if (p > from) CTN_TRY(push(x, CTN__TT_DATA, from, (size_t)(p - from)));
        go(x, p);
        return CTN_OK;
    }
    const bool print = p[1] == '{';
    const char sign = sign_at(p + 2, x->end);
    CTN_TRY(push_data(x, from, p, sign, print));
    go(x, p);
    if (p[1] == '#') return lex_comment(x, p + 2 + (sign != 0));
    if (p[1] == '%') body = match_tag(x, p, "raw", &before, &after);
    if (body && after != '+') return lex_raw(x, after ? skip_space(body, x->end) : body);
    CTN_TRY(push(x, print ? CTN__TT_PRINT : CTN__TT_BLOCK, p, 2));
    go(x, p + 2 + (sign != 0));
    return lex_tag(x, print);
}

ctn_status ctn__template_lex(const char *who, const char *source, size_t bytes,
                             ctn__ttokens *tokens)
{
    lexer x = {
        .who = who, .begin = source, .p = source, .end = source + bytes, .line = 1, .out = tokens};
    while (x.p < x.end) CTN_TRY(lex_part(&x));
    return push(&x, CTN__TT_END, x.end, 0);
}
