// SPDX-License-Identifier: Apache-2.0
//
// Datasets, transformations and orders of samples written in C++.
#ifndef CATENA_CPP_DATA_HPP
#define CATENA_CPP_DATA_HPP

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <catena/cpp/generated.hpp>

namespace catena
{

// Type and shape of one field of a sample: field(CTN_F32, {28, 28}).
inline ctn_field field(ctn_dtype dtype, Shape shape)
{
    ctn_field out = {};
    out.dtype = dtype;
    out.ndim = static_cast<int>(shape.size());
    detail::fill(out.shape, shape);
    return out;
}

namespace detail
{

// A dataset that calls F. Loader threads call get, so an exception there becomes a status with its
// text: EIO, unless it is an Error.
template <class F> struct Samples {
    std::int64_t samples;
    std::vector<ctn_field> fields;
    F f;

    static ctn_dataset_vt functions()
    {
        ctn_dataset_vt vt = {};
        vt.struct_size = sizeof vt;
        vt.count = [](void *self) { return of(self).samples; };
        vt.fields = [](void *self) { return static_cast<int>(of(self).fields.size()); };
        vt.field = [](void *self, int i, ctn_field *out) {
            *out = of(self).fields[static_cast<std::size_t>(i)];
        };
        vt.get = get;
        vt.free = [](void *self) { delete &of(self); };
        return vt;
    }

private:
    static Samples &of(void *self)
    {
        return *static_cast<Samples *>(self);
    }
    static ctn_status get(void *self, const ctn_sample *s, void *const *dst) noexcept
    {
        try {
            of(self).f(*s, dst);
            return CTN_OK;
        } catch (...) {
            return record_exception(CTN_EIO);
        }
    }
};

} // namespace detail

// A dataset of `count` samples. get(sample, dst) writes sample.index to dst[0], dst[1], ..., one
// for each field, and throws if it cannot. It is called from several threads at once. The dataset
// owns get.
template <class F> Dataset dataset(std::int64_t count, Span<const ctn_field> fields, F get)
{
    using Samples = detail::Samples<F>;
    std::unique_ptr<Samples> self(
        new Samples{count, std::vector<ctn_field>(fields.begin(), fields.end()), std::move(get)});
    const ctn_dataset_vt functions = Samples::functions();
    ctn_dataset *ds = nullptr;
    detail::check(ctn_dataset_new(&ds, &functions, self.get()));
    static_cast<void>(self.release());
    return Dataset(ds);
}

// The samples of another dataset, changed by f(sample, src, dst), which is called from several
// threads at once and must outlive the result.
template <class F> Dataset transform(Dataset base, Span<const ctn_field> fields, F &f)
{
    const ctn_transform_fn call = [](void *user, const ctn_sample *s, void *const *src,
                                     void *const *dst) noexcept -> ctn_status {
        try {
            (*static_cast<F *>(user))(*s, src, dst);
            return CTN_OK;
        } catch (...) {
            return detail::record_exception(CTN_EIO);
        }
    };
    ctn_dataset *ds = nullptr;
    detail::check(ctn_dataset_transform(&ds, base.get(), static_cast<int>(fields.size()),
                                        fields.data(), call, &f));
    static_cast<void>(base.release());
    return Dataset(ds);
}

// An order of your own: f(at) is the sample at a position of an epoch. It must not throw, and must
// outlive the sampler and the loaders made with it.
template <class F> Sampler sampler(std::int64_t count, const F &f, std::uint64_t seed)
{
    static_assert(std::is_nothrow_invocable_r_v<std::int64_t, const F &, const ctn_sampler_state &>,
                  "an order of samples has to be noexcept");
    const ctn_sampler_fn call = [](void *user, const ctn_sampler_state *at) noexcept {
        return static_cast<std::int64_t>((*static_cast<const F *>(user))(*at));
    };
    ctn_sampler *s = nullptr;
    detail::check(ctn_sampler_new(&s, count, call, const_cast<F *>(&f), seed));
    return Sampler(s);
}

} // namespace catena
#endif
