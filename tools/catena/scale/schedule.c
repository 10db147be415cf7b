/* SPDX-License-Identifier: Apache-2.0
 *
 * Records what a step of a training does and when: it trains a few profiled steps as the only rank
 * of a job, so that the plan has the nodes that exchange gradients, and writes down the times of
 * the kernels and where these nodes are. bench/scale/schedule.h describes the file.
 */
#include <string.h>

#include <catena/dist.h>

#include "model.h"
#include "scale/scale.h"

enum { LINE = 16 }; /* elements of a cache line */

typedef struct {
    schedule *s;
    FILE *f;
    double factor;  /* of measured times */
    double kernels; /* seconds since the last line */
    bool after;     /* the wait for the sums has been passed: what follows is the update */
} recording;

static void put_kernels(recording *r)
{
    if (r->kernels > 0) fprintf(r->f, "kernel %.9f\n", r->kernels * r->factor);
    r->kernels = 0;
}

static ctn_status add_time(void *user, const ctn_plan_node *n)
{
    recording *r = user;
    const double seconds = (double)n->ns * 1e-9;
    if (n->end > r->s->elements) r->s->elements = n->end;
    if (strcmp(n->op, "wait_allreduce") == 0) r->after = true;
    else if (r->after || strcmp(n->op, "wait_update") == 0) r->s->update_s += seconds;
    else if (strcmp(n->kernel, "comm") != 0) r->s->kernels_s += seconds;
    return CTN_OK;
}

static ctn_status put_node(void *user, const ctn_plan_node *n)
{
    recording *r = user;
    if (r->after) return CTN_OK;
    if (strcmp(n->kernel, "comm") != 0) {
        r->kernels += (double)n->ns * 1e-9;
        return CTN_OK;
    }
    put_kernels(r);
    if (strcmp(n->op, "allreduce") == 0)
        fprintf(r->f, "ready %lld %lld\n", (long long)n->begin, (long long)n->end);
    else if (strcmp(n->op, "wait_allreduce") == 0) r->after = true;
    else if (strcmp(n->op, "choose_allreduce") != 0)
        fprintf(r->f, "need %lld\n", (long long)n->begin);
    if (r->after) fprintf(r->f, "step\n");
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

static ctn_status write_schedule(schedule *s, const model *m, double seconds, FILE *f)
{
    recording r = {.s = s, .f = f, .factor = 1};
    const ctn_vars v = ctn_params(m->net);
    int64_t begin = 0;
    CTN_TRY(ctn_context_visit_plan(m->ctx, add_time, &r));
    if (seconds > 0) r.factor = seconds / (s->kernels_s + s->update_s);
    s->kernels_s *= r.factor;
    s->update_s *= r.factor;
    fprintf(f, "elements %lld\nupdate %.9f\n", (long long)s->elements, s->update_s);
    for (int i = 0; i < v.n && begin < s->elements; i++) {
        fprintf(f, "param %lld\n", (long long)begin);
        begin += elements_of(v.var[i]);
    }
    r.after = false;
    return ctn_context_visit_plan(m->ctx, put_node, &r);
}

ctn_status schedule_record(schedule *s, const args *a, const char *path)
{
    ctn_status st = CTN_OK;
    ctn_context *ctx = NULL;
    ctn_comm *c = NULL;
    model m = {0};
    FILE *f = NULL;
    double loss;
    const double rate = args_real(a, "items-per-s");
    *s = (schedule){0};
    CTN_TRY_GOTO(st, done, open_context(&ctx, a, 0));
    CTN_TRY_GOTO(st, done,
                 model_new(&m, ctx,
                           &(model_opt){.name = a->operand,
                                        .batch = args_int(a, "batch"),
                                        .size = args_int(a, "size")}));
    s->batch = m.batch;
    CTN_TRY_GOTO(st, done, ctn_comm_open(&c, NULL));
    CTN_TRY_GOTO(st, done,
                 ctn_dist_optim(m.opt, c,
                                CTN_OPT(ctn_dist_opt, .shard = args_flag(a, "shard"),
                                        .defer = CTN_DIST_DEFER)));
    ctn_context_set_profile(ctx, 1);
    for (int64_t k = args_int(a, "record-steps"); k > 0; k--)
        CTN_TRY_GOTO(st, done, model_step(&m, &loss));
    CTN_TRY_GOTO(st, done, file_open(&f, path));
    st = write_schedule(s, &m, rate > 0 ? (double)m.batch / rate : 0, f);
    const ctn_status closed = file_close(f, path);
    if (st == CTN_OK) st = closed;
done:
    model_free(&m);
    ctn_comm_free(c);
    ctn_context_free(ctx);
    return st;
}
