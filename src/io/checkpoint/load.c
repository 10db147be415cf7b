/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads a checkpoint on any number of ranks, however many have saved it. Rank 0 finds the newest
 * folder and sends its manifest to all ranks. Each rank then verifies and reads its share of the
 * files, if it sees the folder; otherwise rank 0 reads all of them. Every array is broadcast by the
 * rank that reads its file, straight to where it belongs. The slices of an array that many ranks
 * read are brought together by one sum, so the messages of a rank grow with the logarithm of the
 * number of ranks.
 *
 * A visit may itself be collective (that of a sharded optimizer), so no rank may leave one early.
 */
#include <unistd.h>

#include "comm/comm.h"
#include "graph/graph.h"
#include "io/checkpoint/checkpoint.h"
#include "optim/optim.h"

struct ctn__ckpt {
    ctn_comm *c;
    ctn__text path;
    char *manifest;
    ctn__manifest m;
    int readers;         /* file f is read by rank f % readers */
    ctn__st_file **file; /* those that this rank has opened */
};

static int rank_of(const ctn__ckpt *k)
{
    return k->c ? ctn_comm_rank(k->c) : 0;
}

static int reader_of(const ctn__ckpt *k, int file)
{
    return file % k->readers;
}

void ctn__ckpt_close(ctn__ckpt *k)
{
    if (!k) return;
    for (size_t i = 0; k->file && i < k->m.file.n; i++) ctn__st_close(k->file[i]);
    ctn__free(k->file);
    ctn__free(k->manifest);
    ctn__manifest_free(&k->m);
    ctn__text_free(&k->path);
    ctn__free(k);
}

const char *ctn__ckpt_path(const ctn__ckpt *k)
{
    return k->path.s;
}

/* ---- finding --------------------------------------------------------------------------------- */

static bool has_several(const ctn__manifest *m)
{
    for (size_t i = 0; i < m->file.n; i++)
        if (strncmp(m->file.at[i].name, "state-", 6) == 0) return true;
    return false;
}

/* Rank 0 reads a checkpoint with one file of arrays, and one that only rank 0 can see. */
static ctn_status choose_readers(ctn__ckpt *k)
{
    int64_t seen, scratch;
    ctn__text full = {0};
    k->readers = 1;
    if (!k->c || !has_several(&k->m)) return CTN_OK;
    ctn__text_add(&full, "%s/" CTN__CKPT_MANIFEST, k->path.s);
    seen = !full.failed && access(full.s, R_OK) == 0;
    ctn__text_free(&full);
    CTN_TRY(ctn__comm_sum(k->c, &seen, 1, CTN_I64, &scratch));
    if (seen == ctn_comm_size(k->c)) k->readers = ctn_comm_size(k->c);
    return CTN_OK;
}

/* Adds a line for each damage in this rank's files; on rank 0, those of all ranks. */
static ctn_status verify(const ctn__ckpt *k, ctn__text *found)
{
    ctn_status st = CTN_OK;
    for (size_t i = 0; i < k->m.file.n && st == CTN_OK; i++)
        if (reader_of(k, (int)i) == rank_of(k))
            st = ctn__manifest_verify(&k->m, k->path.s, (int)i, found);
    CTN_TRY(ctn__comm_alone(k->c, st));
    return ctn__comm_collect(k->c, found);
}

/* Rank 0 reads the manifest. Returns CTN_END if it is damaged, which is then the first line of
 * *found. */
static ctn_status read_manifest(ctn__ckpt *k, const char *dir, int64_t number, ctn__text *found)
{
    ctn_status st = ctn__numbered_path(&k->path, dir, number);
    if (st == CTN_OK) st = ctn__numbered_read(k->path.s, CTN__CKPT_MANIFEST, &k->manifest);
    if (st == CTN_OK) st = ctn__manifest_parse(&k->m, k->path.s, k->manifest);
    if (st == CTN_OK || st == CTN_ENOMEM) return st;
    ctn__ckpt_add_error(found);
    ctn__text_add(found, "\n");
    return CTN_END;
}

/* The other ranks get what rank 0 has read. */
static ctn_status share_manifest(ctn__ckpt *k)
{
    char *path = rank_of(k) == 0 ? k->path.s : NULL;
    if (!k->c) return CTN_OK;
    ctn_status st = ctn__comm_share_text(k->c, &path);
    if (st == CTN_OK) st = ctn__comm_share_text(k->c, &k->manifest);
    if (rank_of(k) == 0) return st;
    if (path) ctn__text_add(&k->path, "%s", path);
    ctn__free(path);
    if (st == CTN_OK && k->path.failed) st = CTN_ENOMEM;
    if (st == CTN_OK) st = ctn__manifest_parse(&k->m, k->path.s, k->manifest);
    return ctn__comm_alone(k->c, st);
}

