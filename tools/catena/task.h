/* SPDX-License-Identifier: Apache-2.0
 *
 * What train, eval and predict share: a network with its data, as described by the options. The
 * steps, in this order:
 *     task_begin     names, context, a published network (DOING_SETUP)
 *     task_data      datasets, as stored       (DOING_DATA)
 *     task_net       the network, with state for the mean and deviation of its data
 *     task_moments   training: computes mean and deviation; otherwise task_weights loads them
 *     task_loaders   standardised datasets, loaders
 */
#ifndef CATENA_TASK_H
#define CATENA_TASK_H

#include <catena/datasets.h>
#include <catena/image.h>
#include <catena/model.h>
#include <catena/text.h>
#include <catena/train.h>
#include <catena/zoo.h>

#include "cli.h"
#include "launch.h"

typedef enum {
    DATA_MNIST,
    DATA_CIFAR,
    DATA_FOLDER,
    DATA_SHARDS,
    DATA_ARRAYS,
    DATA_TOKENS,
    DATA_TABLE,
    DATA_LIST,  /* a text file that names images and their classes */
    DATA_MASKS, /* images with a class for each pixel */
    DATA_CIFAR100,
    DATA_SVHN,
    DATA_IMAGES, /* images without classes, for predict */
    DATA_UNKNOWN
} data_kind;

typedef enum { NET_FLAT, NET_IMAGE, NET_FIELD, NET_TOKENS, NET_OWN } net_kind;

typedef struct task task;

/* What the data is for; decides what task_data opens. */
typedef enum { FOR_TRAINING, FOR_EVALUATION, FOR_PREDICTION } task_use;

/* Converts samples of an array to what the network takes; lives as long as the dataset. */
typedef struct {
    int fields;
    ctn_field from[2], to[2];
    int64_t count[2];
    bool fill; /* NaN becomes fill_value */
    double fill_value;
} converter;

struct task {
    args *a;
    task_use use;
    doing now; /* for the exit code */
    ctn_context *ctx;
    const char *zoo; /* name in the zoo; NULL: the user's own network, or a published one */
    bool published;  /* the network is described by the config.json of a published model */
    bool masked;     /* the network predicts hidden words of a text */
    bool held_out;   /* evaluate what the training held out */
    net_kind net_is;
    data_kind kind;
    ctn_dataset *set[2];  /* training and validation; eval and predict read set[0] */
    ctn_dataset *base[4]; /* datasets that the sets read through; freed after them */
    int nbase;
    converter convert[2];
    int nconvert;
    ctn_tokenizer *tokenizer; /* NULL: tokens need none */
    ctn_field input, target;  /* of set[0]; target.dtype 0: no target */
    bool f64;                 /* the input file holds f64 */
    bool classify;
    bool pixels;         /* each pixel has a class */
    int64_t classes;     /* number of classes; for tokens, the vocabulary size */
    int spatial;         /* number of spatial dimensions of a field */
    bool standardize[2]; /* input, target */
    ctn_module *net;
    ctn_var *moment[2][2]; /* mean and deviation of input and target, or NULL */
    void *library;         /* of the user's own network */
    const ctn_model *own;
    bool onnx; /* the network is a file in ONNX format */
    ctn_loss_fn loss;
    void *loss_self;
    ctn_loader *loader[2];
    int loader_threads;
};

/* Options that the three commands share. */
/* clang-format off */
#define TASK_DATA_OPTIONS                                                                          \
    {"data", "PATH", "",                                                                           \
     "folder with MNIST, CIFAR-10 or CIFAR-100 (binary), SVHN, one folder per class, images and "  \
     "masks, or tar shards; x.npy, file.h5:/name or file.nc:/name; table.csv; text.txt or "        \
     "tokens.bin",                                                                                 \
     GROUP_COMMON},                                                                                \
    {"target", "PATH", "",                                                                         \
     "the values to predict. Arrays: y.npy or file.h5:/name. Tables: names of columns, separated " \
     "by commas", GROUP_COMMON},                                                                   \
    {"inputs", "COLUMNS", "",                                                                      \
     "tables: names or numbers of the input columns (default: all but the target)", GROUP_DATA},   \
    {"separator", "CHAR", "", "tables: what divides cells, such as ; or tab (default: a comma)",   \
     GROUP_DATA},                                                                                  \
    {"no-header", NULL, NULL, "tables: the first line has no names of columns", GROUP_DATA},       \
    {"fill", "X", "", "number that replaces missing values and NaN in tables and arrays",          \
     GROUP_DATA},                                                                                  \
    {"format", "auto|mnist|cifar|folder|shards|arrays|tokens|table|list|masks|cifar100|svhn",      \
     "auto", "format of --data", GROUP_DATA},                                                      \
    {"size", "N", "0", "image height and width; 0: the network's usual size", GROUP_DATA},         \
    {"mean", "R,G,B,...", "",                                                                      \
     "mean subtracted from pixels in [0, 1] (default: ImageNet's)", GROUP_DATA},                   \
    {"std", "R,G,B,...", "",                                                                       \
     "standard deviation that pixels are divided by (default: ImageNet's)", GROUP_DATA},           \
    {"length", "N", "128", "tokens per sample", GROUP_DATA},                                       \
    {"token-bytes", "N", "0",                                                                      \
     "bytes per token; 0: 1 for .txt files that no tokenizer encodes, else 2", GROUP_DATA},        \
    {"tokenizer", "PATH", "",                                                                      \
     "for text: tokenizer.json, vocab.json beside merges.txt, vocab.txt, or a folder with them "   \
     "(default: the folder of a published model; without any, tokens are bytes)", GROUP_DATA},     \
    {"keep-case", NULL, NULL, "keep case and accents of text (vocab.txt of cased models)",         \
     GROUP_DATA},                                                                                  \
    {"mask-share", "X", "0.15", "bert: share of the words to predict", GROUP_DATA},                \
    {"stage", "DIR", "", "node-local folder into which shards are copied once", GROUP_DATA},       \
    {"batch", "N", "0", "batch size, per rank; 0: the usual one for the data", GROUP_COMMON},      \
    {"loader-threads", "N", "",                                                                    \
     "threads that read and decode samples (default: depends on the data)", GROUP_DATA},           \
    {"skip", "X", "0",                                                                             \
     "maximum share of unreadable samples to skip; 0: fail at the first one", GROUP_DATA}

