/* SPDX-License-Identifier: Apache-2.0
 *
 * One call in the middle of a random program that fails, on one of its ranks. See random_machine.h.
 */
#include "random_machine.h"

#include <stdio.h>
#include <string.h>

#include <catena/ops.h>
#include <catena/optim.h>

/* A value of a variable behind its end: recorded without complaint, an error when it runs. */
static ctn_tensor *out_of_range(machine *m)
{
    static const int64_t index[1] = {INT64_C(1) << 40};
    static const int64_t one[MAXDIM] = {1, 1, 1, 1};
    for (int v = 0; v < VARS; v++) {
        const shape *s = &m->g->var[v];
        if (s->nd == 0 || rp_count(s) == 0) continue;
        ctn_tensor *i = ctn_input(m->ctx, index, CTN_I64, s->nd, one);
        return ctn_mean(ctn_gather(ctn_use(m->var[v]), i, 0), CTN_ALL_AXES, 0);
    }
    return NULL;
}

static ctn_status bad_loss(machine *m, ctn_optim *o)
{
    ctn_tensor *x = out_of_range(m);
    if (!x) return ctn_backward(o, NULL);
    ctn_context_set_grad(m->ctx, 1);
    for (int v = 0; v < PARAMS; v++) /* there is a gradient of every parameter */
        x = ctn_add(x, ctn_sum(ctn_use(m->var[v]), CTN_ALL_AXES, 0));
    CTN_TRY(ctn_backward(o, x));
    return ctn_optim_step(o);
}

static ctn_status bad_read(machine *m)
{
    double value;
    ctn_tensor *x = out_of_range(m);
    return x ? ctn_read(x, &value, ctn_dtype_size(m->type)) : ctn_var_set(m->var[0], NULL, 1);
}

bool rm_fail(machine *m)
{
    ctn_optim *o = m->optims[m->fail.at % POOLS];
    ctn_status st = CTN_OK;
    switch (m->fail.how) {
    case BAD_BACKWARD: st = ctn_backward(o, NULL); break;
    case BAD_STEP:
        st = m->contributed[m->fail.at % POOLS] > 0 ? ctn_backward(o, NULL) : ctn_optim_step(o);
        break;
    case BAD_LOSS: st = bad_loss(m, o); break;
    default: st = bad_read(m);
    }
    const char *text = ctn_error_message();
    if (st < 0 && text[0])
        snprintf(m->cause, sizeof m->cause, "%.*s", (int)strcspn(text, "\n"), text);
    snprintf(m->why, sizeof m->why, "seed %u, %s, run %d, line %d: failure %d: %s", m->g->seed,
             m->name, m->run, m->fail.at, m->fail.how, st < 0 ? text : "was taken");
    return st < 0;
}
