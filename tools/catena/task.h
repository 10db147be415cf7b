/* SPDX-License-Identifier: Apache-2.0
 *
 * A network with its data as the options of train, eval and predict describe them: what these three
 * share. Made in this order:
 *     task_begin     names, context            (DOING_SETUP)
 *     task_data      datasets, as stored       (DOING_DATA)
 *     task_net       the network, with room for mean and deviation of its data
 *     task_moments   training: these are computed; otherwise task_weights loads them
 *     task_loaders   datasets standardised by them, loaders
 */
#ifndef CATENA_TASK_H
#define CATENA_TASK_H

#include <catena/datasets.h>
#include <catena/image.h>
#include <catena/model.h>
#include <catena/train.h>

#include "cli.h"
#include "launch.h"

typedef enum {
    DATA_MNIST,
    DATA_CIFAR,
    DATA_FOLDER,
    DATA_SHARDS,
    DATA_ARRAYS,
    DATA_TOKENS,
    DATA_IMAGES, /* without classes: predict */
    DATA_UNKNOWN
} data_kind;

typedef enum { NET_FLAT, NET_IMAGE, NET_FIELD, NET_TOKENS, NET_OWN } net_kind;

typedef struct task task;

/* What task_data opens. */
typedef enum { FOR_TRAINING, FOR_EVALUATION, FOR_PREDICTION } task_use;

/* How samples of an array are turned into those of a network; lives as long as the dataset. */
typedef struct {
    int fields;
    ctn_field from[2], to[2];
    int64_t count[2];
} converter;

struct task {
    args *a;
    task_use use;
    doing now; /* for the exit code */
    ctn_context *ctx;
    const char *zoo; /* name in the zoo, NULL: own */
    net_kind net_is;
    data_kind kind;
    ctn_dataset
        *set[2]; /* training and validation; eval and predict: the first is what they read */
    ctn_dataset *base[4]; /* freed after these */
    int nbase;
    converter convert[2];
    int nconvert;
    ctn_field input, target; /* of set[0]; target.dtype 0: none */
    bool f64;                /* the input file is */
    bool classify;
    int64_t classes;     /* or numbers of a target, channels of a field, vocabulary */
    int spatial;         /* of a field */
    bool standardize[2]; /* input, target */
    ctn_module *net;
    ctn_var *moment[2][2]; /* mean and deviation of input and target, or NULL */
    void *library;         /* of an own model */
    const ctn_model *own;
    ctn_loss_fn loss;
    void *loss_self;
    ctn_loader *loader[2];
    int loader_threads;
};

/* Options that the three commands have in common. */
#define TASK_DATA_OPTIONS                                                                      \
    {"data", "PATH", "",                                                                       \
     "folder of MNIST or CIFAR-10 (binary), of one folder per class, of tar shards; x.npy or " \
     "file.h5:/name; text.txt or tokens.bin"},                                                 \
        {"target", "PATH", "", "arrays: what is to be predicted, y.npy or file.h5:/name"},     \
        {"format", "auto|mnist|cifar|folder|shards|arrays|tokens", "auto", "what --data is"},  \
        {"size", "N", "0", "height and width of images; 0: the usual one of the network"},     \
        {"mean", "R,G,B,...", "", "subtracted from pixels in 0 to 1 (default: ImageNet's)"},   \
        {"std", "R,G,B,...", "", "pixels are divided by it afterwards (default: ImageNet's)"}, \
        {"length", "N", "128", "tokens of a sample"},                                          \
        {"token-bytes", "N", "0", "bytes of a token; 0: 1 in .txt files, else 2"},             \
        {"stage", "DIR", "", "node-local folder to which shards are copied once"},             \
        {"batch", "N", "0", "samples per batch; 0: the usual number for the data"},            \
        {"loader-threads", "N", "", "threads that read and decode (default: by the data)"},    \
        {"skip", "X", "0",                                                                     \
         "share of unreadable samples that are left out; 0: the first one ends it"}

