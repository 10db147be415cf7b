/* SPDX-License-Identifier: Apache-2.0
 *
 * catena explain: trains a few profiled steps and prints the plan that ran: kernels by their
 * oneDNN names, shapes, memory offsets and times. Then it shows how close each kernel and each
 * kind of op came to the peak of the machine.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <catena/onnx.h>

#include "finetune.h"
#include "machine.h"
#include "model.h"

static ctn_status print_plan(ctn_context *ctx)
{
    int n = ctn_context_plan_text(ctx, NULL, 0);
    if (n < 0) return (ctn_status)n;
    char *text = malloc((size_t)n + 1);
    if (!text) return ctn_fail(CTN_ENOMEM, "no memory for the text of the plan");
    int got = ctn_context_plan_text(ctx, text, (size_t)n + 1);
    if (got >= 0) say_lines(stdout, "%s", text);
    free(text);
    return got < 0 ? (ctn_status)got : CTN_OK;
}

/* ---- efficiency ------------------------------------------------------------------------------ */

/* Work and time of one node or of all nodes of one op. */
typedef struct {
    char op[64];
    int64_t count, flops, bytes, reorders, slow;
    double ms;
    double ideal_ms; /* time of the products with a known peak, at that peak */
    double known_ms; /* time that these products took */
} work;

enum { MAX_OPS = 128 }; /* different op names in one plan; the last entry holds all others */

typedef struct {
    const machine_peak *peak;
    double total_ms;
    json *j; /* NULL: text */
    work op[MAX_OPS];
    int nop;
    int forward, backward; /* kernels; forward: also those of the update */
    double activations_mb, parameters_mb, trained_mb; /* trained: gradients and optimizer state */
} report;

static double gflops(const work *w)
{
    return w->flops > 0 ? (double)w->flops * 1e-6 / w->ms : NAN;
}

static double gbps(const work *w)
{
    return w->bytes > 0 ? (double)w->bytes * 1e-6 / w->ms : NAN;
}

/* Percent of the peak for the types that ran; NAN without products or without a known peak. */
static double of_peak(const work *w)
{
    return w->known_ms > 0 ? 100 * w->ideal_ms / w->known_ms : NAN;
}

static double of_stream(const report *r, const work *w)
{
    return 100 * gbps(w) / r->peak->stream_gbps;
}

static double of_step(const report *r, const work *w)
{
    return 100 * w->ms / r->total_ms;
}

static work work_of(const report *r, const ctn_plan_node *n)
{
    double peak = n->nin > 0 ? machine_gflops(r->peak, n->in[0].dtype) : 0;
    work w = {.count = 1,
              .flops = n->flops,
              .bytes = n->bytes,
              .reorders = n->reordered,
              .slow = n->slow != NULL,
              .ms = (double)n->ns * 1e-6};
    snprintf(w.op, sizeof w.op, "%s", n->op);
    if (peak > 0 && n->flops > 0) {
        w.ideal_ms = (double)n->flops * 1e-6 / peak;
        w.known_ms = w.ms;
    }
    return w;
}

static void add_work(report *r, const work *w)
{
    int i = 0;
    while (i < r->nop && strcmp(r->op[i].op, w->op) != 0) i++;
    if (i == MAX_OPS) snprintf(r->op[--i].op, sizeof r->op[i].op, "others");
    if (i == r->nop) snprintf(r->op[r->nop++].op, sizeof r->op[i].op, "%s", w->op);
    work *s = &r->op[i];
    s->count += w->count;
    s->flops += w->flops;
    s->bytes += w->bytes;
    s->reorders += w->reorders;
    s->slow += w->slow;
    s->ms += w->ms;
    s->ideal_ms += w->ideal_ms;
    s->known_ms += w->known_ms;
}

static int longest_first(const void *a, const void *b)
{
    double x = ((const work *)a)->ms, y = ((const work *)b)->ms;
    return (x < y) - (x > y);
}

