/* SPDX-License-Identifier: Apache-2.0
 *
 * The hosts of a job, with the number of ranks that fit on each: from the command line, from a
 * file, or from Slurm. A host that is named several times has that many ranks.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "start/start.h"

enum { MAX_LIST = 1 << 20 }; /* bytes of a list of host names */

void hosts_free(hosts *h)
{
    free(h->at);
    *h = (hosts){0};
}

static ctn_status add(hosts *h, const char *name, size_t n, int64_t ranks)
{
    if (n == 0 || n >= sizeof h->at->name || name[0] == '-')
        return ctn_fail(CTN_EARG, "'%.*s' is not the name of a host", (int)n, name);
    for (int i = 0; i < h->n; i++) {
        host *same = &h->at[i];
        if (strlen(same->name) != n || memcmp(same->name, name, n) != 0) continue;
        same->ranks = (same->ranks ? same->ranks : 1) + (ranks ? ranks : 1);
        return CTN_OK;
    }
    host *more = realloc(h->at, (size_t)(h->n + 1) * sizeof *more);
    if (!more) return ctn_fail(CTN_ENOMEM, "no memory for the names of %d hosts", h->n + 1);
    h->at = more;
    more[h->n] = (host){.ranks = ranks};
    memcpy(more[h->n++].name, name, n);
    return CTN_OK;
}

/* The number after "name" in "name:2" or "name slots=2"; 0: there is none; -1: wrong. */
static int64_t ranks_after(const char *s)
{
    char *end = NULL;
    const char *slots = strstr(s, "slots=");
    const char *number = *s == ':' ? s + 1 : slots ? slots + strlen("slots=") : NULL;
    if (!number) return 0;
    const long long n = strtoll(number, &end, 10);
    return end == number || n < 1 || n > INT32_MAX ? -1 : n;
}

static ctn_status add_text(hosts *h, const char *text)
{
    text += strspn(text, " \t");
    const size_t n = strcspn(text, ": \t");
    const int64_t ranks = ranks_after(text + n);
    if (ranks < 0)
        return ctn_fail(CTN_EARG,
                        "'%s': expected a host, or a host and its number of ranks (%.*s:2)", text,
                        (int)n, text);
    return add(h, text, n, ranks);
}

ctn_status hosts_of_list(hosts *h, const char *list)
{
    char one[512];
    while (*list) {
        const size_t n = strcspn(list, ",");
        snprintf(one, sizeof one, "%.*s", (int)n, list);
        CTN_TRY(add_text(h, one));
        list += n + (list[n] == ',');
    }
    return CTN_OK;
}

ctn_status hosts_of_file(hosts *h, const char *path)
{
    char line[1024];
    FILE *f = fopen(path, "r");
    if (!f) return ctn_fail(CTN_EIO, "cannot read %s: %s", path, strerror(errno));
    ctn_status st = CTN_OK;
    while (st == CTN_OK && fgets(line, sizeof line, f)) {
        line[strcspn(line, "#\r\n")] = 0;
        if (line[strspn(line, " \t")]) st = add_text(h, line);
    }
    fclose(f);
    if (st == CTN_OK && h->n == 0) st = ctn_fail(CTN_EARG, "%s names no hosts", path);
    return st;
}

/* ---- Slurm ----------------------------------------------------------------------------------- */

/* Tasks of each node as Slurm writes them: "2(x3),1" are 2, 2, 2 and 1. */
static void slurm_tasks(hosts *h, const char *s)
{
    for (int i = 0; s && *s && i < h->n;) {
        char *end = NULL;
        const long tasks = strtol(s, &end, 10);
        long times = 1;
        if (end == s || tasks < 1) return;
        if (strncmp(end, "(x", 2) == 0) times = strtol(end + 2, &end, 10);
        for (; times > 0 && i < h->n; times--) h->at[i++].ranks = tasks;
        s = end + strcspn(end, ",");
        s += *s == ',';
    }
}

ctn_status hosts_of_slurm(hosts *h)
{
    const char *nodes = getenv("SLURM_JOB_NODELIST");
    if (!nodes || !nodes[0]) return CTN_OK;
    char *text = malloc(MAX_LIST);
    if (!text) return ctn_fail(CTN_ENOMEM, "no memory for the hosts of the Slurm job");
    char *const argv[] = {"scontrol", "show", "hostnames", (char *)nodes, NULL};
    const int code = process_output(argv, text, MAX_LIST);
    ctn_status st = CTN_OK;
    for (char *line = text, *end; code == 0 && st == CTN_OK && *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end) *end++ = 0;
        st = add(h, line, strlen(line), 0);
    }
    free(text);
    slurm_tasks(h, getenv("SLURM_TASKS_PER_NODE"));
    return st;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

void hosts_divide(hosts *h, int64_t ranks)
{
    int without = 0;
    for (int i = 0; i < h->n; i++) {
        without += h->at[i].ranks == 0;
        ranks -= h->at[i].ranks;
    }
    if (without == 0) return;
    const int64_t each = ranks > 0 ? (ranks + without - 1) / without : 1;
    for (int i = 0; i < h->n; i++)
        if (h->at[i].ranks == 0) h->at[i].ranks = each;
}

int64_t hosts_ranks(const hosts *h)
{
    int64_t sum = 0;
    for (int i = 0; i < h->n; i++) sum += h->at[i].ranks;
    return sum;
}

bool hosts_several(const hosts *h)
{
    char self[256] = "";
    gethostname(self, sizeof self - 1);
    if (h->n != 1) return h->n > 1;
    return strcmp(h->at[0].name, self) != 0 && strcmp(h->at[0].name, "localhost") != 0;
}
