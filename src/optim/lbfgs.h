/* SPDX-License-Identifier: Apache-2.0
 *
 * L-BFGS: what its step (lbfgs.c) and its line search (wolfe.c) share. Vectors are laid out like
 * the pool: padding and frozen parameters are zeros in all of them except the values.
 */
#ifndef CTN_OPTIM_LBFGS_H
#define CTN_OPTIM_LBFGS_H

#include "optim/optim.h"

/* The loss on the line x + t d: its value, its slope (the derivative by t) and its gradient. */
typedef struct {
    double t, f, slope;
    void *g;
} ctn__trial;

struct ctn__lbfgs {
    int iterations, evaluations, history;
    double tol_grad, tol_change;
    bool fixed;          /* no line search */
    uint64_t uid;        /* of the pool to which the vectors belong */
    uint64_t trained;    /* hash of the set of parameters to which the history belongs */
    int64_t n;           /* elements of a vector */
    void *y, *s;         /* (history, n): changes of the gradient, changes of the parameters */
    double *inverse, *a; /* (history): 1 / (y s), and scratch of the two loops */
    void *d, *old;       /* (n): the last direction, the gradient before it */
    void *x;             /* (n): the parameters at the start of the line */
    ctn__trial trial[4]; /* the accepted point, and three for the search */
    int64_t first, used; /* the oldest entry of the history, and the number of entries */
    int64_t taken;       /* iterations so far */
    double t, scale;     /* the last step length; the diagonal of the first inverse Hessian */
    ctn_closure_fn closure;
    void *user;
};

/* The parameters become x + t d. */
void ctn__lbfgs_move(ctn_optim *o, double t);
/* Loss, slope and gradient there. Runs the closure. */
ctn_status ctn__lbfgs_try(ctn_optim *o, double t, ctn__trial *out);
double ctn__lbfgs_dot(const ctn_optim *o, const void *a, const void *b);
double ctn__lbfgs_top(const ctn_optim *o, const void *a); /* the largest absolute value */

/* Find a step length from first guess t that satisfies the strong Wolfe conditions, with at most
 * max + 1 evaluations. trial[0] is the start; the point found replaces it. */
ctn_status ctn__wolfe(ctn_optim *o, double t, int max, int *evaluations);

#endif
