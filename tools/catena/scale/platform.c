/* SPDX-License-Identifier: Apache-2.0
 *
 * Machines for the simulator, from published figures. Each is one cluster of SimGrid's XML with as
 * many nodes as are asked for. dev/scale compares what the simulator then measures with the
 * figures.
 */
#include <errno.h>
#include <string.h>

#include "scale/scale.h"

static const platform table[] = {
    {"fat-tree", 12.5, 0.14e-6, 0.6e-6, "Oakforest-PACS: Omni-Path, 100 Gbit/s, full bisection"},
    {"torus", 6.8, 0.1e-6, 0.2e-6, "Fugaku: Tofu-D, 6.8 GB/s per link, folded to three dimensions"},
    {"dragonfly", 25, 0.3e-6, 1e-6, "Slingshot: 200 Gbit/s, groups of 512 nodes"},
    {"ethernet", 1.25, 5e-6, 2e-6, "10 Gbit/s Ethernet: 32 nodes per switch, uplinks of 80 Gbit/s"},
};

enum { LEAF = 32, GROUP_SWITCHES = 32, SWITCH_NODES = 16, MOST = 65536 };

const platform *platform_at(int i)
{
    return i < (int)(sizeof table / sizeof *table) ? &table[i] : NULL;
}

const platform *platform_find(const char *name)
{
    for (int i = 0; platform_at(i); i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t groups(int64_t nodes, int64_t each)
{
    return (nodes + each - 1) / each;
}

/* Switches with LEAF nodes each, and a second level with `up` links from each of them. */
static void tree(char *buf, size_t n, int64_t nodes, int64_t up, int64_t lanes)
{
    const int64_t down = least(nodes, LEAF), leaves = groups(nodes, down);
    if (leaves == 1)
        snprintf(buf, n, "topology=\"FAT_TREE\" topo_parameters=\"1;%lld;1;1\"", (long long)nodes);
    else
        snprintf(buf, n, "topology=\"FAT_TREE\" topo_parameters=\"2;%lld,%lld;1,%lld;1,%lld\"",
                 (long long)down, (long long)leaves, (long long)least(up, down), (long long)lanes);
}

/* The box with the smallest surface. */
static void torus(char *buf, size_t n, int64_t nodes)
{
    int64_t best[3] = {1, 1, nodes}, surface = INT64_MAX;
    for (int64_t x = 1; x * x * x <= nodes; x++)
        for (int64_t y = x; nodes % x == 0 && x * y * y <= nodes; y++) {
            const int64_t z = nodes / x / y;
            if (x * y * z != nodes || x * y + y * z + x * z >= surface) continue;
            surface = x * y + y * z + x * z;
            best[0] = x, best[1] = y, best[2] = z;
        }
    char shape[64];
    int at = snprintf(shape, sizeof shape, "%lld", (long long)best[2]);
    for (int i = 1; i >= 0; i--) /* the simulator refuses a dimension of 1 */
        if (best[i] > 1)
            at += snprintf(shape + at, sizeof shape - (size_t)at, ",%lld", (long long)best[i]);
    snprintf(buf, n, "topology=\"TORUS\" topo_parameters=\"%s\"", shape);
}

/* All switches of a group are connected, and all groups, so that half the rate of the nodes leaves
 * a switch and a group. The simulator uses only the shortest way; the links between two switches
 * stand for all ways that adaptive routing would use. */
static void dragonfly(char *buf, size_t n, int64_t nodes)
{
    const int64_t each = least(nodes, SWITCH_NODES);
    const int64_t switches = least(groups(nodes, each), GROUP_SWITCHES);
    const int64_t many = groups(nodes, each * switches);
    const int64_t links = many > 1 ? groups(each * switches / 2, many - 1) : 1;
    snprintf(buf, n, "topology=\"DRAGONFLY\" topo_parameters=\"%lld,%lld;1,1;%lld,%lld;%lld\"",
             (long long)many, (long long)links, (long long)switches, (long long)groups(each, 2),
             (long long)each);
}

static int64_t places(const platform *p, int64_t nodes)
{
    const bool fly = strcmp(p->name, "dragonfly") == 0, ring = strcmp(p->name, "torus") == 0;
    if (ring) return nodes;
    const int64_t first = least(nodes, fly ? SWITCH_NODES : LEAF);
    if (!fly) return first * groups(nodes, first);
    const int64_t group = first * least(groups(nodes, first), GROUP_SWITCHES);
    return group * groups(nodes, group);
}

static ctn_status put(const char *path, FILE **f)
{
    *f = fopen(path, "w");
    return *f ? CTN_OK : ctn_fail(CTN_EIO, "cannot write %s: %s", path, strerror(errno));
}

ctn_status platform_write(const platform *p, int64_t nodes, const char *xml, const char *hosts)
{
    char topology[200];
    FILE *f = NULL;
    const int64_t asked = nodes;
    if (nodes < 1 || nodes > MOST)
        return ctn_fail(CTN_EARG, "%lld nodes cannot be simulated, at most %d", (long long)nodes,
                        (int)MOST);
    if (nodes == 1) nodes = 2; /* one alone has no network */
    if (strcmp(p->name, "torus") == 0) torus(topology, sizeof topology, nodes);
    else if (strcmp(p->name, "dragonfly") == 0) dragonfly(topology, sizeof topology, nodes);
    else if (strcmp(p->name, "ethernet") == 0) tree(topology, sizeof topology, nodes, 1, 8);
    else tree(topology, sizeof topology, nodes, LEAF, 1);
    CTN_TRY(put(xml, &f));
    fprintf(f,
            "<?xml version='1.0'?>\n"
            "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
            "<!-- %s -->\n"
            "<platform version=\"4.1\">\n  <zone id=\"world\" routing=\"Full\">\n"
            "    <cluster id=\"machine\" prefix=\"n\" suffix=\"\" radical=\"0-%lld\" "
            "speed=\"1Gf\" bw=\"%gBps\" lat=\"%gs\" sharing_policy=\"SPLITDUPLEX\" "
            "loopback_bw=\"50GBps\" loopback_lat=\"0s\" %s/>\n"
            "  </zone>\n</platform>\n",
            p->source, (long long)places(p, nodes) - 1, p->gb_per_s * 1e9, p->latency_s, topology);
    if (fclose(f) != 0) return ctn_fail(CTN_EIO, "cannot write %s: %s", xml, strerror(errno));
    CTN_TRY(put(hosts, &f));
    for (int64_t i = 0; i < asked; i++) fprintf(f, "n%lld\n", (long long)i);
    if (fclose(f) != 0) return ctn_fail(CTN_EIO, "cannot write %s: %s", hosts, strerror(errno));
    return CTN_OK;
}
