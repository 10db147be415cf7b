/* SPDX-License-Identifier: Apache-2.0
 *
 * Records what a step of a training does and when (events.h): it trains a few profiled steps as the
 * only rank of a job, so that the plan has the nodes that exchange gradients, and writes down the
 * times of the kernels and where these nodes are.
 */
#include <string.h>

#include <catena/dist.h>

#include "model.h"
#include "scale/scale.h"

enum { LINE = 16 }; /* elements of a cache line */

typedef struct {
    events *s;
    double kernels; /* seconds since the last event */
    bool after;     /* the wait for the sums has been passed: what follows is the update */
} recording;

static void put_kernels(recording *r)
{
    if (r->kernels > 0) events_add(r->s, (event){KERNEL, r->kernels, 0, 0});
    r->kernels = 0;
}

static ctn_status put_node(void *user, const ctn_plan_node *n)
{
    recording *r = user;
    const double seconds = (double)n->ns * 1e-9;
    const bool comm = strcmp(n->kernel, "comm") == 0;
    if (n->end > r->s->elements) r->s->elements = n->end;
    if (r->after || strcmp(n->op, "wait_update") == 0) r->s->update_s += seconds;
    else if (!comm) r->kernels += seconds;
    if (!comm || r->after) return CTN_OK;
    put_kernels(r);
    if (strcmp(n->op, "allreduce") == 0) {
        events_add(r->s, (event){READY, 0, n->begin, n->end});
    } else if (strcmp(n->op, "wait_allreduce") == 0) {
        events_add(r->s, (event){.kind = STEP});
        r->after = true;
    } else if (strcmp(n->op, "choose_allreduce") != 0) {
        events_add(r->s, (event){NEED, 0, 0, n->begin});
    }
    return CTN_OK;
}

/* Each parameter begins on a cache line of its own. */
static int64_t elements_of(const ctn_var *v)
{
    const ctn_desc *d = ctn_var_desc(v);
    int64_t n = 1;
    for (int i = 0; i < d->ndim; i++) n *= d->dim[i];
    return (n + LINE - 1) / LINE * LINE;
}

static ctn_status note(events *s, const model *m)
{
    recording r = {.s = s};
    const ctn_vars v = ctn_params(m->net);
    ctn_plan_stats p = {0};
    ctn_dist_stats d = {.struct_size = sizeof d};
    int64_t begin = 0;
    ctn_context_get_stats(m->ctx, &p);
    ctn_dist_get_stats(m->opt, &d);
    CTN_TRY(ctn_context_visit_plan(m->ctx, put_node, &r));
    s->compute_s += s->update_s;
    s->batch = m->batch;
    s->results = p.arena_bytes;
    s->state = d.state_bytes;
    snprintf(s->name, sizeof s->name, "%s", m->name);
    for (int i = 0; i < v.n && begin < s->elements; i++) {
        events_param(s, begin);
        begin += elements_of(v.var[i]);
    }
    return CTN_OK;
}

static ctn_status record(events *s, const args *a)
{
    ctn_status st = CTN_OK;
    ctn_context *ctx = NULL;
    ctn_comm *c = NULL;
    model m = {0};
    double loss;
    CTN_TRY_GOTO(st, done, open_context(&ctx, a, 0));
    CTN_TRY_GOTO(st, done,
                 model_new(&m, ctx,
                           &(model_opt){.name = a->operand,
                                        .batch = args_int(a, "batch"),
                                        .size = args_int(a, "size")}));
    CTN_TRY_GOTO(st, done, ctn_comm_open(&c, NULL));
    CTN_TRY_GOTO(st, done,
                 ctn_dist_optim(m.opt, c,
                                CTN_OPT(ctn_dist_opt, .shard = args_flag(a, "shard"),
                                        .defer = CTN_DIST_DEFER)));
    ctn_context_set_profile(ctx, 1);
    for (int64_t k = args_int(a, "record-steps"); k > 0; k--)
        CTN_TRY_GOTO(st, done, model_step(&m, &loss));
    CTN_TRY_GOTO(st, done, events_new(s));
    CTN_TRY_GOTO(st, done, note(s, &m));
done:
    model_free(&m);
    ctn_comm_free(c);
    ctn_context_free(ctx);
    return st;
}

const char *const *networks_and(const char *words[MOST_WORDS], const char *const *more)
{
    const char *const *from[] = {model_names(), more};
    int n = 0;
    for (int k = 0; k < 2; k++)
        for (int i = 0; from[k][i] && n < MOST_WORDS - 1; i++) words[n++] = from[k][i];
    words[n] = NULL;
    return words;
}

bool is_recorded(const char *operand)
{
    return strchr(operand, '/') != NULL;
}

ctn_status step_of(events *s, const args *a)
{
    const double rate = args_real(a, "items-per-s");
    *s = (events){0};
    const ctn_status st = is_recorded(a->operand) ? events_read(s, a->operand) : record(s, a);
    if (st < 0) events_free(s);
    CTN_TRY(st);
    if (rate > 0) events_scale(s, (double)s->batch / rate);
    return CTN_OK;
}
