// SPDX-License-Identifier: Apache-2.0
//
// Ops, operators, options, shapes and values from C++.
#include <cmath>
#include <string>
#include <utility>
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
// f throws because the lengths of its arguments differ.
template <class F> static bool refused(F &&f, const std::string &message)
{
    const Error e = thrown<Error>(f);
    return e.status() == CTN_ESHAPE && std::string(e.what()).find(message) != std::string::npos;
}

static void lengths_of_ops()
{
    Context ctx;
    Scope scope(ctx);
    const std::vector<float> a(6);
    const Tensor x = input(ctx, a, {2, 3});
    std::vector<int64_t> none;
    none.reserve(8);
    CHECK(pad(x, none, {0, 1}, 0).dim(1) == 4);
    CHECK(pad(x, {1, 0}, {}, 0).dim(0) == 3);
    CHECK(refused([&] { static_cast<void>(pad(x, {1}, {}, 0)); },
                  "pad: before has 1 elements, expected 2, one per dimension of x"));
    CHECK(refused([&] { static_cast<void>(pad(x, {}, {1, 1, 1}, 0)); }, "pad: after has 3"));
    CHECK(refused([&] { static_cast<void>(pad_by(x, CTN_PAD_REPLICATE, {1}, {1})); },
                  "pad_by: before has 1"));
    CHECK(refused([&] { static_cast<void>(tensordot(x, x, {1}, {0, 1})); },
                  "tensordot: axes_b has 2 elements, expected 1, as many as axes_a"));
    CHECK(refused([&] { static_cast<void>(as_strided(x, {2, 2}, {1}, 0)); }, "strides has 1"));
    CHECK(
        refused([&] { static_cast<void>(input_strided(ctx, a.data(), CTN_F32, {2, 2}, Shape())); },
                "strides has 0"));
    CHECK(refused([] { static_cast<void>(detail::length<int>(std::size_t{1} << 31)); },
                  "got 2147483648 elements"));
    CHECK(detail::length<int>(7) == 7);
}

static void lengths_of_data()
{
    const std::vector<float> x(12);
    const void *const data[] = {x.data(), x.data()};
    const ctn_field fields[] = {field(CTN_F32, {2}), field(CTN_F32, {2})};
    CHECK(refused([&] { arrays_open(6, fields, Span<const void *const>(data, 1)); },
                  "arrays_open: data has 1"));
    Dataset ds = arrays_open(6, fields, data);
    std::vector<double> two(2), one(1);
    ds.moments(0, two, two);
    CHECK(refused([&] { ds.moments(0, two, one); }, "std has 1"));
    CHECK(refused([&] { ds.moments(0, one, two); }, "std has 2"));
    std::vector<float> sample(2);
    void *const to[] = {sample.data(), sample.data()};
    ds.sample_at(1, to);
    CHECK(refused([&] { ds.sample_at(1, Span<void *const>(to, 1)); },
                  "dst has 1 elements, expected 2, one per field of ds"));
    CHECK(refused([&] { dataset_standardize(std::move(ds), 0, one, two); }, "std has 2"));
}

static void lengths_of_sequences()
{
    Context ctx;
    const Module gpt = zoo_gpt(ctx, GptOpt().vocabulary(8).block(8).width(8).layers(1).heads(1));
    Generator g(gpt);
    CHECK(g.sequences() == 0);
    const int32_t prompt[] = {1, 2};
    const int32_t *const prompts[] = {prompt, prompt};
    const int64_t lengths[] = {2, 1};
    std::vector<int32_t> two(2), one(1);
    CHECK(refused([&] { g.start(prompts, lengths, one); }, "start: next has 1"));
    CHECK(refused([&] { g.start(prompts, Span<const int64_t>(lengths, 1), two); }, "length has 1"));
    g.start(prompts, lengths, two);
    CHECK(g.sequences() == 2 && g.next(two, two));
    CHECK(refused([&] { g.next(one, two); }, "next: tokens has 1"));
    CHECK(refused([&] { g.next(two, one); },
                  "next: next has 1 elements, expected 2, one per sequence of g"));
}

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
                      {"lengths of ops", lengths_of_ops},
                      {"lengths of data", lengths_of_data},
                      {"lengths of sequences", lengths_of_sequences},
                      {"source lines", source_lines}});
}
