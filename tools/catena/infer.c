/* SPDX-License-Identifier: Apache-2.0
 *
 * What eval and predict share: the forward pass over a dataset, conversion of standardised
 * results back to physical units, and the frame of both commands.
 */
#include <catena/ops.h>

#include "infer.h"
#include "launch.h"
#include "memory.h"
#include "watchdog/watchdog.h"

#include <stdlib.h>
#include <string.h>

/* What the network is said to return (config.yaml, an ONNX model) decides how much room there is
 * for results, so it is compared with what it does return. */
static ctn_status check_result(const ctn_tensor *y, const ctn_batch *b, int64_t expected)
{
    char shape[SHAPE_TEXT];
    int64_t dim[CTN_MAX_DIMS];
    const int n = ctn_ndim(y);
    const int64_t per = n > 0 && ctn_dim(y, 0) == b->n ? ctn_count(y) / b->n : 0;
    if (per > 0 && (expected == 0 || per == expected)) return CTN_OK;
    for (int i = 0; i < n; i++) dim[i] = ctn_dim(y, i);
    return ctn_fail(CTN_ESHAPE,
                    "the network returned %s for %lld samples, expected %lld values for each: use "
                    "--target-shape or --classes as in the training, or other data",
                    shape_text(n, dim, shape), (long long)b->n, (long long)expected);
}

static ctn_status infer_batch(task *t, const ctn_batch *b, int64_t expected, int64_t first,
                              infer_fn fn, void *user)
{
    CTN_TRY(ctn_scope_begin(t->ctx));
    ctn_tensor *x = ctn_batch_tensor(t->ctx, b, 0);
    if (x && ctn_dtype_of(x) == CTN_F32) x = ctn_cast(x, ctn_context_float_type(t->ctx));
    ctn_tensor *y = ctn_cast(task_forward(t, x), CTN_F32);
    const float *data = y ? ctn_data(y) : NULL;
    ctn_status st = data ? check_result(y, b, expected) : ctn_error_status();
    if (st == CTN_OK) st = fn(user, b, data, ctn_count(y) / b->n, first);
    ctn_status end = ctn_scope_end(t->ctx);
    return st < 0 ? st : end;
}

ctn_status infer(task *t, int64_t expected, infer_fn fn, void *user)
{
    ctn_batch b;
    int64_t done = 0;
    t->now = DOING_RUN;
    warn_unused(t);
    ctn_context_set_training(t->ctx, 0);
    ctn_context_set_grad(t->ctx, 0);
    for (;;) {
        ctn_status st = ctn_loader_next(t->loader[0], &b);
        CTN_TRY(st);
        if (st == CTN_END) return CTN_OK;
        CTN_TRY(infer_batch(t, &b, expected, done, fn, user));
        int64_t slow;
        if (done == 0) CTN_TRY(slow_kernels(t->ctx, &slow));
        done += b.n;
    }
}

void *room_for(int64_t count, int64_t per, size_t bytes)
{
    if (count < 0 || per < 0 || (per > 0 && count > INT64_MAX / 16 / per)) return NULL;
    return malloc((size_t)(count * per) * bytes + 1);
}

ctn_status units_get(units *u, const task *t)
{
    *u = (units){0};
    return t->moment[1][0] ? task_moment_values(t, 1, &u->n, &u->mean, &u->std) : CTN_OK;
}

void units_free(units *u)
{
    free(u->mean);
    free(u->std);
}

/* Mean k applies to per / n consecutive elements. */
double units_scale(const units *u, int64_t i, int64_t per)
{
    return u->std ? u->std[i / (per / u->n)] : 1;
}

double units_value(const units *u, double y, int64_t i, int64_t per)
{
    return u->std ? y * u->std[i / (per / u->n)] + u->mean[i / (per / u->n)] : y;
}

/* On rank 0: settings from the files beside the weights. */
static int settings(args *a)
{
    take_result(a);
    if (weights_of(a)[0]) return task_inherit(a);
    if (a->operand && is_onnx(a->operand)) return -1; /* the model contains its weights */
    say(stderr, "catena %s: no weights given: use --weights FILE\n", a->cmd->name);
    return EXIT_USAGE;
}

int infer_command(args *a, ctn_status (*work)(task *t, args *a))
{
    task t = {0};
    int code = launch_share(a->job, a, a->job->rank == 0 ? settings(a) : -1);
    if (code < 0) code = cores_divide(a->job, a);
    if (code < 0) code = check_threads(a);
    if (code >= 0) return code;
    watchdog_stall(args_real(a, "stall-seconds"));
    memory_limit(a->job, args_real(a, "memory-gb"));
    code = work(&t, a) < 0 ? report_failure(a->cmd->name, t.now) : EXIT_DONE;
    if (code == EXIT_DONE || !a->job->comm) task_free(&t);
    return code;
}
