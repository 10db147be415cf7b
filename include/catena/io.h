/* SPDX-License-Identifier: Apache-2.0
 *
 * Files: the weights of a module in safetensors format, which other frameworks can read and
 * write; weights that PyTorch has saved; and the complete state of a training run (module,
 * optimizer, context, loader) in one safetensors file, restored to the bit. Files are written
 * atomically. A build without yyjson cannot use safetensors files and returns EUNSUPPORTED.
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
    /* 1: do not wait until the file is on the disk. Readers still see the old file or the whole new
     * one, but a power failure may leave neither. */
    int no_sync;
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
    void *user; /* argument of map and fresh */
    /* 1, for fine-tuning: the last layer may have another number of outputs than in the file. Then
     * its parameters keep their values. They are those of the module of the last name in
     * ctn_params, and only their first dimension may differ. */
    int new_head;
    /* Called for each of these parameters, once the file is known to fit; NULL: not needed. */
    void (*fresh)(void *user, const char *name, const ctn_desc *here, const ctn_desc *file);
} ctn_weights_opt;

/* Set the parameters and states of m from files; float types are converted. path is one of:
 *   - a safetensors file,
 *   - a checkpoint of PyTorch (.pt, .pth, pytorch_model.bin), see ctn_weights_open,
 *   - the index of a model in several files (model.safetensors.index.json, or any other path that
 *     ends in .json), which names files in its own folder,
 *   - a folder with model.safetensors, model.safetensors.index.json, pytorch_model.bin or
 *     pytorch_model.bin.index.json, tried in this order.
 * Unless partial is set, model and file must have the same names (any one of its names for a tied
 * variable); a file may lack all counters num_batches_tracked. If the names differ and opt has
 * neither rename nor map, the names that other programs use are tried: the prefixes of wrappers
 * (module., model., _orig_mod.) and the vision transformers of timm and torchvision. A notice
 * (ctn_set_notice) says which names were used. Everything is checked before anything is changed, so
 * only a disk error while values are read (EIO) leaves the model partly loaded. Call it between
 * scopes. Local. Errors: ENOTFOUND, ESHAPE and EDTYPE, whose messages list the differences with the
 * nearest names; EIO with the offset or the missing file, EFORMAT (also of an index that does not
 * fit its files), ESTATE, ENOMEM, EUNSUPPORTED. */
CTN_API CTN_MUST_CHECK ctn_status ctn_weights_load(ctn_module *m, const char *path,
                                                   const ctn_weights_opt *opt);

/* How one variable of a model and one array of a file fit. */
typedef struct {
    const char *name;    /* of the variable; NULL: the model does not have this array */
    const char *array;   /* name in the file; NULL: the file does not have this variable */
    const char *problem; /* with shapes and the nearest name; NULL: it fits */
    const char *map;     /* whose names the file has ("timm"); NULL: those of the model */
} ctn_weights_match;
/* Strings are borrowed during the call. */
typedef ctn_status (*ctn_weights_match_fn)(void *user, const ctn_weights_match *match);
/* Compare a file with a model as ctn_weights_load does, and load nothing. Calls fn for each
 * variable, and then for each array that the model does not have, until a call does not return
 * CTN_OK. Local. Errors: those of ctn_weights_open, what fn returns. */
CTN_API CTN_MUST_CHECK ctn_status ctn_weights_compare(ctn_module *m, const char *path,
                                                      const ctn_weights_opt *opt,
                                                      ctn_weights_match_fn fn, void *user);

/* ---- folders of published models ------------------------------------------------------------ */

