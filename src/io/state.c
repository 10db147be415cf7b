/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of a training in one safetensors file. Every part is visited twice. Saving visits it
 * once for names and shapes and once for the values, one array at a time. Loading visits it once
 * to check that the file has every array with the right type and shape, and once to read the
 * values. Values are copied byte by byte and never converted, so a resumed training continues
 * exactly.
 */
#include "graph/graph.h"
#include "io/checkpoint/checkpoint.h"
#include "io/safetensors.h"
#include "optim/optim.h"

typedef struct {
    const char *prefix;
    ctn__st_writer *writer;   /* save */
    const ctn__st_file *file; /* load */
    bool values;              /* the second visit */
    size_t found;             /* load: arrays of this part */
} visit;

static ctn_status full_name(const visit *s, const char *name, char *buf, size_t n)
{
    int k = snprintf(buf, n, "%s%s%s", s->prefix, *s->prefix ? "." : "", name);
    if (k < 0 || (size_t)k >= n)
        return ctn_fail(CTN_EARG, "state: the name %s.%s is longer than %zu bytes", s->prefix, name,
                        n);
    return CTN_OK;
}

static ctn_status save_array(void *user, const char *name, ctn_dtype dtype, int ndim,
                             const int64_t *dims, void *data)
{
    const visit *s = user;
    char full[1024];
    CTN_TRY(full_name(s, name, full, sizeof full));
    return s->values ? ctn__st_put(s->writer, full, data)
                     : ctn__st_add(s->writer, full, dtype, ndim, dims);
}

static ctn_status check_parts(const char *who, const char *path, int n, const ctn_state_part *parts)
{
    if (!path || n < 0 || (n > 0 && !parts))
        return ctn_fail(CTN_EARG, "%s: needs a path and parts", who);
    for (int i = 0; i < n; i++)
        if (!parts[i].prefix || !parts[i].visit || !parts[i].object)
            return ctn_fail(CTN_EARG, "%s: part %d has no %s", who, i,
                            !parts[i].prefix  ? "prefix"
                            : !parts[i].visit ? "visit function"
                                              : "object");
    return CTN_OK;
}

static ctn_status visit_optim(void *object, ctn_state_fn fn, void *user)
{
    return ctn_optim_visit(object, fn, user);
}

/* The first visit needs no values, so sharded ones are not gathered for it. */
static ctn_status visit_part(visit *s, const ctn_state_part *p, ctn_state_fn fn)
{
    s->prefix = p->prefix;
    if (!s->values && p->visit == visit_optim) return ctn__optim_list(p->object, fn, s);
    return p->visit(p->object, fn, s);
}

ctn_status ctn_state_save(const char *path, int n, const ctn_state_part *parts)
{
    ctn_status st = CTN_OK;
    visit s = {0};
    CTN_TRY(check_parts("state_save", path, n, parts));
    CTN_TRY_GOTO(st, done, ctn__st_begin(&s.writer, path));
    for (int pass = 0; pass < 2; pass++) {
        s.values = pass == 1;
        for (int i = 0; i < n; i++) CTN_TRY_GOTO(st, done, visit_part(&s, &parts[i], save_array));
    }
    CTN_TRY_GOTO(st, done, ctn__st_finish(s.writer));
done:
    ctn__st_writer_free(s.writer);
    return st;
}

/* Find the array of the file that this array is loaded from. Errors: ENOTFOUND, ESHAPE, EDTYPE. */
static ctn_status find_array(const visit *s, const char *full, ctn_dtype dtype, int ndim,
                             const int64_t *dims, const ctn__st_array **out)
{
    char want[128], have[128];
    const ctn__st_array *a = *out = ctn__st_find(s->file, full);
    if (!a) return ctn_fail(CTN_ENOTFOUND, "state_load: %s is not in the file", full);
    ctn_desc w = {.ndim = ndim}, h = {.ndim = a->ndim};
    if (ndim > 0) memcpy(w.dim, dims, (size_t)ndim * sizeof *dims);
    memcpy(h.dim, a->shape, sizeof h.dim);
    if (!ctn__same_shape(&w, &h))
        return ctn_fail(CTN_ESHAPE, "state_load: %s is %s in this program and %s in the file", full,
                        ctn__shape_text(&w, want, sizeof want),
                        ctn__shape_text(&h, have, sizeof have));
    if (a->dtype != dtype)
        return ctn_fail(CTN_EDTYPE, "state_load: %s is %s in this program and %s in the file", full,
                        ctn_dtype_name(dtype), ctn_dtype_name(a->dtype));
    return CTN_OK;
}

