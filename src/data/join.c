/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches of samples of unequal size whose rows come one after another, such as graphs: the nodes
 * of all graphs, and the edges between them. Each row has the number of its sample. Edges name
 * nodes by their number in the graph, which becomes that in the batch. At the end of each field is
 * at least one row of padding, so that edges of padding have a node to name.
 */
#include "data/loader.h"

ctn_status ctn__join_check(const ctn_loader *l)
{
    const int f = l->join_index, own = ctn_dataset_fields(l->ds);
    if (f == 0) return CTN_OK;
    if (f < 0 || f >= own || !l->lengths[f] || !l->lengths[0])
        return ctn_fail(CTN_EARG,
                        "loader: join_index is %d; fields 0 and join_index must be ragged, and the "
                        "dataset has %d fields",
                        f, own);
    if (l->field[f].dtype != CTN_I64 && l->field[f].dtype != CTN_I32)
        return ctn_fail(CTN_EARG, "loader: field %d is %s, but join_index needs i64 or i32", f,
                        ctn_dtype_name(l->field[f].dtype));
    return CTN_OK;
}

int64_t ctn__join_room(const ctn_loader *l, int64_t longest)
{
    return longest > INT64_MAX - l->pad_multiple ? longest : longest + l->pad_multiple;
}

static int64_t number_at(const void *p, ctn_dtype t, int64_t i)
{
    return t == CTN_I64 ? ((const int64_t *)p)[i] : ((const int32_t *)p)[i];
}

static void set_number(void *p, ctn_dtype t, int64_t i, int64_t v)
{
    if (t == CTN_I64) ((int64_t *)p)[i] = v;
    else ((int32_t *)p)[i] = (int32_t)v;
}

/* Numbers in a row of the field join_index. */
static int64_t numbers_of(const ctn_loader *l)
{
    return (int64_t)(l->bytes[l->join_index] / ctn_dtype_size(l->field[l->join_index].dtype));
}

ctn_status ctn__join_sample(const ctn_loader *l, struct ctn__slot *slot, void *const *dst,
                            const int64_t *length)
{
    const int x = l->join_index;
    const ctn_dtype t = l->field[x].dtype;
    const int64_t n = x ? length[x] * numbers_of(l) : 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t v = number_at(dst[x], t, i);
        if (v < 0 || v >= length[0])
            return ctn_fail(CTN_EFORMAT,
                            "row %lld of field %d has the number %lld, expected 0 to %lld",
                            (long long)(i / numbers_of(l)), x, (long long)v,
                            (long long)length[0] - 1);
        set_number(dst[x], t, i, v + slot->joined[0]);
    }
    for (int f = 0; f < ctn_dataset_fields(l->ds); f++) {
        if (!l->lengths[f]) continue;
        int64_t *id = dst[l->lengths[f]];
        for (int64_t i = 0; i < length[f]; i++) id[i] = slot->n;
        slot->joined[f] += length[f];
        slot->joined[l->lengths[f]] = slot->joined[f];
    }
    return CTN_OK;
}

void ctn__join_end(const ctn_loader *l, struct ctn__slot *slot)
{
    for (int f = 0; f < ctn_dataset_fields(l->ds); f++) {
        if (!l->lengths[f]) continue;
        const size_t size = ctn_dtype_size(l->field[f].dtype), row = l->bytes[f];
        const int64_t from = slot->joined[f], end = slot->padded[f];
        char *rows = slot->memory + l->offset[f];
        void *ids = slot->memory + l->offset[l->lengths[f]];
        int64_t *id = ids;
        ctn__pad_fill(rows + (size_t)from * row, l->pad[f], size,
                      (size_t)(end - from) * (row / size));
        for (int64_t i = from; i < end; i++) id[i] = slot->n;
        if (f != l->join_index || f == 0) continue;
        for (int64_t i = from * numbers_of(l); i < end * numbers_of(l); i++)
            set_number(rows, l->field[f].dtype, i, slot->padded[0] - 1);
    }
}
