/* SPDX-License-Identifier: Apache-2.0
 *
 * Means over all ranks. Each value is weighted by its number of samples, so the result is what one
 * rank with all samples would get, however uneven the shares are. Sums are f64 and have the same
 * bits on every rank, so that ranks can base common decisions on them. The parts of metrics are
 * added up or collected in the same way.
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

/* The names one after another, in a buffer of at least `room` bytes. NULL: no memory. */
static char *join_names(int n, const char *const *name, int64_t room, int64_t *bytes)
{
    *bytes = 0;
    for (int i = 0; i < n; i++) *bytes += (int64_t)strlen(name[i]) + 1;
    char *text = ctn__calloc((size_t)(*bytes > room ? *bytes : room) + 1, 1), *to = text;
    for (int i = 0; text && i < n; i++) {
        const size_t k = strlen(name[i]) + 1;
        memcpy(to, name[i], k);
        to += k;
    }
    return text;
}

static bool all_named(const names *s, int n, const char *const *name)
{
    int found = 0;
    for (int i = 0; i < n; i++)
        for (size_t k = 0; k < s->name.n; k++) found += strcmp(s->name.at[k], name[i]) == 0;
    return found == n;
}

/* Usually rank 0's names are those of all ranks, which report the same names or nothing. */
static ctn_status names_of_root(names *s, ctn_comm *c, int n, const char *const *name, bool *all)
{
    int64_t bytes, missing, scratch;
    s->text = join_names(n, name, 0, &bytes);
    if (!s->text) return CTN_ENOMEM;
    CTN_TRY(ctn_comm_broadcast(c, &bytes, sizeof bytes, 0));
    if (ctn_comm_rank(c) != 0) {
        ctn__free(s->text);
        s->text = ctn__calloc((size_t)bytes + 1, 1);
        if (!s->text) return CTN_ENOMEM;
    }
    CTN_TRY(ctn_comm_broadcast(c, s->text, (size_t)bytes, 0));
    if (!add_names(s, s->text, bytes)) return CTN_ENOMEM;
    missing = !all_named(s, n, name);
    CTN_TRY(ctn__comm_sum(c, &missing, 1, CTN_I64, &scratch));
    *all = missing == 0;
    return CTN_OK;
}

