// SPDX-License-Identifier: Apache-2.0
//
// A small network learns exclusive or: xor_cpp [WEIGHTS]. The weights are saved if a file is named.
// xor.c, xor.f90 and xor.py are the same program. All print the same losses and write the same
// file, to the bit.
#include <cstdio>
#include <exception>
#include <vector>

#include <catena/catena.hpp>

using namespace catena;

static void train(const char *weights)
{
    const std::vector<float> x{0, 0, 0, 1, 1, 0, 1, 1}, y{0, 1, 1, 0};
    const Context ctx(ContextOpt().seed(1));
    const Module net =
        Sequential(ctx).then(linear_new(ctx, 2, 16)).then(ctn_tanh_at).then(linear_new(ctx, 16, 1));
    const Optim opt = adam_new(net.params(), AdamOpt().lr(0.05));
    for (int step = 1; step <= 100; step++) {
        Scope scope(ctx);
        const Tensor want = input(ctx, y, {4, 1});
        const Tensor loss = mean_squared_error(net(input(ctx, x, {4, 2})), want);
        opt.backward(loss);
        opt.step(); // what was recorded runs here
        if (step % 20 == 0) std::printf("step %3d  loss %.6f\n", step, loss.item());
        scope.end();
    }
    if (weights) net.save(weights);
}

int main(int argc, char **argv)
try {
    train(argc > 1 ? argv[1] : nullptr);
    return 0;
} catch (const std::exception &e) {
    std::fprintf(stderr, "xor: %s\n", e.what());
    return 1;
}
