/* SPDX-License-Identifier: Apache-2.0
 *
 * Every op case with hostile operands: indices outside of what they select from, sizes and
 * parameters at the ends of their types. The library may refuse a call, when it is recorded or when
 * it runs, or compute it; it may not crash, hang or write outside of its memory. An index outside
 * must be refused by a message that names the op. Results are not compared.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>
#include <cmocka.h>

#include "check.h"

enum { SECONDS = 60, LIMIT = 64 << 20 };

static const int64_t ends[] = {
    -1,        0,         INT32_MIN,        INT32_MAX,        INT64_C(1) << 31, INT64_C(1) << 40,
    INT64_MIN, INT64_MAX, INT64_C(1) << 61, INT64_C(1) << 62, INT64_C(1) << 46};
enum { NENDS = sizeof ends / sizeof *ends };

/* OP or OP/CASE: every integer is right, because it is computed with, compared, or clamped. */
static const char *const any_integer[] = {"abs",
                                          "add",
                                          "argmax",
                                          "cast",
                                          "clip",
                                          "compare",
                                          "concat",
                                          "detach",
                                          "div",
                                          "logical",
                                          "max",
                                          "where",
                                          "rotary/positions",
                                          "scatter/of_integers",
                                          "relu/contrastive_mean",
                                          "relu/rnn_composed",
                                          "ctc/lengths",
                                          "ctc/lengths_large",
                                          "ctc/composed_lengths",
                                          "gather/crf_loss_lengths",
                                          "gather/crf_loss_lengths_mean",
                                          "as_strided/integers",
                                          "attention",
                                          "matmul",
                                          "tanh",
                                          "slice_step/flip_indices"};

/* Ops whose cases pass parameters on as sizes; in others they choose a function or an option. */
static const char *const sized[] = {
    "reshape",     "broadcast_to",    "slice",     "slice_step", "pad",
    "full",        "one_hot",         "topk",      "resize",     "adaptive_avg_pool",
    "avg_pool",    "max_pool",        "conv",      "conv_data",  "segment_sum",
    "segment_max", "segment_softmax", "group_ids", "dft_matrix", "fft",
    "rfft",        "irfft",           "roll",      "cumsum"};

typedef struct {
    op_case c;
    void *block[MAX_CASE_IN];
    int64_t stride[MAX_CASE_IN][CTN_MAX_DIMS];
    bool huge; /* plan it, but let it fail for lack of memory before it runs */
} attack;

typedef enum { REFUSED, COMPUTED } reaction;

static ctn_context *context;
static char current[256]; /* what is being tried, for the message of a hang */

static void hung(int sig)
{
    (void)sig;
    ssize_t n = write(2, current, strlen(current));
    (void)n;
    abort();
}

static bool listed(const op_case *c, const char *const *list, size_t n)
{
    char full[128];
    snprintf(full, sizeof full, "%s/%s", c->op, c->name);
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], c->op) == 0 || strcmp(list[i], full) == 0) return true;
    return false;
}

static bool is_index(const case_in *in)
{
    return (in->dtype == CTN_I32 || in->dtype == CTN_I64) && in->ndim >= 0;
}

/* ---- one call -------------------------------------------------------------------------------- */

static reaction record_and_read(const attack *t, bool gradient)
{
    const op_case *c = &t->c;
    ctn_tensor *x[MAX_CASE_IN] = {NULL}, *gx[MAX_CASE_IN], *g[MAX_CASE_IN];
    int n = 0;
    /* Whatever the user can still name is computed by the next read, this one too. */
    ctn_tensor *rest = t->huge ? ctn_full(context, 0, CTN_F32, CTN_SHAPE(INT64_C(1) << 36)) : NULL;
    for (int i = 0; i < c->nin; i++) {
        const case_in *in = &c->in[i];
        x[i] = ctn_input_strided(context, t->block[i], in->dtype ? in->dtype : CTN_F32, in->ndim,
                                 in->dim, t->stride[i]);
        if (!x[i]) return REFUSED;
        if (gradient && in->dtype == 0 && !in->no_grad) gx[n++] = x[i] = ctn_with_grad(x[i]);
    }
    ctn_tensor *y = c->call(c, context, x);
    if (y && gradient) {
        if (n == 0 || ctn_grad(ctn_sum(y, CTN_ALL_AXES, 0), n, gx, g) < 0) return REFUSED;
        y = g[0];
    }
    if (t->huge && rest && y) y = rest;
    return y && ctn_data(y) ? COMPUTED : REFUSED;
}

static reaction attempt(const attack *t, bool gradient)
{
    ctn_error_clear();
    if (ctn_scope_begin(context) < 0) return REFUSED;
    alarm(SECONDS);
    const reaction r = record_and_read(t, gradient);
    alarm(0);
    /* The message of the scope's end is about the failed run. */
    ctn_status st = ctn_scope_end(context);
    (void)st;
    return r;
}

