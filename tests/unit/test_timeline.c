/* SPDX-License-Identifier: Apache-2.0
 *
 * The timeline with threads as ranks. Clocks that are hours apart are aligned, all ranks have
 * the same steps in one JSON file, the parts of a step fit into the step, a ring that is too
 * small keeps whole steps only, and a file that cannot be written is an error on all ranks. With
 * many ranks the file has a sample of them, and the others spend almost no time on it.
 * Labels: threads serial
 */
#include "distributed/timeline.h"
#include "ranks.h"
#include "support/counted.h"

#include <stdatomic.h>
#include <unistd.h>

/* ---- the sample ------------------------------------------------------------------------------ */

/* It contains rank 0 and as many ranks as allowed, evenly spaced. */
static void test_sample(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 63, 64, 65, 100, 128, 1000, 10000},
                     most[] = {0, 1, 3, 64, 200};
    for (int i = 0; i < 9; i++) {
        for (int k = 0; k < 5; k++) {
            const int size = sizes[i], limit = most[k] ? most[k] : 64;
            const int want = size < limit ? size : limit;
            const ctn__sample s = ctn__sample_of(size, most[k]);
            int n = 0, last = 0;
            assert_int_equal(s.n, want);
            for (int r = 0; r < size; r++) {
                const int number = ctn__sample_number(s, r);
                assert_int_equal(ctn_dist_timeline_has(r, size, most[k]), number >= 0);
                if (number < 0) continue;
                assert_int_equal(number, n++);
                assert_int_equal(ctn__sample_rank(s, number), r);
                assert_true(r - last <= size / want + 1);
                last = r;
            }
            assert_int_equal(n, want);
            assert_int_equal(ctn__sample_number(s, 0), 0);
            assert_true(size - last <= size / want + 1);
        }
    }
    assert_int_equal(ctn_dist_timeline_has(-1, 4, 0), 0);
    assert_int_equal(ctn_dist_timeline_has(4, 4, 0), 0);
}

/* ---- clocks ---------------------------------------------------------------------------------- */

/* Ranks 0 and 1 share a node, 3 and 4 another. */
enum { RANKS = 5 };
static const int node_of[RANKS] = {0, 0, 2, 3, 3};
static const int64_t skew[RANKS] = {0, 0, 7200000000000, -3600000000000, -3600000000000};

typedef struct {
    ctn_comm *c;
    int ranks; /* of the sample */
    ctn_status st;
    ctn__clock_offset of[RANKS];
} clock_job;

/* One clock for all ranks. It moves on with every reading, by 1 to 32 us in turn. A round trip has
 * three readings, so 32 round trips include the shortest, 1 + 2 us. */
enum { SHORTEST_NS = 3000 };

static uint64_t skewed(void *user)
{
    static atomic_uint readings;
    static _Atomic uint64_t time = 1000000000000000;
    time += 1000 * (1 + readings++ % 32);
    return time + (uint64_t)skew[*(int *)user];
}

static void *measure(void *p)
{
    clock_job *j = p;
    int rank = ctn_comm_rank(j->c);
    j->st = ctn__clock_offsets(j->c, ctn__sample_of(RANKS, j->ranks), skewed, &rank, j->of);
    return NULL;
}

static void measure_all(int ranks)
{
    ctn__net *net[RANKS];
    clock_job j[RANKS] = {{0}};
    pthread_t thread[RANKS];
    const ctn__sample s = ctn__sample_of(RANKS, ranks);
    OK(ctn__net_loopback_nodes(net, RANKS, node_of));
    for (int r = 0; r < RANKS; r++) OK(ctn__comm_new(&j[r].c, net[r], NULL));
    for (int r = 0; r < RANKS; r++) j[r].ranks = ranks;
    for (int r = 0; r < RANKS; r++) pthread_create(&thread[r], NULL, measure, &j[r]);
    for (int r = 0; r < RANKS; r++) pthread_join(thread[r], NULL);
    for (int r = 0; r < RANKS; r++) assert_int_equal(j[r].st, CTN_OK);
    for (int i = 0; i < s.n; i++) {
        const int r = ctn__sample_rank(s, i);
        const ctn__clock_offset *of = &j[0].of[i];
        const int64_t wrong = of->ahead_ns - skew[r];
        assert_true(wrong <= of->within_ns && -wrong <= of->within_ns);
        assert_int_equal(of->within_ns, node_of[r] == 0 ? 0 : SHORTEST_NS / 2);
    }
    for (int r = 0; r < RANKS; r++) ctn_comm_free(j[r].c);
}

