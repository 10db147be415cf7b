/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies the part of a state that this rank writes. Arrays that are the same on all ranks are
 * divided among the writers, slices of sharded arrays belong to the rank that has them, and
 * everything else to rank 0. The parts are visited three times, without reading a value in the
 * first two: for the bytes that are divided, for the arrays of this rank, and for their values.
 */
#include "io/checkpoint/checkpoint.h"
#include "optim/optim.h"

enum { CHUNK = 1 << 20 };

typedef struct {
    ctn__snapshot *s;
    const char *prefix;
    int n;
    const ctn_state_part *parts; /* several may be optimizers */
    int rank, size, threads;
    bool divided;    /* all ranks write */
    int pass;        /* 0 to 2 */
    uint64_t total;  /* bytes of the arrays that are the same on all ranks */
    uint64_t before; /* of these, the bytes of those visited so far */
    size_t next;     /* pass 2: the next array of this rank */
} taking;

/* Uses several threads, since one cannot use all of the memory bandwidth. */
static void copy(char *to, const char *from, size_t bytes, int threads)
{
    if (bytes < 4 * (size_t)CHUNK) {
        memcpy(to, from, bytes);
        return;
    }
#pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t at = 0; at < bytes; at += CHUNK)
        memcpy(to + at, from + at, bytes - at < CHUNK ? bytes - at : CHUNK);
}

static ctn_status add_array(taking *t, const char *name, ctn_dtype dtype, int ndim,
                            const int64_t *dim, size_t bytes)
{
    ctn__snapshot *s = t->s;
    ctn__snap_array a = {.dtype = dtype, .ndim = ndim, .at = s->bytes, .bytes = bytes};
    if (ndim > 0) memcpy(a.dim, dim, (size_t)ndim * sizeof *dim);
    a.name = ctn__strdup(name);
    if (!a.name || !ctn__vec_push(&s->array, a)) {
        ctn__free(a.name);
        return CTN_ENOMEM;
    }
    s->bytes += (bytes + 63) / 64 * 64;
    return CTN_OK;
}

static ctn_status full_name(const taking *t, const char *name, char *out, size_t room)
{
    const int n = snprintf(out, room, "%s%s%s", t->prefix, *t->prefix ? "." : "", name);
    if (n >= 0 && (size_t)n < room && !strpbrk(out, "\t\n")) return CTN_OK;
    return ctn_fail(CTN_EARG,
                    "checkpoint: the name %.60s of an array is longer than %zu bytes, or has a tab "
                    "or a line feed",
                    name, room);
}

/* The file that an array with the same values on all ranks belongs to. */
static int file_of(const taking *t, size_t bytes)
{
    const double middle = (double)t->before + (double)bytes / 2;
    const int f = (int)(middle / (double)t->total * t->s->writers);
    return f < t->s->writers ? f : t->s->writers - 1;
}

/* Does an optimizer have this with the same values on all ranks? */
static bool is_same(const taking *t, const void *data)
{
    bool same = false;
    for (int i = 0; i < t->n && !same; i++) {
        const ctn_optim *o = ctn__part_optim(&t->parts[i]);
        same = o && ctn__optim_same(o, data);
    }
    return same;
}

static ctn_status take_array(void *user, const char *name, ctn_dtype dtype, int ndim,
                             const int64_t *dim, void *data)
{
    taking *t = user;
    ctn__snapshot *s = t->s;
    char full[1024];
    size_t bytes = ctn_dtype_size(dtype);
    for (int i = 0; i < ndim; i++) bytes *= (size_t)dim[i];
    const size_t n = strlen(name);
    const bool slice = t->divided && n > 0 && name[n - 1] == ']';
    const bool same = t->divided && is_same(t, data);
    if (t->pass == 0) {
        t->total += same ? bytes : 0;
        return CTN_OK;
    }
    const int file = slice ? s->file : same ? file_of(t, bytes) : 0;
    t->before += same ? bytes : 0;
    CTN_TRY(full_name(t, name, full, sizeof full));
    if (t->pass == 1 && t->rank == 0 && !slice && s->writers > 1)
        ctn__text_add(&s->pairs, "%s\t%d\n", full, file);
    if (file != s->file || s->file < 0) return CTN_OK;
    if (t->pass == 1) return add_array(t, full, dtype, ndim, dim, bytes);
    const ctn__snap_array *a = t->next < s->array.n ? &s->array.at[t->next++] : NULL;
    if (!a || a->bytes != bytes || strcmp(a->name, full) != 0)
        return ctn_fail(CTN_ESTATE, "checkpoint: %s changed while the state was visited", full);
    copy(s->memory + a->at, data, bytes, t->threads);
    return CTN_OK;
}

