/* SPDX-License-Identifier: Apache-2.0
 *
 * The program of every simulated rank:
 *   simulate ping                     latency and rate between the two ranks farthest apart
 *   simulate bisection                rate of each rank when all talk to the other half
 *   simulate sum BYTES... [options]   time of an allreduce with each algorithm, and with auto
 *   simulate step FILE [options]      steps of a training that `catena scale` has recorded
 * Options: --algorithm NAME, --rows R, --wire f32|bf16, --bucket BYTES, --segment BYTES, --shard 1,
 * --steps N, --when overlap|after|each, --links 1 (count the bytes on them), --add SECONDS (to add
 * a byte). Rank 0 prints JSON lines.
 */
#include <mpi.h>
#include <stdlib.h>

#include <catena/dist.h>

#include "adapter.h"
#include "comm/exchange.h"
#include "scale/events.h"

/* What is left out because the simulator would take hours or tens of gigabytes. Each message takes
 * it about 50 us, so beyond FEW ranks or PIECES messages per vector they are longer than in a
 * training, and there are fewer. Among more than MANY ranks, or if the data of all ranks is LARGE,
 * there is no rsap, which puts from each rank of a row to all others at once; and with LARGE data
 * no flat, whose buffers are real. In MPICH it is Rabenseifner's. */
enum {
    SEGMENT = 128 << 10,
    LONG_SEGMENT = 1 << 20,
    FEW = 64,
    PIECES = 16,
    MORE_PIECES = 64,
    MANY = 16,
    LONGEST = 64 << 20
};
#define LARGE 1e9 /* bytes */

typedef struct {
    int rank, size;
    const char *algorithm; /* of sum: a list; NULL: all, or auto */
    int rows, steps, shard, links;
    ctn_dtype wire;
    int64_t bucket, segment;
    bool late, each;
    double add_s;
} options;

static void give_up(void)
{
    fprintf(stderr, "simulate: %s\n", ctn_error_message());
    exit(1);
}

#define TRY(call)                  \
    do {                           \
        if ((call) < 0) give_up(); \
    } while (0)

/* ---- the network ----------------------------------------------------------------------------- */

