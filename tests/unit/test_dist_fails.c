/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank that fails at a random moment of a distributed training. All other ranks are told, none
 * waits forever, and everything can be freed. Under the address sanitizer this also shows that
 * nothing is used after it was freed.
 * Labels: threads
 */
#include "ranks.h"

#include <time.h>

enum { WIDTH = 96, LAYERS = 4, ROWS = 4, STEPS = 8 };

#if defined(__SANITIZE_THREAD__)
enum { TIMES = 30 };
#else
enum { TIMES = 200 };
#endif

typedef struct {
    unsigned seed;
} plan;

static ctn_status one_step(ctn_context *ctx, ctn_module *net, ctn_optim *o, ctn_comm *c, int fail)
{
    float x[ROWS * WIDTH];
    for (int i = 0; i < ROWS * WIDTH; i++) x[i] = (float)(i % 17) / 17;
    CTN_TRY(ctn_scope_begin(ctx));
    ctn_tensor *y = ctn_call(net, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(ROWS, WIDTH)));
    ctn_tensor *loss = ctn_sum(ctn_square(y), CTN_ALL_AXES, 0);
    ctn_status st = CTN_OK;
    if (fail == 2) {
        ctn_comm_break(c, "given up");
        st = CTN_ESTATE;
    } else {
        st = ctn_backward(o, fail == 1 ? NULL : loss);
    }
    if (st == CTN_OK) st = ctn_optim_step(o);
    ctn_status end = ctn_scope_end(ctx);
    return st < 0 ? st : end;
}

static void train(job *j)
{
    static const char *const names[] = {"ring", "flat", "rabenseifner", "torus", "rsap", "auto"};
    unsigned all = ((plan *)j->arg)->seed * 2654435761u, own = all + (unsigned)j->rank * 977;
    const int who = rand_r(&all) % j->size, when = rand_r(&all) % STEPS;
    const int how = 1 + rand_r(&all) % 2, shard = rand_r(&all) % 3 == 0;
    const char *algorithm = shard ? "ring" : names[rand_r(&all) % 6];
    ctn_module *m[2 * LAYERS], *net = NULL;
    ctn_optim *o = NULL;
    ctn_status st = CTN_OK;
    TRY(j, ctn_comm_set_algorithm(j->c, algorithm));
    for (int i = 0; i < LAYERS; i++) {
        TRY(j, ctn_linear_new(&m[2 * i], j->ctx, WIDTH, WIDTH, NULL));
        TRY(j, ctn_activation_new(&m[2 * i + 1], j->ctx, ctn_tanh_at));
    }
    TRY(j, ctn_sequential_new(&net, j->ctx, 2 * LAYERS, m));
    TRY(j, ctn_adam_new(&o, ctn_params(net), NULL));
    /* The other ranks may fail before this one is ready for the first step. */
    st = ctn_dist_optim(o, j->c,
                        CTN_OPT(ctn_dist_opt, .bucket = 4096, .shard = shard,
                                .progress = rand_r(&all) % 2 ? CTN_DIST_POLLS : CTN_DIST_THREAD,
                                .defer = rand_r(&all) % 2 ? CTN_DIST_DEFER : 0));
    for (int i = 0; i < STEPS && st == CTN_OK; i++) {
        const struct timespec nap = {.tv_nsec = rand_r(&own) % 1000000};
        if (rand_r(&own) % 3 == 0) nanosleep(&nap, NULL);
        st = one_step(j->ctx, net, o, j->c, j->rank == who && i == when ? how : 0);
    }
    CHECK(j, st < 0, "the failure of rank %d was not reported", who);
    CHECK(j, j->rank == who || st == CTN_EPEER, "%s", ctn_error_message());
    char name[32];
    snprintf(name, sizeof name, "rank %d", who);
    CHECK(j, j->rank == who || strstr(ctn_error_message(), name), "not named: %s",
          ctn_error_message());
    ctn_error_clear();
    ctn_optim_free(o);
    ctn_module_free(net);
}

static void test_somebody_fails(void **state)
{
    (void)state;
    for (unsigned i = 0; i < TIMES; i++)
        on_ranks(2 + (int)(i % 3), CTN_MODE_PLANNED, train, &(plan){i + 1});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_somebody_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
