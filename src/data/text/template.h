/* SPDX-License-Identifier: Apache-2.0
 *
 * Chat templates: the subset of Jinja that published models use, with the results of the Python
 * package jinja2. A template goes through template_lex.c (tokens), template_parse.c and
 * template_expr.c (nodes), and is then run with values any number of times (template_run.c,
 * template_eval.c). Templates and values come from outside: depth, steps, memory and output are
 * limited, and everything that is not supported is an error that names the line.
 */
#ifndef CTN_DATA_TEXT_TEMPLATE_H
#define CTN_DATA_TEXT_TEMPLATE_H

#include "data/text/text.h"

/* ---- limits ---------------------------------------------------------------------------------- */

enum {
    CTN__T_SOURCE = 1 << 18, /* bytes of a template */
    CTN__T_NESTED = 150,     /* parentheses and blocks inside each other */
    CTN__T_DEPTH = 400,      /* nested evaluations, including calls of macros */
    CTN__T_STEPS = 10000000, /* evaluated nodes; long texts and lists count more */
    CTN__T_MEMORY = 1 << 28, /* bytes of all values */
    CTN__T_OUTPUT = 1 << 24, /* bytes of the rendered text */
    CTN__T_RANGE = 100000,   /* as in jinja2's sandbox */
    CTN__T_PARAMS = 5,       /* parameters of a built-in */
};

/* ---- tokens (template_lex.c) ----------------------------------------------------------------- */

typedef enum {
    CTN__TT_END,
    CTN__TT_DATA,
    CTN__TT_PRINT, /* {{ */
    CTN__TT_PRINT_END,
    CTN__TT_BLOCK, /* {% */
    CTN__TT_BLOCK_END,
    CTN__TT_NAME,
    CTN__TT_TEXT, /* between its quotes, with its escapes */
    CTN__TT_INT,
    CTN__TT_REAL,
    CTN__TT_OPERATOR
} ctn__ttype;

typedef struct {
    ctn__ttype type;
    const char *s; /* n bytes of the source */
    size_t n;
    int line;
} ctn__ttoken;

typedef struct {
    ctn__ttoken *at;
    size_t n, cap;
} ctn__ttokens;

/* Errors: EFORMAT, ENOMEM. tokens->at belongs to the caller, also after an error. */
ctn_status ctn__template_lex(const char *who, const char *source, size_t bytes,
                             ctn__ttokens *tokens);

/* ---- values (template_values.c) -------------------------------------------------------------- */

typedef enum {
    CTN__T_ABSENT, /* an argument that was not given */
    CTN__T_UNDEFINED,
    CTN__T_NONE,
    CTN__T_BOOL,
    CTN__T_INT,
    CTN__T_REAL,
    CTN__T_TEXT,
    CTN__T_LIST,
    CTN__T_TUPLE,
    CTN__T_DICT,
    CTN__T_EACH,  /* what map and select give: it can be iterated once, and is always true */
    CTN__T_SPACE, /* namespace() */
    CTN__T_LOOP,
    CTN__T_MACRO,
    CTN__T_FUNCTION,
    CTN__T_METHOD
} ctn__tkind;

typedef struct ctn__tvalue ctn__tvalue;
typedef struct ctn__tpair ctn__tpair;
typedef struct ctn__tnode ctn__tnode;
typedef struct ctn__trun ctn__trun;
typedef struct ctn__tspace ctn__tspace;
typedef struct ctn__tloop ctn__tloop;
typedef struct ctn__tmacro ctn__tmacro;
typedef struct ctn__tmethod ctn__tmethod;
typedef struct ctn__tbuiltin ctn__tbuiltin;

