/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls models that must be refused.
 */
#ifndef CTN_TESTS_HOSTILE_H
#define CTN_TESTS_HOSTILE_H

#include "maker.h"

/* Opens and calls the model of k, with x (2,4) if it has an input; reads the result; drops k. */
static inline ctn_status call(maker *k)
{
    static const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    ctn_context *ctx = context();
    ctn_module *m = NULL;
    ctn_tensor *y = NULL;
    bool inside = false;
    pack(k);
    ctn_status st = open(&m, ctx, k, 1);
    if (st == CTN_OK) {
        OK(ctn_scope_begin(ctx));
        inside = true;
        ctn_tensor *x = ctn_input(ctx, ones, CTN_F32, CTN_SHAPE(2, 4));
        st = ctn_onnx_run(m, ctn_onnx_inputs(m), &x, 1, &y);
        if (st == CTN_OK && !ctn_data(y)) st = ctn_error_status();
    }
    char message[600];
    snprintf(message, sizeof message, "%s", st < 0 ? ctn_error_message() : "");
    if (inside && ctn_scope_end(ctx) < 0) ctn_error_clear();
    ctn_module_free(m);
    drop(k);
    ctn_context_free(ctx);
    if (st < 0) ctn_fail(st, "%s", message);
    return st;
}

static inline void refused(const char *what, maker *k, ctn_status want, const char *part)
{
    const ctn_status st = call(k);
    if (st != want || !strstr(ctn_error_message(), part))
        fail_msg("%s: status %d, expected %d with '%s': %s", what, st, want, part,
                 st < 0 ? ctn_error_message() : "");
    ctn_error_clear();
}

static inline maker *model(int64_t opset)
{
    maker *k = make(opset);
    output(k, "y");
    return k;
}

/* A number. */
static inline void number(maker *k, const char *name, int64_t *value)
{
    integers(k, name, 1, value);
    k->tensor[k->graph.n_initializer - 1].n_dims = 0;
}

#endif
