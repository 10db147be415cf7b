/* SPDX-License-Identifier: Apache-2.0
 *
 * A run of cheap ops compiled for one instruction set, included by cheap.c once per set. RUN is
 * the name of the function, TARGET its attribute, LANES the number of elements of a vector, MANY
 * the number of vectors taken at a time: they stay in registers from the first op to the last.
 */
TARGET static void RUN(const ctn__cheap_op *op, int n, const float *x, float *y, int64_t count)
{
    typedef float vec __attribute__((vector_size(LANES * sizeof(float))));
    typedef int32_t ints __attribute__((vector_size(LANES * sizeof(float))));
    const vec zero = {0};
    for (int64_t at = 0; at < count; at += MANY * LANES) {
        vec v[MANY];
        ALL(memcpy(&v[k], x + at + k * LANES, sizeof v[k]));
        ALL(__builtin_prefetch(x + at + (MANY + k) * LANES));
        for (const ctn__cheap_op *p = op; p < op + n; p++) {
            const float c = p->c;
            switch (p->what) {
            case CTN__CHEAP_SCALE: ALL(v[k] = c * v[k]); break;
            case CTN__CHEAP_SHIFT: ALL(v[k] = v[k] + c); break;
            case CTN__CHEAP_SQUARE: ALL(v[k] = v[k] * v[k]); break;
            case CTN__CHEAP_NEG: ALL(v[k] = -v[k]); break;
            case CTN__CHEAP_ABS: ALL(v[k] = (vec)((ints)v[k] & INT32_MAX)); break;
            case CTN__CHEAP_RELU: ALL(v[k] = (vec)(~(ints)(v[k] < zero) & (ints)v[k])); break;
            case CTN__CHEAP_LEAKY:
                ALL(const vec w = c * v[k]; v[k] = PICK((ints)(v[k] > zero), v[k], w));
                break;
            case CTN__CHEAP_ADD: WITH_ROW(v[k] = v[k] + r); break;
            case CTN__CHEAP_MUL: WITH_ROW(v[k] = v[k] * r); break;
            case CTN__CHEAP_SUB: WITH_ROW(v[k] = v[k] - r); break;
            case CTN__CHEAP_FROM: WITH_ROW(v[k] = r - v[k]); break;
            default: break;
            }
        }
        ALL(memcpy(y + at + k * LANES, &v[k], sizeof v[k]));
    }
}

#undef RUN
#undef TARGET
#undef LANES
#undef MANY
