/* SPDX-License-Identifier: Apache-2.0
 *
 * catena mpi-setup: builds the MPI plug-in for the MPI of this machine. The source is installed
 * with the command; the site's mpicc compiles it into the folder that the library searches
 * first. The plug-in gets its final name only after a test process has loaded it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"

#ifndef CATENA_DATA_FROM_BIN
#define CATENA_DATA_FROM_BIN "../share"
#endif

enum { LOG_LINES = 20 };

extern char **environ;

typedef struct {
    char source[PATH_MAX];               /* folder of mpi.c and the headers it includes */
    char folder[PATH_MAX];               /* of the result */
    char made[PATH_MAX];                 /* folder for the result before the check; "": none yet */
    char part[PATH_MAX], path[PATH_MAX]; /* the result before and after the check */
    char kind[64], library[256];         /* the MPI it is for, according to the plug-in and MPI */
    const char *mpicc;
} setup;

/* What the child process that loads the plug-in finds out. */
typedef struct {
    uint32_t abi;
    char kind[64], library[256], error[1024];
} finding;

/* The beginning of ctn__net_plugin, which never changes. */
typedef struct {
    uint32_t abi;
    const char *mpi;
} plugin_head;

static ctn_status format(char *out, const char *a, const char *b, const char *c)
{
    int n = snprintf(out, PATH_MAX, "%s%s%s", a, b, c);
    return n >= 0 && n < PATH_MAX ? CTN_OK
                                  : ctn_fail(CTN_EARG, "%s%s%s: the path is too long", a, b, c);
}

/* The source lies at a fixed place relative to the command, both installed and in a build
 * folder. */
static ctn_status find_source(setup *s)
{
    char self[PATH_MAX], file[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0) return ctn_fail(CTN_EUNSUPPORTED, "/proc/self/exe: %s", strerror(errno));
    self[n] = 0;
    char *slash = strrchr(self, '/');
    if (slash) slash[1] = 0;
    CTN_TRY(format(s->source, self, CATENA_DATA_FROM_BIN, "/catena/mpi"));
    CTN_TRY(format(file, s->source, "/mpi.c", ""));
    if (access(file, R_OK) == 0) return CTN_OK;
    return ctn_fail(CTN_EUNSUPPORTED, "%s: %s; the file is part of the installation of the command",
                    file, strerror(errno));
}

static ctn_status make_folders(const char *path)
{
    char part[PATH_MAX];
    for (size_t i = 1; path[i - 1]; i++) {
        if (path[i] && path[i] != '/') continue;
        memcpy(part, path, i);
        part[i] = 0;
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return ctn_fail(CTN_EIO, "cannot make the folder %s: %s", part, strerror(errno));
    }
    return CTN_OK;
}

/* --out, else the first folder in the library's search path that belongs to the user. */
static ctn_status find_folder(setup *s, const char *out)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (out[0]) CTN_TRY(format(s->folder, out, "", ""));
    else if (data && data[0]) CTN_TRY(format(s->folder, data, "/catena", ""));
    else if (home && home[0]) CTN_TRY(format(s->folder, home, "/.local/share/catena", ""));
    else
        return ctn_fail(CTN_EARG,
                        "neither XDG_DATA_HOME nor HOME is set: give a folder with --out");
    CTN_TRY(make_folders(s->folder));
    /* Where others may write to the folder, they must not change what is compiled and loaded. */
    CTN_TRY(format(s->made, s->folder, "/.libcatena_mpi.XXXXXX", ""));
    if (!mkdtemp(s->made)) {
        const ctn_status st =
            ctn_fail(CTN_EIO, "cannot make the folder %s: %s", s->made, strerror(errno));
        s->made[0] = 0;
        return st;
    }
    return format(s->part, s->made, "/plugin.so", "");
}

/* Print the last lines of the compiler's output. */
static void show_tail(FILE *log)
{
    char line[1024];
    long lines = 0, at = 0;
    if (fseek(log, 0, SEEK_SET) != 0) return;
    while (fgets(line, sizeof line, log)) lines++;
    if (fseek(log, 0, SEEK_SET) != 0) return;
    while (fgets(line, sizeof line, log))
        if (at++ >= lines - LOG_LINES) say_lines(stderr, "  | %s", line);
}

