/* SPDX-License-Identifier: Apache-2.0
 *
 * A network whose parts are on different ranks: a list of modules with the ranks that their inputs
 * come from and their results go to. A call is a composition of dist_recv, the module and
 * dist_send. What remains of the sends, numbers 0, is added to the result of the chain, so that a
 * loss made from it leads the backward pass to all of them.
 *
 * Before the first call the ranks compare their lists (chain_check.c): texts are collected on rank
 * 0 and given to all.
 */
#include "distributed/chain.h"
#include "nn/nn.h"

typedef struct {
    int rank;
    const char *at;
    ctn_desc d;              /* of a receive */
    bool rows[CTN_MAX_DIMS]; /* these lengths are the number of rows of a call */
} edge;

typedef struct {
    ctn_module *m;
    const char *at;
    CTN__VEC(edge) in;
    CTN__VEC(edge) out;
} part;

struct ctn_dist_chain {
    ctn_context *ctx;
    ctn_comm *c;
    CTN__VEC(part) parts;
    bool checked;
};

ctn_status ctn_dist_chain_new(ctn_dist_chain **out, ctn_context *ctx, ctn_comm *c)
{
    if (!out || !ctx || !c) return ctn_fail(CTN_EARG, "dist_chain_new: NULL argument");
    *out = ctn__calloc(1, sizeof **out);
    if (!*out) return CTN_ENOMEM;
    **out = (ctn_dist_chain){.ctx = ctx, .c = c};
    return CTN_OK;
}

void ctn_dist_chain_free(ctn_dist_chain *chain)
{
    if (!chain) return;
    for (size_t i = 0; i < chain->parts.n; i++) {
        ctn__vec_free(&chain->parts.at[i].in);
        ctn__vec_free(&chain->parts.at[i].out);
    }
    ctn__vec_free(&chain->parts);
    ctn__free(chain);
}

static ctn_status can_add(const ctn_dist_chain *chain, const char *who, const char *at)
{
    if (!chain) return ctn_fail(CTN_EARG, "%s: no chain (%s)", who, at);
    if (chain->checked)
        return ctn_fail(CTN_ESTATE, "%s: the chain was already called (%s)", who, at);
    return CTN_OK;
}

ctn_status ctn_dist_chain_add_at(const char *at, ctn_dist_chain *chain, ctn_module *m)
{
    CTN_TRY(can_add(chain, "dist_chain_add", at));
    if (!m) return ctn_fail(CTN_EARG, "dist_chain_add: no module (%s)", at);
    const part p = {.m = m, .at = at};
    return ctn__vec_push(&chain->parts, p) ? CTN_OK : CTN_ENOMEM;
}

/* The part that an edge belongs to. */
static ctn_status last_part(part **out, ctn_dist_chain *chain, const char *who, const char *at,
                            int rank)
{
    CTN_TRY(can_add(chain, who, at));
    if (chain->parts.n == 0)
        return ctn_fail(CTN_EARG, "%s: add a part with ctn_dist_chain_add first (%s)", who, at);
    if (rank < 0 || rank >= ctn_comm_size(chain->c) || rank == ctn_comm_rank(chain->c))
        return ctn_fail(CTN_EARG, "%s: got rank %d, expected another one of %d ranks (%s)", who,
                        rank, ctn_comm_size(chain->c), at);
    *out = &chain->parts.at[chain->parts.n - 1];
    return CTN_OK;
}

ctn_status ctn_dist_chain_recv_at(const char *at, ctn_dist_chain *chain, int rank, ctn_dtype dtype,
                                  int ndim, const int64_t *dims)
{
    static const char who[] = "dist_chain_recv";
    edge e = {.rank = rank, .at = at};
    int64_t known[CTN_MAX_DIMS];
    part *p = NULL;
    CTN_TRY(last_part(&p, chain, who, at, rank));
    if (ndim < 0 || ndim > CTN_MAX_DIMS)
        return ctn_fail(CTN_EARG, "%s: got %d dimensions, expected 0 to %d (%s)", who, ndim,
                        CTN_MAX_DIMS, at);
    if (p->in.n == CTN_MAX_TENSORS)
        return ctn_fail(CTN_EARG, "%s: a part has at most %d inputs (%s)", who, CTN_MAX_TENSORS,
                        at);
    for (int i = 0; i < ndim; i++) {
        e.rows[i] = dims[i] == -1;
        known[i] = e.rows[i] ? 1 : dims[i];
    }
    CTN_TRY(ctn__desc_set(&e.d, who, dtype, ndim, known));
    return ctn__vec_push(&p->in, e) ? CTN_OK : CTN_ENOMEM;
}

