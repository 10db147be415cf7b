/* SPDX-License-Identifier: Apache-2.0
 *
 * The generator: how the next token is chosen, against a plain choice from all sorted tokens with
 * the same random numbers; logits with a cache against those of a call with all tokens; how long a
 * sequence may become; the number of plans; refused calls. tests/golden/test_published.c compares
 * generated tokens of published models.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <catena/catena.h>
#include <catena/generate.h>

#include <cmocka.h>

#include "base/base.h"
#include "support/check.h"
#include "support/ok.h"

enum { WIDTH = 4, MOST = 4000, NEXT = 6 };

static ctn_context *ctx;

static int set_up(void **state)
{
    (void)state;
    return ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = 1, .threads = 1));
}

static int tear_down(void **state)
{
    (void)state;
    assert_string_equal(ctn_error_message(), "");
    ctn_context_free(ctx);
    return 0;
}

static ctn_module *new_gpt(int64_t vocabulary, int64_t block, double dropout)
{
    ctn_module *m = NULL;
    OK(ctn_zoo_gpt(&m, ctx,
                   CTN_OPT(ctn_gpt_opt, .vocabulary = vocabulary, .block = block, .width = WIDTH,
                           .layers = 2, .heads = 2, .dropout = dropout, .untied = 1)));
    return m;
}

static void set(ctn_module *m, const char *name, const float *values, size_t n)
{
    ctn_var *v = ctn_module_find(m, name);
    assert_non_null(v);
    OK(ctn_var_set(v, values, n * sizeof *values));
}

/* ---- choosing -------------------------------------------------------------------------------- */

/* A model whose logits are the same after any text: the last normalisation has the weights 0 and
 * the biases (1,0,0,0), so the first column of the last matrix is the result. */
static ctn_module *model_of(const float *logit, int V)
{
    static float head[MOST * WIDTH];
    const float zero[WIDTH] = {0}, one[WIDTH] = {1};
    ctn_module *m = new_gpt(V, 64, 0);
    memset(head, 0, sizeof head);
    for (int i = 0; i < V; i++) head[i * WIDTH] = logit[i];
    set(m, "ln_f.weight", zero, WIDTH);
    set(m, "ln_f.bias", one, WIDTH);
    set(m, "lm_head.weight", head, (size_t)V * WIDTH);
    return m;
}

typedef struct {
    double p;
    int token;
} candidate;

static int more_likely(const void *va, const void *vb)
{
    const candidate *a = va, *b = vb;
    if (a->p != b->p) return a->p > b->p ? -1 : 1;
    return a->token - b->token;
}

/* The token that the number u, from 0 to 1, chooses. Sorted only if something is left out. */
static int wanted(const float *logit, int V, const ctn_generator_opt *o, double u)
{
    static candidate all[MOST];
    double sum = 0, kept = 0;
    int n = 0;
    for (int i = 0; i < V; i++) {
        all[i] = (candidate){exp((double)logit[i] / o->temperature), i};
        sum += all[i].p;
    }
    if ((o->top_k > 0 && o->top_k < V) || o->top_p > 0)
        qsort(all, (size_t)V, sizeof *all, more_likely);
    for (; n < V && (o->top_k == 0 || n < o->top_k); n++) {
        if (n > 0 && o->top_p > 0 && kept >= o->top_p * sum) break;
        kept += all[n].p;
    }
    for (int i = 0; i < n; i++) {
        u -= all[i].p / kept;
        if (u < 0) return all[i].token;
    }
    return all[n - 1].token;
}

