/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_halo: y is the block x (N,C,...) of this rank, with elements of the neighbouring blocks
 * around it, or zeros outside of the field. Its gradient is dist_halo_sum, which adds the gradient
 * of the halo to the elements it was copied from and cuts it off. Each is the gradient of the
 * other, because one is the transposed matrix of the other.
 *
 * The dimensions are exchanged one after another, each with the halo of those before it. So the
 * elements at corners come from the neighbour in the last dimension, which has them from its own
 * neighbours: 2 messages per dimension, whatever the number of corners. dist_halo_sum goes through
 * the dimensions in the reverse order.
 *
 * Messages are packed in the order of (N,...,C), whatever layout the plan gives to x and y. A rank
 * first sends up, then down, and first receives from below. Where both neighbours are the same
 * rank, messages therefore match. A rank that is its own neighbour copies.
 */
#include "distributed/grid.h"
#include "ops/ops.h"

/* Attributes after those of all communicating ops: one per spatial dimension, except PERIODIC. */
enum {
    NDIM = CTN__DIST_NATTR,
    RANKS,
    PERIODIC = RANKS + CTN_MAX_SPATIAL,
    BEFORE,
    AFTER = BEFORE + CTN_MAX_SPATIAL,
    NATTR = AFTER + CTN_MAX_SPATIAL
};
_Static_assert(CTN_MAX_SPATIAL == 3, "one name per dimension");
static const char *const halo_names[NATTR] = {"comm",       "rank",     "size",     "root",
                                              "dimensions", "ranks 0",  "ranks 1",  "ranks 2",
                                              "periodic",   "before 0", "before 1", "before 2",
                                              "after 0",    "after 1",  "after 2"};

static ctn_op op_halo, op_sum;

/* A tensor in memory: a block with its halo, y in dist_halo and a copy of gy in dist_halo_sum. */
typedef struct {
    char *p;
    ctn_desc d;
    const int64_t *attr;
    char *message; /* room for the longest one */
} field;

/* The part [begin, begin + n) of spatial dimension i, with the halo of the dimensions before i and
 * without that of those after it: its description, and where it begins, in bytes. */
static int64_t slab(const field *f, int i, int64_t begin, int64_t n, ctn_desc *part)
{
    int64_t off = 0;
    *part = f->d;
    for (int k = i + 1; k < f->d.ndim - 2; k++) {
        off += f->attr[BEFORE + k] * f->d.stride[2 + k];
        part->dim[2 + k] -= f->attr[BEFORE + k] + f->attr[AFTER + k];
    }
    off += begin * f->d.stride[2 + i];
    part->dim[2 + i] = n;
    return off * (int64_t)ctn_dtype_size(f->d.dtype);
}

/* The same elements as (N,...,C). */
static ctn_desc channels_last(const ctn_desc *d)
{
    ctn_desc r = *d;
    for (int k = 1; k + 1 < d->ndim; k++) {
        r.dim[k] = d->dim[k + 1];
        r.stride[k] = d->stride[k + 1];
    }
    r.dim[d->ndim - 1] = d->dim[1];
    r.stride[d->ndim - 1] = d->stride[1];
    return r;
}

#define ADD_ROW(T)                                              \
    do {                                                        \
        T *y = to;                                              \
        const T *x = from;                                      \
        for (int64_t k = 0; k < n; k++) y[k * ts] += x[k * fs]; \
    } while (0)
#define COPY_ROW(T)                                            \
    do {                                                       \
        T *y = to;                                             \
        const T *x = from;                                     \
        for (int64_t k = 0; k < n; k++) y[k * ts] = x[k * fs]; \
    } while (0)

static void move_row(void *to, int64_t ts, const void *from, int64_t fs, int64_t n, ctn_dtype type,
                     bool add)
{
    if (!add && ts == 1 && fs == 1) memcpy(to, from, (size_t)n * ctn_dtype_size(type));
    else if (type == CTN_F32 && add) ADD_ROW(float);
    else if (type == CTN_F32) COPY_ROW(float);
    else if (add) ADD_ROW(double);
    else COPY_ROW(double);
}

