/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluates the expressions of a chat template. An undefined value prints as nothing, is false and
 * has no elements; any other use of it is an error, as in jinja2.
 */
#include "data/text/template.h"

/* ---- attributes and indices ------------------------------------------------------------------ */

static int shown(size_t n)
{
    return n < 80 ? (int)n : 80;
}

static ctn_status undefined_error(const ctn__trun *r, const ctn__tvalue *v)
{
    return ctn__t_fail(r, CTN_EFORMAT, "'%.*s' is undefined", shown(v->n), v->s);
}

/* A method of v; ABSENT: it has none of this name. */
static ctn_status find_method(ctn__trun *r, const ctn__tvalue *v, const char *name, size_t n,
                              ctn__tvalue *out)
{
    const ctn__tbuiltin *call = ctn__t_method(v, name, n);
    *out = (ctn__tvalue){0};
    if (!call) return CTN_OK;
    ctn__tmethod *m = ctn__t_take(r, sizeof *m);
    if (!m) return r->status;
    *m = (ctn__tmethod){*v, call};
    *out = (ctn__tvalue){.kind = CTN__T_METHOD, .method = m};
    return CTN_OK;
}

static ctn_status loop_attr(const ctn__trun *r, const ctn__tloop *l, const char *name, size_t n,
                            ctn__tvalue *out)
{
    const int64_t at = (int64_t)l->at, all = (int64_t)l->items.n;
    *out = ctn__t_undefined(name, n);
    if (ctn__t_same(name, n, "index")) *out = ctn__t_int(at + 1);
    else if (ctn__t_same(name, n, "index0")) *out = ctn__t_int(at);
    else if (ctn__t_same(name, n, "revindex")) *out = ctn__t_int(all - at);
    else if (ctn__t_same(name, n, "revindex0")) *out = ctn__t_int(all - at - 1);
    else if (ctn__t_same(name, n, "first")) *out = ctn__t_bool(at == 0);
    else if (ctn__t_same(name, n, "last")) *out = ctn__t_bool(at == all - 1);
    else if (ctn__t_same(name, n, "length")) *out = ctn__t_int(all);
    else if (ctn__t_same(name, n, "previtem")) {
        if (at > 0) *out = l->items.list[at - 1];
    } else if (ctn__t_same(name, n, "nextitem")) {
        if (at + 1 < all) *out = l->items.list[at + 1];
    } else {
        return ctn__t_fail(r, CTN_EUNSUPPORTED, "loop.%.*s is not supported", shown(n), name);
    }
    return CTN_OK;
}

/* The value of a key of a dict or namespace, else undefined. */
static ctn_status find_key(ctn__trun *r, const ctn__tvalue *v, const ctn__tvalue *key,
                           ctn__tvalue *out)
{
    const ctn__tvalue *found = NULL;
    if (v->kind == CTN__T_DICT) CTN_TRY(ctn__t_find(r, v->dict, v->n, key, &found));
    else CTN_TRY(ctn__t_find(r, v->space->at, v->space->n, key, &found));
    const bool named = key->kind == CTN__T_TEXT;
    *out = found ? *found : ctn__t_undefined(named ? key->s : "key", named ? key->n : 3);
    return CTN_OK;
}

ctn_status ctn__t_attr(ctn__trun *r, const ctn__tvalue *v, const char *name, size_t n,
                       ctn__tvalue *out)
{
    if (v->kind == CTN__T_UNDEFINED) return undefined_error(r, v);
    if (v->kind == CTN__T_LOOP) return loop_attr(r, v->loop, name, n, out);
    const ctn__tvalue key = ctn__t_text(name, n);
    if (v->kind == CTN__T_SPACE) return find_key(r, v, &key, out);
    CTN_TRY(find_method(r, v, name, n, out));
    if (out->kind != CTN__T_ABSENT) return CTN_OK;
    if (v->kind == CTN__T_DICT) return find_key(r, v, &key, out);
    *out = ctn__t_undefined(name, n);
    return CTN_OK;
}

/* The character with number i of a text. */
static ctn_status character_at(ctn__trun *r, const ctn__tvalue *v, int64_t i, ctn__tvalue *out)
{
    const char *p = v->s, *end = p + v->n;
    uint32_t c = 0;
    CTN_TRY(ctn__t_work(r, v->n / 16));
    for (; i > 0; i--) p += ctn__utf8_get(p, end, &c);
    *out = ctn__t_text(p, ctn__utf8_get(p, end, &c));
    return CTN_OK;
}

