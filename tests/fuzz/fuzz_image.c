/* SPDX-License-Identifier: Apache-2.0
 *
 * JPEG and PNG files. The last byte selects crop, size and layout.
 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static float dst[3 * 64 * 64];
    const int how = bytes ? data[bytes - 1] : 0;
    const int64_t side = how & 4 ? 64 : 7;
    ctn_image_opt opt = {.struct_size = sizeof opt, .height = side, .width = how & 8 ? 33 : side};
    opt.crop = (ctn_crop)(how & 3);
    opt.raw = how >> 4 & 1;
    opt.channels_last = how >> 5 & 1;
    opt.flip = 1;
    opt.brightness = opt.hue = how & 64 ? 0.3 : 0;
    opt.gray = how >> 7;
    ctn_sample s = {how, (uint64_t)how, 1, 0};
    if (ctn_image_decode(data, bytes, &opt, &s, dst) < 0) ctn_error_clear();
    return 0;
}