/* Whether the compiler's output complains about a missing <mpi.h> (as gcc and clang write it) or
 * about a missing MPI library. */
static bool lacks_mpi(FILE *log)
{
    static const char *const signs[] = {" mpi.h: ", "'mpi.h'", "-lmpi"};
    char line[1024];
    if (fseek(log, 0, SEEK_SET) != 0) return false;
    while (fgets(line, sizeof line, log))
        for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
            if (strstr(line, signs[i])) return true;
    return false;
}

/* Wait for a child. *code: its exit code, or 128 + signal. */
static ctn_status await(pid_t child, int *code)
{
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return ctn_fail(CTN_EIO, "waitpid: %s", strerror(errno));
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return CTN_OK;
}

static ctn_status compile(const setup *s)
{
    char file[PATH_MAX], include[PATH_MAX];
    CTN_TRY(format(file, s->source, "/mpi.c", ""));
    CTN_TRY(format(include, "-I", s->source, ""));
    const char *words[] = {s->mpicc,
                           "-std=gnu11",
                           "-O3",
                           "-ffp-contract=off",
                           "-fPIC",
                           "-shared",
                           "-fvisibility=hidden",
                           include,
                           file,
                           "-o",
                           s->part,
                           NULL};
    FILE *log = tmpfile();
    if (!log)
        return ctn_fail(CTN_EIO, "cannot create a temporary file for the compiler's messages: %s",
                        strerror(errno));
    posix_spawn_file_actions_t actions;
    pid_t child;
    int code = 0;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fileno(log), 1);
    posix_spawn_file_actions_adddup2(&actions, fileno(log), 2);
    int error = posix_spawnp(&child, s->mpicc, &actions, NULL, (char *const *)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    ctn_status st = error ? ctn_fail(CTN_EUNSUPPORTED,
                                     "cannot run %s: %s; load the module of your MPI, or give its "
                                     "compiler with --mpicc",
                                     s->mpicc, strerror(error))
                          : await(child, &code);
    if (st == CTN_OK && code != 0 && lacks_mpi(log)) {
        st = ctn_fail(CTN_EUNSUPPORTED,
                      "%s finds no mpi.h or no MPI library: install the development files of your "
                      "MPI (Debian: libopenmpi-dev or libmpich-dev), load its module, or give "
                      "another compiler with --mpicc",
                      s->mpicc);
    } else if (st == CTN_OK && code != 0) {
        say(stderr, "catena mpi-setup: %s ended with code %d:\n", s->mpicc, code);
        show_tail(log);
        st = ctn_fail(CTN_EUNSUPPORTED, "%s could not compile %s", s->mpicc, file);
    }
    fclose(log);
    return st;
}

/* Runs in its own process, so that side effects of loading MPI do not reach the command. */
static void load_in_child(const char *path, finding *f)
{
    void *h = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    const plugin_head *p = h ? dlsym(h, "catena_net") : NULL;
    if (!p) {
        const char *why = dlerror();
        snprintf(f->error, sizeof f->error, "%s", why ? why : "unknown reason");
        return;
    }
    f->abi = p->abi;
    snprintf(f->kind, sizeof f->kind, "%s", p->mpi);
    int (*version)(char *, int *) = NULL; /* may be called before MPI_Init */
    *(void **)&version = dlsym(h, "MPI_Get_library_version");
    char text[16384] = "";
    int n = 0;
    if (version && version(text, &n) == 0)
        snprintf(f->library, sizeof f->library, "%.*s", (int)strcspn(text, ",\n"), text);
}

static ctn_status load(const char *path, finding *f)
{
    int ends[2], code = 0;
    memset(f, 0, sizeof *f);
    if (pipe(ends) != 0) return ctn_fail(CTN_EIO, "pipe: %s", strerror(errno));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        load_in_child(path, f);
        _exit(write(ends[1], f, sizeof *f) == (ssize_t)sizeof *f ? 0 : 1);
    }
    close(ends[1]);
    ctn_status st = child < 0 ? ctn_fail(CTN_EIO, "fork: %s", strerror(errno)) : CTN_OK;
    bool whole = st == CTN_OK && read(ends[0], f, sizeof *f) == (ssize_t)sizeof *f;
    close(ends[0]);
    if (st == CTN_OK) st = await(child, &code);
    if (st == CTN_OK && !whole)
        st = ctn_fail(CTN_EUNSUPPORTED,
                      "the process that loaded the new plug-in ended with code %d", code);
    if (st == CTN_OK && f->error[0])
        st = ctn_fail(CTN_EUNSUPPORTED, "the new plug-in cannot be loaded: %s", f->error);
    return st;
}

