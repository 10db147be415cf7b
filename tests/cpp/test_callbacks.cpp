// SPDX-License-Identifier: Apache-2.0
//
// Modules, datasets, losses, extensions and visitors written in C++, and exceptions that leave
// them: they must come out of the call that led to them, and never pass through C code.
#include <cstring>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <catena/catena.hpp>

#include "check.hpp"

using namespace catena;

struct Boom : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Net
{
public:
    Net(ModuleRef self, int64_t hidden)
        : fc1_(self.add("fc1", linear_new(self.context(), 2, hidden))),
          fc2_(self.add("fc2", linear_new(self.context(), hidden, 1)))
    {
        if (hidden > 100) throw Boom("too large");
    }
    Tensor forward(const Tensor &x)
    {
        return fc2_(tanh(fc1_(x)));
    }

private:
    ModuleRef fc1_, fc2_;
};

static void modules()
{
    Context ctx;
    const Module net = make_module<Net>(ctx, 4);
    CHECK(net.params().n == 4);
    CHECK(std::string(thrown<Boom>([&] { make_module<Net>(ctx, 1000); }).what()) == "too large");
    const Module two = module_multi(ctx, [](const ctn_tensors &x) {
        return tensors({Tensor(x.t[0]) + Tensor(x.t[1]), Tensor(x.t[0])});
    });
    Scope scope(ctx);
    const std::vector<float> data{1, 2};
    const Tensor x = input(ctx, data, {1, 2});
    CHECK(net(x).shape() == (std::vector<int64_t>{1, 1}));
    const ctn_tensors y = two.call_multi(tensors({x, x}));
    CHECK(y.n == 2 && Tensor(y.t[0]).read<float>()[1] == 4);
}

static void throwing_modules()
{
    Context ctx;
    const Module boom = module(ctx, [](const Tensor &) -> Tensor { throw Boom("in forward"); });
    const Module number = module(ctx, [](const Tensor &) -> Tensor { throw 17; });
    const Module shape = module(ctx, [](const Tensor &x) { return matmul(x, x); });
    const Module outer = module(ctx, [&](const Tensor &x) { return boom(x) + 1; });
    Scope scope(ctx);
    const std::vector<float> data(6);
    const Tensor x = input(ctx, data, {2, 3});
    CHECK(std::string(thrown<Boom>([&] { boom(x).get(); }).what()) == "in forward");
    CHECK(std::string(thrown<Boom>([&] { outer(x).get(); }).what()) == "in forward");
    CHECK(thrown<int>([&] { number(x).get(); }) == 17);
    CHECK(thrown<Error>([&] { shape(x).get(); }).status() == CTN_ESHAPE);
    CHECK(relu(x).count() == 6); // the scope is still usable
}

// Samples 0 to n - 1: x = index, and twice that.
static Dataset numbers(int64_t n, int64_t bad)
{
    return dataset(n, {field(CTN_F32, {1}), field(CTN_F32, {1})},
                   [bad](const ctn_sample &s, void *const *dst) {
                       if (s.index == bad) throw Boom("sample is bad");
                       *static_cast<float *>(dst[0]) = static_cast<float>(s.index);
                       *static_cast<float *>(dst[1]) = static_cast<float>(2 * s.index);
                   });
}

static void datasets()
{
    Dataset ds = numbers(10, -1);
    CHECK(ds.count() == 10 && ds.fields() == 2 && ds.name(3) == "sample 3");
    auto half = [](const ctn_sample &, void *const *src, void *const *dst) {
        *static_cast<float *>(dst[0]) = *static_cast<const float *>(src[0]) / 2;
        *static_cast<float *>(dst[1]) = *static_cast<const float *>(src[1]) / 2;
    };
    const Dataset changed =
        transform(std::move(ds), {field(CTN_F32, {1}), field(CTN_F32, {1})}, half);
    float x = 0, y = 0;
    changed.sample_at(3, {&x, &y});
    CHECK(x == 1.5F && y == 3.0F);
    const auto backwards = [](const ctn_sampler_state &at) noexcept {
        return static_cast<int64_t>(9 - at.position);
    };
    const Sampler order = sampler(10, backwards, 1);
    const Loader loader(changed, order, LoaderOpt().batch(4));
    ctn_batch b;
    CHECK(loader.next(b) && b.n == 4 && static_cast<float *>(b.data[0])[0] == 4.5F);
    CHECK(loader.next(b) && loader.next(b) && !loader.next(b) && loader.next(b));
}

