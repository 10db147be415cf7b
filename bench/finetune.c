/* SPDX-License-Identifier: Apache-2.0
 *
 * finetune BATCH ROUNDS [full]: ResNet-50 for 37 classes. Without "full", everything but the last
 * layer is frozen, and training steps alternate with forward passes in evaluation over the same
 * batch; the shortest CPU time of each is printed. With "full", all parameters are trained. Also
 * prints the peak memory of the process. Output: one JSON line.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <catena/catena.h>
#include <catena/zoo.h>

enum { SIDE = 224, CLASSES = 37, WARM_UP = 2 };

typedef struct {
    ctn_context *ctx;
    ctn_module *net;
    ctn_optim *opt;
    int64_t batch;
    float *x;
    int64_t *t;
} model;

/* CPU time of the process, which other processes disturb less than wall time. */
static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static ctn_status make(model *m, int full)
{
    CTN_TRY(ctn_context_new(&m->ctx, NULL));
    CTN_TRY(ctn_zoo_resnet(&m->net, m->ctx, CTN_OPT(ctn_resnet_opt, .classes = CLASSES)));
    if (!full && (ctn_module_set_trainable(m->net, NULL, 0) < 0 ||
                  ctn_module_set_trainable(m->net, "fc", 1) < 0 ||
                  ctn_module_freeze_statistics(m->net, NULL, 1) < 0))
        return ctn_error_status();
    return ctn_sgd_new(&m->opt, ctn_params(m->net), CTN_OPT(ctn_sgd_opt, .momentum = 0.9));
}

/* One step, or the forward pass in evaluation. *ms: its time, if it is shorter. */
static ctn_status once(model *m, int step, double *ms)
{
    const double start = now_ms();
    ctn_context_set_training(m->ctx, step);
    ctn_context_set_grad(m->ctx, step);
    CTN_TRY(ctn_scope_begin(m->ctx));
    ctn_tensor *x = ctn_input(m->ctx, m->x, CTN_F32, CTN_SHAPE(m->batch, 3, SIDE, SIDE));
    ctn_tensor *t = ctn_input(m->ctx, m->t, CTN_I64, CTN_SHAPE(m->batch));
    ctn_tensor *loss = ctn_softmax_cross_entropy(ctn_call(m->net, x), t);
    if (!loss) return ctn_error_status();
    if (step) {
        CTN_TRY(ctn_backward(m->opt, loss));
        CTN_TRY(ctn_optim_step(m->opt));
    }
    if (isnan(ctn_item(loss))) return ctn_fail(CTN_EENGINE, "the loss is not a number");
    CTN_TRY(ctn_scope_end(m->ctx));
    *ms = fmin(*ms, now_ms() - start);
    return CTN_OK;
}

static ctn_status run(model *m, int rounds, int full)
{
    double step = INFINITY, forward = INFINITY, unused = INFINITY;
    struct rusage u;
    CTN_TRY(make(m, full));
    for (int i = 0; i < rounds + WARM_UP; i++) {
        CTN_TRY(once(m, 1, i < WARM_UP ? &unused : &step));
        if (!full) CTN_TRY(once(m, 0, i < WARM_UP ? &unused : &forward));
    }
    getrusage(RUSAGE_SELF, &u);
    printf("{\"batch\": %lld, \"step_ms\": %.3f, \"peak_rss_bytes\": %lld", (long long)m->batch,
           step, (long long)u.ru_maxrss * 1024);
    if (!full) printf(", \"forward_ms\": %.3f", forward);
    printf("}\n");
    return CTN_OK;
}

int main(int argc, char **argv)
{
    model m = {.batch = argc > 1 ? atoll(argv[1]) : 16};
    const int rounds = argc > 2 ? atoi(argv[2]) : 10;
    const int64_t n = m.batch * 3 * SIDE * SIDE;
    m.x = malloc((size_t)n * sizeof *m.x);
    m.t = calloc((size_t)m.batch, sizeof *m.t);
    for (int64_t i = 0; m.x && i < n; i++) m.x[i] = (float)(i % 255) / 255;
    const ctn_status st =
        m.x && m.t ? run(&m, rounds, argc > 3 && strcmp(argv[3], "full") == 0) : CTN_ENOMEM;
    if (st < 0) fprintf(stderr, "finetune: %s\n", ctn_error_message());
    ctn_optim_free(m.opt);
    ctn_module_free(m.net);
    ctn_context_free(m.ctx);
    free(m.x);
    free(m.t);
    return st < 0;
}
