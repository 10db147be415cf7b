/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise work: programs of tile kernels, run over whole tensors one tile at a time, so that
 * each stage finds the result of the previous one in the nearest cache. A program of any length
 * takes one parallel region. Inputs with the output's layout are used in place; those that are
 * broadcast, strided or of a low-precision type are first copied to a contiguous tile.
 */
#include <omp.h>
#include <stdalign.h>

#include "engine/isa.h"
#include "ops/ops.h"
#include "tensor/half.h"

enum {
    ROOM = CTN__TILE * 8 + 128, /* bytes of a buffer for a tile; not a multiple of a page */
    FEW = 16,                   /* tiles at a time if nothing is copied or buffered */
    ALONE = CTN__TILE_IN + 1,   /* buffers of a program of one stage */
    CHEAP = 128,                /* cheap stages run at a time */
    SHARED = 256 /* elements of a tile if stages pass it on: all operands fit into the L1 cache */
};

const ctn__tiles *ctn__tiles_of(const ctn_op *op)
{
    return op->struct_size >= sizeof *op ? op->tiles : NULL;
}

/* ---- inputs and result ----------------------------------------------------------------------- */

typedef struct {
    const ctn__map_program *p;
    const ctn_run_args *a;
    int64_t n;
    int isa, result; /* slot */
    bool low_result;
    /* Nothing passes through memory between the stages, so the CPU's own prefetching is enough. */
    bool alone;
    ctn__walk walk[CTN_MAX_IN]; /* of inputs whose layout differs from the output's */
    /* Inputs that have the output's layout, and inputs of one element. */
    bool there[CTN_MAX_IN], single[CTN_MAX_IN];
    const ctn_desc *type; /* by ctn_dtype */
} job;

/* Types that stages see as f32. */
static bool is_low(ctn_dtype t)
{
    return t == CTN_BF16 || t == CTN_F16;
}

static void widen(const void *from, ctn_dtype t, float *to, int64_t n)
{
    const uint16_t *x = from;
    if (t == CTN_BF16) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) to[i] = ctn__bf16_get(x[i]);
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) to[i] = ctn__f16_get(x[i]);
    }
}

static void narrow(const float *from, void *to, ctn_dtype t, int64_t n)
{
    uint16_t *y = to;
    if (t == CTN_BF16) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) y[i] = ctn__bf16_put(from[i]);
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) y[i] = ctn__f16_put(from[i]);
    }
}

