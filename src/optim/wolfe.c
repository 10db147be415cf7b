/* SPDX-License-Identifier: Apache-2.0
 *
 * Line search for the strong Wolfe conditions (Nocedal and Wright, "Numerical optimization",
 * algorithms 3.5 and 3.6):
 *   f(t) <= f(0) + c1 t f'(0)   and   |f'(t)| <= c2 |f'(0)|
 * The first phase makes steps longer until two points enclose such a t. The second phase makes the
 * enclosing interval smaller. Both choose the next t by cubic interpolation. The constants and the
 * rules for interpolated points near the end of an interval are those of minFunc, which PyTorch
 * has too, so that iterates agree.
 */
#include <math.h>

#include "optim/lbfgs.h"

#define C1 1e-4
#define C2 0.9

typedef struct {
    ctn__lbfgs *l;
    double f, slope; /* at t = 0 */
    int n, max;      /* iterations used and allowed */
    bool found;
} search;

/* The minimum in [least, most] of the cubic through two points with their slopes. */
static double cubic(const ctn__trial *a, const ctn__trial *b, double least, double most)
{
    if (a->t > b->t) {
        const ctn__trial *left = b;
        b = a;
        a = left;
    }
    const double d1 = a->slope + b->slope - 3 * (a->f - b->f) / (a->t - b->t);
    const double square = d1 * d1 - a->slope * b->slope;
    if (!(square >= 0)) return (least + most) / 2;
    const double d2 = sqrt(square);
    const double t = b->t - (b->t - a->t) * ((b->slope + d2 - d1) / (b->slope - a->slope + 2 * d2));
    return fmin(fmax(t, least), most);
}

static void swap(ctn__trial *a, ctn__trial *b)
{
    const ctn__trial c = *a;
    *a = *b;
    *b = c;
}

/* A loss that is NaN is too high. */
static bool too_high(const search *s, const ctn__trial *p)
{
    return !(p->f <= s->f + C1 * p->t * s->slope);
}

static bool flat(const search *s, const ctn__trial *p)
{
    return fabs(p->slope) <= -C2 * s->slope;
}

/* Phase one. Afterwards end[0] and end[1] enclose a good point, or s->found: end[1] is one. */
static ctn_status enclose(ctn_optim *o, search *s, double t, ctn__trial *end)
{
    const ctn__lbfgs *l = s->l;
    const size_t bytes = (size_t)l->n * o->pool->unit;
    end[0].t = 0;
    end[0].f = s->f;
    end[0].slope = s->slope;
    memcpy(end[0].g, l->trial[0].g, bytes);
    CTN_TRY(ctn__lbfgs_try(o, t, &end[1]));
    for (; s->n < s->max; s->n++) {
        if (too_high(s, &end[1]) || (s->n > 1 && end[1].f >= end[0].f)) return CTN_OK;
        s->found = flat(s, &end[1]);
        if (s->found || end[1].slope >= 0) return CTN_OK;
        t = cubic(&end[0], &end[1], end[1].t + 0.01 * (end[1].t - end[0].t), end[1].t * 10);
        swap(&end[0], &end[1]);
        CTN_TRY(ctn__lbfgs_try(o, t, &end[1]));
    }
    end[0].t = 0; /* no iterations are left: the better of the start and the last point */
    end[0].f = s->f;
    memcpy(end[0].g, l->trial[0].g, bytes);
    return CTN_OK;
}

/* The next point of phase two. If two points in a row, or one at an end, come closer to an end than
 * a tenth of the interval, it is moved to that distance. */
static double inside(const ctn__trial *end, bool *slow)
{
    const double least = fmin(end[0].t, end[1].t), most = fmax(end[0].t, end[1].t);
    const double margin = 0.1 * (most - least);
    double t = cubic(&end[0], &end[1], least, most);
    const bool close = fmin(most - t, t - least) < margin;
    const bool moves = close && (*slow || t >= most || t <= least);
    if (moves) t = fabs(t - most) < fabs(t - least) ? most - margin : least + margin;
    *slow = close && !moves;
    return t;
}

/* Phase two. Returns the index of the best end. */
static ctn_status narrow(ctn_optim *o, search *s, ctn__trial *end, ctn__trial *now, int *best)
{
    const double size = ctn__lbfgs_top(o, s->l->d);
    bool slow = false;
    int low = end[1].f < end[0].f;
    while (s->n < s->max && fabs(end[1].t - end[0].t) * size >= s->l->tol_change) {
        CTN_TRY(ctn__lbfgs_try(o, inside(end, &slow), now));
        s->n++;
        if (too_high(s, now) || now->f >= end[low].f) {
            swap(&end[!low], now);
            low = end[1].f < end[0].f;
            continue;
        }
        const bool found = flat(s, now);
        if (!found && now->slope * (end[!low].t - end[low].t) >= 0) swap(&end[!low], &end[low]);
        swap(&end[low], now);
        if (found) break;
    }
    *best = low;
    return CTN_OK;
}

ctn_status ctn__wolfe(ctn_optim *o, double t, int max, int *evaluations)
{
    ctn__lbfgs *l = o->lbfgs;
    ctn__trial *end = &l->trial[1];
    search s = {.l = l, .f = l->trial[0].f, .slope = l->trial[0].slope, .max = max};
    int best = 1;
    CTN_TRY(enclose(o, &s, t, end));
    if (!s.found) CTN_TRY(narrow(o, &s, end, &l->trial[3], &best));
    swap(&l->trial[0], &end[best]);
    *evaluations += s.n + 1;
    return CTN_OK;
}
