/* SPDX-License-Identifier: Apache-2.0
 *
 * Sequence to sequence with LSTMs and the attention of Luong et al. ("general"): for each state d
 * of the decoder and the outputs e of the encoder,
 *     context = softmax((W d) e^T) e,   logits = output(tanh(combine([context, d])))
 * The decoder begins with the final state of the encoder. All its steps are known in advance
 * (teacher forcing), so each part is one call for the whole sequence.
 */
#include "nn/zoo/zoo.h"

typedef struct {
    ctn_module *source, *encoder;                                /* embedding, LSTM */
    ctn_module *target, *decoder, *attention, *combine, *output; /* embedding, LSTM, linear */
    bool bidirectional;
} seq2seq;

/* The final state of the encoder as the first one of the decoder: both directions of a layer next
 * to each other. x (layers D,N,H/D) -> (layers,N,H) */
static ctn_tensor *first_state(const seq2seq *s, const char *at, ctn_tensor *x)
{
    if (!x || !s->bidirectional) return x;
    const int64_t L = ctn_dim(x, 0) / 2, N = ctn_dim(x, 1), H = 2 * ctn_dim(x, 2);
    x = ctn_reshape_at(at, x, CTN_SHAPE(L, 2, N, H / 2));
    x = ctn_transpose_at(at, x, CTN_SHAPE(0, 2, 1, 3));
    return ctn_reshape_at(at, x, CTN_SHAPE(L, N, H));
}

/* in: source (N,S), target (N,T) and, optionally, the lengths (N) of the sources. */
static ctn_tensors seq2seq_forward(void *self, ctn_module *m, ctn_tensors in)
{
    const seq2seq *s = self;
    const char *at = m->at;
    if (!in.t[1]) {
        ctn_fail(CTN_EARG, "seq2seq: no target; the inputs are source, target and lengths (%s)",
                 at);
        return (ctn_tensors){0};
    }
    ctn_tensor *x = ctn_call_at(at, s->source, in.t[0]);
    const ctn_tensors e =
        ctn_call_multi_at(at, s->encoder, (ctn_tensors){4, {x, NULL, NULL, in.t[2]}});
    ctn_tensor *h = first_state(s, at, e.t[1]), *c = first_state(s, at, e.t[2]);
    x = ctn_call_at(at, s->target, in.t[1]);
    ctn_tensor *d = ctn_call_multi_at(at, s->decoder, (ctn_tensors){3, {x, h, c}}).t[0];
    ctn_tensor *q = ctn_call_at(at, s->attention, d); /* (N,T,H) */
    ctn_tensor *context =
        ctn_attention_at(at, q, e.t[0], e.t[0], NULL,
                         CTN_OPT(ctn_attention_opt, .scale = 1, .lengths = in.t[2]));
    x = ctn_call_at(at, s->combine, ctn_concat_at(at, 2, (ctn_tensor *[]){context, d}, 2));
    x = ctn_call_at(at, s->output, ctn_tanh_at(at, x));
    return (ctn_tensors){x != NULL, {x}};
}

/* ---- construction ---------------------------------------------------------------------------- */

static ctn_status put_linear(ctn_module **c, ctn_module *m, const char *name, int64_t in,
                             int64_t out, int no_bias)
{
    const ctn_linear_opt *how = CTN_OPT(ctn_linear_opt, .no_bias = no_bias);
    return ctn__zoo_put(m, name, ctn_linear_new(c, m->ctx, in, out, how), c);
}

static ctn_status put_lstm(ctn_module **c, ctn_module *m, const ctn_seq2seq_opt *o, bool both)
{
    const ctn_rnn_module_opt *how =
        CTN_OPT(ctn_rnn_module_opt, .layers = o->layers, .bidirectional = both, .batch_first = 1,
                .dropout = o->dropout);
    const int64_t hidden = both ? o->hidden / 2 : o->hidden;
    return ctn__zoo_put(m, "lstm", ctn_lstm_new(c, m->ctx, o->width, hidden, how), c);
}

static ctn_status fill(ctn_module *m, const ctn_seq2seq_opt *o)
{
    seq2seq *s = m->self;
    ctn_module *encoder = NULL, *decoder = NULL;
    const int64_t H = o->hidden;
    s->bidirectional = o->bidirectional != 0;
    CTN_TRY(ctn__zoo_group(&encoder, m, "encoder"));
    CTN_TRY(ctn__zoo_embedding(&s->source, encoder, "embedding", o->vocabulary, o->width, 1));
    CTN_TRY(put_lstm(&s->encoder, encoder, o, s->bidirectional));
    CTN_TRY(ctn__zoo_group(&decoder, m, "decoder"));
    CTN_TRY(
        ctn__zoo_embedding(&s->target, decoder, "embedding", o->target_vocabulary, o->width, 1));
    CTN_TRY(put_lstm(&s->decoder, decoder, o, false));
    CTN_TRY(put_linear(&s->attention, decoder, "attention", H, H, 1));
    CTN_TRY(put_linear(&s->combine, decoder, "combine", 2 * H, H, 0));
    return put_linear(&s->output, decoder, "output", H, o->target_vocabulary, 0);
}

ctn_status ctn_zoo_seq2seq(ctn_module **m, ctn_context *ctx, const ctn_seq2seq_opt *opt)
{
    ctn_seq2seq_opt o;
    if (!m) return ctn_fail(CTN_EARG, "seq2seq: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("seq2seq", &o, sizeof o, opt));
    CTN_TRY(ctn__zoo_default("seq2seq", "vocabulary", &o.vocabulary, 256));
    CTN_TRY(ctn__zoo_default("seq2seq", "target_vocabulary", &o.target_vocabulary, o.vocabulary));
    CTN_TRY(ctn__zoo_default("seq2seq", "width", &o.width, 256));
    CTN_TRY(ctn__zoo_default("seq2seq", "hidden", &o.hidden, 256));
    if (o.bidirectional && o.hidden % 2)
        return ctn_fail(CTN_EARG,
                        "seq2seq: hidden is %lld; it must be even, because each direction of the "
                        "encoder has half of it",
                        (long long)o.hidden);
    CTN_TRY(ctn__zoo_begin(m, ctx, NULL, sizeof(seq2seq), CTN__REFS(seq2seq, bidirectional)));
    (*m)->forward_multi = seq2seq_forward;
    return ctn__zoo_end(m, fill(*m, &o));
}
