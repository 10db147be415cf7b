/* SPDX-License-Identifier: Apache-2.0
 *
 * cast: the same values in another type. Conversion to a float type rounds to nearest even.
 * Conversion to an integer truncates and saturates at the ends of the range, with NaN as 0. bool
 * is 1 where the value is not 0. Gradient between float types: gy cast back.
 *
 * oneDNN's reorder converts f32 to and from the 16-bit floats. All other pairs are converted
 * through double, one block at a time; double holds every value except an i64 beyond 2^53.
 */
#include "ops/ops.h"

enum { DTYPE, NATTR };
static const char *const attr_names[] = {"dtype"};
enum { BLOCK = 512 };

static ctn_status cast_infer(ctn_infer_args *a)
{
    a->out[0] = *a->in[0];
    a->out[0].dtype = (ctn_dtype)a->attr[DTYPE];
    return CTN_OK;
}

#define LOAD(T, get)                                      \
    do {                                                  \
        const T *s = (const T *)x + at;                   \
        for (int64_t i = 0; i < n; i++) b[i] = get(s[i]); \
    } while (0)
#define PLAIN(v) ((double)(v))
#define FROM_BF16(v) ((double)ctn__bf16_to_f32(v))
#define FROM_F16(v) ((double)ctn__f16_to_f32(v))

static void load(double *b, const void *x, ctn_dtype t, int64_t at, int64_t n)
{
    switch (t) {
    case CTN_F32: LOAD(float, PLAIN); break;
    case CTN_F64: LOAD(double, PLAIN); break;
    case CTN_BF16: LOAD(uint16_t, FROM_BF16); break;
    case CTN_F16: LOAD(uint16_t, FROM_F16); break;
    case CTN_I64: LOAD(int64_t, PLAIN); break;
    case CTN_I32: LOAD(int32_t, PLAIN); break;
    case CTN_U8:
    case CTN_BOOL: LOAD(uint8_t, PLAIN); break;
    }
}

#define STORE(T, put)                                     \
    do {                                                  \
        T *d = (T *)y + at;                               \
        for (int64_t i = 0; i < n; i++) d[i] = put(b[i]); \
    } while (0)
#define TO_F32(v) ((float)(v))
#define TO_BF16(v) ctn__f32_to_bf16((float)(v))
#define TO_F16(v) ctn__f32_to_f16((float)(v))
#define TO_I32(v) ((int32_t)ctn__within(v, INT32_MIN, INT32_MAX))
#define TO_U8(v) ((uint8_t)ctn__within(v, 0, UINT8_MAX))
#define TO_BOOL(v) ((v) != 0)

static void store(void *y, ctn_dtype t, int64_t at, int64_t n, const double *b)
{
    switch (t) {
    case CTN_F32: STORE(float, TO_F32); break;
    case CTN_F64: STORE(double, PLAIN); break;
    case CTN_BF16: STORE(uint16_t, TO_BF16); break;
    case CTN_F16: STORE(uint16_t, TO_F16); break;
    case CTN_I64: STORE(int64_t, ctn__to_i64); break;
    case CTN_I32: STORE(int32_t, TO_I32); break;
    case CTN_U8: STORE(uint8_t, TO_U8); break;
    case CTN_BOOL: STORE(uint8_t, TO_BOOL); break;
    }
}

static ctn_status cast_run(const ctn_run_args *a)
{
    int64_t n = ctn__count(&a->dout[0]);
#pragma omp parallel for schedule(static) if (n > CTN__GRAIN)
    for (int64_t at = 0; at < n; at += BLOCK) {
        double b[BLOCK];
        int64_t m = n - at < BLOCK ? n - at : BLOCK;
        load(b, a->in[0], a->din[0].dtype, at, m);
        store(a->out[0], a->dout[0].dtype, at, m, b);
    }
    return CTN_OK;
}

