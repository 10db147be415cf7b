/* SPDX-License-Identifier: Apache-2.0
 *
 * The cropped digits of SVHN. In its files, X (32,32,3,N) has the images with rows first, and y
 * (N,1) the digits, where 10 stands for 0. mat.c reads them.
 */
#include "data/source.h"

/* Column-major (32,32,3) to row-major (3,32,32): exchanges rows and columns of each plane. */
static void turn_planes(uint8_t *p, int64_t planes)
{
    enum { SIDE = CTN__SMALL_SIDE };
    for (int64_t k = 0; k < planes; k++, p += SIDE * SIDE)
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < y; x++) {
                const uint8_t t = p[y * SIDE + x];
                p[y * SIDE + x] = p[x * SIDE + y];
                p[x * SIDE + y] = t;
            }
}

static ctn_status check(const char *path, const ctn__mat_array *x, const ctn__mat_array *y)
{
    const int64_t *d = x->dim, side = CTN__SMALL_SIDE, n = d[3];
    if (x->ndim != 4 || d[0] != side || d[1] != side || d[2] != 3 || n < 1)
        return ctn_fail(CTN_EFORMAT, "svhn: %s: X is not (32,32,3,N)", path);
    if (y->ndim != 2 || y->dim[0] * y->dim[1] != n)
        return ctn_fail(CTN_EFORMAT, "svhn: %s: X has %lld images, but y has %lld digits", path,
                        (long long)n, (long long)(y->ndim == 2 ? y->dim[0] * y->dim[1] : 0));
    for (int64_t i = 0; i < n; i++) {
        if (y->data[i] < 1 || y->data[i] > 10)
            return ctn_fail(CTN_EFORMAT, "svhn: %s: image %lld has label %d, expected 1 to 10",
                            path, (long long)i, y->data[i]);
    }
    return CTN_OK;
}

ctn_status ctn_svhn_open(ctn_dataset **ds, const char *dir, ctn_split split,
                         const ctn_cifar_opt *opt)
{
    ctn_cifar_opt o;
    if (!ds || !dir) return ctn_fail(CTN_EARG, "svhn: NULL argument");
    *ds = NULL;
    CTN_TRY(ctn__small_opt("svhn", split, &o, opt));
    ctn_status st = CTN_OK;
    ctn__mat_array a[2] = {{.name = "X"}, {.name = "y"}};
    ctn__text path = {0};
    ctn__text_add(&path, "%s/%s_32x32.mat", dir, split == CTN_TRAIN ? "train" : "test");
    if (path.failed) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    CTN_TRY_GOTO(st, done, ctn__mat_read(path.s, 2, a));
    CTN_TRY_GOTO(st, done, check(path.s, &a[0], &a[1]));
    const int64_t n = a[0].dim[3];
    turn_planes(a[0].data, 3 * n);
    for (int64_t i = 0; i < n; i++) a[1].data[i] = a[1].data[i] % 10;
    const ctn__small_images x = {.count = n,
                                 .label = a[1].data,
                                 .pixels = a[0].data,
                                 .label_step = 1,
                                 .pixel_step = CTN__SMALL_PIXELS,
                                 .memory = {a[0].data, a[1].data},
                                 .opt = o};
    CTN_TRY_GOTO(st, done, ctn__small_new(ds, &x));
    a[0].data = a[1].data = NULL; /* owned by the dataset */
done:
    ctn__free(a[0].data);
    ctn__free(a[1].data);
    ctn__text_free(&path);
    return st;
}
