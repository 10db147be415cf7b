/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte-level BPE: a word starts as single bytes; then, again and again, the pair with the lowest
 * rank is merged, the leftmost one of several, until no pair has a merge.
 *
 * Most words are tokens as a whole. ctn__bpe_ready runs the merges once for each token of the
 * vocabulary and keeps those that come out as themselves in a table, so that such a word costs one
 * lookup. Other words take O(n^2) if they are short and O(n log n), with a heap, if they are long.
 */
#include "data/text/text.h"

enum { SHORT = 48 }; /* bytes of a word for which moving elements is quicker than a heap */

static const ctn__merge no_merge = {UINT32_MAX, -1};

/* ---- the table of merges --------------------------------------------------------------------- */

static ctn__pair *look(const ctn_tokenizer *t, int32_t left, int32_t right)
{
    const uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    const size_t mask = t->pairs - 1;
    for (size_t i = ctn__table_mix(pair, t->seed) & mask;; i = (i + 1) & mask) {
        ctn__pair *p = &t->pair[i];
        if (p->pair == pair || p->merge.rank == UINT32_MAX) return p;
    }
}

static ctn__merge merge_of(const ctn_tokenizer *t, int32_t left, int32_t right)
{
    return look(t, left, right)->merge;
}

ctn_status ctn__bpe_room(ctn_tokenizer *t, size_t merges)
{
    t->seed = ctn__table_seed();
    for (t->pairs = 64; t->pairs < 2 * merges;) t->pairs *= 2;
    t->pair = ctn__malloc(ctn__mul(t->pairs, sizeof *t->pair));
    if (!t->pair) return CTN_ENOMEM;
    for (size_t i = 0; i < t->pairs; i++) t->pair[i] = (ctn__pair){UINT64_MAX, no_merge};
    return CTN_OK;
}

ctn_status ctn__bpe_merge(ctn_tokenizer *t, uint32_t rank, const char *left, size_t nl,
                          const char *right, size_t nr)
{
    const ctn__vocab *v = &t->vocab;
    char *both = ctn__malloc(nl + nr + 1);
    if (!both) return CTN_ENOMEM;
    memcpy(both, left, nl);
    memcpy(both + nl, right, nr);
    const int32_t a = ctn__words_find(&v->all, v, left, nl),
                  b = ctn__words_find(&v->all, v, right, nr),
                  c = ctn__words_find(&v->all, v, both, nl + nr);
    ctn__free(both);
    if (a < 0 || b < 0 || c < 0)
        return ctn_fail(CTN_EFORMAT,
                        "merge %lu joins '%.*s' and '%.*s', but %s is not in the vocabulary",
                        (unsigned long)rank, nl < 40 ? (int)nl : 40, left, nr < 40 ? (int)nr : 40,
                        right,
                        a < 0   ? "the first"
                        : b < 0 ? "the second"
                                : "the result");
    ctn__pair *p = look(t, a, b);
    p->pair = (uint64_t)(uint32_t)a << 32 | (uint32_t)b;
    p->merge = (ctn__merge){rank, c};
    return CTN_OK;
}

/* ---- merging --------------------------------------------------------------------------------- */

static void merge_short(const ctn_tokenizer *t, const char *p, size_t n, ctn__ids *out)
{
    int32_t id[SHORT];
    ctn__merge m[SHORT]; /* m[i]: of id[i] and id[i+1] */
    for (size_t i = 0; i < n; i++) id[i] = t->byte[(unsigned char)p[i]];
    for (size_t i = 0; i + 1 < n; i++) m[i] = merge_of(t, id[i], id[i + 1]);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (m[i].rank < m[best].rank) best = i;
        if (m[best].rank == UINT32_MAX) break;
        id[best] = m[best].id;
        n--;
        for (size_t i = best + 1; i < n; i++) id[i] = id[i + 1];
        for (size_t i = best + 1; i + 1 < n; i++) m[i] = m[i + 1];
        if (best > 0) m[best - 1] = merge_of(t, id[best - 1], id[best]);
        if (best + 1 < n) m[best] = merge_of(t, id[best], id[best + 1]);
    }
    for (size_t i = 0; i < n; i++) ctn__ids_put(out, id[i]);
}

/* A merge of the symbol at `at` and the next one; stale if they do not merge to id any more. */
struct step {
    uint32_t rank, at;
    int32_t id;
};

/* A long word: symbols in a doubly linked list, and the possible merges in a heap. */
struct word {
    const ctn_tokenizer *t;
    int32_t *id;           /* (n); -1: merged into the one before it */
    uint32_t *prev, *next; /* (n); next is n at the end, and prev of the first one is not used */
    uint32_t n;
    struct step *heap;
    size_t heaped;
};

