/* SPDX-License-Identifier: Apache-2.0
 *
 * Broadcasts the variables of one rank to all ranks. They are packed into a few large messages,
 * since a network has hundreds of variables and most of them are small. Before anything is sent
 * the ranks compare their variables, so that ranks with different networks all get an error
 * instead of wrong values.
 */
#include "distributed/distributed.h"

#define MOST ((size_t)32 << 20) /* maximum bytes per message */

static const char *name_of(const ctn_vars *v, int i)
{
    return v->name ? v->name[i] : ctn_var_name(v->var[i]);
}

static ctn_status check(const ctn_comm *c, const ctn_vars *v, int root)
{
    if (!c) return ctn_fail(CTN_EARG, "dist_broadcast_vars: no communicator");
    if (root < 0 || root >= ctn_comm_size(c))
        return ctn_fail(CTN_EARG, "dist_broadcast_vars: root is %d, but there are %d ranks", root,
                        ctn_comm_size(c));
    for (int i = 0; i < v->n; i++)
        if (v->var[i]->ctx->level > 0)
            return ctn_fail(CTN_ESTATE, "dist_broadcast_vars: a scope is open");
    return CTN_OK;
}

/* Checks that all ranks have the same variables. The result is the same on all ranks. */
static ctn_status compare(ctn_comm *c, const ctn_vars *v, uint64_t *bytes)
{
    char text[128];
    ctn__hash128 all = {0}; /* of names, types and dimensions, in order */
    *bytes = 0;
    for (int i = 0; i < v->n; i++) {
        const ctn_desc *d = &v->var[i]->d;
        const char *name = name_of(v, i);
        const ctn__hash128 part[3] = {all, ctn__hash(name, strlen(name)),
                                      ctn__hash(d->dim, (size_t)d->ndim * sizeof *d->dim)};
        const uint64_t word[2] = {(uint64_t)d->dtype, (uint64_t)d->ndim};
        const ctn__hash128 both[2] = {ctn__hash(part, sizeof part), ctn__hash(word, sizeof word)};
        all = ctn__hash(both, sizeof both);
        *bytes += ctn__bytes(d);
    }
    snprintf(text, sizeof text,
             "%d variables of %llu bytes with the hash %016llx of names, types and shapes", v->n,
             (unsigned long long)*bytes, (unsigned long long)all.lo);
    return ctn_comm_agree(c, text);
}

/* A position in the values: byte `at` of variable i. */
typedef struct {
    int i;
    size_t at;
} place;

/* Copies the next n bytes of the variables into buf (in), or from buf into the variables. */
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
    uint64_t bytes;
    CTN_TRY(compare(c, &vars, &bytes));
    if (bytes == 0) return CTN_OK;
    const size_t most = bytes < MOST ? (size_t)bytes : MOST;
    const bool sends = ctn_comm_rank(c) == root;
    place from = {0}, to = {0};
    char *buf = ctn__malloc(most);
    if (!buf) return CTN_ENOMEM;
    for (size_t done = 0, n; done < bytes && st == CTN_OK; done += n) {
        n = bytes - done < most ? (size_t)bytes - done : most;
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
