/* SPDX-License-Identifier: Apache-2.0
 *
 * Timelines, which catena train --timeline writes and catena timeline reads. Linked with the
 * command's timeline/read.c.
 */
#include "fuzz.h"

#include "timeline/timeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    timeline t = {0};
    if (timeline_read(&t, fuzz_file("timeline.json", data, bytes)) < 0) ctn_error_clear();
    timeline_free(&t);
    return 0;
}
