/* SPDX-License-Identifier: Apache-2.0
 *
 * Suppressions for the thread sanitizer: oneDNN is not compiled for it, so the locks of its
 * kernel cache are invisible. Include this once in every test whose threads run plans.
 */
#ifndef SUPPORT_TSAN_H
#define SUPPORT_TSAN_H

#if defined(__SANITIZE_THREAD__)
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:libdnnl.so\ncalled_from_lib:libdnnl.so\n";
}
#endif

#endif
