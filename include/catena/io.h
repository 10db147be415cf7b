/* SPDX-License-Identifier: Apache-2.0
 *
 * Files: the weights of a module in safetensors format, which other frameworks can read and
 * write, and the complete state of a training run (module, optimizer, context, loader) in one
 * such file, restored to the bit. Files are written atomically. A build without yyjson returns
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

/* ---- weights -------------------------------------------------------------------------------- */

/* Save every parameter and state of m under its name, a tied one under its first name. Call it
 * between scopes. Local. Errors: EIO, ESTATE, ENOMEM, EUNSUPPORTED. */
CTN_API CTN_MUST_CHECK ctn_status ctn_weights_save(ctn_module *m, const char *path);

typedef struct {
    size_t struct_size;
    /* Endings of the names to save, ended by NULL: {"lora_A.weight", "lora_B.weight", NULL}. An
     * ending consists of whole parts between dots. NULL: all. */
    const char *const *only;
} ctn_weights_save_opt;
/* The same with options. To load a file that has only some of the names, set partial in
 * ctn_weights_opt. Errors: also ENOTFOUND (no name has one of the endings). */
CTN_API CTN_MUST_CHECK ctn_status ctn_weights_save_with(ctn_module *m, const char *path,
                                                        const ctn_weights_save_opt *opt);

typedef struct {
    size_t struct_size;
    /* 1: ignore names that only the model or only the file has; shapes must still match. */
    int partial;
    /* Pairs of (name in the model, name in the file), ended by NULL: {"fc", "head.fc", NULL}. A
     * name stands for itself and everything below it, "" for everything. The first matching
     * pair is used. */
    const char *const *rename;
    /* Returns the name in the file for a variable of the model, after rename; it may be written
     * to buf, which has n bytes. Returns NULL if the variable is not to be loaded. */
    const char *(*map)(void *user, const char *name, char *buf, size_t n);
    void *user; /* argument of map */
} ctn_weights_opt;

/* Set the parameters and states of m from files; float types are converted. path is one of:
 *   - a safetensors file,
 *   - the index of a model in several files (model.safetensors.index.json, or any other path that
 *     ends in .json), which names files in its own folder,
 *   - a folder with model.safetensors or, without that, model.safetensors.index.json.
 * Unless partial is set, model and file must have the same names (any one of its names for a tied
 * variable). Everything is checked before anything is changed, so only a disk error while values
 * are read (EIO) leaves the model partly loaded. Call it between scopes. Local. Errors: ENOTFOUND,
 * ESHAPE and EDTYPE with the names in the message; EIO with the offset or the missing file, EFORMAT
 * (also of an index that does not fit its files), ESTATE, ENOMEM, EUNSUPPORTED. */
CTN_API CTN_MUST_CHECK ctn_status ctn_weights_load(ctn_module *m, const char *path,
                                                   const ctn_weights_opt *opt);

/* ---- state of a training run ---------------------------------------------------------------- */

/* One object to save or restore. Its arrays are stored as prefix.name. visit calls fn for each
 * array; where it passes a temporary copy, it adopts what fn has written there. */
typedef struct {
    const char *prefix;
    ctn_status (*visit)(void *object, ctn_state_fn fn, void *user);
    void *object; /* borrowed */
} ctn_state_part;

/* Parts for Catena's own objects. Local. Result: a plain value with pointers to prefix and the
 * object. */
CTN_API ctn_state_part ctn_part_module(const char *prefix, ctn_module *m);
CTN_API ctn_state_part ctn_part_optim(const char *prefix, ctn_optim *o);
CTN_API ctn_state_part ctn_part_context(const char *prefix, ctn_context *ctx);
CTN_API ctn_state_part ctn_part_loader(const char *prefix, ctn_loader *l);

/* Write all parts to one file. Call it between scopes. Local. Errors: EARG (a name occurs
 * twice), EIO, ESTATE, ENOMEM, EUNSUPPORTED. */
CTN_API CTN_MUST_CHECK ctn_status ctn_state_save(const char *path, int n,
                                                 const ctn_state_part *parts);
/* Restore the parts from a file; other parts in the file are ignored. The names, types and
 * shapes of all parts are checked before anything is changed; nothing is converted. If a part
 * rejects its values, or the disk fails while values are read (EIO), the parts before it have
 * already been restored. Call it between scopes. Local. Errors: ENOTFOUND, ESHAPE, EDTYPE, EIO,
 * EFORMAT, ESTATE, ENOMEM, EUNSUPPORTED, those of the parts. */
CTN_API CTN_MUST_CHECK ctn_status ctn_state_load(const char *path, int n,
                                                 const ctn_state_part *parts);

#ifdef __cplusplus
}
#endif
#endif
