/* SPDX-License-Identifier: Apache-2.0
 *
 * The generator: runs a language model on the new tokens of n sequences and chooses the next ones.
 * Prompts are padded at the end to one length, a multiple of PAD, so that few plans are made; what
 * padding leaves in the cache is overwritten or never seen. After that, all steps run the same
 * plan: positions and lengths are inputs.
 */
#include <math.h>

#include <catena/generate.h>

#include "nn/nn.h"

enum { PAD = 32, USUAL_ROOM = 4096 };

typedef struct {
    float p;
    int32_t token;
} choice;

struct ctn_generator {
    ctn_module *m;
    ctn_generator_opt o;
    ctn__decoder_sizes size;
    int64_t n;          /* sequences; 0: none yet */
    ctn_var **k, **v;   /* caches of the layers, (n,heads,room,width) */
    int64_t *length;    /* (n): tokens in the cache */
    float *logits;      /* (n,V) */
    bool *seen;         /* (n,V): tokens of the sequences; NULL: there is no penalty for them */
    choice *choices;    /* (V) */
    float *share;       /* (V): probabilities, up to a factor */
    uint64_t drawn;     /* random numbers so far */
    int64_t *ids, *pos; /* inputs of a step: (n,T) tokens and positions */
    int64_t *first, *last;
};

/* ---- choosing -------------------------------------------------------------------------------- */

static int by_probability(const void *va, const void *vb)
{
    const choice *a = va, *b = vb;
    if (a->p != b->p) return a->p > b->p ? -1 : 1;
    return a->token < b->token ? -1 : 1;
}

static int32_t most_likely(const float *logit, int64_t V)
{
    int64_t best = 0;
    for (int64_t i = 1; i < V; i++)
        if (logit[i] > logit[best]) best = i;
    return (int32_t)best;
}

/* Collect the tokens of at least probability `cut`. *sum: their share. */
static int64_t collect(const ctn_generator *g, float cut, double *sum)
{
    int64_t n = 0;
    *sum = 0;
    for (int64_t i = 0; i < g->size.vocabulary; i++) {
        if (g->share[i] < cut) continue;
        g->choices[n++] = (choice){g->share[i], (int32_t)i};
        *sum += (double)g->share[i];
    }
    return n;
}

/* How many choices are left by top_k and top_p. *sum: their share. Sorts only as many of the most
 * likely tokens as are needed. */
static int64_t left_over(const ctn_generator *g, double all, double *sum)
{
    const int64_t V = g->size.vocabulary;
    const int64_t k = g->o.top_k > 0 && g->o.top_k < V ? g->o.top_k : V;
    const double share = g->o.top_p > 0 ? g->o.top_p * all : INFINITY;
    int64_t found = 0, n = 0;
    for (float cut = 1e-2f; n == 0; cut = cut > 1e-6f ? cut / 100 : 0) {
        found = collect(g, cut, sum);
        if (found >= k || *sum >= share || cut == 0) n = found;
    }
    if (k == V && share == INFINITY) return n;
    qsort(g->choices, (size_t)found, sizeof *g->choices, by_probability);
    *sum = 0;
    for (n = 0; n < k && n < found && (n == 0 || *sum < share); n++)
        *sum += (double)g->choices[n].p;
    return n;
}

static ctn_status choose(ctn_generator *g, const float *logit, int32_t *next)
{
    const int64_t V = g->size.vocabulary;
    const int32_t best = most_likely(logit, V);
    const float temperature = (float)g->o.temperature; /* 0 if it is too small for a float */
    double all = 0, sum = 0;
    *next = best;
    if (temperature == 0) return CTN_OK;
    for (int64_t i = 0; i < V; i++) {
        g->share[i] = expf((logit[i] - logit[best]) / temperature);
        all += (double)g->share[i];
    }
    /* Shares that are not numbers have no order, and qsort needs one. */
    if (!isfinite(all))
        return ctn_fail(CTN_EFORMAT, "generator: the logits of the model are not finite, so no "
                                     "token can be drawn; are its weights damaged?");
    const int64_t n = left_over(g, all, &sum);
    double at = ctn__uniform(g->o.seed, 0, g->drawn++) * sum;
    for (int64_t i = 0; i < n - 1; i++) {
        at -= (double)g->choices[i].p;
        *next = g->choices[i].token;
        if (at < 0) return CTN_OK;
    }
    *next = g->choices[n - 1].token;
    return CTN_OK;
}

