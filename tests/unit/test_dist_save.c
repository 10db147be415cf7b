/* SPDX-License-Identifier: Apache-2.0
 *
 * Saving and loading the state of a sharded optimizer, with threads as ranks. No rank ever has
 * all of the state in memory, the file is the one that an unsharded optimizer would write, and
 * when the writer fails no rank is left waiting.
 * Labels: threads
 */
#include "ranks.h"

#include <stdatomic.h>
#include <stdbool.h>

#include <catena/catena.h>

#ifndef CTN_HAVE_YYJSON
int main(void)
{
    printf("skipped: built without yyjson\n");
    return 77;
}
#else

enum { LAYERS = 12, WIDTH = 60, ROWS = 4, BUCKET = 5000 };

/* ---- memory of all ranks -------------------------------------------------------------------- */

static atomic_llong live, peak; /* a message is allocated by one rank and freed by another */

static void *counted_alloc(void *user, size_t bytes, size_t align)
{
    (void)user;
    void *p = NULL;
    if (posix_memalign(&p, align < 64 ? 64 : align, bytes + 64) != 0) return NULL;
    *(size_t *)p = bytes;
    const long long now = atomic_fetch_add(&live, (long long)bytes) + (long long)bytes;
    for (long long was = atomic_load(&peak);
         now > was && !atomic_compare_exchange_weak(&peak, &was, now);)
        continue;
    return (char *)p + 64;
}

static void counted_release(void *user, void *p)
{
    (void)user;
    if (!p) return;
    size_t *begin = (size_t *)p - 64 / sizeof(size_t);
    atomic_fetch_sub(&live, (long long)*begin);
    free(begin);
}

/* Starts counting the peak from here. *before: the memory in use now. */
static ctn_status count_from_here(const job *j, long long *before)
{
    CTN_TRY(ctn_comm_barrier(j->c));
    *before = atomic_load(&live);
    if (j->rank == 0) atomic_store(&peak, *before);
    return ctn_comm_barrier(j->c);
}

/* ---- a training ----------------------------------------------------------------------------- */

typedef struct {
    ctn_context *ctx; /* of its own, so that it has the same weights */
    ctn_module *net;
    ctn_optim *o;
} training;

static ctn_status begin_training(training *t, const job *j, int shard)
{
    ctn_module *m[LAYERS] = {0};
    CTN_TRY(ctn_context_new(&t->ctx, CTN_OPT(ctn_context_opt, .threads = 1, .seed = 5)));
    for (int i = 0; i < LAYERS; i++) CTN_TRY(ctn_linear_new(&m[i], t->ctx, WIDTH, WIDTH, NULL));
    CTN_TRY(ctn_sequential_new(&t->net, t->ctx, LAYERS, m));
    CTN_TRY(ctn_adam_new(&t->o, ctn_params(t->net), CTN_OPT(ctn_adam_opt, .lr = 0.01)));
    return ctn_dist_optim(t->o, j->c, CTN_OPT(ctn_dist_opt, .shard = shard, .bucket = BUCKET));
}

static ctn_status step(training *t, int s)
{
    float x[ROWS * WIDTH];
    for (int i = 0; i < ROWS * WIDTH; i++) x[i] = (float)((i * 37 + s * 101) % 19 - 9) / 9;
    CTN_TRY(ctn_scope_begin(t->ctx));
    ctn_tensor *y = ctn_call(t->net, ctn_input(t->ctx, x, CTN_F32, CTN_SHAPE(ROWS, WIDTH)));
    CTN_TRY(ctn_backward(t->o, ctn_mean(ctn_mul(y, y), CTN_ALL_AXES, 0)));
    CTN_TRY(ctn_optim_step(t->o));
    return ctn_scope_end(t->ctx);
}

static void end_training(training *t)
{
    ctn_optim_free(t->o);
    ctn_module_free(t->net);
    ctn_context_free(t->ctx);
}

/* ---- cases ---------------------------------------------------------------------------------- */

typedef struct {
    int64_t left; /* calls that still succeed */
    int64_t calls;
} failing;

