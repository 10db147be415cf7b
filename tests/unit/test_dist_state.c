/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of a network whose parts are on different ranks, with threads as ranks: a chain that
 * is interrupted and resumed ends with bitwise the same weights, a damaged checkpoint is passed
 * over, and what does not fit is refused on all ranks.
 * Labels: threads
 */
#include <dirent.h>

#include "ranks.h"

#include "base/base.h"
#include "support/folder.h"
#include "tensor/tensor.h"

enum { ROWS = 8, WIDE = 6, STEPS = 6, STOP = 3 };

/* One stage of a pipeline, with an optimizer of its own. */
typedef struct {
    ctn_module *part;
    ctn_optim *optim;
    ctn_dist_chain *chain;
} stage;

static void stage_free(stage *s)
{
    ctn_dist_chain_free(s->chain);
    ctn_optim_free(s->optim);
    ctn_module_free(s->part);
}

/* Rank 0 sends to rank 1 and so on; the last one has the loss. Stages have different widths. */
static void stage_new(job *j, stage *s)
{
    ctn_module *m[2] = {0};
    const bool first = j->rank == 0, last = j->rank == j->size - 1;
    *s = (stage){0};
    TRY(j, ctn_linear_new(&m[0], j->ctx, first ? 2 : WIDE + j->rank, last ? 1 : WIDE + 1 + j->rank,
                          NULL));
    TRY(j, ctn_activation_new(&m[1], j->ctx, ctn_tanh_at));
    TRY(j, ctn_sequential_new(&s->part, j->ctx, 2, m));
    TRY(j, ctn_adam_new(&s->optim, ctn_params(s->part), CTN_OPT(ctn_adam_opt, .lr = 0.02)));
    TRY(j, ctn_dist_chain_new(&s->chain, j->ctx, j->c));
    TRY(j, ctn_dist_chain_add(s->chain, s->part));
    if (!first)
        TRY(j, ctn_dist_chain_recv(s->chain, j->rank - 1, CTN_F32, CTN_SHAPE(-1, WIDE + j->rank)));
    if (!last) TRY(j, ctn_dist_chain_send(s->chain, j->rank + 1));
}

static void run_steps(job *j, const stage *s, int from, int to)
{
    float x[ROWS * 2], t[ROWS];
    for (int k = from; k < to; k++) {
        for (int i = 0; i < ROWS; i++) {
            x[2 * i] = (float)((i + k) % 5) / 5;
            x[2 * i + 1] = (float)((i * k) % 7) / 7;
            t[i] = x[2 * i] * x[2 * i + 1];
        }
        TRY(j, ctn_scope_begin(j->ctx));
        ctn_tensor *in = j->rank == 0 ? ctn_input(j->ctx, x, CTN_F32, CTN_SHAPE(ROWS, 2)) : NULL;
        ctn_tensor *y = ctn_dist_chain_call(s->chain, in, ROWS);
        if (j->rank == j->size - 1)
            y = ctn_mean_squared_error(y, ctn_input(j->ctx, t, CTN_F32, CTN_SHAPE(ROWS, 1)),
                                       CTN_MEAN);
        TRY(j, ctn_backward(s->optim, y));
        TRY(j, ctn_optim_step(s->optim));
        TRY(j, ctn_scope_end(j->ctx));
    }
}

typedef struct {
    float w[ROOM][2][WIDE * WIDE * 4]; /* of each rank: weight and bias */
} weights;

static void read_weights(job *j, const stage *s, weights *to)
{
    const ctn_vars v = ctn_params(s->part);
    for (int i = 0; i < v.n; i++)
        TRY(j, ctn_var_get(v.var[i], to->w[j->rank][i],
                           (size_t)ctn__count(ctn_var_desc(v.var[i])) * sizeof(float)));
}

typedef struct {
    weights whole, parts;
} resume_case;

static void parts_of(job *j, const stage *s, ctn_state_part p[3])
{
    p[0] = ctn_part_module("net", s->part);
    p[1] = ctn_part_optim("optim", s->optim);
    p[2] = ctn_part_context("context", j->ctx);
}

