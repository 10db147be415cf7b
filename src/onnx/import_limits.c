/* SPDX-License-Identifier: Apache-2.0
 *
 * What a file may cost. A file of a few bytes can ask for any number of nodes (functions that call
 * others twice, loops in loops) and for arrays of any size, so opening a model and each call of it
 * get a budget of nodes and bytes, and everything whose size comes from the file is paid from it.
 * Weights and recorded tensors are not: they have their own limits.
 */
#include "onnx/onnx.h"

#ifdef CTN_HAVE_PROTOBUFC

enum { ELEMENTS_OF_A_NODE = 256 }; /* a loop over so many takes about as long as a node */
enum { LEAST_BYTES = 4 };          /* of an element, because bytes also limit the time */

void ctn__onnx_budget_begin(ctn__onnx_budget *b, const char *path)
{
    const int64_t mb = ctn__env_int(CTN__ENV_ONNX_MB), most = INT64_MAX >> 20;
    *b = (ctn__onnx_budget){.path = path, .nodes = ctn__env_int(CTN__ENV_ONNX_NODES)};
    b->bytes = mb < 0 ? 0 : (mb < most ? mb : most) << 20;
}

ctn_status ctn__onnx_spend(ctn__onnx_budget *b, int64_t nodes, size_t bytes)
{
    if (bytes > (size_t)b->bytes)
        return ctn_fail(CTN_EUNSUPPORTED,
                        "onnx: %s takes more than %lld MB of memory for arrays other than its "
                        "weights; if the file is trusted, set CATENA_ONNX_MB to a larger number",
                        b->path, (long long)ctn__env_int(CTN__ENV_ONNX_MB));
    if (nodes > b->nodes)
        return ctn_fail(CTN_EUNSUPPORTED,
                        "onnx: %s takes more than %lld nodes, counting each call of a function and "
                        "each iteration of a loop; if the file is trusted, set CATENA_ONNX_NODES "
                        "to a larger number",
                        b->path, (long long)ctn__env_int(CTN__ENV_ONNX_NODES));
    b->nodes -= nodes;
    b->bytes -= (int64_t)bytes;
    return CTN_OK;
}

int64_t ctn__onnx_times(int64_t a, int64_t b)
{
    if (a < 0 || b < 0) return INT64_MAX;
    const size_t n = ctn__mul((size_t)a, (size_t)b);
    return n < INT64_MAX ? (int64_t)n : INT64_MAX;
}

ctn_status ctn__onnx_spend_elements(ctn__onnx_run *run, int64_t n, size_t size)
{
    const size_t least = size > 0 && size < LEAST_BYTES ? LEAST_BYTES : size;
    const size_t bytes = n < 0 ? SIZE_MAX : ctn__mul((size_t)n, least);
    return ctn__onnx_spend(&run->budget, n < 0 ? 0 : n / ELEMENTS_OF_A_NODE, bytes);
}

ctn_status ctn__onnx_spend_recorded(ctn__onnx_run *run)
{
    const size_t n = run->ctx->nodes.n, before = run->recorded;
    run->recorded = n; /* fewer than before, if what was recorded has run */
    return n > before ? ctn__onnx_spend(&run->budget, (int64_t)(n - before), 0) : CTN_OK;
}

void *ctn__onnx_memory(ctn__onnx_run *run, int64_t count, size_t size)
{
    if (ctn__onnx_spend_elements(run, count, size) < 0) return NULL;
    const size_t bytes = (size_t)count * size; /* fits: the budget has refused what does not */
    return ctn__arena_get(&run->ctx->arena, bytes < 16 ? 16 : bytes);
}

#endif
