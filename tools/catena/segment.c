/* SPDX-License-Identifier: Apache-2.0
 *
 * Segmentation: the network has a score for each class and pixel. The intersection over union of a
 * class is the number of pixels that are of this class and predicted so, divided by the number of
 * pixels that are or are predicted. Its mean over the classes is a metric of the library; eval also
 * has the value of each class.
 */
#include <stdio.h>
#include <stdlib.h>

#include <catena/dist.h>
#include <catena/ops.h>

#include "infer.h"
#include "segment.h"

ctn_tensor *channels_last(ctn_tensor *y)
{
    int64_t axes[CTN_MAX_DIMS] = {0};
    const int n = ctn_ndim(y);
    for (int i = 1; i < n - 1; i++) axes[i] = i + 1;
    if (n > 1) axes[n - 1] = 1;
    return ctn_transpose(y, n, axes);
}

/* The class with the largest score at pixel i of `area`. */
static int64_t best_class(const float *y, int64_t classes, int64_t area, int64_t i)
{
    int64_t best = 0;
    for (int64_t k = 1; k < classes; k++)
        if (y[k * area + i] > y[best * area + i]) best = k;
    return best;
}

enum { CLASSES_MOST = 4096 }; /* weights of a few kilobytes may have any number */

typedef struct {
    int64_t classes;
    double *count, *weight; /* (classes, classes): actual, predicted */
} confusion;

static ctn_status add_pixels(void *user, const ctn_batch *b, const float *y, int64_t per,
                             int64_t first)
{
    confusion *c = user;
    const int64_t area = per / c->classes;
    const int64_t *t = b->data[1];
    (void)first;
    for (int64_t i = 0; i < b->n * area; i++)
        if (t[i] >= 0 && t[i] < c->classes)
            c->count[t[i] * c->classes +
                     best_class(y + i / area * per, c->classes, area, i % area)]++;
    return CTN_OK;
}

/* NaN: the class neither occurs nor is predicted. */
static double iou_of(const confusion *c, int64_t k)
{
    double either = -c->count[k * c->classes + k];
    for (int64_t j = 0; j < c->classes; j++)
        either += c->count[k * c->classes + j] + c->count[j * c->classes + k];
    return c->count[k * c->classes + k] / either;
}

ctn_status exact_iou(task *t, double *mean, double *each)
{
    const int64_t n = t->classes;
    ctn_comm *comm = t->a->job->comm;
    ctn_status st = CTN_OK;
    double sum = 0, occurring = 0;
    confusion c = {.classes = n};
    if (n > CLASSES_MOST)
        return ctn_fail(CTN_EUNSUPPORTED,
                        "the intersection over union of %lld classes, at most %d are possible",
                        (long long)n, CLASSES_MOST);
    c.count = calloc((size_t)(n * n), sizeof *c.count);
    c.weight = calloc((size_t)(n * n), sizeof *c.weight);
    if (!c.count || !c.weight)
        CTN_TRY_GOTO(st, done, ctn_fail(CTN_ENOMEM, "no memory for %lld classes", (long long)n));
    CTN_TRY_GOTO(st, done, infer(t, n * field_elements(&t->target), add_pixels, &c));
    /* Means over ranks have the same ratios as the sums. */
    for (int64_t i = 0; i < n * n; i++) c.weight[i] = 1;
    if (comm) CTN_TRY_GOTO(st, done, ctn_dist_mean(comm, (int)(n * n), c.count, c.weight));
    for (int64_t k = 0; k < n; k++) {
        each[k] = iou_of(&c, k);
        if (each[k] >= 0) sum += each[k], occurring++;
    }
    *mean = occurring > 0 ? sum / occurring : 0;
done:
    free(c.count);
    free(c.weight);
    return st;
}

typedef struct {
    int64_t classes;
    uint8_t *all; /* (samples, area) */
} masks;

static ctn_status take_masks(void *user, const ctn_batch *b, const float *y, int64_t per,
                             int64_t first)
{
    masks *m = user;
    const int64_t area = per / m->classes;
    for (int64_t i = 0; i < b->n * area; i++)
        m->all[first * area + i] =
            (uint8_t)best_class(y + i / area * per, m->classes, area, i % area);
    return CTN_OK;
}

ctn_status predict_masks(task *t, const char *out)
{
    const int64_t count = ctn_dataset_count(t->set[0]);
    ctn_field field = {.dtype = CTN_U8, .ndim = t->input.ndim - 1};
    if (!ends_with(out, ".npy") || t->classes > UINT8_MAX + 1) {
        t->now = DOING_SETUP;
        return ctn_fail(CTN_EARG,
                        "masks of at most 256 classes are written as .npy: use --out masks.npy");
    }
    for (int i = 0; i < field.ndim; i++) field.shape[i] = t->input.shape[i + 1];
    const int64_t area = field_elements(&field);
    masks m = {.classes = t->classes, .all = room_for(count, area, 1)};
    if (!m.all) return ctn_fail(CTN_ENOMEM, "no memory for %lld masks", (long long)count);
    ctn_status st = infer(t, t->classes * area, take_masks, &m);
    if (st == CTN_OK) st = ctn_npy_save(out, count, &field, m.all);
    free(m.all);
    return st;
}
