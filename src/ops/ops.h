/* SPDX-License-Identifier: Apache-2.0
 *
 * What the op files share: the table of ops, helpers for recording, and loops over elements. An op
 * file holds everything Catena knows about its op; nothing here depends on a particular one.
 */
#ifndef CTN_OPS_OPS_H
#define CTN_OPS_OPS_H

#include <catena/ops.h>

#include "engine/engine.h"
#include "engine/isa.h"
#include "graph/graph.h"

#define CTN__OP(name) extern ctn_op ctn__op_##name;
#include "ops/ops.def"
#undef CTN__OP

/* ---- infer and grad helpers (common.c) ------------------------------------------------------- */

/* Output 0 is like input 0, which must be f32 or f64. */
ctn_status ctn__infer_same(ctn_infer_args *a);
/* Output 0 has the broadcast shape of inputs 0 and 1, which must have the same float type. */
ctn_status ctn__infer_broadcast(ctn_infer_args *a);
ctn_tensor *ctn__unary(const char *at, ctn_op *op, ctn_tensor *x);
ctn_tensor *ctn__binary(const char *at, ctn_op *op, ctn_tensor *a, ctn_tensor *b);
/* ctn_dropout of samples along dimension `axis`. */
ctn_tensor *ctn__dropout_along(const char *at, ctn_tensor *x, double rate, int64_t axis);
/* In a grad: g is the gradient of input i, or one of several parts of it, which are added up.
 * Fails with the error on record if g is NULL. */
ctn_status ctn__grad_to(const ctn_grad_args *a, int i, ctn_tensor *g);
/* grad of an op (v, g) -> g f'(v), which is an activation's gradient in terms of its input or its
 * output v. bend gives g times the derivative of f' at v. */
typedef ctn_tensor *ctn__bend(const char *at, ctn_tensor *v, ctn_tensor *g);
ctn_status ctn__slope_grad(const ctn_grad_args *a, ctn_op *op, ctn__bend *bend);
/* Sum g down to the shape of d: the gradient of broadcasting. Returns g itself if the shapes are
 * equal. */
ctn_tensor *ctn__sum_to(const char *at, ctn_tensor *g, const ctn_desc *d);
/* linear with a few rows (few_rows.c): does it apply, and its run, for which x must be plain. */
bool ctn__few_rows(const ctn_prepare_args *a);
ctn_status ctn__few_rows_run(const ctn_run_args *a);
/* The square root of x >= 0, with gradients of 0 where x is 0. */
ctn_tensor *ctn__root(const char *at, ctn_tensor *x);
/* x (...,C) as (rows,C); x itself if it has two dimensions. x must have at least one dimension. */
ctn_tensor *ctn__rows_of(const char *at, ctn_tensor *x);
/* For use in the prepare of a product: ask the plan for a plain copy of an operand for which the
 * engine has only slow reference kernels: one that is broadcast, or has steps in both of its last
 * dimensions. */
void ctn__ask_matrix(ctn_desc *d);
/* A number of operations, as ctn_prepare_args.flops: sizes at the limit do not overflow. */
static inline int64_t ctn__work(double n)
{
    return n < 0x1p62 ? (int64_t)n : INT64_C(1) << 62;
}
/* The last call of a prepare: run the node with primitive p. The node takes ownership of p. */
ctn_status ctn__with_prim(ctn_prepare_args *a, ctn__prim *p,
                          ctn_status (*run)(const ctn_run_args *a));
/* run of a prepared primitive with the arguments in[0] to in[nin-1], out[0]. */
ctn_status ctn__run_prim(const ctn_run_args *a);

/* One of several ways to compute a node. prepare returns CTN_END if it does not apply. */
typedef struct {
    const char *name;
    ctn_status (*prepare)(ctn_prepare_args *a);
} ctn__way;
#define CTN__WORTH_TIMING 10000000 /* operations below which the first way is good enough */
/* The same for matrix products, whose ways differ less. */
#define CTN__WORTH_CHOOSING 400000000
/* Call prepare of the best of the n ways (choose.c). work: arithmetic operations of the node. */
ctn_status ctn__choose(ctn_prepare_args *a, int64_t work, int n, const ctn__way *w);

