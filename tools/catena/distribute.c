/* SPDX-License-Identifier: Apache-2.0
 *
 * Spreads a training over all ranks of a job: the gradient exchange, batch statistics and
 * reported values over all ranks, and progress reports to the watchdog. The samples were already
 * divided among the ranks when the loaders were made.
 *
 * setup.c calls this on every rank before the first step. In a job of one rank it does nothing,
 * unless steps are to have the same bits as on several (--reproducible).
 */
#include <catena/dist.h>

#include "training.h"
#include "watchdog/watchdog.h"

int progress_of(const args *a)
{
    return args_is(a, "progress", "polls") ? 1 : args_is(a, "progress", "thread") ? 2 : 0;
}

static ctn_dtype wire_of(const args *a)
{
    return args_is(a, "wire", "bf16") ? CTN_BF16 : args_is(a, "wire", "f16") ? CTN_F16 : CTN_F32;
}

/* A second communicator: the job's own was made before the settings were known. */
static ctn_status open_exchange(training *r)
{
    const args *a = r->t.a;
    if (!a->job->comm) return ctn_comm_open(&r->comm, NULL); /* one rank, exact sums of blocks */
    CTN_TRY(ctn_comm_again(&r->comm, a->job->comm,
                           CTN_OPT(ctn_comm_opt, .algorithm = args_text(a, "allreduce"),
                                   .wire = wire_of(a))));
    watchdog_also(r->comm);
    return CTN_OK;
}

ctn_status distribute_optimizer(training *r)
{
    const args *a = r->t.a;
    const bool exact = args_flag(a, "reproducible");
    if (!a->job->comm && !exact) return CTN_OK;
    CTN_TRY(open_exchange(r));
    if (args_flag(a, "sync-batch-norm")) CTN_TRY(ctn_dist_sync_batch_norm(r->t.net, r->comm));
    return ctn_dist_optim(r->optim, r->comm,
                          CTN_OPT(ctn_dist_opt,
                                  .bucket = (int64_t)(1e6 * args_real(a, "bucket-mb")),
                                  .shard = args_flag(a, "shard"), .progress = progress_of(a),
                                  .exact = exact ? args_int(a, "blocks") : 0));
}

static ctn_status step_done(void *self, ctn_trainer *tr)
{
    const training *r = self;
    ctn_progress p;
    ctn_trainer_progress(tr, &p);
    watchdog_at(AT_INPUT, p.iteration);
    /* The compute threads exist now. */
    if (!r->verified) CTN_TRY(cores_verify(r->t.a->job));
    ((training *)self)->verified = true;
    return CTN_OK;
}

ctn_status distribute_trainer(training *r, const ctn_trigger *log)
{
    CTN_TRY(ctn_trainer_extend(r->trainer,
                               &(ctn_extension){.struct_size = sizeof(ctn_extension),
                                                .name = "job",
                                                .priority = CTN_PRIORITY_EVALUATE + 2,
                                                .trigger = {.kind = CTN_EVERY_ITERATIONS, .n = 1},
                                                .call = step_done,
                                                .self = r}));
    const char *timeline = args_text(r->t.a, "timeline");
    if (timeline[0])
        CTN_TRY(ctn_extend_timeline(r->trainer, timeline, args_int(r->t.a, "timeline-steps"),
                                    timeline_ranks(r->t.a)));
    if (r->memory) CTN_TRY(ctn_extend_memory(r->trainer, NULL, r->memory));
    return r->comm ? ctn_dist_trainer(r->trainer, r->comm, log) : CTN_OK;
}

void distribute_end(training *r)
{
    watchdog_also(NULL);
    ctn_comm_free(r->comm);
    r->comm = NULL;
}