/* to = from, or to += from, for equal shapes with any strides. Inner dimensions that are dense on
 * both sides are one row. */
static void move(char *to, const ctn_desc *td, const char *from, const ctn_desc *fd, bool add)
{
    const int64_t size = (int64_t)ctn_dtype_size(td->dtype);
    int outer = td->ndim;
    int64_t n = 1, ts = 1, fs = 1, rows = 1;
    while (outer > 0 &&
           (td->dim[outer - 1] == 1 || (td->stride[outer - 1] == n && fd->stride[outer - 1] == n)))
        n *= td->dim[--outer];
    if (n == 1 && outer > 0) { /* none is dense: the last one is a row all the same */
        outer--;
        n = td->dim[outer];
        ts = td->stride[outer];
        fs = fd->stride[outer];
    }
    for (int k = 0; k < outer; k++) rows *= td->dim[k];
#pragma omp parallel for schedule(static) if (rows * n > CTN__GRAIN)
    for (int64_t r = 0; r < rows; r++) {
        int64_t t = 0, f = 0, rest = r;
        for (int k = outer - 1; k >= 0; k--) {
            const int64_t i = rest % td->dim[k];
            rest /= td->dim[k];
            t += i * td->stride[k];
            f += i * fd->stride[k];
        }
        move_row(to + t * size, ts, from + f * size, fs, n, td->dtype, add);
    }
}

static void pack(const field *f, int i, int64_t begin, int64_t n)
{
    ctn_desc part;
    const char *p = f->p + slab(f, i, begin, n, &part);
    part = channels_last(&part);
    ctn_desc d = part;
    ctn__plain(&d);
    move(f->message, &d, p, &part, false);
}

static void unpack(const field *f, int i, int64_t begin, int64_t n, bool add)
{
    ctn_desc part;
    char *p = f->p + slab(f, i, begin, n, &part);
    part = channels_last(&part);
    ctn_desc d = part;
    ctn__plain(&d);
    move(p, &part, f->message, &d, add);
}

/* Copies a block in the order of its memory. */
static void copy_block(char *to, ctn_desc td, const char *from, ctn_desc fd)
{
    if (td.stride[1] == 1 && fd.stride[1] == 1) {
        td = channels_last(&td);
        fd = channels_last(&fd);
    }
    move(to, &td, from, &fd, false);
}

/* The rank that is `step` further in dimension i; -1: outside of the field. */
static int neighbour(const int64_t *attr, int i, int step)
{
    int64_t below = 1; /* ranks per step in dimension i */
    for (int k = i + 1; k < attr[NDIM]; k++) below *= attr[RANKS + k];
    const int64_t n = attr[RANKS + i], at = attr[CTN__DIST_RANK] / below % n;
    int64_t to = at + step;
    if (i < CTN_MAX_SPATIAL && (attr[PERIODIC] >> i & 1)) to = (to + n) % n;
    if (to < 0 || to >= n) return -1;
    return (int)(attr[CTN__DIST_RANK] + (to - at) * below);
}

static size_t message_bytes(const field *f, int i, int64_t n)
{
    ctn_desc part;
    (void)slab(f, i, 0, n, &part);
    return ctn__bytes(&part);
}

/* One message in each of two directions. Sends [from, +n) of dimension i to the neighbour `step`
 * further, and puts what comes from the other side to [to, +n): it replaces what is there, or is
 * added. Zeros come from outside of the field. */
typedef struct {
    int step;
    int64_t from, to, n;
    bool add;
} shift;

static ctn_status start(const field *f, int i, const shift *s)
{
    const int rank = neighbour(f->attr, i, s->step);
    const size_t bytes = message_bytes(f, i, s->n);
    if (rank < 0 || bytes == 0 || rank == f->attr[CTN__DIST_RANK]) return CTN_OK;
    pack(f, i, s->from, s->n);
    return ctn__comm_send(ctn__dist_comm(f->attr), CTN__TAG_HALO, f->message, bytes, rank);
}

