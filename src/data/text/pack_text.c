/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes text files to one token file, on several threads. The caller's thread reads pieces of
 * text and writes their tokens, both in order; in between, all threads encode pieces, whichever is
 * next. A piece ends where no token can cross (ctn__tokenizer_cut), so neither the number of
 * threads nor the size of the pieces affects the result. Text without such a place is read in
 * larger pieces until there is one.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/newfile.h"
#include "base/readfile.h"
#include "data/text/text.h"

enum { ROUND = 4 }; /* pieces per thread between two writes */

struct piece {
    char *text;
    size_t text_room, bytes;
    int32_t *ids;
    size_t ids_room;
    int64_t n; /* tokens, or a negative status */
    bool last; /* ends a file */
};

struct packer {
    const ctn_tokenizer *t;
    const char *const *path;
    int files, file; /* the one that is read */
    int fd;          /* -1: not open */
    uint64_t at, size;
    size_t want; /* bytes of a piece */
    struct piece *piece;
    int room, n; /* pieces, and those in use */
    atomic_int next;
    int32_t end; /* -1: none */
    int width;   /* bytes per token */
    ctn__newfile out;
    int64_t tokens, done, all; /* tokens written; bytes read and in all files */
};

/* ---- reading --------------------------------------------------------------------------------- */

/* Reads up to `want` bytes, or more if they cannot be cut. */
static ctn_status read_piece(struct packer *k, struct piece *p)
{
    const char *path = k->path[k->file];
    const uint64_t left = k->size - k->at;
    for (size_t want = k->want;; want *= 2) {
        const size_t bytes = want < left ? want : (size_t)left;
        if (bytes > p->text_room) {
            ctn__free(p->text);
            p->text_room = 0;
            p->text = ctn__malloc(bytes);
            if (!p->text) return CTN_ENOMEM;
            p->text_room = bytes;
        }
        CTN_TRY(ctn__file_read("pack", path, k->fd, p->text, bytes, k->at));
        p->bytes = bytes < left ? ctn__tokenizer_cut(k->t, p->text, bytes) : bytes;
        if (p->bytes || bytes == left) break;
    }
    k->at += p->bytes;
    k->done += (int64_t)p->bytes;
    p->last = k->at == k->size;
    return CTN_OK;
}

static ctn_status read_round(struct packer *k)
{
    for (k->n = 0; k->n < k->room && k->file < k->files; k->n++) {
        struct stat info = {0};
        if (k->fd < 0) {
            CTN_TRY(ctn__file_open("pack", k->path[k->file], &k->fd, &info));
            k->at = 0;
            k->size = (uint64_t)info.st_size;
        }
        CTN_TRY(read_piece(k, &k->piece[k->n]));
        if (!k->piece[k->n].last) continue;
        close(k->fd);
        k->fd = -1;
        k->file++;
    }
    return CTN_OK;
}

/* ---- encoding -------------------------------------------------------------------------------- */

static bool reserve(struct piece *p, size_t room)
{
    if (room <= p->ids_room) return true;
    ctn__free(p->ids);
    p->ids = ctn__malloc(ctn__mul(room, sizeof *p->ids));
    p->ids_room = p->ids ? room : 0;
    return p->ids != NULL;
}

static void encode(const ctn_tokenizer *t, struct piece *p)
{
    p->n = (int64_t)p->bytes; /* enough, unless normalisation makes the text longer */
    do {
        p->n = reserve(p, (size_t)p->n)
                   ? ctn_tokenizer_encode(t, p->text, p->bytes, p->ids, p->ids_room)
                   : CTN_ENOMEM;
    } while (p->n > 0 && (size_t)p->n > p->ids_room);
}

static void *thread_main(void *arg)
{
    struct packer *k = arg;
    for (int i; (i = atomic_fetch_add(&k->next, 1)) < k->n;) encode(k->t, &k->piece[i]);
    return NULL;
}

/* A thread that cannot be started is not an error, because the caller encodes too. Signals of the
 * host program are blocked in the threads, as in those of the loader. */
static ctn_status encode_round(struct packer *k, pthread_t *thread, int threads)
{
    sigset_t all, old;
    int started = 0;
    atomic_store(&k->next, 0);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (started < threads - 1 && started < k->n - 1 &&
           pthread_create(&thread[started], NULL, thread_main, k) == 0)
        started++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    thread_main(k);
    for (int i = 0; i < started; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < k->n; i++) /* the message of another thread is lost */
        if (k->piece[i].n < 0)
            return ctn_fail((ctn_status)k->piece[i].n, "pack: cannot encode a text of %zu bytes",
                            k->piece[i].bytes);
    return CTN_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Little-endian, in place: a token takes at most the 4 bytes that it has in memory. */
static size_t to_bytes(int32_t *ids, int64_t n, int width)
{
    uint8_t *p = (uint8_t *)ids;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t v = (uint32_t)ids[i];
        for (int b = 0; b < 4 && b < width; b++) *p++ = (uint8_t)(v >> 8 * b);
    }
    return (size_t)n * (size_t)width;
}

