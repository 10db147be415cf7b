/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls with sizes, axes and indices at the ends of their types, made between the instructions of a
 * random program. Each must be refused with a message, and none may change what the program
 * computes. See random_machine.h.
 */
#include "random_machine.h"

#include <stdio.h>
#include <string.h>

#include <catena/ops.h>

static const int64_t ends[] = {-1,        INT32_MIN, INT64_C(1) << 46, INT64_C(1) << 61,
                               INT64_MAX, INT64_MIN};
enum { NENDS = sizeof ends / sizeof *ends };

typedef struct {
    ctn_tensor *x;
    int nd, axis;
    int64_t bad, dims[MAXDIM + 1];
} target;

static ctn_tensor *provoke(machine *m, const target *t, int kind)
{
    ctn_tensor *x = t->x, *out[2] = {NULL, NULL};
    const int64_t bad = t->bad, large = bad < 0 ? INT64_C(1) << 40 : bad;
    int64_t list[MAXDIM + 1] = {0}, none[MAXDIM + 1] = {0};
    for (int i = 0; i < t->nd; i++) list[i] = i == t->axis ? bad : 1;
    switch (kind) {
    case 0: return ctn_full(m->ctx, 1, CTN_F32, 2, (const int64_t[]){bad, INT64_C(1) << 20});
    case 1:
        memcpy(list + 1, t->dims, (size_t)t->nd * sizeof *list);
        list[0] = bad;
        return ctn_broadcast_to(x, t->nd + 1, list);
    case 2: return ctn_reshape(x, 2, (const int64_t[]){large | 1, bad});
    case 3: return ctn_slice_step(x, t->axis, 0, bad, bad);
    case 4: return ctn_slice(x, t->axis, 0, bad);
    case 5: return ctn_tile(x, t->nd, list);
    case 6: return ctn_pad(x, list, none, 0);
    case 7: return ctn_sum(x, 1, (const int64_t[]){bad}, 0);
    case 8: return ctn_unsqueeze(x, bad);
    case 9: return ctn_repeat(x, bad, t->axis);
    case 10: return ctn_concat(1, &x, bad);
    case 11: return ctn_random_uniform(m->ctx, 0, 1, CTN_F32, 2, (const int64_t[]){bad, 1 << 20});
    case 12: return ctn_transpose(x, t->nd, list);
    default: return ctn_split(x, t->axis, 2, (const int64_t[]){bad, bad}, out) < 0 ? NULL : out[0];
    }
}
enum { KINDS = 14 };

bool rm_hostile_call(machine *m, int at, ctn_tensor *x)
{
    const uint32_t draw = (uint32_t)(at * 7919 + m->run * 104729 + (int)m->g->seed);
    target t = {.x = x, .nd = ctn_ndim(x), .bad = ends[draw % NENDS]};
    const int kind = (int)(draw / NENDS % KINDS);
    if (t.nd < 1 || t.nd > MAXDIM) return true;
    t.axis = (int)(draw / NENDS / KINDS % (unsigned)t.nd);
    for (int i = 0; i < t.nd; i++) {
        t.dims[i] = ctn_dim(x, i);
        if (t.dims[i] == 0) return true; /* of nothing, there may be as much as one wants */
    }
    if (t.bad == -1 && kind != 0 && kind != 1 && kind != 9 && kind != 11)
        return true; /* counts from the end, or means what is left */
    if (provoke(m, &t, kind)) {
        snprintf(m->why, sizeof m->why, "seed %u, %s, line %d: hostile call %d with %lld was taken",
                 m->g->seed, m->name, at, kind, (long long)t.bad);
        return false;
    }
    if (ctn_error_message()[0] == 0) {
        snprintf(m->why, sizeof m->why, "seed %u, %s, line %d: hostile call %d has no message",
                 m->g->seed, m->name, at, kind);
        return false;
    }
    ctn_error_clear();
    return true;
}

/* Between scopes: one that fails when it runs leaves the context as it was. It counts as a step,
 * from which random numbers follow, so the counter is set back. */
static bool hostile_scopes(machine *m)
{
    int64_t index[1] = {ends[(unsigned)m->run % NENDS]}, one[MAXDIM] = {1, 1, 1, 1};
    for (int v = 0; v < VARS; v++) {
        const shape *s = &m->g->var[v];
        if (s->nd == 0 || rp_count(s) == 0) continue;
        if (ctn_scope_begin(m->ctx) < 0) return false;
        ctn_tensor *x = ctn_use(m->var[v]);
        ctn_tensor *y = ctn_gather(x, ctn_input(m->ctx, index, CTN_I64, s->nd, one), 0);
        const bool taken = y && ctn_data(y);
        ctn_status st = ctn_scope_end(m->ctx);
        (void)st;
        if (taken) {
            snprintf(m->why, sizeof m->why, "seed %u, %s: index %lld was taken", m->g->seed,
                     m->name, (long long)index[0]);
            return false;
        }
        ctn_error_clear();
    }
    return true;
}

bool rm_hostile_scope(machine *m)
{
    ctn_context_state was;
    ctn_context_get_state(m->ctx, &was);
    return hostile_scopes(m) && ctn_context_set_state(m->ctx, &was) == CTN_OK;
}
