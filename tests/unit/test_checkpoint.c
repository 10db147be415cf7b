/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of several ranks, with threads as ranks: saved by 4 and loaded by 1, 2, 3, 4 and 7,
 * sharded or not, in one file or in several, with the same values everywhere. A rank that cannot
 * write is named on all ranks, and damage is found wherever it is. Every call that writes to the
 * disk fails once.
 * Labels: threads
 */
#define _GNU_SOURCE
#include "ranks.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catena/catena.h>

#include "io/checkpoint/checkpoint.h"
#include "support/check.h"

#ifndef CTN_HAVE_YYJSON
int main(void)
{
    printf("skipped: built without yyjson\n");
    return 77;
}
#else

/* ---- calls that fail ------------------------------------------------------------------------- */

static atomic_int left = -1;  /* calls until one fails; -1: none fails */
static atomic_int failed_as;  /* its errno; 0: it has not failed yet */
static atomic_bool all_after; /* all later calls fail too, as on a full disk */

static bool fails_now(int error)
{
    const int k = atomic_load(&left);
    if (k < 0) return false;
    if (k > 0) {
        atomic_fetch_sub(&left, 1);
        return false;
    }
    if (atomic_load(&failed_as) && !atomic_load(&all_after)) return false;
    atomic_store(&failed_as, error);
    errno = error;
    return true;
}

#define REAL(name, type) ((type)dlsym(RTLD_NEXT, name))

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    if (fails_now(ENOSPC)) return -1;
    return REAL("pwrite", ssize_t(*)(int, const void *, size_t, off_t))(fd, p, n, at);
}

int fsync(int fd)
{
    return fails_now(EIO) ? -1 : REAL("fsync", int (*)(int))(fd);
}

int rename(const char *from, const char *to)
{
    return fails_now(EDQUOT) ? -1 : REAL("rename", int (*)(const char *, const char *))(from, to);
}

int mkdir(const char *path, mode_t mode)
{
    return fails_now(EROFS) ? -1 : REAL("mkdir", int (*)(const char *, mode_t))(path, mode);
}

/* ---- a training ------------------------------------------------------------------------------ */

enum { LAYERS = 5, WIDTH = 96, ROWS = 4, SAVERS = 4 };

typedef struct {
    ctn_context *ctx;
    ctn_module *net;
    ctn_optim *o;
    ctn_state_part part[3];
} training;

static ctn_status start_training(training *t, const job *j, int shard, uint64_t seed)
{
    ctn_module *m[LAYERS] = {0};
    CTN_TRY(ctn_context_new(&t->ctx, CTN_OPT(ctn_context_opt, .threads = 1, .seed = seed)));
    for (int i = 0; i < LAYERS; i++) CTN_TRY(ctn_linear_new(&m[i], t->ctx, WIDTH, WIDTH, NULL));
    CTN_TRY(ctn_sequential_new(&t->net, t->ctx, LAYERS, m));
    CTN_TRY(ctn_adam_new(&t->o, ctn_params(t->net), CTN_OPT(ctn_adam_opt, .lr = 0.01)));
    t->part[0] = ctn_part_module("net", t->net);
    t->part[1] = ctn_part_optim("optim", t->o);
    t->part[2] = ctn_part_context("context", t->ctx);
    if (j->size == 1) return CTN_OK;
    return ctn_dist_optim(t->o, j->c, CTN_OPT(ctn_dist_opt, .shard = shard, .bucket = 3000));
}

