/* SPDX-License-Identifier: Apache-2.0
 *
 * The plot extension: curves of logged values as an SVG file, rewritten each time the extension
 * fires and at the end.
 */
#include "train/show.h"
#include "train/svg.h"

typedef struct {
    ctn__arena mem;
    CTN__VEC(const char *) names;
    ctn__series *series; /* one per name */
    ctn__text path;
} plot;

static ctn_status plot_finish(void *self, ctn_trainer *tr)
{
    plot *p = self;
    ctn_status st = CTN_OK;
    ctn__text out = {0};
    bool loss = false, one = true;
    int n = (int)p->names.n;
    const char *last = ctn__show_last(p->names.at[0]);
    for (int k = 0; k < n; k++) {
        CTN_TRY_GOTO(st, done, ctn__series_read(&p->series[k], tr, p->names.at[k]));
        loss |= ctn__series_is_loss(p->names.at[k]);
        one &= strcmp(ctn__show_last(p->names.at[k]), last) == 0;
    }
    ctn__chart c = {.title = one ? last : "values",
                    .x_name = "iteration",
                    .width = 720,
                    .height = 400,
                    .may_log = loss,
                    .alone = true,
                    .series = p->series,
                    .n = n};
    ctn__svg_chart(&out, &c);
    CTN_TRY_GOTO(st, done, ctn__show_file(p->path.s, &out));
done:
    for (int k = 0; k < n; k++) ctn__series_free(&p->series[k]);
    return st;
}

static ctn_status plot_call(void *self, ctn_trainer *tr)
{
    return ctn__show_forgive(plot_finish(self, tr));
}

static void plot_release(void *self)
{
    plot *p = self;
    if (p == NULL) return;
    ctn__arena_free(&p->mem);
    ctn__vec_free(&p->names);
    ctn__free(p->series);
    ctn__text_free(&p->path);
    ctn__free(p);
}

ctn_status ctn_extend_plot(ctn_trainer *tr, const ctn_trigger *when, const char *const *names,
                           const char *file)
{
    ctn_status st = CTN_OK;
    if (names == NULL || names[0] == NULL)
        return ctn_fail(CTN_EARG,
                        "extend_plot: needs the names of the values, such as \"train/loss\"");
    plot *p = ctn__calloc(1, sizeof *p);
    if (p == NULL) return CTN_ENOMEM;
    CTN_TRY_GOTO(st, fail, ctn__show_path(&p->path, "extend_plot", tr, file));
    for (int i = 0; names[i] != NULL; i++) {
        const char *copy = ctn__arena_str(&p->mem, names[i]);
        if (copy == NULL || !ctn__vec_push(&p->names, copy)) CTN_TRY_GOTO(st, fail, CTN_ENOMEM);
    }
    p->series = ctn__calloc(p->names.n, sizeof *p->series);
    if (p->series == NULL) CTN_TRY_GOTO(st, fail, CTN_ENOMEM);
    ctn_extension e = {.rank0_only = 1,
                       .call = plot_call,
                       .finish = plot_finish,
                       .release = plot_release,
                       .self = p};
    return ctn__show_extend(tr, "plot", file, when, (ctn_trigger){.kind = CTN_EVERY_EPOCHS, .n = 1},
                            e);
fail:
    plot_release(p);
    return st;
}
