/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers of graph networks: graph convolution (GCN), graph attention (GAT), and message passing
 * with networks of the user. Inputs are x (N,F), edges (E,2), whose rows are (source, target), and
 * perhaps features of the edges. What has no features of its own per edge is a product with the
 * sparse matrix of the edges, so that nothing of the size (E,F) is made.
 */
#include "nn/nn.h"

typedef struct {
    ctn_tensor *source, *target; /* (E) */
    int64_t nodes, edges;
} edge_list;

/* Errors: EARG, ESHAPE. */
static ctn_status split_edges(const char *who, const char *at, const ctn_tensors *in, edge_list *e)
{
    const ctn_tensor *x = in->t[0], *edges = in->t[1];
    char tx[128], te[128];
    if (!edges)
        return ctn_fail(CTN_EARG, "%s: no edges; the inputs are x, edges and edge features (%s)",
                        who, at);
    if (x->d.ndim != 2 || edges->d.ndim != 2 || edges->d.dim[1] != 2)
        return ctn_fail(CTN_ESHAPE,
                        "%s: x is %s, edges are %s; expected (nodes,F) and (edges,2) "
                        "(%s)",
                        who, ctn__shape_text(&x->d, tx, sizeof tx),
                        ctn__shape_text(&edges->d, te, sizeof te), at);
    e->nodes = x->d.dim[0];
    e->edges = edges->d.dim[0];
    ctn_tensor *column[2];
    CTN_TRY(ctn_split_at(at, in->t[1], 1, 2, (const int64_t[]){1, 1}, column));
    e->source = ctn_reshape_at(at, column[0], 1, &e->edges);
    e->target = ctn_reshape_at(at, column[1], 1, &e->edges);
    return e->source && e->target ? CTN_OK : ctn_error_status();
}

/* y[v] = sum over the edges to v of value[e] x[source]; value may be NULL: all 1. */
static ctn_tensor *sum_of_sources(const char *at, const edge_list *e, ctn_tensor *value,
                                  ctn_tensor *x)
{
    ctn_tensor *rowptr, *order;
    if (ctn_group_ids_at(at, e->target, e->nodes, &rowptr, &order) < 0) return NULL;
    if (value && !(value = ctn_index_select_at(at, value, order, 0))) return NULL;
    return ctn_spmm_at(at, rowptr, ctn_index_select_at(at, e->source, order, 0), value, x);
}

static ctn_tensors one_result(ctn_tensor *y)
{
    return (ctn_tensors){y != NULL, {y}};
}

/* The values of a matrix (out,in) by Glorot and Bengio: uniform, variance 2 / (in + out). */
static ctn_status add_linear(ctn_module **lin, ctn_module *m, int64_t in, int64_t out)
{
    const ctn_init *glorot = CTN_OPT(ctn_init, .kind = CTN_INIT_GLOROT_UNIFORM);
    CTN_TRY(ctn_linear_new(lin, m->ctx, in, out,
                           CTN_OPT(ctn_linear_opt, .no_bias = 1, .weight = glorot)));
    ctn_status st = ctn_module_add(m, "lin", *lin);
    if (st < 0) ctn_module_free(*lin);
    return st;
}

static ctn_tensor *add_bias(const char *at, ctn_tensor *y, ctn_var *bias)
{
    return bias && y ? ctn_add_at(at, y, ctn_use_at(at, bias)) : y;
}

/* ---- graph convolution ----------------------------------------------------------------------- */

typedef struct {
    ctn_module *lin;
    ctn_var *bias; /* NULL: none */
} graph_conv;

/* y = d (A h + h) + bias with h = d (x W^T), where d = 1 / sqrt(1 + weights of the edges to a
 * node). That is D^-1/2 (A + I) D^-1/2 x W^T without values for the entries of A. */
static ctn_tensors graph_conv_forward(void *self, ctn_module *m, ctn_tensors in)
{
    const graph_conv *g = self;
    const char *at = m->at;
    edge_list e;
    if (split_edges("graph_conv", at, &in, &e) < 0) return (ctn_tensors){0};
    ctn_tensor *weight = in.t[2];
    ctn_tensor *one = weight ? weight : ctn_full_at(at, m->ctx, 1, in.t[0]->d.dtype, 1, &e.edges);
    ctn_tensor *degree = ctn_shift_at(at, ctn_segment_sum_at(at, one, e.target, e.nodes), 1);
    ctn_tensor *d = ctn_unsqueeze_at(at, ctn_rsqrt_at(at, degree), 1);
    ctn_tensor *h = ctn_mul_at(at, ctn_call_at(at, g->lin, in.t[0]), d);
    ctn_tensor *y = ctn_add_at(at, sum_of_sources(at, &e, weight, h), h);
    return one_result(add_bias(at, ctn_mul_at(at, y, d), g->bias));
}

static ctn_status check_sizes(const char *who, int64_t in, int64_t out, int64_t heads)
{
    if (in >= 1 && out >= 1 && heads >= 1) return CTN_OK;
    return ctn_fail(CTN_EARG, "%s: %lld inputs, %lld outputs, %lld heads; all must be positive",
                    who, (long long)in, (long long)out, (long long)heads);
}

