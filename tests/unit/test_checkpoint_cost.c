/* SPDX-License-Identifier: Apache-2.0
 *
 * The cost of a checkpoint for one rank, counted at 16, 64 and 256 ranks: files, opens, messages
 * and bytes sent. Opens and messages of every rank must grow at most with the logarithm of the
 * number of ranks, in three ways of saving: without sharded updates, with sharded state that rank 0
 * collects because it is small, and with sharded state of which every rank writes its part. The
 * manifest of the last way has lines for the file and the slices of every rank. Ranks are threads,
 * eight to a node.
 * Labels: threads serial
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
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
#include "io/checkpoint/checkpoint.h"
#include "optim/optim.h"
#include "support/counted.h"
#include "support/folder.h"
#include "support/opens.h"

#ifndef CTN_HAVE_YYJSON
int main(void)
{
    printf("skipped: built without yyjson\n");
    return 77;
}
#else

/* ---- threads of a rank ----------------------------------------------------------------------- */

typedef struct {
    void *(*run)(void *);
    void *arg;
    atomic_long *opens;
} thread_start;

static void *run_counted(void *p)
{
    const thread_start s = *(thread_start *)p;
    free(p);
    opens_of = s.opens;
    return s.run(s.arg);
}

/* What a thread opens counts for the rank that has started it. */
int pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    thread_start *s = malloc(sizeof *s);
    if (!s) return EAGAIN;
    *s = (thread_start){run, arg, opens_of};
    return REAL("pthread_create", int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
                                          void *))(t, attr, run_counted, s);
}

/* ---- a training ------------------------------------------------------------------------------ */

enum { LAYERS = 2, WIDTH = 64, NODE = 8 };

typedef struct {
    long messages, bytes, opens;
} cost;

