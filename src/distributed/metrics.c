/* SPDX-License-Identifier: Apache-2.0
 *
 * Means over all ranks. Each value is weighted by its number of samples, so the result is what one
 * rank with all samples would get, however uneven the shares are. Sums are f64 and have the same
 * bits on every rank, so that ranks can base common decisions on them.
 */
#include <math.h>

#include "distributed/distributed.h"
#include "train/train.h"

/* Adds up n weighted sums and their weights. A weight of 0 means that there is no value. */
static ctn_status add_up(ctn_comm *c, int n, double *sum, double *weight)
{
    double *all = ctn__malloc((size_t)n * 4 * sizeof *all);
    if (!all) return CTN_ENOMEM;
    memcpy(all, sum, (size_t)n * sizeof *all);
    memcpy(all + n, weight, (size_t)n * sizeof *all);
    ctn_status st = ctn__comm_sum(c, all, 2 * (int64_t)n, CTN_F64, all + 2 * n);
    memcpy(sum, all, (size_t)n * sizeof *all);
    memcpy(weight, all + n, (size_t)n * sizeof *all);
    ctn__free(all);
    return st;
}

ctn_status ctn_dist_mean(ctn_comm *c, int n, double *value, double *weight)
{
    if (!c || n < 0 || (n > 0 && (!value || !weight)))
        return ctn_fail(CTN_EARG, "dist_mean: needs a communicator, values and weights");
    if (n == 0) return CTN_OK;
    for (int i = 0; i < n; i++) value[i] = weight[i] > 0 ? value[i] * weight[i] : 0;
    CTN_TRY(add_up(c, n, value, weight));
    for (int i = 0; i < n; i++) value[i] = weight[i] > 0 ? value[i] / weight[i] : NAN;
    return CTN_OK;
}

/* ---- by name, because a rank without samples has no values ----------------------------------- */

/* The names of all ranks, each once; the same list on every rank. */
typedef struct {
    char *text; /* owns the names */
    CTN__VEC(const char *) name;
} names;

static bool add_name(names *s, const char *name)
{
    for (size_t i = 0; i < s->name.n; i++)
        if (strcmp(s->name.at[i], name) == 0) return true;
    return ctn__vec_push(&s->name, name);
}

static bool add_names(names *s, const char *text, int64_t bytes)
{
    for (const char *p = text; p < text + bytes; p += strlen(p) + 1)
        if (!add_name(s, p)) return false;
    return true;
}

/* The names of v one after another, in a buffer of at least `room` bytes. NULL: no memory. */
static char *join_names(int n, const ctn__weighted *v, int64_t room, int64_t *bytes)
{
    *bytes = 0;
    for (int i = 0; i < n; i++) *bytes += (int64_t)strlen(v[i].name) + 1;
    char *text = ctn__calloc((size_t)(*bytes > room ? *bytes : room) + 1, 1), *to = text;
    for (int i = 0; text && i < n; i++) {
        const size_t k = strlen(v[i].name) + 1;
        memcpy(to, v[i].name, k);
        to += k;
    }
    return text;
}

static bool all_named(const names *s, int n, const ctn__weighted *v)
{
    int found = 0;
    for (int i = 0; i < n; i++)
        for (size_t k = 0; k < s->name.n; k++) found += strcmp(s->name.at[k], v[i].name) == 0;
    return found == n;
}

/* Usually rank 0's names are those of all ranks, which report the same names or nothing. */
static ctn_status names_of_root(names *s, ctn_comm *c, int n, const ctn__weighted *v, bool *all)
{
    int64_t bytes, missing, scratch;
    s->text = join_names(n, v, 0, &bytes);
    if (!s->text) return CTN_ENOMEM;
    CTN_TRY(ctn_comm_broadcast(c, &bytes, sizeof bytes, 0));
    if (ctn_comm_rank(c) != 0) {
        ctn__free(s->text);
        s->text = ctn__calloc((size_t)bytes + 1, 1);
        if (!s->text) return CTN_ENOMEM;
    }
    CTN_TRY(ctn_comm_broadcast(c, s->text, (size_t)bytes, 0));
    if (!add_names(s, s->text, bytes)) return CTN_ENOMEM;
    missing = !all_named(s, n, v);
    CTN_TRY(ctn__comm_sum(c, &missing, 1, CTN_I64, &scratch));
    *all = missing == 0;
    return CTN_OK;
}

