/* SPDX-License-Identifier: Apache-2.0
 *
 * Image sizes that change from batch to batch (ctn_loader_opt.sizes). The batches of an epoch are
 * divided into groups, and each group has one size. Batches are counted by their position over all
 * ranks, so every rank draws the same size, also after a training was resumed.
 */
#include "data/image/image.h"
#include "data/loader.h"

/* Keeps these random numbers independent of others drawn from the same seed. */
#define SIZE_STREAM UINT64_C(0x696d616765736978)

ctn_status ctn__sizes_set(ctn_loader *l, const ctn_loader_opt *o)
{
    const ctn_field *image = ctn_dataset_field(l->ds, 0);
    if (o->nsizes < 0 || (o->nsizes > 0 && !o->sizes) || o->size_every < 0)
        return ctn_fail(CTN_EARG, "loader: nsizes is %d, sizes is %s and size_every is %lld",
                        o->nsizes, o->sizes ? "set" : "NULL", (long long)o->size_every);
    if (o->nsizes == 0) return CTN_OK;
    if (!ctn_dataset_resizes(l->ds) || image->ndim != 3)
        return ctn_fail(CTN_EARG, "loader: sizes are given, but the dataset cannot change the size "
                                  "of its images");
    for (int i = 0; i < o->nsizes; i++) {
        if (o->sizes[i] < 1 || o->sizes[i] > CTN__IMAGE_MAX_SIDE)
            return ctn_fail(CTN_EARG, "loader: an image size is %lld, expected 1 to %d",
                            (long long)o->sizes[i], CTN__IMAGE_MAX_SIDE);
        if (o->sizes[i] > l->largest) l->largest = o->sizes[i];
    }
    l->sizes = ctn__malloc((size_t)o->nsizes * sizeof *l->sizes);
    if (!l->sizes) return CTN_ENOMEM;
    memcpy(l->sizes, o->sizes, (size_t)o->nsizes * sizeof *l->sizes);
    l->nsizes = o->nsizes;
    l->size_every = o->size_every > 0 ? o->size_every : 10;
    return CTN_OK;
}

bool ctn__sized(const ctn_loader *l, int f)
{
    const ctn_field *image = ctn_dataset_field(l->ds, 0), *one = ctn_dataset_field(l->ds, f);
    if (l->nsizes == 0 || !one) return false;
    return f == 0 ||
           (one->ndim == 2 && one->shape[0] == image->shape[1] && one->shape[1] == image->shape[2]);
}

void ctn__sizes_apply(ctn_field *f, int64_t size)
{
    f->shape[f->ndim - 2] = f->shape[f->ndim - 1] = size;
}

int64_t ctn__sizes_draw(const ctn_loader *l, uint64_t epoch, uint64_t position)
{
    if (l->nsizes == 0) return 0;
    const uint64_t group = position / (uint64_t)l->step / (uint64_t)l->size_every;
    const uint64_t key = ctn__mix(ctn__mix(l->sampler.state.seed, SIZE_STREAM), epoch);
    return l->sizes[(int)(ctn__uniform(key, group, 0) * (double)l->nsizes)];
}
