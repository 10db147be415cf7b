/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields that are divided over ranks, with threads as ranks: halos and their gradients against the
 * undivided field, and networks on a divided field against the same networks on one rank.
 * Labels: threads
 */
#include <catena/zoo.h>

#include "ranks.h"

/* ---- halos ----------------------------------------------------------------------------------- */

/* Unused dimensions have length 1 and no halo. */
typedef struct {
    int ndim;
    int64_t ranks[3], length[3], before[3], after[3];
    unsigned periodic;
    ctn_dtype type;
} halo_case;

enum { BATCH = 2, CHANNELS = 3, ELEMENTS_MOST = 8192 };

/* The undivided field, or the weights of the elements that rank r sees: small integers. */
static double number(int what, int64_t i)
{
    return (double)((i * 7 + what * 5) % 23 - 11);
}

/* A block in the field, with a halo or without. Position i of the block is begin + i. */
typedef struct {
    int64_t begin[3], n[3];
} block;

static int64_t count_of(const block *b)
{
    return BATCH * CHANNELS * b->n[0] * b->n[1] * b->n[2];
}

static block block_of(const halo_case *h, const int *at, bool halo)
{
    block b;
    for (int i = 0; i < 3; i++) {
        const int64_t q = h->length[i] / h->ranks[i], more = h->length[i] % h->ranks[i];
        b.begin[i] = at[i] * q + (at[i] < more ? at[i] : more);
        b.n[i] = q + (at[i] < more);
        if (!halo) continue;
        b.begin[i] -= h->before[i];
        b.n[i] += h->before[i] + h->after[i];
    }
    return b;
}

static void place_of(const halo_case *h, int rank, int *at)
{
    for (int i = 2; i >= 0; i--) {
        at[i] = (int)(rank % h->ranks[i]);
        rank /= (int)h->ranks[i];
    }
}

/* Where element i of a block (N,C,...) is in the field; -1: outside. */
static int64_t field_index(const halo_case *h, const block *b, int64_t i)
{
    int64_t index = 0, scale = 1;
    for (int k = 2; k >= 0; k--) {
        int64_t p = b->begin[k] + i % b->n[k];
        i /= b->n[k];
        if (h->periodic >> k & 1) p = (p + h->length[k]) % h->length[k];
        if (p < 0 || p >= h->length[k]) return -1;
        index += p * scale;
        scale *= h->length[k];
    }
    return index + i * scale;
}

/* The gradient of the sum over ranks of sum(w y) by each element of the field. */
static void want_gradient(const halo_case *h, int size, double *g)
{
    memset(g, 0, ELEMENTS_MOST * sizeof *g);
    for (int r = 0; r < size; r++) {
        int at[3];
        place_of(h, r, at);
        const block b = block_of(h, at, true);
        for (int64_t i = 0; i < count_of(&b); i++) {
            const int64_t k = field_index(h, &b, i);
            if (k >= 0) g[k] += number(1 + r, i);
        }
    }
}

static void put(void *to, ctn_dtype type, int64_t i, double v)
{
    if (type == CTN_F32) ((float *)to)[i] = (float)v;
    else ((double *)to)[i] = v;
}

static double get(const void *from, ctn_dtype type, int64_t i)
{
    return type == CTN_F32 ? (double)((const float *)from)[i] : ((const double *)from)[i];
}

typedef struct {
    double x[ELEMENTS_MOST], y[ELEMENTS_MOST], w[ELEMENTS_MOST], g[ELEMENTS_MOST];
    double want[ELEMENTS_MOST];
} arrays;

