/* SPDX-License-Identifier: Apache-2.0
 *
 * Values: what a loss function reports for a batch, and the table of everything observed. A
 * reported value is retained, which makes it an output of the step's plan: reading it runs
 * nothing more. Means are weighted by the number of samples, so smaller batches count less, or by
 * the number of targets that the loss function reports.
 */
#include <math.h>

#include <catena/ops.h>

#include "train/train.h"

/* ---- one batch ------------------------------------------------------------------------------- */

ctn_context *ctn_step_context(const ctn_step *s)
{
    return s->ctx;
}

const ctn_batch *ctn_step_batch(const ctn_step *s)
{
    return s->batch;
}

ctn_tensor *ctn_step_input_at(const char *at, ctn_step *s, int f)
{
    ctn_tensor *t = ctn_batch_tensor_at(at, s->ctx, s->batch, f);
    return t && t->d.dtype == CTN_F32 ? ctn_cast_at(at, t, ctn_context_float_type(s->ctx)) : t;
}

void ctn__step_begin(ctn_step *s, const ctn_batch *b)
{
    s->batch = b;
    s->error = CTN_OK;
    s->weight = s->targets = -1;
    for (int i = 0; i < s->n; i++) s->slot[i].given = false;
}

static ctn_status find_slot(ctn_step *s, const char *name, ctn__report_slot **out)
{
    const int room = strcmp(name, "loss") == 0 ? CTN__REPORTS + 1 : CTN__REPORTS;
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->slot[i].name, name) == 0) {
            *out = &s->slot[i];
            return CTN_OK;
        }
    if (s->n >= room)
        return ctn_fail(CTN_ESTATE,
                        "report: cannot report %s: a loss function may report at most %d names",
                        name, CTN__REPORTS);
    s->slot[s->n] = (ctn__report_slot){.name = ctn__strdup(name)};
    if (!s->slot[s->n].name) return CTN_ENOMEM;
    *out = &s->slot[s->n++];
    return CTN_OK;
}

static ctn_status check_tensor(const char *name, const ctn_tensor *value)
{
    if (value) return CTN_OK;
    return ctn_error_status() < 0 ? ctn_error_status()
                                  : ctn_fail(CTN_EARG, "report: no tensor for %s", name);
}

static ctn_status check_float(const char *name, const ctn_tensor *value)
{
    CTN_TRY(check_tensor(name, value));
    if (!value) return CTN_EARG; /* cannot happen */
    if (ctn__count(&value->d) != 1 || !ctn__is_float(value->d.dtype)) {
        char shape[128];
        return ctn_fail(CTN_EARG, "report: %s is %s %s, expected one float: take its mean", name,
                        ctn_dtype_name(value->d.dtype),
                        ctn__shape_text(&value->d, shape, sizeof shape));
    }
    return CTN_OK;
}

/* below NULL: not a ratio. metric NULL: not a metric. */
static ctn_status report(ctn_step *s, const char *name, ctn_tensor *value, ctn_tensor *below,
                         const ctn__metric *metric)
{
    ctn__report_slot *slot = NULL;
    CTN_TRY(find_slot(s, name, &slot));
    CTN_TRY(ctn_retain(&slot->kept, value));
    if (below) CTN_TRY(ctn_retain(&slot->below, below));
    slot->ratio = below != NULL;
    slot->metric = metric;
    slot->given = true;
    return CTN_OK;
}

static ctn_status check_name(const ctn_step *s, const char *name)
{
    if (!s) return ctn_fail(CTN_EARG, "report: no step");
    return name && *name ? CTN_OK : ctn_fail(CTN_EARG, "report: the value needs a name");
}

/* The first failure counts, even if the loss function ignores it. */
static ctn_status remember(ctn_step *s, ctn_status st)
{
    if (s && st < 0 && s->error == CTN_OK) s->error = st;
    return st;
}

ctn_status ctn_report(ctn_step *s, const char *name, ctn_tensor *value)
{
    ctn_status st = check_name(s, name);
    if (st == CTN_OK) st = check_float(name, value);
    return remember(s, st == CTN_OK ? report(s, name, value, NULL, NULL) : st);
}

ctn_status ctn_report_ratio(ctn_step *s, const char *name, ctn_tensor *above, ctn_tensor *below)
{
    ctn_status st = check_name(s, name);
    if (st == CTN_OK) st = check_float(name, above);
    if (st == CTN_OK) st = check_float(name, below);
    return remember(s, st == CTN_OK ? report(s, name, above, below, NULL) : st);
}

static ctn_status report_metric(ctn_step *s, const char *name, const char *metric, ctn_tensor *y,
                                ctn_tensor *t)
{
    CTN_TRY(check_name(s, name));
    const ctn__metric *m = ctn__metric_find(metric ? metric : name);
    if (!m) return ctn_error_status();
    CTN_TRY(check_tensor(name, y));
    CTN_TRY(check_tensor(name, t));
    if (ctn_context_training(s->ctx)) return CTN_OK;
    ctn_tensor *parts = m->parts(m, y, t);
    CTN_TRY(check_tensor(name, parts));
    return report(s, name, parts, NULL, m);
}

