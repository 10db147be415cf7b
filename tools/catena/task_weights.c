/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights of a task from a file. If they do not fit, the message says what the file was made for,
 * or the command that makes a file which fits.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <catena/io.h>

#include "launch.h"
#include "task.h"

/* ---- why a file does not fit ----------------------------------------------------------------- */

enum { LONGEST = 512 }; /* of a name */

/* Whether a file has all parameters of the network with this text before their names. */
static bool has_all(const ctn_weights *w, const ctn_vars *all, const char *before)
{
    char name[2 * LONGEST];
    for (int i = 0; i < all->n; i++) {
        const ctn_desc *d = ctn_var_desc(all->var[i]);
        ctn_weights_array a;
        snprintf(name, sizeof name, "%s%s", before, all->name[i]);
        const int64_t at = ctn_weights_find(w, name);
        if (at < 0 || ctn_weights_get_array(w, at, &a) < 0 || a.ndim != d->ndim ||
            memcmp(a.shape, d->dim, (size_t)a.ndim * sizeof *a.shape) != 0)
            return false;
    }
    return all->n > 0;
}

/* Whether a text is the same in a shell and in patterns. Names in files are chosen by others. */
static bool is_plain(const char *s)
{
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("._-/+:", *s)) return false;
    return true;
}

/* Checkpoints of training scripts have other arrays beside the weights, often in an entry of their
 * own. Sets `before` to the name of this entry; false: the network is not in the file. */
static bool find_inside(ctn_module *net, const char *path, char before[LONGEST])
{
    const ctn_vars all = ctn_params(net);
    ctn_weights *w = NULL;
    bool found = false;
    if (all.n == 0 || ctn_weights_open(&w, path) < 0) return false;
    for (int64_t i = 0; i < ctn_weights_arrays(w) && !found; i++) {
        ctn_weights_array a;
        if (ctn_weights_get_array(w, i, &a) < 0) break;
        const size_t n = strlen(a.name), end = strlen(all.name[0]);
        if (n < end || n - end >= LONGEST || !ends_with(a.name, all.name[0])) continue;
        snprintf(before, LONGEST, "%.*s", (int)(n - end), a.name);
        found = has_all(w, &all, before);
    }
    ctn_weights_free(w);
    if (found && before[0]) before[strlen(before) - 1] = 0; /* the dot */
    return found;
}

/* Patterns of the names in the network, as --only takes them. */
static void patterns_of(ctn_module *net, char *buf, size_t n)
{
    const ctn_vars all = ctn_params(net);
    const char *last = "";
    size_t at = 0;
    for (int i = 0; i < all.n && at < n; i++) {
        const size_t part = strcspn(all.name[i], ".");
        const bool below = all.name[i][part] == '.';
        if (strncmp(all.name[i], last, part + below) == 0 && *last) continue;
        last = all.name[i];
        at += (size_t)snprintf(buf + at, n - at, "%s%.*s%s", at ? "," : "", (int)part, last,
                               below ? ".*" : "");
    }
}

/* Elements of an array of the file; -1: it is not there. */
static int64_t elements_in(const char *path, const char *name)
{
    ctn_weights *w = NULL;
    ctn_weights_array a = {.ndim = -1};
    if (ctn_weights_open(&w, path) < 0) return -1;
    const int64_t i = ctn_weights_find(w, name);
    const bool found = i >= 0 && ctn_weights_get_array(w, i, &a) == CTN_OK && a.ndim <= 1;
    ctn_weights_free(w);
    return !found ? -1 : a.ndim == 1 ? a.shape[0] : 1;
}

static const char *const means[] = {"input_mean", "target_mean"};

