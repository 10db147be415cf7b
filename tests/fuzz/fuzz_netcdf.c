/* SPDX-License-Identifier: Apache-2.0
 *
 * NetCDF-4 files: two variables as one field, which may be packed and have missing values, and one
 * that a missing value makes an error.
 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char both[300], one[300];
    const char *file = fuzz_file("x.nc", data, bytes);
    const char *const paths[] = {both}, *const others[] = {one};
    ctn_dataset *ds = NULL;
    snprintf(both, sizeof both, "%s:/t,p", file);
    snprintf(one, sizeof one, "%s:/t", file);
    if (ctn_files_open(&ds, 1, paths, CTN_OPT(ctn_files_opt, .fill = 1, .fill_value = -1)) < 0)
        ctn_error_clear();
    fuzz_samples(ds);
    ds = NULL;
    if (ctn_files_open(&ds, 1, others, NULL) < 0) ctn_error_clear();
    fuzz_samples(ds);
    return 0;
}
