// SPDX-License-Identifier: Apache-2.0
//
// Tensors: views of values of the recorded program, which belong to the scope they were recorded
// in. A Tensor is one pointer and is copied freely.
#ifndef CATENA_CPP_TENSOR_HPP
#define CATENA_CPP_TENSOR_HPP

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <catena/cpp/error.hpp>
#include <catena/cpp/views.hpp>
#include <catena/tensor.h>

namespace catena
{

// The data type of a C++ type: dtype_of<float>() is CTN_F32.
template <class T> constexpr ctn_dtype dtype_of()
{
    using U = std::remove_cv_t<T>;
    if constexpr (std::is_same_v<U, float>) return CTN_F32;
    else if constexpr (std::is_same_v<U, double>) return CTN_F64;
    else if constexpr (std::is_same_v<U, bool>) return CTN_BOOL;
    else if constexpr (std::is_integral_v<U> && std::is_signed_v<U> && sizeof(U) == 8)
        return CTN_I64;
    else if constexpr (std::is_integral_v<U> && std::is_signed_v<U> && sizeof(U) == 4)
        return CTN_I32;
    else {
        static_assert(std::is_same_v<U, std::uint8_t>, "tensors have no elements of this type");
        return CTN_U8;
    }
}

class Tensor
{
public:
    constexpr Tensor() = default;
    constexpr Tensor(ctn_tensor *t) : t_(t)
    {
    }
    Tensor(int) = delete; // x < 0: compare with number(ctx, 0)
    constexpr ctn_tensor *get() const
    {
        return t_;
    }
    explicit constexpr operator bool() const
    {
        return t_ != nullptr;
    }

    int ndim() const
    {
        return ctn_ndim(t_);
    }
    std::int64_t dim(int axis) const // axis < 0 counts from the end
    {
        return ctn_dim(t_, axis);
    }
    std::int64_t count() const
    {
        return ctn_count(t_);
    }
    ctn_dtype dtype() const
    {
        return ctn_dtype_of(t_);
    }
    std::vector<std::int64_t> shape() const
    {
        std::vector<std::int64_t> dims;
        for (int i = 0; i < ndim(); i++) dims.push_back(dim(i));
        return dims;
    }

    // The only element as a number. Runs what was recorded, as do the functions below.
    double item() const
    {
        const double value = ctn_item(t_);
        if (std::isnan(value)) detail::check_record();
        return value;
    }
    // A copy of the values, row-major.
    template <class T> std::vector<T> read() const
    {
        expect<T>();
        std::vector<T> values(static_cast<std::size_t>(count()));
        detail::check(ctn_read(t_, values.data(), values.size() * sizeof(T)));
        return values;
    }
    // The values themselves, row-major, valid until the outermost scope ends.
    template <class T> Span<const T> view() const
    {
        expect<T>();
        const void *data = ctn_data(t_);
        if (!data) detail::check_record();
        return {static_cast<const T *>(data), static_cast<std::size_t>(count())};
    }
    // Shape and values as text, shortened if there are many.
    std::string text() const
    {
        std::string text(512, '\0');
        const int n = detail::check_number(ctn_tensor_text(t_, text.data(), text.size()));
        const auto length = static_cast<std::size_t>(n);
        if (length >= text.size()) {
            text.resize(length + 1);
            detail::check_number(ctn_tensor_text(t_, text.data(), text.size()));
        }
        text.resize(length);
        return text;
    }

private:
    template <class T> void expect() const
    {
        if (!t_) detail::raise(CTN_EARG);
        if (dtype() != dtype_of<T>())
            throw Error(CTN_EDTYPE, std::string("the tensor is ") + ctn_dtype_name(dtype()) +
                                        ", but " + ctn_dtype_name(dtype_of<T>()) +
                                        " was asked for: cast() it, or read its own type");
    }
    ctn_tensor *t_ = nullptr;
};
static_assert(sizeof(Tensor) == sizeof(ctn_tensor *) && std::is_trivially_copyable_v<Tensor>,
              "lists of tensors are passed to C as lists of pointers");

} // namespace catena
#endif
