/* SPDX-License-Identifier: Apache-2.0 */
#include "support/world.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "comm/comm.h"

test_world test_world_plain(int ranks)
{
    return (test_world){.ranks = ranks, .groups = 1};
}

static uint32_t draw(uint32_t *s, uint32_t n)
{
    *s = *s * 1664525u + 1013904223u;
    return (*s >> 8) % n;
}

test_world test_world_random(int ranks, uint32_t bits)
{
    test_world w = test_world_plain(ranks);
    if (draw(&bits, 4) == 0) w.groups = WORLD_GROUPS;
    if (draw(&bits, 4) == 0) w.outside = 1 + (int)draw(&bits, WORLD_OUTSIDE);
    if (draw(&bits, 2)) return w;
    for (int r = 1; r < test_world_size(&w); r++)
        w.node[r] = draw(&bits, 3) == 0 ? r : w.node[draw(&bits, (uint32_t)r)];
    return w;
}

void test_world_text(const test_world *w, char *out, size_t room)
{
    size_t n = (size_t)snprintf(out, room, "%d ranks of %d, nodes", w->ranks, test_world_size(w));
    for (int r = 0; r < test_world_size(w) && n < room; r++)
        n += (size_t)snprintf(out + n, room - n, " %d", w->node[r]);
}

int test_world_size(const test_world *w)
{
    return w->ranks * w->groups + w->outside;
}

int test_world_group(const test_world *w, int rank)
{
    return rank < w->outside ? -1 : (rank - w->outside) % w->groups;
}

int test_world_rank(const test_world *w, int rank)
{
    return rank < w->outside ? -1 : (rank - w->outside) / w->groups;
}

int test_world_scattered(const test_world *w)
{
    for (int g = 0; g < w->groups; g++) {
        bool shared = false;
        for (int a = 0; a < test_world_size(w); a++)
            for (int b = 0; b < a; b++)
                shared |= w->node[a] == w->node[b] && test_world_group(w, a) == g &&
                          test_world_group(w, b) == g;
        if (!shared) return 1;
    }
    return 0;
}

static bool whole(const test_world *w)
{
    return w->groups == 1 && w->outside == 0;
}

ctn_status test_world_open(ctn_comm **out, const test_world *w, const ctn_comm_opt *opt)
{
    ctn__net *net[WORLD_MOST];
    const int size = test_world_size(w);
    CTN_TRY(ctn__net_loopback_nodes(net, size, w->node));
    for (int i = 0; i < size; i++) CTN_TRY(ctn__comm_new(&out[i], net[i], whole(w) ? opt : NULL));
    return CTN_OK;
}

ctn_status test_world_join(ctn_comm **out, const test_world *w, ctn_comm *world,
                           const ctn_comm_opt *opt)
{
    *out = world;
    return whole(w) ? CTN_OK
                    : ctn_comm_split(out, world, test_world_group(w, ctn_comm_rank(world)), 0, opt);
}

static const char *hanging;

static void late(int signal)
{
    static const char text[] = " hangs\n";
    ssize_t n = write(STDERR_FILENO, hanging, strlen(hanging));
    (void)signal;
    n = write(STDERR_FILENO, text, sizeof text - 1);
    (void)n;
    _exit(99);
}

void test_deadline(unsigned seconds, const char *what)
{
    alarm(0);
    hanging = what;
    signal(SIGALRM, late);
    alarm(seconds);
}