/* Write text such as "channels-last+engine" to buf. */
static const char *layout_text(int bits, char *buf, size_t n)
{
    static const struct {
        int bit;
        const char *name;
    } names[] = {{CTN_LAYOUT_ROW_MAJOR, "row-major"},
                 {CTN_LAYOUT_CHANNELS_LAST, "channels-last"},
                 {CTN_LAYOUT_STRIDED, "strided"},
                 {CTN_LAYOUT_ENGINE, "engine"}};
    size_t len = 0;
    buf[0] = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (bits & names[i].bit && len < n)
            len += (size_t)snprintf(buf + len, n - len, "%s%s", len ? "+" : "", names[i].name);
    return buf;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void cell(double v, int width, int digits)
{
    if (isfinite(v)) say(stdout, " %*.*f", width, digits, v);
    else say(stdout, " %*s", width, "-");
}

static void print_rates(const report *r, const work *w)
{
    cell(gflops(w), 8, 1);
    cell(of_peak(w), 6, 0);
    cell((double)w->bytes * 1e-6, 9, 2);
    cell(gbps(w), 7, 1);
    cell(of_stream(r, w), 6, 0);
}

static void print_node(const report *r, const ctn_plan_node *n, const work *w)
{
    char layout[64];
    say(stdout, "%4d %-28s", n->index, n->op);
    cell(w->ms * 1e3, 10, 1);
    cell(of_step(r, w), 5, 1);
    print_rates(r, w);
    say(stdout, " %8d  %-23s %s", n->reordered, layout_text(n->layouts, layout, sizeof layout),
        n->kernel);
    if (n->slow) say(stdout, "  SLOW: %s", n->slow);
    say(stdout, "\n");
}

static void print_head(const machine_peak *m)
{
    say(stdout, "\nThis machine, measured now: %.1f GFLOP/s in f32", m->f32_gflops);
    if (m->low) say(stdout, ", %.1f in %s", m->low_gflops, m->low);
    say(stdout,
        ", %.1f GB/s. A bandwidth share above 100 %% means that operands were in a cache.\n\n",
        m->stream_gbps);
    say(stdout, "%4s %-28s %10s %5s %8s %6s %9s %7s %6s %8s  %-23s %s\n", "", "op", "us", "step%",
        "GFLOP/s", "peak%", "MB", "GB/s", "strm%", "reorders", "layout", "kernel");
}

static void print_memory(const report *r)
{
    say(stdout, "\n%d kernels of the forward pass and the update, %d of the backward pass\n",
        r->forward, r->backward);
    say(stdout,
        "memory: %.1f MB of activations and copies of weights, %.1f MB of parameters, %.1f MB of "
        "gradients and optimizer state\n",
        r->activations_mb, r->parameters_mb, r->trained_mb);
}

static void print_ops(const report *r)
{
    say(stdout, "\n%-33s %10s %5s %8s %6s %9s %7s %6s %6s\n", "by op", "ms", "step%", "GFLOP/s",
        "peak%", "MB", "GB/s", "strm%", "slow");
    for (int i = 0; i < r->nop; i++) {
        const work *w = &r->op[i];
        say(stdout, "%4lld %-28s", (long long)w->count, w->op);
        cell(w->ms, 10, 3);
        cell(of_step(r, w), 5, 1);
        print_rates(r, w);
        say(stdout, " %6lld\n", (long long)w->slow);
    }
    say(stdout, "     %-28s %10.3f\n", "all", r->total_ms);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_work(json *j, const report *r, const work *w)
{
    json_real(j, "ms", w->ms);
    json_real(j, "step_percent", of_step(r, w));
    json_int(j, "flops", w->flops);
    json_real(j, "gflops", gflops(w));
    json_real(j, "peak_percent", of_peak(w));
    json_int(j, "bytes", w->bytes);
    json_real(j, "gbps", gbps(w));
    json_real(j, "stream_percent", of_stream(r, w));
    json_int(j, "reorders", w->reorders);
}

static void json_descs(json *j, const char *name, const ctn_desc *d, int n)
{
    char text[160];
    json_open(j, name, '[');
    for (int i = 0; i < n; i++) {
        size_t len = (size_t)snprintf(text, sizeof text, "%s(", ctn_dtype_name(d[i].dtype));
        for (int k = 0; k < d[i].ndim && len < sizeof text; k++)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%lld", k ? "," : "",
                                    (long long)d[i].dim[k]);
        if (len < sizeof text) snprintf(text + len, sizeof text - len, ")");
        json_text(j, NULL, text);
    }
    json_close(j, ']');
}

static void json_node(const report *r, const ctn_plan_node *n, const work *w)
{
    char layout[64];
    json_open(r->j, NULL, '{');
    json_text(r->j, "op", n->op);
    json_text(r->j, "kernel", n->kernel);
    json_text(r->j, "at", n->at);
    json_descs(r->j, "in", n->in, n->nin);
    json_descs(r->j, "out", n->out, n->nout);
    json_text(r->j, "layout", layout_text(n->layouts, layout, sizeof layout));
    json_work(r->j, r, w);
    json_text(r->j, "slow", n->slow);
    json_close(r->j, '}');
}

static void json_ops(const report *r)
{
    json_open(r->j, "by_op", '[');
    for (int i = 0; i < r->nop; i++) {
        json_open(r->j, NULL, '{');
        json_text(r->j, "op", r->op[i].op);
        json_int(r->j, "count", r->op[i].count);
        json_work(r->j, r, &r->op[i]);
        json_int(r->j, "slow", r->op[i].slow);
        json_close(r->j, '}');
    }
    json_close(r->j, ']');
}

static void json_head(json *j, const args *a, const report *r, ctn_context *ctx)
{
    ctn_plan_stats s;
    ctn_context_get_stats(ctx, &s);
    json_open(j, NULL, '{');
    json_text(j, "model", a->operand);
    json_text(j, "precision", args_text(a, "precision"));
    json_text(j, "version", ctn_version_text());
    json_int(j, "threads", ctn_context_threads(ctx));
    json_int(j, "arena_bytes", s.arena_bytes);
    json_real(j, "parameter_bytes", r->parameters_mb * 1e6);
    json_real(j, "gradient_and_state_bytes", r->trained_mb * 1e6);
    json_int(j, "forward_kernels", r->forward);
    json_int(j, "backward_kernels", r->backward);
    json_real(j, "kernels_ms", r->total_ms);
    json_open(j, "machine", '{');
    json_real(j, "f32_gflops", r->peak->f32_gflops);
    if (r->peak->low) {
        json_text(j, "low_precision", r->peak->low);
        json_real(j, "low_gflops", r->peak->low_gflops);
    }
    json_real(j, "stream_gbps", r->peak->stream_gbps);
    json_close(j, '}');
    json_open(j, "nodes", '[');
}

/* ---- the subcommand -------------------------------------------------------------------------- */

static ctn_status add_time(void *user, const ctn_plan_node *n)
{
    report *r = user;
    r->total_ms += (double)n->ns * 1e-6;
    ++*(n->gradient ? &r->backward : &r->forward);
    return CTN_OK;
}

static void add_memory(report *r, const model *m)
{
    const ctn_vars p = ctn_params(m->net);
    ctn_plan_stats s;
    ctn_context_get_stats(m->ctx, &s);
    r->activations_mb = (double)s.arena_bytes * 1e-6;
    for (int i = 0; i < p.n; i++) {
        bool tied = false;
        for (int k = 0; k < i && !tied; k++) tied = p.var[k] == p.var[i];
        const ctn_desc *d = ctn_var_desc(p.var[i]);
        double mb = (double)ctn_dtype_size(d->dtype) * 1e-6;
        for (int k = 0; k < d->ndim; k++) mb *= (double)d->dim[k];
        if (tied) continue;
        r->parameters_mb += mb;
        if (ctn_var_trainable(p.var[i])) r->trained_mb += mb * (1 + m->states);
    }
}

static ctn_status show_node(void *user, const ctn_plan_node *n)
{
    report *r = user;
    work w = work_of(r, n);
    add_work(r, &w);
    (r->j ? json_node : print_node)(r, n, &w);
    return CTN_OK;
}

static ctn_status show(const model *m, const args *a, const machine_peak *peak)
{
    ctn_context *ctx = m->ctx;
    json out = {0};
    report r = {.peak = peak, .j = args_flag(a, "json") ? &out : NULL};
    CTN_TRY(ctn_context_visit_plan(ctx, add_time, &r));
    add_memory(&r, m);
    if (r.j) {
        json_head(r.j, a, &r, ctx);
    } else {
        CTN_TRY(print_plan(ctx));
        print_head(peak);
    }
    CTN_TRY(ctn_context_visit_plan(ctx, show_node, &r));
    qsort(r.op, (size_t)r.nop, sizeof *r.op, longest_first);
    if (r.j) {
        json_close(r.j, ']');
        json_ops(&r);
        json_close(r.j, '}');
    } else {
        print_ops(&r);
        print_memory(&r);
    }
    return CTN_OK;
}

/* ---- a model in ONNX format ------------------------------------------------------------------ */

enum { MOST_INPUTS = 256, MOST_BYTES = 1 << 30 }; /* of inputs, whose sizes a file claims */
enum { ENOUGH = 2 };                              /* seconds of steps, unless --steps is given */

/* Synthetic values of one input: uniform numbers, or zeros for integers. */
static ctn_status onnx_values(const ctn_onnx_port *p, const args *a, int64_t *left, int64_t *dims,
                              void **data)
{
    const int64_t batch = args_int(a, "batch"), size = args_int(a, "size");
    int64_t n = 1;
    uint64_t state = 1;
    if (p->ndim < 0 || !p->dtype)
        return ctn_fail(CTN_EUNSUPPORTED, "the model does not say what its input %s is", p->name);
    for (int i = 0; i < p->ndim; i++) {
        const int64_t usual = i == 0                  ? (batch > 0 ? batch : 1)
                              : size > 0              ? size
                              : p->ndim == 4 && i > 1 ? 224
                              : p->ndim == 4          ? 3
                                                      : 128;
        dims[i] = p->dim[i] > 0 ? p->dim[i] : usual;
        if (dims[i] > *left / (int64_t)ctn_dtype_size(p->dtype) / n)
            return ctn_fail(CTN_EUNSUPPORTED,
                            "the inputs of the model take more than %d MB, which is the limit of "
                            "catena explain: run the model with your own data",
                            MOST_BYTES >> 20);
        n *= dims[i];
    }
    *left -= n * (int64_t)ctn_dtype_size(p->dtype);
    *data = calloc((size_t)n + 1, ctn_dtype_size(p->dtype));
    if (!*data) return ctn_fail(CTN_ENOMEM, "no memory for the input %s", p->name);
    float *f = *data;
    for (int64_t i = 0; p->dtype == CTN_F32 && i < n; i++) f[i] = model_uniform(&state);
    return CTN_OK;
}

static ctn_status onnx_forward(ctn_context *ctx, ctn_module *net, const args *a)
{
    ctn_tensor *x[MOST_INPUTS] = {NULL}, *y = NULL;
    void *data[MOST_INPUTS] = {NULL};
    ctn_status st = CTN_OK, end = CTN_OK;
    int64_t left = MOST_BYTES;
    const int n = ctn_onnx_inputs(net);
    if (n > MOST_INPUTS) return ctn_fail(CTN_EUNSUPPORTED, "the model has %d inputs", n);
    CTN_TRY(ctn_scope_begin(ctx));
    for (int i = 0; i < n && st == CTN_OK; i++) {
        ctn_onnx_port p;
        int64_t dims[CTN_MAX_DIMS] = {0};
        st = ctn_onnx_input(net, i, &p);
        if (st == CTN_OK) st = onnx_values(&p, a, &left, dims, &data[i]);
        if (st == CTN_OK) x[i] = ctn_input(ctx, data[i], p.dtype, p.ndim, dims);
    }
    if (st == CTN_OK) st = ctn_onnx_run(net, n, x, 1, &y);
    if (st == CTN_OK && !ctn_data(y)) st = ctn_error_status();
    end = ctn_scope_end(ctx);
    for (int i = 0; i < n; i++) free(data[i]);
    return st < 0 ? st : end;
}

static ctn_status explain_onnx(const args *a)
{
    ctn_status st = CTN_OK;
    ctn_context *ctx = NULL;
    ctn_module *net = NULL;
    machine_peak peak;
    const char *trace = args_text(a, "trace");
    CTN_TRY(machine_measure(&peak, a));
    CTN_TRY_GOTO(st, done, open_context(&ctx, a, trace[0] ? 100000 : 0));
    CTN_TRY_GOTO(st, done,
                 ctn_onnx_open(&net, ctx, a->operand, CTN_OPT(ctn_onnx_opt, .frozen = 1)));
    ctn_context_set_training(ctx, 0);
    ctn_context_set_grad(ctx, 0);
    ctn_context_set_profile(ctx, 1);
    const double start = now_s();
    for (int64_t s = args_int(a, "steps"); s > 0; s--) {
        CTN_TRY_GOTO(st, done, onnx_forward(ctx, net, a));
        if (!args_given(a, "steps") && now_s() - start > ENOUGH) break;
    }
    CTN_TRY_GOTO(st, done, show(&(model){.ctx = ctx, .net = net}, a, &peak));
    if (trace[0]) CTN_TRY_GOTO(st, done, ctn_context_write_trace(ctx, trace));
done:
    ctn_module_free(net);
    ctn_context_free(ctx);
    return st;
}

static ctn_status explain_model(const args *a)
{
    ctn_status st = CTN_OK;
    ctn_context *ctx = NULL;
    model m = {0};
    machine_peak peak;
    double loss;
    const char *trace = args_text(a, "trace");
    CTN_TRY(machine_measure(&peak, a)); /* before the network allocates its memory */
    CTN_TRY_GOTO(st, done, open_context(&ctx, a, trace[0] ? 100000 : 0));
    CTN_TRY_GOTO(st, done,
                 model_new(&m, ctx,
                           &(model_opt){.name = a->operand,
                                        .batch = args_int(a, "batch"),
                                        .size = args_int(a, "size"),
                                        .recompute = args_flag(a, "recompute"),
                                        .freeze = a}));
    ctn_context_set_profile(ctx, 1);
    for (int64_t s = args_int(a, "steps"); s > 0; s--)
        CTN_TRY_GOTO(st, done, model_step(&m, &loss));
    CTN_TRY_GOTO(st, done, show(&m, a, &peak));
    if (trace[0]) CTN_TRY_GOTO(st, done, ctn_context_write_trace(ctx, trace));
done:
    model_free(&m);
    ctn_context_free(ctx);
    return st;
}

static int run(args *a)
{
    if (args_int(a, "steps") < 1) {
        say(stderr, "catena explain: --steps must be at least 1\n");
        return EXIT_USAGE;
    }
    int code = check_threads(a);
    if (code >= 0) return code;
    code = check_precision(a);
    if (code >= 0) return code;
    const bool onnx = strchr(a->operand, '.') && strcmp(strrchr(a->operand, '.'), ".onnx") == 0;
    return (onnx ? explain_onnx(a) : explain_model(a)) < 0 ? report_error("explain") : EXIT_DONE;
}

static const option options[] = {
    {"threads", "N", "0", "number of compute threads; 0: as shown by catena info", GROUP_NONE},
    {"batch", "N", "0", "batch size; 0: the network's usual one", GROUP_NONE},
    {"size", "N", "0", "image height and width, or sequence length; 0: the network's usual one",
     GROUP_NONE},
    {"precision", "P", "f32", "precision of activations and matrix products: f32, bf16, f16 or f64",
     GROUP_NONE},
    {"slow-precision", NULL, NULL,
     "allow a precision that this CPU runs with slow reference kernels", GROUP_NONE},
    FREEZE_OPTIONS(GROUP_NONE),
    {"recompute", NULL, NULL, "recompute blocks in the backward pass: less memory, more time",
     GROUP_NONE},
    {"steps", "N", "20",
     "number of profiled steps, of which the best time of each kernel is shown (default: 20, or 2 "
     "seconds of an ONNX model)",
     GROUP_NONE},
    {"json", NULL, NULL, "print one JSON object with the machine, every kernel and totals by op",
     GROUP_NONE},
    {"trace", "FILE", "", "file for a Chrome trace of the kernels, for Perfetto", GROUP_NONE},
    {0},
};

const command cmd_explain = {
    .name = "explain",
    .operands = "NETWORK",
    .summary = "Train a few steps and print the plan, kernel by kernel, with the speed of each.",
    .words = model_names,
    .options = options,
    .examples = "  catena explain mlp                 the plan of an MLP training step\n"
                "  catena explain resnet50 --steps 5  where the time of a ResNet-50 step goes\n"
                "  catena explain resnet50 --train-only fc   what a frozen body costs\n"
                "  catena explain mlp --threads 1     the same on one thread\n"
                "  CATENA_FUSE=0 catena explain mlp   what fusion did\n"
                "  catena explain model.onnx          the forward pass of a model in ONNX format\n",
    .run = run,
    .paths = "a model in ONNX format (model.onnx), of which the forward pass is shown",
};
