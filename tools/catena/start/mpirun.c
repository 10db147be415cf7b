/* SPDX-License-Identifier: Apache-2.0
 *
 * The launcher of the MPI, mpirun or mpiexec, and its command line. Ranks are not bound: Catena
 * divides the cores of a host among its ranks itself (cores.c), whereas Open MPI would bind each of
 * two ranks to a single core.
 */
#include <stdlib.h>
#include <string.h>

#include "start/start.h"

extern char **environ;

/* ---- which MPI ------------------------------------------------------------------------------- */

/* Reads what `mpirun --version` prints. */
static bool recognise(mpi_launcher *m, const char *text)
{
    static const char open[] = "(Open MPI) ", hydra[] = "Version:", intel[] = "Intel(R) MPI";
    const char *at = strstr(text, open);
    if (at) {
        const char *version = at + strlen(open);
        m->kind = OPEN_MPI;
        m->major = atoi(version);
        snprintf(m->name, sizeof m->name, "Open MPI %.*s", (int)strcspn(version, " \n"), version);
        return true;
    }
    m->kind = HYDRA;
    if (strstr(text, intel)) {
        snprintf(m->name, sizeof m->name, "Intel MPI");
        return true;
    }
    at = strstr(text, "HYDRA") ? strstr(text, hydra) : NULL;
    if (!at) return false;
    at += strlen(hydra);
    at += strspn(at, " ");
    snprintf(m->name, sizeof m->name, "MPICH %.*s", (int)strcspn(at, " \n"), at);
    return true;
}

static bool look(mpi_launcher *m, const char *path, int *code)
{
    char text[4096] = "";
    char *const argv[] = {(char *)path, "--version", NULL};
    *code = process_output(argv, text, sizeof text);
    snprintf(m->path, sizeof m->path, "%s", path);
    return *code == 0 && recognise(m, text);
}

ctn_status mpirun_find(mpi_launcher *m, const char *path)
{
    int code = 0;
    if (path[0] && look(m, path, &code)) return CTN_OK;
    if (path[0] && code == 127) return ctn_fail(CTN_EUNSUPPORTED, "cannot run %s", path);
    if (path[0])
        return ctn_fail(CTN_EUNSUPPORTED,
                        "%s --version does not name an MPI: give the mpirun of Open MPI or the "
                        "mpiexec of MPICH or Intel MPI",
                        path);
    if (look(m, "mpirun", &code) || look(m, "mpiexec", &code)) return CTN_OK;
    return ctn_fail(CTN_EUNSUPPORTED,
                    "found neither mpirun nor mpiexec of a known MPI: load the module of your MPI, "
                    "or use --mpirun PATH");
}

bool mpirun_survives(const mpi_launcher *m)
{
    return m->kind == OPEN_MPI && m->major >= 5;
}

/* ---- the command line ------------------------------------------------------------------------ */

static void add_all(words *w, const char *const *list)
{
    for (; *list; list++) words_add(w, "%s", *list);
}

/* "a:2,b:2"; equal: without the numbers. */
static void add_hosts(words *w, const hosts *on, bool equal)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f) {
        w->bad = true;
        return;
    }
    for (int i = 0; i < on->n; i++) {
        fprintf(f, "%s%s", i ? "," : "", on->at[i].name);
        if (!equal) fprintf(f, ":%lld", (long long)on->at[i].ranks);
    }
    if (fclose(f) != 0) w->bad = true;
    else words_add(w, "%s", text);
    free(text);
}

/* Open MPI passes only its own variables to other hosts. */
static void add_variables(words *w)
{
    for (char **e = environ; *e; e++) {
        const int n = (int)strcspn(*e, "=");
        if (strncmp(*e, "CATENA_", 7) != 0 && strncmp(*e, "OMP_", 4) != 0) continue;
        words_add(w, "-x");
        words_add(w, "%.*s", n, *e);
    }
}

/* With these, mpirun notices a host that can no longer be reached. */
/* clang-format off */
static const char *const probing[] = {
    "--prtemca", "oob_tcp_keepalive_time", "2",
    "--prtemca", "oob_tcp_keepalive_intvl", "1",
    "--prtemca", "oob_tcp_keepalive_probes", "3", NULL};
/* clang-format on */

/* User-level failure mitigation. The ranks set what else it needs (launch.c). mpirun would end the
 * job if it noticed a host that cannot be reached, so it must not. Only the daemon on that host
 * must, and end itself, without an exit code that mpirun would notice. */
static void survive_words(words *w)
{
    words_add(w, "--with-ft");
    words_add(w, "ulfm");
    words_add(w, "--prtemca");
    words_add(w, "prte_launch_agent");
    words_add(w, "sh -c '\"$@\" || :' x prted %s %s %s %s %s %s %s %s %s", probing[0], probing[1],
              probing[2], probing[3], probing[4], probing[5], probing[6], probing[7], probing[8]);
}

static void open_mpi_words(words *w, const placement *p)
{
    if (p->on.n > 0) {
        words_add(w, "--host");
        add_hosts(w, &p->on, false);
    }
    words_add(w, "--map-by");
    words_add(w, p->oversubscribe ? "slot:OVERSUBSCRIBE" : "slot");
    words_add(w, "--bind-to");
    words_add(w, "none");
    if (p->survive) survive_words(w);
    else if (p->mpi.major >= 5 && !p->local) add_all(w, probing);
    if (!p->local) add_variables(w);
}

/* Hydra passes all variables and does not bind by default. */
static void hydra_words(words *w, const placement *p)
{
    bool equal = true;
    for (int i = 1; i < p->on.n; i++) equal = equal && p->on.at[i].ranks == p->on.at[0].ranks;
    if (p->on.n == 0 || p->local) return;
    words_add(w, "-hosts");
    add_hosts(w, &p->on, equal);
    if (!equal) return;
    words_add(w, "-ppn");
    words_add(w, "%lld", (long long)p->on.at[0].ranks);
}

void mpirun_words(words *w, const placement *p)
{
    words_add(w, "%s", p->mpi.path);
    if (p->ranks > 0) {
        words_add(w, "-n");
        words_add(w, "%lld", (long long)p->ranks);
    }
    if (p->mpi.kind == OPEN_MPI) open_mpi_words(w, p);
    else hydra_words(w, p);
}

void mpirun_probe(words *w, const mpi_launcher *m, const host *h)
{
    words_add(w, "%s", m->path);
    add_all(w, (const char *const[]){"-n", "1", NULL});
    words_add(w, m->kind == OPEN_MPI ? "--host" : "-hosts");
    words_add(w, "%s", h->name);
    words_add(w, "true");
}