static void test_clocks(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= RANKS; ranks++) measure_all(ranks);
}

/* ---- the file of a training ------------------------------------------------------------------ */

typedef struct {
    const char *path;
    int64_t spans, steps; /* size of the ring; steps requested */
    int trained, shard, ranks;
    ctn_status want;
} training;

enum { ROWS = 8, FEATURES = 40 };

static void run_steps(job *j, ctn_context *ctx, ctn_module *net, ctn_optim *o, int n)
{
    float x[ROWS * FEATURES];
    int64_t t[ROWS];
    for (int i = 0; i < ROWS * FEATURES; i++) x[i] = (float)((i * 7 + j->rank) % 11) / 11;
    for (int i = 0; i < ROWS; i++) t[i] = i % 3;
    for (int s = 0; s < n; s++) {
        TRY(j, ctn_scope_begin(ctx));
        ctn_tensor *y = ctn_call(net, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(ROWS, FEATURES)));
        ctn_tensor *l = ctn_softmax_cross_entropy(y, ctn_input(ctx, t, CTN_I64, CTN_SHAPE(ROWS)));
        TRY(j, ctn_backward(o, l));
        TRY(j, ctn_optim_step(o));
        TRY(j, ctn_scope_end(ctx));
    }
}

static void train(job *j)
{
    const training *c = j->arg;
    ctn_context *ctx = NULL;
    ctn_module *net = NULL;
    ctn_optim *o = NULL;
    ctn_comm *comm = j->size > 1 ? j->c : NULL;
    const bool has = ctn_dist_timeline_has(j->rank, j->size, c->ranks);
    TRY(j,
        ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1, .spans = has ? c->spans : 0)));
    TRY(j, ctn_linear_new(&net, ctx, FEATURES, 100, NULL));
    TRY(j, ctn_adam_new(&o, ctn_params(net), NULL));
    if (comm)
        TRY(j, ctn_dist_optim(o, comm, CTN_OPT(ctn_dist_opt, .bucket = 4096, .shard = c->shard)));
    if (has && c->spans > 0) TRY(j, ctn_dist_timeline_begin(ctx));
    run_steps(j, ctx, net, o, c->trained);
    if (j->why[0]) return;
    ctn_status st = ctn_dist_timeline_write(ctx, comm, c->path, c->steps, c->ranks);
    CHECK(j, st == c->want, "status %d, not %d: %s", st, c->want, ctn_error_message());
    ctn_optim_free(o);
    ctn_module_free(net);
    ctn_context_free(ctx);
}

/* ---- reading it ------------------------------------------------------------------------------ */

/* The end of a JSON value; NULL if it is not valid. */
static const char *json_end(const char *p)
{
    if (!p) return NULL;
    p += strspn(p, " \n");
    if (*p == '"') {
        for (p++; *p && *p != '"'; p++)
            if ((unsigned char)*p < ' ' || (*p == '\\' && !strchr("\"\\u", *++p))) return NULL;
        return *p ? p + 1 : NULL;
    }
    if (*p == '{' || *p == '[') {
        const char close = *p == '{' ? '}' : ']';
        for (p++; *p && *p != close;) {
            if (close == '}') {
                p = json_end(p);
                if (!p || *p++ != ':') return NULL;
            }
            p = json_end(p);
            if (!p || (*p != ',' && *p != close)) return NULL;
            if (*p == ',' && p++ && (*p == close || !*p)) return NULL;
        }
        return *p ? p + 1 : NULL;
    }
    char *end = NULL;
    strtod(p, &end);
    return end > p ? end : NULL;
}

static char *read_text(const char *path)
{
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    const long n = ftell(f);
    char *text = calloc((size_t)n + 1, 1);
    assert_int_equal(fseek(f, 0, SEEK_SET), 0);
    assert_int_equal(fread(text, 1, (size_t)n, f), n);
    fclose(f);
    return text;
}

typedef struct {
    char name[40], cat[20];
    double ts, dur;
    int pid, tid;
    long long number; /* of the step; or bytes */
} event;