static void end_training(training *t)
{
    ctn_optim_free(t->o);
    ctn_module_free(t->net);
    ctn_context_free(t->ctx);
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

typedef struct {
    ctn__hash128 hash;
    int64_t arrays;
} sum;

static ctn_status add(void *user, const char *name, ctn_dtype type, int ndim, const int64_t *dim,
                      void *data)
{
    sum *s = user;
    size_t bytes = ctn_dtype_size(type);
    for (int i = 0; i < ndim; i++) bytes *= (size_t)dim[i];
    const ctn__hash128 part[3] = {s->hash, ctn__hash(name, strlen(name)), ctn__hash(data, bytes)};
    s->hash = ctn__hash(part, sizeof part);
    s->arrays++;
    return CTN_OK;
}

/* All values of the net and the optimizer, whole on every rank. */
static ctn_status sum_up(training *t, const job *j, sum *s)
{
    if (j->size > 1) CTN_TRY(ctn_dist_values(t->o));
    CTN_TRY(ctn_module_visit(t->net, add, s));
    return ctn_optim_visit(t->o, add, s);
}

static struct {
    int shard;       /* of the ranks that save or load */
    const char *dir; /* of the checkpoints */
    sum saved;
} now;

static ctn_status save(const job *j, training *t, const char *dir)
{
    ctn__saver *s = NULL;
    ctn__ckpt_text text[CTN__CKPT_TEXTS] = {{.name = "trainer.txt"}};
    if (j->rank == 0) ctn__text_add(&text[0].text, "a text\n");
    CTN_TRY(ctn__saver_new(&s, j->size > 1 ? j->c : NULL, dir, 2));
    ctn_status st = ctn_dist_values(t->o);
    if (st == CTN_OK) st = ctn__saver_begin(s, 3, t->part, j->rank == 0, text);
    if (st == CTN_OK) st = ctn__saver_vote(s);
    if (st == CTN_OK) st = ctn__saver_wait(s);
    ctn__saver_free(s);
    return st;
}

static void saves(job *j)
{
    training t = {0};
    sum s = {0};
    TRY(j, start_training(&t, j, now.shard, 5));
    for (int i = 0; i < 4; i++) TRY(j, step(&t, i));
    TRY(j, sum_up(&t, j, &s));
    TRY(j, save(j, &t, now.dir));
    if (j->rank == 0) now.saved = s;
    TRY(j, step(&t, 4)); /* the group still works */
    end_training(&t);
}

static void loads(job *j)
{
    training t = {0};
    sum s = {0};
    ctn__ckpt *k = NULL;
    char *text = NULL;
    TRY(j, start_training(&t, j, now.shard, 7));
    TRY(j, ctn__ckpt_open(&k, j->size > 1 ? j->c : NULL, now.dir));
    TRY(j, ctn__ckpt_read(k, "trainer.txt", &text));
    CHECK(j, strcmp(text, "a text\n") == 0, "the text is '%s'", text);
    ctn__free(text);
    TRY(j, ctn__ckpt_load(k, 3, t.part));
    ctn__ckpt_close(k);
    TRY(j, sum_up(&t, j, &s));
    CHECK(j, s.arrays == now.saved.arrays && s.hash.lo == now.saved.hash.lo,
          "%lld arrays with another hash", (long long)s.arrays);
    TRY(j, step(&t, 4));
    end_training(&t);
}

static int count_files(const char *dir)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (const struct dirent *e; d && (e = readdir(d)) != NULL;)
        n += strstr(e->d_name, ".safetensors") && !strstr(e->d_name, ".json");
    if (d) closedir(d);
    return n;
}

static void use_parts(int mb)
{
    char text[16];
    snprintf(text, sizeof text, "%d", mb);
    setenv("CATENA_CHECKPOINT_MB", text, 1);
}

static void test_any_ranks(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 3, 4, 7};
    for (int k = 0; k < 4; k++) {
        char dir[64], first[96];
        use_parts(k / 2 ? 0 : 64);
        snprintf(dir, sizeof dir, "any-%d", k);
        snprintf(first, sizeof first, "%s/000000000", dir);
        now.dir = dir;
        now.shard = k % 2;
        on_ranks(SAVERS, CTN_MODE_PLANNED, saves, NULL);
        assert_int_equal(count_files(first), k / 2 ? SAVERS : 1);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (now.shard = 0; now.shard < 2; now.shard++)
                on_ranks(sizes[i], CTN_MODE_PLANNED, loads, NULL);
    }
}

