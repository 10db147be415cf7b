/* SPDX-License-Identifier: Apache-2.0
 *
 * Input data: datasets (a table of functions), samplers (which sample comes next) and loaders
 * (threads that fill batches ahead). Everything here is bytes and plain arrays; a graph-level call
 * turns a batch into tensors.
 *
 * Contract: which samples are in batch k of epoch e is a pure function of the sampler's seed; the
 * number of loader threads never changes it.
 */
#ifndef CATENA_DATA_H
#define CATENA_DATA_H

#include <catena/base.h>
#include <catena/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CTN_DATA_FIELDS 4 /* most fields of a sample: image, label, ... */

typedef struct ctn_dataset ctn_dataset;
typedef struct ctn_sampler ctn_sampler;
typedef struct ctn_loader ctn_loader;

/* Type and shape of one field, row-major unless channels_last. Of a sample it has no batch
 * dimension (a scalar has ndim 0) and at most CTN_MAX_DIMS - 1; of a batch shape[0] is the number
 * of samples. */
typedef struct {
    ctn_dtype dtype;
    int ndim;
    int64_t shape[CTN_MAX_DIMS];
    int channels_last; /* memory of a sample (C,H,W) is (H,W,C); shape stays (C,H,W) */
} ctn_field;

/* Which sample, and in which epoch of which shuffle: all that a dataset may draw its random choices
 * from, so that any number of threads and ranks gives the same pixels. */
typedef struct {
    int64_t index;
    uint64_t seed, epoch;
} ctn_sample;

/* ---- datasets -------------------------------------------------------------------------------- */

/* What a dataset must do. count, fields and field are asked once, in ctn_dataset_new. get is
 * called from several threads at once and writes sample s->index (0 <= index < count) to
 * field_dst[0 .. fields-1]; these are aligned to their dtype, not more. It reports errors with
 * ctn_fail: a sample that is damaged or refused as EFORMAT or EUNSUPPORTED, one that cannot be read
 * as EIO. The others may be NULL: free; name writes what a user knows the sample by (a path), as
 * snprintf; class_name gives the name of label k, NULL beyond the last, borrowed from the dataset.
 * Set struct_size to sizeof(ctn_dataset_vt). */
typedef struct {
    size_t struct_size;
    int64_t (*count)(void *self);
    int (*fields)(void *self);
    void (*field)(void *self, int f, ctn_field *out);
    ctn_status (*get)(void *self, const ctn_sample *s, void *const *field_dst);
    void (*free)(void *self);
    int (*name)(void *self, int64_t index, char *buf, size_t n);
    const char *(*class_name)(void *self, int64_t k);
} ctn_dataset_vt;

/* A dataset over the caller's functions. Local. vt is copied; self goes over to the dataset, and
 * stays the caller's if this fails. Result: *ds, free it. Errors: EARG, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dataset_new(ctn_dataset **ds, const ctn_dataset_vt *vt,
                                                  void *self);

/* Calls the table's free. Local. NULL is fine. No loader of it may be alive. */
CTN_API void ctn_dataset_free(ctn_dataset *ds);

/* Samples, fields per sample, and one field's type and shape (NULL when there is no field f).
 * Local. Result: borrowed from ds. */
CTN_API int64_t ctn_dataset_count(const ctn_dataset *ds);
CTN_API int ctn_dataset_fields(const ctn_dataset *ds);
CTN_API const ctn_field *ctn_dataset_field(const ctn_dataset *ds, int f);

/* Write one sample to dst[0 .. fields-1]; get is sample with seed and epoch 0. Local, thread-safe.
 * Errors: EARG, the dataset's own. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dataset_sample(const ctn_dataset *ds, const ctn_sample *s,
                                                     void *const *dst);
CTN_API CTN_MUST_CHECK ctn_status ctn_dataset_get(const ctn_dataset *ds, int64_t index,
                                                  void *const *dst);
/* What sample `index` is known by, "sample 17" when the dataset has no names; as snprintf. Local.
 * */
CTN_API int ctn_dataset_name(const ctn_dataset *ds, int64_t index, char *buf, size_t n);
/* The name of class k; NULL: there is none, or the classes have no names. Local. Result: borrowed.
 * */
CTN_API const char *ctn_dataset_class(const ctn_dataset *ds, int64_t k);
/* How many classes have names: 0 for data without. Local. */
CTN_API int64_t ctn_dataset_classes(const ctn_dataset *ds);

