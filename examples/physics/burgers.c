/* SPDX-License-Identifier: Apache-2.0
 *
 * A physics-informed network for Burgers' equation: burgers [STEPS]
 *
 *   u_t + u u_x = nu u_xx,   0 < t < 1, -1 < x < 1,   u(0,x) = -sin(pi x),   u(t,-1) = u(t,1) = 0
 *
 * The network maps (t,x) to u. Its loss is the residual of the equation at points inside, whose
 * derivatives ctn_grad records, plus the error on the boundary.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <catena/catena.h>

#define CHECK(call) \
    if ((call) < 0) exit((fprintf(stderr, "burgers: %s\n", ctn_error_message()), 1))

enum { INSIDE = 2000, BORDER = 300 };
static const double pi = 3.14159265358979323846;
static float inside[INSIDE][2], border[BORDER][2], known[BORDER][1];

static float between(double lo, double hi)
{
    return (float)(lo + (hi - lo) * rand() / RAND_MAX);
}

static void choose_points(void)
{
    for (int i = 0; i < INSIDE; i++) {
        inside[i][0] = between(0, 1);
        inside[i][1] = between(-1, 1);
    }
    for (int i = 0; i < BORDER; i++) { /* a third each: t = 0, x = -1, x = 1 */
        border[i][0] = i % 3 == 0 ? 0 : between(0, 1);
        border[i][1] = i % 3 == 0 ? between(-1, 1) : i % 3 == 1 ? -1 : 1;
        known[i][0] = i % 3 == 0 ? (float)-sin(pi * border[i][1]) : 0;
    }
}

static ctn_tensor *residual(ctn_module *net, ctn_tensor *at)
{
    ctn_tensor *u = ctn_call(net, at), *first, *second;
    if (ctn_grad(u, 1, &at, &first) < 0) return NULL; /* (u_t, u_x) at every point */
    ctn_tensor *u_t = ctn_slice(first, 1, 0, 1), *u_x = ctn_slice(first, 1, 1, 1);
    if (ctn_grad(u_x, 1, &at, &second) < 0) return NULL; /* (u_xt, u_xx) */
    ctn_tensor *u_xx = ctn_slice(second, 1, 1, 1);
    return ctn_sub(ctn_add(u_t, ctn_mul(u, u_x)), ctn_scale(u_xx, 0.01 / pi));
}

int main(int argc, char **argv)
{
    const int steps = argc > 1 ? atoi(argv[1]) : 2000;
    const int64_t size[] = {2, 20, 20, 20, 20, 1};
    ctn_context *ctx;
    ctn_module *net;
    ctn_optim *adam;
    choose_points();
    CHECK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = 1)));
    CHECK(ctn_zoo_mlp(&net, ctx,
                      CTN_OPT(ctn_mlp_opt, .n = 6, .size = size, .activation = ctn_tanh_at)));
    CHECK(ctn_adam_new(&adam, ctn_params(net), CTN_OPT(ctn_adam_opt, .lr = 0.003)));
    for (int i = 0; i <= steps; i++) {
        CHECK(ctn_scope_begin(ctx));
        ctn_tensor *at = ctn_with_grad(ctn_input(ctx, inside, CTN_F32, CTN_SHAPE(INSIDE, 2)));
        ctn_tensor *edge = ctn_input(ctx, border, CTN_F32, CTN_SHAPE(BORDER, 2));
        ctn_tensor *u = ctn_input(ctx, known, CTN_F32, CTN_SHAPE(BORDER, 1));
        ctn_tensor *equation = ctn_mean(ctn_square(residual(net, at)), CTN_ALL_AXES, 0);
        ctn_tensor *boundary = ctn_mean_squared_error(ctn_call(net, edge), u, CTN_MEAN);
        ctn_tensor *loss = ctn_add(equation, boundary);
        CHECK(ctn_backward(adam, loss));
        CHECK(ctn_optim_step(adam));
        if (i % (steps / 4 > 0 ? steps / 4 : 1) == 0)
            printf("step %5d  loss %.5f\n", i, ctn_item(loss));
        CHECK(ctn_scope_end(ctx));
    }
    ctn_optim_free(adam);
    ctn_module_free(net);
    ctn_context_free(ctx);
    return 0;
}