/* Values do not change, except namespaces and loops; all memory is that of the run. */
struct ctn__tvalue {
    ctn__tkind kind;
    size_t n; /* bytes of a text, elements of a list or dict */
    union {
        int64_t i; /* also of BOOL */
        double x;
        const char *s; /* UTF-8; UNDEFINED: n bytes of the name that was looked up */
        const ctn__tvalue *list;
        const ctn__tpair *dict;
        struct ctn__teach *each;
        ctn__tspace *space;
        ctn__tloop *loop;
        const ctn__tmacro *macro;
        const ctn__tmethod *method;
        int function;
    };
};
struct ctn__tpair {
    ctn__tvalue key, value;
};
struct ctn__teach {
    ctn__tvalue list;
    bool used;
};
struct ctn__tspace {
    ctn__tpair *at;
    size_t n, room;
};
struct ctn__tloop {
    ctn__tvalue items; /* a list */
    size_t at;
};

typedef CTN__VEC(char) ctn__tout;

struct ctn__tscope;
struct ctn__trun {
    ctn__arena memory;
    size_t taken; /* bytes of it */
    int64_t steps;
    int depth, line;
    ctn_status status; /* why ctn__t_take returned NULL */
    struct ctn__tscope *scope;
    ctn__tout *out;  /* where text goes: the result, or the text of a macro */
    const char *who; /* of messages */
};

/* Fails with a message that names the line. */
ctn_status ctn__t_fail(const ctn__trun *r, ctn_status st, const char *fmt, ...) CTN_PRINTF(3, 4);
void *ctn__t_take(ctn__trun *r, size_t bytes);       /* NULL: r->status is the error */
ctn_status ctn__t_work(ctn__trun *r, size_t amount); /* counts the steps of a long operation */
/* The recursion guard: enter before, leave after. */
ctn_status ctn__t_enter(ctn__trun *r);

static inline ctn__tvalue ctn__t_text(const char *s, size_t n)
{
    return (ctn__tvalue){.kind = CTN__T_TEXT, .n = n, .s = s};
}
static inline ctn__tvalue ctn__t_int(int64_t i)
{
    return (ctn__tvalue){.kind = CTN__T_INT, .i = i};
}
static inline ctn__tvalue ctn__t_bool(bool yes)
{
    return (ctn__tvalue){.kind = CTN__T_BOOL, .i = yes};
}
static inline ctn__tvalue ctn__t_undefined(const char *name, size_t n)
{
    return (ctn__tvalue){.kind = CTN__T_UNDEFINED, .n = n, .s = name};
}
static inline bool ctn__t_is_list(const ctn__tvalue *v)
{
    return v->kind == CTN__T_LIST || v->kind == CTN__T_TUPLE;
}
static inline bool ctn__t_is_whole(const ctn__tvalue *v) /* an int, of which bool is one */
{
    return v->kind == CTN__T_INT || v->kind == CTN__T_BOOL;
}
static inline bool ctn__t_is_number(const ctn__tvalue *v)
{
    return v->kind == CTN__T_REAL || ctn__t_is_whole(v);
}
static inline double ctn__t_real(const ctn__tvalue *v)
{
    return v->kind == CTN__T_REAL ? v->x : (double)v->i;
}
static inline bool ctn__t_same(const char *s, size_t n, const char *name)
{
    return strlen(name) == n && memcmp(s, name, n) == 0;
}
/* The type's name in Python. */
const char *ctn__t_type(const ctn__tvalue *v);
bool ctn__t_true(const ctn__tvalue *v);
ctn_status ctn__t_equal(ctn__trun *r, const ctn__tvalue *a, const ctn__tvalue *b, bool *same);
/* *order: below, at or above 0. Errors: EFORMAT (these have no order). */
ctn_status ctn__t_order(ctn__trun *r, const ctn__tvalue *a, const ctn__tvalue *b, int *order);
/* The value of a key, NULL if there is none. */
ctn_status ctn__t_find(ctn__trun *r, const ctn__tpair *at, size_t n, const ctn__tvalue *key,
                       const ctn__tvalue **found);
