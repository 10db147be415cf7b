/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads the user's own network from a shared object. It runs with the user's rights, so the
 * command line must name it, as a path with a slash: a configuration, such as the one in a
 * colleague's result folder, is data and never decides what code runs. Nothing is searched for,
 * and files that others could have replaced are refused.
 */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "task.h"

static ctn_status refuse_writable(const char *path, const char *what)
{
    struct stat st;
    if (stat(path, &st) != 0) return ctn_fail(CTN_EARG, "%s: %s", path, strerror(errno));
    if (!(st.st_mode & S_IWOTH)) return CTN_OK;
    return ctn_fail(CTN_EARG,
                    "%s: %s is writable by everybody, so anyone could have put code there: "
                    "chmod o-w it, or move the file",
                    path, what);
}

/* FNV-1a of the content, only to tell files apart; not a security measure. */
static ctn_status content_hash(const char *path, uint64_t *hash)
{
    unsigned char buf[65536];
    FILE *f = fopen(path, "rb");
    if (!f) return ctn_fail(CTN_EARG, "cannot read %s: %s", path, strerror(errno));
    *hash = 14695981039346656037u;
    size_t n;
    do {
        n = fread(buf, 1, sizeof buf, f);
        for (size_t i = 0; i < n; i++) *hash = (*hash ^ buf[i]) * 1099511628211u;
    } while (n == sizeof buf);
    bool bad = ferror(f) != 0;
    fclose(f);
    return bad ? ctn_fail(CTN_EARG, "cannot read %s", path) : CTN_OK;
}

static ctn_status record_hash(task *t, const char *path)
{
    char now[32];
    uint64_t hash = 0;
    CTN_TRY(content_hash(path, &hash));
    snprintf(now, sizeof now, "%016" PRIx64, hash);
    const char *was = args_text(t->a, "model-hash");
    if (was[0] && strcmp(was, now) != 0)
        log_line("warning: %s has changed since the configuration was written: its hash is %s, not "
                 "%s",
                 path, now, was);
    args_settle(t->a, "model-hash", "%s", now);
    return CTN_OK;
}

static ctn_status refuse_unnamed(const args *a, const char *path)
{
    if (!a->operand_from) return CTN_OK;
    return ctn_fail(CTN_EARG,
                    "%s names the network %s, whose code would run with your rights, so it is only "
                    "loaded if the command line names it: if you trust it, use catena %s %s with "
                    "the same options",
                    a->operand_from, path, a->cmd->name, path);
}

ctn_status own_open(task *t, const char *path)
{
    ctn_status st = CTN_OK;
    CTN_TRY(refuse_unnamed(t->a, path));
    char *real = realpath(path, NULL);
    if (!real) return ctn_fail(CTN_EARG, "%s: %s", path, strerror(errno));
    CTN_TRY_GOTO(st, done, refuse_writable(real, "the file"));
    char *slash = strrchr(real, '/');
    *slash = 0;
    CTN_TRY_GOTO(st, done, refuse_writable(real[0] ? real : "/", "the folder"));
    *slash = '/';
    CTN_TRY_GOTO(st, done, record_hash(t, real));
    t->library = dlopen(real, RTLD_NOW | RTLD_LOCAL);
    if (!t->library) {
        st = ctn_fail(CTN_EARG, "%s cannot be loaded: %s", path, dlerror());
        goto done;
    }
    t->own = dlsym(t->library, "catena_model");
    if (!t->own)
        st = ctn_fail(CTN_EARG, "%s has no symbol catena_model: see <catena/model.h>", path);
    else if (t->own->abi != CTN_MODEL_ABI || t->own->struct_size < sizeof(ctn_model))
        st =
            ctn_fail(CTN_EARG,
                     "%s was built for model ABI %u, but this catena has ABI %d: recompile it with "
                     "the headers of this version",
                     path, t->own->abi, CTN_MODEL_ABI);
    else if (!t->own->make) st = ctn_fail(CTN_EARG, "%s: catena_model has no make", path);
done:
    free(real);
    return st;
}

void own_close(task *t)
{
    if (t->library) dlclose(t->library);
    t->library = NULL;
}
