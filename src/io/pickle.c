/* SPDX-License-Identifier: Apache-2.0
 *
 * Pickles of the protocols 2 to 5: a program for a stack machine, one byte per opcode, followed by
 * its operand. The opcodes that would import or call something only make values that say so. The
 * opcodes of the text protocols 0 and 1, of extension registries and of out-of-band buffers are
 * refused: torch.save does not write them. Every opcode makes at most a few values, so that memory
 * is bounded by the length of the pickle.
 */
#include "io/pickle.h"

typedef ctn__pickle_value value;
typedef ctn__pickle_cell cell;

typedef struct {
    const char *path;
    uint64_t base; /* offset of the pickle in the file */
    const unsigned char *p;
    size_t n, at;
    size_t op; /* where the current opcode is */
    ctn__arena *arena;
    int64_t values;
    CTN__VEC(value *) stack;
    CTN__VEC(size_t) marks; /* heights of the stack */
    CTN__VEC(value *) memo;
    bool stopped;
} machine;

static ctn_status damaged(const machine *m, const char *what)
{
    return ctn_fail(CTN_EFORMAT, "pickle: %s: %s (opcode 0x%02x at byte %llu)", m->path, what,
                    m->op < m->n ? m->p[m->op] : 0, (unsigned long long)(m->base + m->op));
}

/* ---- operands of opcodes -------------------------------------------------------------------- */

/* The next bytes; NULL, with EFORMAT recorded, if there are too few. */
static const unsigned char *operand(machine *m, uint64_t bytes)
{
    if (bytes > m->n - m->at) {
        (void)damaged(m, "an operand goes beyond the end of the pickle");
        return NULL;
    }
    const unsigned char *p = m->p + m->at;
    m->at += (size_t)bytes;
    return p;
}

static ctn_status operand_number(machine *m, int bytes, uint64_t *out)
{
    const unsigned char *p = operand(m, (uint64_t)bytes);
    *out = 0;
    if (!p) return CTN_EFORMAT;
    for (int i = bytes - 1; i >= 0; i--) *out = *out << 8 | p[i];
    return CTN_OK;
}

/* ---- values --------------------------------------------------------------------------------- */

/* NULL, with the error recorded, if there is no memory or there are too many values. */
static value *make(machine *m, ctn__pickle_kind kind)
{
    if (++m->values > CTN__PICKLE_VALUES_MAX) {
        (void)damaged(m, "the pickle has too many values");
        return NULL;
    }
    value *v = ctn__arena_zero(m->arena, sizeof *v);
    if (v) v->kind = kind;
    return v;
}

static ctn_status push(machine *m, value *v)
{
    return ctn__vec_push(&m->stack, v) ? CTN_OK : CTN_ENOMEM;
}

/* Values above the last mark. */
static size_t above_mark(const machine *m)
{
    return m->stack.n - (m->marks.n ? m->marks.at[m->marks.n - 1] : 0);
}

/* NULL, with EFORMAT recorded, if the stack is empty. */
static value *pop(machine *m)
{
    if (above_mark(m) > 0) return m->stack.at[--m->stack.n];
    (void)damaged(m, "the stack is empty");
    return NULL;
}

static ctn_status add_item(machine *m, value *to, value *v)
{
    if (++m->values > CTN__PICKLE_VALUES_MAX) return damaged(m, "the pickle has too many values");
    cell *c = ctn__arena_get(m->arena, sizeof *c);
    if (!c) return CTN_ENOMEM;
    *c = (cell){v, NULL};
    if (to->last) to->last->next = c;
    else to->first = c;
    to->last = c;
    to->n++;
    return CTN_OK;
}

/* Remove the last `count` values and add them to `to`. */
static ctn_status take(machine *m, value *to, size_t count)
{
    for (size_t i = m->stack.n - count; i < m->stack.n; i++)
        CTN_TRY(add_item(m, to, m->stack.at[i]));
    m->stack.n -= count;
    return CTN_OK;
}

/* Push a container of the last `count` values. */
static ctn_status collect(machine *m, ctn__pickle_kind kind, size_t count)
{
    if (above_mark(m) < count) return damaged(m, "the stack has too few values");
    value *v = make(m, kind);
    if (!v) return ctn_error_status();
    CTN_TRY(take(m, v, count));
    return push(m, v);
}

static ctn_status pop_mark(machine *m, size_t *height)
{
    if (m->marks.n == 0) return damaged(m, "there is no mark");
    *height = m->marks.at[--m->marks.n];
    return CTN_OK;
}

