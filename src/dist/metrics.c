/* SPDX-License-Identifier: Apache-2.0
 *
 * Means over all ranks: each value counts by its weight, the samples behind it, so the result is
 * what one rank with all samples would have, however uneven the parts are. Sums are f64 and the
 * same bits on every rank, so ranks may decide by them.
 */
#include <math.h>

#include "dist/dist.h"
#include "train/train.h"

/* Part i of n: weighted sum, then weight. A weight of 0 says that there is no value. */
static ctn_status add_up(ctn_comm *c, int n, double *sum, double *weight)
{
    double *all = ctn__malloc((size_t)n * 4 * sizeof *all);
    if (!all) return CTN_ENOMEM;
    memcpy(all, sum, (size_t)n * sizeof *all);
    memcpy(all + n, weight, (size_t)n * sizeof *all);
    ctn_status st = ctn__comm_sum_small(c, all, 2 * (int64_t)n, CTN_F64, all + 2 * n);
    memcpy(sum, all, (size_t)n * sizeof *all);
    memcpy(weight, all + n, (size_t)n * sizeof *all);
    ctn__free(all);
    return st;
}

ctn_status ctn_dist_mean(ctn_comm *c, int n, double *value, double *weight)
{
    if (!c || n < 0 || (n > 0 && (!value || !weight)))
        return ctn_fail(CTN_EARG, "dist_mean: a communicator, values and weights are needed");
    if (n == 0) return CTN_OK;
    for (int i = 0; i < n; i++) value[i] = weight[i] > 0 ? value[i] * weight[i] : 0;
    CTN_TRY(add_up(c, n, value, weight));
    for (int i = 0; i < n; i++) value[i] = weight[i] > 0 ? value[i] / weight[i] : NAN;
    return CTN_OK;
}

/* ---- by name: a rank without samples has none ------------------------------------------------ */

/* Names of all ranks, each once, in the order of ranks: the same list everywhere. */
typedef struct {
    char *text; /* size * longest */
    CTN__VEC(const char *) name;
} names;

static bool add_name(names *s, const char *name)
{
    for (size_t i = 0; i < s->name.n; i++)
        if (strcmp(s->name.at[i], name) == 0) return true;
    return ctn__vec_push(&s->name, name);
}

static int64_t text_length(int n, const ctn__weighted *v)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++) bytes += strlen(v[i].name) + 1;
    return (int64_t)bytes;
}

static ctn_status gather_names(names *s, ctn_comm *c, int n, const ctn__weighted *v)
{
    const int size = ctn_comm_size(c);
    const int64_t mine = text_length(n, v);
    int64_t longest = 0, *length = ctn__calloc((size_t)size, sizeof *length);
    char *text = NULL;
    ctn_status st = CTN_OK;
    if (!length) return CTN_ENOMEM;
    CTN_TRY_GOTO(st, done, ctn_comm_allgather(c, &mine, sizeof mine, length));
    for (int r = 0; r < size; r++)
        if (length[r] > longest) longest = length[r];
    text = ctn__calloc((size_t)longest + 1, 1);
    s->text = ctn__calloc((size_t)size * (size_t)longest + 1, 1);
    if (!text || !s->text) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    char *to = text;
    for (int i = 0; i < n; i++) {
        const size_t k = strlen(v[i].name) + 1;
        memcpy(to, v[i].name, k);
        to += k;
    }
    CTN_TRY_GOTO(st, done, ctn_comm_allgather(c, text, (size_t)longest, s->text));
    for (int r = 0; r < size; r++) {
        const char *p = s->text + (int64_t)r * longest, *end = p + length[r];
        for (; p < end; p += strlen(p) + 1)
            if (!add_name(s, p)) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    }
done:
    ctn__free(length);
    ctn__free(text);
    return st;
}

static ctn_status merge(void *comm, int n, const ctn__weighted *v, ctn_value_fn fn, void *user)
{
    ctn_comm *c = comm;
    names s = {0};
    double *value = NULL;
    ctn_status st = CTN_OK;
    CTN_TRY_GOTO(st, done, gather_names(&s, c, n, v));
    const size_t all = s.name.n;
    value = ctn__calloc(2 * all + 1, sizeof *value);
    if (!value) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    double *weight = value + all;
    for (int i = 0; i < n; i++)
        for (size_t k = 0; k < all; k++)
            if (strcmp(s.name.at[k], v[i].name) == 0) {
                value[k] = v[i].value;
                weight[k] = v[i].weight;
            }
    CTN_TRY_GOTO(st, done, ctn_dist_mean(c, (int)all, value, weight));
    for (size_t k = 0; k < all && st == CTN_OK; k++) st = fn(user, s.name.at[k], value[k]);
done:
    ctn__vec_free(&s.name);
    ctn__free(s.text);
    ctn__free(value);
    return st;
}

/* ---- evaluation and training ----------------------------------------------------------------- */

ctn_status ctn_dist_evaluate(ctn_comm *c, ctn_context *ctx, ctn_loader *loader, ctn_loss_fn loss,
                             void *self, ctn_value_fn fn, void *user)
{
    if (!c) return ctn_fail(CTN_EARG, "dist_evaluate: no communicator");
    return ctn__evaluate(ctx, loader, loss, self, fn, user, &(ctn__merge){merge, c});
}

static ctn_status take_mean(void *user, const char *name, double value)
{
    ctn__observed *v = NULL;
    ctn_status st = ctn__value_get(user, name, &v);
    if (!v) return st;
    v->value = value;
    v->sum = v->weight = 0;
    v->count++;
    v->fresh = v->reported = true;
    return CTN_OK;
}

/* What was reported since the last call becomes its mean over all ranks, also where a rank had
 * no samples. */
static ctn_status call(void *self, ctn_trainer *tr)
{
    CTN__VEC(ctn__weighted) own = {0};
    ctn_status st = CTN_OK;
    for (size_t i = 0; i < tr->values.n && st == CTN_OK; i++) {
        const ctn__observed *v = &tr->values.at[i];
        if (v->weight <= 0) continue;
        if (!ctn__vec_push(&own, ((ctn__weighted){v->name, v->sum / v->weight, v->weight})))
            st = CTN_ENOMEM;
    }
    if (st == CTN_OK) st = merge(self, (int)own.n, own.at, take_mean, tr);
    ctn__vec_free(&own);
    return st;
}

ctn_status ctn_dist_trainer(ctn_trainer *tr, ctn_comm *c, const ctn_trigger *when)
{
    if (!tr || !c) return ctn_fail(CTN_EARG, "dist_trainer: trainer and communicator are needed");
    CTN_TRY(ctn__extend(tr,
                        &(ctn_extension){.name = "dist",
                                         .priority = CTN_PRIORITY_EVALUATE,
                                         .call = call,
                                         .self = c},
                        when, (ctn_trigger){.kind = CTN_EVERY_EPOCHS, .n = 1}));
    tr->merge = (ctn__merge){merge, c};
    return CTN_OK;
}