static ctn_status nothing(void *user, const char *name, ctn_dtype dtype, int ndim,
                          const int64_t *dim, void *data)
{
    (void)user, (void)name, (void)dtype, (void)ndim, (void)dim, (void)data;
    return CTN_OK;
}

/* Where rank 0 writes alone, it collects sharded state in the last pass, and the other ranks only
 * take part in that. */
static ctn_status visit_optim(taking *t, ctn_optim *o)
{
    if (t->divided || t->size == 1) return ctn__optim_visit_own(o, take_array, t);
    if (t->pass < 2) return t->rank == 0 ? ctn__optim_list(o, take_array, t) : CTN_OK;
    return ctn_optim_visit(o, t->rank == 0 ? take_array : nothing, t);
}

static ctn_status visit_all(taking *t)
{
    t->before = 0;
    for (int i = 0; i < t->n; i++) {
        const ctn_state_part *part = &t->parts[i];
        ctn_optim *o = ctn__part_optim(part);
        t->prefix = part->prefix;
        if (o) CTN_TRY(visit_optim(t, o));
        else if (t->divided || t->rank == 0) CTN_TRY(part->visit(part->object, take_array, t));
    }
    return CTN_OK;
}

/* Is there sharded state? *bytes: of all of it. */
static bool sharded(const taking *t, uint64_t *bytes)
{
    bool any = false;
    *bytes = 0;
    for (int i = 0; i < t->n; i++) {
        const ctn_optim *o = ctn__part_optim(&t->parts[i]);
        if (!o || !ctn__optim_sharded(o)) continue;
        any = true;
        *bytes += (uint64_t)(o->pool->count * o->nstates) * sizeof(float);
    }
    return any;
}

/* All ranks write their slices of sharded state, unless it is small: then rank 0 collects it, so
 * that the number of files and the manifest do not grow with the number of ranks. */
static bool divides(const taking *t, uint64_t least)
{
    uint64_t bytes;
    return t->size > 1 && (!sharded(t, &bytes) || bytes >= least);
}

/* A writer has at least `least` bytes. Writers are spread over the job. */
static void choose_writers(taking *t, uint64_t least)
{
    ctn__snapshot *s = t->s;
    uint64_t n = t->total / (least ? least : 1), bytes;
    if (n < 1) n = 1;
    s->writers = n < (uint64_t)t->size ? (int)n : t->size;
    if (t->divided && sharded(t, &bytes)) s->writers = t->size;
    s->file = -1;
    for (int f = 0; f < s->writers; f++)
        if ((int)((int64_t)f * t->size / s->writers) == t->rank) s->file = f;
}

static void forget(ctn__snapshot *s)
{
    for (size_t i = 0; i < s->array.n; i++) ctn__free(s->array.at[i].name);
    s->array.n = 0;
    s->bytes = 0;
    s->pairs.n = 0;
    if (s->pairs.s) s->pairs.s[0] = 0;
}

static ctn_status make_room(ctn__snapshot *s, int threads)
{
    if (s->bytes <= s->room) return CTN_OK;
    ctn__free(s->memory);
    s->room = 0;
    s->memory = ctn__aligned(s->bytes);
    if (!s->memory) return CTN_ENOMEM;
    s->room = s->bytes;
    ctn__zero(s->memory, s->bytes, threads); /* so that a snapshot has no page faults */
    return CTN_OK;
}

ctn_status ctn__snapshot_take(ctn__snapshot *s, ctn_comm *c, int64_t least, bool values, int n,
                              const ctn_state_part *parts)
{
    taking t = {.s = s,
                .n = n,
                .parts = parts,
                .rank = c ? ctn_comm_rank(c) : 0,
                .size = c ? ctn_comm_size(c) : 1,
                .threads = 1};
    for (int i = 0; i < n; i++)
        if (ctn__part_optim(&parts[i])) t.threads = ctn__part_optim(&parts[i])->ctx->threads;
    const bool own = least == CTN__SNAPSHOT_OWN;
    t.divided = own || (least >= 0 && divides(&t, (uint64_t)least));
    s->divided = t.divided;
    forget(s);
    CTN_TRY(visit_all(&t));
    if (own) s->writers = 1, s->file = 0; /* as if each rank wrote alone */
    else choose_writers(&t, (uint64_t)least);
    t.pass = 1;
    CTN_TRY(visit_all(&t));
    CTN_TRY(make_room(s, t.threads));
    if (!values) return CTN_OK;
    t.pass = 2;
    return visit_all(&t);
}

void ctn__snapshot_free(ctn__snapshot *s)
{
    forget(s);
    ctn__vec_free(&s->array);
    ctn__text_free(&s->pairs);
    ctn__free(s->memory);
}
