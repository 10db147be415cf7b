/* SPDX-License-Identifier: Apache-2.0
 *
 * A multi-layer perceptron on MNIST with a hand-written training loop:
 *     mnist [EPOCHS [SEED [FOLDER [WEIGHTS]]]]
 * Defaults: 20 epochs, seed 1, folder $CATENA_DATA/mnist. The weights are saved if a file is
 * named. Two runs with the same seed and number of threads write the same file, to the bit.
 */
#include <stdio.h>
#include <stdlib.h>

#include <catena/catena.h>

#define CHECK(call) \
    if ((call) < 0) exit((fprintf(stderr, "mnist: %s\n", ctn_error_message()), 1))

static ctn_tensor *forward(void *self, ctn_module *net, ctn_tensor *x)
{
    (void)self;
    x = ctn_relu(ctn_call(ctn_module_child(net, 0), x)); /* x (N,784) -> (N,1000) */
    x = ctn_relu(ctn_call(ctn_module_child(net, 1), x)); /* (N,1000) */
    return ctn_call(ctn_module_child(net, 2), x);        /* (N,10) */
}

/* One pass over the data. With an optimizer: train, return the mean loss. Without: evaluate,
 * return the accuracy. */
static double run_epoch(ctn_module *net, ctn_optim *opt, ctn_loader *data)
{
    ctn_context *ctx = ctn_module_context(net);
    double sum = 0, n = 0;
    ctn_context_set_training(ctx, opt != NULL);
    ctn_context_set_grad(ctx, opt != NULL);
    for (ctn_batch b; ctn_loader_next(data, &b) == CTN_OK; n += (double)b.n) {
        CHECK(ctn_scope_begin(ctx));
        ctn_tensor *t = ctn_batch_tensor(ctx, &b, 1);
        ctn_tensor *y = ctn_call(net, ctn_batch_tensor(ctx, &b, 0));
        ctn_tensor *r = opt ? ctn_softmax_cross_entropy(y, t) : ctn_accuracy(y, t, 1);
        if (opt) CHECK(ctn_backward(opt, r)); /* if r is NULL, returns the first error above */
        if (opt) CHECK(ctn_optim_step(opt));  /* the recorded step runs here */
        sum += ctn_item(r) * (double)b.n;
        CHECK(ctn_scope_end(ctx));
    }
    CHECK(ctn_error_status());
    return sum / n;
}

int main(int argc, char **argv)
{
    const int size[] = {784, 1000, 1000, 10}, epochs = argc > 1 ? atoi(argv[1]) : 20;
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    const char *root = getenv("CATENA_DATA");
    char folder[4096], name[] = "fc1";
    snprintf(folder, sizeof folder, "%s/mnist", root ? root : ".");
    const char *dir = argc > 3 ? argv[3] : folder;

    ctn_context *ctx;
    ctn_module *net, *fc;
    ctn_optim *opt;
    ctn_dataset *set[2]; /* training, test */
    ctn_sampler *order[2];
    ctn_loader *data[2];
    CHECK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = seed)));
    for (int i = 0; i < 2; i++) {
        CHECK(ctn_mnist_open(&set[i], dir, i == 0 ? CTN_TRAIN : CTN_TEST));
        CHECK(ctn_sampler_shuffled(&order[i], ctn_dataset_count(set[i]), seed));
        CHECK(ctn_loader_new(&data[i], set[i], order[i], CTN_OPT(ctn_loader_opt, .batch = 100)));
    }
    CHECK(ctn_module_new(&net, ctx, forward, NULL, NULL));
    for (int i = 0; i < 3; i++, name[2]++) {
        CHECK(ctn_linear_new(&fc, ctx, size[i], size[i + 1], NULL));
        CHECK(ctn_module_add(net, name, fc));
    }
    CHECK(ctn_adam_new(&opt, ctn_params(net), NULL));
    const ctn_sched_opt *decay =
        CTN_OPT(ctn_sched_opt, .kind = CTN_SCHED_COSINE, .steps = epochs * 600);
    CHECK(ctn_optim_set_schedule(opt, decay));

    for (int e = 1; e <= epochs; e++) {
        double loss = run_epoch(net, opt, data[0]);
        printf("epoch %2d  loss %.6f  accuracy %.4f\n", e, loss, run_epoch(net, NULL, data[1]));
    }
    if (argc > 4) CHECK(ctn_weights_save(net, argv[4]));

    ctn_optim_free(opt);
    ctn_module_free(net);
    for (int i = 0; i < 2; i++) {
        ctn_loader_free(data[i]);
        ctn_sampler_free(order[i]);
        ctn_dataset_free(set[i]);
    }
    ctn_context_free(ctx);
    return 0;
}