static ctn_status element(ctn__trun *r, const ctn__tvalue *v, int64_t i, ctn__tvalue *out)
{
    int64_t n = 0;
    *out = ctn__t_undefined("element", 7);
    CTN_TRY(ctn__t_length(r, v, &n));
    if (i < 0) i += n;
    if (i < 0 || i >= n) return CTN_OK;
    if (v->kind == CTN__T_TEXT) return character_at(r, v, i, out);
    *out = v->list[i];
    return CTN_OK;
}

ctn_status ctn__t_item(ctn__trun *r, const ctn__tvalue *v, const ctn__tvalue *key, ctn__tvalue *out)
{
    if (v->kind == CTN__T_UNDEFINED) return undefined_error(r, v);
    if ((ctn__t_is_list(v) || v->kind == CTN__T_TEXT) && ctn__t_is_whole(key))
        return element(r, v, key->i, out);
    if (v->kind == CTN__T_DICT) {
        CTN_TRY(find_key(r, v, key, out));
        if (out->kind != CTN__T_UNDEFINED || key->kind != CTN__T_TEXT) return CTN_OK;
        ctn__tvalue method = {0};
        CTN_TRY(find_method(r, v, key->s, key->n, &method));
        if (method.kind != CTN__T_ABSENT) *out = method;
        return CTN_OK;
    }
    if (key->kind == CTN__T_TEXT) return ctn__t_attr(r, v, key->s, key->n, out);
    *out = ctn__t_undefined("element", 7);
    return CTN_OK;
}

/* ---- slices ---------------------------------------------------------------------------------- */

static ctn_status slice_bound(ctn__trun *r, const ctn__tnode *node, int64_t usual, int64_t *to)
{
    ctn__tvalue v = {0};
    *to = usual;
    if (!node) return CTN_OK;
    CTN_TRY(ctn__t_eval(r, node, &v));
    if (v.kind == CTN__T_NONE) return CTN_OK;
    if (!ctn__t_is_whole(&v))
        return ctn__t_fail(r, CTN_EFORMAT, "the bound of a slice is of type %s", ctn__t_type(&v));
    *to = v.i;
    return CTN_OK;
}

/* Where a slice with this step may begin or end among n elements. */
static int64_t clip(int64_t i, int64_t n, int64_t step)
{
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    if (i < 0) i = i < -n ? low : i + n;
    return i < low ? low : i > high ? high : i;
}

static ctn_status join_characters(ctn__trun *r, const ctn__tvalue *list, ctn__tvalue *out)
{
    const ctn__tvalue nothing = ctn__t_text("", 0);
    return ctn__t_join(r, &nothing, list, out);
}

