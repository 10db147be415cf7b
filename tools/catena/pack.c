/* SPDX-License-Identifier: Apache-2.0
 *
 * catena pack: an image folder as tar shards, which a parallel file system likes better than many small
 * files.
 */
#include <unistd.h>

#include <catena/image.h>

#include "cli.h"

static void progress(void *user, int64_t done, int64_t all)
{
    double *last = user;
    if (done < all && now_s() - *last < 0.5) return;
    *last = now_s();
    fprintf(stderr, "\r%lld of %lld%s", (long long)done, (long long)all, done < all ? "" : "\n");
    fflush(stderr);
}

static int run(args *a)
{
    int64_t samples = 0;
    double start = now_s(), last = start;
    bool shown = isatty(STDERR_FILENO) && !args_flag(a, "json");
    ctn_status st = ctn_pack(a->operand, a->operand2, &samples,
                             CTN_OPT(ctn_pack_opt, .shard_bytes = args_int(a, "shard-mb") * 1000000,
                                     .seed = (uint64_t)args_int(a, "seed"),
                                     .keep_order = args_flag(a, "keep-order"),
                                     .progress = shown ? progress : NULL, .user = &last));
    if (st < 0) return report_failure("pack", DOING_DATA);
    if (args_flag(a, "json")) {
        json j = {0};
        json_open(&j, NULL, '{');
        json_text(&j, "out", a->operand2);
        json_int(&j, "samples", samples);
        json_real(&j, "seconds", now_s() - start);
        json_close(&j, '}');
    } else {
        printf("%lld samples in %s\n", (long long)samples, a->operand2);
    }
    return EXIT_DONE;
}

static const option options[] = {
    {"shard-mb", "N", "1000", "size of a shard in megabytes"},
    {"seed", "N", "0", "of the order of the samples, which are shuffled over the shards"},
    {"keep-order", NULL, NULL, "by class and name instead"},
    {"json", NULL, NULL, "one JSON object"},
    {0},
};

const command cmd_pack = {
    .name = "pack",
    .operands = "DIR OUT",
    .summary = "Write a folder of images, one folder per class, as tar shards.",
    .options = options,
    .examples = "  catena pack photos shards                    shards/shard-000000.tar, ...\n"
                "  catena pack photos shards --shard-mb 200 --seed 7\n",
    .run = run,
    .ranks = RANKS_ONE,
    .free_words = 2,
};
