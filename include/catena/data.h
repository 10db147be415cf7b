/* SPDX-License-Identifier: Apache-2.0
 *
 * Input data: datasets (a table of functions), samplers (which sample comes next) and loaders
 * (threads that prepare batches ahead of time). This header deals in bytes and plain arrays;
 * only ctn_batch_tensor turns a batch into tensors.
 *
 * Which samples are in batch k of epoch e depends only on the sampler's seed. The number of
 * loader threads never changes it.
 */
#ifndef CATENA_DATA_H
#define CATENA_DATA_H

#include <catena/base.h>
#include <catena/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Maximum number of fields of a sample (image, label, ...) and of a batch, which also has a field
 * of lengths for each ragged field. */
#define CTN_DATA_FIELDS 8
#define CTN_RAGGED (-1) /* as shape[0] of a field: differs from sample to sample */

typedef struct ctn_dataset ctn_dataset;
typedef struct ctn_sampler ctn_sampler;
typedef struct ctn_loader ctn_loader;

/* Type and shape of one field, row-major unless channels_last is set. For a sample the shape
 * has no batch dimension (a scalar has ndim 0) and at most CTN_MAX_DIMS - 1 dimensions; shape[0]
 * may be CTN_RAGGED unless channels_last is set. For a batch, shape[0] is the number of
 * samples. */
typedef struct {
    ctn_dtype dtype;
    int ndim;
    int64_t shape[CTN_MAX_DIMS];
    int channels_last; /* a sample (C,H,W) is stored as (H,W,C); shape stays (C,H,W) */
} ctn_field;

/* Identifies a sample within an epoch. A dataset must derive its random choices from index, seed
 * and epoch only, so that the pixels do not depend on the number of threads and ranks. */
typedef struct {
    int64_t index;
    uint64_t seed, epoch;
    /* 0, or the height and width of the images to make instead of those of the field; only for
     * datasets that have ctn_dataset_vt.resizes. */
    int64_t size;
} ctn_sample;

/* ---- datasets ------------------------------------------------------------------------------- */

/* The functions of a dataset. ctn_dataset_new calls count, fields and field once. get is called
 * from several threads at once. It writes sample s->index (0 <= index < count) to field_dst[0],
 * field_dst[1], ..., which are aligned for their dtype and no more. It reports errors with
 * ctn_fail: EFORMAT or EUNSUPPORTED for a sample that is damaged or not supported, EIO for one
 * that cannot be read.
 *
 * The other functions may be NULL. free releases self. name writes the name by which a user
 * knows the sample, such as a path, and returns its length as snprintf does. class_name returns
 * the name of label k, borrowed from the dataset, or NULL after the last one. length is needed
 * if a field is ragged, and is called for ragged fields only: it returns the size (0 or more) of
 * the first dimension of field f in sample `index`, always the same. It is called from several
 * threads at once and often, so it should be cheap. get then writes exactly that many rows. resizes
 * returns 1 if get can make field 0, images (C,H,W), in the size that ctn_sample.size asks for; a
 * field (H,W) with the same H and W follows it. Set struct_size to sizeof(ctn_dataset_vt). */
typedef struct {
    size_t struct_size;
    int64_t (*count)(void *self);
    int (*fields)(void *self);
    void (*field)(void *self, int f, ctn_field *out);
    ctn_status (*get)(void *self, const ctn_sample *s, void *const *field_dst);
    void (*free)(void *self);
    int (*name)(void *self, int64_t index, char *buf, size_t n);
    const char *(*class_name)(void *self, int64_t k);
    int64_t (*length)(void *self, int f, int64_t index);
    int (*resizes)(void *self);
} ctn_dataset_vt;

/* A dataset made of the caller's functions. vt is copied. On success the dataset owns self; on
 * failure the caller keeps ownership. Local. Result: *ds, owned, ctn_dataset_free. Errors:
 * EARG, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dataset_new(ctn_dataset **ds, const ctn_dataset_vt *vt,
                                                  void *self);

/* Free a dataset: calls free of its function table. Free the loaders that use it first. NULL is
 * allowed. Local. */
CTN_API void ctn_dataset_free(ctn_dataset *ds);

/* Number of samples, number of fields per sample, and type and shape of one field (NULL if
 * there is no field f). Local. Result: borrowed from ds. */