static void run_resumed(job *j)
{
    resume_case *c = j->arg;
    stage s;
    ctn_state_part p[3];
    stage_new(j, &s);
    parts_of(j, &s, p);
    run_steps(j, &s, 0, STOP);
    TRY(j, ctn_dist_state_save(j->c, "chain", 3, p));
    run_steps(j, &s, STOP, STEPS);
    read_weights(j, &s, &c->whole);
    stage_free(&s);
    stage_new(j, &s);
    parts_of(j, &s, p);
    run_steps(j, &s, 0, 1); /* other values than those that are loaded */
    TRY(j, ctn_dist_state_load(j->c, "chain", 3, p));
    run_steps(j, &s, STOP, STEPS);
    read_weights(j, &s, &c->parts);
    stage_free(&s);
}

static void test_resume(void **state)
{
    (void)state;
    static resume_case c;
    for (int size = 1; size <= 3; size++) {
        memset(&c, 0, sizeof c);
        remove_all("chain");
        on_ranks(size, CTN_MODE_PLANNED, run_resumed, &c);
        assert_memory_equal(&c.whole, &c.parts, sizeof c.whole);
        assert_true(c.whole.w[size - 1][0][0] != 0);
    }
}

/* ---- several checkpoints --------------------------------------------------------------------- */

static void run_saves(job *j)
{
    stage s;
    ctn_state_part p[3];
    weights *w = j->arg; /* after each save */
    stage_new(j, &s);
    parts_of(j, &s, p);
    for (int k = 0; k < 3; k++) {
        run_steps(j, &s, k, k + 1);
        TRY(j, ctn_dist_state_save(j->c, "chain", 3, p));
        read_weights(j, &s, &w[k]);
    }
    stage_free(&s);
}

static void run_load(job *j)
{
    stage s;
    ctn_state_part p[3];
    stage_new(j, &s);
    parts_of(j, &s, p);
    TRY(j, ctn_dist_state_load(j->c, "chain", 3, p));
    read_weights(j, &s, j->arg);
    stage_free(&s);
}

static void damage(const char *path)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, -3, SEEK_END);
    fputc('!', f);
    fclose(f);
}

static void test_damaged(void **state)
{
    (void)state;
    static weights w[3], loaded;
    int found = 0;
    char newest[300] = "", path[400];
    remove_all("chain");
    memset(w, 0, sizeof w);
    on_ranks(2, CTN_MODE_PLANNED, run_saves, w);
    DIR *d = opendir("chain");
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        found += e->d_name[0] != '.';
        if (strcmp(e->d_name, newest) > 0) snprintf(newest, sizeof newest, "%s", e->d_name);
    }
    closedir(d);
    assert_int_equal(found, 2); /* the last two are kept */
    on_ranks(2, CTN_MODE_PLANNED, run_load, &loaded);
    assert_memory_equal(&loaded, &w[2], sizeof loaded);
    snprintf(path, sizeof path, "chain/%s/state-00002-of-00002.safetensors", newest);
    damage(path); /* the file of rank 1 */
    on_ranks(2, CTN_MODE_PLANNED, run_load, &loaded);
    assert_memory_equal(&loaded, &w[1], sizeof loaded);
}

/* ---- groups that save to one folder ---------------------------------------------------------- */

enum { SAVES = 6 };

typedef struct {
    ctn_module *net;
    ctn_comm *group;
    int color;
} member;

static void member_new(job *j, member *m)
{
    m->color = j->rank / 2;
    TRY(j, ctn_comm_split(&m->group, j->c, m->color, j->rank, NULL));
    TRY(j, ctn_linear_new(&m->net, j->ctx, 2, 2, NULL));
}

/* Saves and loads; the values tell the ranks and calls apart. True: what was saved is there. */
static bool save_and_load(const job *j, const member *m, const char *dir, int call)
{
    float w[4], zero[4] = {0};
    ctn_var *v = ctn_module_find(m->net, "weight");
    const ctn_state_part part = ctn_part_module("net", m->net);
    for (int k = 0; k < 4; k++) w[k] = (float)(100 * call + 10 * j->rank + k + 1);
    if (ctn_var_set(v, w, sizeof w) < 0) return false;
    if (ctn_dist_state_save(m->group, dir, 1, &part) < 0) return false;
    if (ctn_var_set(v, zero, sizeof zero) < 0) return false;
    if (ctn_dist_state_load(m->group, dir, 1, &part) < 0) return false;
    return ctn_var_get(v, zero, sizeof zero) == CTN_OK && memcmp(w, zero, sizeof w) == 0;
}

