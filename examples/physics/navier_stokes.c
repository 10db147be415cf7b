/* SPDX-License-Identifier: Apache-2.0
 *
 * A physics-informed network for the steady Navier-Stokes equations in two dimensions:
 * navier_stokes [STEPS]
 *
 *   u u_x + v u_y + p_x = (u_xx + u_yy) / Re,   u v_x + v v_y + p_y = (v_xx + v_yy) / Re
 *
 * The network maps (x,y) to a stream function s and the pressure p. The velocity is u = s_y and
 * v = -s_x, so mass is conserved by construction, and the equations contain third derivatives of
 * the network. The flow is Kovasznay's behind a grid, whose exact solution is known: the velocity
 * on the boundary is given, and the program prints the error inside.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <catena/catena.h>

#define CHECK(call) \
    if ((call) < 0) exit((fprintf(stderr, "navier_stokes: %s\n", ctn_error_message()), 1))

enum { INSIDE = 1000, BORDER = 200 };
static const double pi = 3.14159265358979323846, Re = 40;
static float inside[INSIDE][2], border[BORDER][2], flow[BORDER][2], exact[INSIDE][2];

static float between(double lo, double hi)
{
    return (float)(lo + (hi - lo) * rand() / RAND_MAX);
}

static void kovasznay(const float at[2], float velocity[2])
{
    const double lambda = Re / 2 - sqrt(Re * Re / 4 + 4 * pi * pi);
    velocity[0] = (float)(1 - exp(lambda * at[0]) * cos(2 * pi * at[1]));
    velocity[1] = (float)(lambda / (2 * pi) * exp(lambda * at[0]) * sin(2 * pi * at[1]));
}

static void choose_points(void) /* in -0.5 < x < 1, -0.5 < y < 0.5 */
{
    for (int i = 0; i < INSIDE; i++) {
        inside[i][0] = between(-0.5, 1);
        inside[i][1] = between(-0.5, 0.5);
        kovasznay(inside[i], exact[i]);
    }
    for (int i = 0; i < BORDER; i++) {
        border[i][0] = i % 4 == 0 ? -0.5f : i % 4 == 1 ? 1 : between(-0.5, 1);
        border[i][1] = i % 4 == 2 ? -0.5f : i % 4 == 3 ? 0.5f : between(-0.5, 0.5);
        kovasznay(border[i], flow[i]);
    }
}

static ctn_tensor *column(ctn_tensor *t, int k)
{
    return ctn_slice(t, 1, k, 1);
}

/* The derivatives of f (N,1) by x and y. */
static void by_place(ctn_tensor *f, ctn_tensor *at, ctn_tensor **x, ctn_tensor **y)
{
    ctn_tensor *g = NULL;
    CHECK(ctn_grad(f, 1, &at, &g));
    *x = column(g, 0);
    *y = column(g, 1);
}

typedef struct {
    ctn_tensor *u, *v, *p;
} state;

static state flow_at(ctn_module *net, ctn_tensor *at)
{
    ctn_tensor *out = ctn_call(net, at), *s_x, *s_y;
    by_place(column(out, 0), at, &s_x, &s_y);
    return (state){.u = s_y, .v = ctn_neg(s_x), .p = column(out, 1)};
}

/* One component w of the momentum equation; force: the derivative of the pressure. */
static ctn_tensor *momentum(const state *f, ctn_tensor *w, ctn_tensor *force, ctn_tensor *at)
{
    ctn_tensor *w_x, *w_y, *w_xx, *w_xy, *w_yx, *w_yy;
    by_place(w, at, &w_x, &w_y);
    by_place(w_x, at, &w_xx, &w_xy);
    by_place(w_y, at, &w_yx, &w_yy);
    ctn_tensor *carried = ctn_add(ctn_mul(f->u, w_x), ctn_mul(f->v, w_y));
    return ctn_sub(ctn_add(carried, force), ctn_scale(ctn_add(w_xx, w_yy), 1 / Re));
}

static ctn_tensor *mean_square(ctn_tensor *x)
{
    return ctn_mean(ctn_square(x), CTN_ALL_AXES, 0);
}

static ctn_tensor *velocity(const state *f)
{
    return ctn_concat(2, (ctn_tensor *[]){f->u, f->v}, 1);
}

static ctn_tensor *points(ctn_context *ctx, const float (*at)[2], int64_t n)
{
    return ctn_with_grad(ctn_input(ctx, at, CTN_F32, CTN_SHAPE(n, 2)));
}

static ctn_tensor *equations(ctn_context *ctx, ctn_module *net, ctn_tensor **error)
{
    ctn_tensor *at = points(ctx, inside, INSIDE), *p_x, *p_y;
    const state f = flow_at(net, at);
    by_place(f.p, at, &p_x, &p_y);
    ctn_tensor *right = ctn_input(ctx, exact, CTN_F32, CTN_SHAPE(INSIDE, 2));
    *error = ctn_keep(ctn_sqrt(
        ctn_div(mean_square(ctn_sub(velocity(&f), right)), mean_square(right)))); /* relative L2 */
    return ctn_add(mean_square(momentum(&f, f.u, p_x, at)),
                   mean_square(momentum(&f, f.v, p_y, at)));
}

int main(int argc, char **argv)
{
    const int steps = argc > 1 ? atoi(argv[1]) : 4000;
    const int64_t size[] = {2, 32, 32, 32, 2};
    ctn_context *ctx;
    ctn_module *net;
    ctn_optim *adam;
    choose_points();
    CHECK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = 1)));
    CHECK(ctn_zoo_mlp(&net, ctx,
                      CTN_OPT(ctn_mlp_opt, .n = 5, .size = size, .activation = ctn_tanh_at)));
    CHECK(ctn_adam_new(&adam, ctn_params(net), CTN_OPT(ctn_adam_opt, .lr = 0.003)));
    for (int i = 0; i <= steps; i++) {
        ctn_tensor *error;
        CHECK(ctn_scope_begin(ctx));
        const state edge = flow_at(net, points(ctx, border, BORDER));
        ctn_tensor *known = ctn_input(ctx, flow, CTN_F32, CTN_SHAPE(BORDER, 2));
        ctn_tensor *loss =
            ctn_add(equations(ctx, net, &error), mean_square(ctn_sub(velocity(&edge), known)));
        CHECK(ctn_backward(adam, loss));
        CHECK(ctn_optim_step(adam));
        if (i % (steps / 4 > 0 ? steps / 4 : 1) == 0)
            printf("step %5d  loss %.5f  error of the velocity %.3f\n", i, ctn_item(loss),
                   ctn_item(error));
        CHECK(ctn_scope_end(ctx));
    }
    ctn_optim_free(adam);
    ctn_module_free(net);
    ctn_context_free(ctx);
    return 0;
}
