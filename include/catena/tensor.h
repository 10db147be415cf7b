/* SPDX-License-Identifier: Apache-2.0
 *
 * Data types, shapes and tensors. A tensor is a value of the recorded program and belongs to
 * the scope it was recorded in; see catena/context.h for scopes.
 */
#ifndef CATENA_TENSOR_H
#define CATENA_TENSOR_H

#include <catena/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CTN_MAX_DIMS 8

/* The table of all data types: id, value, bytes per element, short name. */
#define CTN_DTYPE_TABLE(X)    \
    X(CTN_F32, 1, 4, "f32")   \
    X(CTN_F64, 2, 8, "f64")   \
    X(CTN_BF16, 3, 2, "bf16") \
    X(CTN_F16, 4, 2, "f16")   \
    X(CTN_I64, 5, 8, "i64")   \
    X(CTN_I32, 6, 4, "i32")   \
    X(CTN_U8, 7, 1, "u8")     \
    X(CTN_BOOL, 8, 1, "bool")

typedef enum {
#define CTN_DTYPE_ENUM(id, value, bytes, name) id = value,
    CTN_DTYPE_TABLE(CTN_DTYPE_ENUM)
#undef CTN_DTYPE_ENUM
} ctn_dtype;

/* Bytes of one element, 0 for an unknown type. Local. */
CTN_API size_t ctn_dtype_size(ctn_dtype t);
/* "f32" and so on. Local. Result: borrowed forever. */
CTN_API const char *ctn_dtype_name(ctn_dtype t);

/* Shape, type and memory layout. stride is in elements and may be 0 or negative for memory of
 * the user. layout 0: the strides describe the layout completely. Any other value is a layout
 * of the engine, and stride[0] is then its size in elements. */
typedef struct {
    ctn_dtype dtype;
    int32_t ndim;
    int32_t layout;
    int64_t dim[CTN_MAX_DIMS];
    int64_t stride[CTN_MAX_DIMS];
} ctn_desc;

typedef struct ctn_context ctn_context;
typedef struct ctn_tensor ctn_tensor;
typedef struct ctn_var ctn_var;

/* Passes ndim and dims together: ctn_input(ctx, p, CTN_F32, CTN_SHAPE(100, 784)). C only. */
/* clang-format off */
#define CTN_SHAPE(...)                                                         \
    (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),           \
        (const int64_t[]){__VA_ARGS__}
/* clang-format on */
#define CTN_SCALAR_SHAPE 0, NULL

/* Number of dimensions, length of an axis, number of elements (each -1 for NULL) and type (0
 * for NULL) of a tensor. Local. */
CTN_API int ctn_ndim(const ctn_tensor *t);
CTN_API int64_t ctn_dim(const ctn_tensor *t, int axis); /* axis < 0 counts from the end */
CTN_API int64_t ctn_count(const ctn_tensor *t);
CTN_API ctn_dtype ctn_dtype_of(const ctn_tensor *t);

/* Copy the values out, row-major. Flushes: runs what was recorded. bytes must be the exact
 * size. Local. Errors: EARG, EGONE, any error of the flush. */
CTN_API CTN_MUST_CHECK ctn_status ctn_read(ctn_tensor *t, void *dst, size_t bytes);

/* The only element of t as a number. Flushes. Returns NaN and records an error on failure.
 * Local. */
CTN_API double ctn_item(ctn_tensor *t);

/* A pointer to the values, row-major. Flushes. Returns NULL and records an error on failure.
 * Local. Result: borrowed until the outermost scope ends. */
CTN_API const void *ctn_data(ctn_tensor *t);

/* Shape and values as text, shortened in the middle if large. Flushes. Writes at most n bytes
 * including the terminating 0 and returns the full length, as snprintf does; < 0 on error.
 * Local. */
CTN_API int ctn_tensor_text(ctn_tensor *t, char *buf, size_t n);

#ifdef __cplusplus
}
#endif
#endif
