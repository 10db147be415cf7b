/* SPDX-License-Identifier: Apache-2.0
 *
 * A reader of the tensors in a checkpoint of PyTorch, with the same interface as that of
 * safetensors files. torch.save writes a zip archive:
 *     NAME/data.pkl    a pickle, in which tensors refer to storages
 *     NAME/data/0, ..  the storages
 *     NAME/byteorder   "little" or "big"; missing: little
 * Files are untrusted input. Nothing in them is executed; see pickle.h.
 */
#ifndef CTN_IO_PYTORCH_H
#define CTN_IO_PYTORCH_H

#include <catena/io.h>

#include "base/base.h"

typedef struct ctn__pt_file ctn__pt_file;

/* Whether the first n bytes of a file are those of any format that PyTorch has written. A
 * safetensors file is never taken for one. */
bool ctn__pt_is(const unsigned char *p, size_t n);
/* Open a checkpoint and find its tensors. Errors: EIO, EDTYPE, ENOMEM, EFORMAT (also the formats
 * before PyTorch 1.6 and TorchScript; the message has the line that converts the file). */
CTN_MUST_CHECK ctn_status ctn__pt_open(ctn__pt_file **f, const char *path);
/* The same over memory that the caller keeps until close; `name` is used in messages only. */
CTN_MUST_CHECK ctn_status ctn__pt_parse(ctn__pt_file **f, const char *name, const void *p,
                                        size_t n);
void ctn__pt_close(ctn__pt_file *f); /* NULL is allowed; its arrays become invalid */
/* Arrays in the order of the file; their names are unique. */
size_t ctn__pt_count(const ctn__pt_file *f);
const ctn_weights_array *ctn__pt_at(const ctn__pt_file *f, size_t i);
/* Read the values of an array of f in row-major order. Errors: EIO, naming the offset; ENOMEM. */
CTN_MUST_CHECK ctn_status ctn__pt_read(const ctn__pt_file *f, const ctn_weights_array *a,
                                       void *dst);

#endif
