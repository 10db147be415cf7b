/* SPDX-License-Identifier: Apache-2.0
 *
 * The random choices of augmentation (which part of a picture, mirrored or not), and a dataset that
 * augments images that are already decoded. Colours are in jitter.c.
 *
 * Invariant: every choice is drawn from the (seed, epoch, index) of the sample with a number of its
 * own, so it depends neither on threads nor on which other augmentations are enabled.
 */
#include <math.h>

#include "data/data.h"
#include "data/image/image.h"

/* Keeps these random numbers independent of others drawn from the same seed. */
#define IMAGE_STREAM UINT64_C(0x696d616765732121)

enum { CROP_TRIES = 10 };

double ctn__draw(const ctn_sample *s, uint64_t which)
{
    uint64_t key = ctn__mix(ctn__mix(s->seed, IMAGE_STREAM), s->epoch);
    return ctn__uniform(key, (uint64_t)s->index, which);
}

/* ---- which part ------------------------------------------------------------------------------ */

static int64_t at_least_1(double v)
{
    return v < 1 ? 1 : (int64_t)nearbyint(v);
}

/* Like torchvision's RandomResizedCrop: ten tries for a part with a random share of the area and a
 * random aspect ratio; after that, the largest centre crop with an allowed ratio. */
static ctn__rect random_part(const ctn_image_opt *o, const ctn_sample *s, int64_t W, int64_t H)
{
    const double area = (double)W * (double)H;
    for (uint64_t t = 0; t < CROP_TRIES; t++) {
        const uint64_t d = CTN__DRAW_CROP + 4 * t;
        double part = area * ctn__draw_between(s, d, o->scale[0], o->scale[1]);
        double ratio = exp(ctn__draw_between(s, d + 1, log(o->ratio[0]), log(o->ratio[1])));
        double dw = nearbyint(sqrt(part * ratio)), dh = nearbyint(sqrt(part / ratio));
        if (!(dw >= 1 && dh >= 1 && dw <= (double)W && dh <= (double)H)) continue;
        int64_t w = (int64_t)dw, h = (int64_t)dh;
        return (ctn__rect){ctn__draw_below(s, d + 2, W - w + 1),
                           ctn__draw_below(s, d + 3, H - h + 1), w, h};
    }
    int64_t w = W, h = H;
    double ratio = (double)W / (double)H;
    if (ratio < o->ratio[0]) h = at_least_1((double)W / o->ratio[0]);
    else if (ratio > o->ratio[1]) w = at_least_1((double)H * o->ratio[1]);
    if (h > H) h = H;
    if (w > W) w = W;
    return (ctn__rect){(W - w) / 2, (H - h) / 2, w, h};
}

/* A picture of size n, resized to `resized`, is seen through a window of size `seen` that starts at
 * `from`; the window may extend beyond the picture on both sides. Finds the visible box of the
 * picture (at, length) and its position in the window (dst, dst_n). */
static void through_window(int64_t n, int64_t resized, int64_t from, int64_t seen, double *at,
                           double *length, int64_t *dst, int64_t *dst_n)
{
    int64_t lo = from > 0 ? from : 0;
    int64_t hi = from + seen < resized ? from + seen : resized;
    double scale = (double)n / (double)resized;
    *at = (double)lo * scale;
    *length = (double)(hi - lo) * scale;
    *dst = lo - from;
    *dst_n = hi - lo;
}

static void view_resized(ctn__view *v, const ctn_image_opt *o, int64_t W, int64_t H, int64_t rw,
                         int64_t rh, int64_t from_x, int64_t from_y)
{
    through_window(W, rw, from_x, o->width, &v->x, &v->w, &v->dst.x, &v->dst.w);
    through_window(H, rh, from_y, o->height, &v->y, &v->h, &v->dst.y, &v->dst.h);
}

