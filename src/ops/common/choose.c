/* SPDX-License-Identifier: Apache-2.0
 *
 * Choose one of several ways to compute a node. The decision table's choice comes first. If it
 * has none and timing is allowed (at the start of a run, never in mid-run: rule 10), the ways
 * are timed in turn on zero-filled buffers and the fastest wins. Otherwise the first way is
 * taken. A way named by CATENA_KERNEL overrides all of this wherever it exists.
 */
#include "ops/ops.h"

enum { ROUNDS = 3, MOST_WAYS = 4 };
/* Another way replaces the first only if it takes less than this part of its time: timing is
 * noisy. */
#define CLEARLY 0.95

/* One way, prepared, with buffers to run on. */
typedef struct {
    ctn_prepare_args a;
    ctn_desc din[CTN_MAX_IN], dout[CTN_MAX_OUT];
    void *buf[CTN_MAX_IN + CTN_MAX_OUT + 1]; /* scratch last */
    size_t moved;                            /* bytes of results that the plan must reorder */
    uint64_t best;
    bool usable;
} trial;

static void describe(const ctn_prepare_args *a, ctn__text *t)
{
    char s[128];
    ctn__text_add(t, "%s", a->name);
    for (int i = 0; i < a->nin + a->nout; i++) {
        const ctn_desc *d = i < a->nin ? &a->din[i] : &a->dout[i - a->nin];
        ctn__text_add(t, " %s%s%s", ctn_dtype_name(d->dtype), ctn__shape_text(d, s, sizeof s),
                      ctn__is_plain(d) ? "" : "~");
    }
    for (int i = 0; i < a->nattr; i++)
        ctn__text_add(t, "%c%lld", i ? ',' : ' ', (long long)a->attr[i]);
}

static void close_trial(trial *t)
{
    for (int i = 0; i <= t->a.nin + t->a.nout; i++) ctn__free(t->buf[i]);
    if (t->a.priv_free) t->a.priv_free(t->a.priv);
}

/* Prepare way w on copies of the descriptions. t->usable stays false if the way does not apply. */
static ctn_status open_trial(trial *t, const ctn_prepare_args *a, const ctn__way *w)
{
    t->a = *a;
    t->a.din = t->din;
    t->a.dout = t->dout;
    t->best = UINT64_MAX;
    memcpy(t->din, a->din, (size_t)a->nin * sizeof *t->din);
    memcpy(t->dout, a->dout, (size_t)a->nout * sizeof *t->dout);
    ctn_status st = w->prepare(&t->a);
    CTN_TRY(st);
    int n = a->nin + a->nout;
    t->usable = st == CTN_OK && t->a.run;
    for (int i = 0; i <= n && t->usable; i++) {
        const ctn_desc *d = i < a->nin ? &t->din[i] : &t->dout[i - a->nin];
        size_t bytes = i == n ? t->a.scratch : ctn__bytes(d);
        t->buf[i] = ctn__aligned(bytes);
        if (!t->buf[i]) return CTN_ENOMEM;
        memset(t->buf[i], 0, bytes);
        if (i >= a->nin && i < n && !ctn__is_plain(d) && !ctn__is_channels_last(d))
            t->moved += bytes;
    }
    return CTN_OK;
}

static ctn_status run_trial(trial *t)
{
    ctn_run_env env = {.threads = t->a.threads};
    ctn_run_args r = {.nin = t->a.nin,
                      .nout = t->a.nout,
                      .nattr = t->a.nattr,
                      .in = (const void *const *)t->buf,
                      .out = t->buf + t->a.nin,
                      .din = t->din,
                      .dout = t->dout,
                      .attr = t->a.attr,
                      .env = &env,
                      .priv = t->a.priv,
                      .scratch = t->buf[t->a.nin + t->a.nout]};
    uint64_t t0 = ctn__now_ns();
    CTN_TRY(t->a.run(&r));
    uint64_t took = ctn__now_ns() - t0 + t->moved / 5; /* reorders: read and write at 10 GB/s */
    if (took < t->best) t->best = took;
    return CTN_OK;
}

/* The ways take turns, so that a machine that slows down affects all of them equally. */
static ctn_status fastest(const ctn_prepare_args *a, int n, const ctn__way *w, int *best)
{
    ctn_status st = CTN_OK;
    *best = -1;
    trial *t = ctn__calloc(MOST_WAYS, sizeof *t);
    if (!t) return CTN_ENOMEM;
    for (int k = 0; k < n && k < MOST_WAYS; k++)
        CTN_TRY_GOTO(st, done, open_trial(&t[k], a, &w[k]));
    for (int r = 0; r < ROUNDS; r++)
        for (int k = 0; k < n && k < MOST_WAYS; k++)
            if (t[k].usable) CTN_TRY_GOTO(st, done, run_trial(&t[k]));
    for (int k = 0; k < n && k < MOST_WAYS; k++) {
        double than = *best < 0 ? 0 : (double)t[*best].best * (*best == 0 ? CLEARLY : 1);
        if (t[k].usable && (*best < 0 || (double)t[k].best < than)) *best = k;
    }
done:
    for (int k = 0; k < MOST_WAYS; k++) close_trial(&t[k]);
    ctn__free(t);
    return st;
}

static int by_name(const char *name, int n, const ctn__way *w)
{
    for (int k = 0; name && k < n; k++)
        if (strcmp(w[k].name, name) == 0) return k;
    return -1;
}

ctn_status ctn__choose(ctn_prepare_args *a, int64_t work, int n, const ctn__way *w)
{
    ctn__text key = {0};
    ctn_status st = CTN_OK;
    a->flops = work;
    int k = by_name(ctn__env_str(CTN__ENV_KERNEL), n, w);
    if (k < 0 && n > 1 && work >= CTN__WORTH_TIMING) {
        describe(a, &key);
        if (key.failed) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
        k = by_name(ctn__choice_find(a->engine, key.s), n, w);
        if (k < 0 && ctn__engine_timing(a->engine)) {
            const uint64_t t0 = ctn__now_ns();
            CTN_TRY_GOTO(st, done, fastest(a, n, w, &k));
            ctn__engine_timed(a->engine, ctn__now_ns() - t0);
            if (k >= 0) CTN_TRY_GOTO(st, done, ctn__choice_put(a->engine, key.s, w[k].name));
        }
    }
    st = w[k < 0 ? 0 : k].prepare(a);
    if (st == CTN_END && k > 0) { /* the table or CATENA_KERNEL named a way that does not apply */
        if (a->priv_free) a->priv_free(a->priv);
        a->priv_free = NULL;
        a->priv = NULL;
        st = w[0].prepare(a);
    }
    if (st == CTN_END) st = CTN_OK;
done:
    ctn__text_free(&key);
    return st;
}
