/* SPDX-License-Identifier: Apache-2.0
 *
 * What op files share: the table of ops, recording helpers, and loops over elements. An op file holds
 * everything Catena knows about its op; nothing here knows a particular one.
 */
#ifndef CTN_OPS_OPS_H
#define CTN_OPS_OPS_H

#include <catena/ops.h>

#include "engine/engine.h"
#include "graph/graph.h"

#define CTN__OP(name) extern ctn_op ctn__op_##name;
#include "ops/ops.def"
#undef CTN__OP

extern ctn_op *const ctn__ops[];
extern const int ctn__nops;

/* ---- infer and grad helpers (common.c) --------------------------------------------------------- */

ctn_status ctn__infer_same(ctn_infer_args *a); /* out 0 like in 0, which must be a float type */
ctn_status ctn__infer_broadcast(
    ctn_infer_args *a); /* out 0: in 0 and in 1 broadcast, one float type */
ctn_tensor *ctn__unary(const char *at, ctn_op *op, ctn_tensor *x);
ctn_tensor *ctn__binary(const char *at, ctn_op *op, ctn_tensor *a, ctn_tensor *b);
/* g summed down to the shape of d: the gradient of broadcasting. Result: g itself where equal. */
ctn_tensor *ctn__sum_to(const char *at, ctn_tensor *g, const ctn_desc *d);
/* In a prepare: an operand that is broadcast is wanted with every element in a place of its own, which the plan then makes. The
 * engine has only reference kernels for strides of 0. */
void ctn__ask_spread(ctn_desc *d);
/* The node is done by primitive p, which it owns from now on; the end of a prepare. */
ctn_status ctn__with_prim(ctn_prepare_args *a, ctn__prim *p,
                          ctn_status (*run)(const ctn_run_args *a));
/* run of a prepared primitive with arguments in[0..nin-1], out[0] */
ctn_status ctn__run_prim(const ctn_run_args *a);

/* One of several ways to do a node. prepare gives CTN_END where it cannot. */
typedef struct {
    const char *name;
    ctn_status (*prepare)(ctn_prepare_args *a);
} ctn__way;
#define CTN__WORTH_TIMING 10000000 /* operations below which the first way is good enough */
/* prepare by the best of the n ways (choose.c); work: operations of the node. */
ctn_status ctn__choose(ctn_prepare_args *a, int64_t work, int n, const ctn__way *w);

/* ---- elementwise work (map.c) -------------------------------------------------------------------- */

#define CTN__GRAIN 16384 /* elements below which a second thread costs more than it brings */
enum {
    CTN__TILE = 1024,
    CTN__TILE_IN = 4
}; /* elements of a tile, most operands of a tile kernel */

/* Tile kernels of an op for each instruction set (engine/isa.h): one output from up to CTN__TILE_IN inputs, every operand n
 * elements in a row, on one thread. Of `a` only in, out, the types of in[0] and out[0], attributes and scalars count. out[0] may
 * be one of the inputs. */
typedef void ctn__tile_fn(const ctn_run_args *a, int64_t n);
/* Ops whose kernel is a single instruction or two, which loads and stores would cost more than (cheap.c). c: its scalar 0; row: the other
 * operand. */
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
    CTN__CHEAP_SUB, /* less the row */
    CTN__CHEAP_FROM /* the row less it */
} ctn__cheap;
typedef struct {
    ctn__cheap what;
    float c;
    const float *row;
} ctn__cheap_op;
enum { CTN__CHEAP_STEP = 256 }; /* elements: a length must be a multiple */
void ctn__cheap_run(int isa, const ctn__cheap_op *op, int n, const float *x, float *y,
                    int64_t count);

struct ctn__tiles {
    ctn__tile_fn *fn[3];
    ctn__cheap cheap;
};
typedef struct ctn__tiles ctn__tiles;
const ctn__tiles *ctn__tiles_of(const ctn_op *op); /* NULL: it has its run only */

/* Elementwise ops one after another on each tile. Slots are what a stage reads and writes: first the inputs of the program, then its
 * buffers, then its result. */
typedef struct {
    const ctn__tiles *tiles; /* NULL: by the op's run */
    ctn_op *op;
    const int64_t *attr;
    int scalar0; /* where its scalars begin */
    uint8_t nin, nattr, nscalar, din[CTN__TILE_IN], dout;
    int in[CTN__TILE_IN], out; /* slots */
    uint8_t via; /* the input that the stage before has made, where it is in a run with it */
    int run;     /* cheap stages from here on that only read each other; 0: none */
} ctn__map_stage;

typedef struct {
    int nin, buffers, n;
    ctn__map_stage *stage;
} ctn__map_program;