/* ---- caches ---------------------------------------------------------------------------------- */

static void drop_sequences(ctn_generator *g)
{
    for (int i = 0; g->k && i < 2 * g->size.layers; i++)
        if (g->k[i]) ctn_var_free(g->k[i]);
    ctn__free(g->k);
    ctn__free(g->length);
    ctn__free(g->logits);
    ctn__free(g->seen);
    ctn__free(g->ids);
    g->k = NULL;
    g->length = NULL;
    g->logits = NULL;
    g->seen = NULL;
    g->ids = NULL;
    g->n = 0;
}

/* Make caches and buffers for n sequences. */
static ctn_status hold_sequences(ctn_generator *g, int64_t n)
{
    const ctn__decoder_sizes *s = &g->size;
    char name[32];
    if (g->n == n) return CTN_OK;
    drop_sequences(g);
    g->k = ctn__calloc(2 * (size_t)s->layers, sizeof(void *));
    g->length = ctn__calloc((size_t)n, sizeof *g->length);
    g->logits = ctn__calloc((size_t)(n * s->vocabulary), sizeof *g->logits);
    g->ids = ctn__calloc((size_t)(n * (2 * g->o.room + 2)), sizeof *g->ids);
    if (!g->k || !g->length || !g->logits || !g->ids) return CTN_ENOMEM;
    if (g->o.repetition_penalty != 1) {
        g->seen = ctn__calloc((size_t)(n * s->vocabulary), sizeof *g->seen);
        if (!g->seen) return CTN_ENOMEM;
    }
    g->v = g->k + s->layers;
    g->pos = g->ids + n * g->o.room;
    g->first = g->pos + n * g->o.room;
    g->last = g->first + n;
    for (int i = 0; i < 2 * s->layers; i++) {
        snprintf(name, sizeof name, "cache.%c.%d", i < s->layers ? 'k' : 'v', i % s->layers);
        CTN_TRY(ctn_var_new(&g->k[i], g->m->ctx, name, CTN_STATE, ctn_context_float_type(g->m->ctx),
                            CTN_SHAPE(n, s->heads, g->o.room, s->width)));
    }
    g->n = n;
    return CTN_OK;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* The logits in f32 of the step whose inputs are set, in an inner scope, so that a read computes
 * only them. */
static ctn_tensor *decode(ctn_generator *g, int64_t T, bool begin)
{
    ctn_context *ctx = g->m->ctx;
    ctn_tensor *x = ctn_input(ctx, g->ids, CTN_I64, CTN_SHAPE(g->n, T));
    ctn_tensor *last = ctn_input(ctx, g->last, CTN_I64, CTN_SHAPE(g->n));
    const ctn__cache c = {.k = g->k,
                          .v = g->v,
                          .first = ctn_input(ctx, g->first, CTN_I64, CTN_SHAPE(g->n)),
                          .positions = ctn_input(ctx, g->pos, CTN_I64, CTN_SHAPE(g->n, T)),
                          .begin = begin};
    if (!x || !last || !c.first || !c.positions) return NULL;
    if (ctn_scope_begin(ctx) < 0) return NULL;
    g->m->at = CTN_HERE;
    ctn_tensor *y = g->m->decoder->decode(g->m->self, g->m, x, last, &c);
    if (y && y->d.dtype != CTN_F32) y = ctn_cast(y, CTN_F32);
    g->m->at = NULL;
    return ctn_scope_return(ctx, y);
}

/* Run the model on T tokens of each sequence; the inputs are set. */
static ctn_status step(ctn_generator *g, int64_t T, bool begin)
{
    ctn_context *ctx = g->m->ctx;
    const int training = ctn_context_set_training(ctx, 0), grad = ctn_context_set_grad(ctx, 0);
    ctn_status st = ctn_scope_begin(ctx);
    if (st == CTN_OK) {
        ctn_tensor *y = decode(g, T, begin);
        const float *data = y ? ctn_data(y) : NULL;
        if (data) memcpy(g->logits, data, (size_t)(g->n * g->size.vocabulary) * sizeof *data);
        else st = ctn_error_status();
        const ctn_status end = ctn_scope_end(ctx);
        if (st == CTN_OK) st = end;
    }
    ctn_context_set_training(ctx, training);
    ctn_context_set_grad(ctx, grad);
    return st;
}

static ctn_status check_token(const ctn_generator *g, int32_t token)
{
    if (token >= 0 && token < g->size.vocabulary) return CTN_OK;
    return ctn_fail(CTN_EARG, "generator: token %d, but the model has tokens 0 to %lld", (int)token,
                    (long long)g->size.vocabulary - 1);
}

static ctn_status check_prompts(const ctn_generator *g, int64_t n, const int32_t *const *prompt,
                                const int64_t *length)
{
    for (int64_t i = 0; i < n; i++) {
        if (length[i] < 1 || length[i] > g->o.room)
            return ctn_fail(CTN_EARG,
                            "generator_start: prompt %lld has %lld tokens, expected 1 to %lld",
                            (long long)i, (long long)length[i], (long long)g->o.room);
        for (int64_t t = 0; t < length[i]; t++) CTN_TRY(check_token(g, prompt[i][t]));
    }
    return CTN_OK;
}

/* Note tokens of sequence i. */
static void see(ctn_generator *g, int64_t i, const int32_t *tokens, int64_t n)
{
    for (int64_t t = 0; g->seen && t < n; t++) g->seen[i * g->size.vocabulary + tokens[t]] = true;
}

static void punish_seen(ctn_generator *g)
{
    const float penalty = (float)g->o.repetition_penalty;
    for (int64_t i = 0; g->seen && i < g->n * g->size.vocabulary; i++)
        if (g->seen[i])
            g->logits[i] = g->logits[i] < 0 ? g->logits[i] * penalty : g->logits[i] / penalty;
}

static ctn_status choose_all(ctn_generator *g, int32_t *next)
{
    punish_seen(g);
    for (int64_t i = 0; i < g->n; i++)
        CTN_TRY(choose(g, g->logits + i * g->size.vocabulary, &next[i]));
    return CTN_OK;
}

ctn_status ctn_generator_start(ctn_generator *g, int64_t n, const int32_t *const *prompt,
                               const int64_t *length, int32_t *next)
{
    int64_t T = 0;
    if (!g || n < 1 || !prompt || !length || !next)
        return ctn_fail(CTN_EARG,
                        "generator_start: needs a generator, prompts and room for tokens");
    CTN_TRY(check_prompts(g, n, prompt, length));
    const ctn_status st = hold_sequences(g, n);
    if (st < 0) {
        drop_sequences(g);
        return st;
    }
    if (g->seen) memset(g->seen, 0, (size_t)(n * g->size.vocabulary) * sizeof *g->seen);
    for (int64_t i = 0; i < n; i++) see(g, i, prompt[i], length[i]);
    for (int64_t i = 0; i < n; i++) T = length[i] > T ? length[i] : T;
    T = (T + PAD - 1) / PAD * PAD;
    if (T > g->o.room) T = g->o.room;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t t = 0; t < T; t++) {
            g->ids[i * T + t] = t < length[i] ? prompt[i][t] : 0;
            g->pos[i * T + t] = t;
        }
        g->first[i] = 0;
        g->length[i] = length[i];
        g->last[i] = i * T + length[i] - 1;
    }
    CTN_TRY(step(g, T, true));
    return choose_all(g, next);
}

