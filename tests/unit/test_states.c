/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking at saved states: what is listed, every damage is found, pruning never removes the last
 * intact state, and exported weights load into a new net with the same bits.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "train_case.h"

#ifndef CTN_HAVE_YYJSON
int main(void)
{
    printf("skipped: built without yyjson\n");
    return 77;
}
#else

enum { STATES = 3, STEPS = 4 };
static const train_opt options = {.dropout = 0.4};

static const char *state_path(const char *dir, int number)
{
    static char path[2][128];
    static int k;
    k = !k;
    snprintf(path[k], sizeof path[k], "%s/%09d", dir, number);
    return path[k];
}

/* A folder with STATES states, STEPS steps apart. The trainer keeps only two, so that each is
 * saved to a folder of its own and moved. */
static void make_states(const char *dir, train_case *c)
{
    assert_int_equal(mkdir(dir, 0777), 0);
    train_case_new(c, &options);
    for (int i = 0; i < STATES; i++) {
        ctn_trainer *tr = NULL;
        char alone[64];
        OK(ctn_trainer_new(&tr, c->optim, c->loader, train_loss, c,
                           CTN_OPT(ctn_trainer_opt, .net = c->net, .iterations = STEPS * (i + 1))));
        if (i > 0) {
            snprintf(alone, sizeof alone, "%s-%d", dir, i - 1);
            assert_int_equal(rename(state_path(dir, i - 1), state_path(alone, 0)), 0);
            OK(ctn_trainer_load(tr, alone));
            assert_int_equal(rename(state_path(alone, 0), state_path(dir, i - 1)), 0);
        }
        OK(ctn_trainer_run(tr));
        snprintf(alone, sizeof alone, "%s-%d", dir, i);
        OK(ctn_trainer_save(tr, alone));
        assert_int_equal(rename(state_path(alone, 0), state_path(dir, i)), 0);
        ctn_trainer_free(tr);
    }
}

/* Flips a bit of a file. at -1: in its middle. Returns the size of the file. */
static int64_t flip(const char *state, const char *file, int64_t at)
{
    char path[256], byte;
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", state, file);
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && fstat(fd, &info) == 0);
    if (at < 0) at = info.st_size / 2;
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 8;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
    return info.st_size;
}

static void damage(const char *state, const char *file)
{
    flip(state, file, -1);
}

typedef struct {
    int n;
    int64_t number[STATES], iteration[STATES];
    char problem[256];
} listed;

static ctn_status list(void *user, const ctn_state_info *s)
{
    listed *l = user;
    l->number[l->n] = s->number;
    l->iteration[l->n++] = s->iteration;
    assert_int_equal(s->struct_size, sizeof *s);
    assert_non_null(strstr(s->path, "0000"));
    if (s->problem) {
        assert_true(s->bytes == -1 && s->ranks == -1 && s->arrays == -1);
        snprintf(l->problem, sizeof l->problem, "%s", s->problem);
        return CTN_OK;
    }
    assert_int_equal(s->ranks, 1);
    assert_int_equal(s->files, 3); /* arrays, trainer.txt and decisions.txt */
    assert_true(s->arrays > 8 && s->bytes > 500 && s->samples > 0);
    assert_int_equal(s->epoch, s->iteration / 6);
    return CTN_OK;
}

static ctn_status stop(void *user, const ctn_state_info *s)
{
    (void)s;
    ++*(int *)user;
    return CTN_END;
}

