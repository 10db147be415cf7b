/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the statements of a chat template. Each pass of a loop and each call of a macro has a scope
 * of its own: what is set there is gone after it, and only namespaces carry values out.
 */
#include "data/text/template.h"

/* What a list of statements ended with. */
typedef enum { ON, BREAK, CONTINUE } flow;

static ctn_status run_list(ctn__trun *r, const ctn__tnode *node, flow *to);

/* ---- scopes ---------------------------------------------------------------------------------- */

ctn_status ctn__t_open_scope(ctn__trun *r, ctn__tscope *parent)
{
    ctn__tscope *s = ctn__t_take(r, sizeof *s);
    if (!s) return r->status;
    *s = (ctn__tscope){.parent = parent};
    r->scope = s;
    return CTN_OK;
}

ctn_status ctn__t_set(ctn__trun *r, const char *name, size_t n, const ctn__tvalue *value)
{
    size_t seen = 0;
    for (ctn__tvar *v = r->scope->vars; v; v = v->next, seen++) {
        if (v->n != n || memcmp(v->name, name, n) != 0) continue;
        v->value = *value;
        return ctn__t_work(r, seen / 8);
    }
    ctn__tvar *v = ctn__t_take(r, sizeof *v);
    if (!v) return r->status;
    *v = (ctn__tvar){name, n, *value, r->scope->vars};
    r->scope->vars = v;
    return ctn__t_work(r, seen / 8);
}

static ctn_status set_attribute(ctn__trun *r, const ctn__tnode *target, const ctn__tvalue *value)
{
    ctn__tvalue space = {0};
    const ctn__tvalue key = ctn__t_text(target->name, target->n);
    CTN_TRY(ctn__t_eval(r, target->a, &space));
    if (space.kind != CTN__T_SPACE)
        return ctn__t_fail(r, CTN_EFORMAT,
                           "cannot set an attribute of a value of type %s, only of "
                           "a namespace",
                           ctn__t_type(&space));
    return ctn__t_space_set(r, space.space, &key, value);
}

static ctn_status assign(ctn__trun *r, const ctn__tnode *target, const ctn__tvalue *value)
{
    ctn__tvalue list = {0};
    size_t n = 0, i = 0;
    if (target->kind == CTN__TN_NAME) return ctn__t_set(r, target->name, target->n, value);
    if (target->kind == CTN__TN_ATTR) return set_attribute(r, target, value);
    CTN_TRY(ctn__t_items(r, value, &list));
    for (const ctn__tnode *t = target->list; t; t = t->next) n++;
    if (list.n != n) return ctn__t_fail(r, CTN_EFORMAT, "%zu values for %zu variables", list.n, n);
    for (const ctn__tnode *t = target->list; t; t = t->next) CTN_TRY(assign(r, t, &list.list[i++]));
    return CTN_OK;
}

/* ---- the text of a part ---------------------------------------------------------------------- */

/* Runs a list in a scope of its own and takes its text. */
static ctn_status capture(ctn__trun *r, ctn__tscope *parent, const ctn__tnode *list,
                          ctn__tvalue *text)
{
    ctn__tout out = {0}, *before = r->out;
    flow to = ON;
    r->out = &out;
    ctn_status st = run_list(r, list, &to);
    r->out = before;
    r->scope = parent;
    return ctn__t_keep(r, st, &out, text);
}

static ctn_status set_text(ctn__trun *r, const ctn__tnode *node)
{
    ctn__tscope *scope = r->scope;
    ctn__tvalue text = {0};
    CTN_TRY(ctn__t_open_scope(r, scope));
    CTN_TRY(capture(r, scope, node->list, &text));
    if (node->b) CTN_TRY(ctn__t_eval_filters(r, node->b, &text));
    return assign(r, node->a, &text);
}

/* The argument for parameter i. */
static ctn_status argument(ctn__trun *r, const ctn__tnode *param, size_t i, const ctn__targs *args,
                           ctn__tvalue *out)
{
    const ctn__tvalue key = ctn__t_text(param->name, param->n), *named = NULL;
    CTN_TRY(ctn__t_find(r, args->named, args->names, &key, &named));
    if (i < args->n && named)
        return ctn__t_fail(r, CTN_EFORMAT, "two values for a parameter of a macro");
    *out = i < args->n ? args->at[i] : named ? *named : ctn__t_undefined(param->name, param->n);
    return i < args->n || named || !param->a ? CTN_OK : ctn__t_eval(r, param->a, out);
}

ctn_status ctn__t_call_macro(ctn__trun *r, const ctn__tmacro *m, const ctn__targs *args,
                             ctn__tvalue *out)
{
    ctn__tscope *scope = r->scope;
    size_t i = 0, left = args->names;
    CTN_TRY(ctn__t_enter(r));
    CTN_TRY(ctn__t_open_scope(r, m->scope));
    for (const ctn__tnode *p = m->node->rest; p; p = p->next, i++) {
        ctn__tvalue v = {0};
        const ctn__tvalue key = ctn__t_text(p->name, p->n), *named = NULL;
        CTN_TRY(argument(r, p, i, args, &v));
        CTN_TRY(ctn__t_find(r, args->named, args->names, &key, &named));
        left -= named != NULL;
        CTN_TRY(ctn__t_set(r, p->name, p->n, &v));
    }
    if (args->n > i || left > 0)
        return ctn__t_fail(r, CTN_EFORMAT, "a macro is called with arguments that it has not");
    CTN_TRY(capture(r, scope, m->node->list, out));
    r->depth--;
    return CTN_OK;
}