static ctn_status one_byte(void *object, ctn_state_fn fn, void *user)
{
    return fn(user, "byte", CTN_U8, 0, NULL, object);
}

static void saves_a_byte(job *j)
{
    training t = {0};
    ctn__ckpt *k = NULL;
    unsigned char byte = 7;
    TRY(j, start_training(&t, j, 0, 5));
    t.part[2] = (ctn_state_part){"p", one_byte, &byte};
    TRY(j, save(j, &t, "byte"));
    byte = 0;
    TRY(j, ctn__ckpt_open(&k, NULL, "byte"));
    TRY(j, ctn__ckpt_load(k, 3, t.part));
    ctn__ckpt_close(k);
    CHECK(j, byte == 7, "the byte is %d", byte);
    end_training(&t);
}

/* The smallest elements are written as well. */
static void test_bytes(void **state)
{
    (void)state;
    on_ranks(1, CTN_MODE_PLANNED, saves_a_byte, NULL);
}

/* A resumed training must not choose its allreduce again, because another algorithm adds gradients
 * in another order. */
static void chooses_once(job *j)
{
    training t = {0};
    char text[1000];
    TRY(j, ctn_comm_set_algorithm(j->c, "auto"));
    TRY(j, start_training(&t, j, 0, 5));
    TRY(j, step(&t, 0));
    const int n = ctn_context_decisions_text(t.ctx, text, sizeof text);
    CHECK(j, n > 0 && strstr(text, "allreduce f32"), "allreduce is not in %.300s", text);
    end_training(&t);
}

static void test_allreduce_is_kept(void **state)
{
    (void)state;
    setenv("CATENA_TUNE", "0", 1);
    on_ranks(2, CTN_MODE_PLANNED, chooses_once, NULL);
    unsetenv("CATENA_TUNE");
}

/* ---- failures -------------------------------------------------------------------------------- */

static void cannot_save(job *j)
{
    training t = {0};
    char path[96];
    TRY(j, start_training(&t, j, 0, 5));
    TRY(j, step(&t, 0));
    const ctn_status st = save(j, &t, now.dir);
    CHECK(j, st == CTN_EIO, "status %d", (int)st);
    CHECK(j, strstr(ctn_error_message(), "cannot"), "%s", ctn_error_message());
    ctn_error_clear();
    snprintf(path, sizeof path, "%s/000000000", now.dir);
    CHECK(j, access(path, F_OK) != 0, "a checkpoint appeared");
    TRY(j, step(&t, 1));
    end_training(&t);
}

/* A file where a folder should be. */
static void test_cannot_save(void **state)
{
    (void)state;
    use_parts(0);
    now.dir = "blocked";
    close(open("blocked", O_CREAT | O_WRONLY, 0666));
    on_ranks(3, CTN_MODE_PLANNED, cannot_save, NULL);
    unlink("blocked");
}

static ctn_status one_array(void *object, ctn_state_fn fn, void *user)
{
    float value = 1;
    return fn(user, object, CTN_F32, 0, NULL, &value);
}

/* A whole name with prefix and dot has at most 1023 bytes, and fits into one column of a list. */
static void unusual_names(job *j)
{
    training t = {0};
    char name[1024];
    now.dir = "names";
    TRY(j, start_training(&t, j, 0, 5));
    for (int k = 0; k < 4; k++) {
        memset(name, 'n', sizeof name);
        name[k == 1 ? 1022 : 1021] = 0; /* and "p." before it */
        if (k > 1) name[7] = k == 2 ? '\t' : '\n';
        t.part[2] = (ctn_state_part){"p", one_array, name};
        const ctn_status st = save(j, &t, now.dir);
        CHECK(j, st == (k == 0 ? CTN_OK : CTN_EARG), "name %d: status %d", k, (int)st);
        CHECK(j, k == 0 || strstr(ctn_error_message(), "is longer than 1024 bytes, or has a tab"),
              "%s", ctn_error_message());
        ctn_error_clear();
    }
    end_training(&t);
}

