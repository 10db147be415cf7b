/* SPDX-License-Identifier: Apache-2.0
 *
 * Statements of a chat template to nodes. A statement that is not supported, such as include, is
 * refused here, before anything runs.
 */
#include <stdarg.h>

#include "data/text/template.h"

/* ---- tokens ---------------------------------------------------------------------------------- */

ctn_status ctn__t_parse_fail(const ctn__tparser *p, ctn_status st, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ctn__text_clean(text);
    return ctn_fail(st, "%s, line %d: %s", p->who, p->at->line, text);
}

ctn__tnode *ctn__t_node(const ctn__tparser *p, ctn__tnode_kind kind)
{
    ctn__tnode *node = ctn__arena_zero(p->memory, sizeof *node);
    if (!node) return NULL;
    node->kind = kind;
    node->line = p->at->line;
    return node;
}

bool ctn__t_is_op(const ctn__tparser *p, const char *op)
{
    return p->at->type == CTN__TT_OPERATOR && ctn__t_same(p->at->s, p->at->n, op);
}

bool ctn__t_is_word(const ctn__tparser *p, const char *name)
{
    return p->at->type == CTN__TT_NAME && ctn__t_same(p->at->s, p->at->n, name);
}

bool ctn__t_skip_op(ctn__tparser *p, const char *op)
{
    const bool found = ctn__t_is_op(p, op);
    p->at += found;
    return found;
}

bool ctn__t_skip_word(ctn__tparser *p, const char *name)
{
    const bool found = ctn__t_is_word(p, name);
    p->at += found;
    return found;
}

static const char *found(const ctn__tparser *p, int *n)
{
    *n = p->at->n < 40 ? (int)p->at->n : 40;
    return p->at->type == CTN__TT_END ? "" : p->at->s;
}

ctn_status ctn__t_need_op(ctn__tparser *p, const char *op)
{
    int n = 0;
    const char *s = found(p, &n);
    if (ctn__t_skip_op(p, op)) return CTN_OK;
    return ctn__t_parse_fail(p, CTN_EFORMAT, "expected '%s', found '%.*s'", op, n, s);
}

ctn_status ctn__t_nest(ctn__tparser *p)
{
    if (p->nested++ < CTN__T_NESTED) return CTN_OK;
    return ctn__t_parse_fail(p, CTN_EUNSUPPORTED, "nested more than %d levels deep", CTN__T_NESTED);
}

static ctn_status end_tag(ctn__tparser *p)
{
    int n = 0;
    const char *s = found(p, &n);
    if (p->at->type != CTN__TT_BLOCK_END)
        return ctn__t_parse_fail(p, CTN_EFORMAT, "expected the end of the tag, found '%.*s'", n, s);
    p->at++;
    return CTN_OK;
}

/* ---- statements ------------------------------------------------------------------------------ */

static ctn_status parse_body(ctn__tparser *p, const char *const *ends, ctn__tnode **list);

/* The rest of a tag, a body, and its last tag, which is `end`. */
static ctn_status parse_block(ctn__tparser *p, const char *end, ctn__tnode **list)
{
    CTN_TRY(end_tag(p));
    CTN_TRY(parse_body(p, (const char *const[]){end, NULL}, list));
    p->at++;
    return end_tag(p);
}

/* The same for a body that cannot leave a loop around it. */
static ctn_status parse_apart(ctn__tparser *p, const char *end, ctn__tnode **list)
{
    const int loops = p->loops;
    p->loops = 0;
    CTN_TRY(parse_block(p, end, list));
    p->loops = loops;
    return CTN_OK;
}

static ctn_status parse_if(ctn__tparser *p, ctn__tnode *node)
{
    static const char *const ends[] = {"endif", "elif", "else", NULL};
    for (;;) {
        CTN_TRY(ctn__t_expressions(p, true, &node->a));
        CTN_TRY(end_tag(p));
        CTN_TRY(parse_body(p, ends, &node->list));
        if (!ctn__t_skip_word(p, "elif")) break;
        node->rest = ctn__t_node(p, CTN__TN_IF);
        if (!node->rest) return CTN_ENOMEM;
        node = node->rest;
    }
    if (ctn__t_skip_word(p, "else")) return parse_block(p, "endif", &node->rest);
    p->at++;
    return end_tag(p);
}

