// SPDX-License-Identifier: Apache-2.0
//
// The same program in C++17, with objects, exceptions and operators.
#include <cstdio>
#include <exception>
#include <vector>

#include <catena/catena.hpp>

int main()
try {
    if (ctn_version() != CTN_VERSION) {
        std::fprintf(stderr, "header is %d, library is %d\n", CTN_VERSION, ctn_version());
        return 1;
    }
    const catena::Context ctx(catena::ContextOpt().threads(1));
    const catena::Scope scope(ctx);
    const std::vector<float> data{1, 2, 3};
    const catena::Tensor x = catena::input(ctx, data, {3});
    const double sum = catena::sum(2 * x + 1).item();
    std::printf("c++17: catena %s, 3 + 5 + 7 = %g\n", ctn_version_text(), sum);
    return sum == 15 ? 0 : 1;
} catch (const std::exception &e) {
    std::fprintf(stderr, "consumer: %s\n", e.what());
    return 1;
}