/* Samples in memory: sample i of field f is at data[f] + i * (bytes of one). Local. The arrays are
 * borrowed until the dataset is freed, the descriptions copied. Errors: EARG, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_arrays_open(ctn_dataset **ds, int64_t count, int fields,
                                                  const ctn_field *field, const void *const *data);

typedef struct {
    size_t struct_size;
    int raw;    /* images as stored, u8; default: f32, divided by 255 */
    int shaped; /* images as (1,H,W); default: (H*W) */
} ctn_idx_opt;

/* Images (N,H,W) u8 and labels (N) u8 in idx files, plain or gzip; held in memory. Local.
 * Fields: image, label (a scalar i64); labels_path NULL: images only. Result: *ds, free it.
 * Errors: EIO, EFORMAT, EUNSUPPORTED (gzip in a build without zlib), ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_idx_open(ctn_dataset **ds, const char *images_path,
                                               const char *labels_path, const ctn_idx_opt *opt);

typedef enum { CTN_TRAIN = 1, CTN_TEST = 2 } ctn_split;

/* MNIST and its kin from folder dir under their usual names (train-images-idx3-ubyte, ...), with or
 * without .gz: f32 (784) and i64. Local. Result: *ds, free it. Errors: as ctn_idx_open. */
CTN_API CTN_MUST_CHECK ctn_status ctn_mnist_open(ctn_dataset **ds, const char *dir,
                                                 ctn_split split);

typedef struct {
    size_t struct_size;
    int raw;                /* images as stored, u8; default: f32, (pixel / 255 - mean) / std */
    double mean[3], std[3]; /* of red, green, blue; std 0: 1 */
} ctn_cifar_opt;

/* CIFAR-10, binary version, from folder dir: data_batch_1.bin to _5.bin, or test_batch.bin; held in
 * memory. Local. Fields: image (3,32,32), label (a scalar i64). Result: *ds, free it. Errors: EIO,
 * EFORMAT, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_cifar10_open(ctn_dataset **ds, const char *dir,
                                                   ctn_split split, const ctn_cifar_opt *opt);

/* ---- samplers -------------------------------------------------------------------------------- */

/* Everything a sampler remembers: what to save to go on at the same sample. position counts the
 * samples of this epoch that are already delivered, on all ranks together: the state of one rank is
 * that of all, and also serves another number of ranks. */
typedef struct {
    uint64_t seed, epoch, position;
} ctn_sampler_state;

/* Orders over `count` samples: 0, 1, 2, ..., or another permutation in every epoch. A sampler
 * holds a few integers however large count is. Local. Result: *s, free it. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_sampler_sequential(ctn_sampler **s, int64_t count);
CTN_API CTN_MUST_CHECK ctn_status ctn_sampler_shuffled(ctn_sampler **s, int64_t count,
                                                       uint64_t seed);
/* As many draws per epoch as there are samples, with replacement, sample i with probability
 * weight[i] / sum; holds 16 bytes per sample. Weights are not kept. Errors: EARG (negative, not
 * finite, all 0), ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_sampler_weighted(ctn_sampler **s, int64_t count,
                                                       const double *weight, uint64_t seed);
CTN_API void ctn_sampler_free(ctn_sampler *s); /* NULL is fine */

/* Keep part `rank` of `size` of the order: of what comes after the state's position, the samples
 * rank, rank + size, ... Over all ranks each position comes exactly once, and batch k of all ranks
 * together is batch k of one rank with size times the batch. Parts differ by at most one sample, and
 * are empty with more ranks than samples. Before a loader is made; again: instead of the part
 * before. Local. Errors: EARG (no such part). */
CTN_API CTN_MUST_CHECK ctn_status ctn_sampler_shard(ctn_sampler *s, int rank, int size);
/* Positions of an epoch: of this rank's part, and of all parts together. Local. */
CTN_API int64_t ctn_sampler_count(const ctn_sampler *s);
CTN_API int64_t ctn_sampler_total(const ctn_sampler *s);

/* The sample at a position (0 <= position < ctn_sampler_count) of an epoch. Local, pure: neither
 * reads nor moves the sampler's own epoch and position. -1 when position is out of range. */
CTN_API int64_t ctn_sampler_at(const ctn_sampler *s, uint64_t epoch, uint64_t position);

/* Where a new loader starts. Local. Errors: EARG (position beyond count). */
CTN_API ctn_sampler_state ctn_sampler_state_get(const ctn_sampler *s);
CTN_API CTN_MUST_CHECK ctn_status ctn_sampler_state_set(ctn_sampler *s,
                                                        const ctn_sampler_state *state);