/* Reads the writer's own format, one event per line. */
static int read_events(const char *text, event *e, int most)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, "\n{\"name\":")) && n < most; p++) {
        char what[10] = "";
        event *x = &e[n];
        x->number = -1;
        n +=
            sscanf(
                p,
                "\n{\"name\":\"%39[^\"]\",\"cat\":\"%19[^\"]\",\"ph\":\"X\",\"ts\":%lf,\"dur\":%lf,"
                "\"pid\":%d,\"tid\":%d,\"args\":{\"%9[^\"]\":%lld",
                x->name, x->cat, &x->ts, &x->dur, &x->pid, &x->tid, what, &x->number) >= 6;
    }
    return n;
}

/* The total time of rank r's events of this category in the k-th step. */
static double time_in(const event *e, int n, int r, int k, const char *cat)
{
    double sum = 0;
    const event *step = NULL;
    for (int i = 0; i < n; i++)
        if (e[i].pid == r && strcmp(e[i].cat, "step") == 0 && e[i].number == k) step = &e[i];
    assert_non_null(step);
    for (int i = 0; i < n; i++) {
        if (e[i].pid != r || strcmp(e[i].cat, cat) != 0) continue;
        const double a = fmax(e[i].ts, step->ts);
        const double b = fmin(e[i].ts + e[i].dur, step->ts + step->dur);
        sum += fmax(0, b - a);
    }
    return sum;
}

static int count(const event *e, int n, int r, const char *name)
{
    int k = 0;
    for (int i = 0; i < n; i++) k += e[i].pid == r && strcmp(e[i].name, name) == 0;
    return k;
}

enum { EVENTS = 4000 };

static int load(const char *path, event *e)
{
    char *text = read_text(path);
    const char *end = json_end(text);
    assert_true(end && strcmp(end, "\n") == 0);
    assert_non_null(strstr(text, "\"name\":\"rank 0 ("));
    const int n = read_events(text, e, EVENTS);
    for (int i = 0; i < n; i++) assert_true(e[i].ts >= 0);
    free(text);
    unlink(path);
    return n;
}

static void check_steps(const event *e, int n, int ranks, int steps)
{
    static const char *const parts[] = {"compute", "optimizer", "start", "wait"};
    for (int r = 0; r < ranks; r++) {
        assert_int_equal(count(e, n, r, "step"), steps);
        assert_int_equal(count(e, n, r, "adam"), steps);
        for (int k = 0; k < steps; k++) {
            double sum = 0;
            for (int i = 0; i < 4; i++) sum += time_in(e, n, r, k, parts[i]);
            assert_true(sum > 0 && sum <= time_in(e, n, r, k, "step") + 0.01);
        }
    }
}

static void test_training(void **state)
{
    (void)state;
    static event e[EVENTS];
    training c = {.path = "timeline.json", .spans = 1000, .steps = 4, .trained = 6};
    for (c.shard = 0; c.shard < 2; c.shard++) {
        on_ranks(3, CTN_MODE_PLANNED, train, &c);
        const int n = load(c.path, e);
        check_steps(e, n, 3, 4);
        for (int r = 0; r < 3; r++) {
            int64_t bytes = 0;
            assert_int_equal(count(e, n, r, "wait_allreduce"), 4);
            for (int i = 0; i < n; i++)
                if (e[i].pid == r && e[i].tid >= CTN__LANE_BUCKET && e[i].tid < CTN__LANE_VALUES)
                    bytes += e[i].number;
            assert_true(bytes >= 4 * (FEATURES + 1) * 100 * 4);
            assert_int_equal(count(e, n, r, "REDUCESCATTER") > 0, c.shard);
            assert_int_equal(count(e, n, r, "ALLGATHER") > 0, c.shard);
        }
    }
    on_ranks(1, CTN_MODE_PLANNED, train, &c);
    check_steps(e, load(c.path, e), 1, 4);
}