static ctn_status write_round(struct packer *k)
{
    for (int i = 0; i < k->n; i++) {
        struct piece *p = &k->piece[i];
        int32_t end = k->end;
        const bool ends = p->last && end >= 0;
        CTN_TRY(ctn__newfile_write(&k->out, p->ids, to_bytes(p->ids, p->n, k->width)));
        if (ends) CTN_TRY(ctn__newfile_write(&k->out, &end, to_bytes(&end, 1, k->width)));
        k->tokens += p->n + ends;
    }
    return CTN_OK;
}

/* ---- setting up ------------------------------------------------------------------------------ */

static ctn_status set_end(struct packer *k, const char *end)
{
    k->end = end ? ctn_tokenizer_id(k->t, end, strlen(end)) : ctn_tokenizer_end(k->t);
    if (k->end >= 0 || (end && !end[0])) return CTN_OK;
    return ctn_fail(CTN_ENOTFOUND,
                    "pack: the vocabulary has no token %s to end a document: name another one, or "
                    "\"\" for none",
                    end ? end : "such as <|endoftext|>");
}

static ctn_status add_sizes(struct packer *k)
{
    for (int i = 0; i < k->files; i++) {
        struct stat info = {0};
        int fd = -1;
        CTN_TRY(ctn__file_open("pack", k->path[i], &fd, &info));
        close(fd);
        k->all += (int64_t)info.st_size;
    }
    return CTN_OK;
}

static ctn_status pack_all(struct packer *k, const char *out, const ctn_tokens_pack_opt *o,
                           int threads)
{
    ctn_status st = CTN_OK;
    pthread_t *thread = ctn__calloc((size_t)threads, sizeof *thread);
    k->room = ROUND * threads;
    k->piece = ctn__calloc((size_t)k->room, sizeof *k->piece);
    if (!thread || !k->piece) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    CTN_TRY_GOTO(st, done, ctn__newfile_open(&k->out, out));
    while (k->file < k->files) {
        if (o->progress) o->progress(o->user, k->done, k->all);
        CTN_TRY_GOTO(st, done, read_round(k));
        CTN_TRY_GOTO(st, done, encode_round(k, thread, threads));
        CTN_TRY_GOTO(st, done, write_round(k));
    }
    CTN_TRY_GOTO(st, done, ctn__newfile_commit(&k->out));
    if (o->progress) o->progress(o->user, k->all, k->all);
done:
    ctn__free(thread);
    return st;
}

ctn_status ctn_tokens_pack(const ctn_tokenizer *t, int files, const char *const *path,
                           const char *out, int64_t *tokens, const ctn_tokens_pack_opt *opt)
{
    ctn_tokens_pack_opt o;
    if (!t || !path || !out || files < 1) return ctn_fail(CTN_EARG, "pack: NULL or no file");
    if (tokens) *tokens = 0;
    CTN_TRY(ctn__opt("pack", &o, sizeof o, opt));
    if (o.threads < 0 || o.threads > 4096 || o.piece < 0 || o.piece > INT32_MAX)
        return ctn_fail(CTN_EARG,
                        "pack: threads is %d and piece is %lld, expected 0 to 4096 and 0 to %d",
                        o.threads, (long long)o.piece, INT32_MAX);
    struct packer k = {.t = t, .path = path, .files = files, .fd = -1, .out = {.fd = -1}};
    k.want = o.piece ? (size_t)o.piece : (size_t)256 << 10;
    k.width = ctn_tokenizer_tokens(t) <= 65536 ? 2 : 4;
    CTN_TRY(set_end(&k, o.end));
    CTN_TRY(add_sizes(&k));
    const ctn_status st = pack_all(&k, out, &o, o.threads ? o.threads : ctn__default_threads(NULL));
    for (int i = 0; k.piece && i < k.room; i++) {
        ctn__free(k.piece[i].text);
        ctn__free(k.piece[i].ids);
    }
    ctn__free(k.piece);
    ctn__newfile_close(&k.out);
    if (k.fd >= 0) close(k.fd);
    if (st == CTN_OK && tokens) *tokens = k.tokens;
    return st;
}
