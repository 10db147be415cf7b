/* SPDX-License-Identifier: Apache-2.0
 *
 * JPEG files held in memory, for bench loader, and the plain decoding it is compared with.
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

/* All .jpg and .jpeg files below dir and in plain tar files below it; folders named edge are
 * left out, in both. Errors: EIO, ENOTFOUND, ENOMEM. Free in any case. */
ctn_status photos_read(photos *p, const char *dir);
void photos_free(photos *p);

/* Seconds to decode each once to red, green, blue at full size, by libjpeg-turbo and nothing
 * else. Errors: EUNSUPPORTED (a build without it), ENOMEM, EFORMAT. */
ctn_status photos_decode(const photos *p, int threads, double *seconds);

#endif
