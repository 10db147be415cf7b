/* SPDX-License-Identifier: Apache-2.0
 *
 * Ready-made networks. Each module has the parameter names of its usual PyTorch version, so
 * that ctn_weights_load can load published weights, and the same initial values. Images are
 * (N,C,H,W). In every options struct, zero means the default, which the comment gives. All
 * functions are Local. Result: *m, owned, ctn_module_free. Errors: EARG, ENOMEM.
 */
#ifndef CATENA_ZOO_H
#define CATENA_ZOO_H

#include <catena/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- by name -------------------------------------------------------------------------------- */

typedef struct {
    size_t struct_size;
    int64_t classes;     /* outputs: classes, channels (fno, unet) or vocabulary (gpt, bert) */
    int64_t in_channels; /* input channels, or inputs (mlp); not used by gpt and bert */
} ctn_zoo_opt;
/* Make a network by its name, one of ctn_zoo_names. Errors: also ENOTFOUND. */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_new(ctn_module **m, ctn_context *ctx, const char *name,
                                              const ctn_zoo_opt *opt);
/* All names, ended by NULL. Local. Result: borrowed forever. */
CTN_API const char *const *ctn_zoo_names(void);

/* ---- by family ------------------------------------------------------------------------------ */

typedef struct {
    size_t struct_size;
    int n; /* number of sizes: inputs, hidden layers, outputs; 0: 784, 1000, 1000, 10 */
    const int64_t *size;
    ctn_tensor *(*activation)(const char *at, ctn_tensor *x); /* NULL: ctn_relu_at */
    double dropout; /* rate of a dropout after each activation; 0: none */
} ctn_mlp_opt;
/* Linear layers with an activation between them, named as in a Sequential: 0.weight, 2.weight
 * and so on, or with dropout 0.weight, 3.weight. (N,size[0]) -> (N,size[n-1]). */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_mlp(ctn_module **m, ctn_context *ctx,
                                              const ctn_mlp_opt *opt);

typedef struct {
    size_t struct_size;
    int64_t classes;     /* 0: 10 */
    int64_t in_channels; /* 0: 1 */
} ctn_lenet5_opt;
/* LeNet-5 with ReLU and max pooling. Names: conv1, conv2, fc1, fc2, fc3. (N,C,28,28) ->
 * (N,classes). */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_lenet5(ctn_module **m, ctn_context *ctx,
                                                 const ctn_lenet5_opt *opt);

typedef struct {
    size_t struct_size;
    int depth;           /* 18, 34, 50, 101 or 152; 0: 50 */
    int64_t classes;     /* 0: 1000 */
    int64_t in_channels; /* 0: 3 */
    int64_t width;       /* channels of the first stage; 0: 64 */
} ctn_resnet_opt;
/* ResNet v1.5 (the stride is in the 3x3 convolution) with the names of torchvision. (N,C,H,W)
 * -> (N,classes); every image size from 1 up works, 224 is usual. */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_resnet(ctn_module **m, ctn_context *ctx,
                                                 const ctn_resnet_opt *opt);

typedef struct {
    size_t struct_size;
    int depth;           /* 6 n + 2: 20, 32, 44, 56, 110, ...; 0: 20 */
    int64_t classes;     /* 0: 10 */
    int64_t in_channels; /* 0: 3 */
    int64_t width;       /* channels of the first stage; 0: 16 */
} ctn_resnet_cifar_opt;
/* The ResNet for CIFAR. Its shortcuts have no parameters (option A): they take every second
 * pixel and pad the channels with zeros. Names: conv1, bn1, layer1.0.conv1, ..., linear.
 * (N,C,32,32) -> (N,classes). */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_resnet_cifar(ctn_module **m, ctn_context *ctx,
                                                       const ctn_resnet_cifar_opt *opt);

typedef struct {
    size_t struct_size;
    int64_t classes;     /* 0: 1000 */
    int64_t in_channels; /* 0: 3 */
    double width;        /* multiplies the number of channels; 0: 1 */
    double dropout;      /* dropout before the classifier; 0: 0.2, < 0: none */
} ctn_mobilenet_v2_opt;
/* MobileNetV2 with the names of torchvision. (N,C,H,W) -> (N,classes). */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_mobilenet_v2(ctn_module **m, ctn_context *ctx,
                                                       const ctn_mobilenet_v2_opt *opt);