static void test_unusual_names(void **state)
{
    (void)state;
    on_ranks(1, CTN_MODE_PLANNED, unusual_names, NULL);
}

static char said[4096];

static void hear(void *user, const char *text)
{
    (void)user;
    snprintf(said, sizeof said, "%s", text);
}

/* A bit flipped in each file in turn: it is named, and the older checkpoint is loaded. */
static void test_damage(void **state)
{
    (void)state;
    static const char *const file[] = {"state-00001-of-00004.safetensors",
                                       "state-00003-of-00004.safetensors",
                                       "state.safetensors.index.json", "trainer.txt",
                                       "manifest.txt"};
    char dir[64], path[256];
    use_parts(0);
    now.dir = dir;
    now.shard = 1;
    ctn_set_log(hear, NULL);
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        struct stat info;
        char byte;
        snprintf(dir, sizeof dir, "damage-%zu", i);
        on_ranks(SAVERS, CTN_MODE_PLANNED, saves, NULL);
        on_ranks(SAVERS, CTN_MODE_PLANNED, saves, NULL);
        snprintf(path, sizeof path, "%s/000000001/%s", dir, file[i]);
        const int fd = open(path, O_RDWR);
        assert_true(fd >= 0 && fstat(fd, &info) == 0);
        assert_int_equal(pread(fd, &byte, 1, info.st_size / 2), 1);
        byte ^= 8;
        assert_int_equal(pwrite(fd, &byte, 1, info.st_size / 2), 1);
        close(fd);
        said[0] = 0;
        on_ranks(2, CTN_MODE_PLANNED, loads, NULL);
        assert_non_null(strstr(said, file[i]));
        if (i < 2) assert_non_null(strstr(said, "damaged: "));
        snprintf(path, sizeof path, "%s/damaged-000000001", dir);
        assert_int_equal(access(path, F_OK), 0);
    }
    ctn_set_log(NULL, NULL);
}

/* Every call that writes fails in turn, alone or with all that follow. A state appears whole or not
 * at all, and the next attempt works. */
static void faulty(job *j)
{
    training t = {0};
    char path[96];
    const int number = *(int *)j->arg;
    TRY(j, start_training(&t, j, 0, 5));
    TRY(j, step(&t, 0));
    TRY(j, ctn_comm_barrier(j->c));
    const ctn_status st = save(j, &t, now.dir);
    TRY(j, ctn_comm_barrier(j->c));
    const int error = atomic_load(&failed_as);
    if (j->rank == 0) atomic_store(&left, -1);
    CHECK(j, st == CTN_OK || (st == CTN_EIO && error), "status %d, errno %d", (int)st, error);
    CHECK(j, st == CTN_OK || all_after || strstr(ctn_error_message(), strerror(error)), "%s",
          ctn_error_message());
    snprintf(path, sizeof path, "%s/%09d", now.dir, number);
    /* A folder may have its number although the parent could not be synced. */
    CHECK(j, st < 0 || access(path, F_OK) == 0, "%s is missing", path);
    ctn_error_clear();
    TRY(j, ctn_comm_barrier(j->c));
    TRY(j, save(j, &t, now.dir));
    end_training(&t);
}

