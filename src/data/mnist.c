/* SPDX-License-Identifier: Apache-2.0
 *
 * MNIST and the datasets that use its file names: finds the files in a folder, with or without .gz.
 * idx.c reads them.
 */
#include <unistd.h>

#include "data/data.h"

/* dir/name if it exists, else dir/name.gz. */
static ctn_status find(ctn__text *path, const char *dir, const char *name)
{
    ctn__text_add(path, "%s/%s", dir, name);
    if (path->failed) return CTN_ENOMEM;
    if (access(path->s, F_OK) == 0) return CTN_OK;
    ctn__text_add(path, ".gz");
    if (path->failed) return CTN_ENOMEM;
    if (access(path->s, F_OK) == 0) return CTN_OK;
    return ctn_fail(CTN_EIO, "mnist: found neither %s nor %s.gz in %s", name, name, dir);
}

ctn_status ctn_mnist_open(ctn_dataset **ds, const char *dir, ctn_split split)
{
    if (!ds || !dir) return ctn_fail(CTN_EARG, "mnist: NULL argument");
    *ds = NULL;
    if (split != CTN_TRAIN && split != CTN_TEST)
        return ctn_fail(CTN_EARG, "mnist: split is %d, expected CTN_TRAIN or CTN_TEST", (int)split);
    const bool train = split == CTN_TRAIN;
    ctn_status st = CTN_OK;
    ctn__text images = {0}, labels = {0};
    CTN_TRY_GOTO(st, done,
                 find(&images, dir, train ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte"));
    CTN_TRY_GOTO(st, done,
                 find(&labels, dir, train ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte"));
    CTN_TRY_GOTO(st, done, ctn_idx_open(ds, images.s, labels.s, NULL));
done:
    ctn__text_free(&images);
    ctn__text_free(&labels);
    return st;
}