#define TASK_NET_OPTIONS                                                                           \
    {"classes", "N", "0",                                                                          \
     "number of classes, or vocabulary size of gpt and bert; 0: from the data", GROUP_NETWORK},    \
    {"hidden", "N,...", "1000,1000", "mlp: sizes of the hidden layers", GROUP_NETWORK},            \
    {"activation", "relu|gelu|tanh|sigmoid|softplus", "relu", "mlp: function between the layers",  \
     GROUP_NETWORK},                                                                               \
    {"dropout", "X", "0", "mlp: share of the hidden values that training drops", GROUP_NETWORK},   \
    {"width", "N", "0",                                                                            \
     "unet, fno, gpt, bert: number of channels; 0: the usual number", GROUP_NETWORK},              \
    {"depth", "N", "0",                                                                            \
     "unet, fno, gpt, bert: number of levels or layers; 0: the usual number", GROUP_NETWORK},      \
    {"modes", "N,...", "",                                                                         \
     "fno: frequencies kept along each dimension (default: 12, or half of the points)",            \
     GROUP_NETWORK},                                                                               \
    {"heads", "N", "0",                                                                            \
     "gpt, bert: number of attention heads; 0: the usual number", GROUP_NETWORK},                  \
    {"spatial", "N", "0",                                                                          \
     "unet, fno: spatial dimensions of a sample; 0: all but the first, the channels",              \
     GROUP_NETWORK},                                                                               \
    {"loss", "auto|cross-entropy|mse|mae|huber|relative-l2", "auto",                               \
     "loss; auto: cross-entropy for classes, else mse", GROUP_NETWORK},                            \
    {"smoothing", "X", "0", "label smoothing, 0 to 1", GROUP_NETWORK},                             \
    {"standardize", "auto|none", "auto",                                                           \
     "scaling of arrays; auto: to mean 0 and deviation 1, undone by predict", GROUP_DATA},         \
    {"target-shape", "N,...", "",                                                                  \
     "predict: shape of one result, if no config.yaml lies beside the weights", GROUP_NETWORK},    \
    {"model-args", "TEXT", "", "text passed to your own network", GROUP_NETWORK}

#define TASK_RUN_OPTIONS                                                                           \
    {"threads", "N", "0",                                                                          \
     "number of compute threads; 0: as shown by catena info", GROUP_PRECISION},                    \
    {"precision", "f32|bf16|f16|f64", "f32",                                                       \
     "precision of activations and matrix products; f64: of weights and gradients too",            \
     GROUP_COMMON},                                                                                \
    {"slow-precision", NULL, NULL,                                                                 \
     "allow a precision that this CPU runs with slow reference kernels", GROUP_PRECISION},         \
    {"seed", "N", "1",                                                                             \
     "random seed of initial weights, sample order and augmentation", GROUP_DATA}
/* clang-format on */

/* Whether the incomplete batch at the end of an epoch is dropped. */
bool drops_last(const args *a);
int64_t field_elements(const ctn_field *f); /* in one sample */
/* Whether sizes that an option or a configuration gives are positive, and their product fits an
 * int. Errors: EARG. */
ctn_status check_sizes(const char *name, const ctn_field *f);

/* Class names in order, as the training wrote them beside its weights; n 0: there are none. */
typedef struct {
    int64_t n;
    char **name, *text;
} class_names;
ctn_status class_names_read(class_names *c, launch *l, const char *weights); /* collective */
void class_names_free(class_names *c);