/* ---- loader ---------------------------------------------------------------------------------- */

/* Batches mixed with themselves in another order: field 0, images in float, by mixup or cutmix (a
 * fair coin when both are set); field 1, classes i64, becomes f32 (N,classes), parts of each. The
 * choice depends on seed, epoch and position of the batch only. */
typedef struct {
    size_t struct_size;
    double mixup, cutmix; /* alpha of the beta distribution of the part; 0: off */
    int64_t classes;
} ctn_mix_opt;

typedef struct {
    size_t struct_size;
    int64_t batch; /* samples per batch, at least 1 */
    int threads;   /* that fill batches ahead; 0: load in ctn_loader_next itself */
    int depth;     /* batches kept ready ahead; 0: one per thread, at least 2 */
    int drop_last; /* leave out the smaller batch at the end of an epoch, of any rank */
    /* Samples that cannot be had. 0: their batch fails, naming the sample. A share up to 1: they are
     * left out of their batch and counted; the first 10 are named by a warning, the others counted
     * by one at the epoch's end. When they are more than this share of the rank's samples of an
     * epoch, and more than one, a batch with such samples fails. Counting starts anew with every
     * epoch and with ctn_loader_state_set. */
    double skip;
    /* Warn, naming the samples being read, when a batch is waited for so long, then after twice the
     * time and so on; 0: 30. With threads only. */
    double stall_s;
    const int *cores; /* CPUs the threads may run on; NULL: as the caller's */
    int ncores;
    const ctn_mix_opt *mix; /* copied; NULL: none */
} ctn_loader_opt;

/* One batch, the loader's memory: data[f] is 64-byte aligned and has field[f].shape, of which
 * shape[0] is n. The last batch of an epoch may be smaller, and one from which samples were left
 * out; a batch without any is passed over. */
typedef struct {
    int64_t n; /* samples */
    int fields;
    void *data[CTN_DATA_FIELDS];
    ctn_field field[CTN_DATA_FIELDS];
} ctn_batch;

/* A loader of ds in the order of s, from the state s has now. Local. ds is borrowed for the
 * loader's life, s only during this call (it is not moved). Starts opt->threads threads that
 * take no signals; allocates nothing afterwards. Result: *l, free it. Errors: EARG, ENOMEM,
 * EUNSUPPORTED (no more threads, or none may run on .cores). */
CTN_API CTN_MUST_CHECK ctn_status ctn_loader_new(ctn_loader **l, ctn_dataset *ds,
                                                 const ctn_sampler *s, const ctn_loader_opt *opt);
CTN_API void ctn_loader_free(ctn_loader *l); /* waits for its threads; NULL is fine */

/* The next batch, valid until the next call on this loader. CTN_END at the end of the epoch, *b
 * is then empty; the call after it starts the next epoch. Local, one thread at a time. Errors:
 * those of the dataset, with the sample named; the batch is lost and the next call goes on
 * behind it. A batch from which samples were left out is smaller. */
CTN_API CTN_MUST_CHECK ctn_status ctn_loader_next(ctn_loader *l, ctn_batch *b);

/* One field of a batch as an input of the open scope, shaped as the field: borrowed, so the scope
 * must end before the next call on the loader. Local. Result: scope. Errors: EARG, ESTATE. */
CTN_API ctn_tensor *ctn_batch_tensor_at(const char *at, ctn_context *ctx, const ctn_batch *b,
                                        int field);
#define ctn_batch_tensor(...) ctn_batch_tensor_at(CTN_HERE, __VA_ARGS__)

/* What a loader did so far. */
typedef struct {
    uint64_t batches, samples, skipped; /* delivered; left out */
    uint64_t wait_ns;                   /* the caller waited for batches; without threads: filled */
    uint64_t fill_ns;                   /* spent filling, by all threads together */
} ctn_loader_stats;
/* Local, on the thread that calls ctn_loader_next. */
CTN_API void ctn_loader_stats_get(const ctn_loader *l, ctn_loader_stats *out);

/* State at the next batch to be delivered, whatever was loaded ahead; and going there, which
 * drops what was loaded ahead and the batch delivered last. Local. Errors: EARG. */
CTN_API ctn_sampler_state ctn_loader_state_get(const ctn_loader *l);
CTN_API CTN_MUST_CHECK ctn_status ctn_loader_state_set(ctn_loader *l,
                                                       const ctn_sampler_state *state);

#ifdef __cplusplus
}
#endif
#endif
