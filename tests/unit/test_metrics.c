/* SPDX-License-Identifier: Apache-2.0
 *
 * Metrics of all samples together: F1, precision, recall, intersection over union, the area under
 * the ROC curve, R2 and the relative L2 error of an evaluation against the formulas of
 * scikit-learn, written out below for all samples at once. Batches have different sizes, and the
 * values are the same on 1, 2 and 3 ranks: to the bit where they are counts. Ratios are sums over
 * sums, in training too.
 * Labels: threads
 */
#include "ranks.h"

#include <catena/datasets.h>
#include <catena/train.h>

enum { N = 61, BATCH = 4, MOST_COLUMNS = 8, VALUES = 24 };

/* One evaluation: y (N,shape...) and targets, whose metrics are evaluated. */
typedef struct {
    int n; /* samples */
    ctn_field field[2];
    float y[N][MOST_COLUMNS];
    int64_t class[N];
    float target[N][MOST_COLUMNS];
    const char *metric[VALUES]; /* ended by NULL */
    ctn_status want;            /* 0: success */
    const char *message;
    double value[MOST][VALUES]; /* results by rank */
} subject;

static double number(int i, int k)
{
    return (double)((i * 37 + k * 101) * 7919 % 257 - 128) / 128;
}

static void fill(subject *s, int columns, int classes)
{
    for (int i = 0; i < N; i++) {
        s->class[i] = i % 11 == 5 ? -100 : (i * 7 + i / 3) % classes;
        for (int k = 0; k < MOST_COLUMNS; k++) {
            s->y[i][k] = (float)number(i, k);
            s->target[i][k] = (float)(20 + 3 * k + number(i, k) + 0.4 * number(k, i));
        }
        /* Better than chance, and with ties. */
        if (columns > 1 && s->class[i] >= 0) s->y[i][s->class[i]] += 0.7f;
        if (columns == 1)
            s->y[i][0] = (float)(rint(8 * number(i, 0)) / 8 + (s->class[i] == 1) * 0.5);
    }
}

/* ---- evaluation ------------------------------------------------------------------------------ */

static ctn_tensor *loss_of(void *self, ctn_step *step)
{
    const subject *s = self;
    ctn_tensor *y = ctn_step_input(step, 0), *t = ctn_step_input(step, 1);
    for (int k = 0; s->metric[k]; k++) ctn_report_metric(step, s->metric[k], NULL, y, t);
    return ctn_mean(y, CTN_ALL_AXES, 0);
}

typedef struct {
    subject *s;
    int rank, seen;
} listener;

static ctn_status take(void *user, const char *name, double value)
{
    listener *l = user;
    for (int k = 0; l->s->metric[k]; k++)
        if (strcmp(name, l->s->metric[k]) == 0) {
            l->s->value[l->rank][k] = value;
            l->seen++;
        }
    return CTN_OK;
}

/* The samples of all ranks, packed as the fields say. */
static ctn_dataset *dataset_of(const subject *s, void **memory)
{
    ctn_dataset *ds = NULL;
    int64_t columns = 1;
    for (int i = 0; i < s->field[0].ndim; i++) columns *= s->field[0].shape[i];
    float *y = malloc(sizeof s->y + sizeof s->target), *t = y + N * MOST_COLUMNS;
    for (int i = 0; i < s->n; i++)
        for (int64_t k = 0; k < columns; k++) {
            y[i * columns + k] = s->y[i][k];
            t[i * columns + k] = s->target[i][k];
        }
    *memory = y;
    const void *data[2] = {y, s->field[1].dtype == CTN_I64 ? (const void *)s->class : t};
    return ctn_arrays_open(&ds, s->n, 2, s->field, data) == CTN_OK ? ds : NULL;
}

static void evaluate(job *j)
{
    subject *s = j->arg;
    ctn_sampler *order = NULL;
    ctn_loader *loader = NULL;
    void *memory = NULL;
    listener l = {s, j->rank, 0};
    ctn_dataset *ds = dataset_of(s, &memory);
    CHECK(j, ds != NULL, "no dataset: %s", ctn_error_message());
    TRY(j, ctn_sampler_sequential(&order, s->n));
    TRY(j, ctn_sampler_shard(order, j->rank, j->size));
    TRY(j, ctn_loader_new(&loader, ds, order, CTN_OPT(ctn_loader_opt, .batch = BATCH)));
    ctn_sampler_free(order);
    const ctn_status st = ctn_dist_evaluate(j->c, j->ctx, loader, loss_of, s, take, &l);
    CHECK(j, st == s->want, "status %d: %s", st, ctn_error_message());
    CHECK(j, !s->message || strstr(ctn_error_message(), s->message), "%s", ctn_error_message());
    ctn_error_clear();
    int n = 0;
    while (s->metric[n]) n++;
    CHECK(j, st < 0 || l.seen == n, "got %d metrics, expected %d", l.seen, n);
    ctn_loader_free(loader);
    ctn_dataset_free(ds);
    free(memory);
}

