/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_send and dist_recv: a tensor from one rank to another. The gradient of a send is a receive,
 * and that of a receive is a send.
 *
 * The result of a send is the number 0. A loss that contains it leads the backward pass to the
 * send, where the gradient of x arrives, whatever the gradient of that 0 is. Both ops are
 * CTN_OP_REMOTE: gradients go on to the other rank even if this rank has no parameter before them.
 *
 * Order: sends do not wait (comm/send.c), messages between two ranks arrive in the order of
 * sending, and gradients run in the reverse of program order (graph/grad.c). Let the edges of a
 * graph be the program order of each rank and the messages. The forward pass ends if and only if
 * this graph has no circle; the backward pass has the same graph with all edges reversed. The
 * k-th last message between two ranks going forward is the k-th going back, on both sides.
 *
 * A header with type and shape precedes each message, because both ranks say what they expect
 * independently. Gradients of second order are refused: their messages would need a result that
 * stands for the send, but nobody can add it to a loss.
 */
#include "distributed/distributed.h"

enum { DTYPE = CTN__DIST_NATTR, NDIM, DIMS, NATTR = DIMS + CTN_MAX_DIMS };
static const char *const recv_names[NATTR] = {"comm",       "rank",  "size",  "from",  "dtype",
                                              "dimensions", "dim 0", "dim 1", "dim 2", "dim 3",
                                              "dim 4",      "dim 5", "dim 6", "dim 7"};
static const char *const send_names[CTN__DIST_NATTR] = {"comm", "rank", "size", "to"};
_Static_assert(CTN_MAX_DIMS == 8, "one name per dimension");

static ctn_op op_send, op_recv, op_send_grad, op_recv_grad;

typedef struct {
    int64_t dtype, ndim, dim[CTN_MAX_DIMS];
} header;

static header header_of(const ctn_desc *d)
{
    header h = {.dtype = d->dtype, .ndim = d->ndim};
    for (int i = 0; i < d->ndim; i++) h.dim[i] = d->dim[i];
    return h;
}

static ctn_status check_float(const char *who, ctn_dtype t)
{
    if (t == CTN_F32 || t == CTN_F64) return CTN_OK;
    return ctn_fail(CTN_EDTYPE, "%s: the type is %s, expected f32 or f64", who, ctn_dtype_name(t));
}

/* ---- sending --------------------------------------------------------------------------------- */

static ctn_status send_infer(ctn_infer_args *a)
{
    CTN_TRY(check_float(a->name, a->in[0]->dtype));
    a->out[0] = (ctn_desc){.dtype = a->in[0]->dtype};
    return CTN_OK;
}

static ctn_status send_run(const ctn_run_args *a)
{
    ctn_comm *c = ctn__dist_comm(a->attr);
    const int to = (int)a->attr[CTN__DIST_ROOT];
    const header h = header_of(&a->din[0]);
    const size_t bytes = ctn__bytes(&a->din[0]);
    if (a->out[0]) memset(a->out[0], 0, ctn__bytes(&a->dout[0]));
    CTN_TRY(ctn__comm_send(c, CTN__TAG_DIRECT, &h, sizeof h, to));
    return bytes == 0 ? CTN_OK : ctn__comm_send(c, CTN__TAG_DIRECT, a->in[0], bytes, to);
}

/* ---- receiving ------------------------------------------------------------------------------- */

static ctn_status recv_infer(ctn_infer_args *a)
{
    CTN_TRY(check_float(a->name, (ctn_dtype)a->attr[DTYPE]));
    return ctn__desc_set(&a->out[0], a->name, (ctn_dtype)a->attr[DTYPE], (int)a->attr[NDIM],
                         a->attr + DIMS);
}

/* The dims of a message that was not expected; they may be anything. */
static ctn_status other_shape(const header *got, const ctn_desc *want, int from)
{
    char t[128], u[128] = "?";
    ctn_desc d = {.dtype = (ctn_dtype)got->dtype, .ndim = (int32_t)got->ndim};
    if (got->ndim >= 0 && got->ndim <= CTN_MAX_DIMS) {
        memcpy(d.dim, got->dim, sizeof d.dim);
        ctn__shape_text(&d, u, sizeof u);
    }
    return ctn_fail(CTN_ESHAPE, "dist_recv: rank %d sent %s %s, expected %s %s", from,
                    ctn_dtype_name(d.dtype), u, ctn_dtype_name(want->dtype),
                    ctn__shape_text(want, t, sizeof t));
}