static void run_halo(job *j)
{
    const halo_case *h = j->arg;
    ctn_dist_grid *grid = NULL;
    int at[3];
    place_of(h, j->rank, at);
    const block in = block_of(h, at, false), out = block_of(h, at, true);
    const int64_t nx = count_of(&in), ny = count_of(&out);
    const size_t bytes = ctn_dtype_size(h->type);
    CHECK(j, ny <= ELEMENTS_MOST, "too many elements");
    arrays *a = calloc(1, sizeof *a);
    for (int64_t i = 0; i < nx; i++) put(a->x, h->type, i, number(0, field_index(h, &in, i)));
    for (int64_t i = 0; i < ny; i++) put(a->w, h->type, i, number(1 + j->rank, i));
    want_gradient(h, j->size, a->want);
    TRY(j, ctn_dist_grid_new(&grid, j->c, h->ndim, h->ranks, h->periodic));
    for (int i = 0; i < h->ndim; i++)
        CHECK(j,
              ctn_dist_grid_begin(grid, i, h->length[i]) == in.begin[i] &&
                  ctn_dist_grid_length(grid, i, h->length[i]) == in.n[i],
              "block in dimension %d", i);
    ctn_dist_halo_opt opt = {.struct_size = sizeof opt};
    memcpy(opt.before, h->before, sizeof opt.before);
    memcpy(opt.after, h->after, sizeof opt.after);
    const int64_t dx[5] = {BATCH, CHANNELS, in.n[0], in.n[1], in.n[2]};
    const int64_t dy[5] = {BATCH, CHANNELS, out.n[0], out.n[1], out.n[2]};
    for (int step = 0; step < 2; step++) {
        ctn_tensor *gx = NULL;
        TRY(j, ctn_scope_begin(j->ctx));
        ctn_tensor *x = ctn_with_grad(ctn_input(j->ctx, a->x, h->type, 2 + h->ndim, dx));
        ctn_tensor *y = ctn_dist_halo(grid, x, &opt);
        ctn_tensor *w = ctn_input(j->ctx, a->w, h->type, 2 + h->ndim, dy);
        TRY(j, ctn_grad(ctn_sum(ctn_mul(y, w), CTN_ALL_AXES, 0), 1, &x, &gx));
        TRY(j, ctn_read(y, a->y, (size_t)ny * bytes));
        TRY(j, ctn_read(gx, a->g, (size_t)nx * bytes));
        TRY(j, ctn_scope_end(j->ctx));
        for (int64_t i = 0; i < ny; i++) {
            const int64_t k = field_index(h, &out, i);
            const double want = k < 0 ? 0 : number(0, k);
            CHECK(j, get(a->y, h->type, i) == want, "y[%d] is %g, %g expected", (int)i,
                  get(a->y, h->type, i), want);
        }
        for (int64_t i = 0; i < nx; i++) {
            const double want = a->want[field_index(h, &in, i)];
            CHECK(j, get(a->g, h->type, i) == want, "gx[%d] is %g, %g expected", (int)i,
                  get(a->g, h->type, i), want);
        }
    }
    free(a);
    ctn_dist_grid_free(grid);
}

static void test_halo(void **state)
{
    (void)state;
    static const halo_case cases[] = {
        {1, {1, 1, 1}, {6, 1, 1}, {1}, {2}, 0, CTN_F32},
        {1, {1, 1, 1}, {6, 1, 1}, {1}, {2}, 1, CTN_F64}, /* its own neighbour */
        {1, {2, 1, 1}, {7, 1, 1}, {2}, {1}, 0, CTN_F64},
        {1, {2, 1, 1}, {8, 1, 1}, {4}, {4}, 1, CTN_F32}, /* as long as the block */
        {1, {7, 1, 1}, {23, 1, 1}, {0}, {3}, 1, CTN_F32},
        {2, {2, 1, 1}, {8, 5, 1}, {1, 1}, {1, 1}, 0, CTN_F32},
        {2, {1, 2, 1}, {8, 6, 1}, {1, 2}, {0, 1}, 2, CTN_F32},
        {2, {1, 3, 1}, {4, 7, 1}, {2, 1}, {1, 2}, 3, CTN_F64},
        {2, {2, 2, 1}, {6, 9, 1}, {1, 2}, {2, 1}, 0, CTN_F32},
        {2, {2, 2, 1}, {6, 8, 1}, {1, 1}, {1, 1}, 3, CTN_F32},
        {2, {2, 2, 1}, {6, 8, 1}, {0, 0}, {1, 1}, 1, CTN_F64},
        {3, {1, 2, 2}, {3, 5, 4}, {1, 1, 1}, {1, 1, 1}, 0, CTN_F32},
        {3, {2, 1, 2}, {4, 3, 4}, {1, 2, 1}, {1, 0, 1}, 5, CTN_F32},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        halo_case h = cases[k];
        const int size = (int)(h.ranks[0] * h.ranks[1] * h.ranks[2]);
        for (int m = 0; m < 2; m++) on_ranks(size, modes[m], run_halo, &h);
    }
}

