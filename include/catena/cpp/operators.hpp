// SPDX-License-Identifier: Apache-2.0
//
// Operators on tensors, and on a tensor and a number. Each records the op of that name; the source
// line is found by the conversion of an operand, because operators take no default arguments.
#ifndef CATENA_CPP_OPERATORS_HPP
#define CATENA_CPP_OPERATORS_HPP

#include <catena/cpp/generated.hpp>

namespace catena
{
namespace detail
{

struct Operand {
    Operand(const Tensor &t, Where at_ = Where::here()) : tensor(t), at(at_)
    {
    }
    Tensor tensor;
    Where at;
};

} // namespace detail

[[nodiscard]] inline Tensor operator+(detail::Operand a, const Tensor &b)
{
    return add(a.tensor, b, a.at);
}
[[nodiscard]] inline Tensor operator-(detail::Operand a, const Tensor &b)
{
    return sub(a.tensor, b, a.at);
}
[[nodiscard]] inline Tensor operator*(detail::Operand a, const Tensor &b)
{
    return mul(a.tensor, b, a.at);
}
[[nodiscard]] inline Tensor operator/(detail::Operand a, const Tensor &b)
{
    return div(a.tensor, b, a.at);
}
[[nodiscard]] inline Tensor operator-(detail::Operand x)
{
    return neg(x.tensor, x.at);
}

// The number may change from step to step without a new plan.
[[nodiscard]] inline Tensor operator+(detail::Operand x, double a)
{
    return shift(x.tensor, a, x.at);
}
[[nodiscard]] inline Tensor operator+(double a, detail::Operand x)
{
    return shift(x.tensor, a, x.at);
}
[[nodiscard]] inline Tensor operator-(detail::Operand x, double a)
{
    return shift(x.tensor, -a, x.at);
}
[[nodiscard]] inline Tensor operator-(double a, detail::Operand x)
{
    return shift(neg(x.tensor, x.at), a, x.at);
}
[[nodiscard]] inline Tensor operator*(detail::Operand x, double a)
{
    return scale(x.tensor, a, x.at);
}
[[nodiscard]] inline Tensor operator*(double a, detail::Operand x)
{
    return scale(x.tensor, a, x.at);
}
[[nodiscard]] inline Tensor operator/(detail::Operand x, double a) // x times 1 / a
{
    return scale(x.tensor, 1 / a, x.at);
}
[[nodiscard]] inline Tensor operator/(double a, detail::Operand x) // a times x^-1
{
    return scale(power(x.tensor, -1, x.at), a, x.at);
}

// Comparisons element by element: a tensor of bool, not a bool.
[[nodiscard]] inline Tensor operator<(detail::Operand a, const Tensor &b)
{
    return less(a.tensor, b, a.at);
}
[[nodiscard]] inline Tensor operator<=(detail::Operand a, const Tensor &b)
{
    return less_equal(a.tensor, b, a.at);
}
[[nodiscard]] inline Tensor operator>(detail::Operand a, const Tensor &b)
{
    return greater(a.tensor, b, a.at);
}
[[nodiscard]] inline Tensor operator>=(detail::Operand a, const Tensor &b)
{
    return greater_equal(a.tensor, b, a.at);
}
[[nodiscard]] inline Tensor operator==(detail::Operand a, const Tensor &b)
{
    return equal(a.tensor, b, a.at);
}
[[nodiscard]] inline Tensor operator!=(detail::Operand a, const Tensor &b)
{
    return not_equal(a.tensor, b, a.at);
}

} // namespace catena
#endif
