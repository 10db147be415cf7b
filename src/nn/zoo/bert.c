/* SPDX-License-Identifier: Apache-2.0
 *
 * BERT with the names of Hugging Face. The layers are in encoder.c; here are the embeddings and the
 * two heads: the logits of every token (masked-language model), and those of the whole sequence,
 * which come from its first token.
 */
#include "nn/zoo/zoo.h"

typedef struct {
    ctn_module *words, *types, *norm, *layers;
    ctn_module *transform, *transform_norm; /* of the masked-language head; NULL: none */
    ctn_module *pooler, *classifier;        /* of the classification head; NULL: none */
    ctn_var *position, *type;               /* (block,C), (types,C) */
    ctn_var *head, *bias;                   /* of the masked-language logits: (V,C), (V) */
    int64_t block;
} bert;

/* x (N,T) -> (N,T,C); types (N,T), NULL: all 0 */
static ctn_tensor *embed(const bert *b, const char *at, ctn_tensor *x, ctn_tensor *types)
{
    ctn_tensor *where = ctn_slice_at(at, ctn_use_at(at, b->position), 0, 0, ctn_dim(x, 1));
    ctn_tensor *type = types ? ctn_call_at(at, b->types, types)
                             : ctn_slice_at(at, ctn_use_at(at, b->type), 0, 0, 1);
    x = ctn_add_at(at, ctn_add_at(at, ctn_call_at(at, b->words, x), type), where);
    return ctn_call_at(at, b->norm, x);
}

/* x (N,T,C) -> (N,T,V), or the mean loss of the targets */
static ctn_tensor *masked_language(const bert *b, const char *at, ctn_tensor *x,
                                   ctn_tensor *targets)
{
    ctn_tensor *w = ctn_use_at(at, b->head), *bias = ctn_use_at(at, b->bias);
    x = ctn_gelu_at(at, ctn_call_at(at, b->transform, x));
    x = ctn_call_at(at, b->transform_norm, x);
    return ctn__zoo_logits(at, x, targets, w, bias).t[0];
}

/* x (N,T,C) -> (N,classes) */
static ctn_tensor *classify(const bert *b, const char *at, ctn_tensor *x)
{
    x = ctn_squeeze_at(at, ctn_slice_at(at, x, 1, 0, 1), 1);
    return ctn_call_at(at, b->classifier, ctn_tanh_at(at, ctn_call_at(at, b->pooler, x)));
}

/* in: the tokens and, optionally, the lengths, the token types and the targets. */
static ctn_tensors bert_forward(void *self, ctn_module *m, ctn_tensors in)
{
    const bert *b = self;
    const char *at = m->at;
    if (ctn__zoo_check_tokens("bert", at, in.t[0], b->block) < 0) return (ctn_tensors){0};
    if (b->classifier && in.t[3]) {
        ctn_fail(CTN_EARG, "bert: targets need the masked-language head, not a classifier (%s)",
                 at);
        return (ctn_tensors){0};
    }
    ctn_tensor *x = embed(b, at, in.t[0], in.t[2]);
    x = ctn__zoo_encode(at, b->layers, x, in.t[1]);
    x = b->classifier ? classify(b, at, x) : masked_language(b, at, x, in.t[3]);
    return (ctn_tensors){x != NULL, {x}};
}

/* ---- construction ---------------------------------------------------------------------------- */

static ctn_status fill_embeddings(bert *b, ctn_module *body, const ctn_bert_opt *o)
{
    ctn_module *m = NULL, *positions = NULL;
    CTN_TRY(ctn__zoo_group(&m, body, "embeddings"));
    CTN_TRY(ctn__zoo_embedding(&b->words, m, "word_embeddings", o->vocabulary, o->width, 0.02));
    CTN_TRY(ctn__zoo_embedding(&positions, m, "position_embeddings", o->block, o->width, 0.02));
    CTN_TRY(ctn__zoo_embedding(&b->types, m, "token_type_embeddings", o->types, o->width, 0.02));
    b->position = ctn_module_find(positions, "weight");
    b->type = ctn_module_find(b->types, "weight");
    return ctn__zoo_layer_norm(&b->norm, m, "LayerNorm", o->width, o->eps);
}