static bool before(struct step a, struct step b)
{
    return a.rank < b.rank || (a.rank == b.rank && a.at < b.at);
}

static void push(struct word *w, uint32_t at)
{
    if (w->next[at] == w->n) return;
    const ctn__merge m = merge_of(w->t, w->id[at], w->id[w->next[at]]);
    if (m.rank == UINT32_MAX) return;
    const struct step s = {m.rank, at, m.id};
    size_t i = w->heaped++;
    for (; i > 0 && before(s, w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = s;
}

static struct step pop(struct word *w)
{
    const struct step top = w->heap[0], last = w->heap[--w->heaped];
    size_t i = 0, child;
    for (; (child = 2 * i + 1) < w->heaped; i = child) {
        if (child + 1 < w->heaped && before(w->heap[child + 1], w->heap[child])) child++;
        if (!before(w->heap[child], last)) break;
        w->heap[i] = w->heap[child];
    }
    w->heap[i] = last;
    return top;
}

static void merge_all(struct word *w)
{
    for (uint32_t i = 0; i < w->n; i++) push(w, i);
    while (w->heaped) {
        const struct step s = pop(w);
        const uint32_t right = w->next[s.at];
        if (w->id[s.at] < 0 || right == w->n) continue;
        /* A symbol that has grown since merges to something longer, so comparing the result is
         * enough. */
        if (merge_of(w->t, w->id[s.at], w->id[right]).id != s.id) continue;
        w->id[s.at] = s.id;
        w->id[right] = -1;
        w->next[s.at] = w->next[right];
        if (w->next[right] < w->n) w->prev[w->next[right]] = s.at;
        push(w, s.at);
        if (s.at > 0) push(w, w->prev[s.at]);
    }
}

static ctn_status merge_long(const ctn_tokenizer *t, const char *p, size_t n, ctn__ids *out)
{
    if (n >= INT32_MAX)
        return ctn_fail(CTN_EARG, "tokenizer: a word has %zu bytes, at most %d are possible", n,
                        INT32_MAX - 1);
    struct word w = {.t = t, .n = (uint32_t)n};
    /* Each merge takes one step from the heap and adds at most two, and there are at most n. */
    w.heap = ctn__malloc(ctn__mul(n, 2 * sizeof *w.heap + 3 * sizeof(int32_t)));
    if (!w.heap) return CTN_ENOMEM;
    w.id = (int32_t *)(w.heap + 2 * n);
    w.prev = (uint32_t *)(w.id + n);
    w.next = w.prev + n;
    for (uint32_t i = 0; i < w.n; i++) {
        w.id[i] = t->byte[(unsigned char)p[i]];
        w.prev[i] = i - 1;
        w.next[i] = i + 1;
    }
    merge_all(&w);
    for (uint32_t i = 0; i < w.n; i = w.next[i]) ctn__ids_put(out, w.id[i]);
    ctn__free(w.heap);
    return CTN_OK;
}

static ctn_status merge_bytes(const ctn_tokenizer *t, const char *p, size_t n, ctn__ids *out)
{
    if (n > SHORT) return merge_long(t, p, n, out);
    merge_short(t, p, n, out);
    return CTN_OK;
}

ctn_status ctn__bpe_word(const ctn_tokenizer *t, const char *p, size_t n, ctn__ids *out)
{
    const int32_t id = ctn__words_find(&t->words, &t->vocab, p, n);
    if (id < 0) return merge_bytes(t, p, n, out);
    ctn__ids_put(out, id);
    return CTN_OK;
}

ctn_status ctn__bpe_ready(ctn_tokenizer *t)
{
    ctn__vocab *v = &t->vocab;
    for (int b = 0; b < 256; b++) {
        const char c = (char)(unsigned char)b;
        t->byte[b] = ctn__words_find(&v->all, v, &c, 1);
        if (t->byte[b] < 0)
            return ctn_fail(CTN_EFORMAT,
                            "the vocabulary has no token for byte 0x%02x; byte-level BPE needs one "
                            "for each of the 256 bytes",
                            (unsigned)b);
    }
    for (size_t i = 0; i < v->token.n; i++) {
        const ctn__token *k = &v->token.at[i];
        int32_t only = -1;
        ctn__ids one = {&only, 1, 0};
        if (k->n == 0) continue;
        if (!t->ignore_merges) CTN_TRY(merge_bytes(t, ctn__token_text(v, (int32_t)i), k->n, &one));
        if (t->ignore_merges || (one.n == 1 && only == (int32_t)i))
            CTN_TRY(ctn__words_add(&t->words, v, (int32_t)i, k->n, true));
    }
    return CTN_OK;
}