/* Push a container of the values above the last mark, which is removed. */
static ctn_status collect_marked(machine *m, ctn__pickle_kind kind)
{
    size_t height = 0;
    CTN_TRY(pop_mark(m, &height));
    const size_t count = m->stack.n - height;
    if (kind == CTN__PICKLE_DICT && count % 2) return damaged(m, "a key has no value");
    return collect(m, kind, count);
}

/* Add the last `count` values to the container below them. Objects that are not containers here,
 * such as those that the pickle would make by a call, drop what is added. */
static ctn_status extend(machine *m, size_t count, bool pairs)
{
    if (above_mark(m) <= count) return damaged(m, "the stack has too few values");
    value *to = m->stack.at[m->stack.n - count - 1];
    if (pairs && count % 2) return damaged(m, "a key has no value");
    if (to->kind == CTN__PICKLE_CALL) {
        m->stack.n -= count;
        return CTN_OK;
    }
    if (to->kind != (pairs ? CTN__PICKLE_DICT : CTN__PICKLE_LIST))
        return damaged(m, pairs ? "not a dictionary" : "not a list");
    return take(m, to, count);
}

static ctn_status extend_marked(machine *m, bool pairs)
{
    size_t height = 0;
    CTN_TRY(pop_mark(m, &height));
    return extend(m, m->stack.n - height, pairs);
}

static ctn_status push_int(machine *m, ctn__pickle_kind kind, int64_t i)
{
    value *v = make(m, kind);
    if (!v) return ctn_error_status();
    v->i = i;
    return push(m, v);
}

/* An integer of any length in two's complement. */
static ctn_status push_long(machine *m, uint64_t bytes)
{
    const unsigned char *p = operand(m, bytes);
    if (!p) return CTN_EFORMAT;
    if (bytes > 8) return push_int(m, CTN__PICKLE_INT, INT64_MIN);
    uint64_t x = bytes > 0 && (p[bytes - 1] & 0x80) ? UINT64_MAX : 0;
    for (uint64_t i = bytes; i > 0; i--) x = x << 8 | p[i - 1];
    int64_t i = 0;
    memcpy(&i, &x, sizeof i);
    return push_int(m, CTN__PICKLE_INT, i);
}

static ctn_status push_float(machine *m)
{
    const unsigned char *p = operand(m, 8);
    uint64_t bits = 0;
    if (!p) return CTN_EFORMAT;
    for (int i = 0; i < 8; i++) bits = bits << 8 | p[i]; /* big-endian, unlike all others */
    value *v = make(m, CTN__PICKLE_FLOAT);
    if (!v) return ctn_error_status();
    memcpy(&v->f, &bits, sizeof v->f);
    return push(m, v);
}

/* A text whose length has `width` bytes. */
static ctn_status push_text(machine *m, int width)
{
    uint64_t bytes = 0;
    CTN_TRY(operand_number(m, width, &bytes));
    const unsigned char *p = operand(m, bytes);
    if (!p) return CTN_EFORMAT;
    value *v = make(m, CTN__PICKLE_TEXT);
    char *s = v ? ctn__arena_get(m->arena, (size_t)bytes + 1) : NULL;
    if (!s) return ctn_error_status();
    memcpy(s, p, (size_t)bytes);
    s[bytes] = 0;
    v->s = s;
    v->n = (size_t)bytes;
    return push(m, v);
}

static ctn_status push_global(machine *m, const char *module, size_t k, const char *name, size_t n)
{
    value *v = make(m, CTN__PICKLE_GLOBAL);
    if (!v) return ctn_error_status();
    v->s = ctn__arena_printf(m->arena, "%.*s %.*s", (int)k, module, (int)n, name);
    if (!v->s) return CTN_ENOMEM;
    v->n = strlen(v->s);
    return push(m, v);
}

static ctn_status line(machine *m, const char **s, size_t *n)
{
    const unsigned char *p = m->p + m->at, *end = memchr(p, '\n', m->n - m->at);
    if (!end || end - p > 1000) return damaged(m, "a name to import has no end");
    *s = (const char *)p;
    *n = (size_t)(end - p);
    m->at += *n + 1;
    return CTN_OK;
}

/* GLOBAL: the names are two lines of text. */
static ctn_status global_lines(machine *m)
{
    const char *module = NULL, *name = NULL;
    size_t k = 0, n = 0;
    CTN_TRY(line(m, &module, &k));
    CTN_TRY(line(m, &name, &n));
    return push_global(m, module, k, name, n);
}

