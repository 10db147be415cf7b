/* SPDX-License-Identifier: Apache-2.0
 *
 * A classifier of sequences of 10 to 500 tokens: a sequence of class c has more tokens that are c
 * modulo 4. The network averages the embeddings of a sequence up to its length. Batches of similar
 * lengths, padded to multiples of 16, need little padding and few plans.
 */
#include <stdio.h>
#include <stdlib.h>
#include <catena/catena.h>

#define CHECK(call) \
    if ((call) < 0) exit((fprintf(stderr, "sequence: %s\n", ctn_error_message()), 1))

enum { COUNT = 4000, TOKENS = 64, CLASSES = 4 };
static int64_t token[COUNT * 500], offset[COUNT + 1], length[COUNT], label[COUNT], place[COUNT];

static void make_sequence(int64_t i)
{
    place[i] = i;
    label[i] = rand() % CLASSES;
    length[i] = 10 + rand() % 491;
    offset[i + 1] = offset[i] + length[i];
    for (int64_t k = offset[i]; k < offset[i + 1]; k++)
        token[k] = rand() % 3 ? rand() % TOKENS : rand() % 16 * CLASSES + label[i];
}

/* The cross-entropy of a batch with the fields tokens (N,L), labels (N) and lengths (N). */
static ctn_tensor *loss_of(ctn_context *ctx, ctn_module *net, const ctn_batch *b)
{
    ctn_tensor *n = ctn_reshape(ctn_batch_tensor(ctx, b, 2), CTN_SHAPE(b->n, 1, 1));
    ctn_tensor *at = ctn_input(ctx, place, CTN_I64, CTN_SHAPE(1, b->field[0].shape[1], 1));
    ctn_tensor *h = ctn_call(ctn_module_child(net, 0), ctn_batch_tensor(ctx, b, 0)); /* (N,L,16) */
    h = ctn_mul(h, ctn_cast(ctn_less(at, n), CTN_F32));                  /* padding becomes 0 */
    h = ctn_sum(ctn_div(h, ctn_cast(n, CTN_F32)), 1, (int64_t[]){1}, 0); /* the mean, (N,16) */
    ctn_tensor *t = ctn_batch_tensor(ctx, b, 1);
    return ctn_softmax_cross_entropy(ctn_call(ctn_module_child(net, 1), h), t);
}

int main(void)
{
    ctn_context *ctx;
    ctn_module *net, *part[2];
    ctn_optim *opt;
    ctn_dataset *set;
    ctn_sampler *s;
    ctn_loader *data;
    const ctn_field field[] = {{CTN_I64, 1, {CTN_RAGGED}, 0}, {CTN_I64, 0, {0}, 0}};
    for (int64_t i = 0; i < COUNT; i++) make_sequence(i);
    const void *arrays[] = {token, label};
    CHECK(ctn_ragged_open(&set, COUNT, 2, field, arrays, (const int64_t *[]){offset, NULL}));
    CHECK(ctn_sampler_bucketed(&s, COUNT, length, 32, 1));
    CHECK(ctn_loader_new(&data, set, s, CTN_OPT(ctn_loader_opt, .batch = 32, .pad_multiple = 16)));
    CHECK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = 1)));
    CHECK(ctn_embedding_new(&part[0], ctx, TOKENS, 16, NULL));
    CHECK(ctn_linear_new(&part[1], ctx, 16, CLASSES, NULL));
    CHECK(ctn_module_list_new(&net, ctx, 2, part));
    CHECK(ctn_adam_new(&opt, ctn_params(net), CTN_OPT(ctn_adam_opt, .lr = 0.01)));
    for (int e = 1; e <= 3; e++) {
        ctn_plan_stats stats;
        double sum = 0;
        for (ctn_batch b; ctn_loader_next(data, &b) == CTN_OK;) {
            CHECK(ctn_scope_begin(ctx));
            ctn_tensor *loss = loss_of(ctx, net, &b);
            CHECK(ctn_backward(opt, loss));
            CHECK(ctn_optim_step(opt));
            sum += ctn_item(loss) * (double)b.n;
            CHECK(ctn_scope_end(ctx));
        }
        CHECK(ctn_error_status());
        ctn_context_get_stats(ctx, &stats);
        printf("epoch %d  loss %.4f  plans %lld\n", e, sum / COUNT, (long long)stats.plans);
    }
    ctn_loader_free(data);
    ctn_sampler_free(s);
    ctn_dataset_free(set);
    ctn_optim_free(opt);
    ctn_module_free(net);
    ctn_context_free(ctx);
    return 0;
}
