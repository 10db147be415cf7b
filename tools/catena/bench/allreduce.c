/* SPDX-License-Identifier: Apache-2.0
 *
 * catena bench allreduce: times the sum of a long vector over all ranks of a job and checks the
 * result. A round lasts until the slowest rank is done; best and median of the rounds are
 * reported.
 */
#include "bench/allreduce.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <catena/comm.h>

#include "launch.h"

enum { ROUNDS = 5 };

typedef struct {
    double best_ms, median_ms, sent; /* sent: bytes sent by this rank per round */
    const char *algorithm, *transport;
    int rounds;
} figures;

static const struct {
    const char *name;
    ctn_dtype data, wire;
} dtypes[] = {{"f32", CTN_F32, CTN_F32}, {"bf16", CTN_F32, CTN_BF16}, {"f16", CTN_F32, CTN_F16},
              {"f64", CTN_F64, CTN_F32}, {"i32", CTN_I32, CTN_F32},   {"i64", CTN_I64, CTN_F32}};

static int find_dtype(const char *name)
{
    for (int i = 0; i < (int)(sizeof dtypes / sizeof *dtypes); i++)
        if (strcmp(dtypes[i].name, name) == 0) return i;
    return -1;
}

/* Small integers, so that every sum is exact in every type. */
static double element(int64_t i, int rank)
{
    return (double)((i + rank) % 3);
}

static void fill(void *buf, int64_t n, ctn_dtype t, int rank)
{
    for (int64_t i = 0; i < n; i++) {
        double x = element(i, rank);
        if (t == CTN_F32) ((float *)buf)[i] = (float)x;
        else if (t == CTN_F64) ((double *)buf)[i] = x;
        else if (t == CTN_I32) ((int32_t *)buf)[i] = (int32_t)x;
        else ((int64_t *)buf)[i] = (int64_t)x;
    }
}

static ctn_status check(const void *buf, int64_t n, ctn_dtype t, int size)
{
    double want[3] = {0};
    for (int k = 0; k < 3; k++)
        for (int r = 0; r < size; r++) want[k] += element(k, r);
    for (int64_t i = 0; i < n; i++) {
        double x = t == CTN_F32   ? (double)((const float *)buf)[i]
                   : t == CTN_F64 ? ((const double *)buf)[i]
                   : t == CTN_I32 ? (double)((const int32_t *)buf)[i]
                                  : (double)((const int64_t *)buf)[i];
        if (x != want[i % 3])
            return ctn_fail(CTN_EENGINE, "element %lld of the sum is %g, expected %g", (long long)i,
                            x, want[i % 3]);
    }
    return CTN_OK;
}

ctn_status slowest_rank(ctn_comm *c, double *ms)
{
    double *all = malloc((size_t)ctn_comm_size(c) * sizeof *all);
    if (!all) return ctn_fail(CTN_ENOMEM, "no memory for %d times", ctn_comm_size(c));
    ctn_status st = ctn_comm_allgather(c, ms, sizeof *ms, all);
    for (int r = 0; r < ctn_comm_size(c) && st == CTN_OK; r++) *ms = fmax(*ms, all[r]);
    free(all);
    return st;
}

static ctn_status one_round(ctn_comm *c, void *buf, int64_t n, ctn_dtype t, double *ms)
{
    fill(buf, n, t, ctn_comm_rank(c));
    CTN_TRY(ctn_comm_barrier(c));
    double start = now_s();
    CTN_TRY(ctn_comm_allreduce(c, buf, n, t));
    *ms = (now_s() - start) * 1e3;
    CTN_TRY(slowest_rank(c, ms));
    return check(buf, n, t, ctn_comm_size(c));
}

static ctn_status measure(figures *f, ctn_comm *c, int64_t n, ctn_dtype t)
{
    ctn_status st = CTN_OK;
    ctn_comm_stats before = {.struct_size = sizeof before}, after = before;
    double ms[64] = {0};
    void *buf = malloc((size_t)n * ctn_dtype_size(t) + 1);
    if (!buf) {
        st = ctn_fail(CTN_ENOMEM, "no memory for %lld elements", (long long)n);
        goto done;
    }
    CTN_TRY_GOTO(st, done, one_round(c, buf, n, t, &ms[0])); /* with auto, also chooses */
    ctn_comm_get_stats(c, &before);
    for (int i = 0; i < f->rounds; i++) CTN_TRY_GOTO(st, done, one_round(c, buf, n, t, &ms[i]));
    ctn_comm_get_stats(c, &after);
    f->sent = (double)(after.sent - before.sent) / f->rounds;
    best_and_median(ms, f->rounds, &f->best_ms, &f->median_ms);
    f->algorithm = ctn_comm_algorithm(c);
    f->transport = ctn_comm_transport(c);
done:
    free(buf);
    return st;
}

static void print(const args *a, const figures *f, ctn_comm *c, int64_t n, const char *dtype)
{
    if (args_flag(a, "json")) {
        json j = {0};
        json_open(&j, NULL, '{');
        json_int(&j, "ranks", ctn_comm_size(c));
        json_int(&j, "nodes", ctn_comm_nodes(c));
        json_int(&j, "count", n);
        json_text(&j, "dtype", dtype);
        json_text(&j, "algorithm", f->algorithm);
        json_text(&j, "transport", f->transport);
        json_real(&j, "best_ms", f->best_ms);
        json_real(&j, "median_ms", f->median_ms);
        json_real(&j, "sent_bytes", f->sent);
        json_close(&j, '}');
        return;
    }
    say(stdout,
        "sum of %lld %s over %d ranks on %d nodes by %s (%s)\n"
        "  %.2f ms best, %.2f ms median of %d rounds; rank 0 sent %.1f MB per round\n",
        (long long)n, dtype, ctn_comm_size(c), ctn_comm_nodes(c), f->algorithm, f->transport,
        f->best_ms, f->median_ms, f->rounds, f->sent / 1e6);
}

int bench_allreduce(const args *a)
{
    int t = find_dtype(args_text(a, "dtype"));
    int64_t n = args_int(a, "count");
    if (t < 0 || n < 1) {
        say(stderr, "catena bench allreduce: --dtype must be f32, bf16, f16, f64, i32 or i64, and "
                    "--count at least 1\n");
        return EXIT_USAGE;
    }
    ctn_comm *c = NULL;
    figures f = {.rounds = ROUNDS};
    ctn_status st = ctn_comm_open(&c, CTN_OPT(ctn_comm_opt, .algorithm = args_text(a, "algorithm"),
                                              .wire = dtypes[t].wire));
    if (st == CTN_OK) st = measure(&f, c, n, dtypes[t].data);
    if (st == CTN_OK && ctn_comm_rank(c) == 0) print(a, &f, c, n, dtypes[t].name);
    ctn_comm_free(c);
    return st < 0 ? report_error("bench allreduce") : EXIT_DONE;
}