static ctn_status parse_for(ctn__tparser *p, ctn__tnode *node)
{
    static const char *const ends[] = {"endfor", "else", NULL};
    CTN_TRY(ctn__t_target(p, false, &node->a));
    if (!ctn__t_skip_word(p, "in"))
        return ctn__t_parse_fail(p, CTN_EFORMAT, "expected 'in' in the head of the loop");
    CTN_TRY(ctn__t_expressions(p, true, &node->b));
    if (ctn__t_skip_word(p, "if")) CTN_TRY(ctn__t_expression(p, &node->c));
    if (ctn__t_is_word(p, "recursive"))
        return ctn__t_parse_fail(p, CTN_EUNSUPPORTED, "recursive loops are not supported");
    CTN_TRY(end_tag(p));
    p->loops++;
    CTN_TRY(parse_body(p, ends, &node->list));
    p->loops--;
    if (ctn__t_skip_word(p, "else")) return parse_block(p, "endfor", &node->rest);
    p->at++;
    return end_tag(p);
}

static ctn_status parse_set(ctn__tparser *p, ctn__tnode *node)
{
    CTN_TRY(ctn__t_target(p, true, &node->a));
    if (ctn__t_skip_op(p, "=")) {
        CTN_TRY(ctn__t_expressions(p, false, &node->b));
        return end_tag(p);
    }
    node->kind = CTN__TN_SET_TO;
    CTN_TRY(ctn__t_filters(p, NULL, &node->b));
    return parse_apart(p, "endset", &node->list);
}

static ctn_status parse_parameters(ctn__tparser *p, ctn__tnode *node)
{
    ctn__tnode **next = &node->rest;
    CTN_TRY(ctn__t_need_op(p, "("));
    for (bool first = true; !ctn__t_skip_op(p, ")"); first = false) {
        if (!first) CTN_TRY(ctn__t_need_op(p, ","));
        if (!first && ctn__t_skip_op(p, ")")) break;
        if (p->at->type != CTN__TT_NAME)
            return ctn__t_parse_fail(p, CTN_EFORMAT, "expected the name of a parameter");
        *next = ctn__t_node(p, CTN__TN_NAMED);
        if (!*next) return CTN_ENOMEM;
        (*next)->name = p->at->s;
        (*next)->n = p->at->n;
        p->at++;
        if (ctn__t_skip_op(p, "=")) CTN_TRY(ctn__t_expression(p, &(*next)->a));
        next = &(*next)->next;
    }
    return CTN_OK;
}

static ctn_status parse_macro(ctn__tparser *p, ctn__tnode *node)
{
    if (p->at->type != CTN__TT_NAME)
        return ctn__t_parse_fail(p, CTN_EFORMAT, "expected the name of the macro");
    node->name = p->at->s;
    node->n = p->at->n;
    p->at++;
    CTN_TRY(parse_parameters(p, node));
    return parse_apart(p, "endmacro", &node->list);
}

static ctn_status parse_jump(ctn__tparser *p, const ctn__tnode *node)
{
    if (p->loops == 0)
        return ctn__t_parse_fail(p, CTN_EFORMAT, "'%s' outside of a loop",
                                 node->kind == CTN__TN_BREAK ? "break" : "continue");
    return end_tag(p);
}

static ctn_status parse_generation(ctn__tparser *p, ctn__tnode *node)
{
    return parse_apart(p, "endgeneration", &node->list);
}

static ctn_status parse_statement(ctn__tparser *p, ctn__tnode **out)
{
    static const struct {
        const char *name;
        ctn__tnode_kind kind;
    } all[] = {{"if", CTN__TN_IF},          {"for", CTN__TN_FOR},
               {"set", CTN__TN_SET},        {"macro", CTN__TN_MACRO},
               {"break", CTN__TN_BREAK},    {"continue", CTN__TN_CONTINUE},
               {"generation", CTN__TN_BODY}};
    size_t i = 0;
    const ctn__ttoken *tag = p->at;
    while (i < sizeof all / sizeof *all && !ctn__t_is_word(p, all[i].name)) i++;
    if (i == sizeof all / sizeof *all || tag->type != CTN__TT_NAME)
        return ctn__t_parse_fail(p, CTN_EUNSUPPORTED,
                                 "the tag '%.*s' is not supported, or not expected here",
                                 tag->n < 40 ? (int)tag->n : 40, tag->s);
    ctn__tnode *node = *out = ctn__t_node(p, all[i].kind);
    if (!node) return CTN_ENOMEM;
    p->at++;
    switch (node->kind) {
    case CTN__TN_IF: return parse_if(p, node);
    case CTN__TN_FOR: return parse_for(p, node);
    case CTN__TN_SET: return parse_set(p, node);
    case CTN__TN_MACRO: return parse_macro(p, node);
    case CTN__TN_BODY: return parse_generation(p, node);
    default: return parse_jump(p, node);
    }
}