/* 2 sequences of `steps` tokens. */
static void check_choices(const float *logit, int V, const ctn_generator_opt *o, int steps)
{
    const int32_t prompt = 0, *const prompts[2] = {&prompt, &prompt};
    const int64_t length[2] = {1, 1};
    int32_t next[2];
    ctn_module *m = model_of(logit, V);
    ctn_generator *g = NULL;
    OK(ctn_generator_new(&g, m, o));
    for (int i = 0; i < steps; i++) {
        if (i == 0) OK(ctn_generator_start(g, 2, prompts, length, next));
        else OK(ctn_generator_next(g, next, next));
        assert_memory_equal(ctn_generator_logits(g), logit, (size_t)V * sizeof *logit);
        for (int k = 0; k < 2; k++) {
            const double u = ctn__uniform(o->seed, 0, (uint64_t)(2 * i + k));
            const int want = wanted(logit, V, o, u);
            if (next[k] != want)
                fail_msg("temperature %g, top_k %lld, top_p %g: token %d of sequence %d is %d, "
                         "expected %d",
                         o->temperature, (long long)o->top_k, o->top_p, i, k, next[k], want);
        }
    }
    ctn_generator_free(g);
    ctn_module_free(m);
}

static void test_choices(void **state)
{
    (void)state;
    static const struct {
        double temperature;
        int64_t top_k;
        double top_p;
    } how[] = {{1, 0, 0},   {0.5, 0, 0}, {3, 0, 0},   {1, 1, 0},     {3, 2, 0},    {3, 7, 0},
               {3, 40, 0},  {3, 39, 0},  {3, 99, 0},  {3, 0, 0.01},  {3, 0, 0.25}, {3, 0, 0.75},
               {2, 0, 0.9}, {3, 0, 1},   {3, 5, 0.5}, {3, 20, 0.25}, {1, 30, 0.99}};
    float logit[40];
    for (int i = 0; i < 40; i++) logit[i] = 0.25f * (float)(-i * 7 % 40); /* in no order */
    for (size_t i = 0; i < sizeof how / sizeof *how; i++)
        check_choices(logit, 40,
                      CTN_OPT(ctn_generator_opt, .temperature = how[i].temperature,
                              .top_k = how[i].top_k, .top_p = how[i].top_p, .seed = i),
                      50);
}

/* One token of 1/3, and many others that together have the rest. */
static void test_many_tokens(void **state)
{
    (void)state;
    static float logit[MOST];
    for (int i = 0; i < MOST; i++) logit[i] = i == 17 ? 1 : 1 - logf(2000.0f + (float)(i % 100));
    const ctn_generator_opt how[] = {{sizeof *how, .temperature = 1, .top_k = 2000, .seed = 1},
                                     {sizeof *how, .temperature = 1, .top_p = 0.75, .seed = 2},
                                     {sizeof *how, .temperature = 1, .seed = 3}};
    for (int i = 0; i < 3; i++) check_choices(logit, MOST, &how[i], 20);
}

/* Among equal tokens the first ones are chosen, and no more of them than make up top_p. */
static void test_equal_tokens(void **state)
{
    (void)state;
    const float logit[4] = {0};
    const ctn_generator_opt half = {sizeof half, .temperature = 1, .top_p = 0.5, .seed = 5};
    const int32_t prompt = 0, *const prompts[1] = {&prompt};
    const int64_t length = 1;
    int32_t next = -1;
    int seen[4] = {0};
    ctn_generator *g = NULL;
    ctn_module *m = model_of(logit, 4);
    OK(ctn_generator_new(&g, m, NULL));
    OK(ctn_generator_start(g, 1, prompts, &length, &next));
    assert_int_equal(next, 0);
    ctn_generator_free(g);
    OK(ctn_generator_new(&g, m, &half));
    OK(ctn_generator_start(g, 1, prompts, &length, &next));
    for (int i = 0; i < 30; i++) {
        seen[next]++;
        OK(ctn_generator_next(g, &next, &next));
    }
    assert_true(seen[0] > 5 && seen[1] > 5 && seen[2] == 0 && seen[3] == 0);
    ctn_generator_free(g);
    ctn_module_free(m);
}

/* Tokens and logits of RepetitionPenaltyLogitsProcessor(1.5) in the Python package `transformers`,
 * after the prompts 0 4 and 1 1. The second start forgets the first one. */
