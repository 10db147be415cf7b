/* SPDX-License-Identifier: Apache-2.0
 *
 * Emitters of elementwise ops and of reductions (emit.h).
 */
#include "onnx/emit.h"

#ifdef CTN_HAVE_PROTOBUFC

#include <math.h>
#include <stdlib.h>

#include "ops/common/loss.h"
#include "ops/common/reduce.h"

#define IN(i) ctn__emit_in(e, n, i)
#define NODE(...) CTN__NODE(e, __VA_ARGS__)

static ctn_dtype type_of(const ctn__node *n)
{
    return n->out[0]->d.dtype;
}

static char *number(ctn__emit *e, const ctn__node *n, double v)
{
    return ctn__emit_number(e, type_of(n), v);
}

static void give(ctn__emit *e, const ctn__node *n, char *y)
{
    ctn__emit_out(e, n, 0, y);
}

/* ---- one operator ---------------------------------------------------------------------------- */

void ctn__emit_plain(ctn__emit *e, const ctn__node *n, const char *word)
{
    char *in[CTN_MAX_IN];
    for (int i = 0; i < n->nin; i++) in[i] = IN(i);
    give(e, n, ctn__emit_node(e, word, n->nin, in));
}

void ctn__emit_with_number(ctn__emit *e, const ctn__node *n, const char *word)
{
    give(e, n, NODE(word, IN(0), number(e, n, n->scalar[0].value)));
}

void ctn__emit_with_alpha(ctn__emit *e, const ctn__node *n, const char *word)
{
    give(e, n, NODE(word, IN(0)));
    ctn__emit_float(e, "alpha", n->scalar[0].value);
}

void ctn__emit_fmod(ctn__emit *e, const ctn__node *n, const char *word)
{
    (void)word;
    give(e, n, NODE("Mod", IN(0), IN(1)));
    ctn__emit_int(e, "fmod", 1);
}

void ctn__emit_clip(ctn__emit *e, const ctn__node *n, const char *word)
{
    (void)word;
    char *low = number(e, n, n->scalar[0].value), *high = number(e, n, n->scalar[1].value);
    give(e, n, NODE("Clip", IN(0), low, high));
}

void ctn__emit_cast(ctn__emit *e, const ctn__node *n, const char *word)
{
    (void)word;
    give(e, n, ctn__emit_as(e, IN(0), type_of(n)));
}

void ctn__emit_same(ctn__emit *e, const ctn__node *n, const char *word)
{
    (void)word;
    give(e, n, IN(0));
}

void ctn__emit_compare(ctn__emit *e, const ctn__node *n, const char *word)
{
    static const char *const type[] = {"Equal", "Equal", "Less", "LessOrEqual"};
    (void)word;
    char *y = NODE(type[n->attr[0]], IN(0), IN(1));
    give(e, n, n->attr[0] == 1 ? NODE("Not", y) : y);
}

void ctn__emit_logical(ctn__emit *e, const ctn__node *n, const char *word)
{
    (void)word;
    give(e, n, NODE(n->attr[0] ? "Or" : "And", IN(0), IN(1)));
}

/* The slope (C) is one per channel, the second dimension of x. */
void ctn__emit_prelu(ctn__emit *e, const ctn__node *n, const char *word)
{
    int64_t dims[CTN_MAX_DIMS] = {n->in[1]->d.dim[0], 1, 1, 1, 1, 1, 1, 1};
    (void)word;
    const int ndim = n->in[0]->d.ndim > 1 ? n->in[0]->d.ndim - 1 : 1;
    give(e, n, NODE("PRelu", IN(0), ctn__emit_shaped(e, IN(1), ndim, dims)));
}

/* ---- formulas -------------------------------------------------------------------------------- */

void ctn__emit_logarithm(ctn__emit *e, const ctn__node *n, const char *word)
{
    give(e, n, NODE("Mul", NODE("Log", IN(0)), number(e, n, 1 / log(atof(word)))));
}

/* log(1 + x); near 0, where that loses its digits, 2 artanh(x / (2 + x)). */
void ctn__emit_log1p(ctn__emit *e, const ctn__node *n, const char *word)
{
    (void)word;
    char *x = IN(0), *near = NODE("Less", NODE("Abs", x), number(e, n, 0.5));
    char *ratio = NODE("Div", x, NODE("Add", x, number(e, n, 2)));
    char *small = NODE("Mul", NODE("Atanh", ratio), number(e, n, 2));
    give(e, n, NODE("Where", near, small, NODE("Log", NODE("Add", x, number(e, n, 1)))));
}