/* The gradient of the gradient: f = sum over ranks of sum(y^3), in f64, with g = df/dx; then the
 * gradient of sum over ranks of sum(g^2)/2 is H g, which finite differences of g along g give. */
static void run_second(job *j)
{
    enum { LENGTH = 4 };
    const double step = 1e-6;
    double x[LENGTH], moved[LENGTH], g[3][LENGTH], gg[LENGTH], unused[LENGTH];
    ctn_dist_grid *grid = NULL;
    TRY(j, ctn_dist_grid_new(&grid, j->c, 1, (const int64_t[]){j->size}, 1));
    for (int i = 0; i < LENGTH; i++) x[i] = 0.1 * number(3, j->rank * LENGTH + i);
    for (int k = 0; k < 3; k++) { /* at x, then a step back and forth */
        ctn_tensor *tg = NULL, *tgg = NULL;
        for (int i = 0; i < LENGTH; i++)
            moved[i] = x[i] + (k == 0 ? 0 : k == 1 ? -step : step) * (k == 0 ? 0 : g[0][i]);
        TRY(j, ctn_scope_begin(j->ctx));
        ctn_tensor *t = ctn_with_grad(ctn_input(j->ctx, moved, CTN_F64, CTN_SHAPE(1, 1, LENGTH)));
        ctn_tensor *y =
            ctn_dist_halo(grid, t, CTN_OPT(ctn_dist_halo_opt, .before = {2}, .after = {1}));
        TRY(j, ctn_grad(ctn_mul(ctn_square(y), y), 1, &t, &tg));
        TRY(j, ctn_grad(ctn_scale(ctn_square(tg), 0.5), 1, &t, &tgg));
        TRY(j, ctn_read(tg, g[k], sizeof g[k]));
        TRY(j, ctn_read(tgg, k == 0 ? gg : unused, sizeof gg));
        TRY(j, ctn_scope_end(j->ctx));
    }
    for (int i = 0; i < LENGTH; i++) {
        const double want = (g[2][i] - g[1][i]) / (2 * step);
        CHECK(j, fabs(gg[i] - want) < 1e-5 * fmax(1, fabs(want)), "%g, differences %g", gg[i],
              want);
    }
    ctn_dist_grid_free(grid);
}

