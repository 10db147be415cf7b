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

/* x (N,T,C) -> (N,T,C) */
static ctn_tensor *attend(const layer *l, const char *at, ctn_tensor *x, const ctn__cache *c, int i)
{
    const int64_t C = ctn_dim(x, 2);
    ctn_tensor *qkv[3]; /* each (N,T,C) */
    if (ctn_split_at(at, ctn_call_at(at, l->c_attn, x), 2, 3, (const int64_t[]){C, C, C}, qkv) < 0)
        return NULL;
    for (int k = 0; k < 3; k++) qkv[k] = ctn__zoo_split_heads(at, qkv[k], l->heads);
    ctn_tensor *y = ctn__zoo_attend(at, qkv[0], qkv[1], qkv[2], 0, c, i); /* (N,H,T,C/H) */
    return ctn_call_at(at, l->attn_proj, ctn__zoo_join_heads(at, y));
}

/* Layer number i of the cache, which may be NULL. */
static ctn_tensor *apply_layer(const layer *l, const char *at, ctn_tensor *x, const ctn__cache *c,
                               int i)
{
    ctn_tensor *y = ctn_call_at(at, l->ln_1, x);
    if (!y) return NULL;
    x = ctn_add_at(at, x, drop(at, attend(l, at, y, c, i), l->dropout));
    y = ctn_gelu_tanh_at(at, ctn_call_at(at, l->c_fc, ctn_call_at(at, l->ln_2, x)));
    return ctn_add_at(at, x, drop(at, ctn_call_at(at, l->mlp_proj, y), l->dropout));
}

static ctn_tensor *layer_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    return apply_layer(self, m->at, x, NULL, 0);
}

/* in: the tokens and, optionally, the token that follows each of them. */
static ctn_tensors gpt_forward(void *self, ctn_module *m, ctn_tensors in)
{
    const gpt *g = self;
    const char *at = m->at;
    ctn_tensor *x = in.t[0];
    if (ctn__zoo_check_tokens("gpt", at, x, g->block) < 0) return (ctn_tensors){0};
    ctn_tensor *where = ctn_slice_at(at, ctn_use_at(at, g->position), 0, 0, ctn_dim(x, 1));
    x = drop(at, ctn_add_at(at, ctn_call_at(at, g->wte, x), where), g->dropout);
    for (size_t i = 0; i < g->h->children.n; i++) x = ctn_call_at(at, g->h->children.at[i], x);
    return ctn__zoo_logits(at, ctn_call_at(at, g->ln_f, x), in.t[1], ctn_use_at(at, g->head), NULL);
}

/* ---- decoding -------------------------------------------------------------------------------- */

static void gpt_sizes(const void *self, ctn__decoder_sizes *s)
{
    const gpt *g = self;
    const layer *l = g->h->children.at[0]->self;
    const int64_t *head = g->head->d.dim;
    *s = (ctn__decoder_sizes){(int)g->h->children.n, l->heads, head[1] / l->heads, g->block,
                              head[0]};
}

static ctn_tensor *gpt_decode(void *self, ctn_module *m, ctn_tensor *x, ctn_tensor *last,
                              const ctn__cache *c)
{
    const gpt *g = self;
    const char *at = m->at;
    ctn_tensor *where = ctn_embedding_at(at, ctn_use_at(at, g->position), c->positions);
    x = ctn_add_at(at, ctn_call_at(at, g->wte, x), where);
    for (size_t i = 0; i < g->h->children.n; i++)
        x = apply_layer(g->h->children.at[i]->self, at, x, c, (int)i);
    return ctn__zoo_last_logits(at, ctn_call_at(at, g->ln_f, x), last, g->head);
}

static const ctn__decoder decoder = {gpt_sizes, gpt_decode};

/* ---- construction ---------------------------------------------------------------------------- */

static ctn_status put_linear(ctn_module **c, ctn_module *m, const char *name, int64_t in,
                             int64_t out, double std)
{
    return ctn__zoo_linear(c, m, name, in, out, std, true);
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
    CTN_TRY(ctn__zoo_group(&attn, m, "attn"));
    CTN_TRY(put_linear(&l->c_attn, attn, "c_attn", C, 3 * C, std));
    CTN_TRY(put_linear(&l->attn_proj, attn, "c_proj", C, C, out_std));
    CTN_TRY(put_norm(&l->ln_2, m, "ln_2", C));
    CTN_TRY(ctn__zoo_group(&mlp, m, "mlp"));
    CTN_TRY(put_linear(&l->c_fc, mlp, "c_fc", C, 4 * C, std));
    return put_linear(&l->mlp_proj, mlp, "c_proj", 4 * C, C, out_std);
}

static ctn_status fill_gpt(ctn_module *m, const ctn_gpt_opt *o)
{
    gpt *g = m->self;
    g->block = o->block;
    g->dropout = o->dropout;
    CTN_TRY(ctn__zoo_embedding(&g->wte, m, "wte", o->vocabulary, o->width, 0.02));
    CTN_TRY(ctn__zoo_embedding(&g->wpe, m, "wpe", o->block, o->width, 0.02));
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
    ctn_var *table = ctn_module_find(g->wte, "weight");
    return ctn__zoo_head(&g->head, m, o->vocabulary, o->width, o->untied ? NULL : table);
}

/* Published files have matrices as (in,out), and a mask of each layer. */
static const ctn__published published = {
    .prefix = "transformer.",
    .bare = "lm_head.",
    .ignored = (const char *const[]){".attn.bias", ".attn.masked_bias", NULL},
    .turned = (const char *const[]){".c_fc.weight", ".c_attn.weight", ".c_proj.weight", NULL},
};

ctn_status ctn_zoo_gpt(ctn_module **m, ctn_context *ctx, const ctn_gpt_opt *opt)
{
    ctn_gpt_opt o;
    if (!m) return ctn_fail(CTN_EARG, "gpt: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("gpt", &o, sizeof o, opt));
    CTN_TRY(ctn__zoo_layers("gpt", &o.layers, 4));
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
    const double C = (double)o.width, rows = (double)o.vocabulary * (o.untied ? 2 : 1);
    CTN_TRY(ctn__zoo_fits("gpt", C * (rows + (double)o.block) + o.layers * 12.0 * C * C));
    CTN_TRY(ctn__zoo_begin(m, ctx, NULL, sizeof(gpt), CTN__REFS(gpt, block)));
    (*m)->forward_multi = gpt_forward;
    (*m)->published = &published;
    (*m)->decoder = &decoder;
    return ctn__zoo_end(m, fill_gpt(*m, &o));
}
