/* SPDX-License-Identifier: Apache-2.0
 *
 * Images: decoding, cropping, resizing and augmenting, all of it on the way from the file to the
 * batch. Only what a crop needs is decoded; resize, flip, normalisation and conversion to the
 * wanted type and layout are one pass over the pixels. Random choices depend on (seed, epoch,
 * sample) only.
 */
#ifndef CATENA_IMAGE_H
#define CATENA_IMAGE_H

#include <catena/data.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which part of an image becomes the result of height x width. */
typedef enum {
    CTN_CROP_CENTER = 0, /* the shorter side resized to `resize`, then the middle */
    CTN_CROP_RANDOM,     /* a random part of `scale` of the area and `ratio`, resized */
    CTN_CROP_PAD,        /* resized if needed, zeros around it, a random window (CIFAR) */
    CTN_CROP_WHOLE       /* all of it, resized without regard to its ratio */
} ctn_crop;

/* Zero in a field means its default. */
typedef struct {
    size_t struct_size;
    int64_t height, width; /* 224; of ctn_augment_new: as they come */
    ctn_crop crop;
    int64_t resize;            /* height * 8 / 7; of ctn_augment_new: the shorter side as it is */
    double scale[2], ratio[2]; /* 0.08 to 1, 3/4 to 4/3 */
    int64_t pad;               /* 4 */
    int flip;                  /* half of them mirrored */
    double brightness, contrast, saturation, hue; /* jitter: factors in 1-v to 1+v; hue in turns */
    double mean[3], std[3];                       /* of values in 0 to 1; std 0: 1 */
    int raw;           /* u8 as they are, without mean and std; default: f32 */
    int channels_last; /* of the result in memory */
    int gray;          /* one channel, mean[0] and std[0]; default: three */
} ctn_image_opt;

/* The mean and deviation of ImageNet's pixels, for .mean and .std. */
#define CTN_IMAGENET_MEAN {0.485, 0.456, 0.406}
#define CTN_IMAGENET_STD {0.229, 0.224, 0.225}

/* One JPEG or PNG file in memory to field 0 of a sample, as opt says (3,H,W), turned as its EXIF
 * data tell; s chooses the random parts (NULL: sample 0). Local, thread-safe. Errors: EFORMAT
 * (damaged; the message says how), EUNSUPPORTED (a kind that is not decoded: named), EARG, ENOMEM.
 * */
CTN_API CTN_MUST_CHECK ctn_status ctn_image_decode(const void *file, size_t bytes,
                                                   const ctn_image_opt *opt, const ctn_sample *s,
                                                   void *dst);

/* Samples of a folder that has one folder of JPEG and PNG files per class, classes and files by
 * name. Local. Fields: image (3,H,W), label (a scalar i64). Result: *ds, free it. Errors: EIO,
 * ENOTFOUND (no images), ENOMEM, EUNSUPPORTED (a build without libjpeg-turbo). */
CTN_API CTN_MUST_CHECK ctn_status ctn_image_folder_open(ctn_dataset **ds, const char *dir,
                                                        const ctn_image_opt *opt);

/* The names of classes and files of an image folder in one piece: one rank lists the folders, which
 * costs a parallel file system a lot, and sends the list to the others (ctn_comm_broadcast). As
 * snprintf: returns its size, writes it when n is enough; 0: ds is no image folder. Local. */
CTN_API size_t ctn_image_folder_list(const ctn_dataset *ds, void *buf, size_t n);
/* ctn_image_folder_open with such a list, from another process of the same build: nothing is looked
 * up before a sample is read. The list is copied. Local. Errors: EFORMAT (not a list), ENOMEM,
 * EUNSUPPORTED. */
CTN_API CTN_MUST_CHECK ctn_status ctn_image_folder_open_list(ctn_dataset **ds, const char *dir,
                                                             const void *list, size_t bytes,
                                                             const ctn_image_opt *opt);

typedef struct {
    size_t struct_size;
    const ctn_image_opt *image;
    const char
        *index_dir;    /* where indexes are kept; NULL: beside the shards, else the cache folder */
    const char *stage; /* node-local folder to which shards are copied once; NULL: none */
    /* What ctn_shards_index gave on another rank: nothing is listed, no index is read, and a shard
     * is opened when a sample of it is first read. NULL: none. */
    const void *index;
    size_t index_bytes;
} ctn_shards_opt;
/* Samples of plain tar files in the WebDataset convention: files of one sample share the name up
 * to the first dot: 000017.jpg (or .jpeg, .png), 000017.cls (the class as text). `path` is one tar
 * file, a folder of them, or a pattern with braces: train-{000..146}.tar. Each is indexed once;
 * then samples are read by offset. Local. Fields and errors as ctn_image_folder_open. */
CTN_API CTN_MUST_CHECK ctn_status ctn_shards_open(ctn_dataset **ds, const char *path,
                                                  const ctn_shards_opt *opt);

/* Names of the shards, their indexes and classes in one piece, for ctn_shards_opt.index of another
 * process of the same build. As snprintf: returns its size, writes it when n is enough; 0: ds has
 * no shards. Local. */
CTN_API size_t ctn_shards_index(const ctn_dataset *ds, void *buf, size_t n);

typedef struct {
    size_t struct_size;
    int64_t shard_bytes; /* a new shard begins beyond; 0: 1 GB */
    uint64_t seed;       /* samples are shuffled over the shards once */
    int keep_order;      /* they are not */
    void (*progress)(void *user, int64_t done, int64_t all); /* NULL: none */
    void *user;
} ctn_pack_opt;
/* Write an image folder as shards out/shard-000000.tar, ... with their indexes, and at last
 * out/classes.txt. Files are taken as they are, named by number. A folder that has shards is
 * refused (EIO). Local. Result: *samples, may be NULL. Errors: EIO, ENOTFOUND, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_pack(const char *dir, const char *out, int64_t *samples,
                                           const ctn_pack_opt *opt);

/* Augment images that are decoded already: field 0 of base must be u8 (C,H,W) (ctn_cifar10_open
 * with .raw). base goes over to *ds, and stays the caller's if this fails. Local. Errors: EARG,
 * ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_augment_new(ctn_dataset **ds, ctn_dataset *base,
                                                  const ctn_image_opt *opt);

#ifdef __cplusplus
}
#endif
#endif
