// SPDX-License-Identifier: Apache-2.0
//
// All of Catena for C++17, header only: objects that free themselves, errors as exceptions,
// operators, and lambdas where C takes a function and a pointer. It consists of inline functions
// and adds nothing to link. It needs GCC or Clang. docs/cpp.md shows how to use it.
//
// Everything is in namespace catena. Names are those of C without ctn_, and everything of C can be
// used beside it: an object gives its pointer with get().
#ifndef CATENA_CATENA_HPP
#define CATENA_CATENA_HPP

#include <catena/cpp/data.hpp>
#include <catena/cpp/generated.hpp>
#include <catena/cpp/module.hpp>
#include <catena/cpp/operators.hpp>
#include <catena/cpp/scope.hpp>
#include <catena/cpp/train.hpp>
#include <catena/cpp/visit.hpp>

#endif