static ctn_status make_macro(ctn__trun *r, const ctn__tnode *node)
{
    ctn__tmacro *m = ctn__t_take(r, sizeof *m);
    if (!m) return r->status;
    *m = (ctn__tmacro){node, r->scope};
    const ctn__tvalue v = {.kind = CTN__T_MACRO, .macro = m};
    return ctn__t_set(r, node->name, node->n, &v);
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* The elements that the condition of a loop keeps. */
static ctn_status keep_items(ctn__trun *r, const ctn__tnode *node, ctn__tvalue *items)
{
    ctn__tscope *scope = r->scope;
    size_t n = 0;
    if (!node->c) return CTN_OK;
    ctn__tvalue *kept = ctn__t_take(r, items->n * sizeof *kept);
    if (!kept) return r->status;
    for (size_t i = 0; i < items->n; i++) {
        ctn__tvalue yes = {0};
        CTN_TRY(ctn__t_open_scope(r, scope));
        CTN_TRY(assign(r, node->a, &items->list[i]));
        CTN_TRY(ctn__t_eval(r, node->c, &yes));
        if (ctn__t_true(&yes)) kept[n++] = items->list[i];
    }
    r->scope = scope;
    *items = (ctn__tvalue){.kind = CTN__T_LIST, .n = n, .list = kept};
    return CTN_OK;
}

static ctn_status run_for(ctn__trun *r, const ctn__tnode *node, flow *to)
{
    ctn__tscope *scope = r->scope;
    ctn__tvalue over = {0};
    ctn__tloop *loop = ctn__t_take(r, sizeof *loop);
    if (!loop) return r->status;
    CTN_TRY(ctn__t_eval(r, node->b, &over));
    CTN_TRY(ctn__t_items(r, &over, &loop->items));
    CTN_TRY(keep_items(r, node, &loop->items));
    const ctn__tvalue self = {.kind = CTN__T_LOOP, .loop = loop};
    for (loop->at = 0; loop->at < loop->items.n; loop->at++) {
        flow end = ON;
        CTN_TRY(ctn__t_work(r, 1));
        CTN_TRY(ctn__t_open_scope(r, scope));
        CTN_TRY(ctn__t_set(r, "loop", 4, &self));
        CTN_TRY(assign(r, node->a, &loop->items.list[loop->at]));
        CTN_TRY(run_list(r, node->list, &end));
        if (end == BREAK) break;
    }
    r->scope = scope;
    return loop->items.n == 0 ? run_list(r, node->rest, to) : CTN_OK;
}

/* ---- statements ------------------------------------------------------------------------------ */

static ctn_status run_print(ctn__trun *r, const ctn__tnode *node)
{
    ctn__tvalue v = {0};
    CTN_TRY(ctn__t_eval(r, node->a, &v));
    return ctn__t_print(r, r->out, &v);
}

static ctn_status run_set(ctn__trun *r, const ctn__tnode *node)
{
    ctn__tvalue v = {0};
    CTN_TRY(ctn__t_eval(r, node->b, &v));
    return assign(r, node->a, &v);
}

static ctn_status run_if(ctn__trun *r, const ctn__tnode *node, flow *to)
{
    ctn__tvalue yes = {0};
    CTN_TRY(ctn__t_eval(r, node->a, &yes));
    return run_list(r, ctn__t_true(&yes) ? node->list : node->rest, to);
}

static ctn_status run_body(ctn__trun *r, const ctn__tnode *node, flow *to)
{
    ctn__tscope *scope = r->scope;
    CTN_TRY(ctn__t_open_scope(r, scope));
    CTN_TRY(run_list(r, node->list, to));
    r->scope = scope;
    return CTN_OK;
}

static ctn_status run_one(ctn__trun *r, const ctn__tnode *node, flow *to)
{
    switch (node->kind) {
    case CTN__TN_DATA: return ctn__t_put(r, r->out, node->name, node->n);
    case CTN__TN_PRINT: return run_print(r, node);
    case CTN__TN_IF: return run_if(r, node, to);
    case CTN__TN_FOR: return run_for(r, node, to);
    case CTN__TN_SET: return run_set(r, node);
    case CTN__TN_SET_TO: return set_text(r, node);
    case CTN__TN_MACRO: return make_macro(r, node);
    case CTN__TN_BODY: return run_body(r, node, to);
    default: *to = node->kind == CTN__TN_BREAK ? BREAK : CONTINUE; return CTN_OK;
    }
}

static ctn_status run_list(ctn__trun *r, const ctn__tnode *node, flow *to)
{
    CTN_TRY(ctn__t_enter(r));
    for (; node && *to == ON; node = node->next) {
        r->line = node->line;
        CTN_TRY(ctn__t_work(r, 1));
        CTN_TRY(run_one(r, node, to));
    }
    r->depth--;
    return CTN_OK;
}

ctn_status ctn__template_run(const ctn__template *t, ctn__trun *r, ctn__tout *out)
{
    flow to = ON;
    r->out = out;
    return run_list(r, t->body, &to);
}
