/* SPDX-License-Identifier: Apache-2.0
 *
 * planning lstm STEPS | chain OPS | params COUNT: measures the CPU seconds that planning takes, as
 * the time of the first step minus that of the second. The program is an LSTM unrolled over STEPS
 * steps, a chain of OPS elementwise ops on 8 numbers, or a network of small linear layers with
 * COUNT parameters. Of the latter, it also measures everything else that goes through the
 * parameters: naming, freezing, making the optimizer, visiting and freeing. Output: one JSON line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <catena/catena.h>

enum { BATCH = 2, WIDTH = 8 };

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct {
    ctn_context *ctx;
    ctn_module *of_x, *of_h;
    ctn_optim *opt;
    float x[BATCH * WIDTH];
    double around; /* seconds around the steps */
} subject;

static ctn_status lstm_step(subject *s, int steps)
{
    CTN_TRY(ctn_scope_begin(s->ctx));
    ctn_tensor *x = ctn_input(s->ctx, s->x, CTN_F32, CTN_SHAPE(BATCH, WIDTH));
    ctn_tensor *h = x, *c = x, *gate[4];
    for (int i = 0; i < steps; i++) {
        ctn_tensor *all = ctn_add(ctn_call(s->of_x, x), ctn_call(s->of_h, h));
        CTN_TRY(ctn_split(all, 1, 4, (int64_t[]){WIDTH, WIDTH, WIDTH, WIDTH}, gate));
        c = ctn_add(ctn_mul(ctn_sigmoid(gate[0]), c),
                    ctn_mul(ctn_sigmoid(gate[1]), ctn_tanh(gate[2])));
        h = ctn_mul(ctn_sigmoid(gate[3]), ctn_tanh(c));
    }
    CTN_TRY(ctn_backward(s->opt, ctn_mean(h, CTN_ALL_AXES, 0)));
    CTN_TRY(ctn_optim_step(s->opt));
    return ctn_scope_end(s->ctx);
}

static ctn_status lstm(subject *s, int steps, double *first, double *second)
{
    ctn_module *both[2] = {0}, *net = NULL;
    CTN_TRY(ctn_linear_new(&s->of_x, s->ctx, WIDTH, 4 * WIDTH, NULL));
    CTN_TRY(ctn_linear_new(&s->of_h, s->ctx, WIDTH, 4 * WIDTH, NULL));
    both[0] = s->of_x;
    both[1] = s->of_h;
    CTN_TRY(ctn_sequential_new(&net, s->ctx, 2, both));
    CTN_TRY(ctn_sgd_new(&s->opt, ctn_params(net), CTN_OPT(ctn_sgd_opt, .lr = 0.01)));
    double t0 = cpu_s();
    CTN_TRY(lstm_step(s, steps));
    *first = cpu_s() - t0;
    t0 = cpu_s();
    CTN_TRY(lstm_step(s, steps));
    *second = cpu_s() - t0;
    ctn_optim_free(s->opt);
    ctn_module_free(net);
    return CTN_OK;
}

static ctn_status chain(subject *s, int ops, double *first, double *second)
{
    float y[8];
    ctn_context_set_grad(s->ctx, 0);
    for (int r = 0; r < 2; r++) {
        const double t0 = cpu_s();
        CTN_TRY(ctn_scope_begin(s->ctx));
        ctn_tensor *x = ctn_input(s->ctx, s->x, CTN_F32, CTN_SHAPE(8));
        CTN_TRY(ctn_scope_begin(s->ctx));
        ctn_tensor *v = x;
        for (int i = 0; i < ops; i++) v = i % 2 ? ctn_shift(v, 1) : ctn_neg(v);
        CTN_TRY(ctn_read(ctn_scope_return(s->ctx, v), y, sizeof y));
        CTN_TRY(ctn_scope_end(s->ctx));
        *(r == 0 ? first : second) = cpu_s() - t0;
    }
    return CTN_OK;
}

static ctn_status pass_over(void *user, const char *name, ctn_dtype dtype, int ndim,
                            const int64_t *dims, void *data)
{
    (void)name, (void)dtype, (void)ndim, (void)dims, (void)data;
    ++*(int *)user;
    return CTN_OK;
}

static ctn_status layers_step(subject *s, ctn_module *net, double *seconds)
{
    const double t0 = cpu_s();
    CTN_TRY(ctn_scope_begin(s->ctx));
    ctn_tensor *y = ctn_call(net, ctn_input(s->ctx, s->x, CTN_F32, CTN_SHAPE(BATCH, WIDTH)));
    CTN_TRY(ctn_backward(s->opt, ctn_mean(y, CTN_ALL_AXES, 0)));
    CTN_TRY(ctn_optim_step(s->opt));
    CTN_TRY(ctn_scope_end(s->ctx));
    *seconds = cpu_s() - t0;
    return CTN_OK;
}

/* Every other parameter is frozen at first. */
static ctn_status layers(subject *s, int count, double *first, double *second)
{
    ctn_module *net = NULL, **layer = calloc((size_t)count / 2 + 1, sizeof *layer);
    int visited = 0;
    if (!layer) return CTN_ENOMEM;
    for (int i = 0; i < count / 2; i++)
        CTN_TRY(ctn_linear_new(&layer[i], s->ctx, WIDTH, WIDTH, NULL));
    const double t0 = cpu_s();
    CTN_TRY(ctn_sequential_new(&net, s->ctx, count / 2, layer));
    if (ctn_module_set_trainable(net, "*.bias", 0) < 0) return ctn_error_status();
    CTN_TRY(ctn_adam_new(&s->opt, ctn_params(net), NULL));
    if (ctn_module_set_trainable(net, "*.bias", 1) < 0) return ctn_error_status();
    CTN_TRY(ctn_module_visit(net, pass_over, &visited));
    CTN_TRY(ctn_optim_visit(s->opt, pass_over, &visited));
    const double t1 = cpu_s();
    CTN_TRY(layers_step(s, net, first));
    CTN_TRY(layers_step(s, net, second));
    const double t2 = cpu_s();
    ctn_module_free(net); /* before the optimizer, which keeps its pool */
    ctn_optim_free(s->opt);
    s->around = t1 - t0 + cpu_s() - t2;
    free(layer);
    return CTN_OK;
}

int main(int argc, char **argv)
{
    subject s = {0};
    double first = 0, second = 0;
    if (argc != 3) {
        fprintf(stderr,
                "usage: planning lstm STEPS | planning chain OPS | planning params COUNT\n");
        return 2;
    }
    const int n = atoi(argv[2]);
    for (int i = 0; i < BATCH * WIDTH; i++) s.x[i] = (float)(i % 7) / 7;
    ctn_status st = ctn_context_new(&s.ctx, CTN_OPT(ctn_context_opt, .threads = 1));
    if (st == CTN_OK)
        st = (strcmp(argv[1], "lstm") == 0     ? lstm
              : strcmp(argv[1], "params") == 0 ? layers
                                               : chain)(&s, n, &first, &second);
    if (st < 0) {
        fprintf(stderr, "planning: %s\n", ctn_error_message());
        return 1;
    }
    printf("{\"what\": \"%s\", \"n\": %d, \"planning_s\": %.4f, \"run_s\": %.4f, "
           "\"around_s\": %.4f}\n",
           argv[1], n, first - second, second, s.around);
    ctn_context_free(s.ctx);
    return 0;
}