static void test_repetition(void **state)
{
    (void)state;
    const float logit[6] = {2, -1, 0.5f, 1.5f, -0.5f, 1.75f};
    const float last[2][6] = {{1.3333333730697632f, -1, 0.5f, 1, -0.75f, 1.1666666269302368f},
                              {1.3333333730697632f, -1.5f, 0.5f, 1, -0.5f, 1.1666666269302368f}};
    const int32_t want[5][2] = {{5, 0}, {3, 5}, {0, 3}, {0, 0}, {0, 0}};
    const int32_t prompt[2][2] = {{0, 4}, {1, 1}}, *const prompts[2] = {prompt[0], prompt[1]};
    const int64_t length[2] = {2, 2};
    int32_t next[2];
    ctn_generator *g = NULL;
    ctn_module *m = model_of(logit, 6);
    OK(ctn_generator_new(&g, m, CTN_OPT(ctn_generator_opt, .repetition_penalty = 1.5)));
    for (int again = 0; again < 2; again++) {
        OK(ctn_generator_start(g, 2, prompts, length, next));
        assert_memory_equal(next, want[0], sizeof next);
        for (int i = 1; i < 5; i++) {
            OK(ctn_generator_next(g, next, next));
            assert_memory_equal(next, want[i], sizeof next);
        }
        assert_memory_equal(ctn_generator_logits(g), last, sizeof last);
    }
    ctn_generator_free(g);
    const double wrong[] = {-1, NAN, INFINITY, 1e-60};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(
            ctn_generator_new(&g, m, CTN_OPT(ctn_generator_opt, .repetition_penalty = wrong[i])),
            CTN_EARG);
        ctn_error_clear();
    }
    ctn_module_free(m);
}

/* ---- logits with a cache --------------------------------------------------------------------- */

enum { BLOCK = 50, WORDS = 11, PROMPTS = 3 };

static int64_t text[PROMPTS][BLOCK];

/* The logits after n tokens, from a call with all of them. */
static void check_logits(ctn_module *m, int k, int64_t n, const float *found)
{
    OK(ctn_scope_begin(ctx));
    const float *y = ctn_data(ctn_call(m, ctn_input(ctx, text[k], CTN_I64, CTN_SHAPE(1, n))));
    if (!y) fail_msg("%s", ctn_error_message());
    for (int i = 0; i < WORDS; i++) {
        const double a = (double)y[(n - 1) * WORDS + i], b = (double)found[i];
        if (!(fabs(a - b) < 1e-5))
            fail_msg("sequence %d, %d tokens: logit %d is %.9g, expected %.9g", k, (int)n, i, b, a);
    }
    OK(ctn_scope_end(ctx));
}

/* Some of the prompts at once, continued by given tokens. */
static void check_sequences(ctn_generator *g, ctn_module *m, int n, const int64_t *length, int next)
{
    int32_t prompt[PROMPTS][BLOCK], token[PROMPTS];
    const int32_t *prompts[PROMPTS];
    for (int k = 0; k < n; k++) {
        for (int i = 0; i < BLOCK; i++) prompt[k][i] = (int32_t)text[k][i];
        prompts[k] = prompt[k];
    }
    OK(ctn_generator_start(g, n, prompts, length, token));
    for (int i = 0; i <= next; i++) {
        for (int k = 0; k < n && i > 0; k++) token[k] = prompt[k][length[k] + i - 1];
        if (i > 0) OK(ctn_generator_next(g, token, token));
        assert_int_equal(ctn_context_set_training(ctx, 0), 1); /* as it was */
        for (int k = 0; k < n; k++)
            check_logits(m, k, length[k] + i, ctn_generator_logits(g) + (ptrdiff_t)k * WORDS);
        ctn_context_set_training(ctx, 1);
    }
}

/* Prompts of different lengths, with and without room for padding. The generator does not apply
 * dropout, even while the context is in training mode. */