CTN_API int64_t ctn_dataset_count(const ctn_dataset *ds);
CTN_API int ctn_dataset_fields(const ctn_dataset *ds);
CTN_API const ctn_field *ctn_dataset_field(const ctn_dataset *ds, int f);

/* Size of the first dimension of field f in sample `index`, also if it is not ragged (1 for a
 * scalar); -1 if there is no such field or sample. Local, thread-safe. */
CTN_API int64_t ctn_dataset_length(const ctn_dataset *ds, int f, int64_t index);

/* Write one sample to dst[0 .. fields-1]. ctn_dataset_get does the same with seed 0 and
 * epoch 0. Local, thread-safe. Errors: EARG (also if s->size is set and the dataset cannot change
 * the size of its images), those of the dataset. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dataset_sample(const ctn_dataset *ds, const ctn_sample *s,
                                                     void *const *dst);
CTN_API CTN_MUST_CHECK ctn_status ctn_dataset_get(const ctn_dataset *ds, int64_t index,
                                                  void *const *dst);
/* The name of sample `index`, such as a path; "sample 17" if the dataset has no names. Returns
 * the full length, as snprintf does. Local. */
CTN_API int ctn_dataset_name(const ctn_dataset *ds, int64_t index, char *buf, size_t n);
/* The name of class k; NULL if there is no class k or the classes have no names. Local. Result:
 * borrowed from ds. */
CTN_API const char *ctn_dataset_class(const ctn_dataset *ds, int64_t k);
/* Number of classes that have names, 0 if none have. Local. */
CTN_API int64_t ctn_dataset_classes(const ctn_dataset *ds);
/* 1 if the dataset can make its images in the size that ctn_sample.size asks for: images from
 * files and augmented ones can, and so do the parts made from such a dataset. Local. */
CTN_API int ctn_dataset_resizes(const ctn_dataset *ds);

/* A dataset of arrays in memory: sample i of field f is at data[f] + i * (bytes of one sample).
 * The arrays are borrowed until the dataset is freed; the field descriptions are copied. Local.
 * Result: *ds, owned, ctn_dataset_free. Errors: EARG, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_arrays_open(ctn_dataset **ds, int64_t count, int fields,
                                                  const ctn_field *field, const void *const *data);
/* The same with ragged fields. The rows of sample i of such a field are offset[f][i] to
 * offset[f][i+1] - 1 of data[f]; there are count + 1 offsets, and they never decrease. offset[f]
 * is NULL for other fields. The offsets are borrowed too. Local. Result: *ds, owned,
 * ctn_dataset_free. Errors: EARG, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_ragged_open(ctn_dataset **ds, int64_t count, int fields,
                                                  const ctn_field *field, const void *const *data,
                                                  const int64_t *const *offset);

typedef struct {
    size_t struct_size;
    int raw;    /* 1: images as stored, u8; 0: f32, divided by 255 */
    int shaped; /* 1: images as (1,H,W); 0: (H*W) */
} ctn_idx_opt;

/* Images (N,H,W) u8 and labels (N) u8 from idx files, plain or gzip, loaded into memory.
 * Fields: image, label (a scalar i64); labels_path NULL: images only. Local. Result: *ds,
 * owned, ctn_dataset_free. Errors: EIO, EFORMAT, EUNSUPPORTED (gzip in a build without zlib),
 * ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_idx_open(ctn_dataset **ds, const char *images_path,
                                               const char *labels_path, const ctn_idx_opt *opt);

typedef enum { CTN_TRAIN = 1, CTN_TEST = 2 } ctn_split;

/* MNIST, or a dataset in the same format such as Fashion-MNIST or Kuzushiji-MNIST, whose classes
 * docs/data.md lists, from folder dir under the usual file names (train-images-idx3-ubyte, ...),
 * with or without .gz. Fields: image f32 (784), label i64. Local. Result: *ds, owned,
 * ctn_dataset_free. Errors: as ctn_idx_open. */
CTN_API CTN_MUST_CHECK ctn_status ctn_mnist_open(ctn_dataset **ds, const char *dir,
                                                 ctn_split split);

typedef struct {
    size_t struct_size;
    int raw;                /* 1: images as stored, u8; 0: f32, (pixel / 255 - mean) / std */
    double mean[3], std[3]; /* per channel (red, green, blue); std 0: 1 */
    int coarse;             /* CIFAR-100: 1: the 20 coarse classes; 0: the 100 fine ones */
} ctn_cifar_opt;

