/* SPDX-License-Identifier: Apache-2.0
 *
 * Small random data for `catena verify-resume`: arrays for most networks, text for language models.
 * What is learnt from it does not matter, only that every step changes the weights.
 */
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "resume/resume.h"
#include "task.h"

enum { SAMPLES = 128, CLASSES = 4, LINES = 100 };

static ctn_status write_values(const char *path, const ctn_field *f)
{
    const int64_t n = SAMPLES * field_elements(f);
    uint64_t state = 1;
    float *x = malloc((size_t)n * sizeof *x);
    if (!x) return ctn_fail(CTN_ENOMEM, "no memory for the data");
    for (int64_t i = 0; i < n; i++) x[i] = model_uniform(&state);
    const ctn_status st = ctn_npy_save(path, SAMPLES, f, x);
    free(x);
    return st;
}

static ctn_status write_classes(const char *path)
{
    int64_t y[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) y[i] = i % CLASSES;
    return ctn_npy_save(path, SAMPLES, &(ctn_field){.dtype = CTN_I64}, y);
}

static ctn_status make_arrays(sample *s, const ctn_field *x, const ctn_field *y)
{
    const char *const list[] = {"--data",  s->path[0], "--target", s->path[1],
                                "--batch", "16",       NULL};
    memcpy(s->word, list, sizeof list);
    CTN_TRY(write_values(s->path[0], x));
    return y->ndim ? write_values(s->path[1], y) : write_classes(s->path[1]);
}

static ctn_status write_text(const char *path, const char *line, int times)
{
    FILE *f = NULL;
    CTN_TRY(file_open(&f, path));
    for (int i = 0; i < times; i++) fputs(line, f);
    return file_close(f, path);
}

static ctn_status make_text(sample *s)
{
    const char *const list[] = {"--data",  s->path[0], "--tokenizer", s->path[2], "--length",
                                "16",      "--width",  "32",          "--depth",  "1",
                                "--heads", "2",        "--batch",     "16",       NULL};
    memcpy(s->word, list, sizeof list);
    CTN_TRY(write_text(s->path[2],
                       "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nstate\nis\nsaved\nand\n"
                       "resumed\n.\n",
                       1));
    return write_text(s->path[0], "A state is saved and resumed. ", LINES);
}

ctn_status sample_make(sample *s, const char *network, const char *folder)
{
    static const ctn_field row = {.dtype = CTN_F32, .ndim = 1, .shape = {6}};
    static const ctn_field pair = {.dtype = CTN_F32, .ndim = 1, .shape = {2}};
    static const ctn_field image = {.dtype = CTN_F32, .ndim = 3, .shape = {3, 32, 32}};
    static const ctn_field gray = {.dtype = CTN_F32, .ndim = 3, .shape = {1, 28, 28}};
    static const ctn_field field = {.dtype = CTN_F32, .ndim = 3, .shape = {1, 16, 16}};
    static const ctn_field class = {.dtype = CTN_I64};
    const bool zoo = !strchr(network, '/');
    const net_kind kind = zoo ? net_kind_of(network) : NET_OWN;
    const bool text = kind == NET_TOKENS;
    join(s->path[0], PATH_MAX, folder, text ? "data.txt" : "x.npy");
    join(s->path[1], PATH_MAX, folder, "y.npy");
    join(s->path[2], PATH_MAX, folder, "vocab.txt");
    if (text) return make_text(s);
    if (kind == NET_FIELD) return make_arrays(s, &field, &field);
    if (kind == NET_IMAGE)
        return make_arrays(s, strcmp(network, "lenet5") == 0 ? &gray : &image, &class);
    CTN_TRY(make_arrays(s, &row, &pair));
    if (kind == NET_FLAT)
        memcpy(s->word + 6, (const char *[]){"--hidden", "32,32", NULL}, 3 * sizeof(char *));
    return CTN_OK;
}
