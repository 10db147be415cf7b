/* SPDX-License-Identifier: Apache-2.0
 *
 * topk of one row for one element type, included by topk.c once per type. T is the type, NAME
 * gives the functions their names.
 */

/* Whether element i comes before element j in the result. */
static bool NAME(before)(const T *x, int64_t i, int64_t j)
{
    T p = x[i], q = x[j];
    if (p > q || (p != p && q == q)) return true;
    return !(q > p || (q != q && p == p)) && i < j;
}

/* Move element i of the heap down to its place. The element that comes last is at the top. */
static void NAME(sink)(const T *x, int64_t *heap, int64_t n, int64_t i)
{
    for (int64_t c = 2 * i + 1; c < n; c = 2 * i + 1) {
        if (c + 1 < n && NAME(before)(x, heap[c], heap[c + 1])) c++;
        if (!NAME(before)(x, heap[i], heap[c])) return;
        int64_t t = heap[i];
        heap[i] = heap[c];
        heap[c] = t;
        i = c;
    }
}

static void NAME(topk_row)(const T *x, int64_t n, int64_t k, T *y, int64_t *heap)
{
    for (int64_t i = 0; i < k; i++) heap[i] = i;
    for (int64_t i = k / 2; i-- > 0;) NAME(sink)(x, heap, k, i);
    for (int64_t i = k; i < n; i++) {
        if (!NAME(before)(x, i, heap[0])) continue;
        heap[0] = i;
        NAME(sink)(x, heap, k, 0);
    }
    for (int64_t left = k; left > 1;) {
        int64_t worst = heap[0];
        heap[0] = heap[--left];
        heap[left] = worst;
        NAME(sink)(x, heap, left, 0);
    }
    for (int64_t i = 0; i < k; i++) y[i] = x[heap[i]];
}

#undef T
#undef NAME