/* Run it over whole tensors: inputs of any strides, broadcast, as the descriptions of `a` say; threads share the tiles. scratch: ctn__map_scratch bytes, NULL: on the stack, for a program of one stage. */
ctn_status ctn__map_run(const ctn__map_program *p, const ctn_run_args *a, void *scratch);
size_t ctn__map_scratch(const ctn__map_program *p, int threads);
/* One op. */
ctn_status ctn__map(const ctn_run_args *a, const ctn__tiles *t);

#if defined(__x86_64__) && defined(__GNUC__)
#define CTN__FOR_AVX2 __attribute__((target("avx2")))
#define CTN__FOR_AVX512 \
    __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,prefer-vector-width=512")))
#else
#define CTN__FOR_AVX2
#define CTN__FOR_AVX512
#endif

/* CTN__KERNEL(name) { loops } makes name_run and name_tiles, the loops compiled for each instruction set. Only IEEE operations
 * in them, so the bits are the same for all. */
#define CTN__KERNEL(name) CTN__CHEAP_KERNEL(name, CTN__NOT_CHEAP)
#define CTN__CHEAP_KERNEL(name, code)                                                             \
    static inline                                                                                 \
        __attribute__((always_inline)) void name##_tile(const ctn_run_args *a, int64_t n);        \
    static void name##_portable(const ctn_run_args *a, int64_t n)                                 \
    {                                                                                             \
        name##_tile(a, n);                                                                        \
    }                                                                                             \
    CTN__FOR_AVX2 static void name##_avx2(const ctn_run_args *a, int64_t n)                       \
    {                                                                                             \
        name##_tile(a, n);                                                                        \
    }                                                                                             \
    CTN__FOR_AVX512 static void name##_avx512(const ctn_run_args *a, int64_t n)                   \
    {                                                                                             \
        name##_tile(a, n);                                                                        \
    }                                                                                             \
    static const ctn__tiles name##_tiles = {{name##_portable, name##_avx2, name##_avx512}, code}; \
    static ctn_status name##_run(const ctn_run_args *a)                                           \
    {                                                                                             \
        return ctn__map(a, &name##_tiles);                                                        \
    }                                                                                             \
    static inline void name##_tile(const ctn_run_args *a, int64_t n)

/* CTN__PER_ISA(name, (parameters), (arguments)) { body } makes name[], the function compiled for each instruction set (engine/isa.h), for
 * loops that are not elementwise. Sums in it are made in lanes of a fixed number, so that the bits are the same for all. */
#define CTN__PER_ISA(name, parameters, arguments)                                          \
    static inline __attribute__((always_inline)) void name##_body parameters;              \
    static void name##_portable parameters                                                 \
    {                                                                                      \
        name##_body arguments;                                                             \
    }                                                                                      \
    CTN__FOR_AVX2 static void name##_avx2 parameters                                       \
    {                                                                                      \
        name##_body arguments;                                                             \
    }                                                                                      \
    CTN__FOR_AVX512 static void name##_avx512 parameters                                   \
    {                                                                                      \
        name##_body arguments;                                                             \
    }                                                                                      \
    static void(*const name[]) parameters = {name##_portable, name##_avx2, name##_avx512}; \
    static inline void name##_body parameters

/* A loop of a kernel over i_, several vectors at a time: a store for every few instructions is what limits cheap ops. */
enum { CTN__STRIDE = 64 };
#define CTN__EACH(statement)                                                 \
    do {                                                                     \
        int64_t at_ = 0;                                                     \
        for (; at_ + CTN__STRIDE <= n; at_ += CTN__STRIDE) {                 \
            _Pragma("omp simd") for (int64_t k_ = 0; k_ < CTN__STRIDE; k_++) \
            {                                                                \
                const int64_t i_ = at_ + k_;                                 \
                statement                                                    \
            }                                                                \
        }                                                                    \
        _Pragma("omp simd") for (int64_t i_ = at_; i_ < n; i_++)             \
        {                                                                    \
            statement                                                        \
        }                                                                    \
    } while (0)

/* out[i] = f(in0[i]) and out[i] = f(in0[i], in1[i]), by type: T, or f32 and f64. Operands are loaded unconditionally, so that f can be
 * a blend. */
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

/* An input of any strides, seen in the output's shape (walk.c). Dimensions are merged, so that the innermost run is as long as
 * possible. */
typedef struct {
    int nd;
    int64_t dim[CTN_MAX_DIMS], stride[CTN_MAX_DIMS];
} ctn__walk;
void ctn__walk_init(ctn__walk *w, const ctn_desc *out, const ctn_desc *in);
/* Copy elements [first, first + n) in the output's order into a row. size: bytes of an element. */
void ctn__walk_copy(const ctn__walk *w, const void *src, size_t size, int64_t first, int64_t n,
                    void *dst);

#endif
