/* SPDX-License-Identifier: Apache-2.0
 *
 * Triggers by share of time: an extension that takes long is called less often, and on several
 * ranks after the same steps, although only rank 0 measures it. Time passes only in the loss
 * function and in the extension of rank 0.
 * Labels: threads
 */
#include "ranks.h"

#include <catena/datasets.h>
#include <catena/train.h>

#include "support/clock.h"

enum { SAMPLES = 8, CALLS = 8, STEP_MS = 70, CALL_MS = 600 };

typedef struct {
    int n[MOST];
    int64_t at[MOST][CALLS]; /* iterations */
} calls;

typedef struct {
    job *j;
    ctn_module *net;
} subject;

static ctn_tensor *loss_of(void *self, ctn_step *s)
{
    const subject *x = self;
    if (x->j->rank == 0) clock_pass(STEP_MS);
    ctn_tensor *t = ctn_step_input(s, 0);
    return ctn_mean_squared_error(ctn_call(x->net, t), t, CTN_MEAN);
}

/* It takes long on rank 0 only; the other ranks wait for it in the next step. */
static ctn_status call(void *self, ctn_trainer *tr)
{
    const subject *x = self;
    calls *c = x->j->arg;
    ctn_progress p;
    ctn_trainer_progress(tr, &p);
    if (c->n[x->j->rank] < CALLS) c->at[x->j->rank][c->n[x->j->rank]] = p.iteration;
    c->n[x->j->rank]++;
    if (x->j->rank == 0) clock_pass(CALL_MS);
    return CTN_OK;
}

static void run(job *j)
{
    static const float data[SAMPLES][2];
    const ctn_field field = {.dtype = CTN_F32, .ndim = 1, .shape = {2}};
    const void *const arrays[] = {data};
    subject x = {.j = j};
    ctn_dataset *ds = NULL;
    ctn_sampler *s = NULL;
    ctn_loader *loader = NULL;
    ctn_optim *optim = NULL;
    ctn_trainer *tr = NULL;
    TRY(j, ctn_arrays_open(&ds, SAMPLES, 1, &field, arrays));
    TRY(j, ctn_sampler_sequential(&s, SAMPLES));
    if (j->size > 1) TRY(j, ctn_sampler_shard(s, j->rank, j->size));
    TRY(j, ctn_loader_new(&loader, ds, s, CTN_OPT(ctn_loader_opt, .batch = SAMPLES / j->size)));
    ctn_sampler_free(s);
    TRY(j, ctn_linear_new(&x.net, j->ctx, 2, 2, NULL));
    TRY(j, ctn_sgd_new(&optim, ctn_params(x.net), NULL));
    if (j->size > 1) TRY(j, ctn_dist_optim(optim, j->c, NULL));
    TRY(j, ctn_trainer_new(&tr, optim, loader, loss_of, &x,
                           CTN_OPT(ctn_trainer_opt, .net = x.net, .seconds = 10)));
    ctn_extension e = {.struct_size = sizeof e,
                       .name = "long",
                       .trigger = {.kind = CTN_SHARE_OF_TIME, .n = 100},
                       .call = call,
                       .self = &x};
    CHECK(j, ctn_trainer_extend(tr, &e) == CTN_EARG, "100 percent");
    ctn_error_clear();
    e.trigger.n = 50;
    TRY(j, ctn_trainer_extend(tr, &e));
    TRY(j, ctn_trainer_run(tr));
    ctn_trainer_free(tr);
    ctn_loader_free(loader);
    ctn_dataset_free(ds);
    ctn_optim_free(optim);
    ctn_module_free(x.net);
}

/* After a second, which is 15 steps, then every 0.6 s / 50 % = 1.2 s: 9 steps, since the call takes
 * half of it. Several ranks agree one step later. */
static void test_share(void **state)
{
    (void)state;
    clock_stop();
    for (int size = 1; size <= 2; size++) {
        calls c = {0};
        on_ranks(size, CTN_MODE_PLANNED, run, &c);
        for (int r = 0; r < size; r++) {
            assert_int_equal(c.n[r], CALLS);
            for (int i = 0; i < CALLS; i++) assert_int_equal(c.at[r][i], 14 + size + 9 * i);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_share)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