/* Opens checkpoint `number`, which rank 0 has found. *whole: it is intact; the same on all
 * ranks. */
static ctn_status open_one(ctn__ckpt *k, const char *dir, int64_t number, bool *whole)
{
    ctn__text found = {0};
    ctn_status st = rank_of(k) == 0 ? read_manifest(k, dir, number, &found) : CTN_OK;
    st = ctn__comm_root_status(k->c, st);
    if (st == CTN_OK) st = share_manifest(k);
    if (st == CTN_OK) st = choose_readers(k);
    if (st == CTN_OK) st = verify(k, &found);
    if (st == CTN_OK) st = ctn__comm_root_status(k->c, found.n ? CTN_END : CTN_OK);
    *whole = st == CTN_OK;
    if (rank_of(k) == 0 && st == CTN_END) {
        ctn__warn("the checkpoint %s is damaged; looking for an older one:\n%s", k->path.s,
                  found.s ? found.s : "");
        ctn__numbered_put_aside(k->path.s, dir, number);
    }
    ctn__text_free(&found);
    return st == CTN_END ? CTN_OK : st;
}

static ctn__ckpt *ckpt_new(ctn_comm *c)
{
    ctn__ckpt *k = ctn__calloc(1, sizeof *k);
    if (k) k->c = c;
    else ctn__comm_alone(c, CTN_ENOMEM);
    return k;
}

static ctn_status none_left(const char *dir, bool any)
{
    return any ? ctn_fail(CTN_EFORMAT, "checkpoint: every one in %s is damaged", dir)
               : ctn_fail(CTN_ENOTFOUND, "checkpoint: found none in %s", dir);
}

ctn_status ctn__ckpt_open(ctn__ckpt **out, ctn_comm *c, const char *dir)
{
    int64_t below = INT64_MAX;
    *out = NULL;
    for (bool any = false, whole = false;; any = true) {
        ctn__ckpt *k = ckpt_new(c);
        if (!k) return CTN_ENOMEM;
        if (rank_of(k) == 0) below = ctn__numbered_below(dir, below);
        ctn_status st = ctn__comm_root_status(c, below < 0 ? none_left(dir, any) : CTN_OK);
        if (st == CTN_OK) st = open_one(k, dir, below, &whole);
        if (st == CTN_OK && whole) {
            k->file = ctn__calloc(k->m.file.n + 1, sizeof(void *));
            if (!k->file) st = ctn__comm_alone(c, CTN_ENOMEM);
            if (st == CTN_OK) *out = k;
            if (st == CTN_OK) return CTN_OK;
        }
        ctn__ckpt_close(k);
        CTN_TRY(st);
    }
}

ctn_status ctn__ckpt_read(ctn__ckpt *k, const char *file, char **text)
{
    ctn_status st = CTN_OK;
    *text = NULL;
    if (rank_of(k) == 0) st = ctn__numbered_read(k->path.s, file, text);
    CTN_TRY(ctn__comm_root_status(k->c, st));
    return ctn__comm_share_text(k->c, text);
}

/* ---- loading --------------------------------------------------------------------------------- */

typedef struct {
    ctn__ckpt *k;
    const char *prefix;
    bool values;       /* the second visit */
    ctn_status st;     /* first failure; the same on all ranks */
    ctn__hash128 seen; /* hash of the names, types and shapes of this part */
    size_t found;      /* number of its arrays */
} visit;

static ctn_status mismatch(const char *full, const ctn_desc *want, const ctn__ckpt_array *a)
{
    char here[128], there[128];
    ctn_desc have = {.ndim = a->ndim};
    memcpy(have.dim, a->dim, sizeof a->dim);
    return ctn_fail(CTN_ESHAPE, "checkpoint: %s is %s in this program and %s in the file", full,
                    ctn__shape_text(want, here, sizeof here),
                    ctn__shape_text(&have, there, sizeof there));
}

/* Marks the arrays or slices that `full` is loaded from, and checks that they fit. */
static ctn_status check_array(const ctn__manifest *m, const char *full, ctn_dtype dtype,
                              const ctn_desc *want)
{
    ctn__ckpt_array *a = ctn__manifest_find(m, full), *s = NULL;
    const ctn__ckpt_array *end = m->array.at + m->array.n;
    int64_t covered = 0, from, to;
    if (a) {
        ctn_desc have = {.ndim = a->ndim};
        memcpy(have.dim, a->dim, sizeof a->dim);
        a->used = true;
        if (!ctn__same_shape(want, &have)) return mismatch(full, want, a);
    } else {
        s = a = ctn__manifest_slices(m, full);
        if (!s) return ctn_fail(CTN_ENOTFOUND, "checkpoint: %s is not in it", full);
        for (; s < end && ctn__manifest_slice(s, full, &from, &to); s++) {
            if (s->dtype != CTN_F32 || from != covered) break;
            s->used = true;
            covered = to;
            if (to > ctn__count(want)) return mismatch(full, want, s);
        }
        if (covered != ctn__count(want))
            return ctn_fail(CTN_EFORMAT, "checkpoint: %lld of %lld elements of %s are missing",
                            (long long)(ctn__count(want) - covered), (long long)ctn__count(want),
                            full);
    }
    if (a->dtype == dtype) return CTN_OK;
    return ctn_fail(CTN_EDTYPE, "checkpoint: %s is %s in this program and %s in the file", full,
                    ctn_dtype_name(dtype), ctn_dtype_name(a->dtype));
}