static ctn_status finish(const field *f, int i, const shift *s)
{
    const int rank = neighbour(f->attr, i, -s->step);
    const size_t bytes = message_bytes(f, i, s->n);
    if (bytes == 0 || (rank < 0 && s->add)) return CTN_OK;
    if (rank < 0) memset(f->message, 0, bytes);
    else if (rank == f->attr[CTN__DIST_RANK]) pack(f, i, s->from, s->n);
    else
        CTN_TRY(ctn__comm_receive(ctn__dist_comm(f->attr), CTN__TAG_HALO, f->message, bytes, rank));
    unpack(f, i, s->to, s->n, s->add);
    return CTN_OK;
}

static ctn_status exchange(const field *f, int i, bool add)
{
    const int64_t before = f->attr[BEFORE + i], after = f->attr[AFTER + i];
    const int64_t end = f->d.dim[2 + i] - after; /* the block is [before, end) */
    /* Going up, the last elements of a block become the halo before the next one. */
    shift up = {.step = 1, .from = end - before, .to = 0, .n = before};
    shift down = {.step = -1, .from = before, .to = end, .n = after};
    if (add) { /* back: the halo before a block is added to the last elements of the previous one */
        up = (shift){.step = 1, .from = end, .to = before, .n = after, .add = true};
        down = (shift){.step = -1, .from = 0, .to = end - before, .n = before, .add = true};
    }
    CTN_TRY(start(f, i, &up));
    CTN_TRY(start(f, i, &down));
    CTN_TRY(finish(f, i, &up));
    return finish(f, i, &down);
}

/* ---- the ops --------------------------------------------------------------------------------- */

static ctn_status check(const ctn_infer_args *a, const ctn_desc *block)
{
    char t[128];
    CTN_TRY(ctn__dist_summable(a));
    if (block->ndim != 2 + (int)a->attr[NDIM])
        return ctn_fail(CTN_ESHAPE, "%s: x is %s, expected (N,C,...) with %lld spatial dimensions",
                        a->name, ctn__shape_text(a->in[0], t, sizeof t), (long long)a->attr[NDIM]);
    for (int i = 0; i < a->attr[NDIM]; i++) {
        const int64_t before = a->attr[BEFORE + i], after = a->attr[AFTER + i];
        const int64_t n = block->dim[2 + i];
        if (before < 0 || after < 0 || before > n || after > n)
            return ctn_fail(CTN_ESHAPE,
                            "%s: a halo of %lld and %lld in dimension %d, but the block has only "
                            "%lld elements there",
                            a->name, (long long)before, (long long)after, i, (long long)n);
    }
    return CTN_OK;
}

static void resize(ctn_desc *d, const int64_t *attr, int sign)
{
    for (int i = 0; i < attr[NDIM] && 2 + i < d->ndim; i++)
        d->dim[2 + i] += sign * (attr[BEFORE + i] + attr[AFTER + i]);
}

static ctn_status halo_infer(ctn_infer_args *a)
{
    a->out[0] = *a->in[0];
    CTN_TRY(check(a, a->in[0]));
    resize(&a->out[0], a->attr, 1);
    return CTN_OK;
}

static ctn_status sum_infer(ctn_infer_args *a)
{
    a->out[0] = *a->in[0];
    resize(&a->out[0], a->attr, -1);
    return check(a, &a->out[0]);
}

/* Bytes of the longest message, rounded to cache lines. */
static size_t longest(const ctn_desc *padded, const int64_t *attr)
{
    const field f = {.d = *padded, .attr = attr};
    size_t most = 0;
    for (int i = 0; i < attr[NDIM]; i++) {
        const int64_t b = attr[BEFORE + i], e = attr[AFTER + i];
        const size_t n = message_bytes(&f, i, b > e ? b : e);
        if (n > most) most = n;
    }
    return (most + 63) / 64 * 64;
}

static ctn_status halo_prepare(ctn_prepare_args *a)
{
    a->scratch = longest(&a->dout[0], a->attr);
    return CTN_OK;
}

