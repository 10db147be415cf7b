/* SPDX-License-Identifier: Apache-2.0
 *
 * Full-size decoding of JPEG files in memory; each thread takes the next file. bench loader is
 * compared with this. bench/decode_only.c does the same as a separate program, so that the
 * number can be measured without Catena.
 */
#include "photos.h"

#ifdef CTN_HAVE_JPEG

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "cli.h"

enum { MAX_THREADS = 256, ROWS = 8 };

typedef struct {
    const photos *p;
    atomic_llong next;
    atomic_int failed;
} task;

static void leave(j_common_ptr c)
{
    longjmp(*(jmp_buf *)c->client_data, 1);
}

static void say_nothing(j_common_ptr c)
{
    (void)c;
}

static bool decode(const photo *f, unsigned char **rgb, size_t *room)
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
        return false;
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
        JSAMPROW row[ROWS];
        for (unsigned i = 0; i < ROWS; i++) row[i] = *rgb + (c.output_scanline + i) * step;
        JDIMENSION left = c.output_height - c.output_scanline;
        jpeg_read_scanlines(&c, row, left < ROWS ? left : ROWS);
    }
    if (*rgb) jpeg_finish_decompress(&c);
    jpeg_destroy_decompress(&c);
    return *rgb != NULL;
}

static void *work(void *shared)
{
    task *t = shared;
    unsigned char *rgb = NULL;
    size_t room = 0;
    long long i;
    while ((i = atomic_fetch_add(&t->next, 1)) < t->p->n)
        if (!decode(&t->p->at[i], &rgb, &room)) atomic_fetch_add(&t->failed, 1);
    free(rgb);
    return NULL;
}

ctn_status photos_decode(const photos *p, int threads, double *seconds)
{
    task t = {.p = p};
    pthread_t id[MAX_THREADS];
    int n = 0;
    double start = now_s();
    while (n < threads && n < MAX_THREADS && pthread_create(&id[n], NULL, work, &t) == 0) n++;
    for (int i = 0; i < n; i++) pthread_join(id[i], NULL);
    *seconds = now_s() - start;
    if (n < threads)
        return ctn_fail(CTN_EUNSUPPORTED, "bench: could start only %d of %d threads", n, threads);
    if (atomic_load(&t.failed))
        return ctn_fail(CTN_EFORMAT, "bench: cannot decode %d photos", atomic_load(&t.failed));
    return CTN_OK;
}

#else

ctn_status photos_decode(const photos *p, int threads, double *seconds)
{
    (void)p, (void)threads, (void)seconds;
    return ctn_fail(CTN_EUNSUPPORTED, "bench: this build has no libjpeg-turbo");
}

#endif