/* The elements of what can be iterated, as a list. Errors: EFORMAT. */
ctn_status ctn__t_items(ctn__trun *r, const ctn__tvalue *v, ctn__tvalue *list);
ctn_status ctn__t_length(ctn__trun *r, const ctn__tvalue *v, int64_t *n);
/* Makes a list one that can be iterated once. */
ctn_status ctn__t_once(ctn__trun *r, ctn__tvalue *list);
size_t ctn__t_characters(const char *s, size_t n);

/* ---- values as text (template_print.c) ------------------------------------------------------- */

ctn_status ctn__t_put(ctn__trun *r, ctn__tout *out, const char *s, size_t n);
/* As Python's str() writes it. */
ctn_status ctn__t_print(ctn__trun *r, ctn__tout *out, const ctn__tvalue *v);
ctn_status ctn__t_str(ctn__trun *r, const ctn__tvalue *v, ctn__tvalue *text);
/* A text of the run from a buffer, which is freed. `st` is returned if it is an error. */
ctn_status ctn__t_keep(ctn__trun *r, ctn_status st, ctn__tout *out, ctn__tvalue *text);
size_t ctn__t_print_real(double x, char out[40]); /* returns its bytes */

/* ---- JSON (template_json.c) ------------------------------------------------------------------ */

/* The values of a JSON text; `what` begins messages. Errors: EFORMAT, EUNSUPPORTED, ENOMEM. */
ctn_status ctn__t_parse_json(ctn__trun *r, const char *what, const char *json, size_t bytes,
                             ctn__tvalue *out);
extern const ctn__tbuiltin ctn__t_filter_tojson;

/* ---- built-ins ------------------------------------------------------------------------------- */

/* The arguments of a call. */
typedef struct {
    const ctn__tvalue *at;
    size_t n;
    const ctn__tpair *named;
    size_t names;
} ctn__targs;

/* A filter, a test or a method. arg has CTN__T_PARAMS values, ABSENT where none was given. */
struct ctn__tbuiltin {
    const char *name;
    ctn_status (*call)(ctn__trun *r, const ctn__tvalue *self, const ctn__tvalue *arg,
                       ctn__tvalue *out);
    int need;                          /* arguments that must be given */
    const char *params[CTN__T_PARAMS]; /* their names; "": has none */
};
struct ctn__tmethod {
    ctn__tvalue self;
    const ctn__tbuiltin *call;
};

ctn_status ctn__t_call(ctn__trun *r, const ctn__tbuiltin *b, const ctn__tvalue *self,
                       const ctn__targs *args, ctn__tvalue *out);
const ctn__tbuiltin *ctn__t_filter(const char *name,
                                   size_t n);                 /* NULL: none (template_filters.c) */
const ctn__tbuiltin *ctn__t_test(const char *name, size_t n); /* (template_tests.c) */
/* The method of a value's type (template_methods.c). */
const ctn__tbuiltin *ctn__t_method(const ctn__tvalue *self, const char *name, size_t n);
/* The global function of this name; -1: none (template_methods.c). */
int ctn__t_function(const char *name, size_t n);
ctn_status ctn__t_call_function(ctn__trun *r, int function, const ctn__targs *args,
                                ctn__tvalue *out);

/* Sets or replaces an attribute of a namespace. */
ctn_status ctn__t_space_set(ctn__trun *r, ctn__tspace *s, const ctn__tvalue *key,
                            const ctn__tvalue *value);

/* Operations on text that filters and methods share (template_strings.c). `side`: 1 the left end,
 * 2 the right end, 3 both; `chars`: ABSENT or NONE for white space. */
ctn_status ctn__t_strip(ctn__trun *r, const ctn__tvalue *text, const ctn__tvalue *chars, int side,
                        ctn__tvalue *out);
ctn_status ctn__t_replace(ctn__trun *r, const ctn__tvalue *text, const ctn__tvalue *old,
                          const ctn__tvalue *with, int64_t most, ctn__tvalue *out);