static ctn_status make_reorder(ctn__prim **p, const ctn_prepare_args *a, int64_t n)
{
    ctn_desc from = {.dtype = a->din[0].dtype, .ndim = 1, .dim = {n}, .stride = {1}}, to = from;
    to.dtype = a->dout[0].dtype;
    return ctn__prim_reorder(p, a->engine, &from, &to);
}

/* oneDNN tries divisors of a size one by one, which takes minutes if 2^31 - 1 elements are a prime
 * number. So a large size is divided into a multiple of STEP and the rest. */
enum { STEP = 64, LARGE = 4096 };

struct parts {
    ctn__prim *most, *rest;
};

static void free_parts(void *priv)
{
    struct parts *p = priv;
    ctn__prim_free(p->most);
    ctn__prim_free(p->rest);
    ctn__free(p);
}

static ctn_status run_parts(const ctn_run_args *a)
{
    const struct parts *p = a->priv;
    const int64_t n = ctn__count(&a->dout[0]), most = n - n % STEP;
    char *x = (char *)(uintptr_t)a->in[0], *y = a->out[0];
    CTN_TRY(ctn__prim_run(p->most, (void *[]){x, y}, a->scratch));
    x += (size_t)most * ctn_dtype_size(a->din[0].dtype);
    y += (size_t)most * ctn_dtype_size(a->dout[0].dtype);
    return ctn__prim_run(p->rest, (void *[]){x, y}, a->scratch);
}

static ctn_status prepare_parts(ctn_prepare_args *a, int64_t n)
{
    struct parts *p = ctn__calloc(1, sizeof *p);
    if (!p) return CTN_ENOMEM;
    ctn_status st = make_reorder(&p->most, a, n - n % STEP);
    if (st == CTN_OK) st = make_reorder(&p->rest, a, n % STEP);
    if (st == CTN_OK) st = ctn__with_prim(a, p->most, run_parts);
    if (st < 0) {
        free_parts(p);
        return st;
    }
    const size_t scratch = ctn__prim_scratch(p->rest);
    if (scratch > a->scratch) a->scratch = scratch;
    a->priv = p;
    a->priv_free = free_parts;
    a->priv_bytes += ctn__prim_bytes(p->rest) + sizeof *p;
    return CTN_OK;
}

static ctn_status cast_prepare(ctn_prepare_args *a)
{
    ctn_dtype s = a->din[0].dtype, d = a->dout[0].dtype;
    int64_t n = ctn__count(&a->din[0]);
    bool low = s == CTN_BF16 || s == CTN_F16 || d == CTN_BF16 || d == CTN_F16;
    if (!low || (s != CTN_F32 && d != CTN_F32) || n == 0) return CTN_OK;
    if (n > LARGE && n % STEP != 0) return prepare_parts(a, n);
    ctn__prim *p;
    CTN_TRY(make_reorder(&p, a, n));
    return ctn__with_prim(a, p, ctn__run_prim);
}

static ctn_status cast_grad(const ctn_grad_args *a)
{
    if (!a->gout[0]) return CTN_OK;
    return ctn__grad_to(a, 0, ctn_cast_at(a->at, a->gout[0], a->in[0]->d.dtype));
}

ctn_op ctn__op_cast = {
    .struct_size = sizeof(ctn_op),
    .name = "cast",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = -1,
    .attr_names = attr_names,
    .infer = cast_infer,
    .grad = cast_grad,
    .prepare = cast_prepare,
    .run = cast_run,
};

ctn_tensor *ctn_cast_at(const char *at, ctn_tensor *x, ctn_dtype dtype)
{
    int64_t attr[NATTR] = {dtype};
    if (ctn_dtype_size(dtype) == 0) {
        ctn_fail(CTN_EDTYPE, "cast: %d is not a data type (%s)", (int)dtype, at);
        return NULL;
    }
    if (x && x->d.dtype == dtype) return x;
    return ctn__apply1(at, NULL, &ctn__op_cast, 1, &x, NATTR, attr, 0, NULL);
}
