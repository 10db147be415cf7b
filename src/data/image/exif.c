/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the orientation from EXIF data: tag 0x0112 of the first directory. The data is treated as
 * hostile; anything malformed means "upright".
 */
#include "data/image/image.h"

enum { TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3, ENTRY_BYTES = 12 };

typedef struct {
    const uint8_t *at;
    size_t bytes;
    bool big; /* endian */
} tiff;

static uint32_t number(const tiff *t, size_t at, int size)
{
    uint32_t v = 0;
    for (int i = 0; i < size; i++) v = v << 8 | t->at[at + (size_t)(t->big ? i : size - 1 - i)];
    return v;
}

int ctn__exif_turn(const void *data, size_t bytes)
{
    tiff t = {data, bytes, false};
    if (bytes < 8) return 1;
    t.big = t.at[0] == 'M';
    if (t.at[0] != t.at[1] || (t.at[0] != 'M' && t.at[0] != 'I') || number(&t, 2, 2) != 42)
        return 1;
    size_t dir = number(&t, 4, 4);
    if (dir > bytes || bytes - dir < 2) return 1;
    size_t entries = number(&t, dir, 2);
    size_t room = (bytes - dir - 2) / ENTRY_BYTES;
    for (size_t i = 0; i < entries && i < room; i++) {
        size_t e = dir + 2 + i * ENTRY_BYTES;
        if (number(&t, e, 2) != TAG_ORIENTATION) continue;
        uint32_t turn = number(&t, e + 8, 2);
        if (number(&t, e + 2, 2) != TYPE_SHORT || turn < 1 || turn > 8) return 1;
        return (int)turn;
    }
    return 1;
}