static void run_refusals(job *j)
{
    float x[2 * 8] = {0};
    ctn_dist_grid *grid = NULL;
    CHECK(j, ctn_dist_grid_new(&grid, j->c, 2, (const int64_t[]){2, 2}, 0) == CTN_EARG && !grid,
          "four places");
    ctn_error_clear();
    CHECK(j, ctn_dist_grid_new(&grid, j->c, 1, (const int64_t[]){2}, 2) == CTN_EARG, "dimension");
    ctn_error_clear();
    const struct {
        int ndim;
        const int64_t *ranks;
        const char *message;
    } bad[] = {
        {0, (const int64_t[]){2}, "got 0 dimensions"},
        {CTN_MAX_SPATIAL + 1, (const int64_t[]){2, 1, 1, 1, 1, 1, 1, 1}, "dimensions, expected"},
        {1, NULL, "got 1 dimensions"},
        {2, (const int64_t[]){-1, -2}, "got -1 ranks in dimension 0"},
        {2, (const int64_t[]){2, 0}, "got 0 ranks in dimension 1"},
        {2, (const int64_t[]){1, 3}, "got 3 ranks in dimension 1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(j, ctn_dist_grid_new(&grid, j->c, bad[i].ndim, bad[i].ranks, 0) == CTN_EARG && !grid,
              "accepts grid %zu", i);
        CHECK(j, strstr(ctn_error_message(), bad[i].message), "%s", ctn_error_message());
        ctn_error_clear();
    }
    TRY(j, ctn_dist_grid_new(&grid, j->c, 1, (const int64_t[]){2}, 0));
    TRY(j, ctn_scope_begin(j->ctx));
    ctn_tensor *t = ctn_input(j->ctx, x, CTN_F32, CTN_SHAPE(1, 2, 8));
    const ctn_dist_halo_opt *wide = CTN_OPT(ctn_dist_halo_opt, .before = {9});
    CHECK(j, !ctn_dist_halo(grid, t, wide) && strstr(ctn_error_message(), "only 8"), "%s",
          ctn_error_message());
    ctn_error_clear();
    t = ctn_input(j->ctx, x, CTN_F32, CTN_SHAPE(1, 2, 2, 4));
    CHECK(j, !ctn_dist_halo(grid, t, NULL) && ctn_error_status() == CTN_ESHAPE, "dimensions");
    ctn_error_clear();
    TRY(j, ctn_scope_end(j->ctx));
    ctn_dist_grid_free(grid);
}

static void test_halo_more(void **state)
{
    (void)state;
    for (int size = 1; size <= 3; size++) on_ranks(size, CTN_MODE_PLANNED, run_second, NULL);
    on_ranks(2, CTN_MODE_PLANNED, run_refusals, NULL);
}

/* ---- networks -------------------------------------------------------------------------------- */

typedef struct {
    int64_t ranks[3];
    int spatial;
    int strided; /* 1: convolutions with other strides and dilations; 0: U-Net */
    unsigned periodic;
} net_case;

enum { SIDE = 16, FIELD_MOST = 2 * 2 * SIDE * SIDE * SIDE, STEPS = 3 };

static ctn_status make_conv(ctn_module **m, ctn_context *ctx, int64_t in, int64_t out, int64_t k,
                            int64_t stride, int64_t pad, int64_t pad_end, int64_t dilation)
{
    const int64_t kernel[2] = {k, k};
    return ctn_conv_new(m, ctx, in, out, 2, kernel,
                        CTN_OPT(ctn_conv_module_opt, .stride = {stride}, .pad = {pad},
                                .pad_end = {pad_end}, .dilation = {dilation}));
}

/* Convolutions with all kinds of halos, and one without. */
static ctn_status make_strided(ctn_module **m, ctn_context *ctx)
{
    ctn_module *part[6] = {0};
    CTN_TRY(make_conv(&part[0], ctx, 2, 3, 5, 1, 2, 2, 1));
    CTN_TRY(make_conv(&part[1], ctx, 3, 4, 3, 2, 1, 1, 1));
    CTN_TRY(make_conv(&part[2], ctx, 4, 4, 3, 1, 2, 2, 2));
    CTN_TRY(make_conv(&part[3], ctx, 4, 4, 4, 2, 1, 1, 1));
    CTN_TRY(make_conv(&part[4], ctx, 4, 3, 2, 1, CTN_PAD_NONE, 1, 1));
    CTN_TRY(make_conv(&part[5], ctx, 3, 1, 1, 1, CTN_PAD_NONE, CTN_PAD_NONE, 1));
    return ctn_sequential_new(m, ctx, 6, part);
}

