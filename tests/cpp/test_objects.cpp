// SPDX-License-Identifier: Apache-2.0
//
// Owners and references, scopes, and errors as exceptions.
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <catena/catena.hpp>

#include "check.hpp"

using namespace catena;

static_assert(sizeof(Module) == sizeof(void *) && sizeof(ModuleRef) == sizeof(void *));
static_assert(!std::is_copy_constructible_v<Module> && !std::is_copy_assignable_v<Module>);
static_assert(std::is_nothrow_move_constructible_v<Module> &&
              std::is_nothrow_move_assignable_v<Module>);
static_assert(std::is_trivially_copyable_v<ModuleRef> && std::is_trivially_copyable_v<Tensor>);
static_assert(std::is_move_constructible_v<Trainer> && !std::is_copy_constructible_v<Trainer>);

static void moves()
{
    Context ctx;
    Module a = linear_new(ctx, 2, 3);
    ctn_module *raw = a.get();
    Module b = std::move(a);
    CHECK(!a && b.get() == raw);
    a = linear_new(ctx, 4, 4);
    a = std::move(b); // frees the first one
    CHECK(a.get() == raw && !b);
    Module &self = a;
    a = std::move(self);
    CHECK(a.get() == raw);
    ctn_module_free(a.release());
    CHECK(!a);
}

static void ownership()
{
    Context ctx;
    Module net = module(ctx, [](ModuleRef m, const Tensor &x) { return m.child(0)(x); });
    const ModuleRef fc = net.add("fc", linear_new(ctx, 2, 3));
    CHECK(net.child(0).get() == fc.get() && !net.child(1));
    CHECK(net.find("fc.weight").desc()->dim[0] == 3);
    // A child that is refused is freed by the caller.
    Module twice = linear_new(ctx, 2, 3);
    const Error e = thrown<Error>([&] { net.add("fc", std::move(twice)); });
    CHECK(e.status() == CTN_EARG);
    const Module row = Sequential(ctx).then(linear_new(ctx, 2, 2)).then(ctn_relu_at);
    CHECK(row.children() == 2);
}

static void errors()
{
    Context ctx;
    const Module fc = linear_new(ctx, 2, 3);
    Error e = thrown<Error>([&] { fc.find("nothing"); });
    CHECK(e.status() == CTN_ENOTFOUND && std::string(e.what()).size() > 10);
    CHECK(ctn_error_status() == CTN_OK); // thrown errors are forgotten
    e = thrown<Error>([] { mnist_open("/nonexistent", CTN_TRAIN); });
    CHECK(e.status() == CTN_EIO);
    e = thrown<Error>([&] { linear_new(ctx, -1, 3); });
    CHECK(e.status() == CTN_EARG);
    Scope scope(ctx);
    e = thrown<Error>([] { static_cast<void>(relu(Tensor())); });
    CHECK(e.status() == CTN_EARG);
    const std::vector<float> data(4);
    const Tensor x = input(ctx, data, {2, 2});
    CHECK(thrown<Error>([&] { x.read<double>(); }).status() == CTN_EDTYPE);
    CHECK(thrown<Error>([&] { x.item(); }).status() == CTN_ESHAPE);
    CHECK(thrown<Error>([&] { input(ctx, data, {3, 2}).get(); }).status() == CTN_ESHAPE);
}

static void scopes()
{
    Context ctx;
    const uint64_t before = ctx.get_state().step;
    const std::runtime_error e = thrown<std::runtime_error>([&] {
        Scope outer(ctx);
        Scope inner(ctx);
        throw std::runtime_error("out of both");
    });
    CHECK(std::string(e.what()) == "out of both");
    CHECK(ctx.get_state().step == before + 1); // both are closed
    Scope scope(ctx);
    const std::vector<float> data{1, 2};
    Scope inner(ctx);
    const Tensor x = inner.end_with(input(ctx, data, {2}) * 2);
    CHECK(x.read<float>()[1] == 4);
    scope.end();
    CHECK(thrown<Error>([&] { ctx.flush(); }).status() == CTN_ESTATE);
}

static void retained()
{
    Context ctx;
    Retained state;
    const std::vector<float> data{1, 2};
    for (int i = 0; i < 3; i++) {
        Scope scope(ctx);
        const Tensor x = i == 0 ? input(ctx, data, {2}) : state.value() * 2;
        retain(state, x);
        scope.end();
    }
    Scope scope(ctx);
    CHECK(state.value().read<float>() == (std::vector<float>{4, 8}));
}

static void modes()
{
    Context ctx;
    {
        const Evaluation evaluation(ctx);
        CHECK(ctx.training() == 0);
    }
    CHECK(ctx.training() == 1);
    CHECK(ctx.threads() >= 1 && ctx.get_stats().misses == 0);
    CHECK(ctx.plan_text().size() < 10000);
}

int main()
{
    return run_tests({{"moves", moves},
                      {"ownership", ownership},
                      {"errors", errors},
                      {"scopes", scopes},
                      {"retained", retained},
                      {"modes", modes}});
}