static ctn_status fill_masked_language(ctn_module *m, const ctn_bert_opt *o)
{
    bert *b = m->self;
    ctn_module *cls = NULL, *predictions = NULL, *transform = NULL, *decoder = NULL;
    CTN_TRY(ctn__zoo_group(&cls, m, "cls"));
    CTN_TRY(ctn__zoo_group(&predictions, cls, "predictions"));
    CTN_TRY(ctn_module_param(&b->bias, predictions, "bias",
                             ctn_context_float_type(predictions->ctx), CTN_SHAPE(o->vocabulary),
                             NULL));
    CTN_TRY(ctn__zoo_group(&transform, predictions, "transform"));
    CTN_TRY(ctn__zoo_dense(&b->transform, transform, "dense", o->width, o->width));
    CTN_TRY(ctn__zoo_layer_norm(&b->transform_norm, transform, "LayerNorm", o->width, o->eps));
    CTN_TRY(ctn__zoo_group(&decoder, predictions, "decoder"));
    b->head = ctn_module_find(b->words, "weight");
    CTN_TRY(ctn_module_tie(decoder, "weight", b->head));
    return ctn_module_tie(decoder, "bias", b->bias);
}

static ctn_status fill_bert(ctn_module *m, const ctn_bert_opt *o, const ctn__encoder_opt *e)
{
    bert *b = m->self;
    ctn_module *body = NULL, *pooler = NULL;
    b->block = o->block;
    CTN_TRY(ctn__zoo_group(&body, m, "bert"));
    CTN_TRY(fill_embeddings(b, body, o));
    CTN_TRY(ctn__zoo_encoder(&b->layers, body, e));
    if (o->classes == 0) return fill_masked_language(m, o);
    CTN_TRY(ctn__zoo_group(&pooler, body, "pooler"));
    CTN_TRY(ctn__zoo_dense(&b->pooler, pooler, "dense", o->width, o->width));
    return ctn__zoo_dense(&b->classifier, m, "classifier", o->width, o->classes);
}

/* Files of the original models have the pooler and the next-sentence head too, and the names of
 * TensorFlow in normalisations. */
static const ctn__published published = {
    .prefix = "bert.",
    .ignored =
        (const char *const[]){"embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias",
                              "cls.seq_relationship.weight", "cls.seq_relationship.bias", NULL},
    .older = (const char *const[]){"LayerNorm.weight", "LayerNorm.gamma", "LayerNorm.bias",
                                   "LayerNorm.beta", NULL},
};

ctn_status ctn_zoo_bert(ctn_module **m, ctn_context *ctx, const ctn_bert_opt *opt)
{
    ctn_bert_opt o;
    if (!m) return ctn_fail(CTN_EARG, "bert: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("bert", &o, sizeof o, opt));
    ctn__encoder_opt e = {o.width, o.hidden, o.layers, o.heads, o.eps, false};
    CTN_TRY(ctn__zoo_check_encoder("bert", &e));
    CTN_TRY(ctn__zoo_default("bert", "vocabulary", &o.vocabulary, 30522));
    CTN_TRY(ctn__zoo_default("bert", "block", &o.block, 512));
    CTN_TRY(ctn__zoo_default("bert", "types", &o.types, 2));
    CTN_TRY(ctn__zoo_default("bert", "classes", &o.classes, 0));
    o.width = e.width;
    o.eps = e.eps;
    CTN_TRY(ctn__zoo_begin(m, ctx, NULL, sizeof(bert), CTN__REFS(bert, block)));
    (*m)->forward_multi = bert_forward;
    (*m)->published = &published;
    (*m)->masked = o.classes == 0;
    return ctn__zoo_end(m, fill_bert(*m, &o, &e));
}