static ctn_status read_here(ctn__ckpt *k, const ctn__ckpt_array *a, char *to)
{
    ctn__st_file **f = &k->file[a->file];
    CTN_TRY(ctn__manifest_open(&k->m, k->path.s, a->file, f));
    const ctn__st_array *x = ctn__st_find(*f, a->name);
    if (!x || x->bytes != ctn__manifest_bytes(a))
        return ctn_fail(CTN_EFORMAT, "checkpoint: %s is not in its file", a->name);
    return ctn__st_read(*f, x, to);
}

static ctn_status broadcast(ctn__ckpt *k, void *to, size_t bytes, int root)
{
    return k->c ? ctn_comm_broadcast(k->c, to, bytes, root) : CTN_OK;
}

/* Reads an array on its reader and broadcasts it. */
static ctn_status bring(ctn__ckpt *k, const ctn__ckpt_array *a, char *to)
{
    const int root = reader_of(k, a->file);
    const ctn_status st = rank_of(k) == root ? read_here(k, a, to) : CTN_OK;
    CTN_TRY(ctn__comm_status_of(k->c, st, root));
    return broadcast(k, to, ctn__manifest_bytes(a), root);
}

/* Reads this rank's slices of `full` to their places. */
static ctn_status read_slices(ctn__ckpt *k, const char *full, float *data)
{
    const ctn__ckpt_array *a = ctn__manifest_slices(&k->m, full);
    const ctn__ckpt_array *end = k->m.array.at + k->m.array.n;
    int64_t from, to;
    for (; a && a < end && ctn__manifest_slice(a, full, &from, &to); a++)
        if (reader_of(k, a->file) == rank_of(k)) CTN_TRY(read_here(k, a, (char *)(data + from)));
    return CTN_OK;
}

/* The status of the highest rank that has failed, on all ranks. */
static ctn_status status_of_all(ctn__ckpt *k, ctn_status st)
{
    if (!k->c) return st;
    double failed = st < 0 ? rank_of(k) : -1;
    CTN_TRY(ctn__comm_max_small(k->c, 1, &failed));
    return failed < 0 ? CTN_OK : ctn__comm_status_of(k->c, st, (int)failed);
}

static ctn_status bring_slices(ctn__ckpt *k, const char *full, float *data, int64_t count)
{
    if (k->readers == 1) {
        const ctn_status st = rank_of(k) == 0 ? read_slices(k, full, data) : CTN_OK;
        CTN_TRY(ctn__comm_root_status(k->c, st));
        return broadcast(k, data, (size_t)count * sizeof *data, 0);
    }
    memset(data, 0, (size_t)count * sizeof *data);
    CTN_TRY(status_of_all(k, read_slices(k, full, data)));
    return ctn__comm_join(k->c, data, count);
}

static ctn_status bring_all(ctn__ckpt *k, const char *full, const ctn_desc *d, void *data)
{
    const ctn__ckpt_array *a = ctn__manifest_find(&k->m, full);
    return a ? bring(k, a, data) : bring_slices(k, full, data, ctn__count(d));
}

static void note(visit *v, const char *full, ctn_dtype dtype, const ctn_desc *d)
{
    const int32_t word[2] = {(int32_t)dtype, d->ndim};
    const ctn__hash128 part[4] = {v->seen, ctn__hash(full, strlen(full)),
                                  ctn__hash(word, sizeof word),
                                  ctn__hash(d->dim, (size_t)d->ndim * sizeof *d->dim)};
    v->seen = ctn__hash(part, sizeof part);
    v->found++;
}

/* The first visit never fails: its error is kept until the ranks have compared what they visit. */
static ctn_status load_array(void *user, const char *name, ctn_dtype dtype, int ndim,
                             const int64_t *dim, void *data)
{
    visit *v = user;
    char full[1024];
    ctn_desc d = {.ndim = ndim};
    if (ndim > 0) memcpy(d.dim, dim, (size_t)ndim * sizeof *dim);
    snprintf(full, sizeof full, "%s%s%s", v->prefix, *v->prefix ? "." : "", name);
    if (v->values) return v->st = bring_all(v->k, full, &d, data);
    note(v, full, dtype, &d);
    if (v->st == CTN_OK) v->st = check_array(&v->k->m, full, dtype, &d);
    return CTN_OK;
}