typedef struct {
    size_t struct_size;
    int depth;           /* 11, 13, 16 or 19; 0: 16 */
    int64_t classes;     /* 0: 1000 */
    int64_t in_channels; /* 0: 3 */
    double dropout;      /* dropout in the classifier; 0: 0.5, < 0: none */
} ctn_vgg_opt;
/* VGG with the names of torchvision. (N,C,H,W), H and W at least 32 -> (N,classes). */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_vgg(ctn_module **m, ctn_context *ctx,
                                              const ctn_vgg_opt *opt);

typedef struct {
    size_t struct_size;
    int64_t classes;     /* 0: 1000 */
    int64_t in_channels; /* 0: 3 */
    /* 0: biases and local response normalisation, as published. 1: batch normalisation, as in
     * torchvision, whose weights can be loaded then. */
    int batch_norm;
    int no_aux;     /* 1: without the two auxiliary classifiers */
    double dropout; /* dropout before the classifier; 0: 0.4 (batch_norm: 0.2), < 0: none */
} ctn_googlenet_opt;
/* GoogLeNet with the names of torchvision. (N,C,H,W) -> (N,classes); every image size works, 224 is
 * usual. In training, ctn_call_multi has two more results, the logits of the auxiliary classifiers
 * aux1 and aux2, whose losses count 0.3 each in the paper. torchvision's published weights expect
 * pixels from -1 to 1: a mean and a standard deviation of 0.5. */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_googlenet(ctn_module **m, ctn_context *ctx,
                                                    const ctn_googlenet_opt *opt);

typedef struct {
    size_t struct_size;
    int spatial;                       /* spatial dimensions: 1, 2 or 3; 0: 2 */
    int64_t in_channels, out_channels; /* 0: 1 */
    /* Channels at full resolution, doubled at each level; 0: 32. */
    int64_t width;
    int depth; /* how often the resolution is halved; 0: 4 */
} ctn_unet_opt;
/* U-Net for fields, without an activation at the end. Names: enc.0.conv1, enc.0.bn1, ..., up.0,
 * dec.0.conv1, ..., head; up.0 and dec.0 are the deepest. (N,C,...) -> (N,out,...); lengths
 * must be multiples of 2^depth. */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_unet(ctn_module **m, ctn_context *ctx,
                                               const ctn_unet_opt *opt);

typedef struct {
    size_t struct_size;
    int spatial;                       /* spatial dimensions: 1, 2 or 3; 0: 2 */
    int64_t in_channels, out_channels; /* 0: 1 */
    int64_t width;                     /* channels of the layers; 0: 32 */
    /* Frequencies that are kept along each dimension; 0: 12, or as many as along the first. */
    int64_t modes[CTN_MAX_SPATIAL];
    int layers;     /* 0: 4 */
    int64_t hidden; /* channels of the hidden layer at the end; 0: 128 */
    int64_t pad;    /* zeros appended to each dimension inside, for fields that are not periodic */
    int no_grid;    /* 1: do not append the coordinates to the input */
} ctn_fno_opt;
/* Fourier neural operator for fields, with GELU and with coordinates from 0 to 1 appended to the
 * input. Names: fc0, conv0.weights1, w0, ..., fc1, fc2. (N,C,...) -> (N,out,...), of any resolution
 * with at least 2 modes points along each dimension. */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_fno(ctn_module **m, ctn_context *ctx,
                                              const ctn_fno_opt *opt);

typedef struct {
    size_t struct_size;
    int64_t vocabulary; /* 0: 256 */
    int64_t block;      /* maximum sequence length; 0: 128 */
    int64_t width;      /* 0: 128 */
    int layers, heads;  /* 0: 4 */
    double dropout;     /* dropout of embeddings and of the residual branches; default 0 */
    int untied;         /* 1: lm_head.weight is a parameter of its own, not tied to wte.weight */
} ctn_gpt_opt;
/* GPT-2. Names: wte, wpe, h.0.ln_1, h.0.attn.c_attn, ..., ln_f, lm_head. Matrices are (out,in)
 * as in a linear module; published files, which have some of them transposed, load as they are.
 * (N,T) i64 or i32 -> (N,T,V). Called with the tokens and a target for each of them
 * (ctn_call_multi(m, x, t)), it returns the mean loss instead, for which the logits of all tokens
 * never exist at the same time. "gpt2" in ctn_zoo_names has the sizes of the published model with
 * 124 million parameters: 12 layers and heads, width 768, block 1024, vocabulary 50257. */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_gpt(ctn_module **m, ctn_context *ctx,
                                              const ctn_gpt_opt *opt);

