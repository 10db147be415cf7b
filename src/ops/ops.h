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
/* prepare for f32 by a oneDNN eltwise, f64 by the op's own run; alpha is the scalar of oneDNN's function */
ctn_status ctn__prepare_eltwise(ctn_prepare_args *a, ctn__elt f, float alpha);
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

/* ---- element loops ------------------------------------------------------------------------------- */

#define CTN__GRAIN 16384 /* elements below which a second thread costs more than it brings */

/* out[i] = f(in0[i]) on row-major float tensors; f32 and f64 are functions or macros of one argument. */
#define CTN__MAP1(a, f32, f64)                                         \
    do {                                                               \
        if ((a)->dout[0].dtype == CTN_F32) CTN__MAP1_T(a, float, f32); \
        else CTN__MAP1_T(a, double, f64);                              \
    } while (0)
#define CTN__MAP1_T(a, T, f)                                                                       \
    do {                                                                                           \
        int64_t n_ = ctn__count(&(a)->dout[0]);                                                    \
        const T *x_ = (a)->in[0];                                                                  \
        T *y_ = (a)->out[0];                                                                       \
        _Pragma("omp parallel for simd schedule(static) if (n_ > CTN__GRAIN)") for (int64_t i_ =   \
                                                                                        0;         \
                                                                                    i_ < n_; i_++) \
            y_[i_] = f(x_[i_]);                                                                    \
    } while (0)

/* out[i] = f(in0[i], in1[i]) where both inputs are row-major and of the shape of out. */
#define CTN__MAP2(a, f32, f64)                                         \
    do {                                                               \
        if ((a)->dout[0].dtype == CTN_F32) CTN__MAP2_T(a, float, f32); \
        else CTN__MAP2_T(a, double, f64);                              \
    } while (0)
#define CTN__MAP2_T(a, T, f)                                                                       \
    do {                                                                                           \
        int64_t n_ = ctn__count(&(a)->dout[0]);                                                    \
        const T *x_ = (a)->in[0], *z_ = (a)->in[1];                                                \
        T *y_ = (a)->out[0];                                                                       \
        _Pragma("omp parallel for simd schedule(static) if (n_ > CTN__GRAIN)") for (int64_t i_ =   \
                                                                                        0;         \
                                                                                    i_ < n_; i_++) \
        {                                                                                          \
            T p_ = x_[i_], q_ = z_[i_]; /* loaded unconditionally, so that f can be a blend */     \
            y_[i_] = f(p_, q_);                                                                    \
        }                                                                                          \
    } while (0)

/* Broadcasting walk (walk.c): out is row-major; inputs have any strides. Dimensions are merged so that the
 * innermost run is as long as possible. */
enum { CTN__WALK_MAX = 3 };
typedef struct {
    int nd, nin;
    int64_t dim[CTN_MAX_DIMS];
    int64_t stride[CTN__WALK_MAX][CTN_MAX_DIMS];
    int64_t rows, run; /* outer iterations, elements of the innermost dimension */
} ctn__walk;
void ctn__walk_init(ctn__walk *w, const ctn_desc *out, int nin, const ctn_desc *din);
/* element offset of input k at outer iteration row */
int64_t ctn__walk_offset(const ctn__walk *w, int k, int64_t row);

/* out[i] = f(in0[..], in1[..]) with broadcasting; TI is the input type, TO the output's. */
#define CTN__BCAST2_T(a, TI, TO, f)                                                             \
    do {                                                                                        \
        ctn__walk w_;                                                                           \
        ctn__walk_init(&w_, &(a)->dout[0], 2, (a)->din);                                        \
        int64_t s0_ = w_.stride[0][w_.nd - 1], s1_ = w_.stride[1][w_.nd - 1], m_ = w_.run;      \
        _Pragma("omp parallel for schedule(static) if (w_.rows * w_.run > CTN__GRAIN)") for (   \
            int64_t r_ = 0; r_ < w_.rows; r_++)                                                 \
        {                                                                                       \
            const TI *x_ = (const TI *)(a)->in[0] + ctn__walk_offset(&w_, 0, r_);               \
            const TI *z_ = (const TI *)(a)->in[1] + ctn__walk_offset(&w_, 1, r_);               \
            TO *y_ = (TO *)(a)->out[0] + r_ * m_;                                               \
            if (s0_ == 1 && s1_ == 1) {                                                         \
                _Pragma("omp simd") for (int64_t i_ = 0; i_ < m_; i_++) y_[i_] =                \
                    f(x_[i_], z_[i_]);                                                          \
            } else if (s0_ == 1 && s1_ == 0) {                                                  \
                TI c_ = z_[0];                                                                  \
                _Pragma("omp simd") for (int64_t i_ = 0; i_ < m_; i_++) y_[i_] = f(x_[i_], c_); \
            } else if (s0_ == 0 && s1_ == 1) {                                                  \
                TI c_ = x_[0];                                                                  \
                _Pragma("omp simd") for (int64_t i_ = 0; i_ < m_; i_++) y_[i_] = f(c_, z_[i_]); \
            } else {                                                                            \
                for (int64_t i_ = 0; i_ < m_; i_++) y_[i_] = f(x_[i_ * s0_], z_[i_ * s1_]);     \
            }                                                                                   \
        }                                                                                       \
    } while (0)
#define CTN__BCAST2(a, f32, f64)                                                \
    do {                                                                        \
        if ((a)->dout[0].dtype == CTN_F32) CTN__BCAST2_T(a, float, float, f32); \
        else CTN__BCAST2_T(a, double, double, f64);                             \
    } while (0)

#endif