/* CIFAR-10, binary version, from folder dir: data_batch_1.bin to data_batch_5.bin, or
 * test_batch.bin. Loaded into memory. Fields: image (3,32,32), label (a scalar i64). Local.
 * Result: *ds, owned, ctn_dataset_free. Errors: EIO, EFORMAT, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_cifar10_open(ctn_dataset **ds, const char *dir,
                                                   ctn_split split, const ctn_cifar_opt *opt);
/* CIFAR-100, binary version, from folder dir: train.bin or test.bin. Loaded into memory. Fields:
 * image (3,32,32), label (a scalar i64): the fine class, 0 to 99, or with .coarse the coarse one, 0
 * to 19. Local. Result: *ds, owned, ctn_dataset_free. Errors: EIO, EFORMAT, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_cifar100_open(ctn_dataset **ds, const char *dir,
                                                    ctn_split split, const ctn_cifar_opt *opt);
/* Street View House Numbers, the cropped digits, from folder dir: train_32x32.mat or
 * test_32x32.mat (MATLAB 5). Loaded into memory. Fields: image (3,32,32), label (a scalar i64): the
 * digit. The options are those of CIFAR; .coarse is ignored. Local. Result: *ds, owned,
 * ctn_dataset_free. Errors: EIO, EFORMAT, EUNSUPPORTED (a compressed file in a build without
 * zlib), ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_svhn_open(ctn_dataset **ds, const char *dir, ctn_split split,
                                                const ctn_cifar_opt *opt);

/* ---- samplers ------------------------------------------------------------------------------- */

/* The complete state of a sampler: save it to resume at the same sample. position counts the
 * samples of this epoch that all ranks together have delivered. It is therefore the same on
 * every rank, and a run can be resumed with a different number of ranks. */
typedef struct {
    uint64_t seed, epoch, position;
} ctn_sampler_state;

/* Sequential order (0, 1, 2, ...), or a different permutation in every epoch. A sampler takes a
 * few bytes, however large count is. Local. Result: *s, owned, ctn_sampler_free. Errors: EARG,
 * ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_sampler_sequential(ctn_sampler **s, int64_t count);
CTN_API CTN_MUST_CHECK ctn_status ctn_sampler_shuffled(ctn_sampler **s, int64_t count,
                                                       uint64_t seed);
/* Draw count samples per epoch with replacement, sample i with probability weight[i] / sum.
 * Takes 16 bytes per sample; weight is not needed after the call. Local. Result: *s, owned,
 * ctn_sampler_free. Errors: EARG (a weight is negative or not finite, or all are 0), ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_sampler_weighted(ctn_sampler **s, int64_t count,
                                                       const double *weight, uint64_t seed);
/* A different order in every epoch, in which samples of similar length come together, so that
 * batches of ragged fields need little padding. batch is the number of samples that all ranks
 * together take in one step: the loader's batch times the number of ranks. Batches come in random
 * order; each is drawn at random from a 64th of the samples or, if that is less, from two batches
 * of neighbours in length. Each sample comes once per epoch. If the epoch ends with an incomplete
 * batch, its length is random. Takes 8 bytes per sample (24 during the call); length is not needed
 * after the call. Local. Result: *s, owned, ctn_sampler_free. Errors: EARG (batch is less than 1, a
 * length is negative), ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_sampler_bucketed(ctn_sampler **s, int64_t count,
                                                       const int64_t *length, int64_t batch,
                                                       uint64_t seed);
/* An order of your own. fn returns the sample at at->position (0 <= position < count) of
 * at->epoch. It must be a pure function of user and *at, and is called from several threads at
 * once. An epoch has count positions, which need not be the number of samples. user is borrowed
 * until the sampler and the loaders made with it are freed. Local. Result: *s, owned,
 * ctn_sampler_free. Errors: EARG, ENOMEM. */
typedef int64_t (*ctn_sampler_fn)(void *user, const ctn_sampler_state *at);
CTN_API CTN_MUST_CHECK ctn_status ctn_sampler_new(ctn_sampler **s, int64_t count, ctn_sampler_fn fn,
                                                  void *user, uint64_t seed);
CTN_API void ctn_sampler_free(ctn_sampler *s); /* NULL is allowed. Local. */