typedef struct {
    size_t struct_size;
    int64_t vocabulary; /* 0: 32000 */
    int64_t block;      /* maximum sequence length; 0: 2048 */
    int64_t width;      /* 0: 512 */
    int64_t hidden;     /* width inside the gated linear unit; 0: 8/3 of width, rounded up to 64 */
    int layers, heads;  /* 0: 8 */
    int kv_heads;       /* heads of keys and values, a divisor of heads; 0: heads */
    int64_t head_width; /* even; 0: width / heads */
    double rotary_base; /* 0: 10000 */
    double eps;         /* of the normalisations; 0: 1e-5 */
    int64_t window;     /* a token sees this many tokens up to itself; 0: all */
    int untied;         /* 1: lm_head.weight is a parameter of its own */
    int qkv_bias;       /* 1: the projections of queries, keys and values have a bias (Qwen 2) */
} ctn_llama_opt;
/* Llama, and what has its shape: SmolLM, Mistral, Qwen 2. RMS normalisation, rotary position
 * embedding, gated linear units, grouped queries. Names are those of Hugging Face:
 * model.embed_tokens, model.layers.0.self_attn.q_proj, ..., model.norm, lm_head. Called like
 * ctn_zoo_gpt. */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_llama(ctn_module **m, ctn_context *ctx,
                                                const ctn_llama_opt *opt);

typedef struct {
    size_t struct_size;
    int64_t vocabulary; /* 0: 30522 */
    int64_t block;      /* maximum sequence length; 0: 512 */
    int64_t types;      /* token types; 0: 2 */
    int64_t width;      /* 0: 768 */
    int64_t hidden;     /* width between the two linear layers of a layer; 0: 4 width */
    int layers, heads;  /* 0: 12 */
    double eps;         /* of the normalisations; 0: 1e-12 */
    int64_t classes;    /* 0: masked-language head; > 0: classification head */
} ctn_bert_opt;
/* BERT with the names of Hugging Face: bert.embeddings.word_embeddings, ...,
 * bert.encoder.layer.0.attention.self.query, ..., and cls.predictions or bert.pooler and
 * classifier. Inputs of ctn_call_multi: tokens (N,T) i64 or i32; lengths (N) of the sequences
 * without padding, NULL: all T; token types (N,T), NULL: all 0; with the masked-language head,
 * targets (N,T), -100 where there is none. Output: logits (N,T,V), or (N,classes) with the
 * classification head; with targets, the mean loss, for which only the logits of tokens with a
 * target are computed. Logits of padding mean nothing. GELU is exact. There is no dropout. Files in
 * which normalisations have gamma and beta load too. "bert" in ctn_zoo_names has the default sizes,
 * those of BERT base with 110 million parameters. */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_bert(ctn_module **m, ctn_context *ctx,
                                               const ctn_bert_opt *opt);

typedef struct {
    size_t struct_size;
    int64_t classes;     /* 0: 1000 */
    int64_t in_channels; /* 0: 3 */
    int64_t image;       /* height and width of the images; 0: 224 */
    int64_t patch;       /* height and width of a patch; 0: 16 */
    int64_t width;       /* 0: 768 */
    int64_t hidden;      /* width between the two linear layers of a layer; 0: 4 width */
    int layers, heads;   /* 0: 12 */
    double eps;          /* of the normalisations; 0: 1e-12 */
} ctn_vit_opt;
/* ViT, the vision transformer, with the names of Hugging Face: vit.embeddings.cls_token, ...,
 * vit.encoder.layer.0.attention.attention.query, ..., vit.layernorm, classifier. (N,C,H,W), H and W
 * equal to image -> (N,classes). There is no dropout. "vit" in ctn_zoo_names has the default
 * sizes, those of ViT-B/16 with 86 million parameters. */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_vit(ctn_module **m, ctn_context *ctx,
                                              const ctn_vit_opt *opt);