/* Both directions. False if something was overwritten. */
static bool survives(const attack *t, reaction *r, fault *f)
{
    fault zones;
    *r = attempt(t, false);
    if (t->c.grad > 0) attempt(t, true);
    if (guard_check(&zones)) return true;
    return fail_case(f, "%s: %s", current, zones.text);
}

/* ---- indices --------------------------------------------------------------------------------- */

static void release(attack *t)
{
    for (int i = 0; i < t->c.nin; i++) guard_free(t->block[i]);
}

static void prepare(attack *t, const op_case *c)
{
    *t = (attack){.c = *c};
    for (int i = 0; i < c->nin; i++) {
        const case_in *in = &c->in[i];
        const ctn_dtype type = in->dtype ? in->dtype : CTN_F32;
        double *v = case_fill(c, i, true);
        t->block[i] = guard_new((size_t)case_count(in) * ctn_dtype_size(type));
        for (int64_t k = 0; k < case_count(in); k++) ctn__elem_set(t->block[i], type, k, v[k]);
        case_strides(in->ndim, in->dim, t->stride[i]);
        free(v);
    }
}

static bool check_index(const op_case *c, int input, int64_t value, bool last, fault *f)
{
    const case_in *in = &c->in[input];
    const int64_t k = last ? case_count(in) - 1 : 0;
    attack t;
    reaction r;
    prepare(&t, c);
    if (in->dtype == CTN_I32) ((int32_t *)t.block[input])[k] = (int32_t)value;
    else ((int64_t *)t.block[input])[k] = value;
    snprintf(current, sizeof current, "test_ops %s/%s: element %lld of input %d is %lld", c->op,
             c->name, (long long)k, input, (long long)value);
    bool ok = survives(&t, &r, f);
    if (ok && r == COMPUTED && !listed(c, any_integer, sizeof any_integer / sizeof *any_integer))
        ok = fail_case(f, "%s, which was not refused", current);
    release(&t);
    return ok;
}

static bool check_indices(const op_case *c, fault *f)
{
    for (int i = 0; i < c->nin; i++) {
        if (!is_index(&c->in[i]) || case_count(&c->in[i]) == 0) continue;
        for (int e = 0; e < NENDS; e++) {
            if (ends[e] == 0) continue;
            if (c->in[i].dtype == CTN_I32 && (ends[e] < INT32_MIN || ends[e] > INT32_MAX)) continue;
            if (!check_index(c, i, ends[e], false, f) || !check_index(c, i, ends[e], true, f))
                return false;
        }
    }
    return true;
}

/* ---- parameters and sizes -------------------------------------------------------------------- */

static bool check_parameters(const op_case *c, fault *f)
{
    attack t;
    reaction r;
    if (!listed(c, sized, sizeof sized / sizeof *sized)) return true;
    prepare(&t, c);
    bool ok = true;
    for (int i = 0; ok && i < (int)(sizeof c->p / sizeof *c->p); i++)
        for (int e = 0; ok && e < NENDS; e++) {
            t.c.p[i] = ends[e];
            snprintf(current, sizeof current, "test_ops %s/%s: parameter %d is %lld", c->op,
                     c->name, i, (long long)ends[e]);
            ok = survives(&t, &r, f);
            t.c.p[i] = c->p[i];
        }
    release(&t);
    return ok;
}

/* One size of one input, or the same size of all inputs, whose elements are all the same one. */
static bool check_size(const op_case *c, int input, int dim, int64_t size, fault *f)
{
    attack t = {.c = *c, .huge = size > 1 << 20};
    reaction r;
    for (int i = 0; i < c->nin; i++) {
        t.block[i] = guard_new(8);
        memset(t.block[i], 0, 8);
        if ((input < 0 || input == i) && dim < c->in[i].ndim) t.c.in[i].dim[dim] = size;
    }
    snprintf(current, sizeof current, "test_ops %s/%s: size %d of input %d is %lld", c->op, c->name,
             dim, input, (long long)size);
    const bool ok = survives(&t, &r, f);
    release(&t);
    return ok;
}

static bool check_sizes(const op_case *c, fault *f)
{
    for (int i = -1; i < c->nin; i++)
        for (int d = 0; d < c->in[i < 0 ? 0 : i].ndim; d++)
            for (int e = 0; e < NENDS; e++)
                if (ends[e] >= 0 && !check_size(c, i, d, ends[e], f)) return false;
    return true;
}

/* ---- all of it ------------------------------------------------------------------------------- */

bool hostile_start(fault *f)
{
    signal(SIGALRM, hung);
    if (ctn_context_new(&context, CTN_OPT(ctn_context_opt, .threads = 2, .seed = 1)) < 0)
        return fail_case(f, "context: %s", ctn_error_message());
    guard_limit(LIMIT);
    return true;
}

void hostile_finish(void)
{
    guard_limit(SIZE_MAX / 2);
    ctn_context_free(context);
    context = NULL;
    signal(SIGALRM, SIG_DFL);
}

bool check_hostile(const op_case *c, fault *f)
{
    return check_indices(c, f) && check_parameters(c, f) && check_sizes(c, f);
}