ctn_status ctn_graph_conv_new(ctn_module **m, ctn_context *ctx, int64_t in, int64_t out,
                              const ctn_graph_conv_opt *opt)
{
    ctn_graph_conv_opt o;
    ctn_module *made = NULL;
    if (!m) return ctn_fail(CTN_EARG, "graph_conv_new: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("graph_conv_new", &o, sizeof o, opt));
    CTN_TRY(check_sizes("graph_conv_new", in, out, 1));
    graph_conv *g = ctn__calloc(1, sizeof *g);
    CTN_TRY(ctn__module_own(&made, ctx, NULL, g, sizeof *g, CTN__ALL_REFS(graph_conv)));
    made->forward_multi = graph_conv_forward;
    ctn_status st = add_linear(&g->lin, made, in, out);
    if (st >= 0 && !o.no_bias)
        st = ctn_module_param(&g->bias, made, "bias", ctn_context_float_type(made->ctx),
                              CTN_SHAPE(out), NULL);
    if (st < 0) ctn_module_free(made);
    else *m = made;
    return st;
}

/* ---- graph attention ------------------------------------------------------------------------- */

typedef struct {
    ctn_module *lin;
    ctn_var *att_src, *att_dst; /* (1,H,D) */
    ctn_var *bias;              /* NULL: none */
    int64_t heads, width;
    bool mean;
    double slope, dropout;
} graph_attention;

/* An edge from each node to itself: the numbers 0 to N - 1 after those of the edges. */
static ctn_tensor *with_loops(const char *at, ctn_tensor *nodes, int64_t N)
{
    if (!nodes) return NULL;
    ctn_tensor *one = ctn_full_at(at, nodes->ctx, 1, CTN_F64, 1, &N);
    ctn_tensor *number = ctn_shift_at(at, ctn_cumsum_at(at, one, 0, 0), -1);
    ctn_tensor *both[2] = {nodes, ctn_cast_at(at, number, nodes->d.dtype)};
    return ctn_concat_at(at, 2, both, 0);
}

/* h (N,H,D), a (1,H,D) -> (N,H) */
static ctn_tensor *score(const char *at, ctn_tensor *h, ctn_var *a)
{
    return ctn_sum_at(at, ctn_mul_at(at, h, ctn_use_at(at, a)), 1, (const int64_t[]){-1}, 0);
}

/* Dropout of the edges and of the edges from nodes to themselves, which come after those of all
 * graphs: each part has its lines in the order of the graphs of a batch. */
static ctn_tensor *drop_edges(const char *at, ctn_tensor *alpha, double rate, int64_t nodes)
{
    if (!alpha || rate <= 0 || !ctn_context_training(alpha->ctx)) return alpha;
    const int64_t edges = alpha->d.dim[0] - nodes;
    ctn_tensor *part[2] = {ctn_slice_at(at, alpha, 0, 0, edges),
                           ctn_slice_at(at, alpha, 0, edges, nodes)};
    for (int i = 0; i < 2; i++) part[i] = ctn_dropout_at(at, part[i], rate);
    return ctn_concat_at(at, 2, part, 0);
}

/* For each head, with h = x W^T:
 *   s = leaky_relu(a_src h[source] + a_dst h[target]),  alpha = softmax of s over the edges to a
 *   node and the edge to itself,  y[v] = sum of alpha h[source] */
static ctn_tensors graph_attention_forward(void *self, ctn_module *m, ctn_tensors in)
{
    const graph_attention *g = self;
    const char *at = m->at;
    edge_list e;
    if (split_edges("graph_attention", at, &in, &e) < 0) return (ctn_tensors){0};
    e.source = with_loops(at, e.source, e.nodes);
    e.target = with_loops(at, e.target, e.nodes);
    ctn_tensor *h = ctn_reshape_at(at, ctn_call_at(at, g->lin, in.t[0]),
                                   CTN_SHAPE(e.nodes, g->heads, g->width));
    ctn_tensor *s = ctn_add_at(at, ctn_index_select_at(at, score(at, h, g->att_src), e.source, 0),
                               ctn_index_select_at(at, score(at, h, g->att_dst), e.target, 0));
    s = ctn_leaky_relu_at(at, s, g->slope);
    ctn_tensor *alpha = ctn_segment_softmax_at(at, s, e.target, e.nodes);
    alpha = drop_edges(at, alpha, g->dropout, e.nodes);
    if (!alpha) return (ctn_tensors){0};
    ctn_tensor *y = sum_of_sources(at, &e, alpha, h);
    y = g->mean ? ctn_mean_at(at, y, 1, (const int64_t[]){1}, 0)
                : ctn_reshape_at(at, y, CTN_SHAPE(e.nodes, g->heads * g->width));
    return one_result(add_bias(at, y, g->bias));
}

static ctn_status fill_attention(ctn_module *m, int64_t in, bool bias)
{
    graph_attention *g = m->self;
    const int64_t H = g->heads, D = g->width;
    const ctn_init *glorot =
        CTN_OPT(ctn_init, .kind = CTN_INIT_GLOROT_UNIFORM, .fan_in = H, .fan_out = D);
    CTN_TRY(add_linear(&g->lin, m, in, H * D));
    CTN_TRY(ctn_module_param(&g->att_src, m, "att_src", ctn_context_float_type(m->ctx),
                             CTN_SHAPE(1, H, D), glorot));
    CTN_TRY(ctn_module_param(&g->att_dst, m, "att_dst", ctn_context_float_type(m->ctx),
                             CTN_SHAPE(1, H, D), glorot));
    if (!bias) return CTN_OK;
    return ctn_module_param(&g->bias, m, "bias", ctn_context_float_type(m->ctx),
                            CTN_SHAPE(g->mean ? D : H * D), NULL);
}

ctn_status ctn_graph_attention_new(ctn_module **m, ctn_context *ctx, int64_t in, int64_t out,
                                   const ctn_graph_attention_opt *opt)
{
    ctn_graph_attention_opt o;
    ctn_module *made = NULL;
    if (!m) return ctn_fail(CTN_EARG, "graph_attention_new: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("graph_attention_new", &o, sizeof o, opt));
    if (o.heads == 0) o.heads = 1;
    CTN_TRY(check_sizes("graph_attention_new", in, out, o.heads));
    graph_attention *g = ctn__calloc(1, sizeof *g);
    if (g)
        *g = (graph_attention){.heads = o.heads,
                               .width = out,
                               .mean = o.mean != 0,
                               .slope = o.slope != 0 ? o.slope : 0.2,
                               .dropout = o.dropout};
    CTN_TRY(ctn__module_own(&made, ctx, NULL, g, sizeof *g, CTN__REFS(graph_attention, heads)));
    made->forward_multi = graph_attention_forward;
    ctn_status st = fill_attention(made, in, !o.no_bias);
    if (st < 0) ctn_module_free(made);
    else *m = made;
    return st;
}

/* ---- message passing ------------------------------------------------------------------------- */

typedef struct {
    ctn_module *edge, *node;
    ctn_aggregate aggregate;
    bool residual;
} message_passing;

static ctn_tensor *aggregate(const char *at, ctn_aggregate how, ctn_tensor *x, ctn_tensor *ids,
                             int64_t n)
{
    switch (how) {
    case CTN_AGGREGATE_MEAN: return ctn_segment_mean_at(at, x, ids, n);
    case CTN_AGGREGATE_MAX: return ctn_segment_max_at(at, x, ids, n);
    default: return ctn_segment_sum_at(at, x, ids, n);
    }
}

/* e' = edge([x[source], x[target], e]),  x' = node([x, aggregate of e' at each target]), each plus
 * its input if residual */
static ctn_tensors message_passing_forward(void *self, ctn_module *m, ctn_tensors in)
{
    const message_passing *p = self;
    const char *at = m->at;
    ctn_tensor *x = in.t[0], *e = in.t[2];
    edge_list list;
    if (split_edges("message_passing", at, &in, &list) < 0) return (ctn_tensors){0};
    ctn_tensor *parts[3] = {ctn_index_select_at(at, x, list.source, 0),
                            ctn_index_select_at(at, x, list.target, 0), e};
    ctn_tensor *message = ctn_call_at(at, p->edge, ctn_concat_at(at, e ? 3 : 2, parts, 1));
    if (p->residual && e) message = ctn_add_at(at, message, e);
    ctn_tensor *node[2] = {x, aggregate(at, p->aggregate, message, list.target, list.nodes)};
    ctn_tensor *y = ctn_call_at(at, p->node, ctn_concat_at(at, 2, node, 1));
    if (p->residual) y = ctn_add_at(at, y, x);
    if (!y || !message) return (ctn_tensors){0};
    return (ctn_tensors){2, {y, message}};
}

ctn_status ctn_message_passing_new(ctn_module **m, ctn_context *ctx, ctn_module *edge,
                                   ctn_module *node, const ctn_message_passing_opt *opt)
{
    ctn_message_passing_opt o;
    ctn_module *made = NULL;
    if (!m || !edge || !node) return ctn_fail(CTN_EARG, "message_passing_new: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("message_passing_new", &o, sizeof o, opt));
    if (o.aggregate < CTN_AGGREGATE_SUM || o.aggregate > CTN_AGGREGATE_MAX)
        return ctn_fail(CTN_EARG, "message_passing_new: no aggregate %d", (int)o.aggregate);
    message_passing *p = ctn__calloc(1, sizeof *p);
    if (p)
        *p = (message_passing){.edge = edge,
                               .node = node,
                               .aggregate = o.aggregate,
                               .residual = o.residual != 0};
    CTN_TRY(ctn__module_own(&made, ctx, NULL, p, sizeof *p, CTN__REFS(message_passing, aggregate)));
    made->forward_multi = message_passing_forward;
    ctn_status st = ctn_module_add(made, "edge", edge);
    if (st >= 0) st = ctn_module_add(made, "node", node);
    if (st < 0) ctn__module_free_alone(made);
    else *m = made;
    return st;
}