static void view_center(ctn__view *v, const ctn_image_opt *o, int64_t W, int64_t H)
{
    int64_t rw = o->resize, rh = o->resize;
    if (W < H) rh = at_least_1(floor((double)o->resize * (double)H / (double)W));
    else rw = at_least_1(floor((double)o->resize * (double)W / (double)H));
    /* Halves are rounded to the even neighbour, like Python's round. */
    int64_t x = (int64_t)nearbyint((double)(rw - o->width) / 2);
    int64_t y = (int64_t)nearbyint((double)(rh - o->height) / 2);
    view_resized(v, o, W, H, rw, rh, x, y);
}

void ctn__choose_view(const ctn_image_opt *o, const ctn_sample *s, int64_t W, int64_t H,
                      ctn__view *v)
{
    *v = (ctn__view){.limit = {0, 0, W, H}};
    if (o->crop == CTN_CROP_CENTER) {
        view_center(v, o, W, H);
    } else if (o->crop == CTN_CROP_PAD) {
        int64_t x = ctn__draw_below(s, CTN__DRAW_PAD_X, 2 * o->pad + 1) - o->pad;
        int64_t y = ctn__draw_below(s, CTN__DRAW_PAD_Y, 2 * o->pad + 1) - o->pad;
        view_resized(v, o, W, H, o->width, o->height, x, y);
    } else {
        if (o->crop == CTN_CROP_RANDOM) v->limit = random_part(o, s, W, H);
        v->x = (double)v->limit.x;
        v->y = (double)v->limit.y;
        v->w = (double)v->limit.w;
        v->h = (double)v->limit.h;
        v->dst = (ctn__rect){0, 0, o->width, o->height};
    }
    if (o->flip && ctn__draw(s, CTN__DRAW_FLIP) < 0.5) {
        v->mirror_x = true;
        v->dst.x = o->width - v->dst.x - v->dst.w;
    }
}

void ctn__turn_view(ctn__view *v, int turn, int64_t width, int64_t height)
{
    if (turn == 2 || turn == 3 || turn == 6 || turn == 7) {
        v->x = (double)width - v->x - v->w;
        v->limit.x = width - v->limit.x - v->limit.w;
        v->mirror_x = !v->mirror_x;
    }
    if (turn == 3 || turn == 4 || turn == 7 || turn == 8) {
        v->y = (double)height - v->y - v->h;
        v->limit.y = height - v->limit.y - v->limit.h;
        v->mirror_y = !v->mirror_y;
    }
}

/* ---- dataset --------------------------------------------------------------------------------- */

struct augment {
    ctn_dataset *base;
    ctn_image_opt opt;
    ctn_field from; /* field 0 of base */
};

static int64_t augment_count(void *self)
{
    return ctn_dataset_count(((struct augment *)self)->base);
}

static int augment_fields(void *self)
{
    return ctn_dataset_fields(((struct augment *)self)->base);
}

static void augment_field(void *self, int f, ctn_field *out)
{
    const struct augment *a = self;
    if (f == 0) ctn__image_field(&a->opt, out);
    else *out = *ctn_dataset_field(a->base, f);
}

/* Converts planes or interleaved pixels to interleaved pixels with the channels of the result. */
static void to_pixels(const struct augment *a, const uint8_t *in, ctn__pixels *out)
{
    const int64_t C = a->from.shape[0], n = a->from.shape[1] * a->from.shape[2];
    if (C == 1 || a->from.channels_last) {
        memcpy(out->at, in, (size_t)(C * n));
    } else {
        for (int64_t i = 0; i < n; i++)
            for (int64_t c = 0; c < C; c++) out->at[i * C + c] = in[c * n + i];
    }
    if (C == 3 && a->opt.gray) {
        ctn__rgb_to_gray(out->at, n, out->at);
        out->channels = 1;
    }
}