static void test_visit(void **state)
{
    (void)state;
    train_case c;
    listed l = {0};
    int calls = 0;
    make_states("visit", &c);
    OK(ctn_states_visit("visit", list, &l));
    assert_int_equal(l.n, STATES);
    for (int i = 0; i < STATES; i++) {
        assert_int_equal(l.number[i], i);
        assert_int_equal(l.iteration[i], STEPS * (i + 1));
    }
    assert_int_equal(ctn_states_visit("visit", stop, &calls), CTN_END);
    assert_int_equal(calls, 1);
    damage(state_path("visit", 1), "manifest.txt");
    l = (listed){0};
    OK(ctn_states_visit("visit", list, &l));
    assert_int_equal(l.n, STATES);
    assert_true(l.iteration[1] == -1 && l.iteration[2] == 3 * STEPS);
    assert_non_null(strstr(l.problem, "manifest.txt is damaged"));
    FAILS(ctn_states_visit("missing", list, &l), CTN_ENOTFOUND, "no folder missing");
    FAILS(ctn_states_visit("visit", NULL, NULL), CTN_EARG, "function");
    train_case_free(&c);
}

typedef struct {
    int n;
    char text[512];
} heard;

static ctn_status hear(void *user, const char *text)
{
    heard *h = user;
    assert_null(strchr(text, '\n'));
    snprintf(h->text, sizeof h->text, "%s", text);
    h->n++;
    return CTN_OK;
}

static void test_verify(void **state)
{
    (void)state;
    static const char *const file[] = {"state.safetensors", "trainer.txt", "manifest.txt"};
    train_case c;
    char path[256];
    make_states("verify", &c);
    for (int i = 0; i < STATES; i++) {
        heard h = {0};
        OK(ctn_state_verify(state_path("verify", i), hear, &h));
        assert_int_equal(h.n, 0);
        damage(state_path("verify", i), file[i]);
        FAILS(ctn_state_verify(state_path("verify", i), hear, &h), CTN_EFORMAT, "is damaged");
        assert_int_equal(h.n, 1);
        assert_non_null(strstr(h.text, file[i]));
        FAILS(ctn_state_verify(state_path("verify", i), NULL, NULL), CTN_EFORMAT, "is damaged");
    }
    heard both = {0};
    damage(state_path("verify", 0), "decisions.txt");
    snprintf(path, sizeof path, "%s/trainer.txt", state_path("verify", 0));
    assert_int_equal(unlink(path), 0);
    FAILS(ctn_state_verify(state_path("verify", 0), hear, &both), CTN_EFORMAT, "is damaged");
    assert_int_equal(both.n, 3);
    FAILS(ctn_state_verify("verify/7", hear, &both), CTN_ENOTFOUND, "no folder");
    train_case_free(&c);
}

typedef struct {
    int n, net;
    char name[64]; /* of the last array */
    char hash[33]; /* of net.0.weight */
} arrays;

static ctn_status count(void *user, const ctn_state_array *a)
{
    arrays *s = user;
    assert_int_equal(strlen(a->hash), 32);
    assert_true(strcmp(s->name, a->name) < 0);
    snprintf(s->name, sizeof s->name, "%s", a->name);
    s->n++;
    if (strncmp(a->name, "net.", 4) == 0) s->net++;
    if (strcmp(a->name, "net.0.weight") != 0) return CTN_OK;
    assert_true(a->dtype == CTN_F32 && a->ndim == 2);
    assert_true(a->shape[0] == 8 && a->shape[1] == WIDTH);
    snprintf(s->hash, sizeof s->hash, "%s", a->hash);
    return CTN_OK;
}

static void test_arrays(void **state)
{
    (void)state;
    train_case c;
    arrays a = {0}, b = {0};
    make_states("arrays", &c);
    OK(ctn_state_arrays(state_path("arrays", 0), count, &a));
    OK(ctn_state_arrays(state_path("arrays", 1), count, &b));
    assert_int_equal(a.net, 4);
    assert_true(a.n == b.n && a.n > 8);
    assert_string_not_equal(a.hash, b.hash);
    FAILS(ctn_state_arrays("arrays/none", count, &a), CTN_ENOTFOUND, "no folder");
    assert_int_equal(mkdir("empty", 0777), 0);
    FAILS(ctn_state_arrays("empty", count, &a), CTN_EIO, "empty/manifest.txt");
    train_case_free(&c);
}

static bool there(const char *dir, int number)
{
    return access(state_path(dir, number), F_OK) == 0;
}

