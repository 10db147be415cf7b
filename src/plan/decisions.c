/* SPDX-License-Identifier: Apache-2.0
 *
 * The decision table (rule 10) in saved states. A context saves its decisions and a resumed
 * training restores them, so that it builds the same plans. The text is one line that says
 * whether kernels may still be timed, followed by the table in the format of the tuning store.
 */
#include "plan/plan.h"

#define TIMED "timing over\n"
#define OPEN "timing open\n"

ctn_status ctn__decisions_text(ctn_context *ctx, ctn__text *out)
{
    const ctn__planner *pl = ctx->planner;
    ctn__text_add(out, "%s", pl->stepped ? TIMED : OPEN);
    return ctn__choices_text(pl->engine, out);
}

ctn_status ctn__decisions_replace(ctn_context *ctx, const char *text)
{
    ctn__planner *pl = ctx->planner;
    const bool timed = strncmp(text, TIMED, strlen(TIMED)) == 0;
    if (!timed && strncmp(text, OPEN, strlen(OPEN)) != 0)
        return ctn_fail(CTN_EFORMAT, "the tuning decisions are malformed");
    text += timed ? strlen(TIMED) : strlen(OPEN);
    ctn_status st = ctn__choices_replace(pl->engine, text, strlen(text));
    CTN_TRY(st);
    if (st == CTN_END) return st;
    pl->stepped = timed;
    ctn__cache_clear(pl); /* its plans were built with other decisions */
    return CTN_OK;
}

int ctn_context_decisions_text(ctn_context *ctx, char *buf, size_t n)
{
    ctn__text t = {0};
    ctn_status st =
        ctx ? ctn__decisions_text(ctx, &t) : ctn_fail(CTN_EARG, "decisions_text: no context");
    int k = st < 0 ? st : snprintf(buf, n, "%s", t.s);
    ctn__text_free(&t);
    return k;
}
