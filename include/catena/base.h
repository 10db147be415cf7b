/* SPDX-License-Identifier: Apache-2.0
 *
 * Status codes, the error record, versions and the macros that every other header uses.
 *
 * There are two kinds of functions:
 *   - Expressions, such as ctn_relu(x), return a pointer. They return NULL if an argument is NULL
 *     or if they fail, so a chain of them needs only one check at its end.
 *   - Actions, such as ctn_optim_step(opt), return a ctn_status: 0 is success, a positive value
 *     (CTN_END) is not an error, a negative value is an error. The compiler warns if the status of
 *     a function marked CTN_MUST_CHECK is ignored.
 * The first error of a thread is kept until ctn_error_clear(). The library never exits or aborts.
 * It prints nothing, except through extensions that you add to a trainer (catena/train.h). Before
 * version 1.0 the ABI may change.
 *
 * Words that the comments of all headers use (docs/api-conventions.md has the rules for names):
 *   Local            The function does not communicate. One rank may call it without the others.
 *   Collective       All ranks of the communicator must call it, in the same order.
 *   Result: owned    The caller must free the result.
 *   Result: borrowed The result belongs to the library; the comment says how long it stays valid.
 *   Result: scope    The tensor is valid until the scope in which it was recorded ends.
 *   Errors: EARG ... The status codes that the function may return, or record if it returns a
 *                    pointer, without the prefix CTN_. ENOMEM is possible wherever memory is
 *                    allocated and is not always listed.
 *   0: X, NULL: X    In the comment of a field or argument: 0 or NULL means X.
 *   rule N           One of the numbered rules in ARCHITECTURE.md, "Rules of the core".
 */
#ifndef CATENA_BASE_H
#define CATENA_BASE_H

#include <stddef.h>
#include <stdint.h>

#define CTN_VERSION_MAJOR 0
#define CTN_VERSION_MINOR 1
#define CTN_VERSION_PATCH 0
#define CTN_VERSION (CTN_VERSION_MAJOR * 10000 + CTN_VERSION_MINOR * 100 + CTN_VERSION_PATCH)

#if defined(__GNUC__)
#define CTN_API __attribute__((visibility("default")))
#define CTN_MUST_CHECK __attribute__((warn_unused_result))
#define CTN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define CTN_API
#define CTN_MUST_CHECK
#define CTN_PRINTF(fmt, args)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The table of all status codes: name, value, meaning. */
#define CTN_STATUS_TABLE(X)                                           \
    X(CTN_OK, 0, "ok")                                                \
    X(CTN_END, 1, "end of data")                                      \
    X(CTN_ENOMEM, -1, "out of memory")                                \
    X(CTN_EARG, -2, "invalid argument")                               \
    X(CTN_ESHAPE, -3, "shapes do not fit")                            \
    X(CTN_EDTYPE, -4, "data type not supported here")                 \
    X(CTN_EGONE, -5, "value is gone: keep it before the step")        \
    X(CTN_ESTATE, -6, "call out of order")                            \
    X(CTN_EIO, -7, "input or output failed")                          \
    X(CTN_EFORMAT, -8, "malformed file")                              \
    X(CTN_EUNSUPPORTED, -9, "not supported by this build or machine") \
    X(CTN_EENGINE, -10, "the compute engine failed")                  \
    X(CTN_ENOTFOUND, -11, "no such name")                             \
    X(CTN_EGRAD, -12, "cannot be differentiated")                     \
    X(CTN_ENONFINITE, -13, "not finite")                              \
    X(CTN_EPEER, -14, "another rank failed")

typedef enum {
#define CTN_STATUS_ENUM(name, value, text) name = value,
    CTN_STATUS_TABLE(CTN_STATUS_ENUM)
#undef CTN_STATUS_ENUM
} ctn_status;

/* A short, fixed description of a status. Local. Result: borrowed forever. */
CTN_API const char *ctn_status_text(ctn_status st);

/* The first error message of this thread since the last ctn_error_clear, followed by a trace of
 * the CTN_TRY lines that passed it on; "" if there is none. Local. Result: borrowed until the
 * next error or clear on this thread. */
CTN_API const char *ctn_error_message(void);

/* The status that belongs to ctn_error_message(), CTN_OK if there is no error. Local. */
CTN_API ctn_status ctn_error_status(void);

/* Forget the error of this thread. Local. */
CTN_API void ctn_error_clear(void);

/* Record an error on this thread, unless there is one already, and return st. For custom ops
 * and bindings. Local. */
CTN_API ctn_status ctn_fail(ctn_status st, const char *fmt, ...) CTN_PRINTF(2, 3);

/* Add one line to the trace of the current error, if st is its status, and return st. Used by
 * CTN_TRY. Local. */
CTN_API ctn_status ctn_error_trace(ctn_status st, const char *file, int line, const char *func);

/* Library version as a number (CTN_VERSION of the library) and as text. Local. Result: the text is
 * borrowed forever. */
CTN_API int ctn_version(void);
CTN_API const char *ctn_version_text(void);

/* The functions through which Catena allocates all of its own memory. alloc may return NULL;
 * align is a power of two; release accepts NULL. */
typedef struct {
    void *(*alloc)(void *user, size_t bytes, size_t align);
    void (*release)(void *user, void *p);
    void *user;
} ctn_allocator;

/* Replace the memory functions; a NULL: restore the defaults. Call it only while nothing is
 * allocated and no other thread is inside the library. Local; process-wide. Errors: ESTATE,
 * EARG (a function is NULL). */
CTN_API ctn_status ctn_set_allocator(const ctn_allocator *a);

/* Number of allocations that Catena has made so far on all threads, not counting oneDNN's own.
 * Local. */
CTN_API uint64_t ctn_allocations(void);

/* If an action fails, add a line to the trace and return its status. */
#define CTN_TRY(call)                                                                     \
    do {                                                                                  \
        ctn_status ctn_try_ = (call);                                                     \
        if (ctn_try_ < 0) return ctn_error_trace(ctn_try_, __FILE__, __LINE__, __func__); \
    } while (0)

/* The same for functions that have to clean up: always sets st; on failure, jumps to label. */
#define CTN_TRY_GOTO(st, label, call)                            \
    do {                                                         \
        (st) = (call);                                           \
        if ((st) < 0) {                                          \
            ctn_error_trace((st), __FILE__, __LINE__, __func__); \
            goto label;                                          \
        }                                                        \
    } while (0)

/* Passes optional arguments: CTN_OPT(ctn_linear_opt, .no_bias = 1). C only. In C++,
 * catena/catena.hpp has a class with setters for each of these structs. */
#define CTN_OPT(type, ...) (&(const type){.struct_size = sizeof(type), __VA_ARGS__})

#define CTN_STR2(x) #x
#define CTN_STR(x) CTN_STR2(x)
/* The user's source line. Functions whose names end in _at take it as their first argument, and
 * a macro without the suffix passes it: ctn_tanh(x) is ctn_tanh_at(CTN_HERE, x). Call the
 * macro. Use the _at form where a function pointer is needed, or to pass a source line of your
 * own; that string must live as long as the context. */
#define CTN_HERE __FILE__ ":" CTN_STR(__LINE__)

#ifdef __cplusplus
}
#endif
#endif
