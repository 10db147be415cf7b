/* SPDX-License-Identifier: Apache-2.0
 *
 * The cases as ONNX models: `test_ops --onnx FOLDER` writes the graph of each case in f32 with its
 * inputs and results, and `dev/onnx-zoo --cases` runs them with onnxruntime. Cases of ops that have
 * no form in ONNX are counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include <catena/datasets.h>
#include <catena/onnx_export.h>

#include "check.h"

static bool save(const char *folder, const char *case_name, const char *what, const ctn_desc *d,
                 const void *data)
{
    char path[512];
    ctn_field f = {.dtype = d->dtype, .ndim = d->ndim > 0 ? d->ndim - 1 : 0};
    if (f.dtype == CTN_BOOL) f.dtype = CTN_U8;
    for (int i = 0; i < f.ndim; i++) f.shape[i] = d->dim[1 + i];
    snprintf(path, sizeof path, "%s/%s.%s.npy", folder, case_name, what);
    return ctn_npy_save(path, d->ndim > 0 ? d->dim[0] : 1, &f, data) == CTN_OK;
}

typedef enum { WRITTEN, NO_FORM, NO_FILE, FAILED } written;

/* .npy files of the library have neither bf16 nor empty arrays. */
static bool has_file(const ctn_desc *d)
{
    return d->dtype != CTN_BF16 && ctn__count(d) > 0;
}

static written write_graph(const op_case *c, const char *folder, const char *name, ctn_context *ctx)
{
    ctn_tensors x = {.n = c->nin};
    void *data[MAX_CASE_IN] = {NULL};
    char path[512], what[16];
    written w = FAILED;
    for (int i = 0; i < c->nin; i++) {
        double *v = case_fill(c, i, true);
        const case_in *in = &c->in[i];
        const ctn_dtype t = in->dtype ? in->dtype : CTN_F32;
        data[i] = calloc((size_t)case_count(in) + 1, 8);
        for (int64_t k = 0; k < case_count(in); k++) ctn__elem_set(data[i], t, k, v[k]);
        free(v);
        x.t[i] = ctn_input(ctx, data[i], t, in->ndim, in->dim);
        snprintf(what, sizeof what, "in%d", i);
        if (x.t[i] && !has_file(&x.t[i]->d)) w = NO_FILE;
        if (!x.t[i] || w == NO_FILE || !save(folder, name, what, &x.t[i]->d, data[i])) goto done;
    }
    ctn_tensor *y = c->call(c, ctx, x.t);
    if (y && !has_file(&y->d)) {
        w = NO_FILE;
        goto done;
    }
    snprintf(path, sizeof path, "%s/%s.onnx", folder, name);
    if (y && ctn_onnx_export(path, x, CTN_TENSORS(y), NULL) == CTN_EUNSUPPORTED) {
        ctn_error_clear();
        w = NO_FORM;
        goto done;
    }
    const void *values = y ? ctn_data(y) : NULL;
    if (values && save(folder, name, "out", &y->d, values)) w = WRITTEN;
done:
    if (ctn_scope_end(ctx) < 0) w = FAILED; /* before the memory of the inputs is freed */
    for (int i = 0; i < c->nin; i++) free(data[i]);
    return w;
}

int write_onnx(const char *folder, const op_case *const *tables, int n)
{
    int count[FAILED + 1] = {0};
    ctn_context *ctx = NULL;
    if (ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1, .seed = 1)) < 0) return 1;
    (void)ctn_context_set_training(ctx, 0);
    (void)ctn_context_set_grad(ctx, 0);
    for (int t = 0; t < n; t++)
        for (const op_case *c = tables[t]; c->op; c++) {
            char name[256];
            if (c->nin == 0) continue; /* nothing to feed */
            snprintf(name, sizeof name, "%s.%s", c->op, c->name);
            for (char *p = name; *p; p++)
                if (*p == '/' || *p == ' ') *p = '_';
            if (ctn_scope_begin(ctx) < 0) return 1;
            const written w = write_graph(c, folder, name, ctx);
            count[w]++;
            if (w == FAILED) print_error("%s: %s\n", name, ctn_error_message());
            ctn_error_clear();
        }
    ctn_context_free(ctx);
    print_message("%d cases written, %d have no form in ONNX, %d are empty or bf16, %d failed\n",
                  count[WRITTEN], count[NO_FORM], count[NO_FILE], count[FAILED]);
    return count[FAILED] > 0;
}