static void test_cache(void **state)
{
    (void)state;
    ctn_module *m = new_gpt(WORDS, BLOCK, 0.5);
    ctn_vars p = ctn_params(m);
    ctn_generator *g = NULL;
    for (int i = 0; i < p.n; i++)
        OK(ctn_var_init(p.var[i], CTN_OPT(ctn_init, .kind = CTN_INIT_NORMAL, .std = 0.5)));
    for (int k = 0; k < PROMPTS; k++)
        for (int i = 0; i < BLOCK; i++) text[k][i] = (i * i + 3 * k * i + k) % WORDS;
    OK(ctn_generator_new(&g, m, NULL));
    assert_null(ctn_generator_logits(g));
    check_sequences(g, m, 1, (const int64_t[]){1}, NEXT);
    check_sequences(g, m, 3, (const int64_t[]){31, 3, 32}, NEXT);
    check_sequences(g, m, 3, (const int64_t[]){2, 33, 1}, NEXT); /* shorter than what is there */
    check_sequences(g, m, 2, (const int64_t[]){49, 44}, 1);
    ctn_generator_free(g);
    ctn_module_free(m);
}

/* Under the policy f64, the logits are those of a call in f64, rounded. */
static void test_f64(void **state)
{
    (void)state;
    ctn_context *f32 = ctx;
    const int64_t tokens[] = {1, 7, 3, 5, 2};
    const int32_t prompt[] = {1, 7}, *const prompts[1] = {prompt};
    const int64_t length = 2;
    ctn_generator *g = NULL;
    int32_t next = 0;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = 1, .threads = 1,
                                     .precision = CTN_PRECISION_F64)));
    ctn_module *m = new_gpt(WORDS, BLOCK, 0);
    OK(ctn_generator_new(&g, m, NULL));
    for (int64_t n = length; n <= 5; n++) {
        if (n == length) OK(ctn_generator_start(g, 1, prompts, &length, &next));
        else OK(ctn_generator_next(g, &(int32_t){(int32_t)tokens[n - 1]}, &next));
        OK(ctn_scope_begin(ctx));
        const double *y = ctn_data(ctn_call(m, ctn_input(ctx, tokens, CTN_I64, CTN_SHAPE(1, n))));
        if (!y) fail_msg("%s", ctn_error_message());
        for (int i = 0; i < WORDS; i++) {
            const double a = y[(n - 1) * WORDS + i], b = (double)ctn_generator_logits(g)[i];
            if (!(fabs(a - b) <= 1e-7 * fabs(a) + 1e-12))
                fail_msg("%d tokens: logit %d is %.9g, expected %.9g", (int)n, i, b, a);
        }
        OK(ctn_scope_end(ctx));
    }
    ctn_generator_free(g);
    ctn_module_free(m);
    ctn_context_free(ctx);
    ctx = f32;
}

/* Lengths up to a multiple of 32 share a plan, and so do all later tokens. The plan says where its
 * ops were recorded. */
static void test_plans(void **state)
{
    (void)state;
    static char listed[1 << 16];
    const int32_t prompt[64] = {0}, *const prompts[1] = {prompt};
    int32_t next = 0;
    ctn_module *m = new_gpt(WORDS, 64, 0);
    ctn_generator *g = NULL;
    ctn_plan_stats s;
    OK(ctn_generator_new(&g, m, NULL));
    static const struct {
        int64_t length;
        uint64_t plans; /* so far */
    } all[] = {{3, 2}, {1, 2}, {32, 2}, {33, 3}, {60, 3}, {2, 3}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        OK(ctn_generator_start(g, 1, prompts, &all[i].length, &next));
        for (int k = 0; k < 3; k++) OK(ctn_generator_next(g, &next, &next));
        ctn_context_get_stats(ctx, &s);
        assert_int_equal(s.misses, all[i].plans);
    }
    assert_true(ctn_context_plan_text(ctx, listed, sizeof listed) > 0);
    assert_non_null(strstr(listed, "nn/generate.c:"));
    assert_null(strstr(listed, "(null)"));
    ctn_generator_free(g);
    ctn_module_free(m);
}

