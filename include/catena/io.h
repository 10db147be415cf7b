/* SPDX-License-Identifier: Apache-2.0
 *
 * Files: weights of a module in safetensors format, exchangeable with other frameworks, and the
 * whole state of a training (module, optimizer, context, loader) in one such file, restored bit by
 * bit. A file appears under its name complete or not at all. A build without yyjson returns
 * EUNSUPPORTED.
 */
#ifndef CATENA_IO_H
#define CATENA_IO_H

#include <catena/data.h>
#include <catena/nn.h>
#include <catena/optim.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- weights --------------------------------------------------------------------------------- */

/* Every parameter and state of m under its name, a tied one under its first. Between scopes. Local.
 * Errors: EIO, ESTATE, ENOMEM, EUNSUPPORTED. */
CTN_API CTN_MUST_CHECK ctn_status ctn_weights_save(ctn_module *m, const char *path);

typedef struct {
    size_t struct_size;
    int partial; /* 1: names on one side only are left alone; shapes must fit still */
    /* Pairs of (name in the model, name in the file), ended by NULL; a name stands for itself and
     * for all below it, "" for all: {"fc", "head.fc", NULL}. The first pair that fits is used. */
    const char *const *rename;
    /* The name in the file of a variable of the model, after rename; it may be written to buf of n
     * bytes. NULL: the variable is not to be loaded. */
    const char *(*map)(void *user, const char *name, char *buf, size_t n);
    void *user; /* of map */
} ctn_weights_opt;

/* Set the parameters and states of m from a file; float types are converted. Unless partial, every
 * name of the model must be in the file and the reverse (a tied variable: any of its names). All is
 * checked before anything is changed; only a disk that fails while values are read (EIO) leaves
 * some of them loaded. Between scopes. Local. Errors: ENOTFOUND, ESHAPE and EDTYPE with the names
 * in the message; EIO with the offset, EFORMAT, ESTATE, ENOMEM, EUNSUPPORTED. */
CTN_API CTN_MUST_CHECK ctn_status ctn_weights_load(ctn_module *m, const char *path,
                                                   const ctn_weights_opt *opt);

/* ---- state of a training --------------------------------------------------------------------- */

/* One thing to save: its arrays are stored as prefix.name. visit calls fn for each array, and takes
 * over what fn wrote into its temporaries. */
typedef struct {
    const char *prefix;
    ctn_status (*visit)(void *object, ctn_state_fn fn, void *user);
    void *object; /* borrowed */
} ctn_state_part;

/* The parts Catena knows. Local. Result: a plain value; prefix is borrowed. */
CTN_API ctn_state_part ctn_part_module(const char *prefix, ctn_module *m);
CTN_API ctn_state_part ctn_part_optim(const char *prefix, ctn_optim *o);
CTN_API ctn_state_part ctn_part_context(const char *prefix, ctn_context *ctx);
CTN_API ctn_state_part ctn_part_loader(const char *prefix, ctn_loader *l);

/* Write all parts to one file. Between scopes. Local. Errors: EARG (a name twice), EIO, ESTATE,
 * ENOMEM, EUNSUPPORTED. */
CTN_API CTN_MUST_CHECK ctn_status ctn_state_save(const char *path, int n,
                                                 const ctn_state_part *parts);
/* Restore the parts from a file; parts of it that are not asked for are left alone. Names, types
 * and shapes of all parts are checked before anything is changed; nothing is converted. Between
 * scopes. Local. Errors: ENOTFOUND, ESHAPE, EDTYPE; EIO, EFORMAT, ESTATE, ENOMEM, EUNSUPPORTED;
 * those of a part that refuses its values. That, and a disk that fails while values are read (EIO),
 * leaves what came before restored. */
CTN_API CTN_MUST_CHECK ctn_status ctn_state_load(const char *path, int n,
                                                 const ctn_state_part *parts);

#ifdef __cplusplus
}
#endif
#endif
