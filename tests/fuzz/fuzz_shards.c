/* SPDX-License-Identifier: Apache-2.0
 *
 * Tar shards. The index is rebuilt for every input.
 */
#include "fuzz.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    ctn_dataset *ds = NULL;
    const char *tar = fuzz_file("x.tar", data, bytes);
    ctn_image_opt image = {.struct_size = sizeof image, .height = 8, .width = 8};
    ctn_shards_opt opt = {.struct_size = sizeof opt, .image = &image};
    opt.index_dir = "/nonexistent"; /* so that nothing is kept between inputs */
    if (ctn_shards_open(&ds, tar, &opt) < 0) ctn_error_clear();
    fuzz_samples(ds);
    return 0;
}