static void throwing_datasets()
{
    const Dataset ds = numbers(10, 5);
    const Sampler order = Sampler(sampler_sequential(10));
    ctn_batch b;
    Loader here(ds, order, LoaderOpt().batch(10));
    CHECK(std::string(thrown<Boom>([&] { here.next(b); }).what()) == "sample is bad");
    // On another thread only the text and the status remain.
    Loader there(ds, order, LoaderOpt().batch(10).threads(1));
    const Error e = thrown<Error>([&] { there.next(b); });
    CHECK(e.status() == CTN_EIO && std::string(e.what()).find("is bad") != std::string::npos);
    // The library recovers, so a later error is not this exception.
    Loader skips(ds, order, LoaderOpt().batch(10).skip(0.5));
    CHECK(skips.next(b) && b.n == 9);
    CHECK(thrown<Error>([] { mnist_open("/nonexistent", CTN_TRAIN); }).status() == CTN_EIO);
}

struct Training {
    Context ctx{ContextOpt().seed(3)};
    Dataset ds = numbers(8, -1);
    Sampler order = sampler_sequential(8);
    Loader loader{ds, order, LoaderOpt().batch(4)}, other{ds, order, LoaderOpt().batch(3)};
    Module net = linear_new(ctx, 1, 1);
    Optim opt = sgd_new(net.params(), SgdOpt().lr(0.01));
};

static void trainer()
{
    Training t;
    const Loss loss = [&](StepRef s) {
        const Tensor y = t.net(s.input(0));
        s.report("mean", mean(y));
        return mean_squared_error(y, s.input(1));
    };
    Trainer tr(t.opt, t.loader, loss, TrainerOpt().epochs(20));
    int calls = 0;
    tr.evaluate(t.other);
    tr.extend(
        "count", [&](TrainerRef r) { calls += r.context().get() == t.ctx.get(); },
        trigger(CTN_EVERY_EPOCHS, 5));
    Trainer moved = std::move(tr);
    moved.run();
    CHECK(calls == 4 && moved.progress().iteration == 40);
    CHECK(moved.value("val/loss").value() < 5 && !moved.value("nothing"));
    CHECK(evaluate(t.ctx, t.other, loss).at("loss") == *moved.value("val/loss"));
}

static void throwing_trainer()
{
    Training t;
    Trainer bad(
        t.opt, t.loader, [](StepRef) -> Tensor { throw Boom("in loss"); }, TrainerOpt().epochs(1));
    CHECK(std::string(thrown<Boom>([&] { bad.run(); }).what()) == "in loss");
    const Loss loss = [&](StepRef s) { return mean_squared_error(t.net(s.input(0)), s.input(1)); };
    Trainer late(t.opt, t.loader, loss, TrainerOpt().epochs(2));
    late.extend("stop", [](TrainerRef) { throw Boom("in extension"); }, trigger(CTN_EVERY_EPOCHS));
    CHECK(std::string(thrown<Boom>([&] { late.run(); }).what()) == "in extension");
}

static void visitors()
{
    Training t;
    std::set<std::string> names;
    visit(t.net, [&](const char *name, ctn_dtype type, Shape shape, void *data) {
        CHECK(type == CTN_F32 && shape[0] == 1 && data);
        names.insert(name);
    });
    CHECK(names == (std::set<std::string>{"weight", "bias"}));
    int modules = 0;
    visit_modules(t.net, [&](const char *, ctn_module *) { modules++; });
    CHECK(modules == 1);
    const auto bad = [](const char *, ctn_dtype, Shape, void *) { throw Boom("in visit"); };
    CHECK(std::string(thrown<Boom>([&] { visit(t.net, bad); }).what()) == "in visit");
}

int main()
{
    return run_tests({{"modules", modules},
                      {"throwing modules", throwing_modules},
                      {"datasets", datasets},
                      {"throwing datasets", throwing_datasets},
                      {"trainer", trainer},
                      {"throwing trainer", throwing_trainer},
                      {"visitors", visitors}});
}
