/* SPDX-License-Identifier: Apache-2.0
 *
 * What the oneDNN wrappers share inside this folder: descriptors, attributes, errors, and making a
 * ctn__prim from a primitive descriptor.
 */
#ifndef CTN_ENGINE_ONEDNN_H
#define CTN_ENGINE_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>
#if CTN_HAVE_BRGEMM
#include <oneapi/dnnl/dnnl_ukernel.h>
#endif

#include "engine/engine.h"

enum { CTN__PRIM_ARGS = 8 };
/* Estimated code and tables of a primitive. Measured as the growth of a process that plans
 * ResNet-18 in many shapes, without oneDNN's own cache: 5.7 MB for 59 convolutions and 61 others.
 * */
enum { CTN__PRIM_BYTES = 16 << 10, CTN__CONV_BYTES = 80 << 10 };

struct ctn__engine {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    int threads;
    CTN__VEC(dnnl_memory_desc_t) layouts; /* ctn_desc.layout - 1 is an index here */
    ctn__store *table;                    /* decisions; NULL until first used */
    bool table_changed, table_told, timing, timing_told;
    uint64_t timed_ns; /* spent on timing */
};

/* A kernel of our own behind the interface of a primitive. */
typedef ctn_status ctn__own_run(const ctn__prim *p, void *const *ptr, void *scratch);

struct ctn__prim {
    ctn__engine *e;
    dnnl_primitive_t prim;
    ctn__own_run *own; /* NULL: prim */
    void *data;        /* what own needs */
    int nargs;         /* including the scratchpad, which is last */
    dnnl_exec_arg_t arg[CTN__PRIM_ARGS + 1];
    size_t scratch, bytes;
    char name[64];
};

/* Reports EENGINE with what was tried and oneDNN's status. Out of memory stays ENOMEM. */
ctn_status ctn__dnnl_fail(dnnl_status_t s, const char *what);
#define CTN__DNNL(st, label, what, call)          \
    do {                                          \
        dnnl_status_t dnnl_s_ = (call);           \
        if (dnnl_s_ != dnnl_success) {            \
            (st) = ctn__dnnl_fail(dnnl_s_, what); \
            goto label;                           \
        }                                         \
    } while (0)

dnnl_data_type_t ctn__dnnl_type(ctn_dtype t); /* dnnl_data_type_undef: unsupported */
/* d as a oneDNN descriptor. A scalar becomes one dimension of length 1. */
ctn_status ctn__dnnl_desc(dnnl_memory_desc_t *md, const ctn__engine *e, const ctn_desc *d);
/* The same with the first dimension split into groups (weights of a grouped convolution). */
ctn_status ctn__dnnl_grouped(dnnl_memory_desc_t *md, const ctn_desc *d, int64_t groups);
/* Gives d the layout of md, as a layout that the engine keeps. */
ctn_status ctn__dnnl_layout(ctn__engine *e, ctn_desc *d, const_dnnl_memory_desc_t md);
/* Attributes of every primitive: scratchpad from the caller, strict math, act applied last. */
ctn_status ctn__dnnl_attr(dnnl_primitive_attr_t *attr, ctn__elt act);
/* Appends act, which is not CTN__ELT_ADD, to what a primitive does with its result. */
dnnl_status_t ctn__dnnl_append(dnnl_post_ops_t ops, ctn__elt act);

/* The name of pd's kernel. */
const char *ctn__dnnl_kernel(const_dnnl_primitive_desc_t pd);
/* Does pd's kernel consist of plain loops, as opposed to generated code? */
bool ctn__dnnl_is_loops(const_dnnl_primitive_desc_t pd);
/* Advances pd to its first kernel that is right on this CPU. On CPUs with long SVE vectors, kernels
 * for shorter ones write out of bounds (jit_1x1, jit_dw and brdgmm_dw:sve_256 of oneDNN 3.7). */
dnnl_status_t ctn__dnnl_settle(dnnl_primitive_desc_t pd);
/* A primitive that calls run with a copy of data. */
ctn_status ctn__prim_own(ctn__prim **out, ctn__engine *e, const char *name, ctn__own_run *run,
                         const void *data, size_t size, size_t scratch);

/* Takes ownership of pd, and destroys it even on failure. args: oneDNN argument numbers; mds: their
 * descriptors, NULL for an absent argument. */
ctn_status ctn__prim_make(ctn__prim **out, ctn__engine *e, dnnl_primitive_desc_t pd, int nargs,
                          const int *args, const_dnnl_memory_desc_t const *mds, const char *what);

#endif
