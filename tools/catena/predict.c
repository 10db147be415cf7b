/* SPDX-License-Identifier: Apache-2.0
 *
 * catena predict: applies a network to data without targets. Numbers are written as .npy, in the
 * units of the training targets; classes as JSON lines or CSV with their probabilities, or as
 * .npy with the probabilities of all classes.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "infer.h"
#include "segment.h"

/* ---- numbers --------------------------------------------------------------------------------- */

typedef struct {
    units u;
    ctn_field field; /* of one result */
    void *all;
} numbers;

static ctn_status take_numbers(void *user, const ctn_batch *b, const float *y, int64_t per,
                               int64_t first)
{
    numbers *r = user;
    float *f32 = r->all;
    double *f64 = r->all;
    for (int64_t i = 0; i < b->n * per; i++) {
        double v = units_value(&r->u, y[i], i % per, per);
        if (r->field.dtype == CTN_F64) f64[first * per + i] = v;
        else f32[first * per + i] = (float)v;
    }
    return CTN_OK;
}

static ctn_status predict_numbers(task *t, const char *out)
{
    ctn_status st = CTN_OK;
    numbers r = {.field = t->target};
    r.field.dtype = t->f64 ? CTN_F64 : CTN_F32;                  /* as in the input file */
    if (t->net_is == NET_FIELD && r.field.ndim == t->input.ndim) /* it takes fields of any size */
        for (int i = 1; i < r.field.ndim; i++) r.field.shape[i] = t->input.shape[i];
    const int64_t count = ctn_dataset_count(t->set[0]), per = field_elements(&r.field);
    if (t->net_is == NET_FIELD && args_int(t->a, "spatial") == t->input.ndim - 1 &&
        args_given(t->a, "spatial") && r.field.shape[0] == 1) {
        memmove(r.field.shape, r.field.shape + 1, sizeof *r.field.shape * (CTN_MAX_DIMS - 1));
        r.field.ndim--; /* the file had no channels either */
    }
    if (!ends_with(out, ".npy")) {
        t->now = DOING_SETUP;
        return ctn_fail(CTN_EARG, "numbers are written as .npy: use --out y.npy%s%s",
                        out[0] ? " instead of " : "", out);
    }
    CTN_TRY(units_get(&r.u, t));
    r.all = room_for(count, per, ctn_dtype_size(r.field.dtype));
    if (!r.all) st = ctn_fail(CTN_ENOMEM, "no memory for %lld results", (long long)count);
    if (st == CTN_OK) st = infer(t, per, take_numbers, &r);
    if (st == CTN_OK) st = ctn_npy_save(out, count, &r.field, r.all);
    units_free(&r.u);
    free(r.all);
    return st;
}

/* ---- probabilities of all classes ------------------------------------------------------------ */

static ctn_status take_probabilities(void *user, const ctn_batch *b, const float *y, int64_t per,
                                     int64_t first)
{
    for (int64_t i = 0; i < b->n; i++) {
        const float *row = y + i * per;
        float *to = (float *)user + (first + i) * per;
        double most = -INFINITY, sum = 0;
        for (int64_t k = 0; k < per; k++) most = fmax(most, row[k]);
        for (int64_t k = 0; k < per; k++) sum += exp(row[k] - most);
        for (int64_t k = 0; k < per; k++) to[k] = (float)(exp(row[k] - most) / sum);
    }
    return CTN_OK;
}

static ctn_status predict_probabilities(task *t, const char *out)
{
    const int64_t count = ctn_dataset_count(t->set[0]);
    const ctn_field field = {.dtype = CTN_F32, .ndim = 1, .shape = {t->classes}};
    float *all = room_for(count, t->classes, sizeof *all);
    if (!all) return ctn_fail(CTN_ENOMEM, "no memory for %lld results", (long long)count);
    ctn_status st = infer(t, t->classes, take_probabilities, all);
    if (st == CTN_OK) st = ctn_npy_save(out, count, &field, all);
    free(all);
    return st;
}

/* ---- classes --------------------------------------------------------------------------------- */

typedef struct {
    task *t;
    FILE *to;
    bool csv;
    class_names known; /* the classes of the training */
} labels;

/* The folders of the data are names of classes too, but nobody knows in which order those of the
 * training were. */
static const char *name_of(const labels *l, int64_t k)
{
    if (k < l->known.n) return l->known.name[k];
    if (l->t->kind == DATA_FOLDER) return "";
    const char *s = ctn_dataset_class(l->t->set[0], k);
    return s ? s : "";
}

/* As in RFC 4180: inner quotes are doubled. */
static void csv_quoted(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s; s++) {
        if (*s == '"') fputc('"', f);
        fputc(*s, f);
    }
    fputc('"', f);
}