/* Give this rank its part of the samples: every size-th sample from the state's position on,
 * beginning with number rank. Together the ranks visit each position exactly once, and batch k
 * of all ranks together is batch k of a single rank with `size` times the batch size. Parts
 * differ by at most one sample; some are empty if there are more ranks than samples. Call it
 * before the loader is made; a second call replaces the first. Local. Errors: EARG (no such
 * part). */
CTN_API CTN_MUST_CHECK ctn_status ctn_sampler_shard(ctn_sampler *s, int rank, int size);
/* Number of positions in an epoch: of this rank's part, and of all parts together. Local. */
CTN_API int64_t ctn_sampler_count(const ctn_sampler *s);
CTN_API int64_t ctn_sampler_total(const ctn_sampler *s);

/* The sample at a position of an epoch within this rank's part (0 <= position <
 * ctn_sampler_count), -1 if out of range. A pure function: it neither reads nor changes the
 * sampler's own epoch and position. Local. */
CTN_API int64_t ctn_sampler_index(const ctn_sampler *s, uint64_t epoch, uint64_t position);

/* The position at which a new loader starts. Local. Errors: EARG (position is larger than the
 * total). */
CTN_API ctn_sampler_state ctn_sampler_get_state(const ctn_sampler *s);
CTN_API CTN_MUST_CHECK ctn_status ctn_sampler_set_state(ctn_sampler *s,
                                                        const ctn_sampler_state *state);

/* ---- loader --------------------------------------------------------------------------------- */

/* Mixup and CutMix. Field 0, float images, is mixed with the same batch in another order, by
 * mixup or by cutmix; if both are set, each batch uses either one with equal probability. Field
 * 1, i64 classes, becomes f32 (N,classes), the share of each class. All random choices depend
 * only on the seed, the epoch and the position of the batch. */
typedef struct {
    size_t struct_size;
    double mixup, cutmix; /* alpha of the beta distribution of the mixing ratio; 0: off */
    int64_t classes;
} ctn_mix_opt;

typedef struct {
    size_t struct_size;
    int64_t batch; /* samples per batch, at least 1; ignored if `total` is given */
    int threads;   /* threads that prepare batches ahead; 0: load in ctn_loader_next itself */
    int depth;     /* batches prepared ahead; 0: one per thread, at least 2 */
    int drop_last; /* leave out the incomplete batch at the end of an epoch, of any rank */
    /* What to do about samples that cannot be read. 0: their batch fails with an error that
     * names the sample. A share, up to 1: leave them out of their batch. A warning names each
     * of the first 10; if there are more, a warning at the end of the epoch gives their number.
     * When more than this share of the rank's samples of an epoch (and more than one) have been
     * left out, batches with such samples fail. Counting restarts with every epoch and with
     * ctn_loader_set_state. */
    double skip;
    /* Seconds after which a warning names the samples that a batch is waiting for; repeated
     * after twice the time and so on. 0: 30. Only with threads. */
    double stall_s;
    const int *cores; /* CPUs that the threads may use; NULL: those of the caller */
    int ncores;
    const ctn_mix_opt *mix; /* copied; NULL: no mixing */
    /* Pad ragged fields to a multiple of this number, so that batches have few different shapes,
     * and hence few plans; 0: to the longest sample of the batch. */
    int64_t pad_multiple;
    /* Value that pads field f; 0 by default. Targets of ctn_softmax_cross_entropy take -100. */
    double pad_value[CTN_DATA_FIELDS];
    /* Samples that all ranks of a sharded sampler together have in a batch; ranks differ by one
     * sample at most. 0: batch times the number of ranks. */
    int64_t total;
    /* Divide `total` into blocks of this many consecutive samples, and deliver one block at a time:
     * each rank gets whole blocks, which are the same for any number of ranks. There must be at
     * least one block for each rank. For steps with the same bits on any number of ranks
     * (ctn_dist_opt.exact). 0: no blocks. */
    int64_t block;
    /* 1: join ragged fields instead of padding each sample, as for graphs of unequal size: the rows
     * of all samples come one after another, and a batch of graphs is one graph without edges
     * between its parts. See ctn_batch. */
    int join;
    /* With join: the field, of i64 or i32, whose numbers are rows of field 0, such as the edges of
     * a graph, (E,2), whose nodes are field 0. In the dataset they count the rows of the sample, in
     * a batch those of the batch. 0: none. */
    int join_index;
    /* Multi-scale training: the images of a batch, field 0, are squares whose side is one of these
     * nsizes numbers, copied. Every size_every batches (0: 10) another one is drawn, which depends
     * only on the seed, the epoch and the position, so it is the same on all ranks and after
     * resuming. Needs ctn_dataset_resizes. NULL: images as in the dataset. */
    const int64_t *sizes;
    int nsizes;
    int64_t size_every;
} ctn_loader_opt;

