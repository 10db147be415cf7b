/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of newer C++ libraries, for the portable archive and the wheel, as libc.c has those of
 * newer C libraries. oneDNN needs them. It must work with the C++ library of the system, because
 * another package of the same process may have loaded that one already.
 */
#include <cxxabi.h>
#include <exception>
#include <ios>
#include <new>
#include <sstream>

namespace std
{
void ios_base_library_init();
void __throw_bad_array_new_length();
} // namespace std
extern "C" {
[[noreturn]] void __cxa_call_terminate(void *thrown);

/* Members under their names for the linker, because the headers define them in another way. C1 is a
 * constructor, D1 a destructor; the last two exist in every C++ library. */
void _ZNSt7__cxx1118basic_stringstreamIcSt11char_traitsIcESaIcEEC1Ev(void *self);
void _ZNSt15__exception_ptr13exception_ptr9_M_addrefEv(void *self);
void _ZNSt15__exception_ptr13exception_ptr10_M_releaseEv(void *self);
void _ZNSt15__exception_ptr13exception_ptrC1ERKS0_(void *self, const void *other);
void _ZNSt15__exception_ptr13exception_ptrD1Ev(void *self);
}

/* Makes cin, cout and cerr usable. Older libraries count the objects of this class for that. */
void std::ios_base_library_init()
{
    static const ios_base::Init streams;
}

/* Called when an exception leaves a noexcept function. */
extern "C" [[noreturn]] void __cxa_call_terminate(void *thrown)
{
    if (thrown) __cxxabiv1::__cxa_begin_catch(thrown);
    std::terminate();
}

/* Called when the number of elements in a new[] is too large. */
void std::__throw_bad_array_new_length()
{
    throw bad_array_new_length();
}

/* stringstream() */
extern "C" void _ZNSt7__cxx1118basic_stringstreamIcSt11char_traitsIcESaIcEEC1Ev(void *self)
{
    new (self) std::stringstream(std::ios_base::in | std::ios_base::out);
}

/* exception_ptr::_M_addref(): a copy that is never destroyed counts one more. */
extern "C" void _ZNSt15__exception_ptr13exception_ptr9_M_addrefEv(void *self)
{
    void *copy;
    _ZNSt15__exception_ptr13exception_ptrC1ERKS0_(&copy, self);
}

/* exception_ptr::_M_release(): counts one less and forgets the exception. */
extern "C" void _ZNSt15__exception_ptr13exception_ptr10_M_releaseEv(void *self)
{
    _ZNSt15__exception_ptr13exception_ptrD1Ev(self);
    *static_cast<void **>(self) = nullptr;
}
