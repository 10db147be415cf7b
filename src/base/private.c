/* SPDX-License-Identifier: Apache-2.0
 *
 * Folders whose files the library believes: only their owner may be able to change them. In a
 * shared place such as /tmp, anybody can make a folder of a known name first and fill it.
 */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

bool ctn__is_private(const struct stat *info)
{
    return info->st_uid == geteuid() && !(info->st_mode & (S_IWGRP | S_IWOTH));
}

/* A link counts as its owner's choice, so it must be the user's own too. */
bool ctn__private_folder(const char *path)
{
    struct stat named, info;
    return lstat(path, &named) == 0 && named.st_uid == geteuid() && stat(path, &info) == 0 &&
           S_ISDIR(info.st_mode) && ctn__is_private(&info);
}

ctn_status ctn__need_private(const char *who, const char *path)
{
    ctn_status st = ctn__make_folder(path, 0700);
    if (st == CTN_EIO)
        return ctn_fail(st, "%s: cannot create the folder %s: %s", who, path, strerror(errno));
    if (st < 0 || ctn__private_folder(path)) return st;
    return ctn_fail(CTN_EIO,
                    "%s: others can change the files in %s, expected a folder that belongs to you "
                    "and that nobody else can write to: remove it, make it private (chmod go-w), "
                    "or give another folder",
                    who, path);
}
