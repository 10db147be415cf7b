/* SPDX-License-Identifier: Apache-2.0
 *
 * The cost of start, step, save and resume of a training for one rank, counted at 4, 64 and 256
 * ranks: messages and bytes sent, and files opened. Each must grow at most with the logarithm of
 * the number of ranks, or be limited to rank 0. Ranks are threads, eight to a node, and the
 * training reads an image folder.
 * Labels: threads serial
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catena/catena.h>

#include <cmocka.h>

#include "comm/comm.h"
#include "support/counted.h"
#include "support/folder.h"
#include "support/opens.h"

#if !defined(CTN_HAVE_YYJSON) || !defined(CTN_HAVE_SPNG)
int main(void)
{
    printf("skipped: built without yyjson or libspng\n");
    return 77;
}
#else

/* ---- a training ----------------------------------------------------------------------------- */

enum { SIDE = 6, CLASSES = 2, SAMPLES = 2048, STEPS = 4, NODE = 8 };

typedef struct {
    long messages, bytes, opens;
} cost;

typedef enum { START, STEP, SAVE, RESUME, PHASES } phase;
static const char *const phase_name[PHASES] = {"start", "step", "save", "resume"};

typedef struct {
    int rank, size, shard;
    ctn_comm *c;
    ctn_context *ctx;
    ctn_module *net;
    ctn_dataset *data;
    ctn_loader *loader;
    ctn_optim *optim;
    ctn_trainer *tr;
    atomic_long opens;
    cost at[STEPS + 1], of[PHASES];
    char why[600];
    pthread_t thread;
} rank;

static cost now(const rank *k)
{
    return (cost){counted.sent[k->rank], counted.bytes[k->rank], k->opens};
}

static cost minus(cost a, cost b)
{
    return (cost){a.messages - b.messages, a.bytes - b.bytes, a.opens - b.opens};
}

static ctn_tensor *loss_of(void *self, ctn_step *s)
{
    const rank *k = self;
    return ctn_softmax_cross_entropy(ctn_call(k->net, ctn_step_input(s, 0)), ctn_step_input(s, 1));
}

static ctn_status note(void *self, ctn_trainer *tr)
{
    rank *k = self;
    ctn_progress p;
    ctn_trainer_progress(tr, &p);
    k->at[p.iteration % (STEPS + 1)] = now(k);
    return CTN_OK;
}

/* As in the command, rank 0 lists the folder for all. */
static ctn_status open_images(rank *k)
{
    const ctn_image_opt image = {.struct_size = sizeof image, .height = SIDE, .width = SIDE};
    ctn_status st = CTN_OK;
    size_t n = 0;
    if (k->rank == 0) {
        CTN_TRY(ctn_image_folder_open(&k->data, "images", &image));
        n = ctn_image_folder_list(k->data, NULL, 0);
    }
    CTN_TRY(ctn_comm_broadcast(k->c, &n, sizeof n, 0));
    char *list = malloc(n);
    if (k->rank == 0) ctn_image_folder_list(k->data, list, n);
    CTN_TRY_GOTO(st, done, ctn_comm_broadcast(k->c, list, n, 0));
    if (k->rank != 0) st = ctn_image_folder_open_list(&k->data, "images", list, n, &image);
done:
    free(list);
    return st;
}

static ctn_status open_training(rank *k, int64_t iterations)
{
    ctn_module *m[2] = {0};
    ctn_sampler *s = NULL;
    CTN_TRY(ctn_context_new(&k->ctx, CTN_OPT(ctn_context_opt, .threads = 1, .seed = 5)));
    CTN_TRY(open_images(k));
    CTN_TRY(ctn_sampler_shuffled(&s, SAMPLES, 3));
    CTN_TRY(ctn_sampler_shard(s, k->rank, k->size));
    CTN_TRY(ctn_loader_new(&k->loader, k->data, s, CTN_OPT(ctn_loader_opt, .batch = 1)));
    ctn_sampler_free(s);
    CTN_TRY(ctn_flatten_new(&m[0], k->ctx));
    CTN_TRY(ctn_linear_new(&m[1], k->ctx, 3 * SIDE * SIDE, CLASSES, NULL));
    CTN_TRY(ctn_sequential_new(&k->net, k->ctx, 2, m));
    CTN_TRY(ctn_adam_new(&k->optim, ctn_params(k->net), CTN_OPT(ctn_adam_opt, .lr = 0.01)));
    CTN_TRY(ctn_dist_optim(k->optim, k->c,
                           CTN_OPT(ctn_dist_opt, .shard = k->shard, .progress = CTN_DIST_POLLS,
                                   .defer = CTN_DIST_COMPLETE)));
    CTN_TRY(ctn_trainer_new(&k->tr, k->optim, k->loader, loss_of, k,
                            CTN_OPT(ctn_trainer_opt, .net = k->net, .iterations = iterations)));
    CTN_TRY(ctn_dist_trainer(k->tr, k->c, NULL));
    return ctn_trainer_extend(k->tr,
                              &(ctn_extension){.struct_size = sizeof(ctn_extension),
                                               .name = "note",
                                               .trigger = {.kind = CTN_EVERY_ITERATIONS, .n = 1},
                                               .call = note,
                                               .self = k});
}

static void close_training(rank *k)
{
    ctn_trainer_free(k->tr);
    ctn_loader_free(k->loader);
    ctn_dataset_free(k->data);
    ctn_optim_free(k->optim);
    ctn_module_free(k->net);
    ctn_context_free(k->ctx);
}

