/* SPDX-License-Identifier: Apache-2.0
 *
 * The TensorBoard extension: writes every row of the log as scalars to an event file. A file is
 * a sequence of little-endian records
 *     u64 bytes | u32 masked CRC-32C of these 8 | protobuf message | u32 masked CRC-32C of it
 * with the messages of event.proto. Every run writes its own file. The file of a resumed run
 * begins with a session start, which makes readers drop whatever an earlier run wrote from that
 * step on, so no step appears twice. A record is written in one piece, so the file can be read at
 * any time.
 */
#include "train/show.h"

#ifdef CTN_HAVE_PROTOBUFC

#include <errno.h>
#include <event.pb-c.h>
#include <fcntl.h>
#include <math.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    ctn__text folder, path;
    int fd;       /* -1: not open, because not started or after an error */
    int64_t rows; /* already written, or present before this run */
    uint32_t crc[256];
} board;

static uint32_t masked_crc(const board *b, const uint8_t *p, size_t n)
{
    uint32_t c = 0xffffffffu;
    for (size_t i = 0; i < n; i++) c = b->crc[(c ^ p[i]) & 0xff] ^ c >> 8;
    c = ~c;
    return (c >> 15 | c << 17) + 0xa282ead8u;
}

static void make_crc(board *b)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = c >> 1 ^ (c & 1 ? 0x82f63b78u : 0);
        b->crc[i] = c;
    }
}

static void put(uint8_t *to, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) to[i] = (uint8_t)(v >> (8 * i));
}

static ctn_status write_event(board *b, int64_t step, Catena__Event *e)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    e->wall_time = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    e->step = step;
    size_t n = catena__event__get_packed_size(e), all = n + 16;
    uint8_t *p = ctn__malloc(all);
    if (p == NULL) return CTN_ENOMEM;
    put(p, n, 8);
    put(p + 8, masked_crc(b, p, 8), 4);
    catena__event__pack(e, p + 12);
    put(p + 12 + n, masked_crc(b, p + 12, n), 4);
    ssize_t k = 0;
    for (size_t done = 0; done < all; done += (size_t)k) {
        k = write(b->fd, p + done, all - done);
        if (k < 0 && errno == EINTR) k = 0;
        if (k < 0) break;
    }
    int error = errno;
    ctn__free(p);
    if (k >= 0) return CTN_OK;
    close(b->fd); /* the last record may be incomplete, so nothing can be appended */
    b->fd = -1;
    return ctn_fail(CTN_EIO,
                    "tensorboard: cannot write %s: %s; no more events are written in this run",
                    b->path.s, strerror(error));
}

/* Every run gets a unique file name. Readers process files in the order of their names. */
static ctn_status open_file(board *b)
{
    char host[65] = "";
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == 0) strcpy(host, "localhost");
    ctn_status st = ctn__make_folder(b->folder.s, 0777);
    if (st == CTN_EIO)
        ctn_fail(st, "tensorboard: cannot create the folder %s: %s", b->folder.s, strerror(errno));
    CTN_TRY(st);
    ctn__text_free(&b->path);
    for (int i = 0; i < 1000; i++) {
        b->path.n = 0;
        ctn__text_add(&b->path, "%s/events.out.tfevents.%010lld.%s.%ld.%d", b->folder.s,
                      (long long)time(NULL), host, (long)getpid(), i);
        if (b->path.failed) return CTN_ENOMEM;
        b->fd = open(b->path.s, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
        if (b->fd >= 0) return CTN_OK;
        if (errno != EEXIST) break;
    }
    return ctn_fail(CTN_EIO, "tensorboard: cannot create %s: %s", b->path.s, strerror(errno));
}

