/* SPDX-License-Identifier: Apache-2.0
 *
 * Several ways to do one node: the table's choice, or the fastest of them timed on empty buffers where timing is
 * allowed (at the start of a run, never in mid-run: rule 10), or the first. CATENA_KERNEL names a way that is
 * taken wherever it exists.
 */
#include "ops/ops.h"

enum { RUNS = 3 };

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

/* Seconds of the best of a few runs of what prepare chose; the cost of a reorder of its result is in it. */
static ctn_status measure(const ctn_prepare_args *a, double *seconds)
{
    ctn_status st = CTN_OK;
    void *buf[CTN_MAX_IN + CTN_MAX_OUT + 1] = {NULL};
    int n = a->nin + a->nout;
    ctn_run_env env = {.threads = a->threads};
    uint64_t best = UINT64_MAX;
    size_t moved = 0;
    for (int i = 0; i <= n; i++) {
        const ctn_desc *d = i < a->nin ? &a->din[i] : &a->dout[i - a->nin];
        size_t bytes = i == n ? a->scratch : ctn__bytes(d);
        buf[i] = ctn__aligned(bytes);
        if (!buf[i]) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
        memset(buf[i], 0, bytes);
        if (i >= a->nin && i < n && !ctn__is_plain(d) && !ctn__is_channels_last(d)) moved += bytes;
    }
    ctn_run_args r = {.nin = a->nin,
                      .nout = a->nout,
                      .nattr = a->nattr,
                      .in = (const void *const *)buf,
                      .out = buf + a->nin,
                      .din = a->din,
                      .dout = a->dout,
                      .attr = a->attr,
                      .env = &env,
                      .priv = a->priv,
                      .scratch = buf[n]};
    for (int k = 0; k <= RUNS; k++) {
        uint64_t t0 = ctn__now_ns();
        CTN_TRY_GOTO(st, done, a->run(&r));
        uint64_t t = ctn__now_ns() - t0;
        if (k > 0 && t < best) best = t;
    }
    *seconds = (double)best * 1e-9 + 2.0 * (double)moved / 10e9;
done:
    for (int i = 0; i <= n; i++) ctn__free(buf[i]);
    return st;
}

/* Prepare by way k on copies of the descriptions; CTN_END: it cannot. */
static ctn_status try_way(const ctn_prepare_args *a, const ctn__way *w, double *seconds)
{
    ctn_desc din[CTN_MAX_IN], dout[CTN_MAX_OUT];
    ctn_prepare_args b = *a;
    memcpy(din, a->din, (size_t)a->nin * sizeof *din);
    memcpy(dout, a->dout, (size_t)a->nout * sizeof *dout);
    b.din = din;
    b.dout = dout;
    ctn_status st = w->prepare(&b);
    if (st == CTN_OK) st = b.run ? measure(&b, seconds) : CTN_END;
    if (b.priv_free) b.priv_free(b.priv);
    return st;
}

static ctn_status fastest(const ctn_prepare_args *a, int n, const ctn__way *w, int *best)
{
    double least = 0;
    *best = -1;
    for (int k = 0; k < n; k++) {
        double t = 0;
        ctn_status st = try_way(a, &w[k], &t);
        CTN_TRY(st);
        if (st != CTN_OK || (*best >= 0 && t >= least)) continue;
        *best = k;
        least = t;
    }
    return CTN_OK;
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
    int k = by_name(ctn__env_str(CTN__ENV_KERNEL), n, w);
    if (k < 0 && n > 1 && work >= CTN__WORTH_TIMING) {
        describe(a, &key);
        if (key.failed) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
        k = by_name(ctn__choice_find(a->engine, key.s), n, w);
        if (k < 0 && ctn__engine_timing(a->engine)) {
            CTN_TRY_GOTO(st, done, fastest(a, n, w, &k));
            if (k >= 0) CTN_TRY_GOTO(st, done, ctn__choice_put(a->engine, key.s, w[k].name));
        }
    }
    st = w[k < 0 ? 0 : k].prepare(a);
    if (st == CTN_END && k > 0) st = w[0].prepare(a); /* a table or variable that asks too much */
    if (st == CTN_END) st = CTN_OK;
done:
    ctn__text_free(&key);
    return st;
}