static ctn_status make_net(ctn_module **m, ctn_context *ctx, const net_case *n)
{
    return n->strided ? make_strided(m, ctx)
                      : ctn_zoo_unet(m, ctx,
                                     CTN_OPT(ctn_unet_opt, .in_channels = 2, .depth = 2, .width = 4,
                                             .spatial = n->spatial));
}

/* A network on this rank's block, and the same on the whole field. */
typedef struct {
    ctn_module *m;
    ctn_optim *o;
    float *x, *y;
    int64_t side[3], begin[3], shrink; /* shrink: the result is this much shorter */
} side;

/* Element i of the block (2,channels,...) in the field. */
static int64_t in_field(const side *s, int spatial, int64_t shrink, int64_t i)
{
    int64_t index = 0, scale = 1;
    for (int k = spatial - 1; k >= 0; k--) {
        const int64_t n = s->side[k] / shrink;
        index += (s->begin[k] / shrink + i % n) * scale;
        i /= n;
        scale *= SIDE / shrink;
    }
    return index + i * scale;
}

static int64_t elements(const side *s, int spatial, int64_t shrink)
{
    int64_t n = 1;
    for (int k = 0; k < spatial; k++) n *= s->side[k] / shrink;
    return n;
}

/* One step with a loss whose mean over ranks is that of the whole field. */
static ctn_status train(side *s, ctn_context *ctx, const net_case *n)
{
    int64_t d[5] = {2, 2, s->side[0], s->side[1], s->side[2]};
    const int64_t ny = 2 * elements(s, n->spatial, s->shrink);
    CTN_TRY(ctn_scope_begin(ctx));
    ctn_tensor *x = ctn_input(ctx, s->x, CTN_F32, 2 + n->spatial, d);
    ctn_tensor *y = ctn_keep(ctn_call(s->m, x));
    CTN_TRY(ctn_backward(s->o, ctn_mean(ctn_square(ctn_shift(y, -0.3)), CTN_ALL_AXES, 0)));
    CTN_TRY(ctn_optim_step(s->o));
    CTN_TRY(ctn_read(y, s->y, (size_t)ny * sizeof *s->y));
    return ctn_scope_end(ctx);
}

static ctn_status make_side(side *s, ctn_context *ctx, const net_case *n, bool batch_norm,
                            ctn_comm *c)
{
    CTN_TRY(make_net(&s->m, ctx, n));
    if (batch_norm) CTN_TRY(ctn_dist_sync_batch_norm(s->m, c));
    CTN_TRY(ctn_sgd_new(&s->o, ctn_params(s->m), CTN_OPT(ctn_sgd_opt, .lr = 0.5)));
    s->x = calloc(FIELD_MOST, sizeof *s->x);
    s->y = calloc(FIELD_MOST, sizeof *s->y);
    s->shrink = n->strided ? 4 : 1;
    return CTN_OK;
}

static void free_side(const side *s)
{
    ctn_optim_free(s->o);
    ctn_module_free(s->m);
    free(s->x);
    free(s->y);
}

static size_t var_bytes(const ctn_var *v)
{
    const ctn_desc *d = ctn_var_desc(v);
    size_t n = sizeof(float);
    for (int i = 0; i < d->ndim; i++) n *= (size_t)d->dim[i];
    return n;
}

/* The largest difference between two modules' variables: parameters and running statistics. */
static double distance(ctn_module *a, ctn_module *b)
{
    static const char *const more[] = {"enc.0.bn1.running_mean", "dec.1.bn2.running_var"};
    const ctn_vars p = ctn_params(a), q = ctn_params(b);
    double most = p.n == q.n ? 0 : INFINITY;
    for (int i = 0; i < p.n + 2; i++) {
        ctn_var *u = i < p.n ? p.var[i] : ctn_module_find(a, more[i - p.n]);
        ctn_var *v = i < p.n ? q.var[i] : ctn_module_find(b, more[i - p.n]);
        if (!u || !v) {
            ctn_error_clear();
            continue;
        }
        const size_t bytes = var_bytes(u);
        float *x = malloc(bytes), *y = malloc(bytes);
        if (ctn_var_get(u, x, bytes) < 0 || ctn_var_get(v, y, bytes) < 0) most = INFINITY;
        for (size_t k = 0; k < bytes / sizeof *x; k++)
            most = fmax(most, fabs((double)x[k] - (double)y[k]));
        free(x);
        free(y);
    }
    return most;
}

