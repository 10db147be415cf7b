/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds and loads the MPI plug-in, libcatena_mpi_<kind>.so: in CATENA_PLUGIN_DIR, in the user's
 * folder (where `catena mpi-setup` puts it), next to libcatena, or on the system's library path.
 * Nothing is loaded until a program asks for MPI or uses it.
 *
 * A plug-in is loaded once and kept. Plug-ins built with Catena do not link to MPI. They use the
 * MPI library of the process, or the one that the system finds under the names below, so each
 * serves all MPI libraries of its kind. Called by comm/comm.c.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEFAULT */
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "comm/comm.h"
#include "comm/mpi_folders.h"

typedef struct {
    const char *abi;
    const char *library[2];
    const char *folder;
} kind;

static const kind kinds[] = {
    {"site", {NULL}, ""},
    {"openmpi", {"libmpi.so.40"}, CTN_MPI_OPENMPI_DIR},
    {"mpich", {"libmpi.so.12", "libmpich.so.12"}, CTN_MPI_MPICH_DIR},
};
enum { NKINDS = sizeof kinds / sizeof *kinds };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the two below */
static const ctn__net_plugin *loaded;
static bool ours; /* MPI runs because of ctn_mpi_init */

static const kind *kind_of(const char *abi)
{
    for (int i = 0; i < NKINDS; i++)
        if (strcmp(kinds[i].abi, abi) == 0) return &kinds[i];
    return NULL;
}

/* ---- the MPI of the process ----------------------------------------------------------------- */

