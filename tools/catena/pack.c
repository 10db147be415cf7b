/* SPDX-License-Identifier: Apache-2.0
 *
 * catena pack: writes an image folder as tar shards, which suit a parallel file system better
 * than many small files, or text as a file of tokens.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catena/image.h>
#include <catena/text.h>

#include "cli.h"

static void progress(void *user, int64_t done, int64_t all)
{
    double *last = user;
    if (done < all && now_s() - *last < 0.5) return;
    *last = now_s();
    fputs("\r", stderr);
    say(stderr, "%lld of %lld%s", (long long)done, (long long)all, done < all ? "" : "\n");
    fflush(stderr);
}

/* ---- text ------------------------------------------------------------------------------------ */

typedef struct {
    char **at;
    int n;
} paths;

static void paths_free(paths *p)
{
    for (int i = 0; i < p->n; i++) free(p->at[i]);
    free(p->at);
}

static ctn_status paths_add(paths *p, const char *folder, const char *name)
{
    char file[4096];
    snprintf(file, sizeof file, "%s%s%s", folder, name[0] ? "/" : "", name);
    char **more = realloc(p->at, ((size_t)p->n + 1) * sizeof *more);
    if (more) p->at = more;
    char *copy = more ? strdup(file) : NULL;
    if (!copy) return ctn_fail(CTN_ENOMEM, "no memory for the names of files");
    p->at[p->n++] = copy;
    return CTN_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A file, or all files of a folder whose names do not begin with a dot, sorted by name. */
static ctn_status list_files(paths *p, const char *path)
{
    struct stat info;
    ctn_status st = CTN_OK;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) return paths_add(p, path, "");
    DIR *dir = opendir(path);
    if (!dir) return ctn_fail(CTN_EIO, "%s: %s", path, strerror(errno));
    for (const struct dirent *d; st == CTN_OK && (d = readdir(dir)) != NULL;)
        if (d->d_name[0] != '.') st = paths_add(p, path, d->d_name);
    closedir(dir);
    if (st == CTN_OK && p->n == 0) st = ctn_fail(CTN_ENOTFOUND, "%s: the folder is empty", path);
    if (p->n) qsort(p->at, (size_t)p->n, sizeof *p->at, by_name);
    return st;
}

static void text_result(const args *a, const ctn_tokenizer *t, int files, int64_t tokens,
                        double seconds)
{
    const int bytes = ctn_tokenizer_tokens(t) <= 65536 ? 2 : 4;
    if (args_flag(a, "json")) {
        json j = {0};
        json_open(&j, NULL, '{');
        json_text(&j, "out", a->operand2);
        json_int(&j, "files", files);
        json_int(&j, "tokens", tokens);
        json_int(&j, "token_bytes", bytes);
        json_int(&j, "vocabulary", ctn_tokenizer_tokens(t));
        json_real(&j, "seconds", seconds);
        json_close(&j, '}');
    } else {
        say(stdout, "%lld tokens of %d bytes in %s, from %d file%s; the vocabulary has %lld\n",
            (long long)tokens, bytes, a->operand2, files, files == 1 ? "" : "s",
            (long long)ctn_tokenizer_tokens(t));
    }
}

static int run_text(args *a, bool shown)
{
    int64_t tokens = 0;
    double start = now_s(), last = start;
    const char *end = args_text(a, "end");
    ctn_tokenizer *t = NULL;
    paths p = {0};
    int code = check_threads(a);
    if (code >= 0) return code;
    ctn_status st =
        ctn_tokenizer_open(&t, args_text(a, "tokenizer"),
                           CTN_OPT(ctn_tokenizer_opt, .keep_case = args_flag(a, "keep-case"),
                                   .ignore_special = args_flag(a, "ignore-special")));
    if (st == CTN_OK) st = list_files(&p, a->operand);
    if (st == CTN_OK)
        st = ctn_tokens_pack(t, p.n, (const char *const *)p.at, a->operand2, &tokens,
                             CTN_OPT(ctn_tokens_pack_opt, .threads = (int)args_int(a, "threads"),
                                     .end = strcmp(end, "auto") == 0   ? NULL
                                            : strcmp(end, "none") == 0 ? ""
                                                                       : end,
                                     .progress = shown ? progress : NULL, .user = &last));
    if (st == CTN_OK) text_result(a, t, p.n, tokens, now_s() - start);
    paths_free(&p);
    ctn_tokenizer_free(t);
    return st < 0 ? report_failure("pack", DOING_DATA) : EXIT_DONE;
}

/* ---- images ---------------------------------------------------------------------------------- */

static int run_images(args *a, bool shown)
{
    int64_t samples = 0;
    double start = now_s(), last = start;
    ctn_status st =
        ctn_shards_pack(a->operand, a->operand2, &samples,
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
        say(stdout, "%lld samples in %s\n", (long long)samples, a->operand2);
    }
    return EXIT_DONE;
}

static int run(args *a)
{
    const bool shown = isatty(STDERR_FILENO) && !args_flag(a, "json");
    return args_given(a, "tokenizer") ? run_text(a, shown) : run_images(a, shown);
}

static const option options[] = {
    {"tokenizer", "PATH", "",
     "for text: tokenizer.json, vocab.json beside merges.txt, vocab.txt, or a folder with them",
     GROUP_NONE},
    {"end", "TOKEN", "auto",
     "for text: the token after each file; auto: the tokenizer's end of text; none", GROUP_NONE},
    {"ignore-special", NULL, NULL, "for text: encode words like <|endoftext|> as ordinary text",
     GROUP_NONE},
    {"keep-case", NULL, NULL, "for text: keep case and accents (vocab.txt of cased models)",
     GROUP_NONE},
    {"threads", "N", "0", "for text: number of threads; 0: one per core", GROUP_NONE},
    {"shard-mb", "N", "1000", "size of a shard in megabytes", GROUP_NONE},
    {"seed", "N", "0", "random seed of the sample order; samples are shuffled over all shards",
     GROUP_NONE},
    {"keep-order", NULL, NULL, "keep samples sorted by class and name instead of shuffling them",
     GROUP_NONE},
    {"json", NULL, NULL, "print one JSON object", GROUP_NONE},
    {0},
};

const command cmd_pack = {
    .name = "pack",
    .operands = "SOURCE OUT",
    .summary = "Write a folder of images, one folder per class, as tar shards; or text as tokens.",
    .options = options,
    .examples = "  catena pack photos shards                    shards/shard-000000.tar, ...\n"
                "  catena pack photos shards --shard-mb 200 --seed 7\n"
                "  catena pack corpus tokens.bin --tokenizer gpt2     the files of a folder\n"
                "  catena pack book.txt book.bin --tokenizer bert/vocab.txt\n",
    .run = run,
    .ranks = RANKS_ONE,
    .free_words = 2,
};
