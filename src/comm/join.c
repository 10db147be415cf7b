/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts an array together of which each rank has a part. Every element is zero on all ranks but one,
 * so a sum as integers keeps its bits, which a sum of floats does not (-0).
 */
#include "comm/comm.h"

ctn_status ctn__comm_join(ctn_comm *c, float *data, int64_t count)
{
    enum { MOST = 1 << 20 }; /* elements at a time: the algorithm needs as much memory again */
    if (!c) return CTN_OK;
    for (int64_t at = 0, n; at < count; at += n) {
        ctn__coll *x = NULL;
        n = count - at < MOST ? count - at : MOST;
        CTN_TRY(ctn__coll_start(c, &x, &ctn__rabenseifner, data + at, n, CTN_I32, CTN_I32));
        CTN_TRY(ctn__coll_wait(x));
    }
    return CTN_OK;
}
