// SPDX-License-Identifier: Apache-2.0
//
// Objects of the library. Each kind has two classes: ModuleRef refers to a module that somebody
// else owns, Module owns one and frees it. Functions take references, and an owner converts to
// one. Both are one pointer.
#ifndef CATENA_CPP_HANDLE_HPP
#define CATENA_CPP_HANDLE_HPP

#include <type_traits>
#include <utility>

namespace catena
{

// A reference to an object, like a pointer: copied freely, may be empty.
template <class T> class Ref
{
public:
    using Raw = T;
    constexpr Ref() = default;
    constexpr Ref(T *object) : object_(object)
    {
    }
    constexpr T *get() const
    {
        return object_;
    }
    explicit constexpr operator bool() const
    {
        return object_ != nullptr;
    }

protected:
    T *object_ = nullptr;
};

// The owner of an object: moved, never copied. R is the class of references, F frees the object.
template <class R, void (*F)(typename R::Raw *)> class Owner : public R
{
public:
    using Raw = typename R::Raw;
    Owner() = default;
    // Takes over an object that a C function has made.
    explicit Owner(Raw *object) : R(object)
    {
    }
    Owner(Owner &&other) noexcept : R(other.release())
    {
    }
    Owner &operator=(Owner &&other) noexcept
    {
        if (this != &other) reset(other.release());
        return *this;
    }
    Owner(const Owner &) = delete;
    Owner &operator=(const Owner &) = delete;
    ~Owner()
    {
        F(this->object_);
    }
    // Give up the object: the caller must free it.
    [[nodiscard]] Raw *release() noexcept
    {
        return std::exchange(this->object_, nullptr);
    }
    // Free the object now, and own another one instead.
    void reset(Raw *object = nullptr) noexcept
    {
        F(std::exchange(this->object_, object));
    }
};

} // namespace catena
#endif
