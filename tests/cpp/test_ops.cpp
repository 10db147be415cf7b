// SPDX-License-Identifier: Apache-2.0
//
// Ops, operators, options, shapes and values from C++.
#include <cmath>
#include <string>
#include <vector>

#include <catena/catena.hpp>

#include "check.hpp"

using namespace catena;

static bool same(const Tensor &t, const std::vector<float> &wanted)
{
    return t.read<float>() == wanted;
}

static void operators()
{
    Context ctx;
    Scope scope(ctx);
    const std::vector<float> a{1, 2, 4}, b{4, 2, 1};
    const Tensor x = input(ctx, a, {3}), y = input(ctx, b, {3});
    CHECK(same(x + y, {5, 4, 5}));
    CHECK(same(x - y, {-3, 0, 3}));
    CHECK(same(x * y, {4, 4, 4}));
    CHECK(same(x / y, {0.25, 1, 4}));
    CHECK(same(-x, {-1, -2, -4}));
    CHECK(same(x + 1, {2, 3, 5}));
    CHECK(same(1 - x, {0, -1, -3}));
    CHECK(same(2.5 * x, {2.5, 5, 10}));
    CHECK(same(x / 2, {0.5, 1, 2}));
    CHECK(same(1 / x, {1, 0.5, 0.25}));
    CHECK(same(cast(x < y, CTN_F32), {1, 0, 0}));
    CHECK(same(cast(x >= number(ctx, 2), CTN_F32), {0, 1, 1}));
    CHECK(same(cast(x == y, CTN_F32), {0, 1, 0}));
}

static void values()
{
    Context ctx;
    Scope scope(ctx);
    const float data[] = {1, 2, 3, 4, 5, 6};
    const Tensor x = input(ctx, Span<const float>(data), {2, 3});
    CHECK(x.shape() == (std::vector<int64_t>{2, 3}));
    CHECK(x.dtype() == CTN_F32 && x.count() == 6 && x.dim(-1) == 3);
    CHECK(sum(x).item() == 21);
    CHECK(same(sum(x, {0}), {5, 7, 9}));
    const Span<const float> seen = transpose(x, {1, 0}).view<float>();
    CHECK(seen.size() == 6 && seen[1] == 4);
    const auto [best, where] = topk(x, 1, 1);
    CHECK(same(best, {3, 6}));
    CHECK(where.read<int64_t>() == (std::vector<int64_t>{2, 2}));
    CHECK(split(x, 1, {1, 2}).at(1).dim(1) == 2);
    CHECK(same(concat({x, x}, 0), {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}));
    CHECK(std::isnan(log(input(ctx, data, CTN_F32, {6}) - 10).read<float>()[0]));
    CHECK(x.text().find("2,3") != std::string::npos);
}

static void gradients()
{
    Context ctx;
    Var w(ctx, "w", CTN_PARAM, CTN_F32, {2});
    w.write(std::vector<float>{3, 5});
    Scope scope(ctx);
    const Tensor x = w.use();
    const std::vector<Tensor> g = grad(sum(x * x), {x});
    CHECK(same(g.at(0), {6, 10}));
    scope.end();
}

static void options()
{
    const ConvOpt opt = ConvOpt().stride({2, 2}).pad({1}).groups(4);
    const ctn_conv_opt &c = opt;
    CHECK(c.struct_size == sizeof c && c.stride[1] == 2 && c.pad[0] == 1 && c.groups == 4);
    const Error e = thrown<Error>([] { ConvOpt().stride({1, 2, 3, 4}); });
    CHECK(e.status() == CTN_EARG);
    Context ctx(ContextOpt().seed(7));
    CHECK(ctx.get_state().seed == 7);
    // Without options the weights are random, with an empty Init they are 0.
    const Module random = embedding_new(ctx, 2, 2), zero = embedding_new(ctx, 2, 2, Init());
    Scope scope(ctx);
    CHECK(sum(abs(random.find("weight").use())).item() > 0);
    CHECK(sum(abs(zero.find("weight").use())).item() == 0);
}

// Texts contain the line of the call, also if an operator made it.
static void source_lines()
{
    Context ctx;
    Scope scope(ctx);
    const std::vector<float> a(6);
    const Tensor x = input(ctx, a, {2, 3}), y = input(ctx, a, {3, 2});
    std::string line = "test_ops.cpp:" + std::to_string(__LINE__ + 1);
    Error e = thrown<Error>([&] { static_cast<void>(add(x, y)); });
    CHECK(std::string(e.what()).find(line) != std::string::npos);
    line = "test_ops.cpp:" + std::to_string(__LINE__ + 1);
    e = thrown<Error>([&] { static_cast<void>(x * y); });
    CHECK(std::string(e.what()).find(line) != std::string::npos);
}

int main()
{
    return run_tests({{"operators", operators},
                      {"values", values},
                      {"gradients", gradients},
                      {"options", options},
                      {"source lines", source_lines}});
}
