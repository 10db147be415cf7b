/* SPDX-License-Identifier: Apache-2.0
 *
 * einsum: sums of products, described by labels. It is not an op of its own. Every dimension of an
 * operand has a label; operands are combined two at a time, from left to right. For two operands
 * the labels fall into four groups:
 *   batch     in both, and needed later (by the result or by an operand to come)
 *   summed    in both, and not needed later
 *   rows      only in the first
 *   columns   only in the second
 * The product is a matmul (batch..., rows, summed) x (batch..., summed, columns). Transposes are
 * views, and a group of one label needs no reshape, so a product that matmul can do directly copies
 * nothing. Without summed labels, or without rows and columns, it is an elementwise product.
 *
 * Labels are letters. The dimensions of "..." get the labels after them, counted from the last one,
 * so that they are aligned as in broadcasting. Such a dimension of length 1 is dropped where
 * another operand has a longer one.
 */
#include "ops/common/along.h"

enum { LETTERS = 52, LABELS = LETTERS + CTN_MAX_DIMS, TEXT = 24 };

typedef struct {
    ctn_tensor *t;
    int n; /* labels: as many as t has dimensions */
    uint8_t label[CTN_MAX_DIMS];
} operand;

typedef struct {
    const char *at, *equation;
    int64_t size[LABELS];
    int first[LABELS]; /* operand that gave the label its size */
    int uses[LABELS];  /* operands not yet combined that have the label, plus one for the result */
    int result_n;
    uint8_t result[LABELS];
} sum_of_products;

/* ---- the equation ---------------------------------------------------------------------------- */

static int letter(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? 26 + c - 'a' : -1;
}

static const char *label_text(int label, char *buf)
{
    const char c = (char)(label < 26 ? 'A' + label : 'a' + label - 26);
    if (label < LETTERS) snprintf(buf, TEXT, "'%c'", c);
    else snprintf(buf, TEXT, "'...'[%d]", LETTERS - label - 1);
    return buf;
}

static bool has(const operand *x, int label)
{
    for (int i = 0; i < x->n; i++)
        if (x->label[i] == label) return true;
    return false;
}

static ctn_status bad(const sum_of_products *e, const char *why)
{
    return ctn_fail(CTN_EARG, "einsum: \"%s\": %s (%s)", e->equation, why, e->at);
}

/* The labels of one operand, or of the result, up to `end`. `wide` dimensions belong to "...". */
static ctn_status read_labels(const sum_of_products *e, const char *p, const char *end, int wide,
                              int *n, uint8_t *label, int most)
{
    bool dots = false;
    for (*n = 0; p < end; p++) {
        if (*p == ' ') continue;
        const int c = letter(*p);
        int count = 1;
        if (c < 0) {
            if (end - p < 3 || p[0] != '.' || p[1] != '.' || p[2] != '.' || dots)
                return bad(e, "expected letters, at most one \"...\" per operand, ',' and \"->\"");
            dots = true;
            count = wide;
            p += 2;
        }
        if (*n + count > most)
            return ctn_fail(CTN_ESHAPE, "einsum: \"%s\": more than %d dimensions (%s)", e->equation,
                            most, e->at);
        for (int i = 0; i < count; i++)
            label[(*n)++] = (uint8_t)(c >= 0 ? c : LETTERS + count - 1 - i);
    }
    return CTN_OK;
}

static int letters_in(const char *p, const char *end)
{
    int n = 0;
    for (; p < end; p++) n += letter(*p) >= 0;
    return n;
}

static ctn_status read_operand(sum_of_products *e, const char *p, const char *end, int k,
                               operand *x)
{
    const int letters = letters_in(p, end), nd = x->t->d.ndim;
    const bool dots = memchr(p, '.', (size_t)(end - p)) != NULL;
    char t[128], name[TEXT];
    const int wide = nd > letters ? nd - letters : 0;
    CTN_TRY(read_labels(e, p, end, wide, &x->n, x->label, CTN_MAX_DIMS));
    if (dots ? letters > nd : letters != nd)
        return ctn_fail(CTN_ESHAPE, "einsum: \"%s\": operand %d is %s, but has %d labels (%s)",
                        e->equation, k, ctn__shape_text(&x->t->d, t, sizeof t), letters, e->at);
    for (int i = 0; i < x->n; i++) {
        const int c = x->label[i];
        const int64_t n = x->t->d.dim[i], known = e->size[c];
        if (known < 0 || (c >= LETTERS && known == 1)) {
            e->size[c] = n;
            e->first[c] = k;
        } else if (n != known && !(c >= LETTERS && n == 1)) {
            return ctn_fail(CTN_ESHAPE,
                            "einsum: \"%s\": label %s has length %lld in operand %d and %lld in "
                            "operand %d (%s)",
                            e->equation, label_text(c, name), (long long)known, e->first[c],
                            (long long)n, k, e->at);
        }
    }
    return CTN_OK;
}

