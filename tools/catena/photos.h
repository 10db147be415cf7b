/* SPDX-License-Identifier: Apache-2.0
 *
 * JPEG files in memory for bench loader, and the plain decoder that it is compared with.
 */
#ifndef CATENA_PHOTOS_H
#define CATENA_PHOTOS_H

#include <stdint.h>

#include <catena/base.h>

typedef struct {
    unsigned char *data;
    size_t bytes;
} photo;

typedef struct {
    photo *at;
    int64_t n;
    int64_t room;
} photos;

/* Read all .jpg and .jpeg files below dir and in plain tar files below it. Folders named edge are
 * skipped in both, and links to folders are not followed. Errors: EIO, EFORMAT, ENOTFOUND, ENOMEM.
 * Call photos_free in any case. */
ctn_status photos_read(photos *p, const char *dir);
void photos_free(photos *p);

/* Seconds to decode each photo once to full-size RGB with libjpeg-turbo alone. Errors:
 * EUNSUPPORTED (a build without it), ENOMEM, EFORMAT. */
ctn_status photos_decode(const photos *p, int threads, double *seconds);

#endif
