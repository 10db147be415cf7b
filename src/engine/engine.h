/* SPDX-License-Identifier: Apache-2.0
 *
 * Engine layer: oneDNN behind one wrapper per primitive family, and Catena's own vector kernels.
 * dnnl.h is included in this folder only. A ctn__prim is one prepared primitive with its memory
 * objects; running it sets the addresses and executes. Primitives are made for the thread count of
 * the context and use strict f32 math.
 */
#ifndef CTN_ENGINE_ENGINE_H
#define CTN_ENGINE_ENGINE_H

#include "tensor/tensor.h"

typedef struct ctn__engine ctn__engine;
typedef struct ctn__prim ctn__prim;

ctn_status ctn__engine_new(ctn__engine **e, int threads);
void ctn__engine_free(ctn__engine *e);
/* oneDNN's version ("3.7.2"), instruction set and thread runtime. Result: borrowed forever. */
const char *ctn__engine_version(void);
const char *ctn__engine_isa(void);
const char *ctn__engine_runtime(void);
/* Does oneDNN have real kernels for training in f16 on this CPU, or only reference loops? */
bool ctn__engine_trains_f16(void);
/* Does the CPU have bf16 instructions, or are the kernels emulated? */
bool ctn__engine_fast_bf16(void);
/* Does oneDNN support products of this type? x86 before AVX-512 has no bf16. On x86 at any speed,
 * elsewhere only if it has more than plain loops. */
bool ctn__engine_has(ctn__engine *e, ctn_dtype t);

/* The decision table (choices.c): the kernel chosen for a problem; NULL: unknown. */
const char *ctn__choice_find(ctn__engine *e, const char *problem);
ctn_status ctn__choice_put(ctn__engine *e, const char *problem, const char *choice);
ctn_status ctn__choices_save(ctn__engine *e);
/* For saved states: the whole table as text, and replacing the table by such a text. CTN_END: the
 * text is from another machine, and nothing has changed. */
ctn_status ctn__choices_text(ctn__engine *e, ctn__text *out);
ctn_status ctn__choices_replace(ctn__engine *e, const char *text, size_t n);
/* May kernels be timed now? */
void ctn__engine_set_timing(ctn__engine *e, bool on);
bool ctn__engine_timing(const ctn__engine *e);
/* Adds time spent on timing. Notifies the user when it adds up to more than a second. */
void ctn__engine_timed(ctn__engine *e, uint64_t ns);

/* The OpenMP thread count during a run: enter sets it, leave restores the old one. */
int ctn__threads_enter(int threads);
void ctn__threads_leave(int was);

void ctn__prim_free(void *prim);
size_t ctn__prim_scratch(const ctn__prim *p);   /* bytes of scratch that run needs */
const char *ctn__prim_name(const ctn__prim *p); /* kernel as oneDNN reports it */
/* Estimated memory of the primitive; oneDNN does not report it. */
size_t ctn__prim_bytes(const ctn__prim *p);
/* ptr[i] is argument i in the maker's list, NULL if absent. */
ctn_status ctn__prim_run(const ctn__prim *p, void *const *ptr, void *scratch);

/* Elementwise functions that oneDNN applies after a product. All others are our own kernels
 * (ops/common/map.c), which can be fused. */
typedef enum {
    CTN__ELT_NONE = 0,
    CTN__ELT_RELU,
    CTN__ELT_ADD /* adds the product to the result */
} ctn__elt;

/* C = act(A B + bias): batched (any number of leading dimensions, 1 broadcasts), any strides. bias
 * may be NULL. Arguments of run: A, B, bias, C. */
ctn_status ctn__prim_matmul(ctn__prim **p, ctn__engine *e, const ctn_desc *a, const ctn_desc *b,
                            const ctn_desc *bias, const ctn_desc *c, ctn__elt act);
/* The same for two dimensions in f32 by oneDNN's inner product, which has a kernel that packs less
 * and is often 10 to 20 % faster. A and B are row-major, or one of them is the transpose of a
 * row-major matrix; bias and act only if that is B. *p stays NULL where oneDNN has no such kernel.
 * Arguments of run: A, B, bias, C. */
ctn_status ctn__prim_inner(ctn__prim **p, ctn__engine *e, const ctn_desc *a, const ctn_desc *b,
                           const ctn_desc *bias, const ctn_desc *c, ctn__elt act);
typedef ctn_status ctn__product_maker(ctn__prim **p, ctn__engine *e, const ctn_desc *a,
                                      const ctn_desc *b, const ctn_desc *bias, const ctn_desc *c,
                                      ctn__elt act);
/* C (m,n) = A (m,k) B (k,n) in f32, or C += A B (gemm.c). ta, tb: A, B are stored transposed. lda,
 * ldb, ldc: elements from one stored row to the next. */
typedef struct {
    int64_t m, n, k;
    const float *a, *b;
    float *c;
    int64_t lda, ldb, ldc;
    bool ta, tb, add;
} ctn__gemm_args;
ctn_status ctn__gemm(const ctn__gemm_args *g);
/* C = A W, or A W^T if trans is set, for a W that is used many times: its layout is set to what the
 * kernel prefers. A and C are matrices in row-major order. Arguments of run: A, W, NULL, C. */
ctn_status ctn__prim_packed(ctn__prim **p, ctn__engine *e, const ctn_desc *a, ctn_desc *w,
                            bool trans, const ctn_desc *c);
/* A number for the type, shape and layout of d that is the same in every context. */
uint64_t ctn__layout_key(const ctn__engine *e, const ctn_desc *d);
/* C = A B in f64 by our own kernel; C is row-major. scratch: ctn__product_f64_scratch bytes. */
void ctn__product_f64(const ctn_desc *a, const ctn_desc *b, const ctn_desc *c, const double *pa,
                      const double *pb, double *pc, int threads, void *scratch);
size_t ctn__product_f64_scratch(int threads);
/* Transposes (n,k) with rows s apart into k rows that are `width` apart. */
void ctn__turn_f64(double *to, int64_t width, const double *from, int64_t n, int64_t s, int64_t k);
/* The operand of a convolution that is computed from the other two. */
typedef enum { CTN__CONV_FORWARD, CTN__CONV_DATA, CTN__CONV_WEIGHTS } ctn__conv_kind;
typedef struct {
    int64_t stride[3], pad[3], pad_end[3], dilation[3]; /* one per spatial dimension */
    int64_t groups;
} ctn__conv_shape;
/* What a forward convolution does with its sum: act(scale sum + shift + residual), with scale and
 * shift of shape (O) and residual like y; NULL where there is none. */
typedef struct {
    ctn__elt act;
    const ctn_desc *scale, *shift, *residual;
} ctn__conv_post;
/* y = post(x * w + bias), or its adjoints x (data) or w (weights). x (N,I,...) and y (N,O,...) are
 * row-major or channels-last. The layout of w (O,I/groups,...) is set to what the kernel prefers.
 * bias: forward only, may be NULL. second: try the engine's second choice of kernel; *p stays NULL
 * if there is none worth trying. Arguments of run: x, w, bias, y, scale, shift, residual. */
ctn_status ctn__prim_conv(ctn__prim **p, ctn__engine *e, ctn__conv_kind kind,
                          const ctn__conv_shape *s, const ctn_desc *x, ctn_desc *w,
                          const ctn_desc *bias, const ctn_desc *y, const ctn__conv_post *post,
                          bool second);
/* dst = src in another layout or type. Arguments of run: src, dst. */
ctn_status ctn__prim_reorder(ctn__prim **p, ctn__engine *e, const ctn_desc *src,
                             const ctn_desc *dst);

#endif