ctn_status ctn_dist_chain_send_at(const char *at, ctn_dist_chain *chain, int rank)
{
    part *p = NULL;
    const edge e = {.rank = rank, .at = at};
    CTN_TRY(last_part(&p, chain, "dist_chain_send", at, rank));
    return ctn__vec_push(&p->out, e) ? CTN_OK : CTN_ENOMEM;
}

/* ---- the check before the first call --------------------------------------------------------- */

static void write_lines(const ctn_dist_chain *chain, ctn__text *t)
{
    const int rank = ctn_comm_rank(chain->c);
    for (size_t i = 0; i < chain->parts.n; i++) {
        const part *p = &chain->parts.at[i];
        for (size_t k = 0; k < p->in.n; k++)
            ctn__chain_line(t, rank, CTN__CHAIN_RECV, p->in.at[k].rank, p->in.at[k].at);
        for (size_t k = 0; k < p->out.n; k++)
            ctn__chain_line(t, rank, CTN__CHAIN_SEND, p->out.at[k].rank, p->out.at[k].at);
        if (p->out.n == 0) ctn__chain_line(t, rank, CTN__CHAIN_END, rank, p->at);
    }
}

static ctn_status check_ranks(const ctn_dist_chain *chain)
{
    ctn__text t = {0};
    char *all = NULL;
    write_lines(chain, &t);
    ctn_status st = ctn__comm_root_status(chain->c, ctn__comm_collect(chain->c, &t));
    if (st == CTN_OK) {
        if (ctn_comm_rank(chain->c) == 0) all = t.s;
        st = ctn__comm_share_text(chain->c, &all);
    }
    if (st == CTN_OK) st = ctn__chain_check(all ? all : "", ctn_comm_size(chain->c));
    if (all != t.s) ctn__free(all);
    ctn__text_free(&t);
    return st;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static ctn_tensor *receive(const ctn_dist_chain *chain, const edge *e, int64_t rows)
{
    int64_t dims[CTN_MAX_DIMS];
    for (int i = 0; i < e->d.ndim; i++) dims[i] = e->rows[i] ? rows : e->d.dim[i];
    return ctn_dist_recv_at(e->at, chain->c, chain->ctx, e->rank, e->d.dtype, e->d.ndim, dims);
}

static ctn_tensor *call_part(const ctn_dist_chain *chain, const part *p, ctn_tensor *x,
                             int64_t rows)
{
    ctn_tensors in = {.n = (int)p->in.n};
    if (p->in.n == 0 && !x && ctn_error_status() == CTN_OK)
        ctn_fail(CTN_EARG, "dist_chain_call: the part at %s receives nothing, and x is NULL",
                 p->at);
    if (p->in.n == 0) return x ? ctn_call_at(p->at, p->m, x) : NULL;
    for (int i = 0; i < in.n; i++)
        if (!(in.t[i] = receive(chain, &p->in.at[i], rows))) return NULL;
    const ctn_tensors y = ctn_call_multi_at(p->at, p->m, in);
    return y.n > 0 ? y.t[0] : NULL;
}

/* a + b in the type of a; either may be NULL. b is a number. */
static ctn_tensor *plus(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    if (!a || !b) return a ? a : b;
    if (a->d.dtype != b->d.dtype) b = ctn_cast_at(at, b, a->d.dtype);
    return ctn_add_at(at, a, b);
}

static ctn_tensor *call_parts(const char *at, const ctn_dist_chain *chain, ctn_tensor *x,
                              int64_t rows)
{
    ctn_tensor *result = NULL, *sent = NULL;
    for (size_t i = 0; i < chain->parts.n; i++) {
        const part *p = &chain->parts.at[i];
        ctn_tensor *y = call_part(chain, p, x, rows);
        if (!y) return NULL;
        if (p->out.n == 0) result = y;
        for (size_t k = 0; k < p->out.n; k++) {
            const edge *e = &p->out.at[k];
            ctn_tensor *s = ctn_dist_send_at(e->at, chain->c, y, e->rank);
            if (!s || !(sent = plus(at, sent, s))) return NULL;
        }
    }
    result = plus(at, result, sent);
    return result || chain->parts.n > 0 ? result : ctn_number_at(at, chain->ctx, 0);
}

ctn_tensor *ctn_dist_chain_call_at(const char *at, ctn_dist_chain *chain, ctn_tensor *x,
                                   int64_t rows)
{
    if (!chain) {
        ctn_fail(CTN_EARG, "dist_chain_call: no chain (%s)", at);
        return NULL;
    }
    if (!chain->checked && check_ranks(chain) < 0) return NULL;
    chain->checked = true;
    ctn_tensor *y = call_parts(at, chain, x, rows);
    if (!y) ctn_comm_break(chain->c, ctn_error_message()); /* the others wait for this rank */
    return y;
}
