/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds of ONNX ops that share a converter, and small functions that onnx_ops.def and several
 * converters use.
 */
#ifndef CTN_ONNX_KINDS_H
#define CTN_ONNX_KINDS_H

#include "onnx/onnx.h"

enum {
    CTN__ONNX_ADD,
    CTN__ONNX_SUB,
    CTN__ONNX_MUL, /* these three have a fast form with a number */
    CTN__ONNX_DIV,
    CTN__ONNX_MOD,
    CTN__ONNX_FMOD,
    CTN__ONNX_POW,
    CTN__ONNX_MAX,
    CTN__ONNX_MIN,
    CTN__ONNX_MEAN,
    CTN__ONNX_AND,
    CTN__ONNX_OR,
    CTN__ONNX_XOR,
    CTN__ONNX_LEFT,
    CTN__ONNX_RIGHT,
    CTN__ONNX_EQUAL,
    CTN__ONNX_LESS,
    CTN__ONNX_LESS_EQUAL,
    CTN__ONNX_GREATER,
    CTN__ONNX_GREATER_EQUAL
};
enum {
    CTN__ONNX_R_SUM,
    CTN__ONNX_R_MEAN,
    CTN__ONNX_R_MAX,
    CTN__ONNX_R_MIN,
    CTN__ONNX_R_PROD,
    CTN__ONNX_R_L1,
    CTN__ONNX_R_L2,
    CTN__ONNX_R_LOG_SUM,
    CTN__ONNX_R_LOG_SUM_EXP,
    CTN__ONNX_R_SUM_SQUARE
};
enum { CTN__ONNX_POOL_MAX, CTN__ONNX_POOL_AVERAGE, CTN__ONNX_POOL_LP };
enum { CTN__ONNX_HANN, CTN__ONNX_HAMMING, CTN__ONNX_BLACKMAN };

ctn_tensor *ctn__onnx_reciprocal(const char *at, ctn_tensor *x);
ctn_tensor *ctn__onnx_softsign(const char *at, ctn_tensor *x);
ctn_tensor *ctn__onnx_xor(const char *at, ctn_tensor *a, ctn_tensor *b);
double ctn__onnx_num_neg(double x);
double ctn__onnx_num_sign(double x);
double ctn__onnx_num_reciprocal(double x);
double ctn__onnx_num_not(double x);

/* Element i of an array becomes x, converted to its type. */
void ctn__onnx_put_int(void *p, ctn_dtype t, int64_t i, int64_t x);
void ctn__onnx_put_number(void *p, ctn_dtype t, int64_t i, double x);
/* The shape that a and b broadcast to. Errors: ESHAPE. */
ctn_status ctn__onnx_broadcast(const ctn__onnx_call *c, ctn_desc *out, const ctn_desc *a,
                               const ctn_desc *b);
/* Where element number i of a row-major array of this shape lies in d. */
int64_t ctn__onnx_offset(const ctn_desc *d, int64_t i, const ctn_desc *shape);
/* A row-major description of the value. */
ctn_desc ctn__onnx_desc(const ctn__onnx_value *v);

#endif
