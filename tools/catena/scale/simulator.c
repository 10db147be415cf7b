/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the simulator: SimGrid's smpirun with the program of bench/scale, which contains the
 * library's own communication code. It is installed beside the plug-ins if SimGrid was there when
 * Catena was built.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "scale/scale.h"

enum { WORDS = 48 };

typedef struct {
    char text[WORDS][PATH_MAX];
    char *word[WORDS + 1];
    int n;
} line;

static void add(line *l, const char *fmt, ...) CTN_PRINTF(2, 3);
static void add(line *l, const char *fmt, ...)
{
    va_list ap;
    if (l->n == WORDS) return;
    va_start(ap, fmt);
    vsnprintf(l->text[l->n], sizeof l->text[l->n], fmt, ap);
    va_end(ap);
    l->word[l->n] = l->text[l->n];
    l->word[++l->n] = NULL;
}

/* Beside the command in a build, or where it was installed to. */
static ctn_status find_program(char path[PATH_MAX])
{
    char self[PATH_MAX];
    const char *given = getenv("CATENA_SIMULATOR");
    static const char *const places[] = {"../libexec/catena-simulate", "catena-simulate"};
    if (given) {
        snprintf(path, PATH_MAX, "%s", given);
        return CTN_OK;
    }
    CTN_TRY(child_program(self, sizeof self));
    char *slash = strrchr(self, '/');
    if (slash) *slash = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (access(join(path, PATH_MAX, self, places[i]), X_OK) == 0) return CTN_OK;
    return ctn_fail(CTN_EUNSUPPORTED,
                    "this build cannot simulate: install SimGrid (libsimgrid-dev) and build Catena "
                    "again; `catena plan` works without it");
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

/* Everything that the program printed. */
static ctn_status read_log(const char *log, int status, char *text, size_t room)
{
    FILE *f = fopen(log, "r");
    const size_t n = f ? fread(text, 1, room - 1, f) : 0;
    if (f) fclose(f);
    text[n] = 0;
    if (status == 0 && strstr(text, "{\"")) return CTN_OK;
    return ctn_fail(CTN_EENGINE, "the simulation failed (status %d):\n%.1500s", status, text);
}

static void make_line(line *l, const platform *p, int64_t ranks, const char *xml, const char *hosts)
{
    add(l, "smpirun");
    add(l, "-np");
    add(l, "%lld", (long long)ranks);
    add(l, "-platform");
    add(l, "%s", xml);
    add(l, "-hostfile");
    add(l, "%s", hosts);
    /* One process, whose ranks share their globals as threads do; code takes no simulated time. */
    add(l, "--cfg=smpi/privatization:no");
    add(l, "--cfg=smpi/simulate-computation:no");
    add(l, "--cfg=smpi/test:0");
    add(l, "--cfg=smpi/coll-selector:ompi");
    add(l, "--cfg=network/model:SMPI");
    add(l, "--cfg=network/bandwidth-factor:0:0.97");
    add(l, "--cfg=network/latency-factor:0:1");
    add(l, "--cfg=network/crosstraffic:0");
    add(l, "--cfg=smpi/os:0:%g:0", p->overhead_s);
    add(l, "--cfg=smpi/or:0:%g:0", p->overhead_s);
    add(l, "--cfg=contexts/stack-size:1024");
    add(l, "--log=root.thresh:error");
}

ctn_status simulate(const platform *p, int64_t ranks, const char *folder, int n,
                    const char *const *words, char *text, size_t room)
{
    char xml[PATH_MAX], hosts[PATH_MAX], log[PATH_MAX], program[PATH_MAX];
    child c;
    static line l;
    l.n = 0;
    join(xml, sizeof xml, folder, "platform.xml");
    join(hosts, sizeof hosts, folder, "hosts");
    join(log, sizeof log, folder, "log");
    CTN_TRY(find_program(program));
    CTN_TRY(platform_write(p, ranks, xml, hosts));
    make_line(&l, p, ranks, xml, hosts);
    add(&l, "%s", program);
    for (int i = 0; i < n; i++) add(&l, "%s", words[i]);
    /* Long messages would otherwise be new memory each time. */
    setenv("MALLOC_MMAP_THRESHOLD_", "1000000000", 0);
    setenv("MALLOC_TRIM_THRESHOLD_", "4000000000", 0);
    CTN_TRY(child_start(&c, l.word, log));
    child_wait(&c, -1);
    return read_log(log, c.status, text, room);
}