/* Without an arrow: the dimensions of "...", then the letters that occur once. */
static void usual_result(sum_of_products *e, const char *p, const char *end)
{
    int times[LETTERS] = {0};
    for (; p < end; p++)
        if (letter(*p) >= 0) times[letter(*p)]++;
    e->result_n = 0;
    for (int c = LABELS - 1; c >= LETTERS; c--)
        if (e->size[c] >= 0) e->result[e->result_n++] = (uint8_t)c;
    for (int c = 0; c < LETTERS; c++)
        if (times[c] == 1) e->result[e->result_n++] = (uint8_t)c;
}

static ctn_status read_result(sum_of_products *e, const char *p)
{
    int wide = 0;
    char name[TEXT];
    bool seen[LABELS] = {false};
    for (int c = LETTERS; c < LABELS; c++) wide += e->size[c] >= 0;
    CTN_TRY(read_labels(e, p, p + strlen(p), wide, &e->result_n, e->result, CTN_MAX_DIMS));
    for (int i = 0; i < e->result_n; i++) {
        const int c = e->result[i];
        if (e->size[c] < 0 || seen[c])
            return ctn_fail(CTN_EARG, "einsum: \"%s\": label %s of the result %s (%s)", e->equation,
                            label_text(c, name), seen[c] ? "is repeated" : "is in no operand",
                            e->at);
        seen[c] = true;
    }
    return CTN_OK;
}

static ctn_status read_equation(sum_of_products *e, int n, operand *x)
{
    const char *arrow = strstr(e->equation, "->"), *p = e->equation;
    const char *stop = arrow ? arrow : p + strlen(p);
    int commas = 0;
    for (int c = 0; c < LABELS; c++) e->size[c] = -1;
    for (const char *q = p; q < stop; q++) commas += *q == ',';
    if (commas + 1 != n)
        return ctn_fail(CTN_EARG, "einsum: \"%s\" has %d operands, but got %d tensors (%s)",
                        e->equation, commas + 1, n, e->at);
    for (int k = 0; k < n; k++) {
        const char *end = memchr(p, ',', (size_t)(stop - p));
        CTN_TRY(read_operand(e, p, end ? end : stop, k, &x[k]));
        p = end ? end + 1 : stop;
    }
    if (arrow) return read_result(e, arrow + 2);
    usual_result(e, e->equation, stop);
    return CTN_OK;
}

/* ---- one operand ----------------------------------------------------------------------------- */

static void drop(operand *x, int i)
{
    for (x->n--; i < x->n; i++) x->label[i] = x->label[i + 1];
}

/* Put the dimensions in the order of `label`; all of them are in x. */
static void arrange(const char *at, operand *x, int n, const uint8_t *label)
{
    int64_t order[CTN_MAX_DIMS] = {0};
    bool moved = false;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < x->n; k++)
            if (x->label[k] == label[i]) order[i] = k;
        moved = moved || order[i] != i;
    }
    if (moved) x->t = ctn_transpose_at(at, x->t, n, order);
    memcpy(x->label, label, (size_t)n);
}

/* Repeated labels become one dimension, the diagonal of both. */
static void take_diagonals(const char *at, operand *x)
{
    for (int i = 0; i < x->n; i++) {
        int j = i + 1;
        while (j < x->n && x->label[j] != x->label[i]) j++;
        if (j == x->n) continue;
        const uint8_t c = x->label[i];
        x->t = ctn_moveaxis_at(at, ctn_moveaxis_at(at, x->t, i, -1), j - 1, -1);
        x->t = ctn_diagonal_at(at, x->t, 0);
        drop(x, j);
        drop(x, i);
        x->label[x->n++] = c;
        i = -1; /* there may be a third one */
    }
}