static void test_faults(void **state)
{
    (void)state;
    use_parts(0);
    now.dir = "faults";
    now.shard = 0;
    on_ranks(2, CTN_MODE_PLANNED, saves, NULL);
    int calls = 0;
    for (int after = 0; after < 2; after++)
        for (int n = 0;; n++) {
            int number = 0;
            for (DIR *d = opendir(now.dir); d;) { /* the next number */
                const struct dirent *e = readdir(d);
                const int k = e ? atoi(e->d_name) : 0;
                if (k >= number && e && e->d_name[0] == '0') number = k + 1;
                if (!e) closedir(d), d = NULL;
            }
            atomic_store(&failed_as, 0);
            atomic_store(&all_after, after);
            atomic_store(&left, n);
            on_ranks(2, CTN_MODE_PLANNED, faulty, &number);
            atomic_store(&left, -1);
            if (atomic_load(&failed_as) == 0) break;
            calls++;
        }
    print_message("%d failing calls\n", calls);
    assert_true(calls > 30);
    on_ranks(2, CTN_MODE_PLANNED, saves, NULL);
    on_ranks(3, CTN_MODE_PLANNED, loads, NULL);
}

/* Lines cost work: reading a file, and finding the file of an array. */
static void test_repeated_lines(void **state)
{
    static const struct {
        const char *file[3], *of; /* of: file of an array after the last of them */
        const char *message;
    } cases[] = {
        {{"a", "b"}, "b", NULL},
        {{"a", "b"}, "a", "has a line that cannot be read"},
        {{NULL}, "a", "has a line that cannot be read"},
        {{"a", "b", "a"}, "a", "lists a file twice"},
    };
    const ctn__hash128 hash = {1, 2};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ctn__text lines = {0}, all = {0};
        ctn__manifest m = {0};
        for (int k = 0; k < 3 && cases[i].file[k]; k++)
            ctn__manifest_add_file(&lines, cases[i].file[k], 7, hash);
        ctn__manifest_add_array(&lines, "x", CTN_F32, 1, (int64_t[]){2}, cases[i].of, hash);
        OK(ctn__manifest_finish(&lines, &all));
        const ctn_status st = ctn__manifest_parse(&m, "folder", all.s);
        if (cases[i].message) assert_fails(st, CTN_EFORMAT, cases[i].message);
        else OK(st);
        ctn__manifest_free(&m);
        ctn__text_free(&lines);
        ctn__text_free(&all);
    }
}

static ctn_status keep_bytes(void *user, const ctn_state_info *s)
{
    assert_null(s->problem);
    *(int64_t *)user = s->bytes;
    return CTN_OK;
}

/* Sizes that a manifest claims are added up without an overflow. */
static void test_sum_of_sizes(void **state)
{
    (void)state;
    const ctn__text counts = {.s = (char *)(uintptr_t)"\nranks\t1 1 0\ncount\t1 1 1\n", .n = 25};
    const ctn__hash128 hash = {1, 2};
    ctn__text lines = {0}, all = {0};
    int64_t bytes = 0;
    for (int i = 0; i < 3; i++)
        ctn__manifest_add_file(&lines, (const char *[]){"a", "b", "c"}[i],
                               i ? INT64_MAX : UINT64_MAX, hash);
    OK(ctn__manifest_finish(&lines, &all));
    assert_int_equal(mkdir("sizes", 0777), 0);
    assert_int_equal(mkdir("sizes/000000000", 0777), 0);
    OK(ctn__numbered_write("sizes/000000000", CTN__CKPT_MANIFEST, &all));
    OK(ctn__numbered_write("sizes/000000000", "trainer.txt", &counts));
    OK(ctn_states_visit("sizes", keep_bytes, &bytes));
    assert_true(bytes == INT64_MAX);
    ctn__text_free(&lines);
    ctn__text_free(&all);
}

static int use_new_folder(void **state)
{
    static char dir[] = "checkpoint.XXXXXX";
    (void)state;
    return mkdtemp(dir) ? chdir(dir) : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_sum_of_sizes),
        cmocka_unit_test(test_any_ranks),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_allreduce_is_kept),
        cmocka_unit_test(test_cannot_save),
        cmocka_unit_test(test_unusual_names),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_repeated_lines),
    };
    return cmocka_run_group_tests(tests, use_new_folder, NULL);
}
#endif