static ctn_status board_start(void *self, ctn_trainer *tr)
{
    board *b = self;
    ctn_progress p;
    Catena__Event version = CATENA__EVENT__INIT, start = CATENA__EVENT__INIT;
    Catena__SessionLog session = CATENA__SESSION_LOG__INIT;
    if (b->fd >= 0) close(b->fd);
    b->fd = -1;
    CTN_TRY(open_file(b));
    version.what_case = CATENA__EVENT__WHAT_FILE_VERSION;
    version.file_version = "brain.Event:2";
    CTN_TRY(write_event(b, 0, &version));
    ctn_trainer_progress(tr, &p);
    b->rows = ctn_trainer_rows(tr);
    if (p.iteration == 0) return CTN_OK;
    session.status = CATENA__SESSION_LOG__STATUS__START;
    start.what_case = CATENA__EVENT__WHAT_SESSION_LOG;
    start.session_log = &session;
    return write_event(b, p.iteration + 1, &start);
}

static ctn_status write_row(board *b, const ctn_trainer *tr, int64_t row)
{
    ctn_status st = CTN_OK;
    ctn__arena mem = {0};
    CTN__VEC(Catena__Value *) values = {0};
    Catena__Event e = CATENA__EVENT__INIT;
    Catena__Summary summary = CATENA__SUMMARY__INIT;
    ctn__text tag = {0};
    ctn_progress p;
    const char *name;
    for (int i = 0; (name = ctn_trainer_name(tr, i)) != NULL; i++) {
        double v = ctn_trainer_row_value(tr, row, name);
        if (isnan(v)) continue;
        Catena__Value *value = ctn__arena_get(&mem, sizeof *value);
        if (value == NULL || !ctn__vec_push(&values, value)) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
        catena__value__init(value);
        tag.n = 0;
        ctn__show_text(&tag, name, false); /* protobuf requires UTF-8 */
        value->tag = tag.failed ? NULL : ctn__arena_str(&mem, tag.s);
        if (value->tag == NULL) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
        value->value_case = CATENA__VALUE__VALUE_SIMPLE_VALUE;
        value->simple_value = (float)v;
    }
    summary.n_value = values.n;
    summary.value = values.at;
    e.what_case = CATENA__EVENT__WHAT_SUMMARY;
    e.summary = &summary;
    ctn_trainer_row_progress(tr, row, &p);
    if (values.n > 0) CTN_TRY_GOTO(st, done, write_event(b, p.iteration, &e));
done:
    ctn__text_free(&tag);
    ctn__vec_free(&values);
    ctn__arena_free(&mem);
    return st;
}

static ctn_status board_call(void *self, ctn_trainer *tr)
{
    board *b = self;
    while (b->fd >= 0 && b->rows < ctn_trainer_rows(tr))
        CTN_TRY(ctn__show_forgive(write_row(b, tr, b->rows++)));
    return CTN_OK;
}

static ctn_status board_finish(void *self, ctn_trainer *tr)
{
    board *b = self;
    ctn_status st = board_call(b, tr);
    if (b->fd >= 0) close(b->fd);
    b->fd = -1;
    return st;
}

static void board_release(void *self)
{
    board *b = self;
    if (b == NULL) return;
    if (b->fd >= 0) close(b->fd);
    ctn__text_free(&b->folder);
    ctn__text_free(&b->path);
    ctn__free(b);
}

ctn_status ctn_extend_tensorboard(ctn_trainer *tr, const ctn_trigger *when, const char *dir)
{
    board *b = ctn__calloc(1, sizeof *b);
    if (b == NULL) return CTN_ENOMEM;
    b->fd = -1;
    make_crc(b);
    ctn_status st = ctn__show_path(&b->folder, "extend_tensorboard", tr, dir);
    if (st < 0) {
        board_release(b);
        return st;
    }
    ctn_extension e = {.rank0_only = 1,
                       .start = board_start,
                       .call = board_call,
                       .finish = board_finish,
                       .release = board_release,
                       .self = b};
    /* Checks after every step whether the log has grown. */
    return ctn__show_extend(tr, "tensorboard", dir, when,
                            (ctn_trigger){.kind = CTN_EVERY_ITERATIONS, .n = 1}, e);
}

#else

ctn_status ctn_extend_tensorboard(ctn_trainer *tr, const ctn_trigger *when, const char *dir)
{
    (void)tr, (void)when, (void)dir;
    return ctn_fail(CTN_EUNSUPPORTED, "extend_tensorboard: built without protobuf-c: install "
                                      "libprotobuf-c and its compiler protoc-c, then rebuild");
}

#endif