/* Remove the dimensions of "..." that are broadcast, and sum over labels that nobody needs. */
static void reduce(sum_of_products *e, operand *x)
{
    int64_t axes[CTN_MAX_DIMS];
    int n = 0;
    for (int i = x->n - 1; i >= 0 && x->t; i--) {
        const int c = x->label[i];
        if (x->t->d.dim[i] == e->size[c]) continue;
        x->t = ctn_squeeze_at(e->at, x->t, i);
        e->uses[c]--;
        drop(x, i);
    }
    for (int i = 0; i < x->n; i++)
        if (e->uses[x->label[i]] == 1) axes[n++] = i; /* only this operand has it */
    if (n > 0) x->t = ctn_sum_at(e->at, x->t, n, axes, 0);
    while (n > 0) drop(x, (int)axes[--n]);
}

/* ---- two operands ---------------------------------------------------------------------------- */

typedef struct {
    int n;
    uint8_t label[CTN_MAX_DIMS];
} group;

static int64_t length(const sum_of_products *e, const group *g)
{
    int64_t n = 1;
    for (int i = 0; i < g->n; i++) n *= e->size[g->label[i]];
    return n;
}

static int join(uint8_t *to, const group *p, const group *q, const group *r)
{
    int n = 0;
    const group *all[3] = {p, q, r};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < all[k]->n; i++) to[n++] = all[k]->label[i];
    return n;
}

/* x as (batch..., p, q), or as (batch..., q, p) if its dimensions are in that order already. If the
 * innermost dimension of x is a batch, its matrices are not dense in memory, for which the engine
 * has only slow kernels: the reshape then makes a copy. */
static ctn_tensor *as_matrices(const sum_of_products *e, operand *x, const group *batch,
                               const group *p, const group *q, int *swapped)
{
    uint8_t order[3 * CTN_MAX_DIMS];
    int64_t dims[CTN_MAX_DIMS];
    bool scattered = false;
    for (int i = 0; i < batch->n; i++) scattered |= batch->label[i] == x->label[x->n - 1];
    int n = join(order, batch, q, p);
    *swapped = memcmp(order, x->label, (size_t)n) == 0 && p->n > 0 && q->n > 0;
    if (!*swapped) {
        n = join(order, batch, p, q);
        arrange(e->at, x, n, order);
    }
    if (p->n == 1 && q->n == 1 && !scattered) return x->t;
    for (int i = 0; i < batch->n; i++) dims[i] = e->size[batch->label[i]];
    dims[batch->n] = length(e, *swapped ? q : p);
    dims[batch->n + 1] = length(e, *swapped ? p : q);
    return ctn_reshape_at(e->at, x->t, batch->n + 2, dims);
}

/* x with all dimensions of the product of two operands, of length 1 where it has no such label. */
static ctn_tensor *spread(const sum_of_products *e, operand *x, int n, const uint8_t *label)
{
    int64_t dims[CTN_MAX_DIMS];
    uint8_t own[CTN_MAX_DIMS];
    int m = 0;
    for (int i = 0; i < n; i++) {
        const bool there = has(x, label[i]);
        dims[i] = there ? e->size[label[i]] : 1;
        if (there) own[m++] = label[i];
    }
    arrange(e->at, x, m, own);
    return m == n ? x->t : ctn_reshape_at(e->at, x->t, n, dims);
}

/* The elementwise product, with `summed` as the last dimensions, which are summed. */
static void multiply(const sum_of_products *e, operand *a, operand *b, int n, const uint8_t *label,
                     const group *summed, operand *to)
{
    int64_t axes[CTN_MAX_DIMS];
    uint8_t all[4 * CTN_MAX_DIMS];
    memcpy(all, label, (size_t)n);
    memcpy(all + n, summed->label, (size_t)summed->n);
    const int nd = n + summed->n;
    to->t = ctn_mul_at(e->at, spread(e, a, nd, all), spread(e, b, nd, all));
    for (int i = 0; i < summed->n; i++) axes[i] = n + i;
    if (summed->n > 0) to->t = ctn_sum_at(e->at, to->t, summed->n, axes, 0);
}

