/* SPDX-License-Identifier: Apache-2.0
 *
 * GPT-2 with its original names and initial values; matrices are (out,in). A layer is
 *     x = x + c_proj(attention(c_attn(ln_1(x))));   x = x + c_proj(gelu(c_fc(ln_2(x))))
 * and the logits are ln_f(x) times the matrix of the embedding or, if untied, of lm_head.
 */
#include <math.h>

#include "nn/zoo/zoo.h"

typedef struct {
    ctn_module *ln_1, *ln_2, *c_attn, *attn_proj, *c_fc, *mlp_proj;
    int64_t heads;
    double dropout;
} layer;

typedef struct {
    ctn_module *wte, *wpe, *h, *ln_f;
    ctn_var *position, *head; /* wpe's weight (block,C); the matrix of the logits (V,C) */
    int64_t block;
    double dropout;
} gpt;

static ctn_tensor *drop(const char *at, ctn_tensor *x, double rate)
{
    return rate > 0 ? ctn_dropout_at(at, x, rate) : x;
}

/* x (N,T,C) -> (N,H,T,C/H) */
static ctn_tensor *split_heads(const char *at, ctn_tensor *x, int64_t heads)
{
    if (!x) return NULL;
    x = ctn_reshape_at(at, x,
                       CTN_SHAPE(ctn_dim(x, 0), ctn_dim(x, 1), heads, ctn_dim(x, 2) / heads));
    return ctn_transpose_at(at, x, 4, (const int64_t[]){0, 2, 1, 3});
}

/* x (N,T,C) -> (N,T,C) */
static ctn_tensor *attend(const layer *l, const char *at, ctn_tensor *x)
{
    const int64_t N = ctn_dim(x, 0), T = ctn_dim(x, 1), C = ctn_dim(x, 2);
    ctn_tensor *qkv[3]; /* each (N,T,C) */
    if (ctn_split_at(at, ctn_call_at(at, l->c_attn, x), 2, 3, (const int64_t[]){C, C, C}, qkv) < 0)
        return NULL;
    for (int i = 0; i < 3; i++) qkv[i] = split_heads(at, qkv[i], l->heads);
    ctn_tensor *y = ctn_attention_at(at, qkv[0], qkv[1], qkv[2], NULL,
                                     CTN_OPT(ctn_attention_opt, .causal = 1)); /* (N,H,T,C/H) */
    y = ctn_transpose_at(at, y, 4, (const int64_t[]){0, 2, 1, 3});
    return ctn_call_at(at, l->attn_proj, ctn_reshape_at(at, y, CTN_SHAPE(N, T, C)));
}

static ctn_tensor *layer_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const layer *l = self;
    const char *at = m->at;
    ctn_tensor *y = ctn_call_at(at, l->ln_1, x);
    if (!y) return NULL;
    x = ctn_add_at(at, x, drop(at, attend(l, at, y), l->dropout));
    y = ctn_gelu_tanh_at(at, ctn_call_at(at, l->c_fc, ctn_call_at(at, l->ln_2, x)));
    return ctn_add_at(at, x, drop(at, ctn_call_at(at, l->mlp_proj, y), l->dropout));
}

/* x: the tokens and, optionally, the token that follows each of them. Returns the logits, or the
 * mean loss of the targets, which does not need all logits at once. */
static ctn_tensors gpt_forward(void *self, ctn_module *m, ctn_tensors in)
{
    const gpt *g = self;
    const char *at = m->at;
    ctn_tensor *x = in.t[0], *targets = in.n > 1 ? in.t[1] : NULL;
    const int64_t T = ctn_dim(x, -1);
    if (ctn_ndim(x) != 2 || T > g->block) {
        ctn_fail(CTN_ESHAPE,
                 "gpt: x has %d dimensions and sequences of %lld, expected (N,T) with T at most "
                 "%lld (%s)",
                 ctn_ndim(x), (long long)T, (long long)g->block, at);
        return (ctn_tensors){0};
    }
    ctn_tensor *where = ctn_slice_at(at, ctn_use_at(at, g->position), 0, 0, T); /* (T,C) */
    x = drop(at, ctn_add_at(at, ctn_call_at(at, g->wte, x), where), g->dropout);
    for (size_t i = 0; i < g->h->children.n; i++) x = ctn_call_at(at, g->h->children.at[i], x);
    x = ctn_call_at(at, g->ln_f, x);
    ctn_tensor *w = ctn_use_at(at, g->head);
    x = targets ? ctn_linear_cross_entropy_at(at, x, w, targets, NULL)
                : ctn_linear_at(at, x, w, NULL);
    return (ctn_tensors){x != NULL, {x}};
}

static ctn_status put_linear(ctn_module **c, ctn_module *m, const char *name, int64_t in,
                             int64_t out, double std)
{
    const ctn_init *weight = CTN_OPT(ctn_init, .kind = CTN_INIT_NORMAL, .std = std);
    const ctn_init *zero = CTN_OPT(ctn_init, .kind = CTN_INIT_CONSTANT);
    return ctn__zoo_put(m, name,
                        ctn_linear_new(c, m->ctx, in, out,
                                       CTN_OPT(ctn_linear_opt, .weight = weight, .bias = zero)),
                        c);
}

