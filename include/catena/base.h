/* SPDX-License-Identifier: Apache-2.0
 *
 * Status codes, the error record, versions and the macros every other header uses.
 *
 * Contract: expressions return a pointer, NULL in gives NULL out, and the first message is kept per
 * thread; actions return ctn_status (0 ok, > 0 not an error, < 0 error) and must be checked. The
 * library never exits, aborts or prints. Before 1.0 the ABI is not frozen.
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

/* name, value, meaning: the one table of status codes */
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

/* Short fixed text of a status. Local. Result: borrowed forever. */
CTN_API const char *ctn_status_text(ctn_status st);

/* The first error message of this thread since the last clear, "" if none; a trace of the CTN_TRY
 * lines it passed follows it. Local. Result: borrowed until the next error or clear of this thread.
 * */
CTN_API const char *ctn_error_message(void);

/* Status that belongs to ctn_error_message(), CTN_OK if none. Local. */
CTN_API ctn_status ctn_error_status(void);

/* Forget the error of this thread. Local. */
CTN_API void ctn_error_clear(void);

/* Record an error on this thread (the first one wins) and return st. For custom ops and bindings.
 * */
CTN_API ctn_status ctn_fail(ctn_status st, const char *fmt, ...) CTN_PRINTF(2, 3);

/* Add one line of trace to the current error and return st unchanged. Used by CTN_TRY. */
CTN_API ctn_status ctn_error_trace(ctn_status st, const char *file, int line, const char *func);

/* Library version as a number (CTN_VERSION of the library) and as text. Local. */
CTN_API int ctn_version(void);
CTN_API const char *ctn_version_text(void);

/* Memory functions for everything Catena allocates itself. alloc may return NULL; align is a power
 * of two; release accepts NULL. */
typedef struct {
    void *(*alloc)(void *user, size_t bytes, size_t align);
    void (*release)(void *user, void *p);
    void *user;
} ctn_allocator;

/* Use other memory functions (NULL: the default ones). Only while nothing is allocated and no other
 * thread is inside the library. Local; process-wide. Errors: ESTATE, EARG (a function is NULL). */
CTN_API ctn_status ctn_set_allocator(const ctn_allocator *a);

/* Allocations made by Catena itself so far, all threads (oneDNN's own are not in it). Local. */
CTN_API uint64_t ctn_allocations(void);

/* Return early with a trace line when an action fails. */
#define CTN_TRY(call)                                                                     \
    do {                                                                                  \
        ctn_status ctn_try_ = (call);                                                     \
        if (ctn_try_ < 0) return ctn_error_trace(ctn_try_, __FILE__, __LINE__, __func__); \
    } while (0)

/* The same with clean-up: st is set and control goes to label. */
#define CTN_TRY_GOTO(st, label, call)                            \
    do {                                                         \
        (st) = (call);                                           \
        if ((st) < 0) {                                          \
            ctn_error_trace((st), __FILE__, __LINE__, __func__); \
            goto label;                                          \
        }                                                        \
    } while (0)

/* Optional arguments: CTN_OPT(ctn_linear_opt, .no_bias = 1). C only; in C++ fill the struct by hand
 * and set struct_size. */
#define CTN_OPT(type, ...) (&(const type){.struct_size = sizeof(type), __VA_ARGS__})

#define CTN_STR2(x) #x
#define CTN_STR(x) CTN_STR2(x)
/* The user's source line, as the *_at functions take it: a string that lives as long as the context.
 * */
#define CTN_HERE __FILE__ ":" CTN_STR(__LINE__)

#ifdef __cplusplus
}
#endif
#endif