static void test_prune(void **state)
{
    (void)state;
    train_case c;
    make_states("prune", &c);
    OK(ctn_states_prune("prune", STATES));
    assert_true(there("prune", 0));
    OK(ctn_states_prune("prune", 2));
    assert_true(!there("prune", 0) && there("prune", 1) && there("prune", 2));
    damage(state_path("prune", 2), "state.safetensors");
    OK(ctn_states_prune("prune", 1)); /* number 1 is the last intact one */
    assert_true(there("prune", 1) && there("prune", 2));
    damage(state_path("prune", 1), "state.safetensors");
    OK(ctn_states_prune("prune", 1)); /* none is intact */
    assert_true(!there("prune", 1) && there("prune", 2));
    FAILS(ctn_states_prune("prune", 0), CTN_EARG, "expected 1 or more");
    FAILS(ctn_states_prune("gone", 1), CTN_ENOTFOUND, "no folder gone");
    train_case_free(&c);
}

/* Names of states that lead elsewhere: neither the link nor what it leads to is removed. */
static void test_prune_links(void **state)
{
    (void)state;
    train_case c;
    ctn_trainer *tr = NULL;
    make_states("links", &c);
    assert_int_equal(rename(state_path("links", 0), "archive"), 0);
    assert_int_equal(symlink("../archive", state_path("links", 0)), 0);
    assert_int_equal(symlink("../archive", "links/unfinished-1"), 0);
    assert_int_equal(symlink("../archive", "links/removed-000000007"), 0);
    assert_int_equal(mkdir("links/unfinished-notes", 0777), 0);
    OK(ctn_trainer_new(&tr, c.optim, c.loader, train_loss, &c,
                       CTN_OPT(ctn_trainer_opt, .net = c.net, .iterations = STEPS)));
    OK(ctn_trainer_save(tr, "links"));
    ctn_trainer_free(tr);
    FAILS(ctn_states_prune("links", 1), CTN_EIO, "and no link");
    OK(ctn_state_verify("archive", NULL, NULL));
    assert_true(access("links/unfinished-1", F_OK) == 0 &&
                access(state_path("links", 0), F_OK) == 0);
    assert_int_equal(access("links/unfinished-notes", F_OK), 0);
    train_case_free(&c);
}

/* What killed processes leave behind has no number, and the next save removes it. */
static void test_leftovers(void **state)
{
    (void)state;
    static const char *const left[] = {"left", "left/unfinished-1", "left/removed-000000003"};
    train_case c;
    ctn_trainer *tr = NULL;
    listed l = {0};
    for (int i = 0; i < 3; i++) assert_int_equal(mkdir(left[i], 0777), 0);
    OK(ctn_states_visit("left", list, &l));
    assert_int_equal(l.n, 0);
    train_case_new(&c, &options);
    OK(ctn_trainer_new(&tr, c.optim, c.loader, train_loss, &c,
                       CTN_OPT(ctn_trainer_opt, .net = c.net, .iterations = 1)));
    OK(ctn_trainer_run(tr));
    OK(ctn_trainer_save(tr, "left"));
    assert_true(there("left", 0));
    for (int i = 1; i < 3; i++) assert_int_not_equal(access(left[i], F_OK), 0);
    ctn_trainer_free(tr);
    train_case_free(&c);
}

static void test_export(void **state)
{
    (void)state;
    train_case c, other;
    float w[2][WEIGHTS];
    make_states("export", &c);
    OK(ctn_state_export(state_path("export", STATES - 1), "exported.safetensors"));
    train_case_new(&other, &options);
    OK(ctn_weights_load(other.net, "exported.safetensors", NULL));
    train_weights(&c, w[0]);
    train_weights(&other, w[1]);
    assert_memory_equal(w[0], w[1], sizeof w[0]);
    FAILS(ctn_state_export("export/none", "x"), CTN_ENOTFOUND, "no folder");
    FAILS(ctn_state_export(state_path("export", 1), "none/x"), CTN_EIO, "none/x");
    train_case_free(&other);
    train_case_free(&c);
}

