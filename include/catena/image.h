/* SPDX-License-Identifier: Apache-2.0
 *
 * Image datasets: decoding, cropping, resizing and augmentation while a batch is loaded. Only
 * the pixels that a crop needs are decoded. Resizing, flipping, normalisation and conversion to
 * the requested type and layout are one pass over the pixels. Random choices depend only on
 * (seed, epoch, sample).
 */
#ifndef CATENA_IMAGE_H
#define CATENA_IMAGE_H

#include <catena/data.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How an image is turned into one of height x width. */
typedef enum {
    CTN_CROP_CENTER = 0, /* resize the shorter side to `resize`, then crop the centre */
    /* Crop a random part with an area in `scale` and a ratio in `ratio`, then resize it. */
    CTN_CROP_RANDOM,
    CTN_CROP_PAD,  /* resize if needed, pad with zeros, crop a random window (as for CIFAR) */
    CTN_CROP_WHOLE /* resize the whole image without keeping its aspect ratio */
} ctn_crop;

/* Zero in a field means its default. */
typedef struct {
    size_t struct_size;
    int64_t height, width; /* 0: 224; with ctn_augment_new, the size of the input */
    ctn_crop crop;
    /* 0: height * 8 / 7; with ctn_augment_new, the shorter side is kept. */
    int64_t resize;
    double scale[2], ratio[2]; /* range of area and aspect ratio; 0: 0.08 to 1 and 3/4 to 4/3 */
    int64_t pad;               /* pixels on each side; 0: 4 */
    int flip;                  /* 1: mirror half of the images */
    /* Colour jitter by random factors in 1-v to 1+v; hue is shifted by up to v of a full turn. */
    double brightness, contrast, saturation, hue;
    double mean[3], std[3]; /* for pixel values in 0 to 1; std 0: 1 */
    int raw;                /* 1: u8 pixels, without mean and std; 0: f32 */
    int channels_last;      /* memory layout of the result */
    int gray;               /* 1: one channel with mean[0] and std[0]; 0: three channels */
    /* RandAugment: this many random operations per image, each of strength magnitude, 0 to 30 (0:
     * 9). Operations: none, brightness, contrast, saturation, sharpness, posterize, solarize,
     * automatic contrast, equalize, rotate, and shear and translate along x or y. */
    int randaugment;
    double magnitude;
} ctn_image_opt;

/* Mean and standard deviation of ImageNet's pixels, for .mean and .std. */
#define CTN_IMAGENET_MEAN {0.485, 0.456, 0.406}
#define CTN_IMAGENET_STD {0.229, 0.224, 0.225}

/* Decode a JPEG or PNG file in memory to field 0 of a sample (3,H,W), as opt says, rotated
 * according to its EXIF data. s determines the random choices and, if s->size is set, the size (s
 * NULL: sample 0). Local, thread-safe. Errors: EFORMAT (the file is damaged; the message says how),
 * EUNSUPPORTED (a format that cannot be decoded; the message names it), EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_image_decode(const void *file, size_t bytes,
                                                   const ctn_image_opt *opt, const ctn_sample *s,
                                                   void *dst);

/* A folder with one subfolder of JPEG and PNG files per class; classes and files are sorted by
 * name. Fields: image (3,H,W), label (a scalar i64). Local. Result: *ds, owned,
 * ctn_dataset_free. Errors: EIO, ENOTFOUND (no images), ENOMEM, EUNSUPPORTED (a build without
 * libjpeg-turbo). */
CTN_API CTN_MUST_CHECK ctn_status ctn_image_folder_open(ctn_dataset **ds, const char *dir,
                                                        const ctn_image_opt *opt);

/* The names of all classes and files of an image folder as one block of bytes. Listing folders
 * is expensive on a parallel file system, so one rank lists them and sends the block to the
 * other ranks (ctn_comm_broadcast). Returns the size of the block, and writes it if n is large
 * enough; 0 if ds is not an image folder. Local. */
CTN_API size_t ctn_image_folder_list(const ctn_dataset *ds, void *buf, size_t n);
/* ctn_image_folder_open with such a list, which must come from a process of the same build. No
 * file is looked up before a sample is read. The list is copied. Local. Result: *ds, owned,
 * ctn_dataset_free. Errors: EFORMAT (not a list), ENOMEM, EUNSUPPORTED. */
CTN_API CTN_MUST_CHECK ctn_status ctn_image_folder_open_list(ctn_dataset **ds, const char *dir,
                                                             const void *list, size_t bytes,
                                                             const ctn_image_opt *opt);

