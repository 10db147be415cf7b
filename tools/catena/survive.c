/* SPDX-License-Identifier: Apache-2.0
 *
 * What `catena train` does when ranks are lost and the others can continue (Open MPI's ULFM): the
 * ranks that are left form a new job. train.c then makes the whole training again, which divides
 * the samples and plans the steps anew, and continues from the states in memory.
 */
#include "training.h"
#include "watchdog/watchdog.h"

void divide_step(args *a, int64_t total)
{
    const int64_t size = a->job->size;
    const bool keep = total % size || args_flag(a, "reproducible");
    args_settle(a, "batch", "%lld", (long long)((total + size - 1) / size));
    args_settle(a, "total-batch", "%lld", keep ? (long long)total : 0LL);
}

/* `catena launch` waits for this line after a loss (start/outcome.c). */
static void tell_continues(const launch *job, int before)
{
    char line[128];
    snprintf(line, sizeof line, "continuing without the lost rank%s, on %d of %d ranks",
             before - job->size == 1 ? "" : "s", job->size, before);
    watchdog_record(line);
}

bool survive(args *a)
{
    launch *job = a->job;
    const int before = job->size, rank = job->rank;
    if (!launch_shrink(job)) return false;
    const int64_t total = args_int(a, "total-batch");
    divide_step(a, total > 0 ? total : args_int(a, "batch") * before);
    args_settle(a, "ranks", "%d", job->size);
    if (job->rank == 0) tell_continues(job, before);
    if (job->rank > 0 || rank == 0) return true;
    return folder_inherit(job, args_text(a, "out")) < 0;
}
