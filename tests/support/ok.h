/* SPDX-License-Identifier: Apache-2.0
 *
 * OK(call): the call must return CTN_OK, otherwise the test fails with the library's message.
 * Only for the thread that runs the test, because cmocka's failures jump. It needs public headers
 * only, so the tests of the public interface (tests/api) use it too.
 */
#ifndef CTN_TESTS_OK_H
#define CTN_TESTS_OK_H

#include <catena/base.h>

#define OK(call)                                                                           \
    do {                                                                                   \
        ctn_status st_ = (call);                                                           \
        if (st_ != CTN_OK) fail_msg("%s: status %d: %s", #call, st_, ctn_error_message()); \
    } while (0)

#endif