/* STACK_GLOBAL: the names are on the stack. */
static ctn_status global_stack(machine *m)
{
    const value *name = pop(m), *module = name ? pop(m) : NULL;
    if (!module) return CTN_EFORMAT;
    if (name->kind != CTN__PICKLE_TEXT || module->kind != CTN__PICKLE_TEXT || name->n > 1000 ||
        module->n > 1000)
        return damaged(m, "a name to import is not a short string");
    return push_global(m, module->s, module->n, name->s, name->n);
}

static bool is_global(const value *v, const char *name)
{
    return v->kind == CTN__PICKLE_GLOBAL && strcmp(v->s, name) == 0;
}

/* The call of a function with arguments; a dictionary of the standard library becomes one. */
static ctn_status call(machine *m)
{
    value *args = pop(m), *function = args ? pop(m) : NULL;
    if (!function) return CTN_EFORMAT;
    const bool empty = args->kind == CTN__PICKLE_TUPLE && args->n == 0;
    if ((is_global(function, "collections OrderedDict") && empty) ||
        is_global(function, "collections defaultdict"))
        return collect(m, CTN__PICKLE_DICT, 0);
    value *v = make(m, CTN__PICKLE_CALL);
    if (!v) return ctn_error_status();
    CTN_TRY(add_item(m, v, function));
    CTN_TRY(add_item(m, v, args));
    return push(m, v);
}

/* NEWOBJ_EX has keyword arguments too, which are dropped: the result is opaque anyway. */
static ctn_status call_ex(machine *m)
{
    return pop(m) ? call(m) : CTN_EFORMAT;
}

/* BUILD sets attributes of the object below, which are dropped. */
static ctn_status build(machine *m)
{
    if (!pop(m)) return CTN_EFORMAT;
    return above_mark(m) ? CTN_OK : damaged(m, "the stack is empty");
}

/* ---- memo: values that are used again ------------------------------------------------------- */

static ctn_status put(machine *m, uint64_t i)
{
    if (above_mark(m) == 0) return damaged(m, "the stack is empty");
    /* Python numbers them from 0, and each takes at least one byte of the pickle. */
    if (i > m->n) return damaged(m, "the number of a memo is too large");
    while (m->memo.n <= i)
        if (!ctn__vec_push(&m->memo, NULL)) return CTN_ENOMEM;
    m->memo.at[i] = m->stack.at[m->stack.n - 1];
    return CTN_OK;
}

static ctn_status put_numbered(machine *m, int width)
{
    uint64_t i = 0;
    CTN_TRY(operand_number(m, width, &i));
    return put(m, i);
}

static ctn_status get_numbered(machine *m, int width)
{
    uint64_t i = 0;
    CTN_TRY(operand_number(m, width, &i));
    if (i >= m->memo.n || !m->memo.at[i]) return damaged(m, "there is no such memo");
    return push(m, m->memo.at[i]);
}

/* ---- the machine ---------------------------------------------------------------------------- */

static ctn_status protocol(machine *m)
{
    uint64_t version = 0;
    CTN_TRY(operand_number(m, 1, &version));
    return version <= 5 ? CTN_OK : damaged(m, "a protocol after 5");
}

static ctn_status number(machine *m, int width, bool is_signed)
{
    uint64_t x = 0;
    CTN_TRY(operand_number(m, width, &x));
    const int64_t i = is_signed && x > INT32_MAX ? (int64_t)x - ((int64_t)1 << 32) : (int64_t)x;
    return push_int(m, CTN__PICKLE_INT, i);
}

static ctn_status long_number(machine *m, int width)
{
    uint64_t bytes = 0;
    CTN_TRY(operand_number(m, width, &bytes));
    return push_long(m, bytes);
}

static ctn_status skip(machine *m, size_t bytes)
{
    return operand(m, bytes) ? CTN_OK : CTN_EFORMAT;
}

static ctn_status drop(machine *m)
{
    return pop(m) ? CTN_OK : CTN_EFORMAT;
}

static ctn_status drop_marked(machine *m)
{
    return pop_mark(m, &m->stack.n);
}

static ctn_status mark(machine *m)
{
    return ctn__vec_push(&m->marks, m->stack.n) ? CTN_OK : CTN_ENOMEM;
}

static ctn_status duplicate(machine *m)
{
    if (above_mark(m) == 0) return damaged(m, "the stack is empty");
    return push(m, m->stack.at[m->stack.n - 1]);
}

static ctn_status stop(machine *m)
{
    m->stopped = true;
    return CTN_OK;
}