/* The copy of gy follows the message. */
static ctn_status sum_prepare(ctn_prepare_args *a)
{
    a->scratch = longest(&a->din[0], a->attr) + ctn__bytes(&a->din[0]);
    return CTN_OK;
}

/* The block without its halo: where it begins in f, and its description. */
static char *block_of(const field *f, ctn_desc *d)
{
    int64_t off = 0;
    *d = f->d;
    resize(d, f->attr, -1);
    for (int i = 0; i < f->attr[NDIM]; i++) off += f->attr[BEFORE + i] * f->d.stride[2 + i];
    return f->p + off * (int64_t)ctn_dtype_size(f->d.dtype);
}

static ctn_status halo_run(const ctn_run_args *a)
{
    const field f = {a->out[0], a->dout[0], a->attr, a->scratch};
    ctn_desc d;
    char *block = block_of(&f, &d);
    copy_block(block, d, a->in[0], a->din[0]);
    for (int i = 0; i < a->attr[NDIM]; i++) CTN_TRY(exchange(&f, i, false));
    return CTN_OK;
}

static ctn_status sum_run(const ctn_run_args *a)
{
    char *copy = (char *)a->scratch + longest(&a->din[0], a->attr);
    const field f = {copy, a->din[0], a->attr, a->scratch};
    ctn_desc d;
    memcpy(copy, a->in[0], ctn__bytes(&a->din[0]));
    for (int i = (int)a->attr[NDIM] - 1; i >= 0; i--) CTN_TRY(exchange(&f, i, true));
    const char *block = block_of(&f, &d);
    copy_block(a->out[0], a->dout[0], block, d);
    return CTN_OK;
}

static ctn_status grad_by(const ctn_grad_args *a, ctn_op *op)
{
    return ctn__grad_to(a, 0,
                        ctn__apply1(a->at, a->ctx, op, 1, &a->gout[0], NATTR, a->attr, 0, NULL));
}

static ctn_status halo_grad(const ctn_grad_args *a)
{
    return grad_by(a, &op_sum);
}

static ctn_status sum_grad(const ctn_grad_args *a)
{
    return grad_by(a, &op_halo);
}

#define FIELDS                                                                                \
    .struct_size = sizeof(ctn_op), .nin = 1, .nout = 1, .flags = CTN_OP_ORDERED, .order = -1, \
    .prec = CTN_PREC_F32, .spatial_in = CTN_OPERAND(0), .spatial_out = CTN_OPERAND(0),        \
    .attr_names = halo_names

static ctn_op op_halo = {
    .name = "dist_halo",
    FIELDS,
    .infer = halo_infer,
    .grad = halo_grad,
    .prepare = halo_prepare,
    .run = halo_run,
};

static ctn_op op_sum = {
    .name = "dist_halo_sum",
    FIELDS,
    .infer = sum_infer,
    .grad = sum_grad,
    .prepare = sum_prepare,
    .run = sum_run,
};

ctn_tensor *ctn_dist_halo_at(const char *at, ctn_dist_grid *g, ctn_tensor *x,
                             const ctn_dist_halo_opt *opt)
{
    int64_t attr[NATTR] = {0};
    ctn_dist_halo_opt o;
    if (!g) {
        ctn_fail(CTN_EARG, "dist_halo: no grid (%s)", at);
        return NULL;
    }
    if (ctn__opt("dist_halo", &o, sizeof o, opt) < 0) return NULL;
    if (ctn__dist_attr("dist_halo", g->c, 0, attr) < 0) return NULL;
    attr[NDIM] = g->ndim;
    attr[PERIODIC] = g->periodic;
    for (int i = 0; i < g->ndim; i++) {
        attr[RANKS + i] = g->ranks[i];
        attr[BEFORE + i] = o.before[i];
        attr[AFTER + i] = o.after[i];
    }
    return ctn__apply1(at, NULL, &op_halo, 1, &x, NATTR, attr, 0, NULL);
}
