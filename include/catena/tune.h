/* SPDX-License-Identifier: Apache-2.0
 *
 * What tuning left on disk: where several kernels can do a piece of work, the choice is timed once and
 * kept in a folder (CATENA_CACHE_DIR, else catena in XDG_CACHE_HOME, else in HOME/.cache, else in TMPDIR), one
 * file for each machine, version and number of threads. For `catena tune` and programs of that kind; contexts
 * use the files by themselves.
 */
#ifndef CATENA_TUNE_H
#define CATENA_TUNE_H

#include <catena/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The folder by the environment of now, "" when there is none. Local. Result: its length, as snprintf gives it,
 * < 0 on error (ENOMEM). */
CTN_API int ctn_tune_folder(char *buf, size_t n);

/* One file. machine is NULL when it is damaged or of another version: it then counts as empty. */
typedef struct {
    const char *path, *machine;
    int64_t entries, bytes;
    int64_t modified; /* seconds since 1970 */
} ctn_tune_file;

/* Called for each file with key NULL, then for each of its entries. Everything is borrowed during the call. */
typedef ctn_status (*ctn_tune_fn)(void *user, const ctn_tune_file *file, const char *key,
                                  const char *value);

/* Visit all files, the newest first; a folder that does not exist has none. Ends with the first call of fn
 * that does not return CTN_OK. Local. Errors: EIO, ENOMEM, what fn returns. */
CTN_API CTN_MUST_CHECK ctn_status ctn_tune_visit(ctn_tune_fn fn, void *user);

/* Remove all files; *files (may be NULL) is how many there were. What a running program has read stays with it.
 * Local. Errors: EIO, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_tune_clear(int64_t *files);

#ifdef __cplusplus
}
#endif
#endif
