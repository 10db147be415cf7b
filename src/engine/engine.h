/* SPDX-License-Identifier: Apache-2.0
 *
 * Engine layer: oneDNN behind one wrapper per primitive family, and Catena's own vector kernels. dnnl.h
 * appears in this folder only. A ctn__prim is one prepared primitive with its memory objects; running it
 * sets the addresses and executes. Primitives are made with the thread count of the context and in
 * strict f32 math.
 */
#ifndef CTN_ENGINE_ENGINE_H
#define CTN_ENGINE_ENGINE_H

#include "tensor/tensor.h"

typedef struct ctn__engine ctn__engine;
typedef struct ctn__prim ctn__prim;

ctn_status ctn__engine_new(ctn__engine **e, int threads);
void ctn__engine_free(ctn__engine *e);
/* "3.7.2" of the oneDNN in use, its CPU kernel set, its thread runtime. Result: borrowed forever. */
const char *ctn__engine_version(void);
const char *ctn__engine_isa(void);
const char *ctn__engine_runtime(void);
/* Has it kernels for training in f16 here, or just references? */
bool ctn__engine_trains_f16(void);
/* Has the CPU instructions for bf16, or are its kernels emulated? */
bool ctn__engine_fast_bf16(void);
/* Does it have products of this type, of whatever speed? x86 before AVX-512 has none of bf16. */
bool ctn__engine_has(ctn__engine *e, ctn_dtype t);

/* The decision table (choices.c): which kernel does a problem, NULL unknown. */
const char *ctn__choice_find(ctn__engine *e, const char *problem);
ctn_status ctn__choice_put(ctn__engine *e, const char *problem, const char *choice);
ctn_status ctn__choices_save(ctn__engine *e);
/* The whole table as text, and exactly this table from now on, for saved states. CTN_END: it is of another
 * machine, nothing has changed. */
ctn_status ctn__choices_text(ctn__engine *e, ctn__text *out);
ctn_status ctn__choices_replace(ctn__engine *e, const char *text, size_t n);
/* May kernels be timed now? */
void ctn__engine_set_timing(ctn__engine *e, bool on);
bool ctn__engine_timing(const ctn__engine *e);
/* Timing took so long: the user is told when it takes more than a moment. */
void ctn__engine_timed(ctn__engine *e, uint64_t ns);

/* A thread's OpenMP settings while a run lasts: enter sets the thread count, leave puts back the old. */
int ctn__threads_enter(int threads);
void ctn__threads_leave(int was);

void ctn__prim_free(void *prim);
size_t ctn__prim_scratch(const ctn__prim *p);   /* bytes the caller must give to run */
const char *ctn__prim_name(const ctn__prim *p); /* kernel as oneDNN reports it */
/* Memory it takes, an estimate: oneDNN tells none. */
size_t ctn__prim_bytes(const ctn__prim *p);
/* ptr[i] belongs to argument i of the maker's list; NULL for one that is not there. */
ctn_status ctn__prim_run(const ctn__prim *p, void *const *ptr, void *scratch);

/* Elementwise functions that oneDNN does after a product. All others are our own kernels (ops/map.c), which can be fused. */
typedef enum { CTN__ELT_NONE = 0, CTN__ELT_RELU } ctn__elt;

/* C = act(A B + bias): batched (any number of leading dimensions, 1 broadcasts), any strides. bias may be
 * NULL. Arguments of run: A, B, bias, C. */
ctn_status ctn__prim_matmul(ctn__prim **p, ctn__engine *e, const ctn_desc *a, const ctn_desc *b,
                            const ctn_desc *bias, const ctn_desc *c, ctn__elt act, float alpha);
/* C = A B where A is the transpose of a row-major matrix, f32: oneDNN's inner product has a kernel for it that
 * packs less and is often a fifth faster. *p stays NULL where it has none here. Arguments of run: A, B, NULL,
 * C. */
ctn_status ctn__prim_outer(ctn__prim **p, ctn__engine *e, const ctn_desc *a, const ctn_desc *b,
                           const ctn_desc *c);
/* C = A B in f64 by our own kernel, as above but C row-major. scratch: as many bytes as asked for. */
void ctn__product_f64(const ctn_desc *a, const ctn_desc *b, const ctn_desc *c, const double *pa,
                      const double *pb, double *pc, int threads, void *scratch);
size_t ctn__product_f64_scratch(int threads);
/* Which of the three bilinear functions of a convolution is wanted; the other two operands are given. */
typedef enum { CTN__CONV_FORWARD, CTN__CONV_DATA, CTN__CONV_WEIGHTS } ctn__conv_kind;
typedef struct {
    int64_t stride[3], pad[3], pad_end[3], dilation[3]; /* one per spatial dimension */
    int64_t groups;
} ctn__conv_shape;
/* What a forward convolution does with its sum: act(scale sum + shift + residual), scale and shift (O), residual
 * like y; NULL where there is none. */
typedef struct {
    ctn__elt act;
    const ctn_desc *scale, *shift, *residual;
} ctn__conv_post;
/* y = post(x * w + bias), or its adjoints x (data) or w (weights). x (N,I,...) and y (N,O,...) row-major or
 * channels-last; w (O,I/groups,...) becomes what the kernel likes best. bias: forward only, may be NULL.
 * second: the engine's second choice, *p stays NULL where that is none worth trying. Arguments of run: x, w,
 * bias, y, scale, shift, residual. */
ctn_status ctn__prim_conv(ctn__prim **p, ctn__engine *e, ctn__conv_kind kind,
                          const ctn__conv_shape *s, const ctn_desc *x, ctn_desc *w,
                          const ctn_desc *bias, const ctn_desc *y, const ctn__conv_post *post,
                          bool second);
/* dst = src in another layout or type. Arguments of run: src, dst. */
ctn_status ctn__prim_reorder(ctn__prim **p, ctn__engine *e, const ctn_desc *src,
                             const ctn_desc *dst);
/* dst = softmax of src along axis. Arguments of run: src, dst. */
ctn_status ctn__prim_softmax(ctn__prim **p, ctn__engine *e, const ctn_desc *src,
                             const ctn_desc *dst, int axis);

#endif
