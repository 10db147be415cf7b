/* SPDX-License-Identifier: Apache-2.0
 *
 * States in memory, from which the ranks that are left continue after others were lost. Every rank
 * copies all arrays that it has, at the same iterations. The arrays are the same on all ranks,
 * except for the slices of a sharded optimizer: these are also sent to the next rank, which keeps
 * them in case their owner is lost.
 *
 * A rank can be lost while the others copy, so each keeps two states. Ranks are at most one copy
 * apart, because no rank begins a step before all have ended the one before. Hence the oldest of
 * the newest states is one that all of them have.
 */
#include "comm/comm.h"
#include "io/checkpoint/checkpoint.h"
#include "optim/optim.h"
#include "train/train.h"

/* Arrays of the rank before this one. */
typedef struct {
    ctn__text list; /* "name\tbegin\tbytes\n" */
    char *data;
    size_t room;
} foreign;

typedef struct {
    int64_t iteration; /* -1: none */
    int rank, size;    /* when it was copied */
    ctn__snapshot own;
    foreign before; /* only with a sharded optimizer */
    char *text[CTN__CKPT_TEXTS];
} copy;

struct ctn_memory {
    copy state[2];
};

ctn_status ctn_memory_new(ctn_memory **out)
{
    ctn_memory *m = *out = ctn__calloc(1, sizeof *m);
    if (!m) return CTN_ENOMEM;
    for (int i = 0; i < 2; i++) m->state[i].iteration = -1;
    return CTN_OK;
}

void ctn_memory_free(ctn_memory *m)
{
    if (!m) return;
    for (int i = 0; i < 2; i++) {
        copy *s = &m->state[i];
        ctn__snapshot_free(&s->own);
        ctn__text_free(&s->before.list);
        ctn__free(s->before.data);
        for (int k = 0; k < CTN__CKPT_TEXTS; k++) ctn__free(s->text[k]);
    }
    ctn__free(m);
}

/* ---- copying --------------------------------------------------------------------------------- */

static bool is_slice(const char *name)
{
    const size_t n = strlen(name);
    return n > 0 && name[n - 1] == ']';
}

/* Sends n bytes to the next rank and receives m bytes from the one before, in pieces. */
static ctn_status pass_on(ctn_comm *c, const char *out, size_t n, char *in, size_t m)
{
    enum { PIECE = 4 << 20 };
    const int size = ctn_comm_size(c), rank = ctn_comm_rank(c);
    for (size_t at = 0; at < n || at < m; at += PIECE) {
        const size_t to_send = at >= n ? 0 : n - at < PIECE ? n - at : PIECE;
        const size_t to_receive = at >= m ? 0 : m - at < PIECE ? m - at : PIECE;
        CTN_TRY(ctn__comm_swap(c, CTN__TAG_GATHER, to_send ? out + at : NULL, to_send,
                               (rank + 1) % size, to_receive ? in + at : NULL, to_receive,
                               (rank - 1 + size) % size));
    }
    return CTN_OK;
}

/* The slices of this rank lie next to each other, with a few small arrays between them. */
static ctn_status list_slices(const ctn__snapshot *s, ctn__text *list, size_t *begin, size_t *end)
{
    *begin = *end = 0;
    for (size_t i = 0; i < s->array.n; i++) {
        const ctn__snap_array *a = &s->array.at[i];
        if (!is_slice(a->name)) continue;
        if (*end == 0) *begin = a->at;
        *end = a->at + a->bytes;
        ctn__text_add(list, "%s\t%zu\t%zu\n", a->name, a->at - *begin, a->bytes);
    }
    return list->failed ? CTN_ENOMEM : CTN_OK;
}

static ctn_status make_room(foreign *f, const uint64_t bytes[2])
{
    ctn__text_free(&f->list);
    f->list = (ctn__text){.s = ctn__calloc((size_t)bytes[0] + 1, 1), .n = (size_t)bytes[0]};
    if (!f->list.s) return CTN_ENOMEM;
    if (bytes[1] <= f->room) return CTN_OK;
    ctn__free(f->data);
    f->room = 0;
    f->data = ctn__aligned((size_t)bytes[1]);
    if (!f->data) return CTN_ENOMEM;
    f->room = (size_t)bytes[1];
    return CTN_OK;
}

static ctn_status exchange_slices(copy *s, ctn_comm *c, const ctn__text *list, size_t begin,
                                  size_t end)
{
    const uint64_t mine[2] = {list->n, end - begin};
    uint64_t theirs[2] = {0};
    CTN_TRY(pass_on(c, (const char *)mine, sizeof mine, (char *)theirs, sizeof theirs));
    CTN_TRY(ctn__comm_alone(c, make_room(&s->before, theirs)));
    CTN_TRY(pass_on(c, list->s, list->n, s->before.list.s, (size_t)theirs[0]));
    return pass_on(c, s->own.memory + begin, end - begin, s->before.data, (size_t)theirs[1]);
}

