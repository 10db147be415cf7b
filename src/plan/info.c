/* SPDX-License-Identifier: Apache-2.0
 *
 * The public table of catena/info.h: what was compiled in and what the machine offers. It is in
 * this layer because it queries both base and engine; nothing in the library depends on it.
 */
#include <catena/info.h>

#include "catena_config.h"
#include "engine/engine.h"

enum {
    INSTALLED,
    ONEDNN,
    ISA,
    RUNTIME,
    BLAS,
    HWLOC,
    XXHASH,
    ZLIB,
    YYJSON,
    JPEG,
    SPNG,
    ARCHIVE,
    UTF8PROC,
    PROTOBUFC,
    HDF5,
    TYPE,
    COMPILER,
    SANITIZERS,
    COUNT
};

/* NULL: queried from the oneDNN that was loaded, which may be newer than the one at build time. */
static const ctn_build_entry table[COUNT] = {
    [INSTALLED] = {"installed", CTN_BUILD_INSTALLED, "how Catena was installed"},
    [ONEDNN] = {"onednn", NULL, "compute engine (version loaded)"},
    [ISA] = {"onednn_isa", NULL, "instruction set of its kernels on this machine"},
    [RUNTIME] = {"onednn_threads", NULL, "thread runtime of its kernels"},
    [BLAS] = {"blas", CTN_BUILD_BLAS, "products where oneDNN has only loops (AArch64)"},
    [HWLOC] = {"hwloc", CTN_BUILD_HWLOC, "cores and NUMA nodes"},
    [XXHASH] = {"xxhash", CTN_BUILD_XXHASH, "keys of cached plans"},
    [ZLIB] = {"zlib", CTN_BUILD_ZLIB, "compressed data files"},
    [YYJSON] = {"yyjson", CTN_BUILD_YYJSON, "safetensors files, tokenizer.json"},
    [JPEG] = {"libjpeg", CTN_BUILD_JPEG, "JPEG images"},
    [SPNG] = {"libspng", CTN_BUILD_SPNG, "PNG images"},
    [ARCHIVE] = {"libarchive", CTN_BUILD_ARCHIVE, "tar shards"},
    [UTF8PROC] = {"utf8proc", CTN_BUILD_UTF8PROC, "tokenizers"},
    [PROTOBUFC] = {"protobuf-c", CTN_BUILD_PROTOBUFC, "TensorBoard events, ONNX models"},
    [HDF5] = {"hdf5", CTN_BUILD_HDF5, "HDF5 arrays (plug-in)"},
    [TYPE] = {"build_type", CTN_BUILD_TYPE, "CMake's build type"},
    [COMPILER] = {"compiler", CTN_BUILD_COMPILER, "C compiler"},
    [SANITIZERS] = {"sanitizers", CTN_BUILD_SANITIZE, "run-time checks compiled in"},
};

int ctn_build_count(void)
{
    return COUNT;
}

ctn_status ctn_build_get(int i, ctn_build_entry *out)
{
    if (i < 0 || i >= COUNT)
        return ctn_fail(CTN_EARG, "build_get: no entry %d, there are %d", i, (int)COUNT);
    if (out == NULL) return ctn_fail(CTN_EARG, "build_get: out is NULL");
    *out = table[i];
    if (i == ONEDNN) out->value = ctn__engine_version();
    if (i == ISA) out->value = ctn__engine_isa();
    if (i == RUNTIME) out->value = ctn__engine_runtime();
    return CTN_OK;
}

void ctn_machine_get(ctn_machine *out)
{
    const ctn__topology *t = ctn__topology_get();
    out->cpus = t->cpus;
    out->cores = t->cores;
    out->numa = t->numa;
    out->threads = ctn__default_threads(&out->threads_source);
}
