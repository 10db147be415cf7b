// SPDX-License-Identifier: Apache-2.0
//
// A test runner for C++. cmocka leaves a failed test with longjmp, which skips destructors.
#ifndef CATENA_TESTS_CHECK_HPP
#define CATENA_TESTS_CHECK_HPP

#include <cstdio>
#include <exception>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include <catena/base.h>

#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition))                                                                   \
            throw std::logic_error(std::string(__FILE__) + ":" + std::to_string(__LINE__) + \
                                   ": " #condition);                                        \
    } while (0)

// The exception of type E that f throws.
template <class E, class F> E thrown(F &&f)
{
    try {
        f();
    } catch (const E &e) {
        return e;
    }
    throw std::logic_error("nothing was thrown");
}

struct Test {
    const char *name;
    void (*run)();
};

// Runs all tests. Returns the number of those that failed. A test must leave no error behind.
inline int run_tests(std::initializer_list<Test> tests)
{
    int failed = 0;
    for (const Test &test : tests) {
        std::string problem;
        try {
            test.run();
            if (ctn_error_status() != CTN_OK) problem = ctn_error_message();
        } catch (const std::exception &e) {
            problem = e.what();
        }
        ctn_error_clear();
        std::printf("%s %s\n", problem.empty() ? "ok    " : "FAILED", test.name);
        if (problem.empty()) continue;
        std::printf("       %s\n", problem.c_str());
        failed++;
    }
    return failed;
}

#endif
