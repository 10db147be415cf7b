/* SPDX-License-Identifier: Apache-2.0
 *
 * A test that must fail, run with WILL_FAIL. It proves that ctest sees a failing assertion as a
 * failure.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void wrong(void **state)
{
    (void)state;
    assert_int_equal(1, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
