/* SPDX-License-Identifier: Apache-2.0
 *
 * A moving average of the parameters, updated after every step: avg += (1 - rate) (w - avg); or
 * their mean over some steps (stochastic weight averaging), where 1 - rate is 1 over the number of
 * them so far.
 * Evaluators swap it with the weights while they run. States (running statistics) are not
 * averaged. The average starts as a copy of the weights at the beginning of the training.
 */
#include "train/train.h"

#include "optim/optim.h"

typedef struct {
    ctn_var *var;
    void *avg; /* type and shape of var */
} averaged;

struct ctn__average {
    double rate;
    bool filled;                /* avg has values */
    int64_t taken;              /* steps of the optimizer at the last call */
    int64_t start, every, used; /* of the mean: its steps, and their number so far; every 0: none */
    CTN__VEC(averaged) at;
    ctn_module *net;
};

/* An update that arrived after the swap would change the average. */
ctn_status ctn__average_swap(ctn_trainer *tr)
{
    ctn__average *a = tr->average;
    if (a) CTN_TRY(ctn__trainer_settle(tr));
    for (size_t k = 0; a && k < a->at.n; k++) {
        char *w = a->at.at[k].var->data, *avg = a->at.at[k].avg, part[4096];
        const size_t bytes = ctn__bytes(&a->at.at[k].var->d);
        for (size_t i = 0; i < bytes; i += sizeof part) {
            const size_t n = bytes - i < sizeof part ? bytes - i : sizeof part;
            memcpy(part, w + i, n);
            memcpy(w + i, avg + i, n);
            memcpy(avg + i, part, n);
        }
        a->at.at[k].var->version++;
    }
    return CTN_OK;
}

static ctn_status start(void *self, ctn_trainer *tr)
{
    ctn__average *a = self;
    CTN_TRY(ctn__trainer_settle(tr));
    for (size_t k = 0; !a->filled && k < a->at.n; k++)
        memcpy(a->at.at[k].avg, a->at.at[k].var->data, ctn__bytes(&a->at.at[k].var->d));
    a->filled = true;
    a->taken = tr->optim->t;
    return CTN_OK;
}

/* The weight of the current parameters. */
static double share(ctn__average *a, int64_t step)
{
    if (a->every == 0) return 1 - a->rate;
    if (step < a->start) return 1;
    if ((step - a->start) % a->every != 0) return 0;
    return 1.0 / (double)++a->used;
}

static void move_f32(float *avg, const float *w, int64_t n, float rest)
{
    for (int64_t i = 0; i < n; i++) avg[i] += rest * (w[i] - avg[i]);
}

static void move_f64(double *avg, const double *w, int64_t n, double rest)
{
    for (int64_t i = 0; i < n; i++) avg[i] += rest * (w[i] - avg[i]);
}

static ctn_status call(void *self, ctn_trainer *tr)
{
    ctn__average *a = self;
    if (tr->optim->t == a->taken) return CTN_OK; /* a step was skipped */
    a->taken = tr->optim->t;
    const double rest = share(a, a->taken);
    if (rest == 0) return CTN_OK;
    CTN_TRY(ctn__trainer_settle(tr));
    for (size_t k = 0; k < a->at.n; k++) {
        const ctn_var *v = a->at.at[k].var;
        void *avg = a->at.at[k].avg;
        const int64_t n = ctn__count(&v->d);
        if (rest == 1) memcpy(avg, v->data, ctn__bytes(&v->d));
        else if (v->d.dtype == CTN_F64) move_f64(avg, v->data, n, rest);
        else move_f32(avg, v->data, n, (float)rest);
    }
    return CTN_OK;
}

/* Every rank keeps the average, because every rank evaluates with it. Only rank 0 writes it. */
static ctn_status finish(void *self, ctn_trainer *tr)
{
    ctn__text path = {0};
    if (!tr->o.out || tr->status < 0) return CTN_OK;
    (void)self;
    CTN_TRY(ctn__trainer_settle(tr));
    if (!ctn__writes(tr)) return CTN_OK;
    ctn__text_add(&path, "%s/average.safetensors", tr->o.out);
    ctn_status st = CTN_ENOMEM;
    if (!path.failed) {
        st = ctn__average_swap(tr);
        if (st == CTN_OK) {
            st = ctn_weights_save(tr->o.net, path.s);
            (void)ctn__average_swap(tr); /* cannot fail: nothing is in flight */
        }
    }
    ctn__text_free(&path);
    return st;
}

