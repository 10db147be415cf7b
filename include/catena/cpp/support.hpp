// SPDX-License-Identifier: Apache-2.0
//
// What the generated functions share: lists of objects, and results that grow until they fit.
#ifndef CATENA_CPP_SUPPORT_HPP
#define CATENA_CPP_SUPPORT_HPP

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <catena/cpp/error.hpp>
#include <catena/cpp/tensor.hpp>
#include <catena/cpp/views.hpp>
#include <catena/nn.h>

namespace catena
{
namespace detail
{

// A tensor is one pointer, so a list of tensors is a list of pointers.
inline ctn_tensor *const *pointers(Span<const Tensor> list)
{
    return reinterpret_cast<ctn_tensor *const *>(list.data());
}

template <class T> std::vector<typename T::Raw *> pointers(const std::vector<T> &list)
{
    std::vector<typename T::Raw *> out;
    for (const T &each : list) out.push_back(each.get());
    return out;
}

template <class T> std::vector<typename T::Raw *> pointers(Span<const T> list)
{
    std::vector<typename T::Raw *> out;
    for (const T &each : list) out.push_back(each.get());
    return out;
}

// The library owns these objects now.
template <class T> void release(std::vector<T> &list)
{
    for (T &each : list) static_cast<void>(each.release());
}

template <class T, class Raw> std::vector<T> objects(const std::vector<Raw *> &list)
{
    std::vector<T> out;
    out.reserve(list.size());
    for (Raw *each : list) out.emplace_back(each);
    return out;
}

// A list by value, which is empty after an error.
template <class T> T check_list(T list)
{
    if (list.n == 0) check_record();
    return list;
}

template <class T, std::size_t N> void fill(T (&array)[N], Span<const T> values)
{
    if (values.size() > N)
        throw Error(CTN_EARG, "got " + std::to_string(values.size()) + " values, at most " +
                                  std::to_string(N) + " are possible");
    for (std::size_t i = 0; i < values.size(); i++) array[i] = values[i];
}

// A length as C takes it.
template <class T> T length(std::size_t n)
{
    if (n > static_cast<std::size_t>(std::numeric_limits<T>::max()))
        throw Error(CTN_ESHAPE, "got " + std::to_string(n) + " elements, at most " +
                                    std::to_string(std::numeric_limits<T>::max()) +
                                    " are possible");
    return static_cast<T>(n);
}

// C reads or writes as many elements as another argument or an object has.
inline void same_length(const char *name, std::size_t found, std::int64_t expected, const char *why)
{
    if (static_cast<std::int64_t>(found) != expected)
        throw Error(CTN_ESHAPE, std::string(name) + " has " + std::to_string(found) +
                                    " elements, expected " + std::to_string(expected) + ", " + why);
}

// The base of a class of options: the struct of C with its size filled in.
template <class T> struct Sized : T {
    using Struct = T;
    Sized() : T()
    {
        this->struct_size = sizeof(T);
    }
};

// call() writes as much as fits and returns the length of everything, or a negative status.
template <class V, class F> void grow(V &out, F call)
{
    out.resize(256);
    for (;;) {
        const auto length = static_cast<std::int64_t>(call());
        if (length < 0) raise(static_cast<ctn_status>(length));
        const bool fits = static_cast<std::size_t>(length) <= out.size();
        out.resize(static_cast<std::size_t>(length));
        if (fits) return;
    }
}

// The same for text, which has a 0 at its end that counts as no part of its length.
template <class F> void grow_text(std::string &out, F call)
{
    out.resize(255);
    for (;;) {
        const auto length = static_cast<std::int64_t>(call());
        if (length < 0) raise(static_cast<ctn_status>(length));
        const bool fits = static_cast<std::size_t>(length) < out.size();
        out.resize(static_cast<std::size_t>(length) + (fits ? 0 : 1));
        if (fits) return;
    }
}

} // namespace detail
} // namespace catena
#endif