/* The ring has room for some steps only; then, more steps are requested than there are. */
static void test_ring(void **state)
{
    (void)state;
    static event e[EVENTS];
    training c = {.path = "timeline.json", .spans = 100, .steps = 1000, .trained = 40};
    on_ranks(2, CTN_MODE_PLANNED, train, &c);
    int n = load(c.path, e), steps = count(e, n, 0, "step");
    assert_in_range(steps, 1, 10);
    check_steps(e, n, 2, steps);
    c = (training){.path = "timeline.json", .spans = 1000, .steps = 1000, .trained = 3};
    on_ranks(2, CTN_MODE_PLANNED, train, &c);
    n = load(c.path, e);
    check_steps(e, n, 2, 3);
    c.trained = 0; /* no step at all */
    on_ranks(2, CTN_MODE_PLANNED, train, &c);
    assert_int_equal(load(c.path, e), 0);
}

/* Ranks that are not in the file record nothing but still take part. */
static void test_some_ranks(void **state)
{
    (void)state;
    static event e[EVENTS];
    training c = {.path = "timeline.json", .spans = 1000, .steps = 2, .trained = 3, .ranks = 2};
    on_ranks(4, CTN_MODE_PLANNED, train, &c);
    const int n = load(c.path, e);
    for (int r = 0; r < 4; r++) assert_int_equal(count(e, n, r, "step"), r % 2 == 0 ? 2 : 0);
    c = (training){.path = "no/such/folder/t.json",
                   .spans = 100,
                   .steps = 2,
                   .trained = 2,
                   .ranks = 1,
                   .want = CTN_EIO};
    on_ranks(3, CTN_MODE_PLANNED, train, &c);
    c.spans = 0; /* an error of rank 0 only */
    c.want = CTN_ESTATE;
    on_ranks(3, CTN_MODE_PLANNED, train, &c);
}

/* ---- cost ------------------------------------------------------------------------------------ */

static void *write_nothing(void *p)
{
    ctn_comm *c = p;
    ctn_context *ctx = NULL;
    const bool has = ctn_dist_timeline_has(ctn_comm_rank(c), ctn_comm_size(c), 8);
    ctn_status st =
        ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1, .spans = has ? 100 : 0));
    if (st == CTN_OK) st = ctn_dist_timeline_write(ctx, c, "timeline.json", 1, 8);
    ctn_context_free(ctx);
    return st == CTN_OK ? NULL : p;
}

/* Eight ranks send messages to rank 0; the others take part in a broadcast only, however many
 * there are. */
static void test_cost(void **state)
{
    (void)state;
    static ctn_comm *c[COUNTED_MOST];
    long first = 0;
    for (int size = 16; size <= COUNTED_MOST; size *= 4) {
        ctn__net *net[COUNTED_MOST];
        pthread_t thread[COUNTED_MOST];
        int node[COUNTED_MOST], levels = 0;
        while (1 << levels < size) levels++;
        for (int r = 0; r < size; r++) node[r] = r / 2 * 2;
        OK(ctn__net_loopback_nodes(net, size, node));
        counted_use(net, size);
        for (int r = 0; r < size; r++) OK(ctn__comm_new(&c[r], net[r], NULL));
        for (int r = 0; r < size; r++)
            assert_int_equal(pthread_create(&thread[r], NULL, write_nothing, c[r]), 0);
        for (int r = 0; r < size; r++) {
            void *wrong = NULL;
            pthread_join(thread[r], &wrong);
            assert_null(wrong);
        }
        if (size == 16) first = counted.received[0];
        assert_true(counted.received[0] <= first && counted.sent[0] <= first + levels);
        for (int r = 1; r < size; r++) {
            if (ctn_dist_timeline_has(r, size, 8)) continue;
            assert_int_equal(counted.received[r], 1);
            assert_true(counted.sent[r] <= levels);
        }
        for (int r = 0; r < size; r++) ctn_comm_free(c[r]);
    }
    unlink("timeline.json");
}

static void test_errors(void **state)
{
    (void)state;
    training c = {
        .path = "no/such/folder/t.json", .spans = 100, .steps = 2, .trained = 2, .want = CTN_EIO};
    on_ranks(2, CTN_MODE_PLANNED, train, &c);
    c = (training){.path = "timeline.json", .steps = 2, .trained = 2, .want = CTN_ESTATE};
    on_ranks(2, CTN_MODE_PLANNED, train, &c);
    c = (training){.path = "timeline.json", .spans = 100, .want = CTN_EARG};
    on_ranks(2, CTN_MODE_PLANNED, train, &c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sample),     cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_training),   cmocka_unit_test(test_ring),
        cmocka_unit_test(test_some_ranks), cmocka_unit_test(test_cost),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
