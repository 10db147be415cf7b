/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of text: the last column as a class or as a number, and without a header.
 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char *const target[] = {"t"}, *const second[] = {"1"};
    ctn_dataset *ds = NULL, *like = NULL;
    const char *file = fuzz_file("x.csv", data, bytes);
    if (ctn_csv_open(&ds, file,
                     CTN_OPT(ctn_csv_opt, .ntargets = 1, .targets = target, .categories = 1)) < 0)
        ctn_error_clear();
    if (ds && ctn_csv_open(&like, file,
                           CTN_OPT(ctn_csv_opt, .ntargets = 1, .targets = target, .like = ds)) < 0)
        abort(); /* a table is like itself */
    fuzz_samples(like);
    fuzz_samples(ds);
    ds = NULL;
    if (ctn_csv_open(&ds, file,
                     CTN_OPT(ctn_csv_opt, .separator = ";", .no_header = 1, .ntargets = 1,
                             .targets = second, .classes = 1, .fill = 1, .fill_value = -1)) < 0)
        ctn_error_clear();
    fuzz_samples(ds);
    return 0;
}
