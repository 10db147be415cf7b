/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the simulator: SimGrid's smpirun with the program of bench/scale, which contains the
 * library's own communication code. It is there if SimGrid was installed when Catena was built.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "child.h"
#include "scale/scale.h"

static ctn_status find_program(char path[PATH_MAX])
{
    char self[PATH_MAX];
    CTN_TRY(child_program(self, sizeof self));
    char *slash = strrchr(self, '/');
    if (slash) *slash = 0;
    if (access(join(path, PATH_MAX, self, "../libexec/catena-simulate"), X_OK) == 0) return CTN_OK;
    return ctn_fail(CTN_EUNSUPPORTED,
                    "this build cannot simulate: install SimGrid (libsimgrid-dev) and build Catena "
                    "again");
}

double simulated_number(const char *text, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "\"%s\": ", name);
    const char *at = strstr(text, key);
    return at ? strtod(at + strlen(key), NULL) : 0;
}

void simulated_word(const char *text, const char *name, char *out, size_t n)
{
    char key[64];
    snprintf(key, sizeof key, "\"%s\": \"", name);
    const char *at = strstr(text, key);
    at = at ? at + strlen(key) : "";
    snprintf(out, n, "%.*s", (int)strcspn(at, "\""), at);
}

static void make_line(words *l, const platform *p, int64_t ranks, const char *xml,
                      const char *hosts)
{
    words_add(l, "smpirun");
    words_add(l, "-np");
    words_add(l, "%lld", (long long)ranks);
    words_add(l, "-platform");
    words_add(l, "%s", xml);
    words_add(l, "-hostfile");
    words_add(l, "%s", hosts);
    /* One process, whose ranks share their globals as threads do; code takes no simulated time. */
    words_add(l, "--cfg=smpi/privatization:no");
    words_add(l, "--cfg=smpi/simulate-computation:no");
    words_add(l, "--cfg=smpi/test:0");
    words_add(l, "--cfg=smpi/coll-selector:mpich");
    words_add(l, "--cfg=network/model:SMPI");
    words_add(l, "--cfg=network/bandwidth-factor:0:0.97");
    words_add(l, "--cfg=network/latency-factor:0:1");
    words_add(l, "--cfg=network/crosstraffic:0");
    words_add(l, "--cfg=smpi/os:0:%g:0", p->overhead_s);
    words_add(l, "--cfg=smpi/or:0:%g:0", p->overhead_s);
    words_add(l, "--cfg=contexts/stack-size:1024");
    words_add(l, "--log=root.thresh:error");
}

ctn_status simulate(const platform *p, int64_t ranks, const char *folder, int n,
                    const char *const *word, char *text, size_t room)
{
    char xml[PATH_MAX], hosts[PATH_MAX], log[PATH_MAX], program[PATH_MAX];
    words l = {0};
    child c;
    join(xml, sizeof xml, folder, "platform.xml");
    join(hosts, sizeof hosts, folder, "hosts");
    join(log, sizeof log, folder, "log");
    CTN_TRY(find_program(program));
    CTN_TRY(platform_write(p, ranks, xml, hosts));
    make_line(&l, p, ranks, xml, hosts);
    words_add(&l, "%s", program);
    for (int i = 0; i < n; i++) words_add(&l, "%s", word[i]);
    /* Long messages would otherwise be new memory each time. */
    setenv("MALLOC_MMAP_THRESHOLD_", "1000000000", 0);
    setenv("MALLOC_TRIM_THRESHOLD_", "4000000000", 0);
    const ctn_status st =
        l.bad ? ctn_fail(CTN_ENOMEM, "no memory for a command line") : child_start(&c, l.word, log);
    words_free(&l);
    CTN_TRY(st);
    child_wait(&c, -1);
    if (strstr(child_said(log, text, room), "{\"") && c.status == 0) return CTN_OK;
    return ctn_fail(CTN_EENGINE, "the simulation failed (status %d):\n%.1500s", c.status, text);
}
