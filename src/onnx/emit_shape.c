/* SPDX-License-Identifier: Apache-2.0
 *
 * Emitters of ops that move elements (emit.h). Along an axis whose size the model leaves open, the
 * first half of the recorded positions count from the front and the others from the end, because
 * that is what a program means by position 0 and by position n - 1.
 */
#include "onnx/emit.h"

#ifdef CTN_HAVE_PROTOBUFC

#include <math.h>

#define IN(i) ctn__emit_in(e, n, i)
#define NODE(...) CTN__NODE(e, __VA_ARGS__)

static void give(ctn__emit *e, const ctn__node *n, char *y)
{
    ctn__emit_out(e, n, 0, y);
}

static int axis_of(const ctn__node *n, int64_t axis)
{
    return ctn__axis(n->in[0]->d.ndim, axis);
}

/* An op changes the size of an axis. If that size is open in the model, so is the new one, unless
 * it is so much smaller that it must be a number of its own. */
static void resize(ctn__emit *e, const ctn_desc *x, int axis, int64_t to)
{
    const int64_t from = x->dim[axis], more = to - from;
    if (ctn__emit_fixed(e, from) || !ctn__emit_fixed(e, to) || to <= from / 2) return;
    ctn__emit_follow(e, to, NODE("Add", ctn__emit_size(e, from), ctn__emit_list(e, 1, &more)));
}

/* ---- the same elements ----------------------------------------------------------------------- */

void ctn__emit_reshape(ctn__emit *e, const ctn__node *n, const char *word)
{
    (void)word;
    give(e, n, ctn__emit_shaped(e, IN(0), n->out[0]->d.ndim, n->out[0]->d.dim));
}

void ctn__emit_transpose(ctn__emit *e, const ctn__node *n, const char *word)
{
    int64_t axes[CTN_MAX_DIMS];
    (void)word;
    for (int i = 0; i < n->nattr; i++) axes[i] = axis_of(n, n->attr[i]);
    give(e, n, ctn__emit_turned(e, IN(0), n->nattr, axes));
}

void ctn__emit_broadcast_to(ctn__emit *e, const ctn__node *n, const char *word)
{
    const ctn_desc *y = &n->out[0]->d;
    (void)word;
    give(e, n, NODE("Expand", IN(0), ctn__emit_shape(e, y->ndim, y->dim)));
}

void ctn__emit_concat(ctn__emit *e, const ctn__node *n, const char *word)
{
    char *in[CTN_MAX_IN];
    const int axis = axis_of(n, n->attr[0]);
    (void)word;
    bool open = false;
    for (int i = 0; i < n->nin; i++) {
        in[i] = IN(i);
        open = open || !ctn__emit_fixed(e, n->in[i]->d.dim[axis]);
    }
    if (open && ctn__emit_fixed(e, n->out[0]->d.dim[axis])) {
        char *all = ctn__emit_size(e, n->in[0]->d.dim[axis]);
        for (int i = 1; i < n->nin; i++)
            all = NODE("Add", all, ctn__emit_size(e, n->in[i]->d.dim[axis]));
        ctn__emit_follow(e, n->out[0]->d.dim[axis], all);
    }
    give(e, n, ctn__emit_node(e, "Concat", n->nin, in));
    ctn__emit_int(e, "axis", axis);
}

