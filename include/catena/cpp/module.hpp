// SPDX-License-Identifier: Apache-2.0
//
// Modules written in C++: a lambda, or a class with a forward function.
#ifndef CATENA_CPP_MODULE_HPP
#define CATENA_CPP_MODULE_HPP

#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <catena/cpp/generated.hpp>

namespace catena
{

// A list of tensors by value, for modules with several inputs or results: tensors({x, mask}).
inline ctn_tensors tensors(std::initializer_list<Tensor> list)
{
    ctn_tensors out = {};
    if (list.size() > CTN_MAX_TENSORS)
        throw Error(CTN_EARG, "got " + std::to_string(list.size()) + " tensors, at most " +
                                  std::to_string(CTN_MAX_TENSORS) + " are possible");
    for (const Tensor &t : list) out.t[out.n++] = t.get();
    return out;
}

namespace detail
{

// The functions of a module that calls F, which the module owns. F takes the input, or the module
// and the input. A = ctn_tensor * is the ordinary kind, A = ctn_tensors the one with several.
template <class F, class A> struct Forward {
    static A call(void *self, ctn_module *m, A x) noexcept
    {
        try {
            return run(*static_cast<F *>(self), m, x);
        } catch (...) {
            record_exception(CTN_EARG);
            return A();
        }
    }
    static void release(void *self) noexcept
    {
        delete static_cast<F *>(self);
    }

private:
    using Input = std::conditional_t<std::is_pointer_v<A>, Tensor, ctn_tensors>;
    static A run(F &f, ctn_module *m, A x)
    {
        if constexpr (std::is_invocable_v<F &, ModuleRef, Input>)
            return raw(f(ModuleRef(m), Input(x)));
        else return raw(f(Input(x)));
    }
    static ctn_tensor *raw(const Tensor &t)
    {
        return t.get();
    }
    static ctn_tensors raw(const ctn_tensors &t)
    {
        return t;
    }
};

// An object of class T that is made after its module.
template <class T> struct Later {
    std::unique_ptr<T> object;
    Tensor operator()(const Tensor &x)
    {
        return object->forward(x);
    }
};

} // namespace detail

// A module whose forward function is f(x) or f(module, x). The module owns f.
template <class F> Module module(ContextRef ctx, F f)
{
    auto self = std::make_unique<F>(std::move(f));
    ctn_module *m = nullptr;
    using Functions = detail::Forward<F, ctn_tensor *>;
    detail::check(ctn_module_new(&m, ctx.get(), Functions::call, self.get(), Functions::release));
    static_cast<void>(self.release());
    return Module(m);
}

// The same with several inputs and results: f takes and returns ctn_tensors.
template <class F> Module module_multi(ContextRef ctx, F f)
{
    auto self = std::make_unique<F>(std::move(f));
    ctn_module *m = nullptr;
    using Functions = detail::Forward<F, ctn_tensors>;
    detail::check(
        ctn_module_new_multi(&m, ctx.get(), Functions::call, self.get(), Functions::release));
    static_cast<void>(self.release());
    return Module(m);
}

// A module of class T, which the module owns. T has a constructor T(ModuleRef self, args...), which
// adds children and parameters to self, and a function Tensor forward(const Tensor &x).
template <class T, class... A> Module make_module(ContextRef ctx, A &&...args)
{
    auto later = std::make_unique<detail::Later<T>>();
    detail::Later<T> *place = later.get();
    ctn_module *m = nullptr;
    using Functions = detail::Forward<detail::Later<T>, ctn_tensor *>;
    detail::check(ctn_module_new(&m, ctx.get(), Functions::call, place, Functions::release));
    static_cast<void>(later.release());
    Module made(m);
    place->object = std::make_unique<T>(ModuleRef(m), std::forward<A>(args)...);
    return made;
}

// Modules that are called one after the other:
//     Module net = Sequential(ctx).then(linear_new(ctx, 2, 16)).then(ctn_tanh_at);
// Initial values depend on the order in which modules are made. C++ does not say in which order
// the arguments of one call are evaluated, but calls of then() run from left to right.
class Sequential
{
public:
    explicit Sequential(ContextRef ctx) : ctx_(ctx)
    {
    }
    Sequential &then(Module m)
    {
        list_.push_back(std::move(m));
        return *this;
    }
    // An op with one input.
    Sequential &then(ctn_tensor *(*op)(const char *at, ctn_tensor *x))
    {
        return then(activation_new(ctx_, op));
    }
    // The modules go to the result.
    operator Module()
    {
        return sequential_new(ctx_, std::exchange(list_, {}));
    }

private:
    ContextRef ctx_;
    std::vector<Module> list_;
};

} // namespace catena
#endif
