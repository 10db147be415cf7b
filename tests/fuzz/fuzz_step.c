/* SPDX-License-Identifier: Apache-2.0
 *
 * Recorded steps, which catena scale writes and reads, and the time that the model of a job
 * estimates for one. Linked with the command's files of tools/catena/scale.
 */
#include "fuzz.h"

#include "scale/estimate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    events e = {0};
    if (events_read(&e, fuzz_file("x.step", data, bytes)) == CTN_OK) {
        exchange_way way = {0};
        const exchange_way ring = {"ring", 4, 1 << 20, false};
        estimate_best(&e, fitted_costs[0].platform, 1000, &way);
        estimate_step(&e, fitted_costs[0].platform, 64, &ring);
        events_scale(&e, 0.1);
        if (events_write(&e, fuzz_file("y.step", data, 0)) < 0) abort();
    }
    ctn_error_clear();
    events_free(&e);
    return 0;
}
