/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds out whether the progress thread helps. After a few warm-up steps, steps alternate without
 * and with it, and the best time of each kind counts. The times travel in the control message of
 * the following steps, so all ranks make the same decision.
 */
#include "comm/flight.h"

enum { WARM = 3, LAST = WARM + 8 };

void ctn__trial_step(ctn__exchange *x)
{
    ctn__trial *t = &x->trial;
    double *give = x->control.give;
    const double *total = x->control.total;
    if (!t->on) return;
    const int kind = t->steps % 2 ? CTN__GIVE_THREAD : CTN__GIVE_POLLS;
    const uint64_t now = ctn__now_ns();
    const double took = (double)(now - t->since) * 1e-9;
    t->since = now;
    if (t->steps == LAST) {
        x->polls = total[CTN__GIVE_POLLS] < total[CTN__GIVE_THREAD];
        t->on = false;
        return;
    }
    if (t->steps >= WARM && (give[kind] == 0 || took < give[kind])) give[kind] = took;
    x->polls = ++t->steps % 2 == 0;
    /* Takes effect now, not at the next start, because values may be in flight. */
    ctn__progress_park(x->comm, x->polls);
}