ctn_status ctn_report_metric(ctn_step *s, const char *name, const char *metric, ctn_tensor *y,
                             ctn_tensor *t)
{
    return remember(s, report_metric(s, name, metric, y, t));
}

static ctn_status set_weight(ctn_step *s, double weight, int f)
{
    if (!(weight >= 0 && weight < INFINITY))
        return ctn_fail(CTN_EARG,
                        "report_weight: the weight is %g, expected a number of at least 0", weight);
    s->weight = weight;
    s->targets = f;
    return CTN_OK;
}

ctn_status ctn_report_weight(ctn_step *s, double weight)
{
    if (!s) return ctn_fail(CTN_EARG, "report_weight: no step");
    return remember(s, set_weight(s, weight, -1));
}

static ctn_status count_targets(const ctn_batch *b, int f, int64_t ignore, int64_t *count)
{
    if (f < 0 || f >= b->fields)
        return ctn_fail(CTN_EARG, "report_targets: no field %d, the batch has %d fields", f,
                        b->fields);
    const ctn_dtype type = b->field[f].dtype;
    if (type != CTN_I64 && type != CTN_I32 && type != CTN_U8)
        return ctn_fail(CTN_EDTYPE, "report_targets: field %d is %s, expected i64, i32 or u8", f,
                        ctn_dtype_name(type));
    int64_t n = 1;
    for (int i = 0; i < b->field[f].ndim; i++) n *= b->field[f].shape[i];
    const void *data = b->data[f];
    *count = 0;
    for (int64_t i = 0; i < n; i++)
        *count += (type == CTN_I64   ? ((const int64_t *)data)[i]
                   : type == CTN_I32 ? ((const int32_t *)data)[i]
                                     : ((const uint8_t *)data)[i]) != ignore;
    return CTN_OK;
}

ctn_status ctn_report_targets(ctn_step *s, int f, int64_t ignore)
{
    int64_t n = 0;
    if (!s) return ctn_fail(CTN_EARG, "report_targets: no step");
    const ctn_status st = count_targets(s->batch, f, ignore, &n);
    return remember(s, st == CTN_OK ? set_weight(s, (double)n, f) : st);
}

double ctn__step_weight(const ctn_step *s)
{
    return s->weight < 0 ? (double)s->batch->n : s->weight;
}

ctn_tensor *ctn__step_loss(ctn_step *s, const char *name, ctn_loss_fn loss, void *self,
                           ctn_status *st)
{
    ctn_tensor *t = loss(self, s);
    *st = s->error;
    if (*st == CTN_OK && !t)
        *st = ctn_error_status() < 0 ? ctn_error_status()
                                     : ctn_fail(CTN_EARG, "the loss function returned no tensor");
    if (*st == CTN_OK) *st = ctn_report(s, name, t);
    return *st == CTN_OK ? t : NULL;
}

static double one(const ctn_retained *r)
{
    return ctn__elem_get(r->buf[r->current], r->d.dtype, 0);
}

ctn_status ctn__step_read(const ctn_step *s, ctn__reported_fn fn, void *user)
{
    for (int i = 0; i < s->n; i++) {
        const ctn__report_slot *v = &s->slot[i];
        if (!v->given || v->metric || v->kept->current < 0) continue;
        const double weight = v->ratio ? one(v->below) : ctn__step_weight(s);
        const double value = v->ratio ? one(v->kept) / weight : one(v->kept);
        if (weight != 0) CTN_TRY(fn(user, v->name, value, weight));
    }
    return CTN_OK;
}

void ctn__step_free(ctn_step *s)
{
    for (int i = 0; i < s->n; i++) {
        ctn__free(s->slot[i].name);
        ctn_retained_free(s->slot[i].kept);
        ctn_retained_free(s->slot[i].below);
    }
    s->n = 0;
}

/* ---- everything observed --------------------------------------------------------------------- */

/* The slot where a name is or would be. Needs a table, at least half of which is free. */
static int *value_slot(const ctn_trainer *tr, const char *name)
{
    const size_t mask = tr->value_slots.cap - 1;
    size_t i = (size_t)ctn__table_hash(name, strlen(name)) & mask;
    for (; tr->value_slots.at[i] > 0; i = (i + 1) & mask)
        if (strcmp(tr->values.at[tr->value_slots.at[i] - 1].name, name) == 0) break;
    return &tr->value_slots.at[i];
}

