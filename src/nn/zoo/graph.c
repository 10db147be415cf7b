/* SPDX-License-Identifier: Apache-2.0
 *
 * Graph networks: GCN and GAT for nodes of a graph, and MeshGraphNet for meshes.
 */
#include "nn/zoo/zoo.h"

/* ---- GCN and GAT ----------------------------------------------------------------------------- */

typedef struct {
    ctn_module *convs; /* list of layers */
    bool attention;
    double dropout;
} stack;

static ctn_tensors stack_forward(void *self, ctn_module *m, ctn_tensors in)
{
    const stack *s = self;
    const char *at = m->at;
    const int layers = ctn_module_children(s->convs);
    ctn_tensor *x = in.t[0];
    for (int i = 0; i < layers && x; i++) {
        if (s->attention && s->dropout > 0) x = ctn_dropout_at(at, x, s->dropout);
        const ctn_tensors list = {s->attention ? 2 : 3, {x, in.t[1], in.t[2]}};
        x = ctn_call_multi_at(at, ctn_module_child(s->convs, i), list).t[0];
        if (i + 1 == layers) break;
        x = s->attention ? ctn_elu_at(at, x, 1) : ctn_relu_at(at, x);
        if (!s->attention && s->dropout > 0) x = ctn_dropout_at(at, x, s->dropout);
    }
    return (ctn_tensors){x != NULL, {x}};
}

/* heads 0: graph convolutions */
static ctn_status fill_stack(ctn_module *m, const ctn_gat_opt *o)
{
    stack *s = m->self;
    s->attention = o->heads > 0;
    s->dropout = o->dropout;
    CTN_TRY(ctn__zoo_put(m, "convs", ctn_module_list_new(&s->convs, m->ctx, 0, NULL), &s->convs));
    int64_t in = o->in_channels;
    for (int i = 0; i < o->layers; i++) {
        const bool last = i + 1 == o->layers;
        const int64_t out = last ? o->classes : o->hidden, heads = last ? 1 : o->heads;
        ctn_module *c = NULL;
        const ctn_graph_attention_opt *how =
            CTN_OPT(ctn_graph_attention_opt, .heads = heads, .mean = last, .dropout = o->dropout);
        ctn_status st = s->attention ? ctn_graph_attention_new(&c, m->ctx, in, out, how)
                                     : ctn_graph_conv_new(&c, m->ctx, in, out, NULL);
        CTN_TRY(ctn__zoo_put_at(s->convs, i, st, &c));
        in = s->attention ? out * heads : out;
    }
    return CTN_OK;
}

static ctn_status make_stack(const char *who, ctn_module **m, ctn_context *ctx, ctn_gat_opt *o,
                             double usual_dropout)
{
    int64_t layers = o->layers;
    CTN_TRY(ctn__zoo_default(who, "in_channels", &o->in_channels, 1433));
    CTN_TRY(ctn__zoo_default(who, "classes", &o->classes, 7));
    CTN_TRY(ctn__zoo_default(who, "layers", &layers, 2));
    o->layers = (int)layers;
    o->dropout = o->dropout < 0 ? 0 : o->dropout > 0 ? o->dropout : usual_dropout;
    CTN_TRY(ctn__zoo_begin(m, ctx, NULL, sizeof(stack), CTN__REFS(stack, attention)));
    (*m)->forward_multi = stack_forward;
    return ctn__zoo_end(m, fill_stack(*m, o));
}