/* The first visit needs no values, so sharded ones are not gathered for it. */
static ctn_status visit_all(visit *v, int n, const ctn_state_part *parts, ctn__text *arrays)
{
    for (int i = 0; i < n; i++) {
        ctn_optim *o = ctn__part_optim(&parts[i]);
        v->prefix = parts[i].prefix;
        v->found = 0;
        v->seen = (ctn__hash128){0};
        CTN_TRY(o && !v->values ? ctn__optim_list(o, load_array, v)
                                : parts[i].visit(parts[i].object, load_array, v));
        if (!v->values)
            ctn__text_add(arrays, "%zu arrays in '%s' with the hash %016llx\n", v->found, v->prefix,
                          (unsigned long long)v->seen.lo);
    }
    return arrays->failed ? CTN_ENOMEM : CTN_OK;
}

/* An array left over would be lost state. */
static ctn_status check_all_used(const ctn__ckpt *k)
{
    for (size_t i = 0; i < k->m.array.n; i++)
        if (!k->m.array.at[i].used)
            return ctn_fail(CTN_ENOTFOUND,
                            "checkpoint: %s has %s, which this program does not have; was it saved "
                            "with another model or optimizer?",
                            k->path.s, k->m.array.at[i].name);
    return CTN_OK;
}

ctn_status ctn__ckpt_load(ctn__ckpt *k, int n, const ctn_state_part *parts)
{
    visit v = {.k = k};
    ctn__text arrays = {0};
    ctn_status st = visit_all(&v, n, parts, &arrays);
    CTN_TRY_GOTO(st, done, ctn__comm_alone(k->c, st));
    if (v.st == CTN_OK) v.st = check_all_used(k);
    CTN_TRY_GOTO(st, done, ctn__comm_root_status(k->c, v.st));
    if (k->c) CTN_TRY_GOTO(st, done, ctn_comm_agree(k->c, arrays.s ? arrays.s : ""));
    v.values = true;
    v.st = CTN_OK;
    st = visit_all(&v, n, parts, &arrays);
    if (st < 0 && v.st == CTN_OK) ctn__comm_alone(k->c, st); /* a part refused its values */
done:
    ctn__text_free(&arrays);
    return st;
}

/* ---- states that differ between ranks -------------------------------------------------------- */

static ctn_status load_own_array(void *user, const char *name, ctn_dtype dtype, int ndim,
                                 const int64_t *dim, void *data)
{
    const visit *v = user;
    char full[1024];
    ctn_desc d = {.ndim = ndim};
    if (ndim > 0) memcpy(d.dim, dim, (size_t)ndim * sizeof *dim);
    snprintf(full, sizeof full, "%s%s%s", v->prefix, *v->prefix ? "." : "", name);
    const ctn__ckpt_array *a = ctn__manifest_find(&v->k->m, full);
    if (!a) return ctn_fail(CTN_ENOTFOUND, "checkpoint: %s is not in it", full);
    return v->values ? read_here(v->k, a, data) : check_array(&v->k->m, full, dtype, &d);
}

static ctn_status visit_own(visit *v, int n, const ctn_state_part *parts)
{
    for (int i = 0; i < n; i++) {
        ctn_optim *o = ctn__part_optim(&parts[i]);
        v->prefix = parts[i].prefix;
        CTN_TRY(o && !v->values ? ctn__optim_list(o, load_own_array, v)
                                : parts[i].visit(parts[i].object, load_own_array, v));
    }
    return CTN_OK;
}

/* Every array belongs to one of the ranks. */
static ctn_status check_all_taken(const ctn__ckpt *k)
{
    int64_t used = 0, scratch;
    for (size_t i = 0; i < k->m.array.n; i++) used += k->m.array.at[i].used;
    if (k->c) CTN_TRY(ctn__comm_sum(k->c, &used, 1, CTN_I64, &scratch));
    if (used == (int64_t)k->m.array.n) return CTN_OK;
    return ctn_fail(CTN_ENOTFOUND,
                    "checkpoint: %s has %zu arrays, but the ranks have %lld; was it saved by more "
                    "ranks, or with another model?",
                    k->path.s, k->m.array.n, (long long)used);
}

ctn_status ctn__ckpt_load_apart(ctn__ckpt *k, int n, const ctn_state_part *parts)
{
    visit v = {.k = k};
    CTN_TRY(status_of_all(k, visit_own(&v, n, parts)));
    CTN_TRY(check_all_taken(k));
    v.values = true;
    return status_of_all(k, visit_own(&v, n, parts));
}