static ctn_status put_norm(ctn_module **c, ctn_module *m, const char *name, int64_t width)
{
    return ctn__zoo_put(m, name, ctn_layer_norm_new(c, m->ctx, CTN_SHAPE(width), NULL), c);
}

static ctn_status fill_layer(ctn_module *m, const ctn_gpt_opt *o)
{
    layer *l = m->self;
    ctn_module *attn = NULL, *mlp = NULL;
    const int64_t C = o->width;
    /* out_std is for the layers that add to the residual */
    const double std = 0.02, out_std = std / sqrt(2.0 * o->layers);
    l->heads = o->heads;
    l->dropout = o->dropout;
    CTN_TRY(put_norm(&l->ln_1, m, "ln_1", C));
    CTN_TRY(ctn__zoo_put(m, "attn", ctn_module_new(&attn, m->ctx, NULL, NULL, NULL), &attn));
    CTN_TRY(put_linear(&l->c_attn, attn, "c_attn", C, 3 * C, std));
    CTN_TRY(put_linear(&l->attn_proj, attn, "c_proj", C, C, out_std));
    CTN_TRY(put_norm(&l->ln_2, m, "ln_2", C));
    CTN_TRY(ctn__zoo_put(m, "mlp", ctn_module_new(&mlp, m->ctx, NULL, NULL, NULL), &mlp));
    CTN_TRY(put_linear(&l->c_fc, mlp, "c_fc", C, 4 * C, std));
    return put_linear(&l->mlp_proj, mlp, "c_proj", 4 * C, C, out_std);
}

static ctn_status put_embedding(ctn_module **c, ctn_module *m, const char *name, int64_t rows,
                                int64_t width)
{
    const ctn_init *weight = CTN_OPT(ctn_init, .kind = CTN_INIT_NORMAL, .std = 0.02);
    return ctn__zoo_put(m, name, ctn_embedding_new(c, m->ctx, rows, width, weight), c);
}

/* The matrix of the logits: lm_head.weight, which is wte.weight under a second name if tied. */
static ctn_status fill_head(ctn_module *m, gpt *g, const ctn_gpt_opt *o)
{
    ctn_module *head = NULL;
    const ctn_init *weight = CTN_OPT(ctn_init, .kind = CTN_INIT_NORMAL, .std = 0.02);
    CTN_TRY(ctn__zoo_put(m, "lm_head", ctn_module_new(&head, m->ctx, NULL, NULL, NULL), &head));
    if (o->untied)
        return ctn_module_param(&g->head, head, "weight", CTN_F32,
                                CTN_SHAPE(o->vocabulary, o->width), weight);
    g->head = ctn_module_find(g->wte, "weight");
    return ctn_module_tie(head, "weight", g->head);
}

static ctn_status fill_gpt(ctn_module *m, const ctn_gpt_opt *o)
{
    gpt *g = m->self;
    g->block = o->block;
    g->dropout = o->dropout;
    CTN_TRY(put_embedding(&g->wte, m, "wte", o->vocabulary, o->width));
    CTN_TRY(put_embedding(&g->wpe, m, "wpe", o->block, o->width));
    g->position = ctn_module_find(g->wpe, "weight");
    CTN_TRY(ctn__zoo_put(m, "h", ctn_module_list_new(&g->h, m->ctx, 0, NULL), &g->h));
    for (int i = 0; i < o->layers; i++) {
        ctn_module *l = NULL;
        CTN_TRY(ctn__zoo_put_at(g->h, i,
                                ctn__zoo_begin(&l, m->ctx, layer_forward, sizeof(layer),
                                               CTN__REFS(layer, heads)),
                                &l));
        CTN_TRY(fill_layer(l, o));
    }
    CTN_TRY(put_norm(&g->ln_f, m, "ln_f", o->width));
    return fill_head(m, g, o);
}

ctn_status ctn_zoo_gpt(ctn_module **m, ctn_context *ctx, const ctn_gpt_opt *opt)
{
    ctn_gpt_opt o;
    if (!m) return ctn_fail(CTN_EARG, "gpt: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("gpt", &o, sizeof o, opt));
    if (o.layers == 0) o.layers = 4;
    if (o.heads == 0) o.heads = 4;
    CTN_TRY(ctn__zoo_default("gpt", "vocabulary", &o.vocabulary, 256));
    CTN_TRY(ctn__zoo_default("gpt", "block", &o.block, 128));
    CTN_TRY(ctn__zoo_default("gpt", "width", &o.width, 128));
    if (o.layers < 1 || o.heads < 1 || o.width % o.heads)
        return ctn_fail(
            CTN_EARG,
            "gpt: %d layers and %d heads of width %lld; both must be positive, and heads "
            "must divide width",
            o.layers, o.heads, (long long)o.width);
    if (!(o.dropout >= 0 && o.dropout < 1))
        return ctn_fail(CTN_EARG, "gpt: dropout is %g, expected 0 or more and less than 1",
                        o.dropout);
    CTN_TRY(ctn__zoo_begin(m, ctx, NULL, sizeof(gpt), CTN__REFS(gpt, block)));
    (*m)->forward_multi = gpt_forward;
    return ctn__zoo_end(m, fill_gpt(*m, &o));
}