ctn_status ctn_generator_next(ctn_generator *g, const int32_t *tokens, int32_t *next)
{
    if (!g || !tokens || !next)
        return ctn_fail(CTN_EARG, "generator_next: needs a generator and tokens");
    if (g->n == 0) return ctn_fail(CTN_ESTATE, "generator_next: call ctn_generator_start first");
    for (int64_t i = 0; i < g->n; i++) {
        CTN_TRY(check_token(g, tokens[i]));
        if (g->length[i] >= g->o.room) return CTN_END;
    }
    for (int64_t i = 0; i < g->n; i++) {
        see(g, i, &tokens[i], 1);
        g->ids[i] = tokens[i];
        g->pos[i] = g->first[i] = g->length[i];
        g->length[i]++;
        g->last[i] = i;
    }
    CTN_TRY(step(g, 1, false));
    return choose_all(g, next);
}

int64_t ctn_generator_sequences(const ctn_generator *g)
{
    return g ? g->n : 0;
}

const float *ctn_generator_logits(const ctn_generator *g)
{
    return g ? g->logits : NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

ctn_status ctn_generator_new(ctn_generator **g, ctn_module *m, const ctn_generator_opt *opt)
{
    ctn_generator_opt o;
    char path[256];
    if (!g || !m) return ctn_fail(CTN_EARG, "generator_new: NULL argument");
    *g = NULL;
    CTN_TRY(ctn__opt("generator_new", &o, sizeof o, opt));
    if (m->masked)
        return ctn_fail(CTN_EUNSUPPORTED,
                        "generator_new: %s is a masked language model, which fills in words and "
                        "cannot continue a text; use gpt or llama",
                        ctn__module_path(m, path, sizeof path));
    if (!m->decoder)
        return ctn_fail(CTN_EUNSUPPORTED,
                        "generator_new: %s is not a language model of the zoo (gpt or llama)",
                        ctn__module_path(m, path, sizeof path));
    if (!(o.temperature >= 0) || o.top_k < 0 || !(o.top_p >= 0 && o.top_p <= 1) || o.room < 0)
        return ctn_fail(CTN_EARG,
                        "generator_new: temperature is %g, top_k is %lld, top_p is %g, room is "
                        "%lld; none may be negative, and top_p is at most 1",
                        o.temperature, (long long)o.top_k, o.top_p, (long long)o.room);
    if (!(o.repetition_penalty >= 0) || !isfinite((float)o.repetition_penalty) ||
        (o.repetition_penalty > 0 && (float)o.repetition_penalty == 0))
        return ctn_fail(CTN_EARG,
                        "generator_new: repetition_penalty is %g, expected a number "
                        "above 0, or 0 for none",
                        o.repetition_penalty);
    if (o.repetition_penalty == 0) o.repetition_penalty = 1;
    ctn_generator *made = ctn__calloc(1, sizeof *made);
    if (!made) return CTN_ENOMEM;
    made->m = m;
    m->decoder->sizes(m->self, &made->size);
    const int64_t block = made->size.block;
    if (o.room == 0) o.room = block < USUAL_ROOM ? block : USUAL_ROOM;
    if (o.room > block) o.room = block;
    made->o = o;
    made->choices = ctn__calloc((size_t)made->size.vocabulary, sizeof *made->choices);
    made->share = ctn__calloc((size_t)made->size.vocabulary, sizeof *made->share);
    if (!made->choices || !made->share) {
        ctn_generator_free(made);
        return CTN_ENOMEM;
    }
    *g = made;
    return CTN_OK;
}

void ctn_generator_free(ctn_generator *g)
{
    if (!g) return;
    drop_sequences(g);
    ctn__free(g->choices);
    ctn__free(g->share);
    ctn__free(g);
}
