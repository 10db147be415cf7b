/* SPDX-License-Identifier: Apache-2.0
 *
 * Machines for the simulator, from published figures. Each is one cluster of SimGrid's XML with as
 * many nodes as are asked for. dev/scale compares what the simulator then measures with the
 * figures.
 */
#include <string.h>

#include "scale/scale.h"

enum { LEAF = 32, GROUP_SWITCHES = 32, SWITCH_NODES = 16, MOST = 65536 };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t groups(int64_t nodes, int64_t each)
{
    return (nodes + each - 1) / each;
}

/* Switches with LEAF nodes each, and a second level with `up` links from each of them. */
static int64_t tree(char *buf, size_t n, int64_t nodes, int64_t up, int64_t lanes)
{
    const int64_t down = least(nodes, LEAF), leaves = groups(nodes, down);
    if (leaves == 1)
        snprintf(buf, n, "topology=\"FAT_TREE\" topo_parameters=\"1;%lld;1;1\"", (long long)nodes);
    else
        snprintf(buf, n, "topology=\"FAT_TREE\" topo_parameters=\"2;%lld,%lld;1,%lld;1,%lld\"",
                 (long long)down, (long long)leaves, (long long)least(up, down), (long long)lanes);
    return down * leaves;
}

static int64_t fat_tree(char *buf, size_t n, int64_t nodes)
{
    return tree(buf, n, nodes, LEAF, 1);
}

static int64_t ethernet(char *buf, size_t n, int64_t nodes)
{
    return tree(buf, n, nodes, 1, 8);
}

/* The box with the smallest surface. */
static int64_t torus(char *buf, size_t n, int64_t nodes)
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
    return nodes;
}

/* All switches of a group are connected, and all groups, so that half the rate of the nodes leaves
 * a switch and a group. The simulator uses only the shortest way; the links between two switches
 * stand for all ways that adaptive routing would use. */
static int64_t dragonfly(char *buf, size_t n, int64_t nodes)
{
    const int64_t each = least(nodes, SWITCH_NODES);
    const int64_t switches = least(groups(nodes, each), GROUP_SWITCHES);
    const int64_t many = groups(nodes, each * switches);
    const int64_t links = many > 1 ? groups(each * switches / 2, many - 1) : 1;
    snprintf(buf, n, "topology=\"DRAGONFLY\" topo_parameters=\"%lld,%lld;1,1;%lld,%lld;%lld\"",
             (long long)many, (long long)links, (long long)switches, (long long)groups(each, 2),
             (long long)each);
    return many * switches * each;
}

static const platform table[] = {
    {"fat-tree", 12.5, 0.14e-6, 0.6e-6, fat_tree,
     "Oakforest-PACS: Omni-Path, 100 Gbit/s, full bisection"},
    {"torus", 6.8, 0.1e-6, 0.2e-6, torus,
     "Fugaku: Tofu-D, 6.8 GB/s per link, folded to three dimensions"},
    {"dragonfly", 25, 0.3e-6, 1e-6, dragonfly, "Slingshot: 200 Gbit/s, groups of 512 nodes"},
    {"ethernet", 1.25, 5e-6, 2e-6, ethernet,
     "10 Gbit/s Ethernet: 32 nodes per switch, uplinks of 80 Gbit/s"},
};

const platform *platform_find(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}

ctn_status platform_write(const platform *p, int64_t nodes, const char *xml, const char *hosts)
{
    char topology[200];
    FILE *f = NULL;
    if (nodes < 1 || nodes > MOST)
        return ctn_fail(CTN_EARG, "cannot simulate %lld nodes, expected 1 to %d", (long long)nodes,
                        (int)MOST);
    /* One node alone would have no network. */
    const int64_t places = p->topology(topology, sizeof topology, nodes > 1 ? nodes : 2);
    CTN_TRY(file_open(&f, xml));
    fprintf(f,
            "<?xml version='1.0'?>\n"
            "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
            "<!-- %s -->\n"
            "<platform version=\"4.1\">\n  <zone id=\"world\" routing=\"Full\">\n"
            "    <cluster id=\"machine\" prefix=\"n\" suffix=\"\" radical=\"0-%lld\" "
            "speed=\"1Gf\" bw=\"%gBps\" lat=\"%gs\" sharing_policy=\"SPLITDUPLEX\" "
            "loopback_bw=\"50GBps\" loopback_lat=\"0s\" %s/>\n"
            "  </zone>\n</platform>\n",
            p->source, (long long)places - 1, p->gb_per_s * 1e9, p->latency_s, topology);
    CTN_TRY(file_close(f, xml));
    CTN_TRY(file_open(&f, hosts));
    for (int64_t i = 0; i < nodes; i++) fprintf(f, "n%lld\n", (long long)i);
    return file_close(f, hosts);
}