/* The kind of MPI that the process has loaded; NULL: none. *library: a handle for dlsym. */
static const kind *present(void **library)
{
    for (int i = 0; i < NKINDS; i++)
        for (int k = 0; k < 2 && kinds[i].library[k]; k++) {
            *library = dlopen(kinds[i].library[k], RTLD_LAZY | RTLD_NOLOAD);
            if (*library) return &kinds[i];
        }
    /* It may have another file name or be linked into the program. */
    *library = RTLD_DEFAULT;
    if (!dlsym(RTLD_DEFAULT, "MPI_Init")) return NULL;
    return kind_of(dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") ? "openmpi" : "mpich");
}

static bool initialized(void *library)
{
    int (*ask)(int *) = NULL;
    *(void **)&ask = dlsym(library, "MPI_Initialized");
    int yes = 0;
    return ask && ask(&yes) == 0 && yes;
}

/* Loads the MPI library into the global scope, where plug-ins find it. Prefers the one that the
 * process already has. */
static bool load_library(const kind *k)
{
    for (int i = 0; i < 2 && k->library[i]; i++)
        if (dlopen(k->library[i], RTLD_LAZY | RTLD_GLOBAL | RTLD_NOLOAD)) return true;
    for (int i = 0; i < 2 && k->library[i]; i++)
        if (dlopen(k->library[i], RTLD_NOW | RTLD_GLOBAL)) return true;
    for (int i = 0; i < 2 && k->library[i] && k->folder[0]; i++) {
        ctn__text path = {0};
        ctn__text_add(&path, "%s/%s", k->folder, k->library[i]);
        void *h = path.failed ? NULL : dlopen(path.s, RTLD_NOW | RTLD_GLOBAL);
        ctn__text_free(&path);
        if (h) return true;
    }
    return false;
}

/* ---- the plug-in ---------------------------------------------------------------------------- */

/* Loads one file. On failure the reason is added to *why. k NULL: any kind. */
static bool load_file(const char *path, const kind *k, ctn__text *why)
{
    /* RTLD_GLOBAL is for an MPI library that the plug-in links to: older ones load components that
     * look for it in the global scope. */
    void *h = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    for (int i = 0; !h && i < NKINDS; i++)
        if (k == &kinds[i] || (!k && strstr(path, kinds[i].abi)))
            if (load_library(&kinds[i])) h = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    const ctn__net_plugin *p = h ? dlsym(h, "catena_net") : NULL;
    if (!p) {
        const char *reason = dlerror();
        ctn__text_add(why, "%s", reason ? reason : path);
    } else if (p->abi != CTN__NET_ABI) {
        ctn__text_add(
            why,
            "%s is for another version of Catena (ABI %u, expected %d); run catena mpi-setup again",
            path, (unsigned)p->abi, CTN__NET_ABI);
    } else if (k && strcmp(p->mpi, k->abi) != 0) {
        ctn__text_add(why, "%s is for %s, expected %s", path, p->mpi, k->abi);
    } else {
        p->use(ctn_fail);
        loaded = p;
        return true;
    }
    if (h) dlclose(h);
    return false;
}

/* Folder number i to search, with a slash; false: no more folders. */
static bool folder_at(int i, ctn__text *out)
{
    const char *plugins = ctn__env_str(CTN__ENV_PLUGIN_DIR), *data = getenv("XDG_DATA_HOME"),
               *home = getenv("HOME");
    if (i == 0 && plugins[0]) ctn__text_add(out, "%s/", plugins);
    else if (i == 1 && data && data[0]) ctn__text_add(out, "%s/catena/", data);
    else if (i == 1 && home && home[0]) ctn__text_add(out, "%s/.local/share/catena/", home);
    else if (i == 2) ctn__own_folder(out);
    return i < 3;
}

/* Loads the first file found for this kind. If it cannot be used, no other one is tried. */
static bool load_kind(const kind *k, ctn__text *why)
{
    bool found = false, good = false;
    ctn__text path = {0};
    for (int i = 0; !found && folder_at(i, &path); i++) {
        if (path.n > 0) ctn__text_add(&path, "libcatena_mpi_%s.so", k->abi);
        found = path.n > 0 && !path.failed && access(path.s, F_OK) == 0;
        if (found) good = load_file(path.s, k, why);
        ctn__text_free(&path);
        path = (ctn__text){0};
    }
    ctn__text_free(&path);
    if (found) return good;
    ctn__text_add(&path, "libcatena_mpi_%s.so", k->abi);
    good = !path.failed && load_file(path.s, k, why);
    ctn__text_free(&path);
    return good;
}

/* Loads the plug-in that CATENA_MPI names by its path, or the one of a kind, unless it is loaded
 * already. k NULL: the first one that can be loaded. */
static ctn_status load(const kind *k)
{
    const char *asked = ctn__env_str(CTN__ENV_MPI);
    ctn__text why = {0};
    ctn_status st = CTN_OK;
    if (loaded) {
        if (k && strcmp(loaded->mpi, k->abi) != 0)
            st = ctn_fail(CTN_EUNSUPPORTED,
                          "mpi: this process already uses %s and cannot also use %s", loaded->mpi,
                          k->abi);
        return st;
    }
    bool good = false;
    if (strchr(asked, '/')) good = load_file(asked, k, &why);
    else if (k) good = load_kind(k, &why);
    for (int i = 0; !strchr(asked, '/') && !k && !good && i < NKINDS; i++) {
        if (why.n > 0) ctn__text_add(&why, "; ");
        good = load_kind(&kinds[i], &why);
    }
    if (!good)
        st = ctn_fail(
            CTN_EUNSUPPORTED,
            "mpi: no plug-in for %s: %s; `catena mpi-setup` builds one with this machine's mpicc",
            k ? k->abi : "any MPI", why.s ? why.s : "out of memory");
    ctn__text_free(&why);
    return st;
}

/* ---- which one ------------------------------------------------------------------------------ */

static bool is_set(const char *name)
{
    const char *s = getenv(name);
    return s && s[0];
}

/* The kind of MPI of this process's launcher; NULL: none, or it serves several kinds. */
static const kind *launcher(void)
{
    if (is_set("OMPI_COMM_WORLD_SIZE")) return kind_of("openmpi");
    if (is_set("PMI_RANK") || is_set("PMI_FD")) return kind_of("mpich");
    if (is_set("PMIX_RANK")) return kind_of("openmpi");
    return NULL;
}

/* *out NULL: any. */
static ctn_status choose(const kind **out)
{
    const char *asked = ctn__env_str(CTN__ENV_MPI);
    void *library;
    const kind *here = present(&library), *k = kind_of(asked);
    *out = NULL;
    if (strchr(asked, '/')) return CTN_OK;
    if (asked[0] && !k)
        return ctn_fail(CTN_EARG, "CATENA_MPI is %s, expected openmpi, mpich, site or a path",
                        asked);
    if (!k) k = launcher();
    if (k && here && k != here && strcmp(k->abi, "site") != 0)
        return ctn_fail(
            CTN_EUNSUPPORTED,
            "mpi: this job was launched for %s, but the process has loaded a library of %s; use "
            "the launcher of that library",
            k->abi, here->abi);
    *out = k ? k : here;
    return CTN_OK;
}

/* Open MPI and UCX print the stack of a crash from signal handlers. If the crash is in malloc, they
 * wait forever for the lock of malloc, and other ranks cannot see that this one is lost. So the
 * program's own handlers are kept. */
static const int crashes[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};
enum { NCRASHES = sizeof crashes / sizeof *crashes };

ctn_status ctn_mpi_init(int *argc, char ***argv)
{
    const kind *k = NULL;
    ctn_status st = CTN_OK;
    struct sigaction own[NCRASHES];
    for (int i = 0; i < NCRASHES; i++) sigaction(crashes[i], NULL, &own[i]);
    pthread_mutex_lock(&lock);
    CTN_TRY_GOTO(st, done, choose(&k));
    CTN_TRY_GOTO(st, done, load(k));
    CTN_TRY_GOTO(st, done, loaded->init(argc, argv));
    ours = true;
done:
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < NCRASHES; i++) sigaction(crashes[i], &own[i], NULL);
    return st;
}

