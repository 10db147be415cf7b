/* SPDX-License-Identifier: Apache-2.0
 *
 * Removes what a test has written.
 */
#ifndef CTN_TESTS_FOLDER_H
#define CTN_TESTS_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A folder and all that is in it. */
static inline void remove_all(const char *dir)
{
    char path[600];
    DIR *d = opendir(dir);
    for (const struct dirent *e; d && (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (snprintf(path, sizeof path, "%s/%s", dir, e->d_name) >= (int)sizeof path) continue;
        if (e->d_type == DT_DIR) remove_all(path);
        else unlink(path);
    }
    if (d) closedir(d);
    rmdir(dir);
}

#endif
