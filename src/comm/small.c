/* SPDX-License-Identifier: Apache-2.0
 *
 * Sum of a short vector: recursive doubling. With q the largest power of two that is at most p,
 * ranks from q on first give theirs to rank - q and get the result at the end; the others meet rank
 * xor 1, 2, 4, ... and both add. Addition is commutative, so both have the same bits.
 *
 * Cost: log2(q) (alpha + n beta + n gamma), and 2 alpha + 2 n beta where p is no power of two.
 */
#include "comm/comm.h"

ctn_status ctn__comm_sum_small(ctn_comm *c, void *buf, int64_t count, ctn_dtype type, void *scratch)
{
    const int rank = c->place.rank, size = c->place.size;
    const size_t bytes = (size_t)count * ctn_dtype_size(type);
    int q = 1;
    while (2 * q <= size) q *= 2;
    if (count == 0) return CTN_OK;
    if (rank >= q) {
        CTN_TRY(ctn__comm_swap(c, CTN__TAG_SMALL, buf, bytes, rank - q, NULL, 0, 0));
        return ctn__comm_swap(c, CTN__TAG_SMALL, NULL, 0, 0, buf, bytes, rank - q);
    }
    if (rank + q < size) {
        CTN_TRY(ctn__comm_swap(c, CTN__TAG_SMALL, NULL, 0, 0, scratch, bytes, rank + q));
        ctn__sum_into(buf, scratch, count, type, type);
    }
    for (int bit = 1; bit < q; bit *= 2) {
        CTN_TRY(
            ctn__comm_swap(c, CTN__TAG_SMALL, buf, bytes, rank ^ bit, scratch, bytes, rank ^ bit));
        ctn__sum_into(buf, scratch, count, type, type);
    }
    if (rank + q < size) return ctn__comm_swap(c, CTN__TAG_SMALL, buf, bytes, rank + q, NULL, 0, 0);
    return CTN_OK;
}