/* Damage anywhere in the file: an export fails, or the damage is not in the net. */
static void test_export_damaged(void **state)
{
    (void)state;
    train_case c;
    int net = 0, head = 0;
    make_states("broken", &c);
    const char *path = state_path("broken", 0), *file = "state.safetensors";
    for (int64_t at = 0, size = 1; at < size; at += 61) {
        size = flip(path, file, at);
        ctn_error_clear();
        if (ctn_state_export(path, "out.safetensors") == CTN_OK) {
            assert_int_equal(unlink("out.safetensors"), 0);
        } else if (strstr(ctn_error_message(), "is damaged in broken/000000000")) {
            net++;
        } else {
            assert_int_equal(ctn_error_status(), CTN_EFORMAT);
            head++;
        }
        assert_int_not_equal(access("out.safetensors", F_OK), 0);
        flip(path, file, at);
    }
    ctn_error_clear();
    assert_true(net > 0 && head > 0);
    train_case_free(&c);
}

/* ---- without memory -------------------------------------------------------------------------- */

static int64_t left = -1; /* allocations that still succeed; < 0: all do */
static int64_t live;      /* allocations that have not been freed */

static void *alloc(void *user, size_t bytes, size_t align)
{
    (void)user;
    if (left == 0) return NULL;
    if (left > 0) left--;
    void *p = NULL;
    if (posix_memalign(&p, align < sizeof p ? sizeof p : align, bytes ? bytes : 1) != 0)
        return NULL;
    live++;
    return p;
}

static void release(void *user, void *p)
{
    (void)user;
    if (p) live--;
    free(p);
}

static ctn_status skip_state(void *user, const ctn_state_info *s)
{
    (void)user, (void)s;
    return CTN_OK;
}

static ctn_status skip_array(void *user, const ctn_state_array *a)
{
    (void)user, (void)a;
    return CTN_OK;
}

static ctn_status look_at(const char *dir, int what)
{
    switch (what) {
    case 0: return ctn_states_visit(dir, skip_state, NULL);
    case 1: return ctn_state_verify(state_path(dir, 0), NULL, NULL);
    case 2: return ctn_state_arrays(state_path(dir, 0), skip_array, NULL);
    case 3: return ctn_state_export(state_path(dir, 0), "memory.safetensors");
    default: return ctn_states_prune(dir, 1);
    }
}

/* Every allocation fails once: nothing is leaked, and no state is lost. */
static void test_no_memory(void **state)
{
    (void)state;
    train_case c;
    const ctn_allocator a = {alloc, release, NULL};
    make_states("memory", &c);
    train_case_free(&c);
    OK(ctn_set_allocator(&a));
    for (int what = 0; what < 5; what++) {
        bool failed = true;
        for (int64_t n = 0; failed; n++) {
            ctn_error_clear();
            left = n;
            const ctn_status st = look_at("memory", what);
            failed = left == 0;
            left = -1;
            if (failed && st != CTN_OK) assert_int_equal(st, CTN_ENOMEM);
            if (!failed) assert_int_equal(st, CTN_OK);
            assert_int_equal(live, 0);
            assert_true(there("memory", STATES - 1));
        }
    }
    OK(ctn_set_allocator(NULL));
    assert_false(there("memory", 0));
}

static int use_new_folder(void **state)
{
    static char dir[] = "states.XXXXXX";
    (void)state;
    return mkdtemp(dir) ? chdir(dir) : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_visit),       cmocka_unit_test(test_verify),
        cmocka_unit_test(test_arrays),      cmocka_unit_test(test_prune),
        cmocka_unit_test(test_prune_links), cmocka_unit_test(test_leftovers),
        cmocka_unit_test(test_export),      cmocka_unit_test(test_export_damaged),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, use_new_folder, NULL);
}
#endif
