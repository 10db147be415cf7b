/* SPDX-License-Identifier: Apache-2.0
 *
 * Weighted draws with replacement from an alias table (Walker; built with Vose's method): count
 * columns of equal probability, each split between its own sample and one other, so a draw needs
 * two random numbers however many samples there are. A table never changes after it is built. It
 * is reference-counted, because a sampler shares it with the loaders that copied the sampler.
 */
#include "data/data.h"

#include <math.h>
#include <stdatomic.h>

struct ctn__alias {
    atomic_int holders;
    int64_t count;
    double *own;    /* the share of column i that belongs to sample i */
    int64_t *other; /* the sample that the rest belongs to */
};

/* Returns the largest weight, with its sample in *at; -1 if the weight of sample *at is invalid. */
static double largest(int64_t count, const double *weight, int64_t *at)
{
    double max = 0;
    *at = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!(weight[i] >= 0) || isinf(weight[i])) {
            *at = i;
            return -1;
        }
        if (weight[i] > max) {
            max = weight[i];
            *at = i;
        }
    }
    return max;
}

/* Columns below 1 are filled up from columns above 1. stack holds the former from the front and
 * the latter from the back. Rounding may leave columns on either side: those above 1 belong
 * entirely to their own sample; those below are filled up with the heaviest sample, so that a
 * sample of weight 0 is never drawn. */
static void build(struct ctn__alias *a, int64_t *stack, int64_t heaviest)
{
    int64_t small = 0, large = a->count; /* stack[0 .. small-1] and stack[large .. count-1] */
    for (int64_t i = 0; i < a->count; i++) {
        a->other[i] = heaviest;
        if (a->own[i] < 1) stack[small++] = i;
        else stack[--large] = i;
    }
    while (small > 0 && large < a->count) {
        const int64_t s = stack[--small], l = stack[large];
        a->other[s] = l;
        a->own[l] -= 1 - a->own[s];
        if (a->own[l] < 1) {
            large++;
            stack[small++] = l;
        }
    }
}

ctn_status ctn__alias_new(struct ctn__alias **out, int64_t count, const double *weight)
{
    int64_t at;
    const double max = largest(count, weight, &at);
    if (max < 0)
        return ctn_fail(CTN_EARG, "sampler: weight %lld is %g, it must be finite and not negative",
                        (long long)at, weight[at]);
    if (max == 0 && count > 0) return ctn_fail(CTN_EARG, "sampler: all weights are 0");
    ctn_status st = CTN_OK;
    int64_t *stack = NULL;
    struct ctn__alias *a = ctn__calloc(1, sizeof *a);
    if (!a) return CTN_ENOMEM;
    atomic_init(&a->holders, 1);
    a->count = count;
    a->own = ctn__malloc(ctn__mul((size_t)count, sizeof *a->own));
    a->other = a->own ? ctn__malloc(ctn__mul((size_t)count, sizeof *a->other)) : NULL;
    stack = a->other ? ctn__malloc(ctn__mul((size_t)count, sizeof *stack)) : NULL;
    if (!stack) {
        st = CTN_ENOMEM;
        goto done;
    }
    double sum = 0; /* relative to the largest weight: at most count, so it cannot overflow */
    for (int64_t i = 0; i < count; i++) sum += weight[i] / max;
    for (int64_t i = 0; i < count; i++) a->own[i] = weight[i] / max * ((double)count / sum);
    build(a, stack, at);
    *out = a;
    a = NULL;
done:
    ctn__free(stack);
    ctn__alias_release(a);
    return st;
}

struct ctn__alias *ctn__alias_retain(struct ctn__alias *a)
{
    if (a) atomic_fetch_add(&a->holders, 1);
    return a;
}

void ctn__alias_release(struct ctn__alias *a)
{
    if (!a || atomic_fetch_sub(&a->holders, 1) > 1) return;
    ctn__free(a->own);
    ctn__free(a->other);
    ctn__free(a);
}

int64_t ctn__alias_draw(const struct ctn__alias *a, double column, double part)
{
    int64_t i = (int64_t)(column * (double)a->count);
    if (i >= a->count) i = a->count - 1; /* can happen by rounding */
    return part < a->own[i] ? i : a->other[i];
}
