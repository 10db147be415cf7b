/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the folder of --data before training takes its folders for classes: each must contain
 * photos, and there must be at least two. The messages name the usual mistakes: a path one level
 * too high or too low, or a result folder among the classes.
 */
#include <dirent.h>
#include <string.h>

#include "task.h"

typedef struct {
    int64_t with, without; /* folders */
    char class[256], empty[256];
    char deeper[256]; /* a folder without photos whose subfolders have some */
} survey;

static bool has_photos(const char *path)
{
    DIR *d = opendir(path);
    bool found = false;
    for (struct dirent *e; d && !found && (e = readdir(d));)
        found = e->d_name[0] != '.' && e->d_type != DT_DIR && is_image(e->d_name);
    if (d) closedir(d);
    return found;
}

static bool folders_have_photos(const char *path)
{
    char below[4096];
    DIR *d = opendir(path);
    bool found = false;
    for (struct dirent *e; d && !found && (e = readdir(d));)
        found = e->d_name[0] != '.' && is_folder(join(below, sizeof below, path, e->d_name)) &&
                has_photos(below);
    if (d) closedir(d);
    return found;
}

static void note(char *to, size_t n, const char *name)
{
    if (!to[0] || strcmp(name, to) < 0) snprintf(to, n, "%s", name);
}

static void look(survey *s, const char *path)
{
    char below[4096];
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.' || !is_folder(join(below, sizeof below, path, e->d_name))) continue;
        if (has_photos(below)) {
            s->with++;
            note(s->class, sizeof s->class, e->d_name);
            continue;
        }
        s->without++;
        note(s->empty, sizeof s->empty, e->d_name);
        if (folders_have_photos(below)) note(s->deeper, sizeof s->deeper, e->d_name);
    }
    if (d) closedir(d);
}

ctn_status check_class_folders(const char *path)
{
    survey s = {0};
    look(&s, path);
    if (s.with == 0 && s.deeper[0])
        return ctn_fail(CTN_ENOTFOUND,
                        "%s: the photos are one level deeper: did you mean --data %s/%s?", path,
                        path, s.deeper);
    if (s.with == 0)
        return ctn_fail(
            CTN_ENOTFOUND,
            "%s: no JPEG or PNG files in its folders; --data needs one folder per class", path);
    if (s.without > 0)
        return ctn_fail(
            CTN_EARG,
            "%s: the folder %s has no photos, but every folder here is a class: move it "
            "elsewhere%s",
            path, s.empty, s.without > 1 ? ", along with the other folders without photos" : "");
    if (s.with == 1)
        return ctn_fail(
            CTN_EARG,
            "%s: %s is the only class; training needs at least two, each in its own folder", path,
            s.class);
    return CTN_OK;
}
