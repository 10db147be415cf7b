/* SPDX-License-Identifier: Apache-2.0
 *
 * Removes a folder that the library has made. A folder from somebody else may contain links, and
 * a link with the name of a saved state must not empty the folder that it points to. Therefore
 * nothing is reached through a link: the folder is opened without following one, and its files are
 * removed relative to what was opened. A link is left alone, because the library makes none.
 */
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"

bool ctn__remove_folder(const char *path, const char *first, bool (*ours)(const char *name))
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        if (fd >= 0) close(fd);
        return false;
    }
    (void)unlinkat(fd, first, 0);
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if (ours(e->d_name)) (void)unlinkat(fd, e->d_name, 0);
    closedir(d);
    return rmdir(path) == 0; /* refuses links, and folders that contain anything else */
}