static ctn_status share_slices(copy *s, ctn_comm *c)
{
    ctn__text list = {0};
    size_t begin, end;
    ctn_status st = ctn__comm_alone(c, list_slices(&s->own, &list, &begin, &end));
    if (st == CTN_OK) st = exchange_slices(s, c, &list, begin, end);
    ctn__text_free(&list);
    return st;
}

static ctn_status keep_texts(const ctn_trainer *tr, copy *s)
{
    ctn__ckpt_text text[CTN__CKPT_TEXTS] = {{0}};
    ctn_status st = ctn__state_texts(tr, text);
    for (int k = 0; k < CTN__CKPT_TEXTS; k++) {
        ctn__free(s->text[k]);
        s->text[k] = st == CTN_OK ? ctn__strdup(text[k].text.s) : NULL;
        if (st == CTN_OK && !s->text[k]) st = CTN_ENOMEM;
        ctn__text_free(&text[k].text);
    }
    return st;
}

static copy *older(ctn_memory *m)
{
    return &m->state[m->state[0].iteration > m->state[1].iteration];
}

static ctn_status take(void *self, ctn_trainer *tr)
{
    copy *s = older(self);
    ctn_comm *c = ctn__trainer_comm(tr);
    s->iteration = -1; /* until it is complete */
    s->rank = c ? ctn_comm_rank(c) : 0;
    s->size = c ? ctn_comm_size(c) : 1;
    CTN_TRY(ctn__state_copy(tr, &s->own));
    CTN_TRY(keep_texts(tr, s));
    if (s->size > 1 && ctn__trainer_sharded(tr)) CTN_TRY(share_slices(s, c));
    s->iteration = tr->iteration;
    return CTN_OK;
}

ctn_status ctn_extend_memory(ctn_trainer *tr, const ctn_trigger *when, ctn_memory *m)
{
    if (!tr || !m) return ctn_fail(CTN_EARG, "extend_memory: needs a trainer and a memory");
    CTN_TRY(ctn__state_possible(tr, "extend_memory"));
    /* After all other extensions, like the one that saves states to files. */
    return ctn__extend(
        tr,
        &(ctn_extension){.name = "memory", .priority = 0, .start = take, .call = take, .self = m},
        when, (ctn_trigger){.kind = CTN_EVERY_SECONDS, .n = 10});
}

/* ---- recalling ------------------------------------------------------------------------------- */

typedef struct {
    ctn_trainer *tr;
    ctn_comm *c; /* NULL: one rank is left */
    copy *state;
    bool before; /* the rank before this one is lost: its slices are taken from here */
    const char *prefix;
    int64_t want;   /* elements of sharded arrays */
    int64_t filled; /* of these, filled by this rank */
} recalling;

/* The newest state that all ranks have; NULL: there is none. */
static ctn_status choose(ctn_memory *m, ctn_comm *c, copy **out)
{
    double newest = -1, missing;
    for (int i = 0; i < 2; i++)
        if ((double)m->state[i].iteration > newest) newest = (double)m->state[i].iteration;
    newest = -newest; /* the maximum over ranks is the oldest */
    if (c) CTN_TRY(ctn__comm_max_small(c, 1, &newest));
    *out = NULL;
    for (int i = 0; i < 2; i++)
        if (m->state[i].iteration >= 0 && (double)m->state[i].iteration == -newest)
            *out = &m->state[i];
    missing = *out == NULL;
    if (c) CTN_TRY(ctn__comm_max_small(c, 1, &missing));
    if (missing > 0) *out = NULL;
    return CTN_OK;
}

/* Is the rank lost whose slices this rank keeps? */
static ctn_status look_before(recalling *r)
{
    const copy *s = r->state;
    const int size = r->c ? ctn_comm_size(r->c) : 1, before = (s->rank + s->size - 1) % s->size;
    int32_t mine = s->rank, *all = ctn__calloc((size_t)size, sizeof *all);
    if (!all) return ctn__comm_alone(r->c, CTN_ENOMEM);
    all[0] = mine;
    ctn_status st = r->c ? ctn_comm_allgather(r->c, &mine, sizeof mine, all) : CTN_OK;
    r->before = true;
    for (int i = 0; i < size; i++) r->before = r->before && all[i] != before;
    ctn__free(all);
    return st;
}

static void fill(recalling *r, float *to, const char *full, const char *slice, const char *data)
{
    int64_t begin, end;
    if (!ctn__slice_of(slice, full, &begin, &end)) return;
    memcpy(to + begin, data, (size_t)(end - begin) * sizeof *to);
    r->filled += end - begin;
}