/* e^x - 1; near 0, where that loses its digits, tanh(x / 2) (e^x + 1). */
void ctn__emit_expm1(ctn__emit *e, const ctn__node *n, const char *word)
{
    (void)word;
    char *x = IN(0), *near = NODE("Less", NODE("Abs", x), number(e, n, 0.5));
    char *power = NODE("Exp", x), *half = NODE("Mul", x, number(e, n, 0.5));
    char *small = NODE("Mul", NODE("Tanh", half), NODE("Add", power, number(e, n, 1)));
    give(e, n, NODE("Where", near, small, NODE("Sub", power, number(e, n, 1))));
}

void ctn__emit_erfc(ctn__emit *e, const ctn__node *n, const char *word)
{
    (void)word;
    give(e, n, NODE("Sub", number(e, n, 1), NODE("Erf", IN(0))));
}

/* (1 + erf(x / sqrt 2)) / 2 */
static char *normal(ctn__emit *e, const ctn__node *n)
{
    char *erf = NODE("Erf", NODE("Mul", IN(0), number(e, n, sqrt(0.5))));
    return NODE("Mul", NODE("Add", erf, number(e, n, 1)), number(e, n, 0.5));
}

void ctn__emit_ndtr(ctn__emit *e, const ctn__node *n, const char *word)
{
    (void)word;
    give(e, n, normal(e, n));
}

void ctn__emit_gelu(ctn__emit *e, const ctn__node *n, const char *word)
{
    (void)word;
    give(e, n, NODE("Mul", IN(0), normal(e, n)));
}

/* x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 */
void ctn__emit_gelu_tanh(ctn__emit *e, const ctn__node *n, const char *word)
{
    (void)word;
    char *x = IN(0), *cube = NODE("Mul", NODE("Mul", x, x), x);
    char *u = NODE("Add", x, NODE("Mul", cube, number(e, n, 0.044715)));
    char *t = NODE("Tanh", NODE("Mul", u, number(e, n, sqrt(2 / 3.14159265358979323846))));
    t = NODE("Mul", NODE("Add", t, number(e, n, 1)), number(e, n, 0.5));
    give(e, n, NODE("Mul", x, t));
}

void ctn__emit_swish(ctn__emit *e, const ctn__node *n, const char *word)
{
    (void)word;
    give(e, n, NODE("Mul", IN(0), NODE("Sigmoid", IN(0))));
}

void ctn__emit_square(ctn__emit *e, const ctn__node *n, const char *word)
{
    (void)word;
    give(e, n, NODE("Mul", IN(0), IN(0)));
}

void ctn__emit_rsqrt(ctn__emit *e, const ctn__node *n, const char *word)
{
    (void)word;
    give(e, n, NODE("Reciprocal", NODE("Sqrt", IN(0))));
}

void ctn__emit_trunc(ctn__emit *e, const ctn__node *n, const char *word)
{
    (void)word;
    give(e, n, NODE("Mul", NODE("Sign", IN(0)), NODE("Floor", NODE("Abs", IN(0)))));
}

/* The k-th derivative of x^p, or of sign(x) |x|^p. */
void ctn__emit_power(ctn__emit *e, const ctn__node *n, const char *word)
{
    const double p = n->scalar[0].value;
    const int64_t k = n->attr[0];
    double factor = 1;
    for (int64_t i = 0; i < k; i++) factor *= p - (double)i;
    char *x = word ? NODE("Abs", IN(0)) : IN(0);
    char *y = NODE("Pow", x, number(e, n, p - (double)k));
    if (word && k % 2 == 0) y = NODE("Mul", y, NODE("Sign", IN(0)));
    give(e, n, ctn__emit_scale(e, y, type_of(n), factor));
}

/* atan(y / x), on the left half plus or minus pi, and 0 at the origin. */
void ctn__emit_arctan2(ctn__emit *e, const ctn__node *n, const char *word)
{
    const double pi = 3.14159265358979323846;
    (void)word;
    char *y = IN(0), *x = IN(1), *zero = number(e, n, 0);
    char *half = NODE("Where", NODE("Less", y, zero), number(e, n, -pi), number(e, n, pi));
    char *angle = NODE("Atan", NODE("Div", y, x));
    angle = NODE("Where", NODE("Less", x, zero), NODE("Add", angle, half), angle);
    char *origin = NODE("And", NODE("Equal", x, zero), NODE("Equal", y, zero));
    give(e, n, NODE("Where", origin, zero, angle));
}

