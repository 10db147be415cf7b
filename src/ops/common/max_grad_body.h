/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel of max_grad for one element type, included by max.c once per type. T is the type,
 * NAME gives the function its name.
 */

/* gy of one result, split evenly among its elements that equal y. */
static void NAME(share)(const ctn__reduce *s, const T *x, T *gx, T y, T gy)
{
    int64_t lines = s->r / s->last, step = s->last_step, count = 0;
    for (int64_t l = 0; l < lines; l++) {
        const T *v = x + ctn__reduce_offset(&s->red, s->red.ndim - 1, l);
        for (int64_t i = 0; i < s->last; i++)
            count += v[i * step] == y || (v[i * step] != v[i * step] && y != y);
    }
    T share = gy / (T)count;
    for (int64_t l = 0; l < lines; l++) {
        int64_t off = ctn__reduce_offset(&s->red, s->red.ndim - 1, l);
        for (int64_t i = 0; i < s->last; i++) {
            T v = x[off + i * step];
            gx[off + i * step] = v == y || (v != v && y != y) ? share : 0;
        }
    }
}

#undef T
#undef NAME
