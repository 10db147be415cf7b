/* SPDX-License-Identifier: Apache-2.0
 *
 * The tests of chat templates: what may follow `is`.
 */
#include "data/text/template.h"

typedef ctn__trun run;
typedef ctn__tvalue value;

#define KIND_TEST(name, condition)                                               \
    static ctn_status name(run *r, const value *v, const value *arg, value *out) \
    {                                                                            \
        (void)r, (void)arg;                                                      \
        *out = ctn__t_bool(condition);                                           \
        return CTN_OK;                                                           \
    }
#define ORDER_TEST(name, op)                                                     \
    static ctn_status name(run *r, const value *v, const value *arg, value *out) \
    {                                                                            \
        bool yes = false;                                                        \
        CTN_TRY(ctn__t_compare(r, op, v, &arg[0], &yes));                        \
        *out = ctn__t_bool(yes);                                                 \
        return CTN_OK;                                                           \
    }

static bool has_elements(const value *v)
{
    return v->kind == CTN__T_TEXT || v->kind == CTN__T_DICT || ctn__t_is_list(v) ||
           v->kind == CTN__T_UNDEFINED;
}

KIND_TEST(is_defined, v->kind != CTN__T_UNDEFINED)
KIND_TEST(is_undefined, v->kind == CTN__T_UNDEFINED)
KIND_TEST(is_none, v->kind == CTN__T_NONE)
KIND_TEST(is_string, v->kind == CTN__T_TEXT)
KIND_TEST(is_mapping, v->kind == CTN__T_DICT)
KIND_TEST(is_iterable, has_elements(v) || v->kind == CTN__T_LOOP || v->kind == CTN__T_EACH)
KIND_TEST(is_sequence, has_elements(v))
KIND_TEST(is_number, ctn__t_is_number(v))
KIND_TEST(is_boolean, v->kind == CTN__T_BOOL)
KIND_TEST(is_integer, v->kind == CTN__T_INT)
KIND_TEST(is_float, v->kind == CTN__T_REAL)
KIND_TEST(is_true, v->kind == CTN__T_BOOL && v->i)
KIND_TEST(is_false, v->kind == CTN__T_BOOL && !v->i)
KIND_TEST(is_callable, v->kind >= CTN__T_MACRO || v->kind == CTN__T_UNDEFINED)
ORDER_TEST(equal, CTN__TO_EQUAL)
ORDER_TEST(unequal, CTN__TO_UNEQUAL)
ORDER_TEST(below, CTN__TO_BELOW)
ORDER_TEST(above, CTN__TO_ABOVE)
ORDER_TEST(at_most, CTN__TO_AT_MOST)
ORDER_TEST(at_least, CTN__TO_AT_LEAST)
ORDER_TEST(is_in, CTN__TO_IN)

static ctn_status remainder_is(run *r, const value *v, int64_t by, int64_t rest, value *out)
{
    const value number = ctn__t_int(by), want = ctn__t_int(rest);
    value left = {0};
    bool yes = false;
    CTN_TRY(ctn__t_binary(r, CTN__TO_MODULO, v, &number, &left));
    CTN_TRY(ctn__t_equal(r, &left, &want, &yes));
    *out = ctn__t_bool(yes);
    return CTN_OK;
}

static ctn_status is_even(run *r, const value *v, const value *arg, value *out)
{
    (void)arg;
    return remainder_is(r, v, 2, 0, out);
}

static ctn_status is_odd(run *r, const value *v, const value *arg, value *out)
{
    (void)arg;
    return remainder_is(r, v, 2, 1, out);
}

static ctn_status is_divisible(run *r, const value *v, const value *arg, value *out)
{
    if (!ctn__t_is_whole(&arg[0]))
        return ctn__t_fail(r, CTN_EUNSUPPORTED, "'divisibleby' needs an integer");
    return remainder_is(r, v, arg[0].i, 0, out);
}

const ctn__tbuiltin *ctn__t_test(const char *name, size_t n)
{
    static const ctn__tbuiltin all[] = {
        {"boolean", is_boolean, 0, {NULL}},
        {"callable", is_callable, 0, {NULL}},
        {"defined", is_defined, 0, {NULL}},
        {"divisibleby", is_divisible, 1, {"num"}},
        {"eq", equal, 1, {"other"}},
        {"equalto", equal, 1, {"other"}},
        {"even", is_even, 0, {NULL}},
        {"false", is_false, 0, {NULL}},
        {"float", is_float, 0, {NULL}},
        {"ge", at_least, 1, {"other"}},
        {"greaterthan", above, 1, {"other"}},
        {"gt", above, 1, {"other"}},
        {"in", is_in, 1, {"seq"}},
        {"integer", is_integer, 0, {NULL}},
        {"iterable", is_iterable, 0, {NULL}},
        {"le", at_most, 1, {"other"}},
        {"lessthan", below, 1, {"other"}},
        {"lt", below, 1, {"other"}},
        {"mapping", is_mapping, 0, {NULL}},
        {"ne", unequal, 1, {"other"}},
        {"none", is_none, 0, {NULL}},
        {"number", is_number, 0, {NULL}},
        {"odd", is_odd, 0, {NULL}},
        {"sequence", is_sequence, 0, {NULL}},
        {"string", is_string, 0, {NULL}},
        {"true", is_true, 0, {NULL}},
        {"undefined", is_undefined, 0, {NULL}},
        {"==", equal, 1, {"other"}},
        {"!=", unequal, 1, {"other"}},
        {"<", below, 1, {"other"}},
        {">", above, 1, {"other"}},
        {"<=", at_most, 1, {"other"}},
        {">=", at_least, 1, {"other"}},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (ctn__t_same(name, n, all[i].name)) return &all[i];
    return NULL;
}