static ctn_status recv_run(const ctn_run_args *a)
{
    ctn_comm *c = ctn__dist_comm(a->attr);
    const int from = (int)a->attr[CTN__DIST_ROOT];
    const header want = header_of(&a->dout[0]);
    const size_t bytes = ctn__bytes(&a->dout[0]);
    header got;
    CTN_TRY(ctn__comm_receive(c, CTN__TAG_DIRECT, &got, sizeof got, from));
    if (memcmp(&got, &want, sizeof got) != 0)
        return ctn__comm_alone(c, other_shape(&got, &a->dout[0], from));
    return ctn__comm_receive(c, CTN__TAG_DIRECT, a->out[0], bytes, from);
}

static ctn_tensor *receive(const char *at, ctn_op *op, ctn_comm *c, ctn_context *ctx, int from,
                           const ctn_desc *d)
{
    int64_t attr[NATTR] = {0};
    if (ctn__dist_attr(op->name, c, from, attr) < 0) return NULL;
    attr[DTYPE] = d->dtype;
    attr[NDIM] = d->ndim;
    memcpy(attr + DIMS, d->dim, (size_t)d->ndim * sizeof *attr);
    return ctn__apply1(at, ctx, op, 0, NULL, NATTR, attr, 0, NULL);
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* The message is received even if x needs no gradient, because the other rank sends it. */
static ctn_status send_grad(const ctn_grad_args *a)
{
    ctn_tensor *g = receive(a->at, &op_send_grad, ctn__dist_comm(a->attr), a->ctx,
                            (int)a->attr[CTN__DIST_ROOT], &a->in[0]->d);
    if (!g) return ctn_error_status();
    if (a->need[0]) a->gin[0] = g;
    return CTN_OK;
}

static ctn_status recv_grad(const ctn_grad_args *a)
{
    const ctn_tensor *sent = ctn__dist_apply(a->at, &op_recv_grad, ctn__dist_comm(a->attr),
                                             a->gout[0], (int)a->attr[CTN__DIST_ROOT]);
    return sent ? CTN_OK : ctn_error_status();
}

#define FIELDS                                                                                     \
    .struct_size = sizeof(ctn_op), .nout = 1, .flags = CTN_OP_ORDERED | CTN_OP_REMOTE, .order = 1, \
    .prec = CTN_PREC_F32

static ctn_op op_send = {
    .name = "dist_send",
    FIELDS,
    .nin = 1,
    .attr_names = send_names,
    .infer = send_infer,
    .grad = send_grad,
    .run = send_run,
};

static ctn_op op_recv = {
    .name = "dist_recv",
    FIELDS,
    .nin = 0,
    .attr_names = recv_names,
    .infer = recv_infer,
    .grad = recv_grad,
    .run = recv_run,
};

static ctn_op op_send_grad = {
    .name = "dist_send_grad",
    FIELDS,
    .nin = 0,
    .attr_names = recv_names,
    .infer = recv_infer,
    .run = recv_run,
};

static ctn_op op_recv_grad = {
    .name = "dist_recv_grad",
    FIELDS,
    .nin = 1,
    .attr_names = send_names,
    .infer = send_infer,
    .run = send_run,
};

ctn_tensor *ctn_dist_send_at(const char *at, ctn_comm *c, ctn_tensor *x, int rank)
{
    return ctn__dist_apply(at, &op_send, c, x, rank);
}

ctn_tensor *ctn_dist_recv_at(const char *at, ctn_comm *c, ctn_context *ctx, int rank,
                             ctn_dtype dtype, int ndim, const int64_t *dims)
{
    ctn_desc d = {0};
    if (ctn__desc_set(&d, "dist_recv", dtype, ndim, dims) < 0) return NULL;
    return receive(at, &op_recv, c, ctx, rank, &d);
}
