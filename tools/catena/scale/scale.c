/* SPDX-License-Identifier: Apache-2.0
 *
 * catena scale: how fast a training would be on a large machine. It records the plan of a step
 * here, and simulates the step on as many ranks as asked, one on each node: kernels take their
 * measured or given times, and messages travel through a simulated network, sent by the library's
 * own communication code.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scale/scale.h"

#define LINKS "links"

enum { MOST_SIZES = 32, OUTPUT = 4096 };

typedef struct {
    double step_s, compute_s;
    char algorithm[32];
    int64_t rows, cols, buckets, bucket_bytes;
    double messages, bytes; /* that a rank sends in a step */
    double busy_s;          /* part of a step in which a rank has messages in flight */
    double link, link_most; /* bytes on a link in a step: mean of those that are used, and most */
    double cost_s;          /* what the simulation itself took */
} simulated;

typedef struct {
    const args *a;
    platform p;
    char folder[64], schedule[PATH_MAX];
    events s;
    int n;
    int64_t ranks[MOST_SIZES];
    simulated result[MOST_SIZES];
} scaling;

static double efficiency(const simulated *r)
{
    return r->compute_s / r->step_s;
}

static double exposed(const simulated *r)
{
    return r->step_s - r->compute_s;
}

static double hidden(const simulated *r)
{
    return r->busy_s > exposed(r) ? r->busy_s - exposed(r) : 0;
}

static void print_text(const scaling *x)
{
    say(stdout, "%s, batch %lld per node, kernels %.3f ms, update %.3f ms, on %s\n(%s)\n\n",
        x->s.name, (long long)x->s.batch, (x->s.compute_s - x->s.update_s) * 1e3,
        x->s.update_s * 1e3, x->p.name, x->p.source);
    say(stdout, "%7s %9s %10s %9s %10s %11s  %-12s %7s %7s %7s\n", "ranks", "step ms", "exposed ms",
        "hidden ms", "efficiency", "items/s", "algorithm", "grid", "buckets", "MB/link");
    for (int i = 0; i < x->n; i++) {
        const simulated *r = &x->result[i];
        char grid[48];
        snprintf(grid, sizeof grid, "%lldx%lld", (long long)r->rows, (long long)r->cols);
        say(stdout, "%7lld %9.3f %10.3f %9.3f %9.1f%% %11.0f  %-12s %7s %7lld %7.1f\n",
            (long long)x->ranks[i], r->step_s * 1e3, exposed(r) * 1e3, hidden(r) * 1e3,
            100 * efficiency(r), (double)(x->s.batch * x->ranks[i]) / r->step_s, r->algorithm, grid,
            (long long)r->buckets, r->link * 1e-6);
    }
}

