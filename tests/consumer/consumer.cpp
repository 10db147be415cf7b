// SPDX-License-Identifier: Apache-2.0
//
// The same program in C++17: the headers must compile and link as C++.
#include <catena/base.h>
#include <cstdio>

int main()
{
    if (ctn_version() != CTN_VERSION) {
        std::fprintf(stderr, "header is %d, library is %d\n", CTN_VERSION, ctn_version());
        return 1;
    }
    std::printf("c++17: catena %s\n", ctn_version_text());
    return 0;
}