/* Compares with `want` on 1 to 3 ranks, and the ranks with each other. */
static void check(subject *s, const double *want, double tolerance)
{
    double alone[VALUES];
    for (int size = 1; size <= 3; size++) {
        on_ranks(size, CTN_MODE_PLANNED, evaluate, s);
        for (int r = 0; r < size; r++)
            for (int k = 0; s->metric[k]; k++) {
                const double got = s->value[r][k];
                if (isnan(want[k]) ? !isnan(got) : !(fabs(got - want[k]) <= 1e-12))
                    fail_msg("%s on rank %d of %d: %.17g, expected %.17g", s->metric[k], r, size,
                             got, want[k]);
                if (size == 1) alone[k] = got;
                if (!isnan(got) && !(fabs(got - alone[k]) <= tolerance))
                    fail_msg("%s on rank %d of %d: %.17g, on one rank %.17g", s->metric[k], r, size,
                             got, alone[k]);
            }
    }
}

/* ---- classes --------------------------------------------------------------------------------- */

static int largest(const float *y, int columns)
{
    int at = 0;
    if (columns == 1) return y[0] >= 0;
    for (int k = 1; k < columns; k++)
        if (y[k] > y[at]) at = k;
    return at;
}

static double over(double a, double b)
{
    return b > 0 ? a / b : 0;
}

/* precision, recall, F1 and intersection over union from counts of true positives and so on */
static void scores(double tp, double fp, double fn, double out[4])
{
    const double p = over(tp, tp + fp), r = over(tp, tp + fn);
    out[0] = p;
    out[1] = r;
    out[2] = over(2 * p * r, p + r);
    out[3] = over(tp, tp + fp + fn);
}

/* binary (class 1), macro and micro of each */
static void reference(const subject *s, int columns, double out[3][4])
{
    const int classes = columns > 1 ? columns : 2;
    double all[3] = {0}, occurring = 0;
    memset(out, 0, 12 * sizeof(double));
    for (int c = 0; c < classes; c++) {
        double tp = 0, fp = 0, fn = 0, one[4];
        for (int i = 0; i < s->n; i++) {
            if (s->class[i] == -100) continue;
            const bool is = s->class[i] == c, said = largest(s->y[i], columns) == c;
            tp += is && said;
            fp += !is && said;
            fn += is && !said;
        }
        scores(tp, fp, fn, one);
        all[0] += tp, all[1] += fp, all[2] += fn;
        if (c == 1) memcpy(out[0], one, sizeof one);
        if (tp + fp + fn > 0) occurring++;
        for (int k = 0; k < 4; k++) out[1][k] += one[k];
    }
    for (int k = 0; k < 4; k++) out[1][k] /= occurring;
    scores(all[0], all[1], all[2], out[2]);
}

/* Pairs of a positive and a negative row, one by one. */
static double auc(const subject *s, int columns)
{
    double wins = 0, pairs = 0;
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->n; k++) {
            if (s->class[i] != 1 || s->class[k] != 0) continue;
            double a = (double)s->y[i][0], b = (double)s->y[k][0];
            if (columns == 2) a = (double)s->y[i][1] - a, b = (double)s->y[k][1] - b;
            wins += a > b ? 1 : a == b ? 0.5 : 0;
            pairs++;
        }
    return pairs > 0 ? wins / pairs : NAN;
}

static void many_classes(void **state)
{
    (void)state;
    static const int sizes[] = {N, 2}; /* with 2 samples, the third rank has none */
    for (int k = 0; k < 2; k++) {
        subject s = {.n = sizes[k],
                     .field = {{.dtype = CTN_F32, .ndim = 1, .shape = {5}}, {.dtype = CTN_I64}},
                     .metric = {"precision_macro", "recall_macro", "f1_macro", "miou",
                                "precision_micro", "recall_micro", "f1_micro"}};
        double want[3][4];
        fill(&s, 5, 4); /* class 4 may be predicted but never occurs */
        reference(&s, 5, want);
        check(&s, want[1], 0);
    }
}