static void product(const sum_of_products *e, operand *a, operand *b, const group *batch,
                    const group *rows, const group *columns, const group *summed, operand *to)
{
    int ta, tb;
    int64_t dims[3 * CTN_MAX_DIMS];
    ctn_tensor *A = as_matrices(e, a, batch, rows, summed, &ta);
    ctn_tensor *B = as_matrices(e, b, batch, summed, columns, &tb);
    to->t = ctn_matmul_at(e->at, A, B, ta, tb);
    for (int i = 0; i < to->n; i++) dims[i] = e->size[to->label[i]];
    if (rows->n != 1 || columns->n != 1) to->t = ctn_reshape_at(e->at, to->t, to->n, dims);
}

static ctn_status combine(sum_of_products *e, operand *a, operand *b)
{
    group batch = {0}, rows = {0}, columns = {0}, summed = {0};
    uint8_t label[3 * CTN_MAX_DIMS];
    operand to = {0};
    /* The result is in the right order more often if its first label belongs to the rows. */
    for (int i = 0; i < e->result_n; i++) {
        const bool in_a = has(a, e->result[i]), in_b = has(b, e->result[i]);
        if (in_a == in_b) continue;
        operand *t = a;
        if (in_b) {
            a = b;
            b = t;
        }
        break;
    }
    for (int i = 0; i < a->n; i++) {
        const uint8_t c = a->label[i];
        group *g = !has(b, c) ? &rows : e->uses[c] > 2 ? &batch : &summed;
        g->label[g->n++] = c;
    }
    for (int i = 0; i < b->n; i++)
        if (!has(a, b->label[i])) columns.label[columns.n++] = b->label[i];
    const int n = join(label, &batch, &rows, &columns);
    const bool matrices = summed.n > 0 && rows.n + columns.n > 0;
    if ((matrices ? n : n + summed.n) > CTN_MAX_DIMS)
        return ctn_fail(CTN_ESHAPE,
                        "einsum: \"%s\": a product of two operands has %d dimensions, at most %d "
                        "are possible (%s)",
                        e->equation, n + summed.n, CTN_MAX_DIMS, e->at);
    to.n = n;
    memcpy(to.label, label, (size_t)n);
    if (matrices) product(e, a, b, &batch, &rows, &columns, &summed, &to);
    else multiply(e, a, b, n, label, &summed, &to);
    for (int i = 0; i < batch.n; i++) e->uses[batch.label[i]]--;
    for (int i = 0; i < summed.n; i++) e->uses[summed.label[i]] -= 2;
    *a = to;
    *b = to;
    return to.t ? CTN_OK : ctn_error_status();
}

static ctn_status evaluate(sum_of_products *e, int n, operand *x, ctn_tensor **out)
{
    *out = NULL;
    CTN_TRY(read_equation(e, n, x));
    if (e->result_n > CTN_MAX_DIMS) return bad(e, "the result has more than 8 dimensions");
    for (int i = 0; i < e->result_n; i++) e->uses[e->result[i]]++;
    for (int k = 0; k < n; k++) {
        take_diagonals(e->at, &x[k]);
        for (int i = 0; i < x[k].n; i++) e->uses[x[k].label[i]]++;
    }
    reduce(e, &x[0]);
    for (int k = 1; k < n; k++) {
        reduce(e, &x[k]);
        if (!x[0].t || !x[k].t) return ctn_error_status();
        CTN_TRY(combine(e, &x[0], &x[k]));
        reduce(e, &x[0]);
    }
    if (!x[0].t) return ctn_error_status();
    arrange(e->at, &x[0], e->result_n, e->result);
    *out = x[0].t;
    return *out ? CTN_OK : ctn_error_status();
}

ctn_tensor *ctn_einsum_at(const char *at, const char *equation, int n, ctn_tensor *const *x)
{
    ctn_tensor *y = NULL;
    if (!equation || n < 1) {
        ctn_fail(CTN_EARG, "einsum: got %d tensors%s, expected at least 1 (%s)", n,
                 equation ? "" : " and no equation", at);
        return NULL;
    }
    for (int k = 0; k < n; k++)
        if (!x[k]) return ctn_reshape_at(at, NULL, 0, NULL); /* keeps the first error */
    sum_of_products e = {.at = at, .equation = equation};
    operand *all = ctn__calloc((size_t)n, sizeof *all);
    for (int k = 0; k < n && all; k++) all[k].t = x[k];
    if (all) (void)evaluate(&e, n, all, &y);
    ctn__free(all);
    return y;
}
