/* SPDX-License-Identifier: Apache-2.0
 *
 * pinn: training steps of a physics-informed network for Burgers' equation,
 *   u_t + u u_x = nu u_xx,   nu = 0.01 / pi,
 * on 20,000 points inside and 256 on the boundary. The network is (t,x) -> u with eight hidden
 * layers of 20 tanh units, trained by Adam. dev/peers/pinn_torch.py does the same with the same
 * numbers. Prints one JSON line: time of a step, the number of ops with all gradients, before and
 * after simplification, and of kernels, and the losses of the first steps.
 *   pinn [STEPS [--text]]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <catena/catena.h>

enum { POINTS = 20000, BOUNDARY = 256, WIDTH = 20, LAYERS = 9, SHOWN = 5 };
#define NU (0.01 / 3.14159265358979323846)

static float inside[POINTS][2], border[BOUNDARY][2], known[BOUNDARY][1];
static float weight[LAYERS][WIDTH * WIDTH], bias[WIDTH];

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The same sequence in the peer: multiples of the golden ratio, in [0, 1). */
static double number(int64_t i)
{
    double x = (double)(i + 1) * 0.6180339887498949;
    return x - floor(x);
}

static void make_data(void)
{
    for (int i = 0; i < POINTS; i++) {
        inside[i][0] = (float)number(i);
        inside[i][1] = (float)(2.0 * (i + 0.5) / POINTS - 1);
    }
    for (int i = 0; i < BOUNDARY; i++) { /* u(0,x) = -sin(pi x), u(t,-1) = u(t,1) = 0 */
        const double x = 2.0 * (i + 0.5) / BOUNDARY - 1;
        const int side = i % 2;
        border[i][0] = side ? (float)number(i) : 0;
        border[i][1] = side ? (i % 4 == 1 ? -1 : 1) : (float)x;
        known[i][0] = side ? 0 : (float)-sin(3.14159265358979323846 * x);
    }
}

typedef struct {
    ctn_context *ctx;
    ctn_var *w[LAYERS], *b[LAYERS], *all[2 * LAYERS];
    ctn_optim *adam;
} net;

static ctn_status make_net(net *n)
{
    for (int k = 0; k < LAYERS; k++) {
        const int64_t in = k == 0 ? 2 : WIDTH, out = k == LAYERS - 1 ? 1 : WIDTH;
        const double bound = sqrt(6.0 / (double)(in + out)); /* Xavier */
        char name[32];
        for (int64_t i = 0; i < in * out; i++)
            weight[k][i] = (float)(bound * (2 * number(1000 * (k + 1) + i) - 1));
        snprintf(name, sizeof name, "%d.weight", k);
        CTN_TRY(ctn_var_new(&n->w[k], n->ctx, name, CTN_PARAM, CTN_F32, CTN_SHAPE(out, in)));
        CTN_TRY(ctn_var_set(n->w[k], weight[k], (size_t)(in * out) * sizeof(float)));
        snprintf(name, sizeof name, "%d.bias", k);
        CTN_TRY(ctn_var_new(&n->b[k], n->ctx, name, CTN_PARAM, CTN_F32, CTN_SHAPE(out)));
        CTN_TRY(ctn_var_set(n->b[k], bias, (size_t)out * sizeof(float)));
        n->all[2 * k] = n->w[k];
        n->all[2 * k + 1] = n->b[k];
    }
    return ctn_adam_new(&n->adam, (ctn_vars){2 * LAYERS, n->all, NULL}, NULL);
}

static ctn_tensor *forward(const net *n, ctn_tensor *x)
{
    for (int k = 0; k < LAYERS; k++) {
        x = ctn_linear(x, ctn_use(n->w[k]), ctn_use(n->b[k]));
        if (k < LAYERS - 1) x = ctn_tanh(x);
    }
    return x;
}

static ctn_tensor *column(ctn_tensor *g, int k)
{
    return ctn_slice(g, 1, k, 1);
}