/* Makes room for one more name. */
static bool grow_slots(ctn_trainer *tr)
{
    const size_t old = tr->value_slots.cap, room = old ? 2 * old : 64;
    if (2 * (tr->values.n + 1) <= old) return true;
    int *at = ctn__calloc(room, sizeof *at);
    if (!at) return false;
    ctn__free(tr->value_slots.at);
    tr->value_slots.at = at;
    tr->value_slots.cap = room;
    for (size_t i = 0; i < tr->values.n; i++) *value_slot(tr, tr->values.at[i].name) = (int)i + 1;
    return true;
}

ctn__observed *ctn__value_find(const ctn_trainer *tr, const char *name)
{
    const int i = tr->value_slots.cap > 0 ? *value_slot(tr, name) : 0;
    return i > 0 ? &tr->values.at[i - 1] : NULL;
}

void ctn__values_forget(ctn_trainer *tr)
{
    for (size_t i = 0; i < tr->values.n; i++) ctn__free(tr->values.at[i].name);
    ctn__vec_free(&tr->values);
    ctn__vec_free(&tr->value_slots);
}

/* Names are written to JSON and tables without escaping. */
static bool plain_name(const char *name)
{
    if (!name || !*name) return false;
    for (const char *p = name; *p; p++)
        if ((unsigned char)*p < ' ' || *p == '"' || *p == '\\' || *p == 127) return false;
    return true;
}

ctn_status ctn__value_get(ctn_trainer *tr, const char *name, ctn__observed **out)
{
    *out = tr && name ? ctn__value_find(tr, name) : NULL;
    if (*out) return CTN_OK;
    if (!tr || !plain_name(name))
        return ctn_fail(CTN_EARG, "observe: needs a trainer, and a name without quotes, "
                                  "backslashes and control characters");
    ctn__observed v = {.name = ctn__strdup(name), .value = NAN};
    if (!v.name || !grow_slots(tr) || !ctn__vec_push(&tr->values, v)) {
        ctn__free(v.name);
        return CTN_ENOMEM;
    }
    *out = &tr->values.at[tr->values.n - 1];
    *value_slot(tr, name) = (int)tr->values.n;
    return CTN_OK;
}

ctn_status ctn_trainer_observe(ctn_trainer *tr, const char *name, double value)
{
    ctn__observed *v = NULL;
    ctn_status st = ctn__value_get(tr, name, &v);
    if (!v) return st;
    v->value = v->last = value;
    v->count++;
    v->fresh = true;
    return CTN_OK;
}

ctn_status ctn__value_report(ctn_trainer *tr, const char *name, double value, double weight)
{
    char full[256];
    ctn__observed *v = NULL;
    snprintf(full, sizeof full, "train/%s", name);
    ctn_status st = ctn__value_get(tr, full, &v);
    if (!v) return st;
    v->sum += value * weight;
    v->weight += weight;
    v->last = value;
    v->reported = true;
    return CTN_OK;
}

ctn_status ctn__values_merge(ctn_trainer *tr, ctn__weighted_fn to, void *user)
{
    CTN__VEC(ctn__weighted) own = {0};
    ctn_status st = CTN_OK;
    for (size_t i = 0; i < tr->values.n && st == CTN_OK; i++) {
        const ctn__observed *v = &tr->values.at[i];
        if (v->weight <= 0) continue;
        if (!ctn__vec_push(&own, ((ctn__weighted){v->name, v->sum, v->weight}))) st = CTN_ENOMEM;
    }
    if (st == CTN_OK) st = tr->merge.fn(tr->merge.self, (int)own.n, own.at, to, user);
    ctn__vec_free(&own);
    return st;
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

ctn_status ctn__values_publish(ctn_trainer *tr)
{
    if (tr->merge.fn) return ctn__values_merge(tr, take_mean, tr);
    for (size_t i = 0; i < tr->values.n; i++) {
        const ctn__observed *v = &tr->values.at[i];
        if (v->weight > 0) CTN_TRY(take_mean(tr, &(ctn__weighted){v->name, v->sum, v->weight}));
    }
    return CTN_OK;
}

ctn_status ctn__values_common(const ctn_trainer *tr, const char *who, const char *key)
{
    const ctn_comm *c = ctn__trainer_comm(tr);
    if (!c || ctn_comm_size(c) == 1 || tr->merge.fn) return CTN_OK;
    return ctn_fail(CTN_ESTATE,
                    "%s: it watches %s, of which each rank has its own value: call "
                    "ctn_dist_trainer, so that all ranks decide by the same one",
                    who, key);
}

int ctn_trainer_value(const ctn_trainer *tr, const char *name, double *value)
{
    const ctn__observed *v = tr && name ? ctn__value_find(tr, name) : NULL;
    if (!v || (v->weight <= 0 && v->count == 0)) return 0;
    if (value) *value = v->weight > 0 ? v->sum / v->weight : v->value;
    return 1;
}

const char *ctn_trainer_name(const ctn_trainer *tr, int i)
{
    return tr && i >= 0 && (size_t)i < tr->values.n ? tr->values.at[i].name : NULL;
}
