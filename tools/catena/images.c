/* SPDX-License-Identifier: Apache-2.0
 *
 * Images without classes as a dataset, for predict: one file, or all files in a folder sorted by
 * name. A file is read when its sample is requested.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "task.h"

enum { MOST_BYTES = 1 << 30 };

typedef struct {
    ctn_image_opt opt;
    char **path;
    int64_t n, room;
} images;

static void images_free(void *self)
{
    images *im = self;
    for (int64_t i = 0; i < im->n; i++) free(im->path[i]);
    free(im->path);
    free(im);
}

static int64_t images_count(void *self)
{
    return ((images *)self)->n;
}

static int images_fields(void *self)
{
    (void)self;
    return 1;
}

static void images_field(void *self, int f, ctn_field *out)
{
    const images *im = self;
    (void)f;
    *out = (ctn_field){.dtype = CTN_F32,
                       .ndim = 3,
                       .shape = {im->opt.gray ? 1 : 3, im->opt.height, im->opt.width}};
}

static int images_name(void *self, int64_t index, char *buf, size_t n)
{
    return snprintf(buf, n, "%s", ((images *)self)->path[index]);
}

static ctn_status read_all(FILE *f, const char *path, void **data, size_t *bytes)
{
    long n = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    if (n < 0 || n > MOST_BYTES || fseek(f, 0, SEEK_SET) != 0)
        return ctn_fail(CTN_EIO,
                        "%s: cannot determine the size, or the file is too large for an image",
                        path);
    *bytes = (size_t)n;
    *data = malloc(*bytes + 1);
    if (!*data) return ctn_fail(CTN_ENOMEM, "%s: no memory for %ld bytes", path, n);
    if (fread(*data, 1, *bytes, f) != *bytes) return ctn_fail(CTN_EIO, "cannot read %s", path);
    return CTN_OK;
}

static ctn_status images_get(void *self, const ctn_sample *s, void *const *dst)
{
    const images *im = self;
    const char *path = im->path[s->index];
    void *data = NULL;
    size_t bytes = 0;
    FILE *f = open_regular(path);
    if (!f) return ctn_fail(CTN_EIO, "cannot read %s: %s", path, strerror(errno));
    ctn_status st = read_all(f, path, &data, &bytes);
    fclose(f);
    if (st == CTN_OK) st = ctn_image_decode(data, bytes, &im->opt, s, dst[0]);
    free(data);
    return st;
}

static ctn_status add_path(images *im, const char *path)
{
    if (im->n == im->room) {
        int64_t room = im->room ? 2 * im->room : 64;
        char **more = realloc(im->path, (size_t)room * sizeof *more);
        if (!more) return ctn_fail(CTN_ENOMEM, "no memory for file names");
        im->path = more;
        im->room = room;
    }
    im->path[im->n] = strdup(path);
    if (!im->path[im->n]) return ctn_fail(CTN_ENOMEM, "no memory for file names");
    im->n++;
    return CTN_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static ctn_status add_folder(images *im, const char *path)
{
    char file[4096];
    ctn_status st = CTN_OK;
    DIR *d = opendir(path);
    if (!d) return ctn_fail(CTN_EIO, "cannot read %s: %s", path, strerror(errno));
    for (struct dirent *e; st == CTN_OK && (e = readdir(d));)
        if (is_image(e->d_name) && join(file, sizeof file, path, e->d_name)[0])
            st = add_path(im, file);
    closedir(d);
    if (im->n > 0) qsort(im->path, (size_t)im->n, sizeof *im->path, by_name);
    return st;
}

ctn_status images_open(ctn_dataset **ds, const char *path, const ctn_image_opt *opt)
{
    static const ctn_dataset_vt vt = {.struct_size = sizeof vt,
                                      .count = images_count,
                                      .fields = images_fields,
                                      .field = images_field,
                                      .get = images_get,
                                      .free = images_free,
                                      .name = images_name};
    images *im = calloc(1, sizeof *im);
    if (!im) return ctn_fail(CTN_ENOMEM, "no memory for file names");
    im->opt = *opt;
    ctn_status st = is_folder(path) ? add_folder(im, path) : add_path(im, path);
    if (st == CTN_OK) st = ctn_dataset_new(ds, &vt, im);
    if (st != CTN_OK) images_free(im);
    return st;
}
