// SPDX-License-Identifier: Apache-2.0
//
// Errors as exceptions, in both directions. A failed call throws Error. An exception that leaves a
// function which the library calls becomes a status there, and is thrown again when the call that
// led to it returns, so no exception ever passes through C code.
#ifndef CATENA_CPP_ERROR_HPP
#define CATENA_CPP_ERROR_HPP

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include <catena/base.h>

namespace catena
{

// What a failed call throws: the text of ctn_error_message and the status that belongs to it.
class Error : public std::runtime_error
{
public:
    Error(ctn_status status, const std::string &message)
        : std::runtime_error(message), status_(status)
    {
    }
    ctn_status status() const noexcept
    {
        return status_;
    }

private:
    ctn_status status_;
};

namespace detail
{

// The last exception that left a callback on this thread, and the text it was recorded with.
struct Caught {
    std::exception_ptr exception;
    std::string text;
};

inline Caught &caught()
{
    static thread_local Caught last;
    return last;
}

// Throw the recorded error and forget it. If an exception of a callback caused it, throw that one.
// The library may have recovered from an earlier exception, so the texts are compared: it may have
// put words before the text or cut off its end.
[[noreturn]] inline void raise(ctn_status status)
{
    const Caught last = std::exchange(caught(), Caught());
    std::string text = ctn_error_message();
    if (ctn_error_status() != CTN_OK) status = ctn_error_status();
    else text = std::string(ctn_status_text(status)) + ": an argument is empty, or was moved from";
    ctn_error_clear();
    if (last.exception && text.find(last.text.substr(0, 200)) != std::string::npos)
        std::rethrow_exception(last.exception);
    throw Error(status, text);
}

inline ctn_status record(ctn_status status, const char *text) noexcept
{
    try {
        caught() = {std::current_exception(), text};
    } catch (...) { // no memory for the text: the caller gets an Error
        caught().exception = nullptr;
    }
    ctn_error_clear();
    return ctn_fail(status, "%s", text);
}

// Turn the exception that is being handled into a recorded error. Call it in catch (...).
inline ctn_status record_exception(ctn_status other) noexcept
{
    try {
        throw;
    } catch (const Error &e) {
        return record(e.status(), e.what());
    } catch (const std::bad_alloc &) {
        return record(CTN_ENOMEM, "out of memory in a callback");
    } catch (const std::exception &e) {
        return record(other, e.what());
    } catch (...) {
        return record(other, "a callback threw something that is not a std::exception");
    }
}

// The first error that is recorded on this thread, for functions whose result does not tell.
inline void check_record()
{
    if (ctn_error_status() != CTN_OK) raise(CTN_EARG);
}

inline void check(ctn_status status)
{
    if (status < 0) raise(status);
}

// The result of an expression, which is NULL after an error.
template <class T> T *check(T *result)
{
    if (!result) raise(CTN_EARG);
    return result;
}

// A borrowed result, which is also NULL if there is no such thing.
template <class T> T *check_borrowed(T *result)
{
    if (!result) check_record();
    return result;
}

// A number that is negative after an error.
template <class T> T check_number(T number)
{
    if (number < 0) raise(static_cast<ctn_status>(number));
    return number;
}

} // namespace detail
} // namespace catena
#endif