typedef enum { CTN__T_UPPER, CTN__T_LOWER, CTN__T_CAPITAL, CTN__T_TITLE, CTN__T_WORDS } ctn__tcase;
ctn_status ctn__t_case(ctn__trun *r, const ctn__tvalue *text, ctn__tcase to, ctn__tvalue *out);
ctn_status ctn__t_split(ctn__trun *r, const ctn__tvalue *text, const ctn__tvalue *by, int64_t most,
                        ctn__tvalue *out);
ctn_status ctn__t_join(ctn__trun *r, const ctn__tvalue *by, const ctn__tvalue *list,
                       ctn__tvalue *out);
ctn_status ctn__t_reverse(ctn__trun *r, const ctn__tvalue *v, ctn__tvalue *out);
bool ctn__t_is_space(uint32_t c); /* as str.isspace */
/* The first place of `what`, NULL: none. */
const char *ctn__t_search(const char *s, size_t n, const char *what, size_t bytes);

/* ---- nodes (template_parse.c, template_expr.c) ----------------------------------------------- */

typedef enum {
    /* expressions */
    CTN__TN_CONST,  /* value */
    CTN__TN_NAME,   /* name */
    CTN__TN_LIST,   /* list */
    CTN__TN_TUPLE,  /* list */
    CTN__TN_DICT,   /* list: keys and values in turn */
    CTN__TN_ATTR,   /* a.name */
    CTN__TN_ITEM,   /* a[b] */
    CTN__TN_SLICE,  /* a[b:c:list]; any may be NULL */
    CTN__TN_CALL,   /* a(list) */
    CTN__TN_NAMED,  /* name=a, an argument of a call or a parameter of a macro */
    CTN__TN_FILTER, /* a|name(list) */
    CTN__TN_TEST,   /* a is name(list) */
    CTN__TN_NOT,
    CTN__TN_SIGN, /* op a */
    CTN__TN_AND,
    CTN__TN_OR,
    CTN__TN_BINARY,  /* a op b */
    CTN__TN_COMPARE, /* a, then a list of operators with operands */
    CTN__TN_WITH,    /* one of these: op a */
    CTN__TN_CHOICE,  /* a if b else c */
    /* statements */
    CTN__TN_DATA,   /* name */
    CTN__TN_PRINT,  /* a */
    CTN__TN_IF,     /* if a: list, else: rest */
    CTN__TN_FOR,    /* for a in b if c: list, else: rest */
    CTN__TN_SET,    /* a = b */
    CTN__TN_SET_TO, /* a = the text of list; filters: b, whose innermost operand is NULL */
    CTN__TN_MACRO,  /* name(rest): list */
    CTN__TN_BREAK,
    CTN__TN_CONTINUE,
    CTN__TN_BODY /* list, in a scope of its own */
} ctn__tnode_kind;

typedef enum {
    CTN__TO_ADD,
    CTN__TO_SUBTRACT,
    CTN__TO_JOIN, /* ~ */
    CTN__TO_MULTIPLY,
    CTN__TO_DIVIDE,
    CTN__TO_FLOOR, /* // */
    CTN__TO_MODULO,
    CTN__TO_POWER,
    CTN__TO_EQUAL,
    CTN__TO_UNEQUAL,
    CTN__TO_BELOW,
    CTN__TO_ABOVE,
    CTN__TO_AT_MOST,
    CTN__TO_AT_LEAST,
    CTN__TO_IN,
    CTN__TO_NOT_IN
} ctn__top;

struct ctn__tnode {
    ctn__tnode_kind kind;
    ctn__top op;
    int line;
    const char *name;
    size_t n;
    ctn__tvalue value;
    ctn__tnode *a, *b, *c;
    ctn__tnode *list, *rest, *next;
};