static ctn_status fails(void *user, const char *name, ctn_dtype type, int ndim, const int64_t *dim,
                        void *data)
{
    (void)name, (void)type, (void)ndim, (void)dim, (void)data;
    failing *f = user;
    f->calls++;
    return f->left-- > 0 ? CTN_OK : ctn_fail(CTN_EIO, "the disk is full");
}

static bool same_files(const char *a, const char *b)
{
    static _Thread_local char x[2 << 20], y[sizeof x]; /* ranks are threads */
    FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
    const size_t n = f ? fread(x, 1, sizeof x, f) : 0, m = g ? fread(y, 1, sizeof y, g) : 0;
    if (f) fclose(f);
    if (g) fclose(g);
    return n > 0 && n < sizeof x && n == m && memcmp(x, y, n) == 0;
}

static ctn_status save(training *t, const char *path, bool writes)
{
    failing nothing = {.left = INT64_MAX};
    const ctn_state_part part = ctn_part_optim("optim", t->o);
    return writes ? ctn_state_save(path, 1, &part) : ctn_optim_visit(t->o, fails, &nothing);
}

static void saves(job *j)
{
    training whole = {0}, sharded = {0}, later = {0};
    char plain[64], own[64];
    const long long bound = (long long)sizeof(float) * LAYERS * (WIDTH + 1) * WIDTH / 2 * j->size;
    long long before;
    snprintf(plain, sizeof plain, "plain-%d-%d.safetensors", j->size, j->rank);
    snprintf(own, sizeof own, "sharded-%d-%d.safetensors", j->size, j->rank);
    TRY(j, begin_training(&whole, j, 0));
    TRY(j, begin_training(&sharded, j, 1));
    for (int s = 0; s < 5; s++) {
        TRY(j, step(&whole, s));
        TRY(j, step(&sharded, s));
    }
    TRY(j, save(&whole, plain, true));
    TRY(j, ctn_dist_values(sharded.o)); /* wait for what is in flight */
    TRY(j, count_from_here(j, &before));
    TRY(j, save(&sharded, own, j->rank == 0));
    TRY(j, ctn_comm_barrier(j->c));
    CHECK(j, peak - before < bound, "saving takes %lld bytes, half a pool each is %lld",
          (long long)peak - before, bound);
    CHECK(j, j->rank != 0 || same_files(plain, own), "the file differs from the unsharded one's");
    TRY(j, ctn_comm_barrier(j->c));

    TRY(j, begin_training(&later, j, 1));
    const ctn_state_part part = ctn_part_optim("optim", later.o);
    snprintf(plain, sizeof plain, "sharded-%d-0.safetensors", j->size);
    TRY(j, count_from_here(j, &before));
    TRY(j, ctn_state_load(plain, 1, &part));
    TRY(j, ctn_comm_barrier(j->c));
    CHECK(j, peak - before < bound, "loading takes %lld bytes, half a pool each is %lld",
          (long long)peak - before, bound);
    TRY(j, save(&later, own, j->rank != 0)); /* any rank may write */
    CHECK(j, j->rank == 0 || same_files(plain, own), "the file differs when it is saved again");

    failing f = {.left = j->rank == 0 ? 11 : INT64_MAX};
    const ctn_status st = ctn_optim_visit(later.o, fails, &f);
    CHECK(j, st == (j->rank == 0 ? CTN_EIO : CTN_OK), "status %d", (int)st);
    CHECK(j, j->rank != 0 || f.calls == 12, "called %lld times", (long long)f.calls);
    ctn_error_clear();
    TRY(j, step(&later, 5)); /* the group still works */
    TRY(j, ctn_dist_values(later.o));
    end_training(&whole);
    end_training(&sharded);
    end_training(&later);
}

static void test_one_array_at_a_time(void **state)
{
    (void)state;
    OK(ctn_set_allocator(&(ctn_allocator){counted_alloc, counted_release, NULL}));
    for (int size = 2; size <= MOST; size++) on_ranks(size, CTN_MODE_PLANNED, saves, NULL);
    OK(ctn_set_allocator(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_array_at_a_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