static ctn_status augment_get(void *self, const ctn_sample *s, void *const *dst)
{
    const struct augment *a = self;
    const int64_t H = a->from.shape[1], W = a->from.shape[2];
    ctn_status st = CTN_OK;
    ctn__view v;
    ctn__pixels px = {.part = {0, 0, W, H}, .channels = (int)a->from.shape[0]};
    void *from[CTN_DATA_FIELDS];
    ctn_image_opt o;
    ctn_sample whole = *s;
    whole.size = 0; /* the size is changed here */
    CTN_TRY(ctn__image_sized(&o, &a->opt, s));
    memcpy(from, dst, (size_t)ctn_dataset_fields(a->base) * sizeof *from);
    from[0] = ctn__malloc(ctn__field_bytes(&a->from));
    if (!from[0]) return CTN_ENOMEM;
    CTN_TRY_GOTO(st, done, ctn__pixels_new(&px));
    CTN_TRY_GOTO(st, done, ctn_dataset_sample(a->base, &whole, from));
    to_pixels(a, from[0], &px);
    ctn__choose_view(&o, s, W, H, &v);
    CTN_TRY_GOTO(st, done, ctn__resample(&o, s, &px, &v, dst[0]));
done:
    ctn__free(px.at);
    ctn__free(from[0]);
    return st;
}

static void augment_free(void *self)
{
    ctn_dataset_free(((struct augment *)self)->base);
    ctn__free(self);
}

static int augment_name(void *self, int64_t index, char *buf, size_t n)
{
    return ctn_dataset_name(((struct augment *)self)->base, index, buf, n);
}

static const char *augment_class(void *self, int64_t k)
{
    return ctn_dataset_class(((struct augment *)self)->base, k);
}

static int64_t augment_length(void *self, int f, int64_t index)
{
    return ctn_dataset_length(((struct augment *)self)->base, f, index);
}

/* Other fields are those of the base, which is read in full size, so a field that would have to
 * follow the size of the images prevents that it changes. */
static int augment_resizes(void *self)
{
    const struct augment *a = self;
    for (int f = 1; f < augment_fields(self); f++) {
        const ctn_field *one = ctn_dataset_field(a->base, f);
        if (one->ndim == 2 && one->shape[0] == a->opt.height && one->shape[1] == a->opt.width)
            return 0;
    }
    return 1;
}

static const ctn_dataset_vt augment_vt = {
    .struct_size = sizeof(ctn_dataset_vt),
    .count = augment_count,
    .fields = augment_fields,
    .field = augment_field,
    .get = augment_get,
    .free = augment_free,
    .name = augment_name,
    .class_name = augment_class,
    .length = augment_length,
    .resizes = augment_resizes,
};

ctn_status ctn_augment_new(ctn_dataset **ds, ctn_dataset *base, const ctn_image_opt *opt)
{
    if (!ds || !base) return ctn_fail(CTN_EARG, "augment: NULL argument");
    *ds = NULL;
    const ctn_field *f = ctn_dataset_field(base, 0);
    if (!f || f->dtype != CTN_U8 || f->ndim != 3 || (f->shape[0] != 1 && f->shape[0] != 3) ||
        f->shape[1] < 1 || f->shape[2] < 1)
        return ctn_fail(CTN_EARG, "augment: field 0 must be images, u8 (1,H,W) or (3,H,W), such "
                                  "as those of ctn_cifar10_open with .raw");
    struct augment *a = ctn__calloc(1, sizeof *a);
    if (!a) return CTN_ENOMEM;
    a->base = base;
    a->from = *f;
    ctn_image_opt o;
    ctn_status st = ctn__opt("augment", &o, sizeof o, opt);
    /* By default the centre crop does not resize the image. */
    if (o.resize == 0) o.resize = f->shape[1] < f->shape[2] ? f->shape[1] : f->shape[2];
    o.struct_size = sizeof o;
    if (st == CTN_OK) st = ctn__image_opt("augment", &a->opt, &o, f->shape[1], f->shape[2]);
    if (f->shape[0] == 1) a->opt.gray = 1;
    if (st == CTN_OK) st = ctn_dataset_new(ds, &augment_vt, a);
    if (st < 0) ctn__free(a);
    return st;
}