static void two_classes(void **state)
{
    (void)state;
    static const struct {
        int ndim, columns;
    } forms[] = {{1, 2}, {1, 1}, {0, 1}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        subject s = {.n = N,
                     .field = {{.dtype = CTN_F32, .ndim = forms[i].ndim}, {.dtype = CTN_I64}},
                     .metric = {"precision", "recall", "f1", "auc", "f1_macro"}};
        double all[3][4], want[5];
        if (forms[i].ndim) s.field[0].shape[0] = forms[i].columns;
        fill(&s, forms[i].columns, 2);
        reference(&s, forms[i].columns, all);
        memcpy(want, all[0], 3 * sizeof *want);
        want[3] = auc(&s, forms[i].columns);
        want[4] = all[1][2];
        assert_true(want[3] > 0.5 && want[3] < 1);
        check(&s, want, 0);
    }
}

static void one_class_has_no_auc(void **state)
{
    (void)state;
    subject s = {.n = 9,
                 .field = {{.dtype = CTN_F32, .ndim = 1, .shape = {2}}, {.dtype = CTN_I64}},
                 .metric = {"auc", "f1"}};
    fill(&s, 2, 2);
    for (int i = 0; i < 9; i++) s.class[i] = 0;
    double all[3][4];
    reference(&s, 2, all);
    check(&s, (const double[]){NAN, all[0][2]}, 0);
}

/* ---- regression ------------------------------------------------------------------------------ */

/* Column c has the elements c * width to (c + 1) * width of each sample. */
static double r2(const subject *s, int columns, int width)
{
    double total = 0;
    for (int c = 0; c < columns; c++) {
        double mean = 0, error = 0, spread = 0;
        const double n = s->n * width;
        for (int i = 0; i < s->n; i++)
            for (int k = c * width; k < (c + 1) * width; k++) mean += (double)s->target[i][k] / n;
        for (int i = 0; i < s->n; i++)
            for (int k = c * width; k < (c + 1) * width; k++) {
                error += pow((double)s->target[i][k] - (double)s->y[i][k], 2);
                spread += pow((double)s->target[i][k] - mean, 2);
            }
        total += spread > 0 ? 1 - error / spread : error <= 0;
    }
    return total / columns;
}

static double relative(const subject *s, int elements)
{
    double error = 0, norm = 0;
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < elements; k++) {
            error += pow((double)s->target[i][k] - (double)s->y[i][k], 2);
            norm += pow((double)s->target[i][k], 2);
        }
    return sqrt(error / norm);
}

/* The mean of |y - t|^power, and its root. */
static double mean_error(const subject *s, int elements, double power)
{
    double sum = 0;
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < elements; k++)
            sum += pow(fabs((double)s->target[i][k] - (double)s->y[i][k]), power);
    return pow(sum / (s->n * elements), 1 / power);
}

static void regression(void **state)
{
    (void)state;
    static const struct {
        int ndim, columns, width;
    } forms[] = {{0, 1, 1}, {1, 3, 1}, {2, 2, 4}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        subject s = {.n = N,
                     .field = {{.dtype = CTN_F32, .ndim = forms[i].ndim}, {.dtype = CTN_F32}},
                     .metric = {"r2", "relative_l2", "mae", "rmse"}};
        const int elements = forms[i].columns * forms[i].width;
        s.field[0].shape[0] = forms[i].columns;
        s.field[0].shape[1] = forms[i].width;
        s.field[1] = s.field[0];
        fill(&s, 2, 2);
        for (int n = 0; n < N; n++)
            for (int k = 0; k < elements; k++)
                s.y[n][k] = s.target[n][k] + 0.3f * (float)number(n, k + 5);
        if (elements == 3)
            for (int n = 0; n < N; n++) s.y[n][1] = s.target[n][1] = 0.1f; /* flat and right */
        check(&s,
              (const double[]){r2(&s, forms[i].columns, forms[i].width), relative(&s, elements),
                               mean_error(&s, elements, 1), mean_error(&s, elements, 2)},
              1e-12);
    }
}

/* ---- what cannot be -------------------------------------------------------------------------- */

static void wrong(const char *metric, int columns, ctn_dtype target, ctn_status want,
                  const char *message)
{
    subject s = {.n = 8,
                 .field = {{.dtype = CTN_F32, .ndim = 1, .shape = {columns}}, {.dtype = target}},
                 .metric = {metric},
                 .want = want,
                 .message = message};
    fill(&s, columns, 2);
    if (metric[0] == 'a') s.class[3] = 2;
    on_ranks(1, CTN_MODE_PLANNED, evaluate, &s);
}