/* Write a network of ctn_zoo_open, with its weights as they are now, as a folder that the Python
 * package transformers reads. From the folder `from`, which described the network, come config.json
 * (with the type that the weights have now) and the files of the tokenizer and of generation; the
 * weights are model.safetensors. If m has adapters (ctn_lora_add), the folder is one of the package
 * peft instead, with adapter_config.json, which names `from` as the base, and
 * adapter_model.safetensors. The folder is made if it is not there; files of these names in it are
 * replaced. Call it between scopes. Local. Errors: EARG (also a network that ctn_zoo_open does not
 * make, or both folders are the same), EIO, EFORMAT, EUNSUPPORTED (adapters of several ranks, or a
 * build without yyjson), ESTATE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_published_write(ctn_module *m, const char *from,
                                                      const char *folder);
/* Give m the adapters in a folder of peft, as ctn_lora_add does, with their values. m is the
 * network that they were made for. Every setting of adapter_config.json that may change the results
 * and that Catena does not have is refused. After an error, m may have adapters of zeros. Call it
 * between scopes. Local. Errors: those of ctn_lora_add and ctn_weights_load, EUNSUPPORTED. */
CTN_API CTN_MUST_CHECK ctn_status ctn_lora_open(ctn_module *m, const char *folder);

/* ---- files of named arrays ------------------------------------------------------------------ */

/* An open file (or several files with an index), of which any array can be read. */
typedef struct ctn_weights ctn_weights;

typedef struct {
    const char *name; /* UTF-8, borrowed from the file */
    ctn_dtype dtype;
    int ndim;
    int64_t shape[CTN_MAX_DIMS];
    size_t bytes; /* row-major, in dtype */
} ctn_weights_array;

/* Open a file of named arrays; path as in ctn_weights_load. Of a checkpoint of PyTorch, the pickle
 * is read by a reader that knows dictionaries, lists, numbers, strings and tensors. It never calls
 * anything that the file names; other objects are skipped. The arrays of nested dictionaries get
 * names with dots. If the weights are in an entry such as state_dict, only that is read, and the
 * state of an optimizer beside it is skipped. Views of any strides are read in row-major order.
 * The format before PyTorch 1.6 and TorchScript archives are refused with the Python line that
 * converts the file. Local. Result: *w, owned, ctn_weights_free. Errors: EIO (also a folder
 * without weights), EFORMAT (a damaged file, with the offset, or a format that is refused), EDTYPE
 * (a type that Catena does not have), EUNSUPPORTED, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_weights_open(ctn_weights **w, const char *path);
CTN_API void ctn_weights_free(ctn_weights *w); /* NULL is allowed. Local. */
/* "safetensors" or "pytorch". Local. Result: borrowed forever. */
CTN_API const char *ctn_weights_format(const ctn_weights *w);
/* Number of arrays. Local. */
CTN_API int64_t ctn_weights_arrays(const ctn_weights *w);
/* The name, type and shape of array i, in the order of the file. Local. Errors: EARG. */
CTN_API CTN_MUST_CHECK ctn_status ctn_weights_get_array(const ctn_weights *w, int64_t i,
                                                        ctn_weights_array *out);
/* The number of the array with this name; -1: none. Local. */
CTN_API int64_t ctn_weights_find(const ctn_weights *w, const char *name);
/* Read the values of array i to dst, row-major. dtype 0: in the type of the file; float types are
 * converted to any other. `bytes` is the size of dst, exactly that of the values. Local,
 * thread-safe. Errors: EARG, EDTYPE, EIO with the offset, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_weights_read(const ctn_weights *w, int64_t i, ctn_dtype dtype,
                                                   void *dst, size_t bytes);

/* An array to write: number `array` of an open file, under a name of its own. */
typedef struct {
    const ctn_weights *from;
    int64_t array;
    const char *name; /* NULL: as in the file */
    ctn_dtype dtype;  /* 0: as in the file; otherwise both are float types */
} ctn_weights_item;
/* Write arrays of open files to one safetensors file. One array at a time is in memory. Local.
 * Errors: EARG (a name occurs twice), EDTYPE, EIO, ENOMEM, EUNSUPPORTED. */
CTN_API CTN_MUST_CHECK ctn_status ctn_weights_write(const char *path, int n,
                                                    const ctn_weights_item *items);

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