static void run_net(job *j)
{
    const net_case *n = j->arg;
    side one = {.side = {SIDE, SIDE, SIDE}}, part = {0};
    ctn_dist_grid *grid = NULL;
    TRY(j, ctn_dist_grid_new(&grid, j->c, n->spatial, n->ranks, n->periodic));
    TRY(j, make_side(&one, j->ctx, n, false, NULL));
    TRY(j, make_side(&part, j->ctx, n, true, j->c));
    for (int i = 0; i < n->spatial; i++) {
        part.side[i] = ctn_dist_grid_length(grid, i, SIDE);
        part.begin[i] = ctn_dist_grid_begin(grid, i, SIDE);
    }
    const int64_t nx = 4 * elements(&part, n->spatial, 1);
    const int64_t ny = 2 * elements(&part, n->spatial, part.shrink);
    for (int64_t i = 0; i < 4 * elements(&one, n->spatial, 1); i++)
        one.x[i] = (float)sin(0.37 * (double)i) + 0.1f * (float)(i % 13);
    for (int64_t i = 0; i < nx; i++) part.x[i] = one.x[in_field(&part, n->spatial, 1, i)];
    const ctn_vars p = ctn_params(one.m), q = ctn_params(part.m);
    for (int i = 0; i < p.n; i++) {
        const size_t bytes = var_bytes(p.var[i]);
        float *w = malloc(bytes);
        TRY(j, ctn_var_get(p.var[i], w, bytes));
        TRY(j, ctn_var_set(q.var[i], w, bytes));
        free(w);
    }
    TRY(j, ctn_dist_field(part.m, grid));
    TRY(j, ctn_dist_optim(part.o, j->c, NULL));
    ctn_context_set_training(j->ctx, 1);
    for (int step = 0; step < STEPS; step++) {
        TRY(j, train(&one, j->ctx, n));
        TRY(j, train(&part, j->ctx, n));
        for (int64_t i = 0; i < ny; i++) {
            const float want = one.y[in_field(&part, n->spatial, part.shrink, i)];
            CHECK(j, fabsf(part.y[i] - want) <= 1e-5f * fmaxf(1, fabsf(want)),
                  "step %d: y[%d] is %g, %g expected", step, (int)i, (double)part.y[i],
                  (double)want);
        }
        const double far = distance(one.m, part.m);
        CHECK(j, far <= 1e-5, "step %d: parameters differ by %g", step, far);
    }
    free_side(&one);
    free_side(&part);
    ctn_dist_grid_free(grid);
}

