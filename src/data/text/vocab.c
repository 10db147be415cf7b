/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokens of a vocabulary by id and by text. The table by text decides the speed of encoding: a
 * word of at most 8 bytes is its own key, so finding it touches one entry and nothing else.
 */
#include "data/text/text.h"

static uint64_t load(const char *p, size_t n)
{
    uint64_t v = 0;
    memcpy(&v, p, n);
    return v;
}

/* n >= 1. The parts of a short word overlap, which is quicker than a loop over its bytes. */
static uint64_t key_of(const char *p, size_t n)
{
    if (n > 8) return ctn__table_hash(p, n);
    if (n == 8) return load(p, 8);
    if (n >= 4) return load(p, 4) | load(p + n - 4, 4) << 8 * (n - 4);
    return (uint64_t)(unsigned char)p[0] | (uint64_t)(unsigned char)p[n / 2] << 8 * (n / 2) |
           (uint64_t)(unsigned char)p[n - 1] << 8 * (n - 1);
}

/* The entry of a text, or the empty one where it belongs. The table is never full. */
static ctn__word *look(const ctn__words *w, const ctn__vocab *v, uint64_t key, const char *text,
                       size_t n)
{
    const size_t mask = w->room - 1;
    for (size_t i = ctn__table_mix(key, w->seed) & mask;; i = (i + 1) & mask) {
        ctn__word *e = &w->at[i];
        if (e->id < 0) return e;
        if (e->key != key || e->n != n) continue;
        if (n <= 8) return e;
        const ctn__token *t = &v->token.at[e->id]; /* ends with the text, see ctn__words_add */
        if (memcmp(v->text.at + t->at + t->n - n, text, n) == 0) return e;
    }
}

int32_t ctn__words_find(const ctn__words *w, const ctn__vocab *v, const char *text, size_t n)
{
    if (n == 0 || n > w->longest) return -1;
    return look(w, v, key_of(text, n), text, n)->id;
}

static ctn_status grow(ctn__words *w)
{
    const size_t room = w->room ? 2 * w->room : 64;
    ctn__word *at = ctn__malloc(ctn__mul(room, sizeof *at));
    if (!at) return CTN_ENOMEM;
    w->seed = ctn__table_seed();
    for (size_t i = 0; i < room; i++) at[i] = (ctn__word){.id = -1};
    for (size_t i = 0; i < w->room; i++) {
        if (w->at[i].id < 0) continue;
        size_t k = ctn__table_mix(w->at[i].key, w->seed) & (room - 1);
        while (at[k].id >= 0) k = (k + 1) & (room - 1);
        at[k] = w->at[i];
    }
    ctn__free(w->at);
    w->at = at;
    w->room = room;
    return CTN_OK;
}

ctn_status ctn__words_add(ctn__words *w, const ctn__vocab *v, int32_t id, size_t n, bool replace)
{
    const ctn__token *t = &v->token.at[id];
    const char *text = v->text.at + t->at + t->n - n;
    if (n == 0) return CTN_OK;
    if (2 * (w->n + 1) > w->room) CTN_TRY(grow(w));
    const uint64_t key = key_of(text, n);
    ctn__word *e = look(w, v, key, text, n);
    if (e->id >= 0 && !replace) return CTN_OK;
    w->n += e->id < 0;
    *e = (ctn__word){key, (uint32_t)n, id};
    if (n > w->longest) w->longest = n;
    return CTN_OK;
}

ctn_status ctn__vocab_add(ctn__vocab *v, int64_t id, const char *text, size_t n, bool replace)
{
    if (id < 0 || id >= CTN__TOKENS_MOST)
        return ctn_fail(CTN_EFORMAT, "token '%.*s' has number %lld, expected 0 to %lld",
                        n < 40 ? (int)n : 40, text, (long long)id, (long long)CTN__TOKENS_MOST - 1);
    if (v->text.n + n >= UINT32_MAX - 1)
        return ctn_fail(CTN_EFORMAT, "the vocabulary is too large");
    const size_t before = v->token.n, at = v->text.n;
    if (!ctn__vec_reserve(&v->token, (size_t)id + 1)) return CTN_ENOMEM;
    if (!ctn__vec_reserve(&v->text, at + n + 1)) return CTN_ENOMEM;
    if ((size_t)id >= before) {
        memset(v->token.at + before, 0, ((size_t)id + 1 - before) * sizeof *v->token.at);
        v->token.n = (size_t)id + 1;
    }
    if (v->token.at[id].used)
        return ctn_fail(CTN_EFORMAT, "tokens '%.40s' and '%.*s' have the same number %lld",
                        ctn__token_text(v, (int32_t)id), n < 40 ? (int)n : 40, text, (long long)id);
    memcpy(v->text.at + at, text, n);
    v->text.at[at + n] = 0;
    v->text.n = at + n + 1;
    v->token.at[id] = (ctn__token){.at = (uint32_t)at, .n = (uint32_t)n, .used = true};
    return ctn__words_add(&v->all, v, (int32_t)id, n, replace);
}

void ctn__vocab_free(ctn__vocab *v)
{
    ctn__vec_free(&v->text);
    ctn__vec_free(&v->token);
    ctn__free(v->all.at);
    v->all = (ctn__words){0};
}
