/* SPDX-License-Identifier: Apache-2.0
 *
 * A run of cheap ops for SVE, included by cheap.c. An array of vectors needs a length that the
 * compiler knows, so a block of elements stays in the L1 cache from the first op to the last, not
 * in registers as in cheap_body.h.
 */
enum { BLOCK = 256 };

/* One op on a block; e is its value for element k. */
#define BLOCK_OP(e)                                                     \
    do {                                                                \
        _Pragma("omp simd") for (int k = 0; k < BLOCK; k++) v[k] = (e); \
    } while (0)

CTN__FOR_SVE static void run_sve(const ctn__cheap_op *op, int n, const float *x, float *y,
                                 int64_t count)
{
    for (int64_t at = 0; at < count; at += BLOCK) {
        float v[BLOCK];
        memcpy(v, x + at, sizeof v);
        for (const ctn__cheap_op *p = op; p < op + n; p++) {
            const float c = p->c, *r = p->row ? p->row + at : NULL;
            switch (p->what) {
            case CTN__CHEAP_SCALE: BLOCK_OP(c * v[k]); break;
            case CTN__CHEAP_SHIFT: BLOCK_OP(v[k] + c); break;
            case CTN__CHEAP_SQUARE: BLOCK_OP(v[k] * v[k]); break;
            case CTN__CHEAP_NEG: BLOCK_OP(-v[k]); break;
            case CTN__CHEAP_ABS: BLOCK_OP(__builtin_fabsf(v[k])); break;
            case CTN__CHEAP_RELU: BLOCK_OP(v[k] < 0 ? 0 : v[k]); break;
            case CTN__CHEAP_LEAKY: BLOCK_OP(v[k] > 0 ? v[k] : c * v[k]); break;
            case CTN__CHEAP_ADD: BLOCK_OP(v[k] + r[k]); break;
            case CTN__CHEAP_MUL: BLOCK_OP(v[k] * r[k]); break;
            case CTN__CHEAP_SUB: BLOCK_OP(v[k] - r[k]); break;
            case CTN__CHEAP_FROM: BLOCK_OP(r[k] - v[k]); break;
            default: break;
            }
        }
        memcpy(y + at, v, sizeof v);
    }
}