typedef struct {
    size_t struct_size;
    int64_t vocabulary;        /* of the sources; 0: 256 */
    int64_t target_vocabulary; /* 0: vocabulary */
    int64_t width, hidden;     /* of an embedding, and of a state of the decoder; 0: 256 */
    int layers;                /* of the encoder and of the decoder; 0: 1 */
    int bidirectional;         /* 1: the encoder runs in both directions, with hidden/2 each */
    double dropout;            /* after each layer of an LSTM but the last; default 0 */
} ctn_seq2seq_opt;
/* Sequence to sequence: an encoder and a decoder LSTM with attention (Luong et al., "general").
 * Names: encoder.embedding, encoder.lstm, decoder.embedding, decoder.lstm, decoder.attention,
 * decoder.combine, decoder.output. Inputs of ctn_call_multi: source (N,S) and target (N,T), i64 or
 * i32; lengths (N) of the sources without padding, NULL: all S. target is what the decoder reads
 * (teacher forcing): the correct sequence after a token that means "begin". Output: logits
 * (N,T,V), in which row t is for the token that follows target t. */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_seq2seq(ctn_module **m, ctn_context *ctx,
                                                  const ctn_seq2seq_opt *opt);

typedef struct {
    size_t struct_size;
    int64_t in_channels; /* features of a node; 0: 1433, as of Cora */
    int64_t classes;     /* 0: 7 */
    int64_t hidden;      /* 0: 16 */
    int layers;          /* 0: 2 */
    double dropout;      /* after each layer but the last; 0: 0.5, < 0: none */
} ctn_gcn_opt;
/* GCN: graph convolutions (ctn_graph_conv_new) with ReLU between them. Names: convs.0, convs.1, ...
 * as in PyTorch Geometric. Inputs of ctn_call_multi: x (N,C); edges (E,2), rows (source, target);
 * weights (E) of the edges or NULL. Output (N,classes). */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_gcn(ctn_module **m, ctn_context *ctx,
                                              const ctn_gcn_opt *opt);

typedef struct {
    size_t struct_size;
    int64_t in_channels; /* features of a node; 0: 1433, as of Cora */
    int64_t classes;     /* 0: 7 */
    int64_t hidden;      /* of each head; 0: 8 */
    int64_t heads;       /* of all layers but the last, which has one; 0: 8 */
    int layers;          /* 0: 2 */
    double dropout;      /* of features and attention weights; 0: 0.6, < 0: none */
} ctn_gat_opt;
/* GAT: graph attention (ctn_graph_attention_new) with ELU between the layers. Names: convs.0, ...
 * Inputs of ctn_call_multi: x (N,C); edges (E,2). Output (N,classes). */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_gat(ctn_module **m, ctn_context *ctx,
                                              const ctn_gat_opt *opt);

typedef struct {
    size_t struct_size;
    int64_t node_in, edge_in, out; /* features of a node and of an edge, outputs; 0: 1 */
    int64_t hidden;                /* 0: 128 */
    int steps;                     /* of message passing; 0: 15 */
    int mlp_layers;                /* hidden layers of each network; 0: 2 */
} ctn_meshgraphnet_opt;
/* MeshGraphNet (Pfaff et al.) for simulations on meshes: encode nodes and edges, pass messages
 * (ctn_message_passing_new, sum and residual), decode the nodes. Each network is linear layers with
 * ReLU and, except for the decoder, layer normalisation. Names: node_encoder, edge_encoder,
 * steps.0.edge, steps.0.node, ..., decoder. Inputs of ctn_call_multi: x (N,node_in); edges (E,2);
 * features of the edges (E,edge_in). Output (N,out). */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_meshgraphnet(ctn_module **m, ctn_context *ctx,
                                                       const ctn_meshgraphnet_opt *opt);

/* ---- published models ----------------------------------------------------------------------- */

/* Make the network that a config.json of Hugging Face describes; path is that file or its folder.
 * The key model_type must be gpt2, llama, mistral, qwen2, bert or vit. A BERT gets the
 * classification head if architectures says BertForSequenceClassification, otherwise the
 * masked-language head. Load the weights with ctn_weights_load. Rates of dropout in the file are
 * not used. Errors: also EIO, EFORMAT, EUNSUPPORTED (another model_type, a setting that Catena
 * does not have, or a build without yyjson). */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_open(ctn_module **m, ctn_context *ctx, const char *path);

#ifdef __cplusplus
}
#endif
#endif