static double swap_seconds(int bytes, int peer, int rounds)
{
    char *buf = sim_memory(2 * (size_t)bytes);
    double t = 0;
    for (int i = -1; i < rounds && peer >= 0; i++) {
        if (i == 0) t = sim_now(); /* the first one only brings the two together */
        MPI_Sendrecv(buf, bytes, MPI_BYTE, peer, 0, buf + bytes, bytes, MPI_BYTE, peer, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    double took = peer >= 0 ? (sim_now() - t) / rounds : 0, most = 0;
    MPI_Allreduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

static void ping(const options *o)
{
    enum { LONG = 64 << 20 };
    const int last = o->size - 1, peer = o->rank == 0 ? last : o->rank == last ? 0 : -1;
    const double small = swap_seconds(1, peer, 10), large = swap_seconds(LONG, peer, 1);
    if (o->rank == 0)
        printf("{\"latency_us\": %.3f, \"gb_per_s\": %.3f}\n", small * 1e6, LONG / large * 1e-9);
}

static void bisection(const options *o)
{
    enum { LONG = 16 << 20 };
    const double t = swap_seconds(LONG, (o->rank + o->size / 2) % o->size, 1);
    if (o->rank == 0) printf("{\"gb_per_s_each\": %.3f}\n", LONG / t * 1e-9);
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Is it in the list "NAME,NAME"? */
static bool listed(const char *list, const char *name)
{
    const size_t n = strlen(name);
    const char *at = list ? strstr(list, name) : NULL;
    return at && (at == list || at[-1] == ',') && (at[n] == ',' || at[n] == 0);
}

static ctn_comm *open_comm(const options *o, int64_t bytes)
{
    const ctn_comm_opt opt = {.struct_size = sizeof opt,
                              .algorithm = o->algorithm,
                              .wire = o->wire,
                              .rows = o->rows,
                              .segment = o->segment};
    ctn__net *net = NULL;
    ctn_comm *c = NULL;
    const bool large = (double)o->size * (double)bytes > LARGE;
    TRY(sim_net(&net, o->add_s, (o->size <= MANY && !large) || listed(o->algorithm, "rsap")));
    TRY(ctn__comm_new(&c, net, &opt));
    c->guest = large;
    return c;
}

static void time_sum(const options *o, ctn_comm *c, float *data, int64_t bytes, const char *name)
{
    const bool chooses = strcmp(name, "auto") == 0;
    if (chooses) TRY(ctn_comm_allreduce(c, data, bytes / 4, CTN_F32)); /* measures first */
    MPI_Barrier(MPI_COMM_WORLD);
    const double t = sim_now();
    TRY(ctn_comm_allreduce(c, data, bytes / 4, CTN_F32));
    double took = sim_now() - t, most = 0;
    MPI_Reduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (o->rank == 0)
        printf("{\"ranks\": %d, \"bytes\": %lld, \"algorithm\": \"%s\", \"chosen\": \"%s\", "
               "\"seconds\": %.9f}\n",
               o->size, (long long)bytes, name, ctn_comm_algorithm(c), most);
    fflush(stdout);
}

static void sums(const options *o, int n, char **bytes)
{
    options each = *o;
    float first = 0;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD); /* brings all here */
    for (int k = 0; k < n; k++) {
        const int64_t length = strtoll(bytes[k], NULL, 10);
        float *data = sim_memory((size_t)length);
        /* auto measures at most LONGEST bytes */
        const int64_t measured = length < LONGEST ? length : LONGEST;
        if (o->segment == 0) each.segment = measured / (o->size > FEW ? PIECES : MORE_PIECES);
        if (o->segment == 0 && each.segment < SEGMENT) each.segment = SEGMENT;
        each.algorithm = NULL;
        ctn_comm *c = open_comm(&each, length);
        for (int i = 0; i <= CTN__ALGORITHMS; i++) {
            const char *name = i < CTN__ALGORITHMS ? ctn_comm_algorithm_name(i) : "auto";
            if (o->algorithm && !listed(o->algorithm, name)) continue;
            if (i == 0 && c->guest) continue;                           /* flat */
            if (ctn_comm_set_algorithm(c, name) < 0) ctn_error_clear(); /* does not fit */
            else time_sum(o, c, data, length, name);
        }
        ctn_comm_free(c);
    }
}

/* ---- steps of a training --------------------------------------------------------------------- */

typedef struct {
    const options *o;
    const events *s;
    ctn_comm *c;
    ctn__exchange *x;
    double clock; /* until when kernels have run */
} training;

static double update_seconds(const training *t, int64_t elements)
{
    return t->s->update_s * (double)elements / (double)t->s->elements;
}

/* The update of a bucket that was held back. */
static void update(void *owner, int64_t begin, int64_t end, int threads)
{
    training *t = owner;
    (void)threads;
    t->clock = sim_now() + update_seconds(t, end - begin);
    TRY(sim_compute(t->c, t->clock));
}

/* In the first step, as plan/exchange.c does it. */
static void decide(training *t)
{
    char chosen[64];
    if (!ctn__exchange_decide(t->x) || t->o->shard || t->c->alg) return;
    TRY(ctn__comm_choose(t->c, t->s->elements * 4, NULL, chosen, sizeof chosen));
    if (t->c->bucket > 0) TRY(ctn__exchange_cut(t->x, t->c->bucket));
}

static void make(training *t)
{
    const options *o = t->o;
    const events *s = t->s;
    float *w = sim_memory((size_t)s->elements * 4), *g = sim_memory((size_t)s->elements * 4);
    const ctn__exchange_opt e = {.bucket = o->bucket,
                                 .n = o->each ? s->params : 0,
                                 .at = s->param,
                                 .type = CTN_F32,
                                 .wire = o->wire,
                                 .shard = o->shard != 0,
                                 .late = o->late || o->each,
                                 .one_by_one = o->each,
                                 .hold = o->late || o->each ? 0 : CTN__HOLD,
                                 .update = update,
                                 .owner = t,
                                 .progress = CTN_DIST_POLLS};
    t->c = open_comm(o, 4 << 20);
    TRY(ctn__exchange_new(&t->x, t->c, w, g, s->elements, &e));
}

static void step(training *t)
{
    const events *s = t->s;
    for (int i = 0; i < s->n; i++) {
        const event *e = &s->event[i];
        const int64_t rest = ctn__exchange_rest(t->x);
        switch (e->kind) {
        case KERNEL:
            t->clock += e->seconds;
            TRY(sim_compute(t->c, t->clock));
            break;
        case READY: TRY(ctn__exchange_ready(t->x, e->begin, e->end)); break;
        case NEED:
            TRY(ctn__exchange_need(t->x, e->end, 1));
            if (rest < e->end && sim_now() > t->clock) t->clock = sim_now();
            break;
        case STEP:
            decide(t);
            TRY(ctn__exchange_finish(t->x));
            t->clock = sim_now();
            t->clock += t->o->shard ? t->s->update_s / t->o->size
                                    : update_seconds(t, ctn__exchange_rest(t->x));
            TRY(sim_compute(t->c, t->clock));
            if (t->o->shard) TRY(ctn__exchange_publish(t->x));
            break;
        }
    }
}

static void print_result(const training *t, double seconds, const double *sent, const double *link)
{
    const options *o = t->o;
    printf("{\"ranks\": %d, \"step_s\": %.9f, \"compute_s\": %.9f, \"algorithm\": \"%s\", "
           "\"rows\": %d, \"cols\": %d, \"bucket_bytes\": %lld, \"buckets\": %d, "
           "\"messages\": %.0f, \"bytes\": %.0f, \"busy_s\": %.9f, \"link_bytes\": %.0f, "
           "\"link_bytes_most\": %.0f}\n",
           o->size, seconds, t->s->compute_s, o->shard ? "sharded" : ctn_comm_algorithm(t->c),
           t->c->place.rows, t->c->place.cols,
           4 * (long long)ctn__bucket_length(ctn__exchange_buckets(t->x), 0),
           ctn__exchange_buckets(t->x)->n, sent[0], sent[1], sent[2], link[0] / o->steps,
           link[1] / o->steps);
}

static void steps(options *o, const char *path)
{
    events s;
    training t = {.o = o, .s = &s};
    double before[3], after[3], most = 0;
    TRY(events_read(&s, path));
    if (o->segment == 0 && o->size > FEW) o->segment = LONG_SEGMENT;
    if (o->size == 1) { /* nothing is sent */
        printf("{\"ranks\": 1, \"step_s\": %.9f, \"compute_s\": %.9f, \"algorithm\": \"none\"}\n",
               s.compute_s, s.compute_s);
        events_free(&s);
        return;
    }
    make(&t);
    t.clock = sim_now();
    /* One that leaves as much in flight as the others do; before it, one that chooses. */
    for (int i = t.c->alg || o->shard; i < 2; i++) step(&t);
    sim_sent(t.c->net, before);
    if (o->rank == 0 && o->links) sim_links_begin();
    const double begin = sim_now();
    t.clock = begin;
    for (int i = 0; i < o->steps; i++) step(&t);
    double took = (sim_now() - begin) / o->steps;
    sim_sent(t.c->net, after);
    for (int i = 0; i < 3; i++) after[i] = (after[i] - before[i]) / o->steps;
    TRY(ctn__exchange_need(t.x, s.elements, 1));
    MPI_Reduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    double link[2] = {0};
    if (o->rank == 0 && o->links) sim_links_end(link);
    if (o->rank == 0) print_result(&t, most, after, link);
    (void)ctn__exchange_free(t.x);
    ctn_comm_free(t.c);
    events_free(&s);
}

int main(int argc, char **argv)
{
    options o = {.steps = 1, .wire = CTN_F32, .add_s = 1e-10};
    char *word[64];
    int n = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &o.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &o.size);
    for (int i = 1; i < argc && n < 64; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strncmp(argv[i], "--", 2) != 0) {
            word[n++] = argv[i];
            continue;
        }
        if (strcmp(argv[i], "--algorithm") == 0 && strcmp(value, "auto") != 0) o.algorithm = value;
        if (strcmp(argv[i], "--rows") == 0) o.rows = (int)strtol(value, NULL, 10);
        if (strcmp(argv[i], "--steps") == 0) o.steps = (int)strtol(value, NULL, 10);
        if (strcmp(argv[i], "--shard") == 0) o.shard = (int)strtol(value, NULL, 10);
        if (strcmp(argv[i], "--links") == 0) o.links = (int)strtol(value, NULL, 10);
        if (strcmp(argv[i], "--bucket") == 0) o.bucket = strtoll(value, NULL, 10);
        if (strcmp(argv[i], "--segment") == 0) o.segment = strtoll(value, NULL, 10);
        if (strcmp(argv[i], "--wire") == 0 && strcmp(value, "bf16") == 0) o.wire = CTN_BF16;
        if (strcmp(argv[i], "--when") == 0) o.late = strcmp(value, "after") == 0;
        if (strcmp(argv[i], "--when") == 0) o.each = strcmp(value, "each") == 0;
        if (strcmp(argv[i], "--add") == 0) o.add_s = strtod(value, NULL);
        i++;
    }
    if (n == 1 && strcmp(word[0], "ping") == 0) ping(&o);
    else if (n == 1 && strcmp(word[0], "bisection") == 0) bisection(&o);
    else if (n > 1 && strcmp(word[0], "sum") == 0) sums(&o, n - 1, word + 1);
    else if (n == 2 && strcmp(word[0], "step") == 0) steps(&o, word[1]);
    else if (o.rank == 0) fprintf(stderr, "simulate: unknown arguments\n");
    MPI_Finalize();
    return 0;
}