static void errors(void **state)
{
    (void)state;
    wrong("f2", 3, CTN_I64, CTN_EARG, "no metric 'f2'; known metrics: f1 f1_macro");
    wrong("f1", 3, CTN_I64, CTN_ESHAPE,
          "f1: got 3 classes, expected 2; for more there are f1_macro");
    wrong("auc", 3, CTN_I64, CTN_ESHAPE, "auc: got 3 classes, expected 2");
    wrong("auc", 2, CTN_I64, CTN_EARG, "auc: a row has class 2, expected 0 or 1");
    wrong("f1", 2, CTN_F32, CTN_EDTYPE, "t is f32");
    wrong("r2", 2, CTN_F32, CTN_ESHAPE, "r2: y is (4,2), t is (4)");
    wrong("r2", 2, CTN_I64, CTN_EDTYPE, "r2: y is f32, t is i64");
}

static void every_name_is_a_metric(void **state)
{
    (void)state;
    int n = 0;
    for (const char *const *name = ctn_metric_names(); *name; name++) n++;
    assert_int_equal(n, 15);
}

/* ---- training -------------------------------------------------------------------------------- */

typedef struct {
    ctn_module *net;
    int64_t seen; /* batches */
} learner;

/* The ratio counts rows of class 1 and rows of classes, which differ between batches. */
static ctn_tensor *learn(void *self, ctn_step *step)
{
    learner *l = self;
    ctn_tensor *y = ctn_call(l->net, ctn_step_input(step, 0)), *t = ctn_step_input(step, 1);
    ctn_context *ctx = ctn_step_context(step);
    ctn_tensor *one = ctn_full(ctx, 1, CTN_I64, CTN_SCALAR_SHAPE);
    ctn_tensor *none = ctn_full(ctx, -100, CTN_I64, CTN_SCALAR_SHAPE);
    ctn_tensor *ones = ctn_cast(ctn_equal(t, one), CTN_F32);
    ctn_tensor *known = ctn_cast(ctn_not_equal(t, none), CTN_F32);
    ctn_report_ratio(step, "ones", ctn_sum(ones, CTN_ALL_AXES, 0), ctn_sum(known, CTN_ALL_AXES, 0));
    ctn_report_metric(step, "score", "f1", y, t);
    l->seen++;
    return ctn_softmax_cross_entropy(y, t);
}

static void trainer_reports(void **state)
{
    (void)state;
    ctn_context *ctx = NULL;
    ctn_dataset *ds = NULL;
    ctn_sampler *order = NULL;
    ctn_loader *loader[2] = {NULL};
    ctn_optim *o = NULL;
    ctn_trainer *tr = NULL;
    learner l = {0};
    void *memory = NULL;
    subject s = {.n = N,
                 .field = {{.dtype = CTN_F32, .ndim = 1, .shape = {2}}, {.dtype = CTN_I64}}};
    double ones = 0, known = 0, value = 0;
    fill(&s, 2, 2);
    for (int i = 0; i < N; i++) {
        ones += s.class[i] == 1;
        known += s.class[i] != -100;
    }
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1, .seed = 1)));
    ds = dataset_of(&s, &memory);
    assert_non_null(ds);
    for (int i = 0; i < 2; i++) {
        OK(ctn_sampler_sequential(&order, N));
        OK(ctn_loader_new(&loader[i], ds, order, CTN_OPT(ctn_loader_opt, .batch = BATCH)));
        ctn_sampler_free(order);
    }
    OK(ctn_linear_new(&l.net, ctx, 2, 2, NULL));
    OK(ctn_sgd_new(&o, ctn_params(l.net), NULL));
    OK(ctn_trainer_new(&tr, o, loader[0], learn, &l,
                       CTN_OPT(ctn_trainer_opt, .net = l.net, .epochs = 1)));
    OK(ctn_extend_evaluator(tr, NULL, loader[1], learn, &l));
    OK(ctn_trainer_run(tr));
    assert_int_equal(ctn_trainer_value(tr, "train/ones", &value), 1);
    assert_true(fabs(value - ones / known) < 1e-12);
    assert_int_equal(ctn_trainer_value(tr, "val/ones", &value), 1);
    assert_true(fabs(value - ones / known) < 1e-12);
    assert_int_equal(ctn_trainer_value(tr, "train/score", &value), 0);
    assert_int_equal(ctn_trainer_value(tr, "val/score", &value), 1);
    assert_true(value >= 0 && value <= 1);
    assert_int_equal(l.seen, 2 * 16);
    ctn_trainer_free(tr);
    ctn_optim_free(o);
    ctn_module_free(l.net);
    for (int i = 0; i < 2; i++) ctn_loader_free(loader[i]);
    ctn_dataset_free(ds);
    ctn_context_free(ctx);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_classes),
        cmocka_unit_test(two_classes),
        cmocka_unit_test(one_class_has_no_auc),
        cmocka_unit_test(regression),
        cmocka_unit_test(errors),
        cmocka_unit_test(every_name_is_a_metric),
        cmocka_unit_test(trainer_reports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