static ctn_status eval_slice(ctn__trun *r, const ctn__tnode *node, ctn__tvalue *out)
{
    ctn__tvalue v = {0}, list = {0};
    int64_t from = 0, to = 0, step = 1;
    CTN_TRY(ctn__t_eval(r, node->a, &v));
    if (v.kind == CTN__T_UNDEFINED) return undefined_error(r, &v);
    if (v.kind != CTN__T_TEXT && !ctn__t_is_list(&v))
        return ctn__t_fail(r, CTN_EFORMAT, "a value of type %s has no slices", ctn__t_type(&v));
    CTN_TRY(ctn__t_items(r, &v, &list));
    const int64_t n = (int64_t)list.n;
    CTN_TRY(slice_bound(r, node->list, 1, &step));
    if (step == 0) return ctn__t_fail(r, CTN_EFORMAT, "the step of a slice is 0");
    CTN_TRY(slice_bound(r, node->b, step > 0 ? 0 : n - 1, &from));
    CTN_TRY(slice_bound(r, node->c, step > 0 ? n : -n - 1, &to));
    from = clip(from, n, step);
    to = clip(to, n, step);
    if (step > n || step < -n) step = step > 0 ? n + 1 : -n - 1;
    ctn__tvalue *at = ctn__t_take(r, list.n * sizeof *at);
    if (!at) return r->status;
    size_t k = 0;
    for (int64_t i = from; step > 0 ? i < to : i > to; i += step) at[k++] = list.list[i];
    *out = (ctn__tvalue){.kind = list.kind, .n = k, .list = at};
    CTN_TRY(ctn__t_work(r, k));
    return v.kind == CTN__T_TEXT ? join_characters(r, out, out) : CTN_OK;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static ctn_status eval_list(ctn__trun *r, const ctn__tnode *first, ctn__tvalue *out)
{
    size_t n = 0, k = 0;
    for (const ctn__tnode *e = first; e && e->kind != CTN__TN_NAMED; e = e->next) n++;
    ctn__tvalue *at = ctn__t_take(r, n * sizeof *at);
    if (!at) return r->status;
    for (const ctn__tnode *e = first; k < n; e = e->next) CTN_TRY(ctn__t_eval(r, e, &at[k++]));
    *out = (ctn__tvalue){.kind = CTN__T_LIST, .n = n, .list = at};
    return CTN_OK;
}

/* Arguments without names come first. */
static ctn_status eval_arguments(ctn__trun *r, const ctn__tnode *first, ctn__targs *args)
{
    ctn__tvalue list = {0};
    CTN_TRY(eval_list(r, first, &list));
    *args = (ctn__targs){.at = list.list, .n = list.n};
    for (size_t i = 0; i < list.n; i++) first = first->next;
    size_t names = 0;
    for (const ctn__tnode *e = first; e; e = e->next) names++;
    ctn__tpair *named = names ? ctn__t_take(r, names * sizeof *named) : NULL;
    if (!named) return names ? r->status : CTN_OK;
    args->named = named;
    args->names = names;
    for (const ctn__tnode *e = first; e; e = e->next, named++) {
        named->key = ctn__t_text(e->name, e->n);
        CTN_TRY(ctn__t_eval(r, e->a, &named->value));
    }
    return CTN_OK;
}

static ctn_status no_call(const ctn__trun *r, const ctn__tnode *callee, const ctn__tvalue *f)
{
    if (callee->kind == CTN__TN_ATTR && f->kind == CTN__T_UNDEFINED)
        return ctn__t_fail(r, CTN_EUNSUPPORTED, "the method '%.*s' is not supported here",
                           shown(callee->n), callee->name);
    if (f->kind == CTN__T_UNDEFINED)
        return ctn__t_fail(r, CTN_EUNSUPPORTED, "the function '%.*s' is not defined", shown(f->n),
                           f->s);
    return ctn__t_fail(r, CTN_EFORMAT, "a value of type %s is called", ctn__t_type(f));
}

static ctn_status eval_call(ctn__trun *r, const ctn__tnode *node, ctn__tvalue *out)
{
    ctn__tvalue f = {0};
    ctn__targs args = {0};
    CTN_TRY(ctn__t_eval(r, node->a, &f));
    CTN_TRY(eval_arguments(r, node->list, &args));
    r->line = node->line;
    switch (f.kind) {
    case CTN__T_METHOD: return ctn__t_call(r, f.method->call, &f.method->self, &args, out);
    case CTN__T_FUNCTION: return ctn__t_call_function(r, f.function, &args, out);
    case CTN__T_MACRO: return ctn__t_call_macro(r, f.macro, &args, out);
    default: return no_call(r, node->a, &f);
    }
}

/* A filter or a test. */
static ctn_status eval_builtin(ctn__trun *r, const ctn__tnode *node, const ctn__tbuiltin *b,
                               ctn__tvalue *out)
{
    ctn__tvalue v = {0};
    ctn__targs args = {0};
    CTN_TRY(ctn__t_eval(r, node->a, &v));
    CTN_TRY(eval_arguments(r, node->list, &args));
    r->line = node->line;
    return ctn__t_call(r, b, &v, &args, out);
}

/* Puts each argument in the place of its parameter. */
static ctn_status bind(const ctn__trun *r, const ctn__tbuiltin *b, const ctn__targs *args,
                       ctn__tvalue *arg)
{
    int params = 0;
    while (params < CTN__T_PARAMS && b->params[params]) params++;
    if (args->n > (size_t)params)
        return ctn__t_fail(r, CTN_EUNSUPPORTED, "'%s' with %zu arguments is not supported", b->name,
                           args->n);
    for (size_t i = 0; i < args->n; i++) arg[i] = args->at[i];
    for (size_t k = 0; k < args->names; k++) {
        const ctn__tvalue *name = &args->named[k].key;
        int i = 0;
        while (i < params && !ctn__t_same(name->s, name->n, b->params[i])) i++;
        if (i == params || arg[i].kind != CTN__T_ABSENT)
            return ctn__t_fail(r, CTN_EUNSUPPORTED, "the argument '%.*s' of '%s' is not supported",
                               shown(name->n), name->s, b->name);
        arg[i] = args->named[k].value;
    }
    return CTN_OK;
}

ctn_status ctn__t_call(ctn__trun *r, const ctn__tbuiltin *b, const ctn__tvalue *self,
                       const ctn__targs *args, ctn__tvalue *out)
{
    ctn__tvalue arg[CTN__T_PARAMS] = {0};
    CTN_TRY(bind(r, b, args, arg));
    for (int i = 0; i < b->need; i++)
        if (arg[i].kind == CTN__T_ABSENT)
            return ctn__t_fail(r, CTN_EFORMAT, "'%s' needs %d argument%s", b->name, b->need,
                               b->need == 1 ? "" : "s");
    return b->call(r, self, arg, out);
}

ctn_status ctn__t_eval_filters(ctn__trun *r, const ctn__tnode *node, ctn__tvalue *text)
{
    ctn__targs args = {0};
    CTN_TRY(ctn__t_enter(r));
    if (node->a) CTN_TRY(ctn__t_eval_filters(r, node->a, text));
    const ctn__tvalue v = *text;
    CTN_TRY(eval_arguments(r, node->list, &args));
    r->line = node->line;
    r->depth--;
    return ctn__t_call(r, ctn__t_filter(node->name, node->n), &v, &args, text);
}

/* ---- names and constants --------------------------------------------------------------------- */

static ctn_status eval_name(ctn__trun *r, const ctn__tnode *node, ctn__tvalue *out)
{
    size_t seen = 0;
    for (const ctn__tscope *s = r->scope; s; s = s->parent)
        for (const ctn__tvar *v = s->vars; v; v = v->next, seen++) {
            if (v->n != node->n || memcmp(v->name, node->name, v->n) != 0) continue;
            *out = v->value;
            return ctn__t_work(r, seen / 8);
        }
    const int function = ctn__t_function(node->name, node->n);
    *out = function < 0 ? ctn__t_undefined(node->name, node->n)
                        : (ctn__tvalue){.kind = CTN__T_FUNCTION, .function = function};
    return ctn__t_work(r, seen / 8);
}

static ctn_status eval_dict(ctn__trun *r, const ctn__tnode *node, ctn__tvalue *out)
{
    ctn__tspace space = {0};
    for (const ctn__tnode *e = node->list; e; e = e->next->next) {
        ctn__tvalue key = {0}, value = {0};
        CTN_TRY(ctn__t_eval(r, e, &key));
        CTN_TRY(ctn__t_eval(r, e->next, &value));
        if (ctn__t_is_list(&key) || key.kind == CTN__T_DICT || key.kind > CTN__T_DICT)
            return ctn__t_fail(r, CTN_EUNSUPPORTED, "a key of type %s is not supported",
                               ctn__t_type(&key));
        CTN_TRY(ctn__t_space_set(r, &space, &key, &value));
    }
    *out = (ctn__tvalue){.kind = CTN__T_DICT, .n = space.n, .dict = space.at};
    return CTN_OK;
}

/* ---- operators ------------------------------------------------------------------------------- */

static ctn_status eval_sign(ctn__trun *r, const ctn__tnode *node, ctn__tvalue *out)
{
    ctn__tvalue v = {0}, zero = ctn__t_int(0);
    CTN_TRY(ctn__t_eval(r, node->a, &v));
    if (v.kind == CTN__T_REAL && node->op == CTN__TO_SUBTRACT) {
        v.x = -v.x;
        *out = v;
        return CTN_OK;
    }
    return ctn__t_binary(r, node->op, &zero, &v, out);
}

static ctn_status eval_compare(ctn__trun *r, const ctn__tnode *node, ctn__tvalue *out)
{
    ctn__tvalue left = {0}, right = {0};
    bool yes = true;
    CTN_TRY(ctn__t_eval(r, node->a, &left));
    for (const ctn__tnode *w = node->list; yes && w; w = w->next, left = right) {
        CTN_TRY(ctn__t_eval(r, w->a, &right));
        r->line = w->line;
        CTN_TRY(ctn__t_compare(r, w->op, &left, &right, &yes));
    }
    *out = ctn__t_bool(yes);
    return CTN_OK;
}

static ctn_status eval_binary(ctn__trun *r, const ctn__tnode *node, ctn__tvalue *out)
{
    ctn__tvalue a = {0}, b = {0};
    CTN_TRY(ctn__t_eval(r, node->a, &a));
    CTN_TRY(ctn__t_eval(r, node->b, &b));
    r->line = node->line;
    return ctn__t_binary(r, node->op, &a, &b, out);
}

static ctn_status eval_choice(ctn__trun *r, const ctn__tnode *node, ctn__tvalue *out)
{
    ctn__tvalue yes = {0};
    CTN_TRY(ctn__t_eval(r, node->b, &yes));
    if (ctn__t_true(&yes)) return ctn__t_eval(r, node->a, out);
    if (node->c) return ctn__t_eval(r, node->c, out);
    *out = ctn__t_undefined("the inline if-expression", 24);
    return CTN_OK;
}

static ctn_status eval_part(ctn__trun *r, const ctn__tnode *node, ctn__tvalue *out)
{
    ctn__tvalue v = {0}, key = {0};
    CTN_TRY(ctn__t_eval(r, node->a, &v));
    if (node->kind == CTN__TN_ITEM) CTN_TRY(ctn__t_eval(r, node->b, &key));
    r->line = node->line;
    return node->kind == CTN__TN_ATTR ? ctn__t_attr(r, &v, node->name, node->n, out)
                                      : ctn__t_item(r, &v, &key, out);
}

static ctn_status eval_logic(ctn__trun *r, const ctn__tnode *node, ctn__tvalue *out)
{
    CTN_TRY(ctn__t_eval(r, node->a, out));
    if (node->kind == CTN__TN_NOT) {
        *out = ctn__t_bool(!ctn__t_true(out));
        return CTN_OK;
    }
    return ctn__t_true(out) == (node->kind == CTN__TN_AND) ? ctn__t_eval(r, node->b, out) : CTN_OK;
}

static ctn_status eval_sequence(ctn__trun *r, const ctn__tnode *node, ctn__tvalue *out)
{
    CTN_TRY(eval_list(r, node->list, out));
    if (node->kind == CTN__TN_TUPLE) out->kind = CTN__T_TUPLE;
    return CTN_OK;
}

static ctn_status eval_any(ctn__trun *r, const ctn__tnode *node, ctn__tvalue *out)
{
    switch (node->kind) {
    case CTN__TN_CONST: *out = node->value; return CTN_OK;
    case CTN__TN_NAME: return eval_name(r, node, out);
    case CTN__TN_LIST:
    case CTN__TN_TUPLE: return eval_sequence(r, node, out);
    case CTN__TN_DICT: return eval_dict(r, node, out);
    case CTN__TN_ATTR:
    case CTN__TN_ITEM: return eval_part(r, node, out);
    case CTN__TN_SLICE: return eval_slice(r, node, out);
    case CTN__TN_CALL: return eval_call(r, node, out);
    case CTN__TN_FILTER: return eval_builtin(r, node, ctn__t_filter(node->name, node->n), out);
    case CTN__TN_TEST: return eval_builtin(r, node, ctn__t_test(node->name, node->n), out);
    case CTN__TN_NOT:
    case CTN__TN_AND:
    case CTN__TN_OR: return eval_logic(r, node, out);
    case CTN__TN_SIGN: return eval_sign(r, node, out);
    case CTN__TN_BINARY: return eval_binary(r, node, out);
    case CTN__TN_COMPARE: return eval_compare(r, node, out);
    default: return eval_choice(r, node, out);
    }
}

ctn_status ctn__t_eval(ctn__trun *r, const ctn__tnode *node, ctn__tvalue *out)
{
    r->line = node->line;
    CTN_TRY(ctn__t_enter(r));
    CTN_TRY(eval_any(r, node, out));
    r->depth--;
    return CTN_OK;
}
