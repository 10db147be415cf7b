/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables of one rank on all: packed into few large messages, since a network has hundreds of
 * variables and most of them are small. Before anything is sent every rank shows what it has, so
 * that ranks with different networks all get an error instead of each other's numbers.
 */
#include "dist/dist.h"

#define MOST ((size_t)32 << 20) /* bytes of a message */

typedef struct {
    uint64_t bytes;
    ctn__hash128 shape; /* of names, types and dimensions, in order */
} summary;

static const char *name_of(const ctn_vars *v, int i)
{
    return v->name ? v->name[i] : ctn_var_name(v->var[i]);
}

static ctn_status check(const ctn_comm *c, const ctn_vars *v, int root)
{
    if (!c) return ctn_fail(CTN_EARG, "dist_broadcast_vars: no communicator");
    if (root < 0 || root >= ctn_comm_size(c))
        return ctn_fail(CTN_EARG, "dist_broadcast_vars: root is %d, there are %d ranks", root,
                        ctn_comm_size(c));
    for (int i = 0; i < v->n; i++)
        if (v->var[i]->ctx->level > 0)
            return ctn_fail(CTN_ESTATE, "dist_broadcast_vars: a scope is open");
    return CTN_OK;
}

static summary summarise(const ctn_vars *v)
{
    summary s = {0};
    for (int i = 0; i < v->n; i++) {
        const ctn_desc *d = &v->var[i]->d;
        const char *name = name_of(v, i);
        const ctn__hash128 part[3] = {s.shape, ctn__hash(name, strlen(name)),
                                      ctn__hash(d->dim, (size_t)d->ndim * sizeof *d->dim)};
        const uint64_t word[2] = {(uint64_t)d->dtype, (uint64_t)d->ndim};
        const ctn__hash128 both[2] = {ctn__hash(part, sizeof part), ctn__hash(word, sizeof word)};
        s.shape = ctn__hash(both, sizeof both);
        s.bytes += ctn__bytes(d);
    }
    return s;
}

/* The same variables everywhere? The same answer on all ranks. */
static ctn_status compare(ctn_comm *c, const summary *mine, int root)
{
    const int size = ctn_comm_size(c);
    ctn_status st = CTN_OK;
    summary *all = ctn__calloc((size_t)size, sizeof *all);
    if (!all) return CTN_ENOMEM;
    CTN_TRY_GOTO(st, done, ctn_comm_allgather(c, mine, sizeof *mine, all));
    for (int i = 0; i < size && st == CTN_OK; i++)
        if (all[i].bytes != all[root].bytes || all[i].shape.lo != all[root].shape.lo ||
            all[i].shape.hi != all[root].shape.hi)
            st = ctn_fail(CTN_EARG,
                          "dist_broadcast_vars: rank %d has other variables (%llu bytes) than rank "
                          "%d (%llu bytes): names, types and shapes must be the same",
                          i, (unsigned long long)all[i].bytes, root,
                          (unsigned long long)all[root].bytes);
done:
    ctn__free(all);
    return st;
}

/* Where the values are: byte `at` of variable i. */
typedef struct {
    int i;
    size_t at;
} place;

/* The next n bytes of all variables into buf, or out of it. */
static void copy(const ctn_vars *v, place *p, char *buf, size_t n, bool in)
{
    while (n > 0) {
        const size_t left = ctn__bytes(&v->var[p->i]->d) - p->at, k = left < n ? left : n;
        char *data = (char *)v->var[p->i]->data + p->at;
        if (k > 0) memcpy(in ? buf : data, in ? data : buf, k);
        buf += k;
        n -= k;
        p->at += k;
        if (k < left) return;
        p->i++;
        p->at = 0;
    }
}

ctn_status ctn_dist_broadcast_vars(ctn_comm *c, ctn_vars vars, int root)
{
    ctn_status st = CTN_OK;
    CTN_TRY(check(c, &vars, root));
    for (int i = 0; i < vars.n; i++) CTN_TRY(ctn__pool_settle(vars.var[i]->pool));
    const summary mine = summarise(&vars);
    CTN_TRY(compare(c, &mine, root));
    if (mine.bytes == 0) return CTN_OK;
    const size_t most = mine.bytes < MOST ? (size_t)mine.bytes : MOST;
    const bool sends = ctn_comm_rank(c) == root;
    place from = {0}, to = {0};
    char *buf = ctn__malloc(most);
    if (!buf) return CTN_ENOMEM;
    for (size_t done = 0, n; done < mine.bytes && st == CTN_OK; done += n) {
        n = mine.bytes - done < most ? (size_t)mine.bytes - done : most;
        if (sends) copy(&vars, &from, buf, n, true);
        st = ctn_comm_broadcast(c, buf, n, root);
        if (st == CTN_OK && !sends) copy(&vars, &to, buf, n, false);
    }
    for (int i = 0; i < vars.n && !sends; i++) {
        vars.var[i]->version++;
        vars.var[i]->written_at = "ctn_dist_broadcast_vars";
    }
    ctn__free(buf);
    return st;
}
