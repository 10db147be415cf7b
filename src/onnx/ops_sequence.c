/* SPDX-License-Identifier: Apache-2.0
 *
 * Sequences of tensors. They exist only while a model is recorded.
 */
#include "onnx/onnx.h"

#ifdef CTN_HAVE_PROTOBUFC

/* Output 0 becomes a sequence of n values that the caller fills in. */
static ctn__onnx_value **new_sequence(ctn__onnx_call *c, int64_t n)
{
    ctn__onnx_value **item = ctn__onnx_memory(c->run, n + 1, sizeof *item);
    if (item && c->nout > 0 && c->out[0]) *c->out[0] = (ctn__onnx_value){.item = item, .items = n};
    return item;
}

static ctn__onnx_value *copy_of(ctn__onnx_call *c, const ctn__onnx_value *v)
{
    ctn__onnx_value *copy = ctn__onnx_memory(c->run, 1, sizeof *copy);
    if (copy) *copy = *v;
    return copy;
}

static ctn_status need_sequence(const ctn__onnx_call *c)
{
    if (c->nin > 0 && c->in[0] && c->in[0]->item) return CTN_OK;
    return ctn__onnx_fail(c, CTN_EFORMAT, "input 0 is not a sequence");
}

/* Position in input i, or `otherwise` if it is left out; at most `most`, which is -1 if there is
 * none. */
static ctn_status position(ctn__onnx_call *c, int i, int64_t otherwise, int64_t most, int64_t *at)
{
    *at = otherwise;
    CTN_TRY(ctn__onnx_one_int(c, i, at));
    if (*at < 0) *at += c->in[0]->items;
    if (*at < 0 || *at > most)
        return ctn__onnx_fail(c, CTN_EARG, "position %lld of a sequence of %lld", (long long)*at,
                              (long long)c->in[0]->items);
    return CTN_OK;
}

ctn_status ctn__onnx_do_sequence_empty(ctn__onnx_call *c)
{
    return new_sequence(c, 0) ? CTN_OK : ctn_error_status();
}

ctn_status ctn__onnx_do_sequence_construct(ctn__onnx_call *c)
{
    ctn__onnx_value **item = new_sequence(c, c->nin);
    if (!item) return ctn_error_status();
    for (int i = 0; i < c->nin; i++) {
        if (!ctn__onnx_has(c, i)) return ctn__onnx_fail(c, CTN_EFORMAT, "input %d is missing", i);
        item[i] = copy_of(c, c->in[i]);
        if (!item[i]) return ctn_error_status();
    }
    return CTN_OK;
}

ctn_status ctn__onnx_do_sequence_at(ctn__onnx_call *c)
{
    int64_t at;
    CTN_TRY(need_sequence(c));
    CTN_TRY(position(c, 1, 0, c->in[0]->items - 1, &at));
    return ctn__onnx_set_value(c, 0, c->in[0]->item[at]);
}

ctn_status ctn__onnx_do_sequence_length(ctn__onnx_call *c)
{
    CTN_TRY(need_sequence(c));
    int64_t *n = ctn__onnx_set_host(c, 0, CTN_I64, 0, NULL);
    if (!n) return ctn_error_status();
    *n = c->in[0]->items;
    return CTN_OK;
}

ctn_status ctn__onnx_do_sequence_insert(ctn__onnx_call *c)
{
    int64_t at;
    CTN_TRY(need_sequence(c));
    const ctn__onnx_value s = *c->in[0];
    CTN_TRY(position(c, 2, s.items, s.items, &at));
    ctn__onnx_value **item = new_sequence(c, s.items + 1);
    if (!item) return ctn_error_status();
    if (!ctn__onnx_has(c, 1)) return ctn__onnx_fail(c, CTN_EFORMAT, "no tensor");
    for (int64_t i = 0; i <= s.items; i++)
        item[i] = i < at ? s.item[i] : i > at ? s.item[i - 1] : copy_of(c, c->in[1]);
    return item[at] ? CTN_OK : ctn_error_status();
}

ctn_status ctn__onnx_do_sequence_erase(ctn__onnx_call *c)
{
    int64_t at;
    CTN_TRY(need_sequence(c));
    const ctn__onnx_value s = *c->in[0];
    CTN_TRY(position(c, 1, s.items - 1, s.items - 1, &at));
    ctn__onnx_value **item = new_sequence(c, s.items - 1);
    if (!item) return ctn_error_status();
    for (int64_t i = 0; i < s.items - 1; i++) item[i] = s.item[i < at ? i : i + 1];
    return CTN_OK;
}

ctn_status ctn__onnx_do_concat_from_sequence(ctn__onnx_call *c)
{
    CTN_TRY(need_sequence(c));
    const ctn__onnx_value *s = c->in[0];
    ctn_tensor **x = ctn__onnx_memory(c->run, s->items + 1, sizeof *x);
    if (!x) return ctn_error_status();
    for (int64_t i = 0; i < s->items; i++) {
        x[i] = ctn__onnx_record(c->run, s->item[i]);
        if (!x[i]) return ctn_error_status();
    }
    const int64_t axis = ctn__onnx_int(c, "axis", 0);
    return ctn__onnx_set(c, 0,
                         ctn__onnx_int(c, "new_axis", 0)
                             ? ctn_stack_at(c->at, (int)s->items, x, axis)
                             : ctn_concat_at(c->at, (int)s->items, x, axis));
}

/* The sizes of the pieces: given one by one, all equal, or 1 (then without the axis, if keepdims is
 * 0). */
ctn_status ctn__onnx_do_split_to_sequence(ctn__onnx_call *c)
{
    int axis;
    ctn_tensor *x = ctn__onnx_in(c, 0);
    if (!x) return ctn_error_status();
    CTN_TRY(ctn__onnx_axis(c, ctn__onnx_int(c, "axis", 0), x->d.ndim, &axis));
    const bool given = ctn__onnx_has(c, 1);
    if (given) CTN_TRY(ctn__onnx_need(c, 1));
    const int64_t length = x->d.dim[axis];
    const bool list = given && c->in[1]->ndim > 0;
    int64_t each = 1;
    if (given && !list) CTN_TRY(ctn__onnx_one_int(c, 1, &each));
    if (each < 1) return ctn__onnx_fail(c, CTN_EARG, "pieces of %lld", (long long)each);
    const int64_t n = list ? ctn__onnx_count(c->in[1]) : length / each + (length % each > 0);
    const bool drop = !given && !ctn__onnx_int(c, "keepdims", 1);
    ctn__onnx_value **item = new_sequence(c, n);
    int64_t at = 0;
    for (int64_t i = 0; i < n && item; i++) {
        int64_t size = list ? ctn__onnx_int_of(c->in[1], i) : each;
        if (!list && size > length - at) size = length - at;
        CTN_TRY(ctn__onnx_spend_recorded(c->run));
        ctn_tensor *t = ctn_slice_at(c->at, x, axis, at, size);
        if (drop) t = ctn_squeeze_at(c->at, t, axis);
        if (!t) return ctn_error_status();
        ctn__onnx_value v = {.dtype = t->d.dtype, .ndim = t->d.ndim, .t = t};
        memcpy(v.dim, t->d.dim, sizeof v.dim);
        item[i] = copy_of(c, &v);
        if (!item[i]) return ctn_error_status();
        at += size;
    }
    return item ? CTN_OK : ctn_error_status();
}

#endif