static void fill_before(recalling *r, float *to, const char *full)
{
    const foreign *f = &r->state->before;
    char name[1024];
    size_t begin, bytes;
    for (const char *line = f->list.s; line && *line; line = strchr(line, '\n') + 1) {
        const size_t n = strcspn(line, "\t");
        snprintf(name, sizeof name, "%.*s", (int)n, line);
        if (sscanf(line + n, "\t%zu\t%zu", &begin, &bytes) == 2)
            fill(r, to, full, name, f->data + begin);
    }
}

/* Puts an array together that the ranks have in slices. */
static ctn_status join(recalling *r, float *to, const char *full, int64_t n)
{
    const ctn__snapshot *own = &r->state->own;
    memset(to, 0, (size_t)n * sizeof *to);
    for (size_t i = 0; i < own->array.n; i++)
        fill(r, to, full, own->array.at[i].name, own->memory + own->array.at[i].at);
    if (r->before) fill_before(r, to, full);
    r->want += n;
    return ctn__comm_join(r->c, to, n);
}

static const ctn__snap_array *find_array(const ctn__snapshot *s, const char *full)
{
    for (size_t i = 0; i < s->array.n; i++)
        if (strcmp(s->array.at[i].name, full) == 0) return &s->array.at[i];
    return NULL;
}

/* Values that are not the same on all ranks, such as seeds, are rank 0's, as in a saved state. */
static ctn_status recall_array(void *user, const char *name, ctn_dtype dtype, int ndim,
                               const int64_t *dim, void *data)
{
    recalling *r = user;
    char full[1024];
    size_t n = 1;
    for (int i = 0; i < ndim; i++) n *= (size_t)dim[i];
    const size_t bytes = n * ctn_dtype_size(dtype);
    snprintf(full, sizeof full, "%s%s%s", r->prefix, *r->prefix ? "." : "", name);
    const ctn__snap_array *a = find_array(&r->state->own, full);
    if (!a && dtype == CTN_F32 && r->state->size > 1) return join(r, data, full, (int64_t)n);
    if (!a || a->bytes != bytes)
        return ctn__comm_alone(r->c, ctn_fail(CTN_ESTATE,
                                              "trainer_recall: %s is not in the memory, or has "
                                              "another size there: was it made by another trainer?",
                                              full));
    memcpy(data, r->state->own.memory + a->at, bytes);
    bool same = false;
    for (int i = 0; i < ctn__trainer_optims(r->tr); i++)
        same |= ctn__optim_same(ctn__trainer_optim(r->tr, i), data);
    return r->c && !same ? ctn_comm_broadcast(r->c, data, bytes, 0) : CTN_OK;
}

static ctn_status load(void *self, int n, const ctn_state_part *parts)
{
    recalling *r = self;
    for (int i = 0; i < n; i++) {
        r->prefix = parts[i].prefix;
        CTN_TRY(parts[i].visit(parts[i].object, recall_array, r));
    }
    int64_t filled = r->filled, scratch;
    if (r->c) CTN_TRY(ctn__comm_sum(r->c, &filled, 1, CTN_I64, &scratch));
    if (filled == r->want) return CTN_OK;
    return ctn_fail(
        CTN_ENOTFOUND,
        "trainer_recall: two neighbouring ranks were lost, and with them both copies of "
        "a part of the optimizer's state: load a saved state");
}

static ctn_status text(void *self, const char *file, char **out)
{
    const recalling *r = self;
    const int k = strcmp(file, CTN__STATE_TRAINER) == 0 ? 0 : 1;
    const bool first = !r->c || ctn_comm_rank(r->c) == 0;
    *out = first ? ctn__strdup(r->state->text[k]) : NULL;
    if (first && !*out) return ctn__comm_alone(r->c, CTN_ENOMEM);
    return ctn__comm_share_text(r->c, out);
}

ctn_status ctn_trainer_recall(ctn_trainer *tr, ctn_memory *m)
{
    if (!tr || !m) return ctn_fail(CTN_EARG, "trainer_recall: needs a trainer and a memory");
    CTN_TRY(ctn__state_possible(tr, "trainer_recall"));
    if (tr->running)
        return ctn_fail(CTN_ESTATE, "trainer_recall: cannot load while the trainer is running");
    recalling r = {.tr = tr, .c = ctn__trainer_comm(tr)};
    CTN_TRY(choose(m, r.c, &r.state));
    if (!r.state) return ctn_fail(CTN_ENOTFOUND, "trainer_recall: a rank has no state in memory");
    CTN_TRY(look_before(&r));
    CTN_TRY(ctn__group_agree(tr, false));
    CTN_TRY(ctn__state_restore(tr, &(ctn__state_source){text, load, &r, "memory"}));
    for (int i = 0; i < 2; i++) /* newer ones of a few ranks are of no use */
        if (&m->state[i] != r.state) m->state[i].iteration = -1;
    return CTN_OK;
}