void ctn__emit_full(ctn__emit *e, const ctn__node *n, const char *word)
{
    (void)word;
    give(e, n, ctn__emit_filled(e, &n->out[0]->d, n->scalar[0].value));
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* A position along a dimension of size n, of an element or, with `end`, after the last one. */
static int64_t position(const ctn__emit *e, int64_t p, int64_t n, bool end)
{
    if (ctn__emit_fixed(e, n)) return p;
    if (end && p == n) return INT64_MAX;
    return p > n / 2 ? p - n : p;
}

static char *slice(ctn__emit *e, char *x, const ctn_desc *d, int axis, int64_t start,
                   int64_t length)
{
    const int64_t size = d->dim[axis], at = axis;
    if (start < 0) start += size;
    resize(e, d, axis, length);
    const int64_t from = position(e, start, size, false);
    if (ctn__emit_fixed(e, size) && !ctn__emit_fixed(e, length)) {
        char *first = ctn__emit_list(e, 1, &start);
        char *end = NODE("Add", ctn__emit_size(e, length), first);
        return NODE("Slice", x, first, end, ctn__emit_list(e, 1, &at));
    }
    int64_t to = position(e, start + length, size, true);
    if (from < 0 && to >= 0 && to != INT64_MAX) to = from + length; /* both from the end */
    return NODE("Slice", x, ctn__emit_list(e, 1, &from), ctn__emit_list(e, 1, &to),
                ctn__emit_list(e, 1, &at));
}

void ctn__emit_slice(ctn__emit *e, const ctn__node *n, const char *word)
{
    const ctn_desc *x = &n->in[0]->d;
    (void)word;
    give(e, n, slice(e, IN(0), x, axis_of(n, n->attr[0]), (int64_t)n->scalar[0].value, n->attr[1]));
}

void ctn__emit_slice_step(ctn__emit *e, const ctn__node *n, const char *word)
{
    enum { LENGTH, STEP, SIZE, PER_DIM };
    const ctn_desc *x = &n->in[0]->d;
    int64_t from[CTN_MAX_DIMS], to[CTN_MAX_DIMS], axes[CTN_MAX_DIMS], steps[CTN_MAX_DIMS];
    int k = 0;
    (void)word;
    for (int i = 0; i < x->ndim; i++) {
        const int64_t *a = n->attr + PER_DIM * i, size = x->dim[i];
        int64_t start = (int64_t)n->scalar[i].value;
        if (start < 0) start += size;
        if (a[STEP] == 1 && a[LENGTH] == size) continue;
        const bool reversed = a[STEP] == -1 && a[LENGTH] == size;
        const int64_t end = start + a[LENGTH] * a[STEP];
        if (!reversed) resize(e, x, i, a[LENGTH]);
        from[k] = reversed ? INT64_MAX : position(e, start, size, false);
        to[k] = end < 0 ? INT64_MIN : end >= size ? INT64_MAX : position(e, end, size, true);
        axes[k] = i;
        steps[k++] = a[STEP];
    }
    if (k == 0) {
        give(e, n, NODE("Identity", IN(0)));
        return;
    }
    give(e, n,
         NODE("Slice", IN(0), ctn__emit_list(e, k, from), ctn__emit_list(e, k, to),
              ctn__emit_list(e, k, axes), ctn__emit_list(e, k, steps)));
}

void ctn__emit_split(ctn__emit *e, const ctn__node *n, const char *word)
{
    const int axis = axis_of(n, n->attr[0]);
    (void)word;
    if (!ctn__emit_fixed(e, n->in[0]->d.dim[axis])) {
        ctn__emit_fail(e, "the size of axis %d is open in the model", axis);
        return;
    }
    char *y = NODE("Split", IN(0), ctn__emit_list(e, n->nout, n->attr + 1));
    ctn__emit_int(e, "axis", axis);
    for (int i = 0; i < n->nout; i++) ctn__emit_out(e, n, i, i == 0 ? y : ctn__emit_more(e));
}

/* The elements that leave at the end come in again at the front. */
void ctn__emit_roll(ctn__emit *e, const ctn__node *n, const char *word)
{
    const ctn_desc *x = &n->in[0]->d;
    const int64_t axis = axis_of(n, n->attr[0]), size = x->dim[axis], begin = 0, end = INT64_MAX;
    double by = n->attr[1] ? -n->scalar[0].value : n->scalar[0].value;
    (void)word;
    if (size > 0) by = fmod(by, (double)size);
    const int64_t shift = (int64_t)by, cut = -shift;
    if (shift == 0) {
        give(e, n, NODE("Identity", IN(0)));
        return;
    }
    char *at = ctn__emit_list(e, 1, &axis), *middle = ctn__emit_list(e, 1, &cut);
    char *back = NODE("Slice", IN(0), middle, ctn__emit_list(e, 1, &end), at);
    char *front = NODE("Slice", IN(0), ctn__emit_list(e, 1, &begin), middle, at);
    give(e, n, NODE("Concat", back, front));
    ctn__emit_int(e, "axis", axis);
}

void ctn__emit_tril(ctn__emit *e, const ctn__node *n, const char *word)
{
    const bool logical = n->out[0]->d.dtype == CTN_BOOL; /* which Trilu need not take */
    (void)word;
    char *x = logical ? ctn__emit_as(e, IN(0), CTN_I64) : IN(0);
    char *y = NODE("Trilu", x, ctn__emit_number(e, CTN_I64, (double)n->attr[0]));
    ctn__emit_int(e, "upper", 0);
    give(e, n, logical ? ctn__emit_as(e, y, CTN_BOOL) : y);
}

/* ---- diagonals ------------------------------------------------------------------------------- */

/* Row and column of the first of the `count` elements of a diagonal. */
static int64_t diagonal_of(int64_t offset, int64_t rows, int64_t columns, int64_t *r, int64_t *c)
{
    *r = offset < 0 ? -offset : 0;
    *c = offset > 0 ? offset : 0;
    const int64_t down = rows - *r, right = columns - *c, count = down < right ? down : right;
    return count > 0 ? count : 0;
}

/* The matrices become rows, from which every C + 1st element is taken. */
void ctn__emit_diagonal(ctn__emit *e, const ctn__node *n, const char *word)
{
    const ctn_desc *x = &n->in[0]->d;
    const int64_t R = x->dim[x->ndim - 2], C = x->dim[x->ndim - 1];
    int64_t r, c, dims[CTN_MAX_DIMS], axis = x->ndim - 2, step = C + 1;
    const int64_t count = diagonal_of(n->attr[0], R, C, &r, &c);
    (void)word;
    if (!ctn__emit_fixed(e, R) || !ctn__emit_fixed(e, C)) {
        ctn__emit_fail(e, "the matrices have sizes that are open in the model");
        return;
    }
    memcpy(dims, x->dim, sizeof dims);
    dims[axis] = R * C;
    const int64_t from = r * C + c, to = from + count * step;
    char *rows = ctn__emit_shaped(e, IN(0), x->ndim - 1, dims);
    give(e, n,
         NODE("Slice", rows, ctn__emit_list(e, 1, &from), ctn__emit_list(e, 1, &to),
              ctn__emit_list(e, 1, &axis), ctn__emit_list(e, 1, &step)));
}

/* Row i of the matrices is element i times row i of a shifted unit matrix, below rows of zeros. */
void ctn__emit_diag_embed(ctn__emit *e, const ctn__node *n, const char *word)
{
    const ctn_desc *y = &n->out[0]->d;
    const int64_t R = y->dim[y->ndim - 2], C = y->dim[y->ndim - 1], axis = -2;
    int64_t r, c;
    const int64_t count = diagonal_of(n->attr[0], R, C, &r, &c);
    (void)word;
    if (!ctn__emit_fixed(e, R) || !ctn__emit_fixed(e, C)) {
        ctn__emit_fail(e, "the matrices have sizes that are open in the model");
        return;
    }
    double *unit = ctn__calloc((size_t)(count * C + 1), sizeof *unit);
    for (int64_t i = 0; unit && i < count; i++) unit[i * C + c + i] = 1;
    char *eye = unit ? ctn__emit_reals(e, y->dtype, CTN_SHAPE(count, C), unit) : NULL;
    if (!unit) e->st = CTN_ENOMEM;
    ctn__free(unit);
    char *rows = NODE("Mul", ctn__emit_unsqueeze(e, IN(0), -1), eye);
    const int64_t around[] = {r, R - count - r};
    give(e, n,
         NODE("Pad", rows, ctn__emit_list(e, 2, around), ctn__emit_number(e, y->dtype, 0),
              ctn__emit_list(e, 1, &axis)));
}

/* ---- more elements --------------------------------------------------------------------------- */

void ctn__emit_pad(ctn__emit *e, const ctn__node *n, const char *word)
{
    const ctn_desc *x = &n->in[0]->d;
    int64_t pads[2 * CTN_MAX_DIMS];
    (void)word;
    for (int i = 0; i < x->ndim; i++) {
        resize(e, x, i, n->out[0]->d.dim[i]);
        pads[i] = n->attr[2 * i];
        pads[x->ndim + i] = n->attr[2 * i + 1];
    }
    give(e, n,
         NODE("Pad", IN(0), ctn__emit_list(e, 2 * x->ndim, pads),
              ctn__emit_number(e, x->dtype, n->scalar[0].value)));
}

/* Which of n elements stands at position i, which may lie outside. */
static int64_t source(int64_t mode, int64_t i, int64_t n)
{
    if (mode == CTN_PAD_REPLICATE) return i < 0 ? 0 : i < n ? i : n - 1;
    const int64_t period = mode == CTN_PAD_WRAP ? n : n > 1 ? 2 * (n - 1) : 1;
    i = (i % period + period) % period;
    return i < n ? i : period - i;
}

/* One Gather per padded dimension: not all programs have Pad with all modes, or with as much
 * padding. */
void ctn__emit_pad_by(ctn__emit *e, const ctn__node *n, const char *word)
{
    enum { BEFORE, SIZE, AFTER, PER_DIM };
    const ctn_desc *x = &n->in[0]->d;
    char *y = IN(0);
    (void)word;
    for (int i = 0; i < x->ndim; i++) {
        const int64_t *a = n->attr + 1 + PER_DIM * i, all = n->out[0]->d.dim[i];
        if (a[BEFORE] + a[AFTER] == 0) continue;
        if (!ctn__emit_fixed(e, x->dim[i])) {
            ctn__emit_fail(e, "the size of axis %d is open in the model", i);
            return;
        }
        int64_t *from = ctn__calloc((size_t)all, sizeof *from);
        if (!from) {
            e->st = CTN_ENOMEM;
            return;
        }
        for (int64_t k = 0; k < all; k++) from[k] = source(n->attr[0], k - a[BEFORE], x->dim[i]);
        y = NODE("Gather", y, ctn__emit_array(e, CTN_I64, 1, &all, from));
        ctn__emit_int(e, "axis", i);
        ctn__free(from);
    }
    give(e, n, y == IN(0) ? NODE("Identity", y) : y);
}

/* A comparison with 0, 1, ...: OneHot exists for few types. */
void ctn__emit_one_hot(ctn__emit *e, const ctn__node *n, const char *word)
{
    (void)word;
    char *index = ctn__emit_as(e, ctn__emit_unsqueeze(e, IN(0), -1), CTN_I64);
    char *same = NODE("Equal", index, ctn__emit_range(e, n->attr[0]));
    give(e, n, ctn__emit_as(e, same, n->out[0]->d.dtype));
}

/* ---- by index -------------------------------------------------------------------------------- */

void ctn__emit_take(ctn__emit *e, const ctn__node *n, const char *word)
{
    give(e, n, NODE("Gather", IN(0), IN(1)));
    ctn__emit_int(e, "axis", word ? 0 : axis_of(n, n->attr[0]));
}

void ctn__emit_gather(ctn__emit *e, const ctn__node *n, const char *word)
{
    (void)word;
    give(e, n, NODE("GatherElements", IN(0), IN(1)));
    ctn__emit_int(e, "axis", axis_of(n, n->attr[0]));
}

void ctn__emit_scatter(ctn__emit *e, const ctn__node *n, const char *word)
{
    const ctn_desc *index = &n->in[1]->d;
    char *src = IN(2);
    for (int i = 0; i < index->ndim; i++) /* only this part of src is read */
        if (index->dim[i] != n->in[2]->d.dim[i]) {
            const int64_t begin = 0, axis = i;
            src = NODE("Slice", src, ctn__emit_list(e, 1, &begin), ctn__emit_size(e, index->dim[i]),
                       ctn__emit_list(e, 1, &axis));
        }
    give(e, n, NODE("ScatterElements", IN(0), IN(1), src));
    ctn__emit_int(e, "axis", axis_of(n, n->attr[0]));
    ctn__emit_text(e, "reduction", word);
}

#endif