ctn_status ctn_mpi_finalize(void)
{
    pthread_mutex_lock(&lock);
    const bool mine = ours;
    ours = false;
    pthread_mutex_unlock(&lock);
    if (!mine) return ctn_fail(CTN_ESTATE, "mpi_finalize: MPI was not started by ctn_mpi_init");
    CTN_TRY(loaded->finalize());
    return CTN_OK;
}

ctn_status ctn__net_world(ctn__net **out)
{
    ctn_status st = CTN_OK;
    void *library;
    *out = NULL;
    pthread_mutex_lock(&lock);
    if (!loaded) {
        const kind *here = present(&library);
        if (here && initialized(library)) st = load(here);
    }
    const ctn__net_plugin *p = loaded;
    pthread_mutex_unlock(&lock);
    CTN_TRY(st);
    if (p && p->running()) CTN_TRY(p->world(out));
    return CTN_OK;
}

ctn_status ctn__net_adopt(ctn__net **out, const char *abi, const void *handle)
{
    *out = NULL;
    const kind *k = abi ? kind_of(abi) : NULL;
    if (!k)
        return ctn_fail(CTN_EARG, "comm_adopt: the ABI is %s, expected openmpi, mpich or site",
                        abi ? abi : "NULL");
    if (!handle) return ctn_fail(CTN_EARG, "comm_adopt: handle is NULL");
    pthread_mutex_lock(&lock);
    ctn_status st = load(k);
    pthread_mutex_unlock(&lock);
    CTN_TRY(st);
    CTN_TRY(loaded->adopt(out, handle));
    return CTN_OK;
}

ctn_status ctn__net_adopt_fortran(ctn__net **out, int handle)
{
    const char *asked = ctn__env_str(CTN__ENV_MPI);
    const bool file = strchr(asked, '/') != NULL;
    ctn_status st = CTN_OK;
    void *library;
    *out = NULL;
    pthread_mutex_lock(&lock);
    const kind *k = file ? NULL : kind_of(asked);
    if (!k && !file) k = present(&library);
    if (k || file) st = load(k);
    else
        st = ctn_fail(CTN_ESTATE, "comm_adopt_fortran: this process has not loaded an MPI library");
    pthread_mutex_unlock(&lock);
    CTN_TRY(st);
    CTN_TRY(loaded->adopt_fortran(out, handle));
    return CTN_OK;
}
