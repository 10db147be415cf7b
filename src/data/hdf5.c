/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds and loads the HDF5 plug-in: in CATENA_PLUGIN_DIR, else in the folder of libcatena itself,
 * else in the system's library path. It is loaded when the first path needs it and never unloaded.
 */
#include <dlfcn.h>
#include <pthread.h>

#include "data/source.h"

#define FILE_NAME "libcatena_hdf5.so"

static ctn_status load(const ctn__hdf5_plugin **out)
{
    ctn_status st = CTN_OK;
    const char *dir = ctn__env_str(CTN__ENV_PLUGIN_DIR);
    ctn__text path = {0};
    if (dir[0]) ctn__text_add(&path, "%s/", dir);
    else ctn__own_folder(&path);
    ctn__text_add(&path, FILE_NAME);
    if (path.failed) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    void *h = dlopen(path.s, RTLD_NOW | RTLD_LOCAL);
    if (!h && !dir[0]) h = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);
    const ctn__hdf5_plugin *p = h ? dlsym(h, "catena_hdf5") : NULL;
    if (!p) {
        const char *why = dlerror();
        st = ctn_fail(CTN_EUNSUPPORTED,
                      "hdf5: cannot load the plug-in " FILE_NAME ": %s; build Catena with HDF5 "
                      "(Debian: libhdf5-dev), or set CATENA_PLUGIN_DIR to the plug-in's folder",
                      why ? why : "unknown reason");
    } else if (p->abi != CTN__HDF5_ABI) {
        st = ctn_fail(CTN_EUNSUPPORTED,
                      "hdf5: %s belongs to another version of Catena (ABI %u, expected %d)", path.s,
                      (unsigned)p->abi, CTN__HDF5_ABI);
    }
    if (st == CTN_OK) *out = p;
    else if (h) dlclose(h);
done:
    ctn__text_free(&path);
    return st;
}

ctn_status ctn__hdf5_load(const ctn__hdf5_plugin **out)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards loaded */
    static const ctn__hdf5_plugin *loaded;
    ctn_status st = CTN_OK;
    pthread_mutex_lock(&lock);
    if (!loaded) st = load(&loaded);
    *out = loaded;
    pthread_mutex_unlock(&lock);
    return st;
}
