/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples for masked-language training: a window of tokens between the two special tokens that the
 * network expects, with some words hidden, and the hidden words as targets.
 *
 * Invariant: every choice is drawn from the (seed, epoch, index) of the sample with a number of its
 * own, so it does not depend on threads, on ranks or on where a training was resumed.
 */
#include <catena/datasets.h>
#include "data/data.h"

/* Keeps these random numbers independent of others drawn from the same seed. */
#define MASK_STREAM UINT64_C(0x6d61736b65642121)

enum { NOT_CHOSEN = -100 }; /* the class that losses and accuracies ignore */

struct masked {
    ctn_dataset *base;
    int64_t window, length;     /* tokens of a sample of base, and of a sample */
    int32_t mask, begin, end;   /* begin, end: -1 if there is none */
    double chosen, hide, other; /* shares: of the words; of the chosen: masked, random */
    int64_t tokens, nwords;
    bool *is_word;  /* (tokens): not a special token */
    int32_t *words; /* (nwords): all tokens that are words */
};

/* ---- choosing -------------------------------------------------------------------------------- */

static double draw(const ctn_sample *s, uint64_t which)
{
    const uint64_t key = ctn__mix(ctn__mix(s->seed, MASK_STREAM), s->epoch);
    return ctn__uniform(key, (uint64_t)s->index, which);
}

/* What the network sees in place of a chosen word. */
static int64_t replaced(const struct masked *m, const ctn_sample *s, uint64_t which, int64_t word)
{
    const double u = draw(s, which);
    if (u < m->hide) return m->mask;
    if (u >= m->hide + m->other) return word;
    return m->words[(int64_t)(draw(s, which + 1) * (double)m->nwords)];
}

/* Chooses words of the window x and writes the targets y. Their number is the share of the words,
 * rounded up or down at random and at least 1, so that windows, and hence batches and ranks, have
 * almost the same number of targets. */
static void choose(const struct masked *m, const ctn_sample *s, int64_t *x, int64_t *y)
{
    int64_t left = 0; /* words from here on */
    for (int64_t i = 0; i < m->window; i++) left += m->is_word[x[i]];
    int64_t need = (int64_t)(m->chosen * (double)left + draw(s, 0));
    if (need < 1) need = 1;
    for (int64_t i = 0; i < m->window; i++) {
        const uint64_t which = 3 * (uint64_t)i + 1;
        y[i] = NOT_CHOSEN;
        if (!m->is_word[x[i]]) continue;
        const bool take = draw(s, which) * (double)left < (double)need;
        left--;
        if (!take) continue;
        need--;
        y[i] = x[i];
        x[i] = replaced(m, s, which + 1, x[i]);
    }
}

/* ---- the dataset ----------------------------------------------------------------------------- */

static int64_t masked_count(void *self)
{
    return ctn_dataset_count(((struct masked *)self)->base);
}

static int masked_fields(void *self)
{
    (void)self;
    return 2;
}

static void masked_field(void *self, int f, ctn_field *out)
{
    (void)f;
    *out = (ctn_field){CTN_I64, 1, {((struct masked *)self)->length}, 0};
}

/* The base writes the window to where it belongs in x, and what it has as targets to y. */
static ctn_status masked_get(void *self, const ctn_sample *s, void *const *dst)
{
    const struct masked *m = self;
    int64_t *x = dst[0], *y = dst[1];
    const int64_t first = m->begin >= 0, last = m->length - 1;
    CTN_TRY(ctn_dataset_sample(m->base, s, (void *[]){x + first, y + first}));
    for (int64_t i = first; i < first + m->window; i++)
        if (x[i] < 0 || x[i] >= m->tokens)
            return ctn_fail(CTN_EFORMAT,
                            "mask: sample %lld has token %lld, but the vocabulary of the tokenizer "
                            "has %lld; use the tokenizer that the tokens were made with",
                            (long long)s->index, (long long)x[i], (long long)m->tokens);
    choose(m, s, x + first, y + first);
    if (m->begin >= 0) x[0] = m->begin, y[0] = NOT_CHOSEN;
    if (m->end >= 0) x[last] = m->end, y[last] = NOT_CHOSEN;
    return CTN_OK;
}

static void masked_free(void *self)
{
    struct masked *m = self;
    if (!m) return;
    ctn_dataset_free(m->base);
    ctn__free(m->is_word);
    ctn__free(m->words);
    ctn__free(m);
}

static int masked_name(void *self, int64_t index, char *buf, size_t n)
{
    return ctn_dataset_name(((struct masked *)self)->base, index, buf, n);
}