static void test_networks(void **state)
{
    (void)state;
    net_case cases[] = {
        {{2, 1, 1}, 2, 0, 0}, {{1, 2, 1}, 2, 0, 0}, {{2, 2, 1}, 2, 0, 0}, {{2, 1, 2}, 3, 0, 0},
        {{4, 1, 1}, 1, 0, 0}, {{2, 1, 1}, 2, 1, 0}, {{2, 2, 1}, 2, 1, 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const int size = (int)(cases[k].ranks[0] * cases[k].ranks[1] * cases[k].ranks[2]);
        on_ranks(size, CTN_MODE_PLANNED, run_net, &cases[k]);
    }
}

/* On a periodic field, any division gives the same. */
static void run_periodic(job *j)
{
    ctn_module *m = NULL;
    ctn_dist_grid *grid = NULL;
    const int64_t kernel[2] = {3, 3}, ranks[2] = {j->size, 1};
    float w[9], x[SIDE * SIDE], y[SIDE * SIDE];
    TRY(j, ctn_dist_grid_new(&grid, j->c, 2, ranks, 3));
    TRY(j, ctn_conv_new(&m, j->ctx, 1, 1, 2, kernel,
                        CTN_OPT(ctn_conv_module_opt, .pad = {1}, .no_bias = 1)));
    for (int i = 0; i < 9; i++) w[i] = (float)number(5, i);
    TRY(j, ctn_var_set(ctn_module_find(m, "weight"), w, sizeof w));
    TRY(j, ctn_dist_field(m, grid));
    const int64_t rows = ctn_dist_grid_length(grid, 0, SIDE);
    const int64_t begin = ctn_dist_grid_begin(grid, 0, SIDE);
    for (int64_t i = 0; i < rows * SIDE; i++) x[i] = (float)number(6, begin * SIDE + i);
    TRY(j, ctn_scope_begin(j->ctx));
    ctn_tensor *t = ctn_call(m, ctn_input(j->ctx, x, CTN_F32, CTN_SHAPE(1, 1, rows, SIDE)));
    TRY(j, ctn_read(t, y, (size_t)(rows * SIDE) * sizeof *y));
    TRY(j, ctn_scope_end(j->ctx));
    for (int64_t i = 0; i < rows * SIDE; i++) {
        double want = 0;
        for (int k = 0; k < 9; k++) {
            const int64_t a = (begin + i / SIDE + k / 3 - 1 + SIDE) % SIDE;
            const int64_t b = (i % SIDE + k % 3 - 1 + SIDE) % SIDE;
            want += (double)w[k] * number(6, a * SIDE + b);
        }
        CHECK(j, (double)y[i] == want, "y[%d] is %g, %g expected", (int)i, (double)y[i], want);
    }
    ctn_module_free(m);
    ctn_dist_grid_free(grid);
}

/* What would be wrong without a word is refused. */
static void run_refused(job *j)
{
    ctn_module *m[3] = {0};
    ctn_dist_grid *grid = NULL;
    const int64_t kernel[2] = {3, 3};
    float x[8 * 8] = {0};
    TRY(j, ctn_dist_grid_new(&grid, j->c, 2, (const int64_t[]){2, 1}, 0));
    TRY(j, ctn_conv_new(&m[0], j->ctx, 1, 1, 2, kernel, NULL)); /* no padding */
    TRY(j, ctn_conv_transpose_new(&m[1], j->ctx, 1, 1, 2, kernel, NULL));
    TRY(j, ctn_conv_new(&m[2], j->ctx, 1, 1, 2, kernel,
                        CTN_OPT(ctn_conv_module_opt, .pad = {1}, .stride = {3})));
    for (int i = 0; i < 3; i++) {
        TRY(j, ctn_dist_field(m[i], grid));
        TRY(j, ctn_scope_begin(j->ctx));
        ctn_tensor *t = ctn_input(j->ctx, x, CTN_F32, CTN_SHAPE(1, 1, 8, 8));
        CHECK(j, !ctn_call(m[i], t) && ctn_error_status() == CTN_ESHAPE, "module %d", i);
        CHECK(j, strstr(ctn_error_message(), "dist_field"), "%s", ctn_error_message());
        ctn_error_clear();
        TRY(j, ctn_dist_field(m[i], NULL));
        CHECK(j, ctn_call(m[i], t) != NULL, "%s", ctn_error_message());
        TRY(j, ctn_scope_end(j->ctx));
        ctn_module_free(m[i]);
    }
    ctn_dist_grid_free(grid);
}

static void test_field(void **state)
{
    (void)state;
    for (int size = 1; size <= 4; size++) on_ranks(size, CTN_MODE_PLANNED, run_periodic, NULL);
    on_ranks(2, CTN_MODE_PLANNED, run_refused, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halo),
        cmocka_unit_test(test_halo_more),
        cmocka_unit_test(test_networks),
        cmocka_unit_test(test_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