/* ---- lengths and refused calls --------------------------------------------------------------- */

static void test_room(void **state)
{
    (void)state;
    static const int32_t zeros[5001], *const prompts[2] = {zeros, zeros};
    static const struct {
        int64_t asked, block, room;
    } all[] = {{5, 20, 5}, {0, 20, 20}, {30, 20, 20}, {0, 5000, 4096}, {4999, 5000, 4999}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ctn_module *m = new_gpt(3, all[i].block, 0);
        ctn_generator *g = NULL;
        int64_t length[2] = {1, all[i].room + 1};
        int32_t next[2] = {0, 0};
        char message[32];
        snprintf(message, sizeof message, "expected 1 to %d", (int)all[i].room);
        OK(ctn_generator_new(&g, m, CTN_OPT(ctn_generator_opt, .room = all[i].asked)));
        assert_fails(ctn_generator_start(g, 2, prompts, length, next), CTN_EARG, message);
        length[1] = 0;
        assert_fails(ctn_generator_start(g, 2, prompts, length, next), CTN_EARG, message);
        if (all[i].room <= 20) {
            length[1] = all[i].room - 1;
            OK(ctn_generator_start(g, 2, prompts, length, next));
            OK(ctn_generator_next(g, next, next));
            assert_int_equal(ctn_generator_next(g, next, next), CTN_END);
            length[1] = all[i].room;
            OK(ctn_generator_start(g, 2, prompts, length, next));
            assert_int_equal(ctn_generator_next(g, next, next), CTN_END);
        }
        ctn_generator_free(g);
        ctn_module_free(m);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const ctn_generator_opt wrong[] = {{sizeof *wrong, .temperature = -0.1},
                                              {sizeof *wrong, .temperature = NAN},
                                              {sizeof *wrong, .top_k = -1},
                                              {sizeof *wrong, .top_p = -0.1},
                                              {sizeof *wrong, .top_p = 1.01},
                                              {sizeof *wrong, .top_p = NAN},
                                              {sizeof *wrong, .room = -1}};
    ctn_module *m = new_gpt(3, 20, 0), *bert = NULL, *linear = NULL;
    ctn_generator *g = NULL;
    int32_t tokens[2] = {0, 2}, next = 0;
    const int32_t *const prompts[1] = {tokens};
    const int64_t length = 2;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(ctn_generator_new(&g, m, &wrong[i]), CTN_EARG, "none may be negative");
    OK(ctn_zoo_bert(&bert, ctx,
                    CTN_OPT(ctn_bert_opt, .vocabulary = 3, .width = 4, .layers = 1, .heads = 1)));
    assert_fails(ctn_generator_new(&g, bert, NULL), CTN_EUNSUPPORTED, "masked language model");
    OK(ctn_linear_new(&linear, ctx, 2, 2, NULL));
    assert_fails(ctn_generator_new(&g, linear, NULL), CTN_EUNSUPPORTED, "not a language model");
    assert_fails(ctn_generator_new(NULL, m, NULL), CTN_EARG, "NULL");
    assert_fails(ctn_generator_new(&g, NULL, NULL), CTN_EARG, "NULL");
    assert_null(g);
    assert_null(ctn_generator_logits(NULL));

    OK(ctn_generator_new(&g, m, CTN_OPT(ctn_generator_opt, .top_p = 1)));
    assert_fails(ctn_generator_next(g, tokens, &next), CTN_ESTATE, "ctn_generator_start");
    assert_fails(ctn_generator_start(NULL, 1, prompts, &length, &next), CTN_EARG, "needs");
    assert_fails(ctn_generator_start(g, 0, prompts, &length, &next), CTN_EARG, "needs");
    assert_fails(ctn_generator_start(g, 1, NULL, &length, &next), CTN_EARG, "needs");
    assert_fails(ctn_generator_start(g, 1, prompts, NULL, &next), CTN_EARG, "needs");
    assert_fails(ctn_generator_start(g, 1, prompts, &length, NULL), CTN_EARG, "needs");
    tokens[1] = 3; /* the last token of the prompt */
    assert_fails(ctn_generator_start(g, 1, prompts, &length, &next), CTN_EARG, "tokens 0 to 2");
    tokens[1] = 2;
    OK(ctn_generator_start(g, 1, prompts, &length, &next));
    for (tokens[0] = -1; tokens[0] <= 3; tokens[0] += 4)
        assert_fails(ctn_generator_next(g, tokens, &next), CTN_EARG, "tokens 0 to 2");
    assert_fails(ctn_generator_next(NULL, tokens, &next), CTN_EARG, "needs");
    assert_fails(ctn_generator_next(g, NULL, &next), CTN_EARG, "needs");
    assert_fails(ctn_generator_next(g, tokens, NULL), CTN_EARG, "needs");
    ctn_generator_free(g);
    ctn_module_free(m);
    ctn_module_free(bert);
    ctn_module_free(linear);
}

/* Shares that are not numbers cannot be sorted. The most likely token needs no sorting. */
static void test_not_finite(void **state)
{
    (void)state;
    static const float wrong[] = {NAN, INFINITY, -INFINITY};
    const int32_t prompt = 0, *const prompts[1] = {&prompt};
    const int64_t length = 1;
    int32_t next = 0;
    for (int i = 0; i < 4; i++) {
        float logit[5] = {1, 2, 3, 4, 5};
        for (int k = 0; k < 5 && i < 3; k++)
            if (i == 2 || k == 1) logit[k] = wrong[i];
        ctn_module *m = model_of(logit, 5);
        ctn_generator *g = NULL;
        OK(ctn_generator_new(&g, m, CTN_OPT(ctn_generator_opt, .temperature = 1, .top_k = 3)));
        const ctn_status st = ctn_generator_start(g, 1, prompts, &length, &next);
        if (i < 3) assert_fails(st, CTN_EFORMAT, "not finite");
        else OK(st);
        ctn_generator_free(g);
        OK(ctn_generator_new(&g, m, CTN_OPT(ctn_generator_opt, .temperature = 1e-60, .top_k = 3)));
        OK(ctn_generator_start(g, 1, prompts, &length, &next));
        if (i == 3) assert_int_equal(next, 4);
        ctn_generator_free(g);
        ctn_module_free(m);
    }
}

/* Each allocation fails once when more sequences are begun. After that the generator has none, and
 * can begin again. */
static void test_no_memory(void **state)
{
    (void)state;
    static failing_once memory;
    static const int32_t token = 1, *const prompts[2] = {&token, &token};
    static const int64_t length[2] = {1, 1};
    OK(ctn_set_allocator(&(ctn_allocator){failing_once_alloc, failing_once_release, &memory}));
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = 1, .threads = 1)));
    ctn_module *m = new_gpt(3, 20, 0);
    ctn_generator *g = NULL;
    ctn_status st = CTN_ENOMEM;
    int32_t next[2], failures = 0;
    OK(ctn_generator_new(&g, m, NULL));
    while (st == CTN_ENOMEM) {
        memory.fail_at = 0;
        OK(ctn_generator_start(g, 1, prompts, length, next));
        memory.fail_at = memory.calls + 1 + failures++;
        st = ctn_generator_start(g, 2, prompts, length, next);
        ctn_error_clear();
    }
    assert_int_equal(st, CTN_OK);
    assert_true(failures > 8);
    memory.fail_at = 0;
    ctn_generator_free(g);
    ctn_module_free(m);
    ctn_context_free(ctx);
    assert_int_equal(memory.live, 0);
    OK(ctn_set_allocator(NULL));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_memory), /* must run before anything else allocates */
        TEST(test_choices),
        TEST(test_many_tokens),
        TEST(test_equal_tokens),
        TEST(test_repetition),
        TEST(test_not_finite),
        TEST(test_cache),
        TEST(test_f64),
        TEST(test_plans),
        TEST(test_room),
        TEST(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