static ctn_status unknown(const machine *m)
{
    return ctn_fail(CTN_EFORMAT,
                    "pickle: %s: opcode 0x%02x at byte %llu is not one that torch.save writes",
                    m->path, m->p[m->op], (unsigned long long)(m->base + m->op));
}

static ctn_status step(machine *m)
{
    switch (m->p[m->at++]) {
    case 0x80: return protocol(m);
    case 0x95: return skip(m, 8); /* FRAME */
    case '.': return stop(m);
    case '(': return mark(m);
    case '0': return drop(m);
    case '1': return drop_marked(m);
    case '2': return duplicate(m);
    case 'N': return push_int(m, CTN__PICKLE_NONE, 0);
    case 0x88: return push_int(m, CTN__PICKLE_BOOL, 1);
    case 0x89: return push_int(m, CTN__PICKLE_BOOL, 0);
    case 'J': return number(m, 4, true);
    case 'K': return number(m, 1, false);
    case 'M': return number(m, 2, false);
    case 0x8a: return long_number(m, 1);
    case 0x8b: return long_number(m, 4);
    case 'G': return push_float(m);
    case 'U':                          /* SHORT_BINSTRING */
    case 'C':                          /* SHORT_BINBYTES */
    case 0x8c: return push_text(m, 1); /* SHORT_BINUNICODE */
    case 'T':                          /* BINSTRING */
    case 'B':                          /* BINBYTES */
    case 'X': return push_text(m, 4);  /* BINUNICODE */
    case 0x8d:                         /* BINUNICODE8 */
    case 0x8e:                         /* BINBYTES8 */
    case 0x96: return push_text(m, 8); /* BYTEARRAY8 */
    case ')': return collect(m, CTN__PICKLE_TUPLE, 0);
    case 0x85: return collect(m, CTN__PICKLE_TUPLE, 1);
    case 0x86: return collect(m, CTN__PICKLE_TUPLE, 2);
    case 0x87: return collect(m, CTN__PICKLE_TUPLE, 3);
    case 't': return collect_marked(m, CTN__PICKLE_TUPLE);
    case ']':                                              /* EMPTY_LIST */
    case 0x8f: return collect(m, CTN__PICKLE_LIST, 0);     /* EMPTY_SET */
    case 'l':                                              /* LIST */
    case 0x91: return collect_marked(m, CTN__PICKLE_LIST); /* FROZENSET */
    case 'a': return extend(m, 1, false);
    case 'e':                                  /* APPENDS */
    case 0x90: return extend_marked(m, false); /* ADDITEMS */
    case '}': return collect(m, CTN__PICKLE_DICT, 0);
    case 'd': return collect_marked(m, CTN__PICKLE_DICT);
    case 's': return extend(m, 2, true);
    case 'u': return extend_marked(m, true);
    case 'c': return global_lines(m);
    case 0x93: return global_stack(m);
    case 'R':                  /* REDUCE */
    case 0x81: return call(m); /* NEWOBJ */
    case 0x92: return call_ex(m);
    case 'b': return build(m);
    case 'Q': return collect(m, CTN__PICKLE_REF, 1);
    case 'q': return put_numbered(m, 1);
    case 'r': return put_numbered(m, 4);
    case 0x94: return put(m, m->memo.n); /* MEMOIZE */
    case 'h': return get_numbered(m, 1);
    case 'j': return get_numbered(m, 4);
    default: return unknown(m);
    }
}

ctn_status ctn__pickle_read(value **root, ctn__arena *arena, const char *path, uint64_t base,
                            const void *p, size_t n)
{
    ctn_status st = CTN_OK;
    machine m = {.path = path, .base = base, .p = p, .n = n, .arena = arena};
    *root = NULL;
    if (n > CTN__PICKLE_MAX)
        return ctn_fail(CTN_EFORMAT, "pickle: %s: %zu bytes, at most %d are allowed", path, n,
                        CTN__PICKLE_MAX);
    while (st == CTN_OK && !m.stopped) {
        m.op = m.at;
        st = m.at < n ? step(&m) : damaged(&m, "the pickle has no end");
    }
    if (st == CTN_OK && (m.stack.n != 1 || m.marks.n != 0))
        st = damaged(&m, "the pickle does not end with one value");
    if (st == CTN_OK) *root = m.stack.at[0];
    ctn__vec_free(&m.stack);
    ctn__vec_free(&m.marks);
    ctn__vec_free(&m.memo);
    return st;
}