/* ---- elementwise work (map.c) ---------------------------------------------------------------- */

#define CTN__GRAIN 16384 /* elements below which a second thread costs more than it saves */
/* Elements of a tile, and the maximum number of inputs of a tile kernel. */
enum { CTN__TILE = 1024, CTN__TILE_IN = 4 };

/* A tile kernel of an op, one per instruction set (engine/isa.h). It computes one output from up
 * to CTN__TILE_IN inputs, each n contiguous elements, on one thread. It reads only these fields
 * of `a`: in, out, the types of in[0] and out[0], attributes and scalars. out[0] may be one of
 * the inputs. */
typedef void ctn__tile_fn(const ctn_run_args *a, int64_t n);
/* Ops whose kernel is one or two instructions, so that loads and stores cost more than the
 * arithmetic (cheap.c). c is scalar 0 of the op, row its other operand. */
typedef enum {
    CTN__NOT_CHEAP = 0,
    CTN__CHEAP_SCALE,
    CTN__CHEAP_SHIFT,
    CTN__CHEAP_SQUARE,
    CTN__CHEAP_NEG,
    CTN__CHEAP_ABS,
    CTN__CHEAP_RELU,
    CTN__CHEAP_LEAKY,
    CTN__CHEAP_ADD,
    CTN__CHEAP_MUL,
    CTN__CHEAP_SUB, /* minus the row */
    CTN__CHEAP_FROM /* the row minus it */
} ctn__cheap;
typedef struct {
    ctn__cheap what;
    float c;
    const float *row;
} ctn__cheap_op;
enum { CTN__CHEAP_STEP = 256 }; /* count must be a multiple of this */
void ctn__cheap_run(int isa, const ctn__cheap_op *op, int n, const float *x, float *y,
                    int64_t count);

struct ctn__tiles {
    ctn__tile_fn *fn[CTN__ISA_COUNT];
    ctn__cheap cheap;
};
typedef struct ctn__tiles ctn__tiles;
const ctn__tiles *ctn__tiles_of(const ctn_op *op); /* NULL: the op has no tile kernels */

/* Elementwise ops that run one after another on each tile. Stages read and write slots: first come
 * the inputs of the program, then its buffers, then its result. */
typedef struct {
    const ctn__tiles *tiles; /* NULL: call the op's run */
    ctn_op *op;
    const int64_t *attr;
    int scalar0; /* index of its first scalar */
    uint8_t nin, nattr, nscalar, din[CTN__TILE_IN], dout;
    int in[CTN__TILE_IN], out; /* slots */
    uint8_t via; /* in a run of cheap stages: the input that the previous stage produced */
    int run;     /* length of the run of cheap stages that begins here; 0: none */
} ctn__map_stage;

typedef struct {
    int nin, buffers, n;
    ctn__map_stage *stage;
} ctn__map_program;

/* Run a program over whole tensors. Inputs may have any strides and are broadcast as the
 * descriptions in `a` say. The threads share the tiles. scratch has ctn__map_scratch bytes; a
 * program of one stage may pass NULL and uses the stack. */
ctn_status ctn__map_run(const ctn__map_program *p, const ctn_run_args *a, void *scratch);
size_t ctn__map_scratch(const ctn__map_program *p, int threads);
/* The same for one op. */
ctn_status ctn__map(const ctn_run_args *a, const ctn__tiles *t);