static void put_line(const labels *l, const char *sample, int64_t class, double probability)
{
    if (l->csv) {
        csv_quoted(l->to, sample);
        fprintf(l->to, ",%lld,", (long long)class);
        csv_quoted(l->to, name_of(l, class));
        fprintf(l->to, ",%.6f\n", probability);
        return;
    }
    fprintf(l->to, "{\"sample\": ");
    json_quoted(l->to, sample);
    fprintf(l->to, ", \"class\": %lld, \"name\": ", (long long)class);
    json_quoted(l->to, name_of(l, class));
    fprintf(l->to, ", \"probability\": %.6f}\n", probability);
}

static ctn_status take_classes(void *user, const ctn_batch *b, const float *y, int64_t per,
                               int64_t first)
{
    labels *l = user;
    char sample[4096];
    for (int64_t i = 0; i < b->n; i++) {
        const float *row = y + i * per;
        int64_t best = 0;
        double sum = 0;
        for (int64_t k = 1; k < per; k++)
            if (row[k] > row[best]) best = k;
        for (int64_t k = 0; k < per; k++) sum += exp((double)row[k] - row[best]);
        ctn_dataset_name(l->t->set[0], first + i, sample, sizeof sample);
        put_line(l, sample, best, 1 / sum);
    }
    return CTN_OK;
}

static ctn_status predict_classes(task *t, const char *out)
{
    labels l = {.t = t, .to = stdout, .csv = ends_with(out, ".csv")};
    if (out[0]) l.to = fopen(out, "w");
    if (!l.to) return ctn_fail(CTN_EIO, "cannot write %s: %s", out, strerror(errno));
    ctn_status st = class_names_read(&l.known, t->a->job, args_text(t->a, "weights"));
    if (l.csv) fprintf(l.to, "sample,class,name,probability\n");
    if (st == CTN_OK) st = infer(t, 0, take_classes, &l);
    if (out[0] && fclose(l.to) != 0 && st == CTN_OK)
        st = ctn_fail(CTN_EIO, "cannot write %s: %s", out, strerror(errno));
    class_names_free(&l.known);
    return st;
}

/* ---- the command ----------------------------------------------------------------------------- */

static ctn_status predict(task *t, args *a)
{
    const char *out = args_text(a, "out");
    if (out[0] && same_file(out, args_text(a, "data")))
        return ctn_fail(CTN_EARG, "--out and --data are the same file, %s", out);
    CTN_TRY(task_begin(t, a, FOR_PREDICTION));
    CTN_TRY(task_data(t));
    if (t->kind == DATA_TOKENS)
        return ctn_fail(CTN_EARG, "predict does not take text: use catena %s",
                        t->masked ? "eval" : "generate");
    CTN_TRY(task_net(t));
    CTN_TRY(task_weights(t, weights_of(a)));
    CTN_TRY(task_loaders(t));
    if (!t->classify) CTN_TRY(predict_numbers(t, out));
    else if (t->pixels) CTN_TRY(predict_masks(t, out));
    else if (ends_with(out, ".npy")) CTN_TRY(predict_probabilities(t, out));
    else CTN_TRY(predict_classes(t, out));
    if (!args_flag(a, "json") || !out[0]) return CTN_OK;
    json j = {0};
    json_open(&j, NULL, '{');
    json_text(&j, "out", out);
    json_int(&j, "samples", ctn_dataset_count(t->set[0]));
    json_close(&j, '}');
    return CTN_OK;
}

static int run(args *a)
{
    return infer_command(a, predict);
}

static const option options[] = {
    {"weights", "FILE", "",
     "weights (safetensors or PyTorch); config.yaml and classes.txt beside them describe the "
     "network",
     GROUP_COMMON},
    TASK_DATA_OPTIONS,
    {"split", "train|test", "test", "part of MNIST, CIFAR, SVHN or of a folder that has both",
     GROUP_DATA},
    {"out", "FILE", "",
     "output file. Numbers: .npy. Classes: .csv, .npy (probabilities of all classes), or any other "
     "name for JSON lines (default: JSON lines on standard output)",
     GROUP_COMMON},
    TASK_NET_OPTIONS,
    TASK_RUN_OPTIONS,
    {"json", NULL, NULL, "print one JSON object that says what was written", GROUP_OUTPUT},
    {0},
};

const command cmd_predict = {
    .name = "predict",
    .operands = "[NETWORK]",
    .summary = "Apply a network to new data; numbers are in the units of the training targets.",
    .words = ctn_zoo_names,
    .optional = true, /* config.yaml beside the weights names it */
    .options = options,
    .examples = "  catena predict ./result --data x.npy --out y.npy\n"
                "  catena predict --weights result/weights.safetensors --data x.npy --out y.npy\n"
                "  catena predict --weights result/best.safetensors --data photos "
                "--out classes.csv\n",
    .run = run,
    .ranks = RANKS_ONE,
    .paths = OWN_OR_RESULT,
};
