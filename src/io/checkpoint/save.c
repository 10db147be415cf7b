/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves the state of a job. A rank's files are written by a thread of its own while the training
 * goes on. When all ranks are done they vote: every rank sends rank 0 its lines of the manifest,
 * or its failure. Rank 0 then publishes the folder, in its thread again. The training waits for
 * the copy of the state and for the vote, and for nothing else.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "comm/comm.h"
#include "io/checkpoint/checkpoint.h"

#define FAILED "failed\t" /* a line of a report: rank, status and message, between tabs */

typedef enum { IDLE, WRITING, PUBLISHING } stage;

struct ctn__saver {
    ctn_comm *c;
    char *dir;
    int64_t keep;
    bool apart; /* each rank has a state of its own */
    ctn__snapshot snapshot;
    stage stage;
    ctn__text folder; /* in the making */
    bool mine;        /* the folder is rank 0's to remove */
    int texts;
    ctn__ckpt_text text[CTN__CKPT_TEXTS];
    ctn__text lines; /* of this rank; on rank 0 after the vote, of all ranks */
    ctn_status st;   /* of this rank's part, or of publishing */
    char why[1024];  /* its message */
    bool threaded;   /* a thread runs or must be joined */
    pthread_t thread;
    atomic_bool done; /* the thread has finished */
};