static ctn_status load_array(void *user, const char *name, ctn_dtype dtype, int ndim,
                             const int64_t *dims, void *data)
{
    visit *s = user;
    char full[1024];
    const ctn__st_array *a = NULL;
    CTN_TRY(full_name(s, name, full, sizeof full));
    CTN_TRY(find_array(s, full, dtype, ndim, dims, &a));
    s->found++;
    return s->values ? ctn__st_read(s->file, a, data) : CTN_OK;
}

/* A part must load every array under its prefix: one left over would be lost state. */
static ctn_status check_all_used(const visit *s, const char *path)
{
    size_t n = strlen(s->prefix), under = 0;
    for (size_t i = 0; i < ctn__st_count(s->file); i++) {
        const char *name = ctn__st_at(s->file, i)->name;
        under += n == 0 || (strncmp(name, s->prefix, n) == 0 && name[n] == '.');
    }
    if (under == s->found) return CTN_OK;
    return ctn_fail(
        CTN_ENOTFOUND,
        "state_load: %s has %zu arrays under '%s', but this program has %zu; was it saved "
        "with another model or optimizer?",
        path, under, s->prefix, s->found);
}

ctn_status ctn_state_load(const char *path, int n, const ctn_state_part *parts)
{
    ctn_status st = CTN_OK;
    visit s = {0};
    ctn__st_file *file = NULL;
    CTN_TRY(check_parts("state_load", path, n, parts));
    CTN_TRY(ctn__st_open(&file, path));
    s.file = file;
    for (int pass = 0; pass < 2; pass++) {
        s.values = pass == 1;
        for (int i = 0; i < n; i++) {
            s.found = 0;
            CTN_TRY_GOTO(st, done, visit_part(&s, &parts[i], load_array));
            CTN_TRY_GOTO(st, done, check_all_used(&s, path));
        }
    }
done:
    ctn__st_close(file);
    return st;
}

/* ---- predefined parts ------------------------------------------------------------------ */

static ctn_status visit_module(void *object, ctn_state_fn fn, void *user)
{
    return ctn_module_visit(object, fn, user);
}

static ctn_status visit_context(void *object, ctn_state_fn fn, void *user)
{
    ctn_context_state c;
    ctn_context_get_state(object, &c);
    CTN_TRY(fn(user, "seed", CTN_I64, 0, NULL, &c.seed));
    CTN_TRY(fn(user, "step", CTN_I64, 0, NULL, &c.step));
    return ctn_context_set_state(object, &c);
}

static ctn_status visit_loader(void *object, ctn_state_fn fn, void *user)
{
    ctn_sampler_state was = ctn_loader_get_state(object), s = was;
    CTN_TRY(fn(user, "seed", CTN_I64, 0, NULL, &s.seed));
    CTN_TRY(fn(user, "epoch", CTN_I64, 0, NULL, &s.epoch));
    CTN_TRY(fn(user, "position", CTN_I64, 0, NULL, &s.position));
    bool moved = s.seed != was.seed || s.epoch != was.epoch || s.position != was.position;
    return moved ? ctn_loader_set_state(object, &s) : CTN_OK; /* keep batches loaded ahead */
}

ctn_state_part ctn_part_module(const char *prefix, ctn_module *m)
{
    return (ctn_state_part){prefix, visit_module, m};
}

ctn_state_part ctn_part_optim(const char *prefix, ctn_optim *o)
{
    return (ctn_state_part){prefix, visit_optim, o};
}

ctn_optim *ctn__part_optim(const ctn_state_part *p)
{
    return p->visit == visit_optim ? p->object : NULL;
}

ctn_state_part ctn_part_context(const char *prefix, ctn_context *ctx)
{
    return (ctn_state_part){prefix, visit_context, ctx};
}

ctn_state_part ctn_part_loader(const char *prefix, ctn_loader *l)
{
    return (ctn_state_part){prefix, visit_loader, l};
}