typedef struct {
    int rank, size, shard;
    ctn_comm *c;
    ctn_context *ctx;
    ctn_module *net;
    ctn_optim *optim;
    ctn_state_part part[3];
    atomic_long opens;
    cost save, load;
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

static ctn_status open_training(rank *k, uint64_t seed)
{
    ctn_module *m[LAYERS] = {0};
    CTN_TRY(ctn_context_new(&k->ctx, CTN_OPT(ctn_context_opt, .threads = 1, .seed = seed)));
    for (int i = 0; i < LAYERS; i++) CTN_TRY(ctn_linear_new(&m[i], k->ctx, WIDTH, WIDTH, NULL));
    CTN_TRY(ctn_sequential_new(&k->net, k->ctx, LAYERS, m));
    CTN_TRY(ctn_adam_new(&k->optim, ctn_params(k->net), CTN_OPT(ctn_adam_opt, .lr = 0.01)));
    k->part[0] = ctn_part_module("net", k->net);
    k->part[1] = ctn_part_optim("optim", k->optim);
    k->part[2] = ctn_part_context("context", k->ctx);
    return ctn_dist_optim(k->optim, k->c,
                          CTN_OPT(ctn_dist_opt, .shard = k->shard, .progress = CTN_DIST_POLLS,
                                  .defer = CTN_DIST_COMPLETE));
}

static void close_training(rank *k)
{
    ctn_optim_free(k->optim);
    ctn_module_free(k->net);
    ctn_context_free(k->ctx);
}

static ctn_status step(rank *k)
{
    float x[WIDTH];
    for (int i = 0; i < WIDTH; i++) x[i] = (float)((i * 37 + k->rank) % 19 - 9) / 9;
    CTN_TRY(ctn_scope_begin(k->ctx));
    ctn_tensor *y = ctn_call(k->net, ctn_input(k->ctx, x, CTN_F32, CTN_SHAPE(1, WIDTH)));
    CTN_TRY(ctn_backward(k->optim, ctn_mean(ctn_mul(y, y), CTN_ALL_AXES, 0)));
    CTN_TRY(ctn_optim_step(k->optim));
    return ctn_scope_end(k->ctx);
}

static ctn_status add(void *user, const char *name, ctn_dtype type, int ndim, const int64_t *dim,
                      void *data)
{
    ctn__hash128 *h = user;
    size_t bytes = ctn_dtype_size(type);
    for (int i = 0; i < ndim; i++) bytes *= (size_t)dim[i];
    const ctn__hash128 part[3] = {*h, ctn__hash(name, strlen(name)), ctn__hash(data, bytes)};
    *h = ctn__hash(part, sizeof part);
    return CTN_OK;
}

/* Of the values and the state, as far as this rank has them. */
static ctn_status sum_up(const rank *k, ctn__hash128 *h)
{
    *h = (ctn__hash128){0};
    CTN_TRY(ctn_module_visit(k->net, add, h));
    return ctn__optim_visit_own(k->optim, add, h);
}

static ctn_status save(rank *k)
{
    ctn__saver *s = NULL;
    ctn__ckpt_text text[CTN__CKPT_TEXTS] = {{.name = "trainer.txt"}};
    if (k->rank == 0) ctn__text_add(&text[0].text, "a text\n");
    CTN_TRY(ctn__saver_new(&s, k->c, "state", 2));
    ctn_status st = ctn__saver_check(s, 3, k->part);
    if (st == CTN_OK) st = ctn__saver_begin(s, 3, k->part, k->rank == 0, text);
    if (st == CTN_OK) st = ctn__saver_vote(s);
    if (st == CTN_OK) st = ctn__saver_wait(s);
    ctn__saver_free(s);
    return st;
}

static ctn_status load(rank *k)
{
    ctn__ckpt *open = NULL;
    char *text = NULL;
    CTN_TRY(ctn__ckpt_open(&open, k->c, "state"));
    ctn_status st = ctn__ckpt_read(open, "trainer.txt", &text);
    if (st == CTN_OK) st = ctn__ckpt_load(open, 3, k->part);
    ctn__ckpt_close(open);
    ctn__free(text);
    return st;
}

static ctn_status save_and_load(rank *k)
{
    ctn__hash128 saved, loaded;
    CTN_TRY(open_training(k, 5));
    CTN_TRY(step(k));
    CTN_TRY(ctn_dist_values(k->optim));
    CTN_TRY(sum_up(k, &saved));
    cost begin = now(k);
    CTN_TRY(save(k));
    k->save = minus(now(k), begin);
    close_training(k);
    CTN_TRY(open_training(k, 7));
    begin = now(k);
    CTN_TRY(load(k));
    k->load = minus(now(k), begin);
    CTN_TRY(sum_up(k, &loaded));
    close_training(k);
    if (saved.lo == loaded.lo && saved.hi == loaded.hi) return CTN_OK;
    return ctn_fail(CTN_ESTATE, "the loaded state differs from the saved one");
}

static void *begin_rank(void *p)
{
    rank *k = p;
    opens_of = &k->opens;
    ctn_error_clear();
    if (save_and_load(k) == CTN_OK) return NULL;
    snprintf(k->why, sizeof k->why, "rank %d of %d: %s", k->rank, k->size, ctn_error_message());
    ctn_comm_break(k->c, k->why);
    return NULL;
}

/* ---- counting -------------------------------------------------------------------------------- */

typedef struct {
    cost save, load; /* the maximum of all ranks */
    long files, manifest;
} costs;

static void take_most(cost *most, const cost *a)
{
    if (a->messages > most->messages) most->messages = a->messages;
    if (a->bytes > most->bytes) most->bytes = a->bytes;
    if (a->opens > most->opens) most->opens = a->opens;
}

static void look_at_files(costs *out)
{
    struct stat info;
    DIR *d = opendir("state/000000000");
    for (struct dirent *e; d && (e = readdir(d));) out->files += e->d_name[0] != '.';
    if (d) closedir(d);
    assert_int_equal(stat("state/000000000/" CTN__CKPT_MANIFEST, &info), 0);
    out->manifest = (long)info.st_size;
}

static void remove_state(void)
{
    assert_int_equal(ctn__numbered_remove("state", 0), CTN_OK);
    assert_int_equal(rmdir("state"), 0);
}

static void count(int size, int shard, costs *out)
{
    static rank k[COUNTED_MOST];
    ctn__net *net[COUNTED_MOST];
    int node[COUNTED_MOST] = {0};
    const ctn_comm_opt opt = {.struct_size = sizeof opt, .algorithm = "rabenseifner"};
    remove_all("state"); /* what a run that failed has left */
    for (int r = 0; r < size; r++) node[r] = r / NODE * NODE;
    assert_int_equal(ctn__net_loopback_nodes(net, size, node), CTN_OK);
    counted_use(net, size);
    memset(k, 0, sizeof k);
    for (int r = 0; r < size; r++) {
        k[r] = (rank){.rank = r, .size = size, .shard = shard};
        assert_int_equal(ctn__comm_new(&k[r].c, net[r], &opt), CTN_OK);
    }
    for (int r = 0; r < size; r++)
        assert_int_equal(pthread_create(&k[r].thread, NULL, begin_rank, &k[r]), 0);
    for (int r = 0; r < size; r++) pthread_join(k[r].thread, NULL);
    for (int r = 0; r < size; r++)
        if (k[r].why[0]) fail_msg("%s", k[r].why);
    *out = (costs){0};
    for (int r = 0; r < size; r++) take_most(&out->save, &k[r].save);
    for (int r = 0; r < size; r++) take_most(&out->load, &k[r].load);
    for (int r = 0; r < size; r++) ctn_comm_free(k[r].c);
    look_at_files(out);
    remove_state();
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const int sizes[] = {4, 16};
#else
static const int sizes[] = {16, 64, 256};
#endif

static int log2_of(int n)
{
    int lg = 0;
    while (1 << lg < n) lg++;
    return lg;
}

static void print_cost(int size, const char *what, const cost *c, const costs *all)
{
    print_message("%6d %6s %6ld %9ld %9ld %9ld %9ld\n", size, what, c->opens, c->messages, c->bytes,
                  all->files, all->manifest);
}

static void check_growth(int size, const cost *few, const cost *many)
{
    assert_true(many->messages * log2_of(sizes[0]) <= few->messages * log2_of(size));
    assert_true(many->opens <= few->opens);
}

static void compare(const char *title, int shard, const char *mb)
{
    costs few, many;
    setenv("CATENA_CHECKPOINT_MB", mb, 1);
    print_message("%s: of the rank with the most, and of the folder\n", title);
    print_message("%6s %6s %6s %9s %9s %9s %9s\n", "ranks", "", "opens", "messages", "bytes",
                  "files", "manifest");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        count(sizes[i], shard, i == 0 ? &few : &many);
        const costs *c = i == 0 ? &few : &many;
        print_cost(sizes[i], "save", &c->save, c);
        print_cost(sizes[i], "load", &c->load, c);
        check_growth(sizes[i], &few.save, &c->save);
        check_growth(sizes[i], &few.load, &c->load);
    }
}

static void test_plain(void **state)
{
    (void)state;
    compare("not sharded", 0, "64");
}

static void test_collected(void **state)
{
    (void)state;
    compare("sharded, one file", 1, "64");
}

static void test_divided(void **state)
{
    (void)state;
    compare("sharded, a file of each rank", 1, "0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain),
                                       cmocka_unit_test(test_collected),
                                       cmocka_unit_test(test_divided)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
