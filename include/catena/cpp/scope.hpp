// SPDX-License-Identifier: Apache-2.0
//
// Guards: a scope, recomputation, evaluation mode. Each ends at the end of its block, also if an
// exception passes through it. Also values that outlive a scope, and the program's memory as input.
#ifndef CATENA_CPP_SCOPE_HPP
#define CATENA_CPP_SCOPE_HPP

#include <exception>
#include <utility>
#include <vector>

#include <catena/cpp/generated.hpp>

namespace catena
{

// The lifetime of the tensors that are recorded while it is open; the outermost one is one step.
// The destructor runs what is still pending and never throws: call end() to see its errors. An
// error in the destructor stays recorded and is thrown by the next call that fails, unless the
// destructor runs because of another exception.
class Scope
{
public:
    explicit Scope(ContextRef ctx) : ctx_(ctx)
    {
        detail::check(ctn_scope_begin(ctx.get()));
    }
    ~Scope()
    {
        if (!ctx_) return;
        const bool failed = ctn_scope_end(ctx_.get()) < 0;
        if (failed && std::uncaught_exceptions() > exceptions_) ctn_error_clear();
    }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;
    void end()
    {
        detail::check(ctn_scope_end(std::exchange(ctx_, ContextRef()).get()));
    }
    // End an inner scope, and let one tensor escape to the scope around it.
    Tensor end_with(const Tensor &t)
    {
        const ContextRef ctx = std::exchange(ctx_, ContextRef());
        return Tensor(detail::check(ctn_scope_return(ctx.get(), t.get())));
    }

private:
    ContextRef ctx_;
    int exceptions_ = std::uncaught_exceptions();
};

// Gradient checkpointing of what is recorded in a block.
class Recompute
{
public:
    explicit Recompute(ContextRef ctx) : ctx_(ctx)
    {
        detail::check(ctn_recompute_begin(ctx.get()));
    }
    ~Recompute()
    {
        if (ctn_recompute_end(ctx_.get()) < 0) ctn_error_clear(); // its scope has ended already
    }
    Recompute(const Recompute &) = delete;
    Recompute &operator=(const Recompute &) = delete;

private:
    ContextRef ctx_;
};

// Evaluation behaviour and no gradients until the end of the block.
class Evaluation
{
public:
    explicit Evaluation(ContextRef ctx)
        : ctx_(ctx), training_(ctx.set_training(0)), grad_(ctx.set_grad(0))
    {
    }
    ~Evaluation()
    {
        ctx_.set_training(training_);
        ctx_.set_grad(grad_);
    }
    Evaluation(const Evaluation &) = delete;
    Evaluation &operator=(const Evaluation &) = delete;

private:
    ContextRef ctx_;
    int training_, grad_;
};

// Save the value of t in r when the outermost scope ends. r may be empty.
inline void retain(Retained &r, const Tensor &t)
{
    ctn_retained *kept = r.release();
    const ctn_status status = ctn_retain(&kept, t.get());
    r.reset(kept);
    detail::check(status);
}

// The program's own memory as a tensor, without a copy. It must stay unchanged until the outermost
// scope ends.
template <class T>
[[nodiscard]] Tensor input(ContextRef ctx, Span<T> data, Shape dims, Where at = Where::here())
{
    std::int64_t count = 1;
    for (const std::int64_t dim : dims) count *= dim;
    if (count != static_cast<std::int64_t>(data.size()))
        throw Error(CTN_ESHAPE, "input: the shape has " + std::to_string(count) +
                                    " elements, the data have " + std::to_string(data.size()));
    return input(ctx, data.data(), dtype_of<T>(), dims, at);
}
template <class T>
[[nodiscard]] Tensor input(ContextRef ctx, const std::vector<T> &data, Shape dims,
                           Where at = Where::here())
{
    return input(ctx, Span<const T>(data), dims, at);
}
template <class T> // the tensor would outlive a temporary
Tensor input(ContextRef ctx, std::vector<T> &&data, Shape dims, Where at = Where::here()) = delete;

} // namespace catena
#endif