/* The start is everything up to the end of the first step, minus the cost of one step. */
static ctn_status train(rank *k)
{
    const char *dir = k->rank == 0 ? "state" : "nowhere";
    cost begin = now(k);
    CTN_TRY(open_training(k, STEPS));
    CTN_TRY(ctn_trainer_run(k->tr));
    k->of[STEP] = minus(k->at[STEPS], k->at[STEPS - 1]);
    k->of[START] = minus(minus(k->at[1], begin), k->of[STEP]);
    begin = now(k);
    CTN_TRY(ctn_trainer_save(k->tr, dir));
    k->of[SAVE] = minus(now(k), begin);
    close_training(k);
    begin = now(k);
    CTN_TRY(open_training(k, STEPS + 1));
    CTN_TRY(ctn_trainer_load(k->tr, dir));
    CTN_TRY(ctn_trainer_run(k->tr));
    k->of[RESUME] = minus(minus(k->at[0], begin), k->of[STEP]);
    close_training(k);
    return CTN_OK;
}

static void *begin_rank(void *p)
{
    rank *k = p;
    opens_of = &k->opens;
    ctn_error_clear();
    if (train(k) == CTN_OK) return NULL;
    snprintf(k->why, sizeof k->why, "rank %d of %d: %s", k->rank, k->size, ctn_error_message());
    ctn_comm_break(k->c, k->why);
    return NULL;
}

/* ---- counting ------------------------------------------------------------------------------- */

typedef struct {
    cost first, most; /* of rank 0, and the maximum of all other ranks */
} both;

static void take_most(cost *most, const cost *a)
{
    if (a->messages > most->messages) most->messages = a->messages;
    if (a->bytes > most->bytes) most->bytes = a->bytes;
    if (a->opens > most->opens) most->opens = a->opens;
}

static void count(int size, const char *algorithm, both *out)
{
    static rank k[COUNTED_MOST];
    ctn__net *net[COUNTED_MOST];
    int node[COUNTED_MOST];
    const ctn_comm_opt opt = {.struct_size = sizeof opt,
                              .algorithm = algorithm ? algorithm : "ring"};
    for (int r = 0; r < size; r++) node[r] = r / NODE * NODE;
    assert_int_equal(ctn__net_loopback_nodes(net, size, node), CTN_OK);
    counted_use(net, size);
    memset(k, 0, sizeof k);
    for (int r = 0; r < size; r++) {
        k[r] = (rank){.rank = r, .size = size, .shard = !algorithm};
        assert_int_equal(ctn__comm_new(&k[r].c, net[r], &opt), CTN_OK);
    }
    for (int r = 0; r < size; r++)
        assert_int_equal(pthread_create(&k[r].thread, NULL, begin_rank, &k[r]), 0);
    for (int r = 0; r < size; r++) pthread_join(k[r].thread, NULL);
    for (int r = 0; r < size; r++)
        if (k[r].why[0]) fail_msg("%s", k[r].why);
    for (phase p = 0; p < PHASES; p++) {
        out[p] = (both){.first = k[0].of[p]};
        for (int r = 1; r < size; r++) take_most(&out[p].most, &k[r].of[p]);
    }
    for (int r = 0; r < size; r++) ctn_comm_free(k[r].c);
}

static void make_images(void)
{
    char path[64];
    mkdir("images", 0777);
    for (int i = 0; i < SAMPLES; i++) {
        snprintf(path, sizeof path, "images/%c", 'a' + i % CLASSES);
        mkdir(path, 0777);
        snprintf(path, sizeof path, "images/%c/%04d.png", 'a' + i % CLASSES, i);
        if (symlink(CTN_TESTS_DIR "/fuzz/corpus/image/RGB.png", path) != 0) fail_msg("%s", path);
    }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const int sizes[] = {4, 16};
#else
static const int sizes[] = {4, 64, 256};
#endif

/* way: an algorithm; NULL: sharded updates. */
static void compare(const char *way)
{
    both few[PHASES], many[PHASES];
    print_message("%s\n%6s %6s %26s %26s\n%13s", way ? way : "sharded updates", "ranks", "",
                  "any other rank", "rank 0", "");
    for (int i = 0; i < 2; i++) print_message(" %9s %9s %6s", "messages", "bytes", "opens");
    print_message("\n");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        count(sizes[i], way, i == 0 ? few : many);
        const both *b = i == 0 ? few : many;
        remove_all("state");
        for (phase p = 0; p < PHASES; p++)
            print_message("%6d %6s %9ld %9ld %6ld %9ld %9ld %6ld\n", sizes[i], phase_name[p],
                          b[p].most.messages, b[p].most.bytes, b[p].most.opens, b[p].first.messages,
                          b[p].first.bytes, b[p].first.opens);
        long lg = 0; /* log2 of the ranks; the smallest group has 2 */
        while (1 << lg < sizes[i]) lg++;
        for (phase p = 0; p < PHASES; p++) {
            cost any = b[p].most, then = few[p].most;
            take_most(&any, &b[p].first);
            take_most(&then, &few[p].first);
            assert_true(any.messages * 2 <= then.messages * lg);
            assert_true(any.bytes * 2 <= (then.bytes + 64) * lg); /* texts have longer numbers */
            assert_true(b[p].most.opens <= few[p].most.opens);
        }
    }
}

static void test_halving(void **state)
{
    (void)state;
    compare("rabenseifner");
}

static void test_sharded(void **state)
{
    (void)state;
    compare(NULL);
}

static int set_up(void **state)
{
    (void)state;
    make_images();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    remove_all("images");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_halving),
                                       cmocka_unit_test(test_sharded)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
#endif