/* In a common folder at most one group saves, and nothing of it is lost; the other one is told. */
static void run_groups(job *j)
{
    member m;
    int8_t done[ROOM] = {0}, mine = 0;
    member_new(j, &m);
    for (int i = 0; i < SAVES; i++) {
        if (save_and_load(j, &m, "groups", i)) mine++;
        else
            CHECK(j, strstr(ctn_error_message(), "another group of ranks of this job"), "%s",
                  ctn_error_message());
        ctn_error_clear();
        CHECK(j, save_and_load(j, &m, m.color ? "group1" : "group0", i), "own folder: %s",
              ctn_error_message());
    }
    TRY(j, ctn_comm_allgather(j->c, &mine, 1, done));
    CHECK(j, done[0] == done[1] && done[2] == done[3] && (!done[0] || !done[2]), "saved %d and %d",
          done[0], done[2]);
    ctn_comm_free(m.group);
    ctn_module_free(m.net);
}

/* The folder of an earlier job may be used by any group. */
static void run_later_group(job *j)
{
    member m;
    member_new(j, &m);
    if (m.color == 1)
        for (int i = 0; i < 2; i++)
            CHECK(j, save_and_load(j, &m, "groups", i), "%s", ctn_error_message());
    ctn_comm_free(m.group);
    ctn_module_free(m.net);
}

static void test_groups(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        remove_all("groups");
        remove_all("group0");
        remove_all("group1");
        on_ranks(4, CTN_MODE_PLANNED, run_groups, NULL);
        on_ranks(4, CTN_MODE_PLANNED, run_later_group, NULL);
    }
}

/* ---- what is refused ------------------------------------------------------------------------- */

#define REFUSED(j, call, want, part)                                                      \
    do {                                                                                  \
        const ctn_status st_ = (call);                                                    \
        CHECK(j, st_ == (want) && strstr(ctn_error_message(), part), "%s: %d: %s", #call, \
              (int)st_, ctn_error_message());                                             \
        ctn_error_clear();                                                                \
    } while (0)

static void run_refused(job *j)
{
    stage s;
    ctn_state_part p[3];
    ctn_module *other = NULL;
    stage_new(j, &s);
    parts_of(j, &s, p);
    REFUSED(j, ctn_dist_state_load(j->c, "nowhere", 3, p), CTN_ENOTFOUND, "found none");
    if (j->size == 1) { /* saved by two ranks */
        REFUSED(j, ctn_dist_state_load(j->c, "chain", 3, p), CTN_ESHAPE, "rank0.net.0.weight");
        stage_free(&s);
        return;
    }
    TRY(j, ctn_dist_state_save(j->c, "chain", 3, p));
    /* Rank 1 has another shape; rank 0 says so too. */
    TRY(j, ctn_linear_new(&other, j->ctx, 3, 3, NULL));
    if (j->rank == 1) p[0].object = other;
    REFUSED(j, ctn_dist_state_load(j->c, "chain", 3, p), CTN_ENOTFOUND, "rank1.net.weight");
    p[0].object = s.part;
    REFUSED(j, ctn_dist_state_load(j->c, "chain", 2, p), CTN_ENOTFOUND, "but the ranks have");
    if (j->rank == 1) p[2].visit = NULL;
    REFUSED(j, ctn_dist_state_save(j->c, "chain", 3, p), CTN_EARG, "part 2 is incomplete");
    p[2] = ctn_part_context("context", j->ctx);
    p[1].prefix = "a\tb"; /* found while the state is copied */
    REFUSED(j, ctn_dist_state_save(j->c, "chain", 3, p), CTN_EARG, "tab");
    ctn_optim_free(s.optim);
    s.optim = NULL;
    ctn_optim *o = NULL;
    TRY(j, ctn_sgd_new(&o, ctn_params(other), CTN_OPT(ctn_sgd_opt, .momentum = 0.9)));
    TRY(j, ctn_dist_optim(o, j->c, CTN_OPT(ctn_dist_opt, .shard = 1)));
    p[1] = ctn_part_optim("optim", o);
    REFUSED(j, ctn_dist_state_save(j->c, "chain", 2, p), CTN_EARG, "'optim' is sharded");
    ctn_optim_free(o);
    ctn_module_free(other);
    stage_free(&s);
}

static void test_refused(void **state)
{
    (void)state;
    remove_all("chain");
    on_ranks(2, CTN_MODE_PLANNED, run_refused, NULL);
    on_ranks(1, CTN_MODE_PLANNED, run_refused, NULL);
    remove_all("chain");
}

int main(void)
{
#ifndef CTN_HAVE_YYJSON
    printf("skipped: built without yyjson\n");
    return 77;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
