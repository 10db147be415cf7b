/* SPDX-License-Identifier: Apache-2.0
 *
 * Llama and the models that have its shape, with the names of Hugging Face. A layer is
 *     x = x + o_proj(attention(rotary(q_proj(y)), rotary(k_proj(y)), v_proj(y))),  y = norm(x)
 *     x = x + down_proj(swish(gate_proj(y)) up_proj(y)),                           y = norm(x)
 */
#include "nn/zoo/zoo.h"

typedef struct {
    ctn_module *norm_1, *norm_2, *q, *k, *v, *o, *gate, *up, *down;
    int64_t heads, kv_heads, window;
    double base;
} layer;

typedef struct {
    ctn_module *embed, *layers, *norm;
    ctn_var *head; /* the matrix of the logits (V,C) */
    int64_t block;
} llama;

/* Queries or keys: (N,T,C) -> (N,heads,T,E), rotated by their positions. */
static ctn_tensor *rotated(const layer *l, const char *at, ctn_tensor *x, int64_t heads,
                           const ctn__cache *c)
{
    return ctn_rotary_at(at, ctn__zoo_split_heads(at, x, heads),
                         CTN_OPT(ctn_rotary_opt, .base = l->base,
                                 .positions = c ? c->first : NULL));
}

/* Layer number i of the cache, which may be NULL. */
static ctn_tensor *apply_layer(const layer *l, const char *at, ctn_tensor *x, const ctn__cache *c,
                               int i)
{
    ctn_tensor *y = ctn_call_at(at, l->norm_1, x);
    ctn_tensor *q = rotated(l, at, ctn_call_at(at, l->q, y), l->heads, c);
    ctn_tensor *k = rotated(l, at, ctn_call_at(at, l->k, y), l->kv_heads, c);
    ctn_tensor *v = ctn__zoo_split_heads(at, ctn_call_at(at, l->v, y), l->kv_heads);
    y = ctn__zoo_join_heads(at, ctn__zoo_attend(at, q, k, v, l->window, c, i));
    x = ctn_add_at(at, x, ctn_call_at(at, l->o, y));
    y = ctn_call_at(at, l->norm_2, x);
    y = ctn_mul_at(at, ctn_swish_at(at, ctn_call_at(at, l->gate, y)), ctn_call_at(at, l->up, y));
    return ctn_add_at(at, x, ctn_call_at(at, l->down, y));
}

static ctn_tensor *layer_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    return apply_layer(self, m->at, x, NULL, 0);
}

static ctn_tensors llama_forward(void *self, ctn_module *m, ctn_tensors in)
{
    const llama *g = self;
    const char *at = m->at;
    if (ctn__zoo_check_tokens("llama", at, in.t[0], g->block) < 0) return (ctn_tensors){0};
    ctn_tensor *x = ctn_call_at(at, g->embed, in.t[0]);
    for (size_t i = 0; i < g->layers->children.n; i++)
        x = ctn_call_at(at, g->layers->children.at[i], x);
    return ctn__zoo_logits(at, ctn_call_at(at, g->norm, x), in.t[1], ctn_use_at(at, g->head), NULL);
}

/* ---- decoding -------------------------------------------------------------------------------- */

static void llama_sizes(const void *self, ctn__decoder_sizes *s)
{
    const llama *g = self;
    const layer *l = g->layers->children.at[0]->self;
    const int64_t width = ctn__linear_of(l->k)->weight->d.dim[0];
    *s = (ctn__decoder_sizes){(int)g->layers->children.n, l->kv_heads, width / l->kv_heads,
                              g->block, g->head->d.dim[0]};
}

static ctn_tensor *llama_decode(void *self, ctn_module *m, ctn_tensor *x, ctn_tensor *last,
                                const ctn__cache *c)
{
    const llama *g = self;
    const char *at = m->at;
    x = ctn_call_at(at, g->embed, x);
    for (size_t i = 0; i < g->layers->children.n; i++)
        x = apply_layer(g->layers->children.at[i]->self, at, x, c, (int)i);
    return ctn__zoo_last_logits(at, ctn_call_at(at, g->norm, x), last, g->head);
}

static const ctn__decoder decoder = {llama_sizes, llama_decode};

/* ---- construction ---------------------------------------------------------------------------- */

static ctn_status put_norm(ctn_module **c, ctn_module *m, const char *name, const ctn_llama_opt *o)
{
    const ctn_norm_opt *how = CTN_OPT(ctn_norm_opt, .eps = o->eps);
    return ctn__zoo_put(m, name, ctn_rms_norm_new(c, m->ctx, CTN_SHAPE(o->width), how), c);
}

static ctn_status put_linear(ctn_module **c, ctn_module *m, const char *name, int64_t in,
                             int64_t out, bool bias)
{
    return ctn__zoo_linear(c, m, name, in, out, 0.02, bias);
}

