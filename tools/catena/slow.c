/* SPDX-License-Identifier: Apache-2.0
 *
 * Warns about reference kernels in a plan. They compute element by element and are hundreds of
 * times slower than other kernels.
 */
#include "cli.h"

typedef struct {
    int64_t n;
    char first[512];
} found;

static ctn_status look(void *user, const ctn_plan_node *n)
{
    found *f = user;
    if (n->slow && f->n++ == 0)
        snprintf(f->first, sizeof f->first, "%s (%s): %s", n->op, n->at ? n->at : "no line",
                 n->slow);
    return CTN_OK;
}

ctn_status slow_kernels(ctn_context *ctx, int64_t *count)
{
    static bool told;
    found f = {0};
    CTN_TRY(ctn_context_visit_plan(ctx, look, &f));
    *count = f.n;
    if (f.n == 0 || told || log_rank != 0) return CTN_OK;
    told = true;
    char line[1024];
    snprintf(
        line, sizeof line,
        "this network runs %lld slow reference kernel%s; the first is %s. catena explain lists all",
        (long long)f.n, f.n == 1 ? "" : "s", f.first);
    report_warning(NULL, line);
    return CTN_OK;
}
