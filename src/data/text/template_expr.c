/* SPDX-License-Identifier: Apache-2.0
 *
 * Expressions of a chat template to nodes. From the weakest to the strongest: or, and, not,
 * comparisons, + -, ~, * / // %, **, signs, then attributes, indices, calls, filters and tests.
 */
#include <errno.h>

#include "data/text/template.h"

/* ---- constants ------------------------------------------------------------------------------- */

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The number of `most` hexadecimal digits at *p; -1: they are not there. */
static int64_t read_hex(const char **p, const char *end, int most)
{
    int64_t v = 0;
    for (int i = 0; i < most; i++, ++*p) {
        if (*p >= end || hex(**p) < 0) return -1;
        v = v * 16 + hex(**p);
    }
    return v;
}

static int64_t read_octal(const char **p, const char *end)
{
    int64_t v = 0;
    for (int i = 0; i < 3 && *p < end && **p >= '0' && **p <= '7'; i++) v = v * 8 + *(*p)++ - '0';
    return v;
}

/* The escape after a backslash at *p. Returns the bytes written, at most 4; -1: not valid. */
static int read_escape(const char **p, const char *end, char *out)
{
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    const char c = **p, *known = strchr(from, c);
    int64_t code = -1;
    if (c && known) {
        ++*p;
        *out = to[known - from];
        return 1;
    }
    if (c >= '0' && c <= '7') {
        code = read_octal(p, end);
    } else if (c == 'x' || c == 'u' || c == 'U') {
        ++*p;
        code = read_hex(p, end, c == 'x' ? 2 : c == 'u' ? 4 : 8);
        if (code < 0) return -1;
    } else if (c == '\n') {
        ++*p;
        return 0;
    } else {
        *out = '\\';
        return c == 'N' ? -1 : 1;
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return -1;
    return (int)ctn__utf8_put((uint32_t)code, out);
}

/* One or more texts in a row are one. */
static ctn_status parse_text(ctn__tparser *p, ctn__tnode *node)
{
    size_t room = 0, n = 0;
    for (const ctn__ttoken *t = p->at; t->type == CTN__TT_TEXT; t++) room += t->n;
    char *out = ctn__arena_get(p->memory, room + 4);
    if (!out) return CTN_ENOMEM;
    for (; p->at->type == CTN__TT_TEXT; p->at++) {
        for (const char *s = p->at->s, *end = s + p->at->n; s < end;) {
            int k = 1;
            if (*s != '\\' || s + 1 == end) {
                out[n] = *s++;
            } else {
                s++;
                k = read_escape(&s, end, out + n);
            }
            if (k < 0)
                return ctn__t_parse_fail(p, CTN_EUNSUPPORTED,
                                         "this escape in a text is not supported");
            n += (size_t)k;
        }
    }
    node->value = ctn__t_text(out, n);
    return CTN_OK;
}

static ctn_status parse_number(ctn__tparser *p, ctn__tnode *node)
{
    char text[64], *end = NULL;
    if (p->at->n >= sizeof text)
        return ctn__t_parse_fail(p, CTN_EUNSUPPORTED, "a number with %zu digits is not supported",
                                 p->at->n);
    memcpy(text, p->at->s, p->at->n);
    text[p->at->n] = 0;
    errno = 0;
    if (p->at->type == CTN__TT_INT) node->value = ctn__t_int(strtoll(text, &end, 10));
    else node->value = (ctn__tvalue){.kind = CTN__T_REAL, .x = strtod(text, &end)};
    if (errno == ERANGE && p->at->type == CTN__TT_INT)
        return ctn__t_parse_fail(p, CTN_EUNSUPPORTED, "the number %s is too large", text);
    p->at++;
    return CTN_OK;
}

/* true, false and none; NULL: another name. */
static const ctn__tvalue *named_constant(const ctn__tparser *p)
{
    static const ctn__tvalue yes = {.kind = CTN__T_BOOL, .i = 1}, no = {.kind = CTN__T_BOOL},
                             none = {.kind = CTN__T_NONE};
    if (ctn__t_is_word(p, "true") || ctn__t_is_word(p, "True")) return &yes;
    if (ctn__t_is_word(p, "false") || ctn__t_is_word(p, "False")) return &no;
    if (ctn__t_is_word(p, "none") || ctn__t_is_word(p, "None")) return &none;
    return NULL;
}

/* ---- primaries ------------------------------------------------------------------------------- */

/* Elements up to the closing bracket; keys and values if `pairs`. */
static ctn_status parse_elements(ctn__tparser *p, const char *close, bool pairs, ctn__tnode *node)
{
    ctn__tnode **next = &node->list;
    for (bool first = true; !ctn__t_skip_op(p, close); first = false) {
        if (!first) CTN_TRY(ctn__t_need_op(p, ","));
        if (!first && ctn__t_skip_op(p, close)) break;
        CTN_TRY(ctn__t_expression(p, next));
        next = &(*next)->next;
        if (!pairs) continue;
        CTN_TRY(ctn__t_need_op(p, ":"));
        CTN_TRY(ctn__t_expression(p, next));
        next = &(*next)->next;
    }
    return CTN_OK;
}

static ctn_status parse_brackets(ctn__tparser *p, ctn__tnode *node)
{
    if (ctn__t_skip_op(p, "[")) {
        node->kind = CTN__TN_LIST;
        return parse_elements(p, "]", false, node);
    }
    if (ctn__t_skip_op(p, "{")) {
        node->kind = CTN__TN_DICT;
        return parse_elements(p, "}", true, node);
    }
    return ctn__t_parse_fail(p, CTN_EFORMAT, "expected an expression, found '%.*s'",
                             p->at->n < 40 ? (int)p->at->n : 40, p->at->s);
}

static ctn_status parse_primary(ctn__tparser *p, ctn__tnode **out)
{
    if (ctn__t_skip_op(p, "(")) {
        if (ctn__t_skip_op(p, ")"))
            return (*out = ctn__t_node(p, CTN__TN_TUPLE)) ? CTN_OK : CTN_ENOMEM;
        CTN_TRY(ctn__t_expressions(p, false, out));
        return ctn__t_need_op(p, ")");
    }
    ctn__tnode *node = *out = ctn__t_node(p, CTN__TN_CONST);
    if (!node) return CTN_ENOMEM;
    switch (p->at->type) {
    case CTN__TT_NAME: {
        const ctn__tvalue *known = named_constant(p);
        if (known) node->value = *known;
        else node->kind = CTN__TN_NAME;
        node->name = p->at->s;
        node->n = p->at->n;
        p->at++;
        return CTN_OK;
    }
    case CTN__TT_TEXT: return parse_text(p, node);
    case CTN__TT_INT:
    case CTN__TT_REAL: return parse_number(p, node);
    default: return parse_brackets(p, node);
    }
}

/* ---- what follows a primary ------------------------------------------------------------------ */

static ctn_status parse_argument(ctn__tparser *p, bool *named, ctn__tnode **out)
{
    if (ctn__t_is_op(p, "*") || ctn__t_is_op(p, "**"))
        return ctn__t_parse_fail(p, CTN_EUNSUPPORTED, "the arguments * and ** are not supported");
    const bool has_name = p->at->type == CTN__TT_NAME && p->at[1].type == CTN__TT_OPERATOR &&
                          ctn__t_same(p->at[1].s, p->at[1].n, "=");
    if (!has_name && *named)
        return ctn__t_parse_fail(p, CTN_EFORMAT, "an argument without name follows one with name");
    if (!has_name) return ctn__t_expression(p, out);
    *named = true;
    ctn__tnode *node = *out = ctn__t_node(p, CTN__TN_NAMED);
    if (!node) return CTN_ENOMEM;
    node->name = p->at->s;
    node->n = p->at->n;
    p->at += 2;
    return ctn__t_expression(p, &node->a);
}

/* The arguments after an opening parenthesis. */
static ctn_status parse_arguments(ctn__tparser *p, ctn__tnode *call)
{
    ctn__tnode **next = &call->list;
    bool named = false;
    for (bool first = true; !ctn__t_skip_op(p, ")"); first = false) {
        if (!first) CTN_TRY(ctn__t_need_op(p, ","));
        if (!first && ctn__t_skip_op(p, ")")) break;
        CTN_TRY(parse_argument(p, &named, next));
        next = &(*next)->next;
    }
    return CTN_OK;
}

/* The part of a slice up to the next colon or bracket; it may be missing. */
static ctn_status slice_part(ctn__tparser *p, ctn__tnode **out)
{
    return ctn__t_is_op(p, ":") || ctn__t_is_op(p, "]") ? CTN_OK : ctn__t_expression(p, out);
}

static ctn_status parse_index(ctn__tparser *p, ctn__tnode *node)
{
    CTN_TRY(slice_part(p, &node->b));
    if (ctn__t_skip_op(p, ":")) {
        node->kind = CTN__TN_SLICE;
        CTN_TRY(slice_part(p, &node->c));
        if (ctn__t_skip_op(p, ":")) CTN_TRY(slice_part(p, &node->list));
    } else if (!node->b) {
        return ctn__t_parse_fail(p, CTN_EFORMAT, "the index is missing between [ and ]");
    }
    return ctn__t_need_op(p, "]");
}

static ctn_status parse_attribute(ctn__tparser *p, ctn__tnode *node)
{
    node->name = p->at->s;
    node->n = p->at->n;
    if (p->at->type == CTN__TT_INT) { /* a.0 is a[0] */
        node->kind = CTN__TN_ITEM;
        node->b = ctn__t_node(p, CTN__TN_CONST);
        return node->b ? parse_number(p, node->b) : CTN_ENOMEM;
    }
    if (p->at->type != CTN__TT_NAME)
        return ctn__t_parse_fail(p, CTN_EFORMAT, "expected a name after the dot");
    p->at++;
    return CTN_OK;
}

static ctn_status parse_postfix(ctn__tparser *p, ctn__tnode **of)
{
    for (;;) {
        const ctn__tnode_kind kind = ctn__t_is_op(p, ".")   ? CTN__TN_ATTR
                                     : ctn__t_is_op(p, "[") ? CTN__TN_ITEM
                                     : ctn__t_is_op(p, "(") ? CTN__TN_CALL
                                                            : CTN__TN_CONST;
        if (kind == CTN__TN_CONST) return CTN_OK;
        ctn__tnode *node = ctn__t_node(p, kind);
        if (!node) return CTN_ENOMEM;
        node->a = *of;
        *of = node;
        p->at++;
        if (kind == CTN__TN_ATTR) CTN_TRY(parse_attribute(p, node));
        else if (kind == CTN__TN_ITEM) CTN_TRY(parse_index(p, node));
        else CTN_TRY(parse_arguments(p, node));
    }
}

/* A filter or test with this name. */
static ctn_status check_known(const ctn__tparser *p, const ctn__tnode *node)
{
    const bool filter = node->kind == CTN__TN_FILTER;
    if (filter ? ctn__t_filter(node->name, node->n) : ctn__t_test(node->name, node->n))
        return CTN_OK;
    return ctn__t_parse_fail(p, CTN_EUNSUPPORTED, "the %s '%.*s' is not supported",
                             filter ? "filter" : "test", node->n < 60 ? (int)node->n : 60,
                             node->name);
}

static ctn_status take_name(ctn__tparser *p, ctn__tnode *node)
{
    if (p->at->type != CTN__TT_NAME)
        return ctn__t_parse_fail(p, CTN_EFORMAT, "expected the name of a filter or test");
    node->name = p->at->s;
    node->n = p->at->n;
    p->at++;
    return check_known(p, node);
}

static ctn_status parse_filter(ctn__tparser *p, ctn__tnode **of)
{
    ctn__tnode *node = ctn__t_node(p, CTN__TN_FILTER);
    if (!node) return CTN_ENOMEM;
    node->a = *of;
    *of = node;
    CTN_TRY(take_name(p, node));
    return ctn__t_skip_op(p, "(") ? parse_arguments(p, node) : CTN_OK;
}

/* Does an argument without parentheses follow the name of a test? */
static bool has_operand(const ctn__tparser *p)
{
    switch (p->at->type) {
    case CTN__TT_NAME:
        return !ctn__t_is_word(p, "else") && !ctn__t_is_word(p, "or") && !ctn__t_is_word(p, "and");
    case CTN__TT_TEXT:
    case CTN__TT_INT:
    case CTN__TT_REAL: return true;
    default: return ctn__t_is_op(p, "[") || ctn__t_is_op(p, "{");
    }
}

static ctn_status parse_test(ctn__tparser *p, ctn__tnode **of)
{
    const bool not = ctn__t_skip_word(p, "not");
    ctn__tnode *node = ctn__t_node(p, CTN__TN_TEST);
    if (!node) return CTN_ENOMEM;
    node->a = *of;
    *of = node;
    CTN_TRY(take_name(p, node));
    if (ctn__t_skip_op(p, "(")) {
        CTN_TRY(parse_arguments(p, node));
    } else if (has_operand(p)) {
        if (ctn__t_is_word(p, "is"))
            return ctn__t_parse_fail(p, CTN_EFORMAT, "two tests in a row: 'is' after 'is'");
        CTN_TRY(parse_primary(p, &node->list));
        CTN_TRY(parse_postfix(p, &node->list));
    }
    if (!not) return CTN_OK;
    *of = ctn__t_node(p, CTN__TN_NOT);
    if (!*of) return CTN_ENOMEM;
    (*of)->a = node;
    return CTN_OK;
}

ctn_status ctn__t_filters(ctn__tparser *p, ctn__tnode *of, ctn__tnode **out)
{
    *out = of;
    while (ctn__t_skip_op(p, "|")) CTN_TRY(parse_filter(p, out));
    return CTN_OK;
}

static ctn_status parse_tail(ctn__tparser *p, ctn__tnode **of)
{
    for (;;) {
        if (ctn__t_skip_op(p, "|")) CTN_TRY(parse_filter(p, of));
        else if (ctn__t_skip_word(p, "is")) CTN_TRY(parse_test(p, of));
        else if (ctn__t_is_op(p, "(")) CTN_TRY(parse_postfix(p, of));
        else return CTN_OK;
    }
}

/* ---- operators ------------------------------------------------------------------------------- */

static ctn_status parse_unary(ctn__tparser *p, bool filters, ctn__tnode **out)
{
    CTN_TRY(ctn__t_nest(p));
    const bool minus = ctn__t_is_op(p, "-");
    if (minus || ctn__t_is_op(p, "+")) {
        ctn__tnode *node = *out = ctn__t_node(p, CTN__TN_SIGN);
        if (!node) return CTN_ENOMEM;
        node->op = minus ? CTN__TO_SUBTRACT : CTN__TO_ADD;
        p->at++;
        CTN_TRY(parse_unary(p, false, &node->a));
    } else {
        CTN_TRY(parse_primary(p, out));
    }
    CTN_TRY(parse_postfix(p, out));
    if (filters) CTN_TRY(parse_tail(p, out));
    p->nested--;
    return CTN_OK;
}

enum { LEVELS = 4 };

/* The operator of a level at this place; -1: another one. */
static int operator_at(const ctn__tparser *p, int level)
{
    static const struct {
        const char *text;
        int level;
        ctn__top op;
    } all[] = {{"+", 0, CTN__TO_ADD},      {"-", 0, CTN__TO_SUBTRACT}, {"~", 1, CTN__TO_JOIN},
               {"*", 2, CTN__TO_MULTIPLY}, {"/", 2, CTN__TO_DIVIDE},   {"//", 2, CTN__TO_FLOOR},
               {"%", 2, CTN__TO_MODULO},   {"**", 3, CTN__TO_POWER}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].level == level && ctn__t_is_op(p, all[i].text)) return (int)all[i].op;
    return -1;
}