static void print_json(const scaling *x)
{
    json j = {0};
    json_open(&j, NULL, '{');
    json_text(&j, "model", x->s.name);
    json_text(&j, "platform", x->p.name);
    json_int(&j, "batch", x->s.batch);
    json_int(&j, "elements", x->s.elements);
    json_real(&j, "kernels_s", x->s.compute_s - x->s.update_s);
    json_real(&j, "update_s", x->s.update_s);
    json_text(&j, "wire", args_text(x->a, "wire"));
    json_real(&j, "efficiency", efficiency(&x->result[x->n - 1])); /* of the most ranks */
    json_open(&j, "sizes", '[');
    for (int i = 0; i < x->n; i++) {
        const simulated *r = &x->result[i];
        json_open(&j, NULL, '{');
        json_int(&j, "ranks", x->ranks[i]);
        json_real(&j, "step_s", r->step_s);
        json_real(&j, "compute_s", r->compute_s);
        json_real(&j, "exposed_s", exposed(r));
        json_real(&j, "hidden_s", hidden(r));
        json_real(&j, "efficiency", efficiency(r));
        json_text(&j, "algorithm", r->algorithm);
        json_int(&j, "rows", r->rows);
        json_int(&j, "cols", r->cols);
        json_int(&j, "buckets", r->buckets);
        json_int(&j, "bucket_bytes", r->bucket_bytes);
        json_real(&j, "bytes_sent", r->bytes);
        json_real(&j, "messages_sent", r->messages);
        json_real(&j, "bytes_per_link", r->link);
        json_real(&j, "bytes_per_link_most", r->link_most);
        json_real(&j, "simulation_s", r->cost_s);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
}

static ctn_status simulate_step(const scaling *x, int64_t ranks, simulated *out)
{
    const args *a = x->a;
    char text[OUTPUT];
    const char *const words[] = {"step",        x->schedule,
                                 "--algorithm", args_text(a, "algorithm"),
                                 "--rows",      args_text(a, "rows"),
                                 "--wire",      args_text(a, "wire"),
                                 "--bucket",    args_text(a, "bucket"),
                                 "--segment",   args_text(a, "segment"),
                                 "--when",      args_text(a, "when"),
                                 "--shard",     args_flag(a, "shard") ? "1" : "0",
                                 "--links",     "1",
                                 "--steps",     args_text(a, "steps")};
    const double began = now_s();
    CTN_TRY(simulate(&x->p, ranks, x->folder, (int)(sizeof words / sizeof *words), words, text,
                     sizeof text));
    *out = (simulated){.step_s = simulated_number(text, "step_s"),
                       .compute_s = simulated_number(text, "compute_s"),
                       .rows = (int64_t)simulated_number(text, "rows"),
                       .cols = (int64_t)simulated_number(text, "cols"),
                       .buckets = (int64_t)simulated_number(text, "buckets"),
                       .bucket_bytes = (int64_t)simulated_number(text, "bucket_bytes"),
                       .messages = simulated_number(text, "messages"),
                       .bytes = simulated_number(text, "bytes"),
                       .busy_s = simulated_number(text, "busy_s"),
                       .link = simulated_number(text, "link_bytes"),
                       .link_most = simulated_number(text, "link_bytes_most"),
                       .cost_s = now_s() - began};
    simulated_word(text, "algorithm", out->algorithm, sizeof out->algorithm);
    return CTN_OK;
}

static ctn_status draw(const scaling *x, const char *path)
{
    char title[200];
    double y[MOST_SIZES];
    for (int i = 0; i < x->n; i++) y[i] = efficiency(&x->result[i]);
    snprintf(title, sizeof title, "%s, batch %lld per node, on %s", x->s.name,
             (long long)x->s.batch, x->p.name);
    return write_chart(path, title, x->n, x->ranks, y);
}

static ctn_status scale_step(scaling *x)
{
    const args *a = x->a;
    CTN_TRY(events_write(&x->s, x->schedule));
    if (args_text(a, "save")[0]) CTN_TRY(events_write(&x->s, args_text(a, "save")));
    for (int i = 0; i < x->n; i++) CTN_TRY(simulate_step(x, x->ranks[i], &x->result[i]));
    (args_flag(a, "json") ? print_json : print_text)(x);
    return args_text(a, "svg")[0] ? draw(x, args_text(a, "svg")) : CTN_OK;
}

static ctn_status scale_model(scaling *x)
{
    join(x->schedule, sizeof x->schedule, x->folder, "step");
    CTN_TRY(step_of(&x->s, x->a));
    const ctn_status st = scale_step(x);
    events_free(&x->s);
    return st;
}

/* The platform, with other links if they are given. */
static platform machine_of(const args *a)
{
    platform p = *platform_find(args_text(a, "platform"));
    const double rate = args_real(a, "link-gb-per-s"), us = args_real(a, "latency-us");
    if (rate > 0) p.gb_per_s = rate;
    if (us > 0) {
        p.overhead_s = us * 1e-6 / 3; /* before the first of two links */
        p.latency_s = us * 1e-6 / 3;
    }
    return p;
}

static int run(args *a)
{
    static scaling x;
    double sizes[MOST_SIZES];
    x = (scaling){.a = a, .p = machine_of(a)};
    x.n = args_list(a, "ranks", MOST_SIZES, sizes);
    for (int i = 0; i < x.n; i++) x.ranks[i] = (int64_t)sizes[i];
    for (int i = 0; i < x.n; i++)
        if (x.ranks[i] < 1) x.n = 0;
    if (x.n < 1 || args_int(a, "steps") < 1 || args_int(a, "record-steps") < 1) {
        say(stderr, "catena scale: --ranks, --steps and --record-steps must be positive\n");
        return EXIT_USAGE;
    }
    int code = check_threads(a);
    if (code < 0) code = check_precision(a);
    if (code >= 0) return code;
    snprintf(x.folder, sizeof x.folder, "/tmp/catena-scale.XXXXXX");
    if (!mkdtemp(x.folder)) {
        say(stderr, "catena scale: cannot make a folder in /tmp\n");
        return EXIT_ENVIRONMENT;
    }
    const ctn_status st =
        strcmp(a->operand, LINKS) == 0       ? scale_links(a, &x.p, x.n, x.ranks, x.folder)
        : strcmp(a->operand, ALLREDUCE) == 0 ? scale_allreduce(a, &x.p, x.n, x.ranks, x.folder)
                                             : scale_model(&x);
    code = st < 0 ? report_error("scale") : EXIT_DONE;
    remove_tree(x.folder);
    return code;
}

static const char *const *scale_words(void)
{
    static const char *words[MOST_WORDS], *const more[] = {LINKS, ALLREDUCE, NULL};
    return networks_and(words, more);
}

static const option options[] = {
    {"platform", "fat-tree|torus|dragonfly|ethernet", "fat-tree",
     "the machine: an Omni-Path fat tree, Tofu-D, Slingshot, or 10 Gbit/s Ethernet", GROUP_NONE},
    {"link-gb-per-s", "X", "0", "rate of a link; 0: that of the platform", GROUP_NONE},
    {"latency-us", "X", "0", "latency between ranks on the same switch; 0: that of the platform",
     GROUP_NONE},
    {"ranks", "N,...", "16", "numbers of ranks to simulate, one on each node", GROUP_NONE},
    {"batch", "N", "0", "samples per rank; 0: the network's usual batch", GROUP_NONE},
    {"size", "N", "0", "image height and width, or sequence length; 0: the network's usual one",
     GROUP_NONE},
    {"items-per-s", "X", "0",
     "speed of a node in samples per second; 0: the kernels take as long as here", GROUP_NONE},
    {"precision", "P", "f32", "precision of activations and matrix products: f32, bf16, f16 or f64",
     GROUP_NONE},
    {"slow-precision", NULL, NULL,
     "allow a precision that this CPU runs with slow reference kernels", GROUP_NONE},
    {"threads", "N", "0", "number of compute threads; 0: as shown by catena info", GROUP_NONE},
    {"wire", "f32|bf16", "f32", "type of gradients on the network", GROUP_NONE},
    {"algorithm", "NAME", "auto", "allreduce algorithm; auto: the fastest in a measurement",
     GROUP_NONE},
    {"rows", "N", "0", "rows of the grid of torus and rsap; 0: as square as possible", GROUP_NONE},
    {"bytes", "N,...", "4000,400000,40000000", "allreduce: lengths of the vectors", GROUP_NONE},
    {"bucket", "N", "0", "bytes of a bucket of gradients; 0: measured", GROUP_NONE},
    {"segment", "N", "0",
     "bytes of a message; 0: 128 kB, and 1 MB for more than 64 ranks, so that the simulation does "
     "not take hours",
     GROUP_NONE},
    {"when", "overlap|after|each", "overlap",
     "when gradients are sent: during the backward pass, after it, or after it one parameter at a "
     "time",
     GROUP_NONE},
    {"shard", NULL, NULL, "every rank updates a part of the parameters", GROUP_NONE},
    {"steps", "N", "1", "number of simulated steps that count, after one or two others",
     GROUP_NONE},
    {"record-steps", "N", "3", "number of profiled steps here", GROUP_NONE},
    {"save", "FILE", "", "keep what a step does, for catena scale ./FILE and catena plan ./FILE",
     GROUP_NONE},
    {"svg", "FILE", "", "draw the efficiency over the numbers of ranks", GROUP_NONE},
    {"json", NULL, NULL, "print one JSON object", GROUP_NONE},
    {0},
};

const command cmd_scale = {
    .name = "scale",
    .operands = "NETWORK | FILE | links | allreduce",
    .summary = "Simulate training on a large machine, with the library's own communication code.",
    .words = scale_words,
    .paths = RECORDED_STEP,
    .options = options,
    .examples =
        "  catena scale mlp --ranks 16,64,256         how an MLP scales on a fat tree\n"
        "  catena scale resnet50 --ranks 1024 --platform torus --batch 32 --items-per-s 100\n"
        "                                             ResNet-50 on 1,024 nodes of a torus\n"
        "  catena scale allreduce --ranks 64          which algorithm is fastest there\n"
        "  catena scale links --platform dragonfly    latency and rate of its network\n",
    .run = run,
};