#define TASK_NET_OPTIONS                                                                      \
    {"classes", "N", "0", "classes, or vocabulary of gpt; 0: as the data has"},               \
        {"hidden", "N,...", "1000,1000", "mlp: sizes of the layers between"},                 \
        {"width", "N", "0", "unet, gpt: channels; 0: the usual number"},                      \
        {"depth", "N", "0", "unet, gpt: levels or layers; 0: the usual number"},              \
        {"heads", "N", "0", "gpt: heads of attention; 0: 4"},                                 \
        {"spatial", "N", "0",                                                                 \
         "unet: dimensions of a field; 0: those of a sample but the channel"},                \
        {"loss", "auto|cross-entropy|mse|mae|huber", "auto",                                  \
         "auto: cross-entropy for classes, else mse"},                                        \
        {"smoothing", "X", "0", "of labels, 0 to 1"},                                         \
        {"standardize", "auto|none", "auto",                                                  \
         "auto: arrays to mean 0 and deviation 1; kept with the weights, undone by predict"}, \
        {"target-shape", "N,...", "", "predict: shape of one result, where no file tells"},   \
        {"model-args", "TEXT", "", "handed to a network of your own"}

#define TASK_RUN_OPTIONS                                                                         \
    {"threads", "N", "0", "compute threads; 0: as catena info shows"},                           \
        {"precision", "f32|bf16|f16", "f32", "of activations and products"},                     \
        {"slow-precision", NULL, NULL, "take a precision that has only reference kernels here"}, \
        {"seed", "N", "1", "of initial values, order, augmentation"}

/* Names of networks and their other names, ended by NULL. */
const char *const *task_names(void);
/* Are smaller batches at the end of an epoch left out? */
bool drops_last(const args *a);
int64_t field_elements(const ctn_field *f); /* of one sample */

/* Names of classes, in their order, as the training has written them beside its weights; n 0: there are none. */
typedef struct {
    int64_t n;
    char **name, *text;
} class_names;
ctn_status class_names_read(class_names *c, launch *l, const char *weights); /* collective */
void class_names_free(class_names *c);

ctn_status task_begin(task *t, args *a, task_use use);
ctn_status task_data(task *t);
ctn_status task_net(task *t);
ctn_status task_moments(task *t);
ctn_status task_weights(task *t, const char *path); /* rank 0 reads, all have them; collective */
ctn_status task_loaders(task *t);
ctn_status check_class_folders(const char *path); /* of a training (class_folders.c) */
void warn_unused(const task *t); /* options that change nothing here (unused.c); when all is made */
void task_free(task *t);         /* of zeros is fine */

/* y of a batch of the network. Result: scope. */
ctn_tensor *task_forward(task *t, ctn_tensor *x);
/* What trainers and ctn_evaluate call; self is the task. */
ctn_tensor *task_loss(void *self, ctn_step *s);
/* Mean and deviation of input (0) or target (1) as doubles, n of each. Freed by the caller. */
ctn_status task_moment_values(const task *t, int field, int64_t *n, double **mean, double **std);

/* Options of the network that were not given, from config.yaml beside the weights. -1: go on. */
int task_inherit(args *a);

/* ---- own_model.c ---------------------------------------------------------------------------------- */

ctn_status own_open(task *t, const char *path);
void own_close(task *t);

/* ---- images.c ------------------------------------------------------------------------------------- */

/* One image file, or those of a folder by name, without labels. Errors: as ctn_image_folder_open. */
ctn_status images_open(ctn_dataset **ds, const char *path, const ctn_image_opt *opt);

/* ---- guess.c -------------------------------------------------------------------------------------- */

data_kind guess_kind(const char *path, const char *format);
bool is_image(const char *path); /* by its name */
bool is_folder(const char *path);
bool ends_with(const char *s, const char *end);

#endif
