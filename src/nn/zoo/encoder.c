/* SPDX-License-Identifier: Apache-2.0
 *
 * The layers that BERT and ViT share, with the names of Hugging Face. In BERT, a layer is
 *     x = norm(x + dense(attention(query(x), key(x), value(x))))
 *     x = norm(x + dense(gelu(dense(x))))
 * and in ViT, each norm is applied to the input of its branch instead of to the sum.
 */
#include "nn/zoo/zoo.h"

typedef struct {
    ctn_module *query, *key, *value, *attention_out, *up, *down, *norm_1, *norm_2;
    int64_t heads;
    bool norm_first;
} layer;

/* x (N,T,C) -> (N,T,C); lengths (N) or NULL */
static ctn_tensor *attend(const layer *l, const char *at, ctn_tensor *x, ctn_tensor *lengths)
{
    ctn_tensor *q = ctn__zoo_split_heads(at, ctn_call_at(at, l->query, x), l->heads);
    ctn_tensor *k = ctn__zoo_split_heads(at, ctn_call_at(at, l->key, x), l->heads);
    ctn_tensor *v = ctn__zoo_split_heads(at, ctn_call_at(at, l->value, x), l->heads);
    ctn_tensor *y =
        ctn_attention_at(at, q, k, v, NULL, CTN_OPT(ctn_attention_opt, .lengths = lengths));
    return ctn_call_at(at, l->attention_out, ctn__zoo_join_heads(at, y));
}

static ctn_tensor *feed_forward(const layer *l, const char *at, ctn_tensor *x)
{
    return ctn_call_at(at, l->down, ctn_gelu_at(at, ctn_call_at(at, l->up, x)));
}

/* in: x and, optionally, the lengths. */
static ctn_tensors layer_forward(void *self, ctn_module *m, ctn_tensors in)
{
    const layer *l = self;
    const char *at = m->at;
    ctn_tensor *x = in.t[0], *y;
    if (l->norm_first) {
        y = ctn_call_at(at, l->norm_1, x);
        x = ctn_add_at(at, x, attend(l, at, y, in.t[1]));
        y = ctn_call_at(at, l->norm_2, x);
        x = ctn_add_at(at, x, feed_forward(l, at, y));
    } else {
        x = ctn_call_at(at, l->norm_1, ctn_add_at(at, x, attend(l, at, x, in.t[1])));
        x = ctn_call_at(at, l->norm_2, ctn_add_at(at, x, feed_forward(l, at, x)));
    }
    return (ctn_tensors){x != NULL, {x}};
}

ctn_tensor *ctn__zoo_encode(const char *at, const ctn_module *layers, ctn_tensor *x,
                            ctn_tensor *lengths)
{
    for (size_t i = 0; i < layers->children.n; i++)
        x = ctn_call_multi_at(at, layers->children.at[i], (ctn_tensors){2, {x, lengths}}).t[0];
    return x;
}

/* ---- construction ---------------------------------------------------------------------------- */

ctn_status ctn__zoo_group(ctn_module **c, ctn_module *m, const char *name)
{
    return ctn__zoo_put(m, name, ctn_module_new(c, m->ctx, NULL, NULL, NULL), c);
}

ctn_status ctn__zoo_layer_norm(ctn_module **c, ctn_module *m, const char *name, int64_t width,
                               double eps)
{
    const ctn_norm_opt *how = CTN_OPT(ctn_norm_opt, .eps = eps);
    return ctn__zoo_put(m, name, ctn_layer_norm_new(c, m->ctx, CTN_SHAPE(width), how), c);
}

ctn_status ctn__zoo_dense(ctn_module **c, ctn_module *m, const char *name, int64_t in, int64_t out)
{
    return ctn__zoo_linear(c, m, name, in, out, 0.02, true);
}

/* m.output.dense and, in BERT, its norm m.output.LayerNorm. */
static ctn_status put_output(ctn_module **dense, ctn_module **norm, ctn_module *m, int64_t in,
                             const ctn__encoder_opt *o)
{
    ctn_module *group = NULL;
    CTN_TRY(ctn__zoo_group(&group, m, "output"));
    CTN_TRY(ctn__zoo_dense(dense, group, "dense", in, o->width));
    return o->norm_first ? CTN_OK : ctn__zoo_layer_norm(norm, group, "LayerNorm", o->width, o->eps);
}

static ctn_status fill_layer(ctn_module *m, const ctn__encoder_opt *o)
{
    layer *l = m->self;
    ctn_module *attention = NULL, *in = NULL, *middle = NULL;
    const int64_t C = o->width;
    l->heads = o->heads;
    l->norm_first = o->norm_first;
    CTN_TRY(ctn__zoo_group(&attention, m, "attention"));
    CTN_TRY(ctn__zoo_group(&in, attention, o->norm_first ? "attention" : "self"));
    CTN_TRY(ctn__zoo_dense(&l->query, in, "query", C, C));
    CTN_TRY(ctn__zoo_dense(&l->key, in, "key", C, C));
    CTN_TRY(ctn__zoo_dense(&l->value, in, "value", C, C));
    CTN_TRY(put_output(&l->attention_out, &l->norm_1, attention, C, o));
    CTN_TRY(ctn__zoo_group(&middle, m, "intermediate"));
    CTN_TRY(ctn__zoo_dense(&l->up, middle, "dense", C, o->hidden));
    CTN_TRY(put_output(&l->down, &l->norm_2, m, o->hidden, o));
    if (!o->norm_first) return CTN_OK;
    CTN_TRY(ctn__zoo_layer_norm(&l->norm_1, m, "layernorm_before", C, o->eps));
    return ctn__zoo_layer_norm(&l->norm_2, m, "layernorm_after", C, o->eps);
}

ctn_status ctn__zoo_encoder(ctn_module **layers, ctn_module *m, const ctn__encoder_opt *o)
{
    ctn_module *encoder = NULL;
    CTN_TRY(ctn__zoo_group(&encoder, m, "encoder"));
    CTN_TRY(ctn__zoo_put(encoder, "layer", ctn_module_list_new(layers, m->ctx, 0, NULL), layers));
    for (int i = 0; i < o->layers; i++) {
        ctn_module *l = NULL;
        ctn_status st = ctn__zoo_begin(&l, m->ctx, NULL, sizeof(layer), CTN__REFS(layer, heads));
        CTN_TRY(ctn__zoo_put_at(*layers, i, st, &l));
        l->forward_multi = layer_forward;
        CTN_TRY(fill_layer(l, o));
    }
    return CTN_OK;
}

ctn_status ctn__zoo_check_encoder(const char *who, ctn__encoder_opt *o)
{
    CTN_TRY(ctn__zoo_layers(who, &o->layers, 12));
    if (o->heads == 0) o->heads = 12;
    if (o->eps == 0) o->eps = 1e-12;
    CTN_TRY(ctn__zoo_default(who, "width", &o->width, 768));
    CTN_TRY(ctn__zoo_default(who, "hidden", &o->hidden, 4 * o->width));
    if (o->layers < 1 || o->heads < 1 || o->width % o->heads || !(o->eps > 0))
        return ctn_fail(CTN_EARG,
                        "%s: %d layers and %d heads of width %lld, eps is %g; all must be "
                        "positive, and heads must divide width",
                        who, o->layers, o->heads, (long long)o->width, o->eps);
    const double C = (double)o->width;
    return ctn__zoo_fits(who, o->layers * C * (4 * C + 2.0 * (double)o->hidden));
}