/* Collects the names in rank order. */
static ctn_status names_of_all(names *s, ctn_comm *c, int n, const ctn__weighted *v)
{
    const int size = ctn_comm_size(c);
    int64_t mine, longest = 0, *length = ctn__calloc((size_t)size, sizeof *length);
    char *own = join_names(n, v, 0, &mine), *text = NULL;
    ctn_status st = CTN_OK;
    if (!length || !own) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    CTN_TRY_GOTO(st, done, ctn_comm_allgather(c, &mine, sizeof mine, length));
    for (int r = 0; r < size; r++)
        if (length[r] > longest) longest = length[r];
    ctn__free(own);
    own = join_names(n, v, longest, &mine);
    text = ctn__calloc((size_t)size * (size_t)longest + 1, 1);
    if (!own || !text) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    CTN_TRY_GOTO(st, done, ctn_comm_allgather(c, own, (size_t)longest, text));
    s->name.n = 0;
    for (int r = 0; r < size; r++)
        if (!add_names(s, text + (int64_t)r * longest, length[r]))
            CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    ctn__free(s->text);
    s->text = text;
    text = NULL;
done:
    ctn__free(length);
    ctn__free(own);
    ctn__free(text);
    return st;
}

static ctn_status merge(void *comm, int n, const ctn__weighted *v, ctn__weighted_fn to, void *user)
{
    ctn_comm *c = comm;
    names s = {0};
    double *sum = NULL;
    ctn_status st = CTN_OK;
    bool all_there = false;
    CTN_TRY_GOTO(st, done, names_of_root(&s, c, n, v, &all_there));
    if (!all_there) CTN_TRY_GOTO(st, done, names_of_all(&s, c, n, v));
    const size_t all = s.name.n;
    sum = ctn__calloc(2 * all + 1, sizeof *sum);
    if (!sum) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    double *weight = sum + all;
    for (int i = 0; i < n; i++)
        for (size_t k = 0; k < all; k++)
            if (strcmp(s.name.at[k], v[i].name) == 0) {
                sum[k] = v[i].sum;
                weight[k] = v[i].weight;
            }
    if (all > 0) CTN_TRY_GOTO(st, done, add_up(c, (int)all, sum, weight));
    for (size_t k = 0; k < all && st == CTN_OK; k++)
        st = to(user, &(ctn__weighted){s.name.at[k], sum[k], weight[k]});
done:
    ctn__vec_free(&s.name);
    ctn__free(s.text);
    ctn__free(sum);
    return st;
}

/* ---- evaluation and training ----------------------------------------------------------------- */

ctn_status ctn_dist_evaluate(ctn_comm *c, ctn_context *ctx, ctn_loader *loader, ctn_loss_fn loss,
                             void *self, ctn_value_fn fn, void *user)
{
    if (!c) return ctn_fail(CTN_EARG, "dist_evaluate: no communicator");
    return ctn__evaluate(ctx, loader, loss, self, fn, user, &(ctn__merge){merge, c});
}

static ctn_status take_mean(void *user, const ctn__weighted *all)
{
    ctn__observed *v = NULL;
    ctn_status st = ctn__value_get(user, all->name, &v);
    if (!v) return st;
    v->value = all->sum / all->weight;
    v->sum = v->weight = 0;
    v->count++;
    v->fresh = v->reported = true;
    return CTN_OK;
}

/* Replaces what was reported since the last call by its mean over all ranks, also on a rank that
 * had no samples. */
static ctn_status call(void *self, ctn_trainer *tr)
{
    (void)self;
    return ctn__values_merge(tr, take_mean, tr);
}

ctn_status ctn_dist_trainer(ctn_trainer *tr, ctn_comm *c, const ctn_trigger *when)
{
    if (!tr || !c) return ctn_fail(CTN_EARG, "dist_trainer: needs a trainer and a communicator");
    CTN_TRY(ctn__extend(tr,
                        &(ctn_extension){.name = "dist",
                                         .priority = CTN_PRIORITY_EVALUATE,
                                         .call = call,
                                         .self = c},
                        when, (ctn_trigger){.kind = CTN_EVERY_EPOCHS, .n = 1}));
    tr->merge = (ctn__merge){merge, c};
    return CTN_OK;
}