typedef struct {
    ctn__arena *memory;
    const char *who;
    const ctn__ttoken *at;
    int nested, loops; /* open parentheses and blocks; open for loops */
} ctn__tparser;

ctn_status ctn__t_parse_fail(const ctn__tparser *p, ctn_status st, const char *fmt, ...)
    CTN_PRINTF(3, 4);
ctn__tnode *ctn__t_node(const ctn__tparser *p, ctn__tnode_kind kind); /* NULL: ENOMEM */
bool ctn__t_is_op(const ctn__tparser *p, const char *op);
bool ctn__t_is_word(const ctn__tparser *p, const char *name);
bool ctn__t_skip_op(ctn__tparser *p, const char *op);
bool ctn__t_skip_word(ctn__tparser *p, const char *name);
ctn_status ctn__t_need_op(ctn__tparser *p, const char *op);
ctn_status ctn__t_nest(ctn__tparser *p); /* the recursion guard; subtract 1 from p->nested after */
ctn_status ctn__t_expression(ctn__tparser *p, ctn__tnode **out);
/* An expression, or a tuple without parentheses. `plain`: without `if` in it. */
ctn_status ctn__t_expressions(ctn__tparser *p, bool plain, ctn__tnode **out);
/* The names that a loop or set assigns to. */
ctn_status ctn__t_target(ctn__tparser *p, bool attributes, ctn__tnode **out);
ctn_status ctn__t_filters(ctn__tparser *p, ctn__tnode *of, ctn__tnode **out); /* |a|b(c) */

/* ---- running --------------------------------------------------------------------------------- */

struct ctn__tmacro {
    const ctn__tnode *node;
    struct ctn__tscope *scope; /* in which it was made */
};

typedef struct ctn__tvar {
    const char *name;
    size_t n;
    ctn__tvalue value;
    struct ctn__tvar *next;
} ctn__tvar;
typedef struct ctn__tscope {
    struct ctn__tscope *parent;
    ctn__tvar *vars;
} ctn__tscope;

ctn_status ctn__t_set(ctn__trun *r, const char *name, size_t n, const ctn__tvalue *v);
ctn_status ctn__t_open_scope(ctn__trun *r, ctn__tscope *parent);
ctn_status ctn__t_eval(ctn__trun *r, const ctn__tnode *node, ctn__tvalue *out);
/* Applies the filters of a node to *text. */
ctn_status ctn__t_eval_filters(ctn__trun *r, const ctn__tnode *node, ctn__tvalue *text);
ctn_status ctn__t_binary(ctn__trun *r, ctn__top op, const ctn__tvalue *a, const ctn__tvalue *b,
                         ctn__tvalue *out);
ctn_status ctn__t_compare(ctn__trun *r, ctn__top op, const ctn__tvalue *a, const ctn__tvalue *b,
                          bool *yes);
/* v.name and v[key] */
ctn_status ctn__t_attr(ctn__trun *r, const ctn__tvalue *v, const char *name, size_t n,
                       ctn__tvalue *out);
ctn_status ctn__t_item(ctn__trun *r, const ctn__tvalue *v, const ctn__tvalue *key,
                       ctn__tvalue *out);
ctn_status ctn__t_call_macro(ctn__trun *r, const ctn__tmacro *m, const ctn__targs *args,
                             ctn__tvalue *out);

/* ---- templates ------------------------------------------------------------------------------- */

typedef struct {
    ctn__arena memory;
    char *source;
    ctn__tnode *body;
} ctn__template;

/* Parses a template; `who` begins messages and must outlive it. Free it also after an error.
 * Errors: EFORMAT, EUNSUPPORTED, ENOMEM. */
ctn_status ctn__template_open(ctn__template *t, const char *who, const char *source, size_t bytes);
void ctn__template_free(ctn__template *t);
/* Runs it with the variables of r->scope and appends to *out. */
ctn_status ctn__template_run(const ctn__template *t, ctn__trun *r, ctn__tout *out);

#endif