net_kind net_kind_of(const char *zoo); /* of a network of the zoo */
ctn_status task_begin(task *t, args *a, task_use use);
ctn_status task_data(task *t);
ctn_status task_net(task *t);
ctn_status task_moments(task *t);
/* A language model by its name, with the sizes in the options of gpt and bert, or a published one.
 * Errors: EUNSUPPORTED for a published network that is not a language model. */
ctn_status make_language(const args *a, ctn_context *ctx, int64_t vocabulary, ctn_module **net);
ctn_status task_weights(task *t, const char *path); /* rank 0 reads and broadcasts; collective */
ctn_status task_loaders(task *t);
ctn_status check_class_folders(const char *path); /* before training (class_folders.c) */
/* Warn about options that have no effect here (unused.c). Call it after everything was made. */
void warn_unused(const task *t);
void task_free(task *t); /* a zeroed task is fine */

/* The network's output for a batch. Result: scope. */
ctn_tensor *task_forward(task *t, ctn_tensor *x);
/* The loss function for trainers and ctn_evaluate; self is the task. */
ctn_tensor *task_loss(void *self, ctn_step *s);
/* Mean and deviation of the input (0) or target (1), n of each. The caller frees both. */
ctn_status task_moment_values(const task *t, int field, int64_t *n, double **mean, double **std);

/* Fill in network options that were not given from config.yaml beside the weights. Returns -1 to
 * continue, else the exit code. */
int task_inherit(args *a);
/* If the operand is a result folder, it stands for the best weights in it. On rank 0. */
void take_result(args *a);
/* The weights of a command: --weights, else those in the folder of a published model; "": none. */
const char *weights_of(const args *a);
/* --lora: add adapters to the network; after training, on rank 0, write them to
 * out/adapters.safetensors and the network with them merged to out/weights.safetensors, that with
 * the best ones to out/best.safetensors; of a published model also the folder out/adapters. */
ctn_status adapters_add(task *t);
ctn_status adapters_write(task *t, const char *out);
/* --adapters: merge the adapters of a folder into the network. */
ctn_status adapters_open(const args *a, ctn_module *net);
/* The network that weights were trained as, by config.yaml beside them; false: unknown. */
bool task_trained_as(const char *weights, char *name, size_t n);

/* ---- metric.c -------------------------------------------------------------------------------- */

/* Whether the metrics of --metric fit the data. */
ctn_status metrics_check(const task *t);
/* Report them, if this is not training. */
void metrics_report(const task *t, ctn_step *s, ctn_tensor *y, ctn_tensor *target);
/* The first name of the list, without "val/"; "": it is empty. */
void metric_first(const char *list, char *name, size_t size);
/* Whether larger values of the first metric are better: 0 or 1; -1: only the user can know. */
int metric_larger(const char *list);

/* ---- tokens.c -------------------------------------------------------------------------------- */

/* The tokenizer that is given, or that of a published model; *t stays NULL if there is none. */
ctn_status open_tokenizer(const args *a, ctn_tokenizer **t);
/* Windows of a token file or of text. */
ctn_status tokens_open(task *t, ctn_dataset **ds, const char *path);
/* Hide words of the windows if the network is to predict them. */
ctn_status tokens_mask(task *t);

/* ---- table.c --------------------------------------------------------------------------------- */

ctn_status table_open(task *t, ctn_dataset **ds, const char *path, const char *target);

/* ---- own_model.c ----------------------------------------------------------------------------- */

ctn_status own_open(task *t, const char *path);
void own_close(task *t);

/* ---- onnx_model.c ---------------------------------------------------------------------------- */

bool is_onnx(const char *path); /* judged by its name; NULL: no */
/* The network of the task from a file in ONNX format: one input, of which the first dimension is
 * the batch, and the first output. */
ctn_status onnx_open(task *t, const char *path);
/* The size of images that the model takes; 0: any. */
int64_t onnx_image_size(const task *t);
/* Sets the shape of a sample from the model; false if it is open there. */
bool onnx_input(task *t);
/* What the model's first output says: the number of classes if it is not known yet, and the shape
 * of a result if the data has no targets. */
ctn_status onnx_results(task *t);

/* ---- images.c -------------------------------------------------------------------------------- */

/* One image file, or all in a folder sorted by name, without labels. Errors: as
 * ctn_image_folder_open. */
ctn_status images_open(ctn_dataset **ds, const char *path, const ctn_image_opt *opt);

/* ---- guess.c --------------------------------------------------------------------------------- */

data_kind guess_kind(const char *path, const char *format);
bool is_image(const char *path); /* judged by its name */
bool is_folder(const char *path);
/* Images of 32 x 32 pixels with their test images beside them: CIFAR and SVHN. */
bool is_small(data_kind kind);
/* A folder with a config.json, or such a file: a model as Hugging Face publishes it. */
bool is_published(const char *path);

#endif
