/* SPDX-License-Identifier: Apache-2.0
 *
 * ragged: 2,000 batches of 32 sequences with lengths from 10 to 500, padded to multiples of 16, in
 * shuffled and in bucketed order. Counts the different shapes and the library's allocations, and
 * measures the share of padding. Output: one JSON line per order.
 */
#include <stdio.h>
#include <stdlib.h>

#include <catena/catena.h>

#define CHECK(call) \
    if ((call) < 0) exit((fprintf(stderr, "ragged: %s\n", ctn_error_message()), 1))

enum { COUNT = 16000, BATCH = 32, BATCHES = 2000, LONGEST = 500, MULTIPLE = 16 };

static int64_t length[COUNT], offset[COUNT + 1];

static void measure(ctn_dataset *ds, ctn_sampler *order, const char *name)
{
    ctn_loader *loader;
    ctn_batch b;
    int seen[LONGEST / MULTIPLE + 2] = {0}, shapes = 0;
    double rows = 0, padded = 0;
    CHECK(ctn_loader_new(&loader, ds, order,
                         CTN_OPT(ctn_loader_opt, .batch = BATCH, .threads = 1,
                                 .pad_multiple = MULTIPLE)));
    const uint64_t before = ctn_allocations();
    for (int k = 0; k < BATCHES;) {
        const ctn_status st = ctn_loader_next(loader, &b);
        CHECK(st);
        if (st == CTN_END) continue;
        const int64_t L = b.field[0].shape[1], *n = b.data[1];
        shapes += seen[L / MULTIPLE]++ == 0;
        padded += (double)(b.n * L);
        for (int64_t i = 0; i < b.n; i++) rows += (double)n[i];
        k++;
    }
    printf("{\"order\": \"%s\", \"batches\": %d, \"shapes\": %d, \"padding\": %.4f, "
           "\"allocations\": %llu}\n",
           name, BATCHES, shapes, 1 - rows / padded,
           (unsigned long long)(ctn_allocations() - before));
    ctn_loader_free(loader);
    ctn_sampler_free(order);
}

int main(void)
{
    ctn_dataset *ds;
    ctn_sampler *order;
    for (int i = 0; i < COUNT; i++) {
        length[i] = 10 + rand() % (LONGEST - 9);
        offset[i + 1] = offset[i] + length[i];
    }
    int64_t *token = calloc((size_t)offset[COUNT], sizeof *token);
    if (!token) return 1;
    CHECK(ctn_ragged_open(&ds, COUNT, 1, &(ctn_field){CTN_I64, 1, {CTN_RAGGED}, 0},
                          (const void *[]){token}, (const int64_t *[]){offset}));
    CHECK(ctn_sampler_shuffled(&order, COUNT, 1));
    measure(ds, order, "shuffled");
    CHECK(ctn_sampler_bucketed(&order, COUNT, length, BATCH, 1));
    measure(ds, order, "bucketed");
    ctn_dataset_free(ds);
    free(token);
    return 0;
}