static ctn_status parse_level(ctn__tparser *p, int level, ctn__tnode **out)
{
    if (level == LEVELS) return parse_unary(p, true, out);
    CTN_TRY(parse_level(p, level + 1, out));
    for (int op; (op = operator_at(p, level)) >= 0;) {
        ctn__tnode *node = ctn__t_node(p, CTN__TN_BINARY);
        if (!node) return CTN_ENOMEM;
        node->op = (ctn__top)op;
        node->a = *out;
        *out = node;
        p->at++;
        CTN_TRY(parse_level(p, level + 1, &node->b));
    }
    return CTN_OK;
}

static int comparison_at(ctn__tparser *p)
{
    static const struct {
        const char *text;
        ctn__top op;
    } all[] = {{"==", CTN__TO_EQUAL}, {"!=", CTN__TO_UNEQUAL}, {"<", CTN__TO_BELOW},
               {">", CTN__TO_ABOVE},  {"<=", CTN__TO_AT_MOST}, {">=", CTN__TO_AT_LEAST}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (ctn__t_skip_op(p, all[i].text)) return (int)all[i].op;
    if (ctn__t_skip_word(p, "in")) return CTN__TO_IN;
    if (!ctn__t_is_word(p, "not") || p->at[1].type != CTN__TT_NAME ||
        !ctn__t_same(p->at[1].s, p->at[1].n, "in"))
        return -1;
    p->at += 2;
    return CTN__TO_NOT_IN;
}

static ctn_status parse_compare(ctn__tparser *p, ctn__tnode **out)
{
    ctn__tnode *first = NULL, **next = NULL;
    CTN_TRY(parse_level(p, 0, &first));
    *out = first;
    for (int op; (op = comparison_at(p)) >= 0; next = &(*next)->next) {
        if (!next) {
            *out = ctn__t_node(p, CTN__TN_COMPARE);
            if (!*out) return CTN_ENOMEM;
            (*out)->a = first;
            next = &(*out)->list;
        }
        ctn__tnode *with = *next = ctn__t_node(p, CTN__TN_WITH);
        if (!with) return CTN_ENOMEM;
        with->op = (ctn__top)op;
        CTN_TRY(parse_level(p, 0, &with->a));
    }
    return CTN_OK;
}

static ctn_status parse_not(ctn__tparser *p, ctn__tnode **out)
{
    ctn__tnode **at = out;
    int nots = 0;
    for (; ctn__t_skip_word(p, "not"); at = &(*at)->a, nots++) {
        CTN_TRY(ctn__t_nest(p));
        *at = ctn__t_node(p, CTN__TN_NOT);
        if (!*at) return CTN_ENOMEM;
    }
    p->nested -= nots;
    return parse_compare(p, at);
}

static ctn_status parse_logic(ctn__tparser *p, bool or, ctn__tnode **out)
{
    CTN_TRY(or ? parse_logic(p, false, out) : parse_not(p, out));
    while (ctn__t_skip_word(p, or ? "or" : "and")) {
        ctn__tnode *node = ctn__t_node(p, or ? CTN__TN_OR : CTN__TN_AND);
        if (!node) return CTN_ENOMEM;
        node->a = *out;
        *out = node;
        CTN_TRY(or ? parse_logic(p, false, &node->b) : parse_not(p, &node->b));
    }
    return CTN_OK;
}

ctn_status ctn__t_expression(ctn__tparser *p, ctn__tnode **out)
{
    CTN_TRY(ctn__t_nest(p));
    CTN_TRY(parse_logic(p, true, out));
    while (ctn__t_skip_word(p, "if")) {
        ctn__tnode *node = ctn__t_node(p, CTN__TN_CHOICE);
        if (!node) return CTN_ENOMEM;
        node->a = *out;
        *out = node;
        CTN_TRY(parse_logic(p, true, &node->b));
        if (ctn__t_skip_word(p, "else")) CTN_TRY(ctn__t_expression(p, &node->c));
    }
    p->nested--;
    return CTN_OK;
}

/* ---- tuples and targets ---------------------------------------------------------------------- */

static bool ends_tuple(const ctn__tparser *p)
{
    return p->at->type == CTN__TT_PRINT_END || p->at->type == CTN__TT_BLOCK_END ||
           p->at->type == CTN__TT_END || ctn__t_is_op(p, ")") || ctn__t_is_op(p, "=") ||
           ctn__t_is_word(p, "in");
}

ctn_status ctn__t_expressions(ctn__tparser *p, bool plain, ctn__tnode **out)
{
    ctn__tnode *first = NULL;
    CTN_TRY(plain ? parse_logic(p, true, &first) : ctn__t_expression(p, &first));
    *out = first;
    if (!ctn__t_is_op(p, ",")) return CTN_OK;
    *out = ctn__t_node(p, CTN__TN_TUPLE);
    if (!*out) return CTN_ENOMEM;
    (*out)->list = first;
    for (ctn__tnode **next = &first->next; ctn__t_skip_op(p, ",") && !ends_tuple(p);
         next = &(*next)->next)
        CTN_TRY(plain ? parse_logic(p, true, next) : ctn__t_expression(p, next));
    return CTN_OK;
}

static ctn_status one_target(ctn__tparser *p, bool attributes, ctn__tnode **out)
{
    if (p->at->type != CTN__TT_NAME || named_constant(p))
        return ctn__t_parse_fail(p, CTN_EFORMAT, "expected the name of a variable, found '%.*s'",
                                 p->at->n < 40 ? (int)p->at->n : 40, p->at->s);
    ctn__tnode *node = *out = ctn__t_node(p, CTN__TN_NAME);
    if (!node) return CTN_ENOMEM;
    node->name = p->at->s;
    node->n = p->at->n;
    p->at++;
    if (!attributes || !ctn__t_skip_op(p, ".")) return CTN_OK;
    *out = ctn__t_node(p, CTN__TN_ATTR);
    if (!*out) return CTN_ENOMEM;
    (*out)->a = node;
    return parse_attribute(p, *out);
}

ctn_status ctn__t_target(ctn__tparser *p, bool attributes, ctn__tnode **out)
{
    ctn__tnode *first = NULL;
    const bool closed = ctn__t_skip_op(p, "(");
    CTN_TRY(one_target(p, attributes, &first));
    if (!first) return CTN_ENOMEM; /* cannot happen */
    *out = first;
    if (ctn__t_is_op(p, ",")) {
        *out = ctn__t_node(p, CTN__TN_TUPLE);
        if (!*out) return CTN_ENOMEM;
        (*out)->list = first;
        for (ctn__tnode **next = &first->next; ctn__t_skip_op(p, ",") && !ends_tuple(p);
             next = &(*next)->next)
            CTN_TRY(one_target(p, attributes, next));
    }
    return closed ? ctn__t_need_op(p, ")") : CTN_OK;
}
