/* SPDX-License-Identifier: Apache-2.0
 *
 * published: run a published model on given inputs, for dev/published to compare.
 *
 *   published FOLDER OUTPUT.npy INPUT.npy ...
 *       the network of FOLDER/config.json with the weights in FOLDER; a second input has lengths
 *   published --lstm HIDDEN LAYERS FILE OUTPUT.npy INPUT.npy NAME FILE_NAME ...
 *       an LSTM with weights of a file, renamed as in ctn_weights_opt; INPUT is (T,N,I)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <catena/catena.h>

#define CHECK(call) \
    if ((call) < 0) exit((fprintf(stderr, "published: %s\n", ctn_error_message()), 1))

static ctn_context *ctx;

/* All arrays of n files as one batch, which lasts until the program ends. */
static ctn_batch read_files(int n, const char *const *path)
{
    ctn_dataset *ds;
    ctn_sampler *order;
    ctn_loader *loader;
    ctn_batch b;
    CHECK(ctn_files_open(&ds, n, path, NULL));
    CHECK(ctn_sampler_sequential(&order, ctn_dataset_count(ds)));
    CHECK(ctn_loader_new(&loader, ds, order,
                         CTN_OPT(ctn_loader_opt, .batch = ctn_dataset_count(ds), .threads = 1)));
    CHECK(ctn_loader_next(loader, &b));
    return b;
}

/* Call m on the inputs and write its first result. */
static void run(ctn_module *m, const ctn_batch *b, const char *path)
{
    ctn_tensors in = {.n = b->fields};
    ctn_field out = {.dtype = CTN_F32};
    ctn_context_set_training(ctx, 0);
    CHECK(ctn_scope_begin(ctx));
    for (int i = 0; i < b->fields; i++)
        in.t[i] =
            ctn_input(ctx, b->data[i], b->field[i].dtype, b->field[i].ndim, b->field[i].shape);
    ctn_tensor *y = ctn_call_multi_at(CTN_HERE, m, in).t[0];
    const float *data = ctn_data(y);
    CHECK(ctn_error_status());
    out.ndim = ctn_ndim(y) - 1;
    for (int i = 0; i < out.ndim; i++) out.shape[i] = ctn_dim(y, i + 1);
    CHECK(ctn_npy_save(path, ctn_dim(y, 0), &out, data));
    CHECK(ctn_scope_end(ctx));
}

static void run_folder(int argc, char **argv)
{
    ctn_module *m;
    const ctn_batch b = read_files(argc - 3, (const char *const *)argv + 3);
    CHECK(ctn_zoo_open(&m, ctx, argv[1]));
    CHECK(ctn_weights_load(m, argv[1], NULL));
    run(m, &b, argv[2]);
}

static void run_lstm(char **argv)
{
    ctn_module *m;
    const ctn_batch b = read_files(1, (const char *const *)argv + 6);
    CHECK(ctn_lstm_new(&m, ctx, b.field[0].shape[2], atoll(argv[2]),
                       CTN_OPT(ctn_rnn_module_opt, .layers = atoi(argv[3]))));
    CHECK(ctn_weights_load(m, argv[4],
                           CTN_OPT(ctn_weights_opt, .partial = 1,
                                   .rename = (const char *const *)argv + 7)));
    run(m, &b, argv[5]);
}

int main(int argc, char **argv)
{
    const int lstm = argc > 1 && strcmp(argv[1], "--lstm") == 0;
    if (argc < (lstm ? 7 : 4)) {
        fprintf(stderr, "usage: published FOLDER OUTPUT.npy INPUT.npy ...\n"
                        "       published --lstm HIDDEN LAYERS FILE OUTPUT.npy INPUT.npy "
                        "NAME FILE_NAME ...\n");
        return 1;
    }
    CHECK(ctn_context_new(&ctx, NULL));
    if (lstm) run_lstm(argv);
    else run_folder(argc, argv);
    return 0;
}
