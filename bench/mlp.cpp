// SPDX-License-Identifier: Apache-2.0
//
// mlp_cpp [STEPS]: the training step of an MLP 784-1000-1000-10 with batch 100 and Adam, in C++.
// mlp.c is the same in C, and dev/bench cpp compares them. Prints one JSON line with the best time.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include <catena/catena.hpp>

using namespace catena;

constexpr int BATCH = 100, IN = 784, CLASSES = 10;

static double step(ModuleRef net, OptimRef opt, const std::vector<float> &x,
                   const std::vector<std::int64_t> &t)
{
    const ContextRef ctx = net.context();
    const auto start = std::chrono::steady_clock::now();
    Scope scope(ctx);
    const Tensor y = net(input(ctx, x, {BATCH, IN}));
    opt.backward(softmax_cross_entropy(y, input(ctx, t, {BATCH})));
    opt.step();
    scope.end();
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - start;
    return taken.count();
}

static double best_of(int steps)
{
    std::vector<float> x(BATCH * IN);
    std::vector<std::int64_t> t(BATCH);
    for (int i = 0; i < BATCH * IN; i++)
        x[static_cast<std::size_t>(i)] = static_cast<float>(i % 97) / 97;
    for (int i = 0; i < BATCH; i++) t[static_cast<std::size_t>(i)] = i % CLASSES;
    const Context ctx(ContextOpt().seed(1));
    const Module net = Sequential(ctx)
                           .then(linear_new(ctx, IN, 1000))
                           .then(ctn_relu_at)
                           .then(linear_new(ctx, 1000, 1000))
                           .then(ctn_relu_at)
                           .then(linear_new(ctx, 1000, CLASSES));
    const Optim opt = adam_new(net.params());
    double best = step(net, opt, x, t);
    for (int i = 1; i < steps; i++) best = std::min(best, step(net, opt, x, t));
    return best;
}

int main(int argc, char **argv)
try {
    std::printf("{\"best_ms\": %.4f}\n", best_of(argc > 1 ? std::atoi(argv[1]) : 200));
    return 0;
} catch (const std::exception &e) {
    std::fprintf(stderr, "mlp: %s\n", e.what());
    return 1;
}
