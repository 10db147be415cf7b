/* SPDX-License-Identifier: Apache-2.0
 *
 * The results of kernel tuning on disk. Where several kernels can do the same work, they are
 * timed once and the choice is stored in a folder: CATENA_CACHE_DIR, else catena in
 * XDG_CACHE_HOME, in HOME/.cache or in TMPDIR. There is one file for each combination of
 * machine, version and number of threads. Contexts use these files automatically; this header
 * is for tools such as `catena tune`.
 */
#ifndef CATENA_TUNE_H
#define CATENA_TUNE_H

#include <catena/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The folder according to the current environment, "" if there is none. Returns the full
 * length, as snprintf does; < 0 on error (ENOMEM). Local. */
CTN_API int ctn_tune_folder(char *buf, size_t n);

/* One file. machine is NULL if the file is damaged or of another version; it then counts as
 * empty. */
typedef struct {
    const char *path, *machine;
    int64_t entries, bytes;
    int64_t modified; /* seconds since 1970 */
} ctn_tune_file;

/* Called for each file with key NULL, then for each entry of the file. All pointers are
 * borrowed during the call. */
typedef ctn_status (*ctn_tune_fn)(void *user, const ctn_tune_file *file, const char *key,
                                  const char *value);

/* Visit all files, newest first. A folder that does not exist counts as empty. Stops at the
 * first call of fn that does not return CTN_OK. Local. Errors: EIO, ENOMEM, what fn returns. */
CTN_API CTN_MUST_CHECK ctn_status ctn_tune_visit(ctn_tune_fn fn, void *user);

/* Remove all files; *files receives their number (files may be NULL). Running programs keep
 * what they have already read. Local. Errors: EIO, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_tune_clear(int64_t *files);

#ifdef __cplusplus
}
#endif
#endif