/* CTN__KERNEL(name) { loops } defines name_run and name_tiles of an elementwise op. */
#define CTN__KERNEL(name) CTN__CHEAP_KERNEL(name, CTN__NOT_CHEAP)
#define CTN__CHEAP_KERNEL(name, code)                                    \
    CTN__COMPILE_ALL(name, (const ctn_run_args *a, int64_t n), (a, n))   \
    static const ctn__tiles name##_tiles = {CTN__ISA_TABLE(name), code}; \
    static ctn_status name##_run(const ctn_run_args *a)                  \
    {                                                                    \
        return ctn__map(a, &name##_tiles);                               \
    }                                                                    \
    static inline void name##_body(const ctn_run_args *a, int64_t n)

/* What the structs of most elementwise ops have in common, besides name_run and name_tiles: n
 * inputs of one shape and float type, one output like them, which may overwrite any of them. */
#define CTN__ELEMENTWISE_OP(op, n)                                        \
    .struct_size = sizeof(ctn_op), .name = #op, .nin = (n), .nout = 1,    \
    .flags = CTN_OP_ELEMENTWISE, .order = -1, .inplace = CTN_OPERANDS(n), \
    .infer = ctn__infer_same, .run = op##_run, .tiles = &op##_tiles

/* The loop of a kernel over i_, several vectors at a time: cheap ops are limited by their stores,
 * one for every few instructions. */
enum { CTN__STRIDE = 64 };
#define CTN__SIMD(i, from, to, ...)                             \
    _Pragma("omp simd") for (int64_t i = (from); i < (to); i++) \
    {                                                           \
        __VA_ARGS__                                             \
    }
#define CTN__EACH(...)                                                              \
    do {                                                                            \
        int64_t at_ = 0;                                                            \
        for (; at_ + CTN__STRIDE <= n; at_ += CTN__STRIDE) {                        \
            CTN__SIMD(k_, 0, CTN__STRIDE, const int64_t i_ = at_ + k_; __VA_ARGS__) \
        }                                                                           \
        CTN__SIMD(i_, at_, n, __VA_ARGS__)                                          \
    } while (0)

/* out[i] = f(in0[i]) and out[i] = f(in0[i], in1[i]) for the type T, or for f32 and f64. Operands
 * are loaded unconditionally, so that f can become a vector blend. */
#define CTN__MAP1_T(a, T, f)                                  \
    do {                                                      \
        const T *x_ = (a)->in[0];                             \
        T *y_ = (a)->out[0];                                  \
        CTN__EACH(const T p_ = x_[i_]; y_[i_] = (T)(f(p_));); \
    } while (0)
#define CTN__MAP1(a, f32, f64)                                         \
    do {                                                               \
        if ((a)->dout[0].dtype == CTN_F32) CTN__MAP1_T(a, float, f32); \
        else CTN__MAP1_T(a, double, f64);                              \
    } while (0)
#define CTN__MAP2_T(a, TI, TO, f)                                                         \
    do {                                                                                  \
        const TI *x_ = (a)->in[0], *z_ = (a)->in[1];                                      \
        TO *y_ = (a)->out[0];                                                             \
        CTN__EACH(const TI p_ = x_[i_]; const TI q_ = z_[i_]; y_[i_] = (TO)(f(p_, q_));); \
    } while (0)
#define CTN__MAP2(a, f32, f64)                                                \
    do {                                                                      \
        if ((a)->dout[0].dtype == CTN_F32) CTN__MAP2_T(a, float, float, f32); \
        else CTN__MAP2_T(a, double, double, f64);                             \
    } while (0)

/* An input of any strides, broadcast to the output's shape (walk.c). Dimensions are merged, so
 * that the innermost run is as long as possible. */
typedef struct {
    int nd;
    int64_t dim[CTN_MAX_DIMS], stride[CTN_MAX_DIMS];
} ctn__walk;
void ctn__walk_init(ctn__walk *w, const ctn_desc *out, const ctn_desc *in);
/* Copy elements [first, first + n), in the output's order, to contiguous memory. size: bytes of an
 * element. */
void ctn__walk_copy(const ctn__walk *w, const void *src, size_t size, int64_t first, int64_t n,
                    void *dst);

#endif
