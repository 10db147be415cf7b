/* SPDX-License-Identifier: Apache-2.0
 *
 * first_batch PATH: measures the time from opening an image folder or tar shards to the first
 * batch of 64, and the memory that the dataset holds per file. Output: one JSON line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include <catena/catena.h>

static int64_t held; /* bytes, counted by the library's allocator */

typedef union {
    size_t bytes;
    max_align_t align;
} head;

static void *allocate(void *user, size_t bytes, size_t align)
{
    (void)user;
    /* The head is stored in front of the block, in enough space to keep the alignment. */
    const size_t room = align > sizeof(head) ? align : sizeof(head);
    char *p = NULL;
    if (posix_memalign((void **)&p, room, room + bytes) != 0) return NULL;
    void *user_part = p + room;
    ((head *)user_part)[-1].bytes = bytes << 16 | room;
    __atomic_add_fetch(&held, (int64_t)bytes, __ATOMIC_RELAXED);
    return user_part;
}

static void release(void *user, void *p)
{
    (void)user;
    if (!p) return;
    const size_t word = ((head *)p)[-1].bytes;
    __atomic_sub_fetch(&held, (int64_t)(word >> 16), __ATOMIC_RELAXED);
    free((char *)p - (word & 0xffff));
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static ctn_status open_path(ctn_dataset **ds, const char *path)
{
    const ctn_image_opt image = {.struct_size = sizeof image, .height = 32, .width = 32};
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return ctn_image_folder_open(ds, path, &image);
    return ctn_shards_open(ds, path, CTN_OPT(ctn_shards_opt, .image = &image));
}

static ctn_status measure(const char *path)
{
    ctn_status st = CTN_OK;
    ctn_dataset *ds = NULL;
    ctn_sampler *order = NULL;
    ctn_loader *loader = NULL;
    ctn_batch b;
    const double start = now();
    CTN_TRY_GOTO(st, done, open_path(&ds, path));
    const double opened = now();
    const int64_t bytes = held;
    CTN_TRY_GOTO(st, done, ctn_sampler_shuffled(&order, ctn_dataset_count(ds), 1));
    CTN_TRY_GOTO(st, done,
                 ctn_loader_new(&loader, ds, order,
                                CTN_OPT(ctn_loader_opt, .batch = 64, .threads = 1)));
    CTN_TRY_GOTO(st, done, ctn_loader_next(loader, &b));
    printf(
        "{\"files\": %lld, \"open_s\": %.4f, \"first_batch_s\": %.4f, \"bytes_per_file\": %.1f}\n",
        (long long)ctn_dataset_count(ds), opened - start, now() - start,
        (double)bytes / (double)ctn_dataset_count(ds));
done:
    ctn_loader_free(loader);
    ctn_sampler_free(order);
    ctn_dataset_free(ds);
    return st;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: first_batch FOLDER|SHARD.tar\n");
        return 2;
    }
    ctn_status st = ctn_set_allocator(&(ctn_allocator){allocate, release, NULL});
    if (st == CTN_OK) st = measure(argv[1]);
    if (st < 0) fprintf(stderr, "first_batch: %s\n", ctn_error_message());
    return st < 0;
}
