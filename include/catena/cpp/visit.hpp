// SPDX-License-Identifier: Apache-2.0
//
// Visitors: call a function for each part of an object. What the function throws ends the visit
// and comes out of it.
#ifndef CATENA_CPP_VISIT_HPP
#define CATENA_CPP_VISIT_HPP

#include <cstddef>
#include <type_traits>

#include <catena/cpp/generated.hpp>

namespace catena
{
namespace detail
{

template <class F> void *user(F &f)
{
    return const_cast<void *>(static_cast<const void *>(&f));
}

template <class F, class... A> ctn_status guarded(void *user, A... args) noexcept
{
    try {
        (*static_cast<F *>(user))(args...);
        return CTN_OK;
    } catch (...) {
        return record_exception(CTN_EARG);
    }
}

template <class F>
ctn_status visit_array(void *user, const char *name, ctn_dtype dtype, int ndim, const int64_t *dims,
                       void *data) noexcept
{
    const Shape shape(dims, static_cast<std::size_t>(ndim));
    return guarded<F, const char *, ctn_dtype, Shape, void *>(user, name, dtype, shape, data);
}

} // namespace detail

// f(name, dtype, shape, data) for every parameter and state of a module.
template <class F> void visit(ModuleRef m, F &&f)
{
    using G = std::remove_reference_t<F>;
    detail::check(ctn_module_visit(m.get(), detail::visit_array<G>, detail::user(f)));
}

// f(name, dtype, shape, data) for the state of an optimizer.
template <class F> void visit(OptimRef o, F &&f)
{
    using G = std::remove_reference_t<F>;
    detail::check(ctn_optim_visit(o.get(), detail::visit_array<G>, detail::user(f)));
}

// f(name, module) for a module and all of its descendants.
template <class F> void visit_modules(ModuleRef m, F &&f)
{
    using G = std::remove_reference_t<F>;
    detail::check(ctn_module_visit_modules(m.get(), detail::guarded<G, const char *, ctn_module *>,
                                           detail::user(f)));
}

// f(node) for each kernel of the last plan that ran; node is a const ctn_plan_node *.
template <class F> void visit_plan(ContextRef ctx, F &&f)
{
    using G = std::remove_reference_t<F>;
    detail::check(ctn_context_visit_plan(ctx.get(), detail::guarded<G, const ctn_plan_node *>,
                                         detail::user(f)));
}

// f(file, key, value) for each file of tuning results, with key NULL, and for each of its entries.
template <class F> void visit_tuning(F &&f)
{
    using G = std::remove_reference_t<F>;
    detail::check(
        ctn_tune_visit(detail::guarded<G, const ctn_tune_file *, const char *, const char *>,
                       detail::user(f)));
}

} // namespace catena
#endif
