/* SPDX-License-Identifier: Apache-2.0
 *
 * Text as data of a task: its tokenizer, windows of tokens, and hidden words for networks that
 * predict them (BERT). Text is encoded to a temporary file that nobody else sees.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "task.h"

/* ---- the tokenizer --------------------------------------------------------------------------- */

/* --tokenizer, else the folder of a published model; "": neither. */
static const char *tokenizer_path(const args *a, char *buf, size_t n)
{
    const char *given = args_text(a, "tokenizer"), *slash = strrchr(a->operand, '/');
    if (given[0] || !is_published(a->operand)) return given;
    if (is_folder(a->operand) || !slash) return a->operand;
    snprintf(buf, n, "%.*s", (int)(slash - a->operand), a->operand);
    return buf;
}

ctn_status open_tokenizer(const args *a, ctn_tokenizer **t)
{
    char buf[4096];
    const char *path = tokenizer_path(a, buf, sizeof buf);
    if (!path[0]) return CTN_OK;
    return ctn_tokenizer_open(t, path,
                              CTN_OPT(ctn_tokenizer_opt, .keep_case = args_flag(a, "keep-case")));
}

/* Text that is to be encoded, unless there is no tokenizer. */
static bool is_text(const task *t, const char *path)
{
    return ends_with(path, ".txt") && args_int(t->a, "token-bytes") == 0;
}

/* Open the tokenizer if it is needed. It tells the size of the vocabulary. */
static ctn_status settle_tokenizer(task *t, const char *path)
{
    const bool given = args_text(t->a, "tokenizer")[0] != 0;
    if (t->tokenizer) return CTN_OK;
    if (!t->masked && !given && !(t->published && is_text(t, path))) return CTN_OK;
    ctn_status st = open_tokenizer(t->a, &t->tokenizer);
    if (!given && (st == CTN_ENOTFOUND || (st == CTN_OK && !t->tokenizer))) {
        t->now = DOING_SETUP; /* an error in the command line, not in the data */
        ctn_error_clear();
        return ctn_fail(CTN_EARG,
                        "%s has no tokenizer: use --tokenizer PATH, for example vocab.txt",
                        t->a->operand);
    }
    CTN_TRY(st);
    const int64_t tokens = ctn_tokenizer_tokens(t->tokenizer);
    if (t->classes == 0) t->classes = tokens;
    if (t->classes >= tokens) return CTN_OK;
    t->now = DOING_SETUP;
    return ctn_fail(CTN_EARG, "--classes is %lld, but the tokenizer has %lld tokens",
                    (long long)t->classes, (long long)tokens);
}

/* ---- windows --------------------------------------------------------------------------------- */

static ctn_status encode(const task *t, ctn_dataset **ds, const char *path, const char *file,
                         ctn_tokens_opt *o)
{
    int64_t tokens = 0;
    o->bytes = ctn_tokenizer_tokens(t->tokenizer) <= 65536 ? 2 : 4; /* as ctn_tokens_pack writes */
    CTN_TRY(
        ctn_tokens_pack(t->tokenizer, 1, &path, file, &tokens,
                        CTN_OPT(ctn_tokens_pack_opt, .threads = (int)args_int(t->a, "threads"))));
    if (tokens <= o->length)
        return ctn_fail(CTN_EARG, "%s has only %lld tokens: use more text or a smaller --length",
                        path, (long long)tokens);
    return ctn_tokens_open(ds, file, o);
}

static ctn_status open_text(const task *t, ctn_dataset **ds, const char *path, ctn_tokens_opt *o)
{
    char dir[2048], file[4096];
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%s/catena-XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return ctn_fail(CTN_EIO,
                        "cannot make the folder %s for the tokens of %s: %s; set TMPDIR to another "
                        "folder, or use catena pack",
                        dir, path, strerror(errno));
    ctn_status st = encode(t, ds, path, join(file, sizeof file, dir, "tokens.bin"), o);
    unlink(file); /* the dataset keeps it open, or in memory */
    rmdir(dir);
    return st;
}

ctn_status tokens_open(task *t, ctn_dataset **ds, const char *path)
{
    enum { AROUND = 2 }; /* tokens that ctn_dataset_mask puts around a window */
    int64_t bytes = args_int(t->a, "token-bytes"), length = args_int(t->a, "length");
    CTN_TRY(settle_tokenizer(t, path));
    if (t->masked && length <= AROUND) {
        t->now = DOING_SETUP;
        return ctn_fail(CTN_EARG,
                        "--length is %lld, expected at least %d: a sample of %s begins with [CLS] "
                        "and ends with [SEP]",
                        (long long)length, AROUND + 1, t->a->operand);
    }
    ctn_tokens_opt o = {.struct_size = sizeof o, .length = t->masked ? length - AROUND : length};
    if (t->tokenizer && is_text(t, path)) return open_text(t, ds, path, &o);
    if (bytes == 0) bytes = ends_with(path, ".txt") ? 1 : 2;
    if (t->classes == 0) t->classes = bytes == 1 ? 256 : 50257; /* bytes, or GPT-2's tokens */
    o.bytes = (int)bytes;
    return ctn_tokens_open(ds, path, &o);
}

/* ---- hidden words ---------------------------------------------------------------------------- */

ctn_status tokens_mask(task *t)
{
    const double share = args_real(t->a, "mask-share");
    if (!t->masked || t->kind != DATA_TOKENS) return CTN_OK;
    if (!(share > 0 && share <= 1)) {
        t->now = DOING_SETUP;
        return ctn_fail(CTN_EARG, "--mask-share is %g, expected more than 0 and at most 1", share);
    }
    for (int k = 0; k < 2; k++) {
        ctn_dataset *masked = NULL;
        if (!t->set[k]) continue;
        CTN_TRY(ctn_dataset_mask(&masked, t->set[k], t->tokenizer,
                                 CTN_OPT(ctn_mask_opt, .chosen = share)));
        t->set[k] = masked;
    }
    return CTN_OK;
}