static int rank_of(const ctn__saver *s)
{
    return s->c ? ctn_comm_rank(s->c) : 0;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void keep_status(ctn__saver *s, ctn_status st)
{
    s->st = st;
    if (st < 0) snprintf(s->why, sizeof s->why, "%s", ctn_error_message());
}

static ctn_status publish(ctn__saver *s)
{
    ctn__text manifest = {0};
    int64_t number;
    ctn_status st = ctn__manifest_finish(&s->lines, &manifest);
    if (st == CTN_OK) st = ctn__numbered_publish(s->folder.s, s->dir, &manifest, s->keep, &number);
    if (st < 0) ctn__numbered_drop(s->folder.s);
    ctn__text_free(&manifest);
    return st;
}

static void *work(void *self)
{
    ctn__saver *s = self;
    if (s->stage == PUBLISHING) keep_status(s, publish(s));
    else keep_status(s, ctn__ckpt_write(&s->snapshot, s->folder.s, s->texts, s->text, &s->lines));
    ctn_error_clear();
    atomic_store(&s->done, true);
    return NULL;
}

/* Without a thread the work is done here. */
static void start(ctn__saver *s)
{
    atomic_store(&s->done, false);
    s->threaded = pthread_create(&s->thread, NULL, work, s) == 0;
    if (!s->threaded) work(s);
}

static void join(ctn__saver *s)
{
    if (s->threaded) pthread_join(s->thread, NULL);
    s->threaded = false;
}

/* ---- making ---------------------------------------------------------------------------------- */

ctn_status ctn__saver_new(ctn__saver **out, ctn_comm *c, const char *dir, int64_t keep)
{
    ctn__saver *s = *out = ctn__calloc(1, sizeof *s);
    if (!s) return CTN_ENOMEM;
    s->c = c;
    s->keep = keep;
    s->dir = ctn__strdup(dir);
    atomic_init(&s->done, true);
    if (s->dir) return CTN_OK;
    ctn__free(s);
    *out = NULL;
    return CTN_ENOMEM;
}

void ctn__saver_apart(ctn__saver *s)
{
    s->apart = true;
}

static void drop_texts(ctn__saver *s)
{
    for (int i = 0; i < s->texts; i++) ctn__text_free(&s->text[i].text);
    s->texts = 0;
}

void ctn__saver_free(ctn__saver *s)
{
    if (!s) return;
    join(s);
    if (s->stage == WRITING && s->mine) ctn__numbered_drop(s->folder.s);
    drop_texts(s);
    ctn__snapshot_free(&s->snapshot);
    ctn__text_free(&s->folder);
    ctn__text_free(&s->lines);
    ctn__free(s->dir);
    ctn__free(s);
}

/* ---- beginning ------------------------------------------------------------------------------- */

/* Rank 0 makes the folder, and the others look whether they see it. *least: bytes for each rank
 * that writes; -1: only rank 0 does. */
static ctn_status open_folder(ctn__saver *s, int64_t *least)
{
    int64_t seen = 1, scratch;
    char *path = NULL;
    ctn_status st = rank_of(s) == 0 ? ctn__numbered_begin(&s->folder, s->dir, s->c) : CTN_OK;
    *least = ctn__env_int(CTN__ENV_CHECKPOINT_MB) * 1000000;
    CTN_TRY(ctn__comm_root_status(s->c, st));
    s->mine = rank_of(s) == 0;
    if (!s->c) return CTN_OK;
    if (s->mine) path = s->folder.s;
    CTN_TRY(ctn__comm_share_text(s->c, &path));
    if (!s->mine) {
        seen = access(path, W_OK | X_OK) == 0;
        s->folder.n = 0;
        ctn__text_add(&s->folder, "%s", path);
        ctn__free(path);
    }
    CTN_TRY(ctn__comm_sum(s->c, &seen, 1, CTN_I64, &scratch));
    if (seen < ctn_comm_size(s->c)) *least = -1;
    if (*least < 0 && s->apart) {
        if (s->mine) ctn__numbered_drop(s->folder.s);
        return ctn_fail(CTN_EIO, "checkpoint: not all ranks can write to %s", s->dir);
    }
    return ctn_comm_broadcast(s->c, least, sizeof *least, 0);
}

/* A rank that cannot take part in a collective visit cannot tell the others in any other way. */
static ctn_status take(ctn__saver *s, int64_t least, bool values, int n,
                       const ctn_state_part *parts)
{
    if (s->apart) least = CTN__SNAPSHOT_OWN;
    ctn_status st = ctn__snapshot_take(&s->snapshot, s->c, least, values, n, parts);
    if (s->apart) {
        s->snapshot.writers = s->c ? ctn_comm_size(s->c) : 1;
        s->snapshot.file = rank_of(s);
    }
    return s->snapshot.divided ? st : ctn__comm_alone(s->c, st);
}

/* Rank 0 looks at the disk for all: a state of `bytes` must fit. */
static ctn_status check_room(const ctn__saver *s, uint64_t bytes)
{
    struct statvfs v;
    if (statvfs(s->dir, &v) != 0) return CTN_OK; /* unknown */
    const double room = (double)v.f_bavail * (double)v.f_frsize;
    if (v.f_blocks == 0 || room >= (double)bytes) return CTN_OK;
    return ctn_fail(CTN_EIO,
                    "checkpoint: %s has %.1f MB left, but a state takes %.1f MB: make room, or "
                    "choose another folder",
                    s->dir, room * 1e-6, (double)bytes * 1e-6);
}

/* A file that is written and removed again. */
static ctn_status try_folder(ctn__saver *s, uint64_t bytes)
{
    ctn__text text = {0};
    ctn__text_add(&text, "This file tests whether the folder can be written to.\n");
    ctn_status st = ctn__numbered_write(s->folder.s, "test.txt", &text);
    ctn__text_free(&text);
    if (st == CTN_OK) st = check_room(s, bytes);
    ctn__numbered_drop(s->folder.s);
    return st;
}

ctn_status ctn__saver_check(ctn__saver *s, int n, const ctn_state_part *parts)
{
    int64_t least = -1;
    CTN_TRY(open_folder(s, &least));
    ctn_status st = take(s, least, false, n, parts);
    int64_t bytes[2] = {(int64_t)s->snapshot.bytes, st < 0}, scratch[2];
    if (st == CTN_EPEER) return st;
    if (s->c) CTN_TRY(ctn__comm_sum(s->c, bytes, 2, CTN_I64, scratch));
    if (rank_of(s) == 0) {
        const ctn_status t = try_folder(s, (uint64_t)bytes[0]);
        if (st == CTN_OK) st = t;
    }
    if (bytes[1] > 0 && st == CTN_OK)
        st = ctn_fail(CTN_ENOMEM, "checkpoint: a rank has no memory for a copy of its state");
    return ctn__comm_root_status(s->c, st);
}

ctn_status ctn__saver_begin(ctn__saver *s, int n, const ctn_state_part *parts, int texts,
                            ctn__ckpt_text *text)
{
    int64_t least = -1;
    join(s);
    if (ctn__saver_failure(s) < 0) ctn__warn("%s", ctn_error_message());
    drop_texts(s);
    for (int i = 0; i < texts; i++) s->text[i] = text[i];
    s->texts = texts;
    s->lines.n = 0;
    if (s->lines.s) s->lines.s[0] = 0;
    CTN_TRY(open_folder(s, &least));
    s->stage = WRITING;
    const ctn_status st = take(s, least, true, n, parts);
    if (st == CTN_EPEER) return st;
    keep_status(s, st);
    if (st == CTN_OK) start(s);
    else atomic_store(&s->done, true);
    return CTN_OK;
}

bool ctn__saver_busy(const ctn__saver *s)
{
    return s->stage == WRITING;
}

bool ctn__saver_written(const ctn__saver *s)
{
    return atomic_load(&((ctn__saver *)s)->done);
}

/* ---- the vote -------------------------------------------------------------------------------- */

/* The first failure in the lines of all ranks, and how many there are. */
static ctn_status find_failure(const ctn__text *lines, bool many)
{
    int n = 0, rank = 0, status = CTN_EIO, at = 0;
    const char *first = NULL;
    char more[40] = "";
    for (const char *p = lines->s; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
        if (strncmp(p, FAILED, strlen(FAILED)) == 0 && n++ == 0) first = p + strlen(FAILED);
    if (!first || sscanf(first, "%d\t%d\t%n", &rank, &status, &at) != 2) return CTN_OK;
    first += at;
    const int length = (int)strcspn(first, "\n");
    if (!many) return ctn_fail((ctn_status)status, "%.*s", length, first);
    if (n > 1) snprintf(more, sizeof more, " (%d other ranks failed too)", n - 1);
    return ctn_fail((ctn_status)status, "rank %d: %.*s%s", rank, length, first, more);
}

ctn_status ctn__saver_vote(ctn__saver *s)
{
    join(s);
    if (s->st < 0) {
        s->lines.n = 0;
        s->lines.failed = false;
        ctn__text_add(&s->lines, FAILED "%d\t%d\t%.*s\n", rank_of(s), (int)s->st,
                      (int)strcspn(s->why, "\n"), s->why);
    }
    ctn_status st = ctn__comm_collect(s->c, &s->lines);
    if (st == CTN_EPEER) return st;
    s->stage = IDLE;
    if (rank_of(s) == 0 && st == CTN_OK) st = find_failure(&s->lines, s->c != NULL);
    if (s->mine && st < 0) ctn__numbered_drop(s->folder.s);
    CTN_TRY(ctn__comm_root_status(s->c, st));
    s->st = CTN_OK;
    if (rank_of(s) != 0) return CTN_OK;
    s->stage = PUBLISHING;
    start(s);
    return CTN_OK;
}

ctn_status ctn__saver_failure(ctn__saver *s)
{
    if (s->stage != PUBLISHING || !ctn__saver_written(s)) return CTN_OK;
    join(s);
    s->stage = IDLE;
    return s->st < 0 ? ctn_fail(s->st, "%s", s->why) : CTN_OK;
}

ctn_status ctn__saver_wait(ctn__saver *s)
{
    join(s);
    return ctn__comm_root_status(s->c, ctn__saver_failure(s));
}
