/* SPDX-License-Identifier: Apache-2.0
 *
 * What a training is about to do: the network, its data and the machine. One line says it at the
 * start, so that a user who meant something else can stop at once. The report page has it too.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "training.h"

/* "50,000" */
static const char *grouped(char *buf, size_t n, int64_t value)
{
    char digits[32];
    const int len = snprintf(digits, sizeof digits, "%lld", (long long)value);
    size_t at = 0;
    for (int i = 0; i < len && at + 2 < n; i++) {
        if (i > 0 && (len - i) % 3 == 0) buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = 0;
    return buf;
}

/* "1 class", "1,000 classes" */
static void add_count(FILE *f, const char *before, int64_t n, const char *one, const char *many)
{
    char text[40];
    fprintf(f, "%s%s %s", before, grouped(text, sizeof text, n), n == 1 ? one : many);
}

/* Elements of parameter i; 0 if it was listed before under another name. */
static int64_t elements_of(const ctn_vars *all, int i)
{
    const ctn_desc *d = ctn_var_desc(all->var[i]);
    int64_t n = 1;
    for (int k = 0; k < i; k++)
        if (all->var[k] == all->var[i]) return 0;
    for (int k = 0; k < d->ndim; k++) n *= d->dim[k];
    return n;
}

int64_t parameter_count(ctn_module *net)
{
    const ctn_vars all = ctn_params(net);
    int64_t n = 0;
    for (int i = 0; i < all.n; i++) n += elements_of(&all, i);
    return n;
}

/* Nothing if all are trained. */
static void add_trained(FILE *f, ctn_module *net)
{
    const ctn_vars all = ctn_params(net);
    int64_t n = 0;
    bool frozen = false;
    for (int i = 0; i < all.n; i++) {
        if (!ctn_var_trainable(all.var[i])) frozen = true;
        else n += elements_of(&all, i);
    }
    if (frozen) add_count(f, ", ", n, "of them trained", "of them trained");
}

static void add_shape(FILE *f, const char *before, const ctn_field *field)
{
    fputs(before, f);
    for (int i = 0; i < field->ndim; i++)
        fprintf(f, "%s%lld", i ? "x" : "", (long long)field->shape[i]);
    if (field->ndim == 0) fputs("1", f);
}

static void add_data(FILE *f, const task *t)
{
    add_count(f, "; ", ctn_dataset_count(t->set[0]), "sample", "samples");
    add_shape(f, " of shape ", ctn_dataset_field(t->set[0], 0));
    if (t->kind == DATA_TOKENS) add_count(f, " tokens from ", t->classes, "symbol", "symbols");
    else if (t->classify) add_count(f, " in ", t->classes, "class", "classes");
    else if (t->target.dtype != 0) add_shape(f, " with targets of shape ", &t->target);
    if (t->set[1])
        add_count(f, ", ", ctn_dataset_count(t->set[1]), "for validation", "for validation");
}

static const char *largest(const training *r)
{
    return r->larger ? "largest" : "smallest";
}

void overview_show(const training *r)
{
    const task *t = &r->t;
    const args *a = t->a;
    const int threads = ctn_context_threads(t->ctx);
    char *text = NULL;
    size_t n = 0;
    if (log_rank != 0 || args_flag(a, "quiet")) return;
    FILE *f = open_memstream(&text, &n);
    if (!f) return; /* it is only for information */
    fprintf(f, "%s", a->operand);
    add_count(f, ": ", parameter_count(t->net), "parameter", "parameters");
    add_trained(f, t->net);
    add_data(f, t);
    fprintf(f, "; batch size %lld", (long long)args_int(a, "batch"));
    if (args_int(a, "total-batch") > 0)
        fprintf(f, ", %lld of all ranks", (long long)args_int(a, "total-batch"));
    else if (a->job->size > 1) fprintf(f, " x %d ranks", a->job->size);
    if (args_int(a, "accumulate") > 1)
        fprintf(f, " x %lld accumulated", (long long)args_int(a, "accumulate"));
    fprintf(f, ", %s with learning rate %s, %s, %d thread%s", args_text(a, "optimizer"),
            args_text(a, "lr"), args_text(a, "precision"), threads, threads == 1 ? "" : "s");
    if (r->metric[0]) fprintf(f, "; best weights: %s %s", largest(r), r->metric);
    if (fclose(f) == 0) log_line("%s", text);
    free(text);
}

ctn_status overview_report(training *r)
{
    const args *a = r->t.a;
    char samples[32], ranks[32], parameters[32], date[32] = "", host[128] = "", cpu[256];
    char best[160] = "no validation data";
    const time_t now = time(NULL);
    struct tm utc;
    snprintf(samples, sizeof samples, "%lld", (long long)ctn_dataset_count(r->t.set[0]));
    snprintf(ranks, sizeof ranks, "%d", a->job->size);
    if (r->metric[0]) snprintf(best, sizeof best, "%s %s", largest(r), r->metric);
    snprintf(parameters, sizeof parameters, "%lld", (long long)parameter_count(r->t.net));
    if (gmtime_r(&now, &utc)) strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &utc);
    gethostname(host, sizeof host - 1);
    cpu_name(cpu, sizeof cpu);
    /* clang-format off */
    const char *facts[] = {
        "command", command_line,
        "network", a->operand,
        "parameters", parameters,
        "data", args_text(a, "data"),
        "samples", samples,
        "batch", args_text(a, "batch"),
        "ranks", ranks,
        "optimizer", args_text(a, "optimizer"),
        "learning rate", args_text(a, "lr"),
        "schedule", args_text(a, "schedule"),
        "precision", args_text(a, "precision"),
        "seed", args_text(a, "seed"),
        "best weights", best,
        "host", host,
        "CPU", cpu,
        "started", date,
        "Catena", ctn_version_text(),
        NULL};
    /* clang-format on */
    return ctn_extend_html(r->trainer, NULL, "report.html", a->operand, facts);
}
