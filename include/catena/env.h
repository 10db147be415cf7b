/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of CATENA_* environment variables with their current values, for tools that list
 * them (`catena info`) and for the generated documentation.
 */
#ifndef CATENA_ENV_H
#define CATENA_ENV_H

#include <catena/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const char *name;   /* CATENA_THREADS */
    const char *type;   /* int, bool or str */
    const char *def;    /* default, as text */
    const char *help;   /* one line */
    const char *value;  /* the value in effect, as text */
    const char *source; /* "environment", "default" or "default (bad text in environment)" */
} ctn_env_entry;

/* Number of variables Catena reads. Local. */
CTN_API int ctn_env_count(void);

/* Variable i, 0 <= i < ctn_env_count(). Local. Result: value is borrowed until the environment
 * changes, the rest forever. Errors: EARG. */
CTN_API CTN_MUST_CHECK ctn_status ctn_env_get(int i, ctn_env_entry *out);

#ifdef __cplusplus
}
#endif
#endif
