/* SPDX-License-Identifier: Apache-2.0
 *
 * What batch_norm computes per channel for one type of scale and shift, included by batch_norm.c
 * once per type. T is the type, NAME gives the functions their names. The channels are computed in
 * double between the engine's passes over the elements.
 */

/* Outputs 1 to 4, and y = x p + q, from the mean m and the variance v of M elements per channel. */
static void NAME(per_channel)(const ctn_run_args *a, int64_t C, int64_t M, const double *m,
                              const double *v, double *p, double *q)
{
    const double eps = a->scalar[EPS], part = M > 0 ? a->scalar[MOMENTUM] : 0;
    const double unbias = M > 1 ? (double)M / (double)(M - 1) : 1;
    const T *scale = a->in[SCALE], *shift = a->in[SHIFT];
    const T *rmean = a->in[RMEAN], *rvar = a->in[RVAR];
    T *om = a->out[MEAN], *orr = a->out[RSTD];
    T *nm = a->out[NEW_MEAN], *nv = a->out[NEW_VAR];
#pragma omp simd
    for (int64_t c = 0; c < C; c++) {
        T mc = (T)m[c], rc = (T)(1 / sqrt(v[c] + eps));
        p[c] = (double)scale[c] * (double)rc;
        q[c] = offset((double)shift[c], (double)mc, p[c]);
        if (om) om[c] = mc;
        if (orr) orr[c] = rc;
        if (nm) nm[c] = (T)((double)rmean[c] + part * (m[c] - (double)rmean[c]));
        if (nv) nv[c] = (T)((double)rvar[c] + part * (v[c] * unbias - (double)rvar[c]));
    }
}

/* m and y = x p + q again, in the gradient. q is computed only where shift is an input. */
static void NAME(per_channel_again)(const ctn_run_args *a, int64_t C, bool by_x, double *m,
                                    double *p, double *q)
{
    const T *mean = a->in[G_MEAN], *rstd = a->in[G_RSTD], *scale = a->in[G_SCALE];
    const T *shift = by_x ? a->in[G_FIRST] : NULL;
    for (int64_t c = 0; c < C; c++) {
        m[c] = (double)mean[c];
        p[c] = (double)scale[c] * (double)rstd[c];
        if (shift) q[c] = offset((double)shift[c], m[c], p[c]);
    }
}

/* gx = p g + s x + d, from sum(g) in s and sum(g (x - m)) in d; inv is 1 / M. */
static void NAME(per_channel_grad)(const ctn_run_args *a, int64_t C, double inv, const double *m,
                                   const double *p, double *s, double *d)
{
    const T *rstd = a->in[G_RSTD];
    T *gscale = a->out[G_GSCALE], *gshift = a->out[G_GSHIFT];
#pragma omp simd
    for (int64_t c = 0; c < C; c++) {
        double rc = (double)rstd[c], pc = p[c], sc = s[c], dc = d[c];
        double qc = -pc * rc * rc * dc * inv;
        s[c] = qc;
        d[c] = -pc * sc * inv - qc * m[c];
        if (gscale) gscale[c] = (T)(rc * dc);
        if (gshift) gshift[c] = (T)sc;
    }
}

#undef T
#undef NAME
