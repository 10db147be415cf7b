/* SPDX-License-Identifier: Apache-2.0
 *
 * Rule 8: if a program needs a new plan every step because one attribute keeps changing, one
 * warning names that attribute. The tape of each miss is compared with the tape of the previous
 * miss.
 */
#include "plan/plan.h"

enum { PATIENCE = 32 };

/* Number of words of the entry at p. */
static size_t entry_words(const uint64_t *p)
{
    switch ((ctn__event)(p[0] & 0xff)) {
    case CTN__EV_OP: return 2 + ((p[1] & 0xffff) + 1) / 2 + (p[1] >> 16 & 0xffff);
    case CTN__EV_INPUT: return 2 + 1 + 2 * (p[2] >> 8 & 0xff);
    default: return 2;
    }
}

/* Describe what word `at` of the tape means. */
static void describe(const ctn_context *ctx, size_t at, char *buf, size_t n)
{
    const uint64_t *tape = ctx->tape.at;
    size_t node = 0, input = 0;
    snprintf(buf, n, "the recorded program");
    for (size_t i = 0; i < ctx->tape.n;) {
        size_t words = entry_words(tape + i), k = at - i;
        ctn__event ev = (ctn__event)(tape[i] & 0xff);
        bool here = at < i + words;
        if (here && ev == CTN__EV_INPUT && k > 2) {
            snprintf(buf, n, "dimension %zu of input %zu", (k - 3) / 2, input);
        } else if (here && ev == CTN__EV_OP) {
            const ctn__node *nd = ctx->nodes.at[node];
            size_t edges = 2 + (size_t)(nd->nin + 1) / 2;
            if (k < edges) snprintf(buf, n, "the inputs of %s at %s", nd->op->name, nd->at);
            else if (nd->op->attr_names)
                snprintf(buf, n, "attribute %s of %s at %s", nd->op->attr_names[k - edges],
                         nd->op->name, nd->at);
            else snprintf(buf, n, "attribute %zu of %s at %s", k - edges, nd->op->name, nd->at);
        }
        if (here) return;
        input += ev == CTN__EV_INPUT;
        node += ev == CTN__EV_OP || ev == CTN__EV_ASSIGN || ev == CTN__EV_BACKWARD ||
                ev == CTN__EV_STEP;
        if (ev == CTN__EV_GRAD && tape[i + 1] > 0) { /* followed by one entry per x */
            node++;
            words += 2 * tape[i + 1];
        }
        i += words;
    }
}

/* The only word that differs from the previous miss; -1: the length or several words differ. */
static int64_t only_difference(const ctn__planner *pl, const ctn_context *ctx)
{
    int64_t at = -1;
    if (pl->miss_n != ctx->tape.n) return -1;
    for (size_t i = 0; i < pl->miss_n; i++) {
        if (pl->miss_tape[i] == ctx->tape.at[i]) continue;
        if (at >= 0) return -1;
        at = (int64_t)i;
    }
    return at;
}

void ctn__note_miss(ctn_context *ctx, ctn__planner *pl)
{
    int64_t at = only_difference(pl, ctx);
    bool again = at >= 0 && (pl->miss_run == 0 || (size_t)at == pl->miss_at);
    pl->miss_run = again ? pl->miss_run + 1 : 0;
    pl->miss_at = at >= 0 ? (size_t)at : 0;
    if (pl->miss_run == PATIENCE) {
        char what[256];
        describe(ctx, pl->miss_at, what, sizeof what);
        ctn__warn(
            "%d plans in a row were made because %s changes every time; each new value costs a "
            "new plan",
            PATIENCE, what);
    }
    if (pl->miss_cap < ctx->tape.n) {
        uint64_t *n = ctn__grow(pl->miss_tape, 0, ctx->tape.n * sizeof *n);
        if (!n) { /* only a diagnostic: continue without it */
            ctn_error_clear();
            pl->miss_n = 0;
            return;
        }
        pl->miss_tape = n;
        pl->miss_cap = ctx->tape.n;
    }
    memcpy(pl->miss_tape, ctx->tape.at, ctx->tape.n * sizeof *ctx->tape.at);
    pl->miss_n = ctx->tape.n;
}
