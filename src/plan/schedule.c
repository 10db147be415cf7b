/* SPDX-License-Identifier: Apache-2.0
 *
 * Schedule: the final order. Program order is already topological, has each gradient as early as
 * possible, so that its bucket can start early, and has the writes to variables last. What is
 * left to do is to move nodes without inputs (constants) down to their first reader, so that
 * their memory is live for a short time only.
 */
#include "plan/plan.h"

static bool can_sink(const ctn__plan *p, const ctn__pnode *n)
{
    if (n->effect || n->nout != 1 || n->nin > 0) return false;
    return p->values.at[n->out[0]].kind == CTN__V_TEMP;
}

/* For each node that can sink: the first node that reads its result; -1 for all others. */
static void first_readers(const ctn__plan *p, int *reader)
{
    for (size_t i = 0; i < p->nodes.n; i++) reader[i] = -1;
    for (size_t i = 0; i < p->nodes.n; i++) {
        const ctn__pnode *n = &p->nodes.at[i];
        for (int k = 0; k < n->nin; k++) {
            const int maker = p->values.at[ctn__value_base(p, n->in[k])].node;
            if (maker >= 0 && reader[maker] < 0 && can_sink(p, &p->nodes.at[maker]))
                reader[maker] = (int)i;
        }
    }
}

/* Write the nodes to `out` in order, each sinking node right before its reader. next: linked
 * lists of the nodes that go before a node, followed by the heads of these lists. */
static void order(const ctn__plan *p, const int *reader, int *next, ctn__pnode *out)
{
    const size_t n = p->nodes.n;
    size_t to = 0;
    int *head = next + n;
    for (size_t i = 0; i < n; i++) head[i] = -1;
    for (size_t i = n; i-- > 0;) {
        if (reader[i] < 0) continue;
        next[i] = head[reader[i]];
        head[reader[i]] = (int)i;
    }
    for (size_t i = 0; i < n; i++) {
        for (int k = head[i]; k >= 0; k = next[k]) out[to++] = p->nodes.at[k];
        if (reader[i] < 0) out[to++] = p->nodes.at[i];
    }
}

ctn_status ctn__pass_schedule(ctn__plan *p)
{
    const size_t n = p->nodes.n;
    int *room = ctn__malloc((3 * n + 1) * sizeof *room);
    ctn__pnode *out = ctn__malloc((n + 1) * sizeof *out);
    if (room && out) {
        first_readers(p, room);
        order(p, room, room + n, out);
        if (n > 0) memcpy(p->nodes.at, out, n * sizeof *out);
    }
    const bool ok = room && out;
    ctn__free(room);
    ctn__free(out);
    for (size_t i = 0; i < n && ok; i++)
        for (int k = 0; k < p->nodes.at[i].nout; k++)
            p->values.at[p->nodes.at[i].out[k]].node = (int)i;
    return ok ? CTN_OK : CTN_ENOMEM;
}