/* The ABI number in the header of this installation. */
static ctn_status expected_abi(const setup *s, uint32_t *abi)
{
    char path[PATH_MAX], line[256];
    CTN_TRY(format(path, s->source, "/comm/net.h", ""));
    FILE *f = fopen(path, "r");
    if (!f) return ctn_fail(CTN_EIO, "%s: %s", path, strerror(errno));
    *abi = 0;
    while (*abi == 0 && fgets(line, sizeof line, f))
        if (strncmp(line, "#define CTN__NET_ABI ", 21) == 0) *abi = (uint32_t)atoi(line + 21);
    fclose(f);
    return *abi ? CTN_OK : ctn_fail(CTN_EFORMAT, "%s has no CTN__NET_ABI", path);
}

static ctn_status check(setup *s)
{
    finding f;
    uint32_t abi = 0;
    CTN_TRY(expected_abi(s, &abi));
    CTN_TRY(load(s->part, &f));
    if (f.abi != abi)
        return ctn_fail(CTN_EUNSUPPORTED, "the new plug-in has ABI %u, expected %u", f.abi, abi);
    memcpy(s->kind, f.kind, sizeof s->kind);
    memcpy(s->library, f.library, sizeof s->library);
    char name[128];
    snprintf(name, sizeof name, "/libcatena_mpi_%.60s.so", s->kind);
    CTN_TRY(format(s->path, s->folder, name, ""));
    if (rename(s->part, s->path) == 0) return CTN_OK;
    return ctn_fail(CTN_EIO, "cannot write %s: %s", s->path, strerror(errno));
}

static ctn_status build(setup *s, const char *out)
{
    CTN_TRY(find_source(s));
    ctn_status st = find_folder(s, out);
    if (st == CTN_OK) st = compile(s);
    if (st == CTN_OK) st = check(s);
    if (s->made[0]) remove_tree(s->made);
    return st;
}

static int run(args *a)
{
    setup s = {.mpicc = args_text(a, "mpicc")};
    if (build(&s, args_text(a, "out")) < 0) return report_failure("mpi-setup", DOING_SETUP);
    if (args_flag(a, "json")) {
        json j = {0};
        json_open(&j, NULL, '{');
        json_text(&j, "path", s.path);
        json_text(&j, "kind", s.kind);
        json_text(&j, "library", s.library[0] ? s.library : NULL);
        json_text(&j, "mpicc", s.mpicc);
        json_close(&j, '}');
        return EXIT_DONE;
    }
    say(stdout, "Plug-in: %s\nFor:     %s (%s)\n", s.path, s.library[0] ? s.library : "MPI",
        s.kind);
    if (args_given(a, "out"))
        say(stdout, "Programs find it if CATENA_PLUGIN_DIR=%s is set.\n", s.folder);
    return EXIT_DONE;
}

static const option options[] = {
    {"mpicc", "PATH", "mpicc", "compiler of the MPI that programs will be started with",
     GROUP_NONE},
    {"out", "DIR", NULL,
     "folder for the plug-in (default: catena in XDG_DATA_HOME, or ~/.local/share/catena)",
     GROUP_NONE},
    {"json", NULL, NULL, "print one JSON object", GROUP_NONE},
    {0},
};

const command cmd_mpi_setup = {
    .name = "mpi-setup",
    .operands = "",
    .summary = "Build the MPI plug-in with the MPI compiler of this machine.",
    .words = NULL,
    .options = options,
    .examples = "  catena mpi-setup                            with the first mpicc in PATH\n"
                "  catena mpi-setup --mpicc /opt/mpi/bin/mpicc with another one\n"
                "  catena mpi-setup --out /shared/catena       for all users of a cluster\n",
    .run = run,
};
