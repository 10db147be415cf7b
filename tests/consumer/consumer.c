/* SPDX-License-Identifier: Apache-2.0
 *
 * A C11 program as a user would write it, built against an installed Catena by run.sh.
 */
#include <stdio.h>
#include <catena/base.h>

int main(void)
{
    if (ctn_version() != CTN_VERSION) {
        fprintf(stderr, "header is %d, library is %d\n", CTN_VERSION, ctn_version());
        return 1;
    }
    printf("c11: catena %s\n", ctn_version_text());
    return 0;
}