static ctn_status parse_print(ctn__tparser *p, ctn__tnode **out)
{
    int n = 0;
    ctn__tnode *node = *out = ctn__t_node(p, CTN__TN_PRINT);
    if (!node) return CTN_ENOMEM;
    CTN_TRY(ctn__t_expressions(p, false, &node->a));
    const char *s = found(p, &n);
    if (p->at->type != CTN__TT_PRINT_END)
        return ctn__t_parse_fail(p, CTN_EFORMAT, "expected '}}', found '%.*s'", n, s);
    p->at++;
    return CTN_OK;
}

static bool is_end(const ctn__tparser *p, const char *const *ends)
{
    for (; *ends; ends++)
        if (ctn__t_is_word(p, *ends)) return true;
    return false;
}

/* Nodes up to a tag with one of these names, which is next then, or to the end of the template. */
static ctn_status parse_body(ctn__tparser *p, const char *const *ends, ctn__tnode **list)
{
    CTN_TRY(ctn__t_nest(p));
    for (; p->at->type != CTN__TT_END; list = &(*list)->next) {
        if (p->at->type == CTN__TT_DATA) {
            *list = ctn__t_node(p, CTN__TN_DATA);
            if (!*list) return CTN_ENOMEM;
            (*list)->name = p->at->s;
            (*list)->n = p->at->n;
            p->at++;
            continue;
        }
        const bool print = p->at++->type == CTN__TT_PRINT;
        if (!print && is_end(p, ends)) {
            p->nested--;
            return CTN_OK;
        }
        CTN_TRY(print ? parse_print(p, list) : parse_statement(p, list));
    }
    p->nested--;
    if (!*ends) return CTN_OK;
    return ctn__t_parse_fail(p, CTN_EFORMAT, "the template ends before the tag '%s'", *ends);
}

/* ---- the whole template ---------------------------------------------------------------------- */

/* A copy with line ends of one byte, and without the last one. */
static char *normalise(const char *s, size_t bytes, size_t *n)
{
    char *out = ctn__malloc(bytes + 1);
    size_t k = 0;
    for (size_t i = 0; out && i < bytes; i++) {
        if (s[i] == '\r' && i + 1 < bytes && s[i + 1] == '\n') continue;
        out[k++] = (char)(s[i] == '\r' ? '\n' : s[i]);
    }
    if (out && k > 0 && out[k - 1] == '\n') k--;
    if (out) out[k] = 0;
    *n = k;
    return out;
}

static ctn_status check_utf8(const char *who, const char *s, size_t n)
{
    for (size_t i = 0, k; i < n; i += k) {
        uint32_t c = 0;
        k = ctn__utf8_get(s + i, s + n, &c);
        if (s[i] == 0 || (k == 1 && (unsigned char)s[i] >= 0x80))
            return ctn_fail(CTN_EFORMAT, "%s: byte %zu is not part of a UTF-8 text", who, i);
    }
    return CTN_OK;
}

ctn_status ctn__template_open(ctn__template *t, const char *who, const char *source, size_t bytes)
{
    size_t n = 0;
    ctn__ttokens tokens = {0};
    ctn__tparser p = {.memory = &t->memory, .who = who};
    if (bytes > CTN__T_SOURCE)
        return ctn_fail(CTN_EUNSUPPORTED, "%s has %zu bytes, at most %d are supported", who, bytes,
                        CTN__T_SOURCE);
    CTN_TRY(check_utf8(who, source, bytes));
    t->source = normalise(source, bytes, &n);
    if (!t->source) return CTN_ENOMEM;
    ctn_status st = ctn__template_lex(who, t->source, n, &tokens);
    p.at = tokens.at;
    if (st == CTN_OK) st = parse_body(&p, (const char *const[]){NULL}, &t->body);
    ctn__vec_free(&tokens);
    return st;
}

void ctn__template_free(ctn__template *t)
{
    ctn__free(t->source);
    ctn__arena_free(&t->memory);
    *t = (ctn__template){0};
}