/* Elements [first, first + n) of input i, contiguous, in the type that stages see. */
static const void *bring(const job *j, int i, int64_t first, int64_t n, void *room)
{
    const ctn_dtype t = j->a->din[i].dtype;
    const size_t size = ctn_dtype_size(t);
    const char *at = (const char *)j->a->in[i] + first * (int64_t)size;
    if (j->there[i] && !is_low(t)) return at;
    if (!j->there[i]) {
        /* A low-precision tile goes to the second half of the buffer, its widened copy to the
           first. */
        char *to = (char *)room + (is_low(t) ? CTN__TILE * 4 : 0);
        ctn__walk_copy(&j->walk[i], j->a->in[i], size, first, n, to);
        at = to;
    }
    if (is_low(t)) widen(at, t, room, n);
    return room;
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* For an op without tile kernels: call its own run on a tensor of one dimension. */
static ctn_status run_op(const ctn__map_stage *s, const ctn_run_args *r, int64_t n)
{
    ctn_desc din[CTN__TILE_IN], dout = {.dtype = s->dout, .ndim = 1, .dim = {n}, .stride = {1}};
    for (int i = 0; i < s->nin; i++) {
        din[i] = dout;
        din[i].dtype = s->din[i];
    }
    ctn_run_args own = *r;
    own.din = din;
    own.dout = &dout;
    return s->op->run(&own);
}

/* Run cheap stages in registers, up to CHEAP of them. Returns the number of stages run. */
static int run_cheap(const job *j, const ctn__map_stage *s, void *const *slot, int64_t n)
{
    ctn__cheap_op op[CHEAP];
    const int count = s->run < CHEAP ? s->run : CHEAP;
    for (int i = 0; i < count; i++) {
        const ctn__map_stage *t = &s[i];
        op[i] = (ctn__cheap_op){.what = t->tiles->cheap};
        if (t->nscalar > 0) op[i].c = (float)j->a->scalar[t->scalar0];
        if (t->nin < 2) continue;
        op[i].row = slot[t->in[1 - t->via]];
        if (op[i].what == CTN__CHEAP_SUB && t->via == 1) op[i].what = CTN__CHEAP_FROM;
    }
    ctn__cheap_run(j->isa, op, count, slot[s->in[s->via]], slot[s[count - 1].out], n);
    return count;
}

static ctn_status run_stages(const job *j, void **slot, int64_t n)
{
    const bool whole = n % CTN__CHEAP_STEP == 0;
    for (int k = 0; k < j->p->n; k++) {
        const ctn__map_stage *s = &j->p->stage[k];
        if (whole && s->run > 1) {
            k += run_cheap(j, s, slot, n) - 1;
            continue;
        }
        const void *in[CTN__TILE_IN];
        for (int i = 0; i < s->nin; i++) in[i] = slot[s->in[i]];
        ctn_run_args r = {.nin = s->nin,
                          .nout = 1,
                          .nattr = s->nattr,
                          .nscalar = s->nscalar,
                          .in = in,
                          .out = &slot[s->out],
                          .din = &j->type[s->din[0]],
                          .dout = &j->type[s->dout],
                          .attr = s->attr,
                          .scalar = j->a->scalar + s->scalar0,
                          .env = j->a->env};
        if (s->tiles) s->tiles->fn[j->isa](&r, n);
        else CTN_TRY(run_op(s, &r, n));
    }
    return CTN_OK;
}

/* Prefetch what the next tile reads and writes, so that memory overlaps with computing this one. */
static void fetch_ahead(const job *j, int64_t next, int64_t length)
{
    const int64_t n = j->n - next < length ? j->n - next : length;
    for (int i = 0; i < j->p->nin; i++) {
        const int64_t size = (int64_t)ctn_dtype_size(j->a->din[i].dtype);
        const char *at = (const char *)j->a->in[i] + next * size;
        for (int64_t k = 0; k < n * size && j->there[i]; k += 64) __builtin_prefetch(at + k, 0, 2);
    }
    const int64_t size = (int64_t)ctn_dtype_size(j->a->dout[0].dtype);
    const char *to = (const char *)j->a->out[0] + next * size;
    for (int64_t k = 0; k < n * size; k += 64) __builtin_prefetch(to + k, 1, 2);
}

/* room: the buffers for inputs, intermediate values and the result, in the order of the slots. */
static ctn_status run_tile(const job *j, int64_t first, int64_t n, void **slot, char *room)
{
    const ctn_dtype t = j->a->dout[0].dtype;
    char *to = (char *)j->a->out[0] + first * (int64_t)ctn_dtype_size(t);
    for (int i = 0; i < j->p->nin; i++)
        if (!j->single[i])
            slot[i] = (void *)(uintptr_t)bring(j, i, first, n, room + (size_t)i * ROOM);
    if (!j->low_result) slot[j->result] = to;
    CTN_TRY(run_stages(j, slot, n));
    if (j->low_result) narrow(slot[j->result], to, t, n);
    return CTN_OK;
}

static ctn_status run_tiles(const job *j, int64_t length, char *room)
{
    enum { USUAL = CTN_MAX_IN + 64 };
    const int slots = j->result + 1;
    const int64_t tiles = (j->n + length - 1) / length;
    const int64_t some = j->n < CTN__TILE ? j->n : CTN__TILE;
    void *slot[USUAL], **more = NULL, **all = slot;
    if (slots > USUAL)
        all = more = ctn__malloc((size_t)slots * sizeof *all); /* a program with many buffers */
    ctn_status st = all ? CTN_OK : CTN_ENOMEM;
    for (int i = 0; i < slots && all; i++) {
        char *own = room + (size_t)i * ROOM;
        const bool once = i < j->p->nin && j->single[i];
        all[i] = once ? (void *)(uintptr_t)bring(j, i, 0, some, own) : own;
    }
#pragma omp for schedule(static)
    for (int64_t k = 0; k < tiles; k++) {
        const int64_t left = j->n - k * length, here = left < length ? left : length;
        const int64_t whole = j->alone ? here - here % CTN__CHEAP_STEP : here;
        if (!j->alone) fetch_ahead(j, (k + 1) * length, length);
        if (st == CTN_OK && whole > 0) st = run_tile(j, k * length, whole, all, room);
        if (st == CTN_OK && here > whole)
            st = run_tile(j, k * length + whole, here - whole, all, room);
    }
    ctn__free(more);
    return st;
}

static void look_at_inputs(job *j)
{
    const ctn_run_args *a = j->a;
    for (int i = 0; i < j->p->nin; i++) {
        j->there[i] = ctn__same_shape(&a->din[i], &a->dout[0]) && ctn__is_plain(&a->din[i]);
        j->single[i] = !j->there[i] && ctn__count(&a->din[i]) == 1;
        if (!j->there[i]) ctn__walk_init(&j->walk[i], &a->dout[0], &a->din[i]);
    }
}

ctn_status ctn__map_run(const ctn__map_program *p, const ctn_run_args *a, void *scratch)
{
    ctn_desc type[CTN_BOOL + 1];
    const ctn_dtype t = a->dout[0].dtype;
    job j = {.p = p,
             .a = a,
             .n = ctn__count(&a->dout[0]),
             .isa = ctn__isa_in_use(),
             .result = p->nin + p->buffers,
             .low_result = is_low(t),
             .type = type};
    if (j.n == 0) return CTN_OK;
    for (int i = 0; i <= CTN_BOOL; i++) type[i].dtype = (ctn_dtype)i;
    look_at_inputs(&j);
    j.alone = p->n == 1 || (p->stage[0].run == p->n && p->n <= CHEAP);
    int64_t length = j.alone && !j.low_result ? CTN__TILE * FEW : CTN__TILE;
    for (int i = 0; i < p->nin; i++)
        if (!j.there[i] || is_low(a->din[i].dtype)) length = CTN__TILE;
    if (!j.alone && j.result > 2) length = SHARED;
    ctn_status worst = CTN_OK;
#pragma omp parallel reduction(min : worst) if (j.n > CTN__GRAIN)
    {
        alignas(64) char own[ALONE][ROOM];
        char *room =
            scratch ? (char *)scratch + (size_t)omp_get_thread_num() * (size_t)(j.result + 1) * ROOM
                    : own[0];
        worst = run_tiles(&j, length, room);
    }
    return worst;
}

size_t ctn__map_scratch(const ctn__map_program *p, int threads)
{
    return (size_t)threads * (size_t)(p->nin + p->buffers + 1) * ROOM;
}

static uint8_t seen(ctn_dtype t)
{
    return (uint8_t)(is_low(t) ? CTN_F32 : t);
}

ctn_status ctn__map(const ctn_run_args *a, const ctn__tiles *t)
{
    ctn__map_stage s = {.tiles = t,
                        .attr = a->attr,
                        .nin = (uint8_t)a->nin,
                        .nattr = (uint8_t)a->nattr,
                        .nscalar = (uint8_t)a->nscalar,
                        .dout = seen(a->dout[0].dtype),
                        .in = {0, 1, 2, 3},
                        .out = a->nin};
    for (int i = 0; i < a->nin; i++) s.din[i] = seen(a->din[i].dtype);
    return ctn__map_run(&(ctn__map_program){.nin = a->nin, .n = 1, .stage = &s}, a, NULL);
}