/* One batch in the loader's memory: data[f] is 64-byte aligned and has the shape
 * field[f].shape, where shape[0] is n. The last batch of an epoch may be smaller, and so may
 * one from which samples were left out. A batch without any samples is skipped. With
 * ctn_loader_opt.sizes, the height and width of images are those of this batch.
 *
 * A ragged field is padded at the end of its samples: shape[1] is the length of the longest
 * sample (but at least 1; samples left out count), rounded up to pad_multiple. After the dataset's
 * own fields comes one field of lengths, i64 (n), for each ragged field, in the same order.
 *
 * With join, a ragged field has the rows of all samples and then padding, at least one row, up to
 * a multiple of pad_multiple: shape[0] is the number of these rows. In place of the lengths comes a
 * field i64 with the number of the sample of each row, which is n for padding: the ids of
 * ctn_segment_sum(x, ids, n + 1). Padding of the field join_index is the last row of field 0, which
 * is padding too. */
typedef struct {
    int64_t n; /* number of samples */
    int fields;
    void *data[CTN_DATA_FIELDS];
    ctn_field field[CTN_DATA_FIELDS];
} ctn_batch;

/* A loader that reads ds in the order of s, starting at the current state of s. ds is borrowed
 * for the lifetime of the loader, s only during this call (it is not advanced). Starts
 * opt->threads threads, which block all signals; allocates nothing afterwards: for ragged fields
 * it asks for all lengths now, and batches have room for the longest. Local. Result: *l, owned,
 * ctn_loader_free. Errors: EARG, ENOMEM, EUNSUPPORTED (cannot start more threads, or none may run
 * on .cores). */
CTN_API CTN_MUST_CHECK ctn_status ctn_loader_new(ctn_loader **l, ctn_dataset *ds,
                                                 const ctn_sampler *s, const ctn_loader_opt *opt);
CTN_API void ctn_loader_free(ctn_loader *l); /* waits for its threads. NULL is allowed. Local. */

/* The next batch, valid until the next call on this loader. Returns CTN_END and an empty *b at
 * the end of an epoch; the call after that starts the next epoch. Call it from one thread at a
 * time. Local. Errors: those of the dataset, with the name of the sample; the batch is lost and
 * the next call returns the one after it. */
CTN_API CTN_MUST_CHECK ctn_status ctn_loader_next(ctn_loader *l, ctn_batch *b);

/* One field of a batch as an input of the open scope, in the shape of the field. The data are
 * borrowed, so the scope must end before the next call on the loader. Local. Result: scope.
 * Errors: EARG, ESTATE. */
CTN_API ctn_tensor *ctn_batch_tensor_at(const char *at, ctn_context *ctx, const ctn_batch *b,
                                        int field);
#define ctn_batch_tensor(...) ctn_batch_tensor_at(CTN_HERE, __VA_ARGS__)

/* Counters of a loader since it was made. */
typedef struct {
    uint64_t batches, samples, skipped; /* batches and samples delivered; samples left out */
    /* Time the caller waited for batches, or filled them (no threads). */
    uint64_t wait_ns;
    uint64_t fill_ns; /* time spent filling batches, summed over all threads */
} ctn_loader_stats;
/* Call it on the thread that calls ctn_loader_next. Local. */
CTN_API void ctn_loader_get_stats(const ctn_loader *l, ctn_loader_stats *out);

/* get_state returns the state at the next batch to be delivered, regardless of how much was
 * loaded ahead. set_state moves the loader to a state and drops what was loaded ahead and the
 * batch delivered last. Local. Errors: EARG. */
CTN_API ctn_sampler_state ctn_loader_get_state(const ctn_loader *l);
CTN_API CTN_MUST_CHECK ctn_status ctn_loader_set_state(ctn_loader *l,
                                                       const ctn_sampler_state *state);

#ifdef __cplusplus
}
#endif
#endif