static ctn_status fill_layer(ctn_module *m, const ctn_llama_opt *o)
{
    layer *l = m->self;
    ctn_module *attn = NULL, *mlp = NULL;
    const int64_t C = o->width, Q = o->heads * o->head_width, K = o->kv_heads * o->head_width;
    const bool bias = o->qkv_bias != 0;
    l->heads = o->heads;
    l->kv_heads = o->kv_heads;
    l->window = o->window;
    l->base = o->rotary_base;
    CTN_TRY(ctn__zoo_group(&attn, m, "self_attn"));
    CTN_TRY(put_linear(&l->q, attn, "q_proj", C, Q, bias));
    CTN_TRY(put_linear(&l->k, attn, "k_proj", C, K, bias));
    CTN_TRY(put_linear(&l->v, attn, "v_proj", C, K, bias));
    CTN_TRY(put_linear(&l->o, attn, "o_proj", Q, C, false));
    CTN_TRY(ctn__zoo_group(&mlp, m, "mlp"));
    CTN_TRY(put_linear(&l->gate, mlp, "gate_proj", C, o->hidden, false));
    CTN_TRY(put_linear(&l->up, mlp, "up_proj", C, o->hidden, false));
    CTN_TRY(put_linear(&l->down, mlp, "down_proj", o->hidden, C, false));
    CTN_TRY(put_norm(&l->norm_1, m, "input_layernorm", o));
    return put_norm(&l->norm_2, m, "post_attention_layernorm", o);
}

static ctn_status fill_llama(ctn_module *m, const ctn_llama_opt *o)
{
    llama *g = m->self;
    ctn_module *body = NULL;
    g->block = o->block;
    CTN_TRY(ctn__zoo_group(&body, m, "model"));
    CTN_TRY(ctn__zoo_embedding(&g->embed, body, "embed_tokens", o->vocabulary, o->width, 0.02));
    CTN_TRY(
        ctn__zoo_put(body, "layers", ctn_module_list_new(&g->layers, m->ctx, 0, NULL), &g->layers));
    for (int i = 0; i < o->layers; i++) {
        ctn_module *l = NULL;
        CTN_TRY(ctn__zoo_put_at(g->layers, i,
                                ctn__zoo_begin(&l, m->ctx, layer_forward, sizeof(layer),
                                               CTN__REFS(layer, heads)),
                                &l));
        CTN_TRY(fill_layer(l, o));
    }
    CTN_TRY(put_norm(&g->norm, body, "norm", o));
    ctn_var *table = ctn_module_find(g->embed, "weight");
    return ctn__zoo_head(&g->head, m, o->vocabulary, o->width, o->untied ? NULL : table);
}

/* Old files have the frequencies of the rotary embedding as arrays. */
static const ctn__published published = {
    .prefix = "model.",
    .ignored = (const char *const[]){".rotary_emb.inv_freq", NULL},
};

static ctn_status set_defaults(ctn_llama_opt *o)
{
    CTN_TRY(ctn__zoo_layers("llama", &o->layers, 8));
    if (o->heads == 0) o->heads = 8;
    if (o->kv_heads == 0) o->kv_heads = o->heads;
    if (o->rotary_base == 0) o->rotary_base = 10000;
    CTN_TRY(ctn__zoo_default("llama", "vocabulary", &o->vocabulary, 32000));
    CTN_TRY(ctn__zoo_default("llama", "block", &o->block, 2048));
    CTN_TRY(ctn__zoo_default("llama", "width", &o->width, 512));
    CTN_TRY(ctn__zoo_default("llama", "hidden", &o->hidden, (o->width * 8 / 3 + 63) / 64 * 64));
    if (o->layers < 1 || o->heads < 1 || o->kv_heads < 1 || o->heads % o->kv_heads)
        return ctn_fail(CTN_EARG,
                        "llama: %d layers, %d heads and %d heads of keys; all must be positive, "
                        "and heads of keys must divide heads",
                        o->layers, o->heads, o->kv_heads);
    CTN_TRY(ctn__zoo_default("llama", "head_width", &o->head_width, o->width / o->heads));
    if (o->head_width < 1 || o->head_width % 2 || o->window < 0 || o->rotary_base < 0 || o->eps < 0)
        return ctn_fail(CTN_EARG,
                        "llama: head_width is %lld, window is %lld, rotary_base is %g, eps is %g; "
                        "head_width must be even and positive, the others must not be negative",
                        (long long)o->head_width, (long long)o->window, o->rotary_base, o->eps);
    const double C = (double)o->width, heads = 2.0 * o->heads + 2.0 * o->kv_heads;
    return ctn__zoo_fits("llama", C * ((double)o->vocabulary * (o->untied ? 2 : 1) +
                                       o->layers * (heads * (double)o->head_width +
                                                    3.0 * (double)o->hidden)));
}

ctn_status ctn_zoo_llama(ctn_module **m, ctn_context *ctx, const ctn_llama_opt *opt)
{
    ctn_llama_opt o;
    if (!m) return ctn_fail(CTN_EARG, "llama: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("llama", &o, sizeof o, opt));
    CTN_TRY(set_defaults(&o));
    CTN_TRY(ctn__zoo_begin(m, ctx, NULL, sizeof(llama), CTN__REFS(llama, block)));
    (*m)->forward_multi = llama_forward;
    (*m)->published = &published;
    (*m)->decoder = &decoder;
    return ctn__zoo_end(m, fill_llama(*m, &o));
}
