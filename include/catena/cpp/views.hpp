// SPDX-License-Identifier: Apache-2.0
//
// Views of memory that a call reads or writes: one or two words, made from what C++ programs have
// at hand. None of them owns anything; as arguments they live until the call returns.
#ifndef CATENA_CPP_VIEWS_HPP
#define CATENA_CPP_VIEWS_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

namespace catena
{

// Consecutive elements, like std::span of C++20. Span<const T> is read, Span<T> is written.
template <class T> class Span
{
    using Value = std::remove_const_t<T>;
    using Vector =
        std::conditional_t<std::is_const_v<T>, const std::vector<Value>, std::vector<Value>>;

public:
    constexpr Span() = default;
    constexpr Span(T *data, std::size_t size) : data_(data), size_(size)
    {
    }
    Span(Vector &v) : data_(v.data()), size_(v.size())
    {
    }
    template <std::size_t N> constexpr Span(T (&a)[N]) : data_(a), size_(N)
    {
    }
    template <std::size_t N> Span(const std::array<Value, N> &a) : data_(a.data()), size_(N)
    {
    }
    template <std::size_t N> Span(std::array<Value, N> &a) : data_(a.data()), size_(N)
    {
    }
    // For arguments only: the list ends with the call.
    template <class U = T, class = std::enable_if_t<std::is_const_v<U>>>
    constexpr Span(std::initializer_list<Value> list) : Span(list.begin(), list.size())
    {
    }
    constexpr T *data() const
    {
        return data_;
    }
    constexpr std::size_t size() const
    {
        return size_;
    }
    constexpr T *begin() const
    {
        return data_;
    }
    constexpr T *end() const
    {
        return data_ + size_;
    }
    constexpr T &operator[](std::size_t i) const
    {
        return data_[i];
    }

private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

// Lengths of dimensions, or axes: {100, 784}. {} is the shape of a scalar, or all axes.
using Shape = Span<const std::int64_t>;

// An optional struct: leave it out, or pass one, such as AdamOpt().lr(1e-4).
template <class T> class Maybe
{
public:
    constexpr Maybe() = default;
    constexpr Maybe(const T &value) : p_(&value)
    {
    }
    constexpr Maybe(const T *value) : p_(value)
    {
    }
    constexpr const T *get() const
    {
        return p_;
    }

private:
    const T *p_ = nullptr;
};

// Text that ends with 0: a literal or a std::string.
class Text
{
public:
    constexpr Text() = default;
    constexpr Text(const char *text) : p_(text)
    {
    }
    Text(const std::string &text) : p_(text.c_str())
    {
    }
    constexpr const char *get() const
    {
        return p_;
    }

private:
    const char *p_ = nullptr;
};

// A list of texts that ends with NULL in C: {"train/loss", "val/loss"}. Names() is NULL.
class Names
{
public:
    Names() = default;
    Names(std::initializer_list<const char *> names) : list_(names)
    {
        list_.push_back(nullptr);
    }
    const char *const *get() const
    {
        return list_.empty() ? nullptr : list_.data();
    }

private:
    std::vector<const char *> list_;
};

// Memory as bytes: Bytes is read, OutBytes is written.
class Bytes
{
public:
    constexpr Bytes(const void *data, std::size_t size) : data_(data), size_(size)
    {
    }
    template <class T> Bytes(const std::vector<T> &v) : Bytes(v.data(), v.size() * sizeof(T))
    {
    }
    template <class T> constexpr Bytes(Span<T> s) : Bytes(s.data(), s.size() * sizeof(T))
    {
    }
    Bytes(const std::string &s) : Bytes(s.data(), s.size())
    {
    }
    constexpr const void *data() const
    {
        return data_;
    }
    constexpr std::size_t size() const
    {
        return size_;
    }

private:
    const void *data_;
    std::size_t size_;
};

class OutBytes
{
public:
    constexpr OutBytes(void *data, std::size_t size) : data_(data), size_(size)
    {
    }
    template <class T> OutBytes(std::vector<T> &v) : OutBytes(v.data(), v.size() * sizeof(T))
    {
    }
    template <class T> constexpr OutBytes(Span<T> s) : OutBytes(s.data(), s.size() * sizeof(T))
    {
    }
    constexpr void *data() const
    {
        return data_;
    }
    constexpr std::size_t size() const
    {
        return size_;
    }

private:
    void *data_;
    std::size_t size_;
};

} // namespace catena
#endif