static ctn_status visit(void *self, ctn_state_fn fn, void *user)
{
    ctn__average *a = self;
    int64_t filled = a->filled;
    const ctn_vars p = ctn_params(a->net);
    CTN_TRY(fn(user, "filled", CTN_I64, 0, NULL, &filled));
    a->filled = filled != 0;
    if (a->every > 0) CTN_TRY(fn(user, "used", CTN_I64, 0, NULL, &a->used));
    for (size_t k = 0; k < a->at.n; k++) {
        const ctn_var *v = a->at.at[k].var;
        int i = 0;
        while (i < p.n && p.var[i] != v) i++;
        if (i == p.n)
            return ctn_fail(CTN_ESTATE, "average: %s is no longer part of the net", v->name);
        CTN_TRY(fn(user, p.name[i], v->d.dtype, v->d.ndim, v->d.dim, a->at.at[k].avg));
    }
    return CTN_OK;
}

static void release(void *self)
{
    ctn__average *a = self;
    for (size_t k = 0; k < a->at.n; k++) ctn__free(a->at.at[k].avg);
    ctn__vec_free(&a->at);
    ctn__free(a);
}

static ctn_status add_params(ctn__average *a)
{
    const ctn_vars p = ctn_params(a->net);
    if (p.n == 0 && ctn_error_status() < 0) return ctn_error_status();
    for (int i = 0; i < p.n; i++) {
        bool tied = false;
        for (int k = 0; k < i; k++) tied |= p.var[k] == p.var[i];
        if (tied) continue;
        if (p.var[i]->d.dtype != CTN_F32 && p.var[i]->d.dtype != CTN_F64)
            return ctn_fail(CTN_EDTYPE, "extend_average: %s is %s, expected f32 or f64", p.name[i],
                            ctn_dtype_name(p.var[i]->d.dtype));
        averaged x = {p.var[i], ctn__calloc(ctn__bytes(&p.var[i]->d) + 1, 1)};
        if (!x.avg || !ctn__vec_push(&a->at, x)) {
            ctn__free(x.avg);
            return CTN_ENOMEM;
        }
    }
    return CTN_OK;
}

static ctn_status extend(const char *who, ctn_trainer *tr, const ctn__average *how)
{
    if (!tr || !tr->o.net)
        return ctn_fail(tr ? CTN_ESTATE : CTN_EARG,
                        "%s: needs a trainer with a net (ctn_trainer_opt.net)", who);
    if (tr->average)
        return ctn_fail(CTN_ESTATE, "%s: the trainer already has an average of the parameters",
                        who);
    ctn__average *a = ctn__calloc(1, sizeof *a);
    if (!a) return CTN_ENOMEM;
    *a = *how;
    a->net = tr->o.net;
    ctn_status st = add_params(a);
    if (st < 0) {
        release(a);
        return st;
    }
    CTN_TRY(ctn__extend(tr,
                        &(ctn_extension){.name = "average",
                                         .priority = CTN_PRIORITY_EVALUATE + 100,
                                         .start = start,
                                         .call = call,
                                         .finish = finish,
                                         .visit = visit,
                                         .release = release,
                                         .self = a},
                        NULL, (ctn_trigger){.kind = CTN_EVERY_ITERATIONS, .n = 1}));
    tr->average = a;
    return CTN_OK;
}

ctn_status ctn_extend_average(ctn_trainer *tr, double rate)
{
    if (!(rate >= 0 && rate < 1))
        return ctn_fail(CTN_EARG, "extend_average: the rate is %g, it must be in [0,1)", rate);
    return extend("extend_average", tr, &(ctn__average){.rate = rate > 0 ? rate : 0.999});
}

ctn_status ctn_extend_swa(ctn_trainer *tr, int64_t start, int64_t every)
{
    if (start < 0 || every < 0)
        return ctn_fail(CTN_EARG, "extend_swa: start is %lld and every %lld, expected at least 0",
                        (long long)start, (long long)every);
    return extend("extend_swa", tr,
                  &(ctn__average){.start = start > 0 ? start : 1, .every = every > 0 ? every : 1});
}