/* Collects the names in rank order. */
static ctn_status names_of_all(names *s, ctn_comm *c, int n, const char *const *name)
{
    const int size = ctn_comm_size(c);
    int64_t mine, longest = 0, *length = ctn__calloc((size_t)size, sizeof *length);
    char *own = join_names(n, name, 0, &mine), *text = NULL;
    ctn_status st = CTN_OK;
    if (!length || !own) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    CTN_TRY_GOTO(st, done, ctn_comm_allgather(c, &mine, sizeof mine, length));
    for (int r = 0; r < size; r++)
        if (length[r] > longest) longest = length[r];
    ctn__free(own);
    own = join_names(n, name, longest, &mine);
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

/* All names. The caller frees them, also on failure. Collective. */
static ctn_status collect_names(names *s, ctn_comm *c, int n, const char *const *name)
{
    bool all_there = false;
    CTN_TRY(names_of_root(s, c, n, name, &all_there));
    return all_there ? CTN_OK : names_of_all(s, c, n, name);
}

static size_t place_of(const names *s, const char *name)
{
    size_t k = 0;
    while (strcmp(s->name.at[k], name) != 0) k++;
    return k;
}

static void free_names(names *s)
{
    ctn__vec_free(&s->name);
    ctn__free(s->text);
}

static ctn_status merge(void *comm, int n, const ctn__weighted *v, ctn__weighted_fn to, void *user)
{
    ctn_comm *c = comm;
    names s = {0};
    double *sum = NULL;
    ctn_status st = CTN_OK;
    const char **own = ctn__malloc(((size_t)n + 1) * sizeof *own);
    if (!own) return CTN_ENOMEM;
    for (int i = 0; i < n; i++) own[i] = v[i].name;
    CTN_TRY_GOTO(st, done, collect_names(&s, c, n, own));
    const size_t all = s.name.n;
    sum = ctn__calloc(2 * all + 1, sizeof *sum);
    if (!sum) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    double *weight = sum + all;
    for (int i = 0; i < n; i++) {
        const size_t k = place_of(&s, own[i]);
        sum[k] = v[i].sum;
        weight[k] = v[i].weight;
    }
    if (all > 0) CTN_TRY_GOTO(st, done, add_up(c, (int)all, sum, weight));
    for (size_t k = 0; k < all && st == CTN_OK; k++)
        st = to(user, &(ctn__weighted){s.name.at[k], sum[k], weight[k]});
done:
    free_names(&s);
    ctn__free(own);
    ctn__free(sum);
    return st;
}

/* ---- parts of metrics ------------------------------------------------------------------------ */

/* Sums over all ranks; this rank may have fewer than n, or none. */
static ctn_status sum_parts(ctn_comm *c, ctn__measured *v, size_t n)
{
    if (!ctn__vec_reserve(&v->part, 2 * n + 1) || !v->part.at) return CTN_ENOMEM;
    memset(v->part.at + v->part.n, 0, (2 * n - v->part.n) * sizeof *v->part.at);
    v->part.n = n;
    return ctn__comm_sum(c, v->part.at, (int64_t)n, CTN_F64, v->part.at + n);
}

/* Appends what the other ranks have collected. longest: of any rank. */
static ctn_status gather_parts(ctn_comm *c, ctn__measured *v, size_t longest)
{
    const size_t size = (size_t)ctn_comm_size(c), bytes = longest * sizeof(double);
    const int64_t mine = (int64_t)v->part.n;
    ctn_status st = CTN_OK;
    int64_t *count = ctn__calloc(size, sizeof *count);
    double *all = ctn__malloc(size * bytes + 1);
    if (!count || !all || !ctn__vec_reserve(&v->part, longest + 1) || !v->part.at)
        CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    memset(v->part.at + v->part.n, 0, bytes - v->part.n * sizeof *all);
    CTN_TRY_GOTO(st, done, ctn_comm_allgather(c, &mine, sizeof mine, count));
    CTN_TRY_GOTO(st, done, ctn_comm_allgather(c, v->part.at, bytes, all));
    v->part.n = 0;
    for (size_t r = 0; r < size; r++) {
        if (!ctn__vec_reserve(&v->part, v->part.n + (size_t)count[r] + 1))
            CTN_TRY_GOTO(st, done, CTN_ENOMEM);
        memcpy(v->part.at + v->part.n, all + r * longest, (size_t)count[r] * sizeof *all);
        v->part.n += (size_t)count[r];
    }
done:
    ctn__free(count);
    ctn__free(all);
    return st;
}

/* A rank without samples does not know which metrics there are and how many parts they have. */
static ctn_status join_parts(ctn_comm *c, ctn__measured *v)
{
    double know[2] = {v->metric ? ctn__metric_index(v->metric) : -1, (double)v->part.n};
    CTN_TRY(ctn__comm_max_small(c, 2, know));
    v->metric = ctn__metric_number((int)know[0]);
    return v->metric->all ? gather_parts(c, v, (size_t)know[1]) : sum_parts(c, v, (size_t)know[1]);
}

static ctn_status merge_metrics(void *comm, int n, ctn__measured *v, ctn__measured_fn to,
                                void *user)
{
    names s = {0};
    ctn_status st = CTN_OK;
    const char **own = ctn__malloc(((size_t)n + 1) * sizeof *own);
    if (!own) return CTN_ENOMEM;
    for (int i = 0; i < n; i++) own[i] = v[i].name;
    CTN_TRY_GOTO(st, done, collect_names(&s, comm, n, own));
    for (size_t k = 0; k < s.name.n && st == CTN_OK; k++) {
        ctn__measured none = {.name = s.name.at[k]}, *mine = &none;
        for (int i = 0; i < n; i++)
            if (strcmp(own[i], none.name) == 0) mine = &v[i];
        st = join_parts(comm, mine);
        if (st == CTN_OK) st = to(user, mine);
        ctn__vec_free(&none.part);
    }
done:
    free_names(&s);
    ctn__free(own);
    return st;
}

/* ---- evaluation and training ----------------------------------------------------------------- */

ctn_status ctn_dist_evaluate(ctn_comm *c, ctn_context *ctx, ctn_loader *loader, ctn_loss_fn loss,
                             void *self, ctn_value_fn fn, void *user)
{
    if (!c) return ctn_fail(CTN_EARG, "dist_evaluate: no communicator");
    /* A loss, a loader or fn can fail on one rank. */
    return ctn__comm_alone(c, ctn__evaluate(ctx, loader, loss, self, fn, user,
                                            &(ctn__merge){merge, c, merge_metrics}));
}

static ctn_status call(void *self, ctn_trainer *tr)
{
    (void)self;
    return ctn__values_publish(tr);
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
    tr->merge = (ctn__merge){merge, c, merge_metrics};
    return CTN_OK;
}