/* Images named in a text file, one per line: a path, and a class number after a space or tab. The
 * path is relative to the folder `root` (NULL: the folder of the list). Either all lines have a
 * class or none has; empty lines are skipped. Fields: image (3,H,W), label (a scalar i64), or the
 * image only. Local. Result: *ds, owned, ctn_dataset_free. Errors: EIO, EFORMAT (the message names
 * the line), ENOTFOUND (no images), EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_image_list_open(ctn_dataset **ds, const char *list,
                                                      const char *root, const ctn_image_opt *opt);

typedef struct {
    size_t struct_size;
    const ctn_image_opt *image;
    int64_t ignore; /* value of pixels without a class; 0: 255, -1: none */
} ctn_segmentation_opt;
/* Images with a class for each pixel. `path` is a folder with the folders images and masks, where
 * a mask has the name of its image and the ending .png, or a text file with two paths per line,
 * image and mask, separated by a tab or, if there is none, by a space. They are relative to the
 * folder of the list. A mask is a PNG file of the size of its image whose gray levels or palette
 * indices are the classes. Image and mask are cropped, scaled and mirrored alike; the mask takes
 * the nearest pixel. Fields: image (3,H,W), classes i64 (H,W); -100, which losses and metrics
 * ignore, where there is no class or no image. If the folder has a file classes.txt, its lines are
 * the names of the classes. Local. Result: *ds, owned, ctn_dataset_free. Errors: EIO, EFORMAT,
 * ENOTFOUND (no images), EARG, ENOMEM. A missing mask is an error (EIO) when its sample is read. */
CTN_API CTN_MUST_CHECK ctn_status ctn_segmentation_open(ctn_dataset **ds, const char *path,
                                                        const ctn_segmentation_opt *opt);

typedef struct {
    size_t struct_size;
    const ctn_image_opt *image;
    /* Folder of the index files. NULL: next to the shards, or in the cache folder if that
     * fails. */
    const char *index_dir;
    const char *stage; /* node-local folder to which shards are copied once; NULL: no copy */
    /* The result of ctn_shards_index on another rank. With it, nothing is listed, no index is
     * read, and a shard is opened when its first sample is read. NULL: none. */
    const void *index;
    size_t index_bytes;
} ctn_shards_opt;
/* Samples from plain tar files in the WebDataset convention, where the files of one sample
 * share their name up to the first dot: 000017.jpg (or .jpeg, .png) and 000017.cls (the class
 * as text). `path` is one tar file, a folder of them, or a pattern with braces:
 * train-{000..146}.tar. Each shard is indexed once; afterwards samples are read by offset.
 * Fields: as ctn_image_folder_open. Local. Result: *ds, owned, ctn_dataset_free. Errors: as
 * ctn_image_folder_open. */
CTN_API CTN_MUST_CHECK ctn_status ctn_shards_open(ctn_dataset **ds, const char *path,
                                                  const ctn_shards_opt *opt);

/* The names of the shards, their indexes and the classes as one block of bytes, for
 * ctn_shards_opt.index in another process of the same build. Returns the size of the block, and
 * writes it if n is large enough; 0 if ds has no shards. Local. */
CTN_API size_t ctn_shards_index(const ctn_dataset *ds, void *buf, size_t n);

typedef struct {
    size_t struct_size;
    int64_t shard_bytes; /* size at which a new shard is started; 0: 1 GB */
    uint64_t seed;       /* seed of the shuffle that spreads the samples over the shards */
    int keep_order;      /* 1: do not shuffle */
    /* Called with the number of samples done and in all; may be NULL. */
    void (*progress)(void *user, int64_t done, int64_t all);
    void *user;
} ctn_pack_opt;
/* Write an image folder as shards out/shard-000000.tar, ... with their indexes, and finally
 * out/classes.txt. Files are copied unchanged and named by number; a link must lead to a JPEG or
 * PNG file. Fails (EIO) if `out` already contains shards. Local. Result: *samples, the number of
 * samples; samples may be NULL. Errors: EIO, ENOTFOUND, EFORMAT or EUNSUPPORTED (a link to another
 * file), ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_shards_pack(const char *dir, const char *out,
                                                  int64_t *samples, const ctn_pack_opt *opt);

/* Augment images that are already decoded: field 0 of base must be u8 (C,H,W), as from
 * ctn_cifar10_open with .raw. Other fields stay as they are. Image sizes can change from batch to
 * batch (ctn_loader_opt.sizes) unless one of them has the shape (H,W) of the result. On success
 * *ds owns base; on failure the caller keeps ownership. Local. Result: *ds, owned,
 * ctn_dataset_free. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_augment_new(ctn_dataset **ds, ctn_dataset *base,
                                                  const ctn_image_opt *opt);

#ifdef __cplusplus
}
#endif
#endif