static const ctn_dataset_vt masked_vt = {
    .struct_size = sizeof(ctn_dataset_vt),
    .count = masked_count,
    .fields = masked_fields,
    .field = masked_field,
    .get = masked_get,
    .free = masked_free,
    .name = masked_name,
};

/* ---- options --------------------------------------------------------------------------------- */

/* The token with this text, or the usual one if it is NULL. "": -1, none. */
static ctn_status find(int32_t *id, const ctn_tokenizer *t, const char *text, const char *usual)
{
    if (!text) text = usual;
    *id = text[0] ? ctn_tokenizer_id(t, text, strlen(text)) : -1;
    if (*id >= 0 || !text[0]) return CTN_OK;
    return ctn_fail(CTN_ENOTFOUND,
                    "mask: the tokenizer has no token '%s', which masked-language training needs",
                    text);
}

static double share(double given, double usual)
{
    return given < 0 ? 0 : given > 0 ? given : usual;
}

static ctn_status take_options(struct masked *m, const ctn_tokenizer *t, const ctn_mask_opt *opt)
{
    ctn_mask_opt o;
    CTN_TRY(ctn__opt("mask", &o, sizeof o, opt));
    m->chosen = share(o.chosen, 0.15);
    m->hide = share(o.masked, 0.8);
    m->other = share(o.random, 0.1);
    if (!(m->chosen > 0 && m->chosen <= 1 && m->hide + m->other <= 1))
        return ctn_fail(CTN_EARG,
                        "mask: chosen is %g, masked is %g and random is %g; expected chosen in 0 "
                        "to 1, and masked and random with a sum of at most 1",
                        o.chosen, o.masked, o.random);
    CTN_TRY(find(&m->begin, t, o.begin, "[CLS]"));
    CTN_TRY(find(&m->end, t, o.end, "[SEP]"));
    CTN_TRY(find(&m->mask, t, o.mask, "[MASK]"));
    return m->mask >= 0 ? CTN_OK : ctn_fail(CTN_EARG, "mask: the text of the mask token is empty");
}

static ctn_status list_words(struct masked *m, const ctn_tokenizer *t)
{
    m->tokens = ctn_tokenizer_tokens(t);
    m->is_word = ctn__calloc((size_t)m->tokens, sizeof *m->is_word);
    m->words = ctn__calloc((size_t)m->tokens, sizeof *m->words);
    if (!m->is_word || !m->words) return CTN_ENOMEM;
    for (int32_t id = 0; id < m->tokens; id++) {
        if (id == m->mask || id == m->begin || id == m->end) continue;
        if (!ctn_tokenizer_token(t, id, NULL) || ctn_tokenizer_special(t, id)) continue;
        m->is_word[id] = true;
        m->words[m->nwords++] = id;
    }
    return m->nwords > 0 ? CTN_OK
                         : ctn_fail(CTN_EARG, "mask: the tokenizer has only special tokens");
}

/* Tokens (n), and at most one more field of the same type and shape. */
static bool is_window(const ctn_dataset *ds)
{
    const ctn_field *x = ctn_dataset_field(ds, 0), *y = ctn_dataset_field(ds, 1);
    if (x->dtype != CTN_I64 || x->ndim != 1 || x->shape[0] < 1) return false;
    return ctn_dataset_fields(ds) == 1 || (ctn_dataset_fields(ds) == 2 && y->dtype == CTN_I64 &&
                                           y->ndim == 1 && y->shape[0] == x->shape[0]);
}

ctn_status ctn_dataset_mask(ctn_dataset **ds, ctn_dataset *base, const ctn_tokenizer *t,
                            const ctn_mask_opt *opt)
{
    ctn_status st = CTN_OK;
    if (!ds || !base || !t) return ctn_fail(CTN_EARG, "mask: NULL argument");
    *ds = NULL;
    if (!is_window(base))
        return ctn_fail(CTN_EARG, "mask: expected a dataset of tokens, with a field of i64 (n) and "
                                  "at most one more like it, as from ctn_tokens_open");
    struct masked *m = ctn__calloc(1, sizeof *m);
    if (!m) return CTN_ENOMEM;
    CTN_TRY_GOTO(st, done, take_options(m, t, opt));
    CTN_TRY_GOTO(st, done, list_words(m, t));
    m->window = ctn_dataset_field(base, 0)->shape[0];
    m->length = m->window + (m->begin >= 0) + (m->end >= 0);
    m->base = base;
    CTN_TRY_GOTO(st, done, ctn_dataset_new(ds, &masked_vt, m));
    m = NULL; /* owned by the dataset */
done:
    if (m) m->base = NULL; /* the caller keeps ownership */
    masked_free(m);
    return st;
}
