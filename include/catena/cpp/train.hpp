// SPDX-License-Identifier: Apache-2.0
//
// The trainer with loss functions and extensions written in C++.
#ifndef CATENA_CPP_TRAIN_HPP
#define CATENA_CPP_TRAIN_HPP

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <catena/cpp/generated.hpp>

namespace catena
{

// Records the forward pass and the loss of one batch.
using Loss = std::function<Tensor(StepRef)>;

// When an extension is called: trigger(CTN_EVERY_EPOCHS, 1).
inline ctn_trigger trigger(ctn_trigger_kind kind, double n = 1, const char *key = nullptr)
{
    return {kind, n, key, {}, 0};
}

namespace detail
{

inline ctn_tensor *call_loss(void *self, ctn_step *s) noexcept
{
    try {
        return (*static_cast<const Loss *>(self))(StepRef(s)).get();
    } catch (...) {
        record_exception(CTN_EARG);
        return nullptr;
    }
}

using Extension = std::function<void(TrainerRef)>;

inline ctn_status call_extension(void *self, ctn_trainer *tr) noexcept
{
    try {
        (*static_cast<const Extension *>(self))(TrainerRef(tr));
        return CTN_OK;
    } catch (...) {
        return record_exception(CTN_EARG);
    }
}

inline ctn_status keep_value(void *user, const char *name, double value) noexcept
{
    try {
        (*static_cast<std::map<std::string, double> *>(user))[name] = value;
        return CTN_OK;
    } catch (...) {
        return record_exception(CTN_ENOMEM);
    }
}

} // namespace detail

// The owner of a trainer and of its loss functions. The optimizer and the loaders must outlive it.
class Trainer : public Owner<TrainerRef, ctn_trainer_free>
{
public:
    using Owner::Owner;
    Trainer() = default;
    Trainer(OptimRef opt, LoaderRef loader, Loss loss, Maybe<ctn_trainer_opt> o = {})
    {
        ctn_trainer *tr = nullptr;
        void *self = keep(std::move(loss));
        detail::check(
            ctn_trainer_new(&tr, opt.get(), loader.get(), detail::call_loss, self, o.get()));
        reset(tr);
    }
    // Evaluate on another loader, with the loss of the training or with another one.
    void evaluate(LoaderRef loader, Maybe<ctn_trigger> when = {})
    {
        evaluate_with(loader, losses_.front().get(), when);
    }
    void evaluate(LoaderRef loader, Loss loss, Maybe<ctn_trigger> when = {})
    {
        evaluate_with(loader, keep(std::move(loss)), when);
    }
    // Call a function when the trigger fires. What it throws ends the run, and run() throws it.
    void extend(Text name, detail::Extension call, const ctn_trigger &when,
                int priority = CTN_PRIORITY_SHOW)
    {
        auto self = std::make_unique<detail::Extension>(std::move(call));
        ctn_extension e = {};
        e.struct_size = sizeof e;
        e.name = name.get();
        e.priority = priority;
        e.trigger = when;
        e.call = detail::call_extension;
        e.release = [](void *p) { delete static_cast<detail::Extension *>(p); };
        e.self = self.get();
        TrainerRef::extend(e);
        static_cast<void>(self.release());
    }
    using TrainerRef::extend;

private:
    void *keep(Loss loss)
    {
        losses_.push_back(std::make_unique<Loss>(std::move(loss)));
        return losses_.back().get();
    }
    void evaluate_with(LoaderRef loader, void *loss, Maybe<ctn_trigger> when)
    {
        detail::check(
            ctn_extend_evaluator(get(), when.get(), loader.get(), detail::call_loss, loss));
    }
    std::vector<std::unique_ptr<Loss>> losses_;
};

// Evaluate once: the mean of everything that the loss function reports, by name.
inline std::map<std::string, double> evaluate(ContextRef ctx, LoaderRef loader, Loss loss)
{
    std::map<std::string, double> values;
    detail::check(ctn_evaluate(ctx.get(), loader.get(), detail::call_loss, &loss,
                               detail::keep_value, &values));
    return values;
}

// The same over the samples of all ranks.
inline std::map<std::string, double> evaluate(CommRef c, ContextRef ctx, LoaderRef loader,
                                              Loss loss)
{
    std::map<std::string, double> values;
    detail::check(ctn_dist_evaluate(c.get(), ctx.get(), loader.get(), detail::call_loss, &loss,
                                    detail::keep_value, &values));
    return values;
}

} // namespace catena
#endif