/* Mean of the squared residuals. */
static ctn_tensor *residual(const net *n)
{
    ctn_tensor *at = ctn_with_grad(ctn_input(n->ctx, inside, CTN_F32, CTN_SHAPE(POINTS, 2)));
    ctn_tensor *u = forward(n, at), *first = NULL, *second = NULL;
    if (ctn_grad(u, 1, &at, &first) < 0) return NULL; /* (u_t, u_x) */
    ctn_tensor *ut = column(first, 0), *ux = column(first, 1);
    if (ctn_grad(ux, 1, &at, &second) < 0) return NULL; /* (u_xt, u_xx) */
    ctn_tensor *uxx = column(second, 1);
    ctn_tensor *f = ctn_sub(ctn_add(ut, ctn_mul(u, ux)), ctn_scale(uxx, NU));
    return ctn_mean(ctn_square(f), CTN_ALL_AXES, 0);
}

static ctn_tensor *boundary(const net *n)
{
    ctn_tensor *u = forward(n, ctn_input(n->ctx, border, CTN_F32, CTN_SHAPE(BOUNDARY, 2)));
    ctn_tensor *t = ctn_input(n->ctx, known, CTN_F32, CTN_SHAPE(BOUNDARY, 1));
    return ctn_mean_squared_error(u, t, CTN_MEAN);
}

static ctn_status step(net *n, double *loss)
{
    CTN_TRY(ctn_scope_begin(n->ctx));
    ctn_tensor *l = ctn_add(residual(n), boundary(n));
    CTN_TRY(ctn_backward(n->adam, l));
    CTN_TRY(ctn_optim_step(n->adam));
    *loss = ctn_item(l);
    return ctn_scope_end(n->ctx);
}

/* Prints what the first line of the plan says, and the whole plan if asked to. */
static ctn_status print_plan(ctn_context *ctx, int whole)
{
    int kernels = 0, ops = 0, left = 0;
    const int n = ctn_context_plan_text(ctx, NULL, 0);
    char *text = n < 0 ? NULL : malloc((size_t)n + 1);
    if (!text || ctn_context_plan_text(ctx, text, (size_t)n + 1) < 0) {
        free(text);
        return ctn_fail(CTN_ENOMEM, "cannot print the plan");
    }
    if (whole) fputs(text, stderr);
    sscanf(text, "plan %*s %d kernels for %d ops (%d after", &kernels, &ops, &left);
    free(text);
    printf("\"ops\": %d, \"simplified\": %d, \"kernels\": %d, ", ops, left, kernels);
    return CTN_OK;
}

static ctn_status measure(int steps, int whole)
{
    net n = {0};
    double loss[SHOWN] = {0}, last = 0, best = 1e9;
    make_data();
    CTN_TRY(ctn_context_new(&n.ctx, NULL));
    ctn_context_set_profile(n.ctx, whole);
    CTN_TRY(make_net(&n));
    for (int i = 0; i < steps; i++) {
        const double begin = seconds();
        CTN_TRY(step(&n, &last));
        if (i >= 2) best = fmin(best, seconds() - begin);
        if (i < SHOWN) loss[i] = last;
    }
    printf("{\"ms\": %.3f, ", best * 1e3);
    CTN_TRY(print_plan(n.ctx, whole));
    printf("\"loss\": [");
    for (int i = 0; i < SHOWN; i++) printf("%s%.9g", i ? ", " : "", loss[i]);
    printf("]}\n");
    ctn_optim_free(n.adam);
    for (int i = 0; i < 2 * LAYERS; i++) ctn_var_free(n.all[i]);
    ctn_context_free(n.ctx);
    return CTN_OK;
}

int main(int argc, char **argv)
{
    const int steps = argc > 1 ? atoi(argv[1]) : 20;
    if (measure(steps, argc > 2 && strcmp(argv[2], "--text") == 0) < 0) {
        fprintf(stderr, "pinn: %s\n", ctn_error_message());
        return 1;
    }
    return 0;
}