/* Real and imaginary parts are the two elements of the last dimension. */
void ctn__emit_complex_mul(ctn__emit *e, const ctn__node *n, const char *word)
{
    char *part[2][2];
    (void)word;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            const int64_t at[] = {k};
            part[i][k] = NODE("Gather", IN(i), ctn__emit_list(e, 1, at));
            ctn__emit_int(e, "axis", -1);
            if (k == 1 && n->attr[i]) part[i][k] = NODE("Neg", part[i][k]);
        }
    char *re =
        NODE("Sub", NODE("Mul", part[0][0], part[1][0]), NODE("Mul", part[0][1], part[1][1]));
    char *im =
        NODE("Add", NODE("Mul", part[0][0], part[1][1]), NODE("Mul", part[0][1], part[1][0]));
    give(e, n, NODE("Concat", re, im));
    ctn__emit_int(e, "axis", -1);
}

/* ---- along axes ------------------------------------------------------------------------------ */

static int64_t axis_of(const ctn__node *n, int64_t axis)
{
    return ctn__axis(n->in[0]->d.ndim, axis);
}

void ctn__emit_along(ctn__emit *e, const ctn__node *n, const char *word)
{
    give(e, n, NODE(word, IN(0)));
    ctn__emit_int(e, "axis", axis_of(n, n->attr[0]));
}

void ctn__emit_argmax(ctn__emit *e, const ctn__node *n, const char *word)
{
    (void)word;
    char *y = NODE("ArgMax", IN(0));
    ctn__emit_int(e, "axis", axis_of(n, n->attr[0]));
    ctn__emit_int(e, "keepdims", 0);
    give(e, n, type_of(n) == CTN_I64 ? y : ctn__emit_as(e, y, type_of(n)));
}

void ctn__emit_cumsum(ctn__emit *e, const ctn__node *n, const char *word)
{
    (void)word;
    char *axis = ctn__emit_number(e, CTN_I64, (double)axis_of(n, n->attr[0]));
    give(e, n, NODE("CumSum", IN(0), axis));
    ctn__emit_int(e, "reverse", n->attr[1]);
}

void ctn__emit_reduce(ctn__emit *e, const ctn__node *n, const char *word)
{
    int64_t axes[CTN_MAX_DIMS];
    const int ndim = n->in[0]->d.ndim;
    int count = n->nattr - CTN__R_AXIS0;
    for (int i = 0; i < count; i++) axes[i] = axis_of(n, n->attr[CTN__R_AXIS0 + i]);
    for (int i = 0; count == 0 && i < ndim; i++) axes[i] = i;
    if (count == 0) count = ndim;
    give(e, n,
         ndim == 0 ? NODE("Identity", IN(0))
                   : ctn__emit_over(e, word, IN(0), count, axes, n->attr[CTN__R_KEEP] != 0));
}

/* The loss of each element (the formulas are in the ops' files). */
static char *loss_of(ctn__emit *e, const ctn__node *n, const char *word)
{
    char *x = IN(0), *t = IN(1);
    if (strcmp(word, "sigmoid") == 0) {
        char *above = NODE("Sub", NODE("Relu", x), NODE("Mul", x, t));
        return NODE("Add", above, NODE("Softplus", NODE("Neg", NODE("Abs", x))));
    }
    char *d = NODE("Sub", x, t);
    if (strcmp(word, "square") == 0) return NODE("Mul", d, d);
    if (strcmp(word, "abs") == 0) return NODE("Abs", d);
    const double delta = n->scalar[0].value;
    char *c = NODE("Clip", d, number(e, n, -delta), number(e, n, delta));
    return NODE("Mul", c, NODE("Sub", d, NODE("Mul", c, number(e, n, 0.5))));
}

void ctn__emit_loss(ctn__emit *e, const ctn__node *n, const char *word)
{
    const char *type = n->attr[CTN__LOSS_REDUCTION] == CTN_MEAN ? "ReduceMean" : "ReduceSum";
    give(e, n, NODE(type, loss_of(e, n, word)));
    ctn__emit_int(e, "keepdims", 0);
}

static void top(ctn__emit *e, const ctn__node *n, char *k, bool largest)
{
    char *y = NODE("TopK", IN(0), k);
    ctn__emit_int(e, "largest", largest);
    char *index = ctn__emit_more(e);
    give(e, n, y);
    ctn__emit_out(e, n, 1, index);
}

void ctn__emit_sort(ctn__emit *e, const ctn__node *n, const char *word)
{
    const ctn_desc *x = &n->in[0]->d;
    (void)word;
    top(e, n, ctn__emit_size(e, x->dim[x->ndim - 1]), n->attr[0] != 0);
}

void ctn__emit_topk(ctn__emit *e, const ctn__node *n, const char *word)
{
    (void)word;
    top(e, n, ctn__emit_list(e, 1, &n->attr[0]), true);
}

#endif
