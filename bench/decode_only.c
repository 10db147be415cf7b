/* SPDX-License-Identifier: Apache-2.0
 *
 * The baseline for Catena's image loading: decodes every JPEG below a folder to RGB at full size
 * with plain calls of libjpeg-turbo, after reading all files into memory. Skips folders named
 * "edge". Deliberately does not use Catena.
 *
 *   decode_only DIR [THREADS [ROUNDS]]     prints images per second of the best round
 */
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include <jpeglib.h>

typedef struct {
    unsigned char *data;
    size_t bytes;
} file;

static file *files;
static size_t nfiles;
static atomic_size_t next, bad;

static void add_file(const char *path, size_t bytes)
{
    FILE *f = fopen(path, "rb");
    unsigned char *data = malloc(bytes + 1);
    file *more = realloc(files, (nfiles + 1) * sizeof *files);
    if (more) files = more;
    if (f && data && more && fread(data, 1, bytes, f) == bytes) {
        files[nfiles].data = data;
        files[nfiles++].bytes = bytes;
    } else {
        free(data);
    }
    if (f) fclose(f);
}

static int is_jpeg(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0);
}

static void walk(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        char path[4096];
        struct stat st;
        if (e->d_name[0] == '.' || strcmp(e->d_name, "edge") == 0) continue;
        int n = snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (n < 0 || (size_t)n >= sizeof path || stat(path, &st) != 0) continue;
        if (S_ISDIR(st.st_mode)) walk(path);
        else if (is_jpeg(e->d_name)) add_file(path, (size_t)st.st_size);
    }
    if (d) closedir(d);
}

static void leave(j_common_ptr c)
{
    longjmp(*(jmp_buf *)c->client_data, 1);
}

static void say_nothing(j_common_ptr c)
{
    (void)c;
}

/* Decodes to full-size RGB in *rgb, which grows as needed and is reused for the next image. */
static int decode(const file *f, unsigned char **rgb, size_t *room)
{
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr err;
    jmp_buf back;
    c.err = jpeg_std_error(&err);
    c.client_data = &back;
    err.error_exit = leave;
    err.output_message = say_nothing;
    if (setjmp(back)) {
        jpeg_destroy_decompress(&c);
        return 0;
    }
    jpeg_create_decompress(&c);
    jpeg_mem_src(&c, f->data, (unsigned long)f->bytes);
    jpeg_read_header(&c, TRUE);
    c.out_color_space = JCS_RGB;
    jpeg_start_decompress(&c);
    size_t step = (size_t)c.output_width * 3, need = step * c.output_height;
    if (need > *room) {
        free(*rgb);
        *rgb = malloc(need);
        *room = *rgb ? need : 0;
    }
    while (*rgb && c.output_scanline < c.output_height) {
        JSAMPROW row[8];
        for (unsigned i = 0; i < 8; i++) row[i] = *rgb + (c.output_scanline + i) * step;
        JDIMENSION left = c.output_height - c.output_scanline;
        jpeg_read_scanlines(&c, row, left < 8 ? left : 8);
    }
    if (*rgb) jpeg_finish_decompress(&c);
    jpeg_destroy_decompress(&c);
    return *rgb != NULL;
}

static void *work(void *unused)
{
    unsigned char *rgb = NULL;
    size_t room = 0, i;
    while ((i = atomic_fetch_add(&next, 1)) < nfiles)
        if (!decode(&files[i], &rgb, &room)) atomic_fetch_add(&bad, 1);
    free(rgb);
    return unused;
}

static double wall(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double cpu(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
    int threads = argc > 2 ? atoi(argv[2]) : 1, rounds = argc > 3 ? atoi(argv[3]) : 5;
    if (argc < 2 || threads < 1 || threads > 1024 || rounds < 1) {
        fprintf(stderr, "usage: decode_only DIR [THREADS [ROUNDS]]\n");
        return 2;
    }
    walk(argv[1]);
    if (nfiles == 0) {
        fprintf(stderr, "decode_only: no JPEG files below %s\n", argv[1]);
        return 4;
    }
    double best = 0, least = 0;
    for (int r = 0; r < rounds; r++) {
        pthread_t id[1024];
        int started = 0;
        atomic_store(&next, 0);
        double t = wall(), u = cpu();
        while (started < threads && pthread_create(&id[started], NULL, work, NULL) == 0) started++;
        for (int i = 0; i < started; i++) pthread_join(id[i], NULL);
        t = wall() - t;
        u = cpu() - u;
        if (started < threads) return 3;
        if ((double)nfiles / t > best) best = (double)nfiles / t;
        if (r == 0 || u < least) least = u;
    }
    printf("{\"items\": %zu, \"failed\": %zu, \"threads\": %d, \"items_per_s\": %.1f, "
           "\"cpu_ms_per_item\": %.4f}\n",
           nfiles, atomic_load(&bad) / (size_t)rounds, threads, best, 1e3 * least / (double)nfiles);
    for (size_t i = 0; i < nfiles; i++) free(files[i].data);
    free(files);
    return 0;
}
