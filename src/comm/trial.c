/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the progress thread pays: steps by turns without and with it, a few to warm up, then the best of each kind. The times travel in
 * the control message of the steps after, so all ranks decide alike.
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
    /* From here on, not from the next start: values may be on their way back. */
    ctn__progress_park(x->comm, x->polls);
}
