/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of newer C++ libraries, for the wheel, as libc.c has those of newer C libraries. oneDNN
 * in the wheel needs them. It must work with the C++ library of the system, because another package
 * of the same process may have loaded that one already.
 */
#include <cxxabi.h>
#include <exception>
#include <ios>

namespace std
{
void ios_base_library_init();
}
extern "C" [[noreturn]] void __cxa_call_terminate(void *thrown);

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
