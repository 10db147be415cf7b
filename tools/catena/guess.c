/* SPDX-License-Identifier: Apache-2.0
 *
 * Guesses the kind of data at a path from its name and, for a folder, from its content.
 */
#include <dirent.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "task.h"

bool is_image(const char *path)
{
    static const char *const ends[] = {".jpg", ".jpeg", ".png", NULL};
    const char *dot = strrchr(path, '.');
    for (int i = 0; dot && ends[i]; i++)
        if (strcasecmp(dot, ends[i]) == 0) return true;
    return false;
}

bool is_published(const char *path)
{
    char file[4096];
    if (is_folder(path)) return access(join(file, sizeof file, path, "config.json"), R_OK) == 0;
    return ends_with(path, "/config.json");
}

bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool is_small(data_kind kind)
{
    return kind == DATA_CIFAR || kind == DATA_CIFAR100 || kind == DATA_SVHN;
}

/* The first conclusive entry decides. Class folders are assumed only if nothing else matches. */
static data_kind in_folder(const char *path)
{
    data_kind kind = DATA_UNKNOWN;
    char below[4096];
    if (is_folder(join(below, sizeof below, path, "images")) &&
        is_folder(join(below, sizeof below, path, "masks")))
        return DATA_MASKS;
    DIR *d = opendir(path);
    if (!d) return kind;
    for (struct dirent *e; (e = readdir(d));) {
        if (kind != DATA_UNKNOWN && kind != DATA_FOLDER && kind != DATA_IMAGES) break;
        if (e->d_name[0] == '.') continue;
        if (ends_with(e->d_name, "-ubyte") || ends_with(e->d_name, "-ubyte.gz")) kind = DATA_MNIST;
        else if (strcmp(e->d_name, "data_batch_1.bin") == 0) kind = DATA_CIFAR;
        else if (strcmp(e->d_name, "test_batch.bin") == 0) kind = DATA_CIFAR;
        else if (strcmp(e->d_name, "fine_label_names.txt") == 0) kind = DATA_CIFAR100;
        else if (ends_with(e->d_name, "_32x32.mat")) kind = DATA_SVHN;
        else if (ends_with(e->d_name, ".tar")) kind = DATA_SHARDS;
        else if (is_folder(join(below, sizeof below, path, e->d_name))) kind = DATA_FOLDER;
        else if (kind == DATA_UNKNOWN && is_image(e->d_name)) kind = DATA_IMAGES;
    }
    closedir(d);
    return kind;
}

data_kind guess_kind(const char *path, const char *format)
{
    static const char *const names[] = {"mnist", "cifar", "folder", "shards",   "arrays", "tokens",
                                        "table", "list",  "masks",  "cifar100", "svhn"};
    for (int i = 0; i <= DATA_SVHN; i++)
        if (strcmp(format, names[i]) == 0) return (data_kind)i;
    if (names_array(path)) return DATA_ARRAYS;
    if (ends_with(path, ".csv") || ends_with(path, ".tsv")) return DATA_TABLE;
    if (is_image(path)) return DATA_IMAGES;
    if (ends_with(path, ".tar")) return DATA_SHARDS;
    if (is_folder(path)) return in_folder(path);
    if (strchr(path, '{')) return DATA_SHARDS;
    if (ends_with(path, ".txt") || ends_with(path, ".bin")) return DATA_TOKENS;
    return DATA_UNKNOWN;
}