/* The data has another number of channels than that of the training. */
static ctn_status explain_other_data(const task *t, const char *path)
{
    for (int f = 0; f < 2; f++) {
        if (!t->moment[f][0]) continue;
        const int64_t here = ctn_var_desc(t->moment[f][0])->dim[0];
        const int64_t there = elements_in(path, means[f]);
        ctn_error_clear();
        if (there >= 0 && there != here)
            return ctn_fail(CTN_ESHAPE,
                            "%s was trained on samples with %lld %s, those of %s have %lld", path,
                            (long long)there, f == 0 ? "inputs or channels" : "values to predict",
                            args_text(t->a, f == 0 ? "data" : "target"), (long long)here);
    }
    return CTN_OK;
}

/* The file does not know the mean and deviation of its data. */
static ctn_status explain_moments(const task *t, const char *path, ctn_status st, const char *first)
{
    for (int f = 0; f < 2; f++) {
        const bool missing = t->moment[f][0] && elements_in(path, means[f]) < 0;
        ctn_error_clear();
        if (missing)
            return ctn_fail(st,
                            "weights without the mean and deviation of the data need --standardize "
                            "none: %s",
                            first);
    }
    return ctn_fail(st, "%s", first);
}

static ctn_status explain(const task *t, const char *path, ctn_status st)
{
    char first[2048], name[256], before[LONGEST] = "", only[2048] = "";
    snprintf(first, sizeof first, "%s", ctn_error_message());
    ctn_error_clear();
    if (task_trained_as(path, name, sizeof name) && strcmp(name, t->a->operand) != 0)
        return ctn_fail(st, "the weights belong to the network %s, not %s: %s", name, t->a->operand,
                        first);
    CTN_TRY(explain_other_data(t, path));
    const bool inside = strstr(first, "not in the model") && find_inside(t->net, path, before);
    ctn_error_clear();
    if (!inside) return explain_moments(t, path, st, first);
    if (!is_plain(path) || !is_plain(before))
        return ctn_fail(st, "%s has the weights of %s below '%s': make a file of these alone", path,
                        t->a->operand, before);
    if (before[0]) snprintf(only, sizeof only, "%s.*' --rename '%s=", before, before);
    else patterns_of(t->net, only, sizeof only);
    return ctn_fail(st,
                    "%s has other names beside or around the weights of %s; this makes a file that "
                    "fits: catena weights %s --to NEW.safetensors --only '%s'",
                    path, t->a->operand, path, only);
}

/* ---- loading --------------------------------------------------------------------------------- */

/* One line for a new head: its weight, not its bias. A resumed training has its values already. */
static void tell_fresh(void *user, const char *name, const ctn_desc *here, const ctn_desc *file)
{
    const task *t = user;
    char a[SHAPE_TEXT], b[SHAPE_TEXT];
    if (here->ndim < 2 || args_flag(t->a, "resume")) return;
    shape_text(here->ndim, here->dim, a);
    shape_text(file->ndim, file->dim, b);
    const char *dot = strrchr(name, '.');
    log_line("%.*s %s starts fresh: the file has %s", dot ? (int)(dot - name) : (int)strlen(name),
             name, a, b);
}

static ctn_status load_weights(task *t, const char *path)
{
    ctn_weights_opt o = {.struct_size = sizeof o,
                         .new_head = t->use == FOR_TRAINING,
                         .fresh = tell_fresh,
                         .user = t};
    const ctn_status st = ctn_weights_load(t->net, path, &o);
    return st == CTN_ENOTFOUND || st == CTN_ESHAPE ? explain(t, path, st) : st;
}

static ctn_status send_array(void *comm, const char *name, ctn_dtype type, int ndim,
                             const int64_t *dims, void *data)
{
    size_t bytes = ctn_dtype_size(type);
    (void)name;
    for (int i = 0; i < ndim; i++) bytes *= (size_t)dims[i];
    return bytes ? ctn_comm_broadcast(comm, data, bytes, 0) : CTN_OK;
}

ctn_status task_weights(task *t, const char *path)
{
    const launch *l = t->a->job;
    t->now = DOING_DATA;
    if (l->rank == 0 && path[0]) CTN_TRY(load_weights(t, path)); /* "": those of an ONNX model */
    return l->comm ? ctn_module_visit(t->net, send_array, l->comm) : CTN_OK;
}