ctn_status ctn_zoo_gcn(ctn_module **m, ctn_context *ctx, const ctn_gcn_opt *opt)
{
    ctn_gcn_opt o;
    if (!m) return ctn_fail(CTN_EARG, "gcn: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("gcn", &o, sizeof o, opt));
    CTN_TRY(ctn__zoo_default("gcn", "hidden", &o.hidden, 16));
    ctn_gat_opt all = {.in_channels = o.in_channels,
                       .classes = o.classes,
                       .hidden = o.hidden,
                       .layers = o.layers,
                       .dropout = o.dropout};
    return make_stack("gcn", m, ctx, &all, 0.5);
}

ctn_status ctn_zoo_gat(ctn_module **m, ctn_context *ctx, const ctn_gat_opt *opt)
{
    ctn_gat_opt o;
    if (!m) return ctn_fail(CTN_EARG, "gat: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("gat", &o, sizeof o, opt));
    CTN_TRY(ctn__zoo_default("gat", "hidden", &o.hidden, 8));
    CTN_TRY(ctn__zoo_default("gat", "heads", &o.heads, 8));
    return make_stack("gat", m, ctx, &o, 0.6);
}

/* ---- MeshGraphNet ---------------------------------------------------------------------------- */

typedef struct {
    ctn_module *node_encoder, *edge_encoder, *steps, *decoder;
} meshgraphnet;

static ctn_tensors meshgraphnet_forward(void *self, ctn_module *m, ctn_tensors in)
{
    const meshgraphnet *g = self;
    const char *at = m->at;
    if (!in.t[1] || !in.t[2]) {
        ctn_fail(CTN_EARG, "meshgraphnet: the inputs are x, edges and features of the edges (%s)",
                 at);
        return (ctn_tensors){0};
    }
    ctn_tensor *x = ctn_call_at(at, g->node_encoder, in.t[0]);
    ctn_tensor *e = ctn_call_at(at, g->edge_encoder, in.t[2]);
    for (int i = 0; i < ctn_module_children(g->steps) && x && e; i++) {
        const ctn_tensors list = {3, {x, in.t[1], e}};
        const ctn_tensors y = ctn_call_multi_at(at, ctn_module_child(g->steps, i), list);
        x = y.t[0];
        e = y.t[1];
    }
    x = ctn_call_at(at, g->decoder, x);
    return (ctn_tensors){x != NULL, {x}};
}

/* in -> hidden -> ... -> out with ReLU between and, with norm, a layer normalisation at the end. */
static ctn_status make_mlp(ctn_module **mlp, ctn_context *ctx, const ctn_meshgraphnet_opt *o,
                           int64_t in, int64_t out, bool norm)
{
    ctn_module *c = NULL;
    ctn_status st = ctn_sequential_new(mlp, ctx, 0, NULL);
    int n = 0;
    for (int i = 0; i <= o->mlp_layers && st >= 0; i++) {
        const int64_t to = i == o->mlp_layers ? out : o->hidden;
        st = ctn__zoo_put_at(*mlp, n++, ctn_linear_new(&c, ctx, i ? o->hidden : in, to, NULL), &c);
        if (st >= 0 && i < o->mlp_layers)
            st = ctn__zoo_put_at(*mlp, n++, ctn_activation_new(&c, ctx, ctn_relu_at), &c);
    }
    if (st >= 0 && norm)
        st = ctn__zoo_put_at(*mlp, n, ctn_layer_norm_new(&c, ctx, CTN_SHAPE(out), NULL), &c);
    return ctn__zoo_end(mlp, st);
}

static ctn_status put_step(ctn_module *steps, int i, const ctn_meshgraphnet_opt *o)
{
    ctn_module *edge = NULL, *node = NULL, *step = NULL;
    const int64_t H = o->hidden;
    ctn_status st = make_mlp(&edge, steps->ctx, o, 3 * H, H, true);
    if (st >= 0) st = make_mlp(&node, steps->ctx, o, 2 * H, H, true);
    if (st >= 0)
        st = ctn_message_passing_new(&step, steps->ctx, edge, node,
                                     CTN_OPT(ctn_message_passing_opt, .residual = 1));
    if (st < 0) {
        ctn_module_free(edge);
        ctn_module_free(node);
        return st;
    }
    return ctn__zoo_put_at(steps, i, CTN_OK, &step);
}

static ctn_status fill_mesh(ctn_module *m, const ctn_meshgraphnet_opt *o)
{
    meshgraphnet *g = m->self;
    const int64_t H = o->hidden;
    CTN_TRY(ctn__zoo_put(m, "node_encoder",
                         make_mlp(&g->node_encoder, m->ctx, o, o->node_in, H, true),
                         &g->node_encoder));
    CTN_TRY(ctn__zoo_put(m, "edge_encoder",
                         make_mlp(&g->edge_encoder, m->ctx, o, o->edge_in, H, true),
                         &g->edge_encoder));
    CTN_TRY(ctn__zoo_put(m, "steps", ctn_module_list_new(&g->steps, m->ctx, 0, NULL), &g->steps));
    for (int i = 0; i < o->steps; i++) CTN_TRY(put_step(g->steps, i, o));
    return ctn__zoo_put(m, "decoder", make_mlp(&g->decoder, m->ctx, o, H, o->out, false),
                        &g->decoder);
}

ctn_status ctn_zoo_meshgraphnet(ctn_module **m, ctn_context *ctx, const ctn_meshgraphnet_opt *opt)
{
    static const char who[] = "meshgraphnet";
    ctn_meshgraphnet_opt o;
    if (!m) return ctn_fail(CTN_EARG, "meshgraphnet: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt(who, &o, sizeof o, opt));
    int64_t steps = o.steps, layers = o.mlp_layers;
    CTN_TRY(ctn__zoo_default(who, "node_in", &o.node_in, 1));
    CTN_TRY(ctn__zoo_default(who, "edge_in", &o.edge_in, 1));
    CTN_TRY(ctn__zoo_default(who, "out", &o.out, 1));
    CTN_TRY(ctn__zoo_default(who, "hidden", &o.hidden, 128));
    CTN_TRY(ctn__zoo_default(who, "steps", &steps, 15));
    CTN_TRY(ctn__zoo_default(who, "mlp_layers", &layers, 2));
    o.steps = (int)steps;
    o.mlp_layers = (int)layers;
    CTN_TRY(ctn__zoo_begin(m, ctx, NULL, sizeof(meshgraphnet), CTN__ALL_REFS(meshgraphnet)));
    (*m)->forward_multi = meshgraphnet_forward;
    return ctn__zoo_end(m, fill_mesh(*m, &o));
}
