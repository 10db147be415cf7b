/* SPDX-License-Identifier: Apache-2.0
 *
 * The oneDNN engine, its errors, and the generic prepared primitive.
 */
#include <float.h>
#include <omp.h>
#include <pthread.h>

#include "engine/isa.h"
#include "engine/onednn.h"

ctn_status ctn__dnnl_fail(dnnl_status_t s, const char *what)
{
    if (s == dnnl_out_of_memory) return ctn_fail(CTN_ENOMEM, "%s: oneDNN is out of memory", what);
    static const char *const text[] = {"success",       "out of memory",     "invalid arguments",
                                       "unimplemented", "last impl reached", "runtime error",
                                       "not required",  "invalid graph",     "invalid graph op",
                                       "invalid shape", "invalid data type"};
    size_t i = (size_t)s;
    return ctn_fail(CTN_EENGINE, "%s: oneDNN error: %s", what,
                    i < sizeof text / sizeof *text ? text[i] : "unknown error");
}

/* oneDNN 3.7.2's jit_1x1:avx2 backward-weights kernel with a stride writes 32 bytes beyond the
 * scratchpad that it asks for. */
enum { SLACK = 64 };

ctn_status ctn__engine_new(ctn__engine **out, int threads)
{
    ctn_status st = CTN_OK;
    *out = NULL;
    ctn__engine *e = ctn__calloc(1, sizeof *e);
    if (!e) return CTN_ENOMEM;
    e->threads = threads;
    CTN__DNNL(st, fail, "engine", dnnl_engine_create(&e->engine, dnnl_cpu, 0));
    CTN__DNNL(st, fail, "stream",
              dnnl_stream_create(&e->stream, e->engine, dnnl_stream_default_flags));
    *out = e;
    return CTN_OK;
fail:
    ctn__engine_free(e);
    return st;
}

void ctn__engine_free(ctn__engine *e)
{
    if (!e) return;
    for (size_t i = 0; i < e->layouts.n; i++) dnnl_memory_desc_destroy(e->layouts.at[i]);
    ctn__vec_free(&e->layouts);
    ctn__store_close(e->table);
    if (e->stream) dnnl_stream_destroy(e->stream);
    if (e->engine) dnnl_engine_destroy(e->engine);
    ctn__free(e);
}

static char version[32];

static void write_version(void)
{
    const dnnl_version_t *v = dnnl_version();
    snprintf(version, sizeof version, "%d.%d.%d", v->major, v->minor, v->patch);
}

const char *ctn__engine_version(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT; /* several threads may make contexts */
    pthread_once(&once, write_version);
    return version;
}

const char *ctn__engine_isa(void)
{
#if defined(__aarch64__)
    switch (ctn__sve_bits()) {
    case 0: return "neon";
    case 128: return "sve_128";
    case 256: return "sve_256";
    case 512: return "sve_512";
    default: return "sve";
    }
#endif
    switch (dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41: return "sse41";
    case dnnl_cpu_isa_avx: return "avx";
    case dnnl_cpu_isa_avx2: return "avx2";
    case dnnl_cpu_isa_avx2_vnni: return "avx2_vnni";
    case dnnl_cpu_isa_avx2_vnni_2: return "avx2_vnni_2";
    case dnnl_cpu_isa_avx512_core: return "avx512_core";
    case dnnl_cpu_isa_avx512_core_vnni: return "avx512_core_vnni";
    case dnnl_cpu_isa_avx512_core_bf16: return "avx512_core_bf16";
    case dnnl_cpu_isa_avx512_core_fp16: return "avx512_core_fp16";
    case dnnl_cpu_isa_avx512_core_amx: return "avx512_core_amx";
    case dnnl_cpu_isa_avx512_core_amx_fp16: return "avx512_core_amx_fp16";
    default: return "default";
    }
}

const char *ctn__engine_runtime(void)
{
    switch (dnnl_version()->cpu_runtime) {
    case DNNL_RUNTIME_OMP: return "OpenMP";
    case DNNL_RUNTIME_TBB: return "TBB";
    case DNNL_RUNTIME_SEQ: return "sequential";
    case DNNL_RUNTIME_THREADPOOL: return "threadpool";
    default: return "other";
    }
}

bool ctn__engine_trains_f16(void)
{
    /* Not an ordered scale of features: only AMX-FP16 has f16 backward-weights kernels. */
    return dnnl_get_effective_cpu_isa() == dnnl_cpu_isa_avx512_core_amx_fp16;
}

bool ctn__engine_fast_bf16(void)
{
#if defined(__x86_64__)
    const int isa = dnnl_get_effective_cpu_isa();
    return (isa & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16 ||
           isa == dnnl_cpu_isa_avx2_vnni_2;
#else
    return true;
#endif
}

bool ctn__engine_has(ctn__engine *e, ctn_dtype t)
{
    const dnnl_dims_t dims = {16, 16};
    dnnl_memory_desc_t low = NULL, sum = NULL;
    dnnl_primitive_desc_t pd = NULL;
    if (dnnl_memory_desc_create_with_tag(&low, 2, dims, ctn__dnnl_type(t), dnnl_ab) ==
            dnnl_success &&
        dnnl_memory_desc_create_with_tag(&sum, 2, dims, dnnl_f32, dnnl_ab) == dnnl_success)
        dnnl_matmul_primitive_desc_create(&pd, e->engine, low, low, NULL, sum, NULL);
#if defined(__x86_64__)
    const bool has = pd != NULL;
#else
    const bool has = pd != NULL && !ctn__dnnl_is_loops(pd);
#endif
    dnnl_primitive_desc_destroy(pd);
    dnnl_memory_desc_destroy(low);
    dnnl_memory_desc_destroy(sum);
    return has;
}

int ctn__threads_enter(int threads)
{
    int was = omp_get_max_threads();
    if (was != threads) omp_set_num_threads(threads);
    return was;
}

void ctn__threads_leave(int was)
{
    if (omp_get_max_threads() != was) omp_set_num_threads(was);
}

dnnl_data_type_t ctn__dnnl_type(ctn_dtype t)
{
    switch (t) {
    case CTN_F32: return dnnl_f32;
    case CTN_BF16: return dnnl_bf16;
    case CTN_F16: return dnnl_f16;
    case CTN_I32: return dnnl_s32;
    case CTN_U8: return dnnl_u8;
    default: return dnnl_data_type_undef;
    }
}

/* Many kernels of oneDNN hold the sizes of matrices and images as int. They divide by the 0 that
 * 2^32 becomes, and count in blocks up to a size near 2^31, which they never reach. */
static ctn_status check_sizes(const ctn_desc *d)
{
    const int64_t most = INT64_C(1) << 30;
    for (int i = 0; i < d->ndim && d->ndim > 1; i++)
        if (d->dim[i] > most)
            return ctn_fail(CTN_EUNSUPPORTED,
                            "the size of dimension %d is %lld; oneDNN supports at most %lld", i,
                            (long long)d->dim[i], (long long)most);
    return CTN_OK;
}

ctn_status ctn__dnnl_desc(dnnl_memory_desc_t *md, const ctn__engine *e, const ctn_desc *d)
{
    dnnl_status_t s;
    CTN_TRY(check_sizes(d));
    if (d->layout > 0) {
        s = dnnl_memory_desc_clone(md, e->layouts.at[d->layout - 1]);
    } else {
        dnnl_dims_t dims = {1}, strides = {1};
        for (int i = 0; i < d->ndim; i++) {
            dims[i] = d->dim[i];
            strides[i] = d->stride[i];
        }
        s = dnnl_memory_desc_create_with_strides(md, d->ndim ? d->ndim : 1, dims,
                                                 ctn__dnnl_type(d->dtype), strides);
    }
    return s == dnnl_success ? CTN_OK : ctn__dnnl_fail(s, "memory descriptor");
}

ctn_status ctn__dnnl_grouped(dnnl_memory_desc_t *md, const ctn_desc *d, int64_t groups)
{
    dnnl_dims_t dims, strides;
    CTN_TRY(check_sizes(d));
    dims[0] = groups;
    dims[1] = d->dim[0] / groups;
    strides[0] = d->stride[0] * dims[1];
    strides[1] = d->stride[0];
    for (int i = 1; i < d->ndim; i++) {
        dims[i + 1] = d->dim[i];
        strides[i + 1] = d->stride[i];
    }
    dnnl_status_t s = dnnl_memory_desc_create_with_strides(md, d->ndim + 1, dims,
                                                           ctn__dnnl_type(d->dtype), strides);
    return s == dnnl_success ? CTN_OK : ctn__dnnl_fail(s, "memory descriptor");
}

ctn_status ctn__dnnl_layout(ctn__engine *e, ctn_desc *d, const_dnnl_memory_desc_t md)
{
    size_t i = 0, size = ctn_dtype_size(d->dtype);
    while (i < e->layouts.n && !dnnl_memory_desc_equal(e->layouts.at[i], md)) i++;
    if (i == e->layouts.n) {
        dnnl_memory_desc_t copy = NULL;
        dnnl_status_t s = dnnl_memory_desc_clone(&copy, md);
        if (s != dnnl_success) return ctn__dnnl_fail(s, "memory descriptor");
        if (!ctn__vec_push(&e->layouts, copy)) {
            dnnl_memory_desc_destroy(copy);
            return CTN_ENOMEM;
        }
    }
    d->layout = (int32_t)i + 1;
    memset(d->stride, 0, sizeof d->stride);
    d->stride[0] = (int64_t)((dnnl_memory_desc_get_size(md) + size - 1) / size);
    return CTN_OK;
}

uint64_t ctn__layout_key(const ctn__engine *e, const ctn_desc *d)
{
    struct {
        uint64_t type, ndim, engine, layout;
        dnnl_dims_t dims, strides, padded, block, of;
    } key;
    memset(&key, 0, sizeof key);
    key.type = (uint64_t)d->dtype;
    key.ndim = (uint64_t)d->ndim;
    for (int i = 0; i < d->ndim; i++) key.dims[i] = d->dim[i];
    for (int i = 0; i < d->ndim; i++) key.strides[i] = d->stride[i];
    if (d->layout > 0) {
        const_dnnl_memory_desc_t md = e->layouts.at[d->layout - 1];
        dnnl_format_kind_t kind = dnnl_format_kind_undef;
        int n = 0, blocks = 0;
        const dnnl_dims_t *strides, *padded, *block, *of;
        const bool known =
            dnnl_memory_desc_query(md, dnnl_query_format_kind, &kind) == dnnl_success &&
            kind == dnnl_blocked &&
            dnnl_memory_desc_query(md, dnnl_query_ndims_s32, &n) == dnnl_success &&
            dnnl_memory_desc_query(md, dnnl_query_strides, &strides) == dnnl_success &&
            dnnl_memory_desc_query(md, dnnl_query_padded_dims, &padded) == dnnl_success &&
            dnnl_memory_desc_query(md, dnnl_query_inner_nblks_s32, &blocks) == dnnl_success &&
            dnnl_memory_desc_query(md, dnnl_query_inner_blks, &block) == dnnl_success &&
            dnnl_memory_desc_query(md, dnnl_query_inner_idxs, &of) == dnnl_success;
        key.engine = known ? 1 : (uint64_t)(uintptr_t)e; /* a layout that only oneDNN knows */
        key.layout = known ? (uint64_t)n << 32 | (uint64_t)blocks : (uint64_t)d->layout;
        for (int i = 0; known && i < n; i++) key.strides[i] = (*strides)[i];
        for (int i = 0; known && i < n; i++) key.padded[i] = (*padded)[i];
        for (int i = 0; known && i < blocks; i++) key.block[i] = (*block)[i];
        for (int i = 0; known && i < blocks; i++) key.of[i] = (*of)[i];
    }
    return ctn__hash(&key, sizeof key).lo;
}

/* oneDNN's relu, and everything else that it computes by a maximum, turns NaN into 0. So this is
 * x max(0, min(1, FLT_MAX x)), and the absolute value of that, because the product of a negative
 * number is -0. NaN stays NaN, and -infinity becomes NaN. */
dnnl_status_t ctn__dnnl_append(dnnl_post_ops_t ops, ctn__elt act)
{
    if (act != CTN__ELT_RELU) return dnnl_success;
    const dnnl_status_t s = dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_hardswish, FLT_MAX, 0);
    return s == dnnl_success ? dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_abs, 0, 0) : s;
}

ctn_status ctn__dnnl_attr(dnnl_primitive_attr_t *attr, ctn__elt act)
{
    ctn_status st = CTN_OK;
    dnnl_post_ops_t po = NULL;
    *attr = NULL;
    CTN__DNNL(st, done, "attributes", dnnl_primitive_attr_create(attr));
    CTN__DNNL(st, done, "attributes",
              dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user));
    CTN__DNNL(st, done, "attributes",
              dnnl_primitive_attr_set_fpmath_mode(*attr, dnnl_fpmath_mode_strict));
    if (act != CTN__ELT_NONE) {
        CTN__DNNL(st, done, "attributes", dnnl_post_ops_create(&po));
        CTN__DNNL(st, done, "attributes",
                  act == CTN__ELT_ADD ? dnnl_post_ops_append_sum(po, 1, 0, dnnl_data_type_undef)
                                      : ctn__dnnl_append(po, act));
        CTN__DNNL(st, done, "attributes", dnnl_primitive_attr_set_post_ops(*attr, po));
    }
done:
    if (po) dnnl_post_ops_destroy(po);
    if (st < 0 && *attr) {
        dnnl_primitive_attr_destroy(*attr);
        *attr = NULL;
    }
    return st;
}

const char *ctn__dnnl_kernel(const_dnnl_primitive_desc_t pd)
{
    const char *name = NULL;
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
    return name ? name : "";
}

bool ctn__dnnl_is_loops(const_dnnl_primitive_desc_t pd)
{
    const char *name = ctn__dnnl_kernel(pd);
#if !defined(__x86_64__)
    /* Only x86 has a generated gemm. Elsewhere even "gemm:jit" is compiled loops. */
    if (strstr(name, "gemm")) return true;
#endif
    return strstr(name, "ref") != NULL;
}

dnnl_status_t ctn__dnnl_settle(dnnl_primitive_desc_t pd)
{
    const int have = ctn__sve_bits();
    dnnl_status_t r = dnnl_success;
    for (int bits = 0; r == dnnl_success && have > 0; bits = 0) {
        const char *at = strstr(ctn__dnnl_kernel(pd), "sve_");
        if (!at || sscanf(at, "sve_%d", &bits) != 1 || bits >= have) break;
        r = dnnl_primitive_desc_next_impl(pd);
    }
    return r;
}

ctn_status ctn__prim_make(ctn__prim **out, ctn__engine *e, dnnl_primitive_desc_t pd, int nargs,
                          const int *args, const_dnnl_memory_desc_t const *mds, const char *what)
{
    ctn_status st = CTN_OK;
    *out = NULL;
    ctn__prim *p = ctn__calloc(1, sizeof *p);
    if (!p) {
        dnnl_primitive_desc_destroy(pd);
        return CTN_ENOMEM;
    }
    p->e = e;
    p->nargs = nargs + 1;
    p->bytes = CTN__PRIM_BYTES;
    for (int i = 0; i < nargs; i++) {
        p->arg[i].arg = args[i];
        if (mds[i])
            CTN__DNNL(st, fail, what,
                      dnnl_memory_create(&p->arg[i].memory, mds[i], e->engine, DNNL_MEMORY_NONE));
    }
    const_dnnl_memory_desc_t smd = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    p->scratch = smd ? dnnl_memory_desc_get_size(smd) : 0;
    if (p->scratch) p->scratch += SLACK;
    p->arg[nargs].arg = DNNL_ARG_SCRATCHPAD;
    CTN__DNNL(st, fail, what,
              dnnl_memory_create(&p->arg[nargs].memory, smd, e->engine, DNNL_MEMORY_NONE));
    snprintf(p->name, sizeof p->name, "%s", ctn__dnnl_kernel(pd));
    CTN__DNNL(st, fail, what, dnnl_primitive_create(&p->prim, pd));
    dnnl_primitive_desc_destroy(pd);
    *out = p;
    return CTN_OK;
fail:
    dnnl_primitive_desc_destroy(pd);
    ctn__prim_free(p);
    return st;
}

ctn_status ctn__prim_own(ctn__prim **out, ctn__engine *e, const char *name, ctn__own_run *run,
                         const void *data, size_t size, size_t scratch)
{
    ctn__prim *p = ctn__calloc(1, sizeof *p);
    *out = p;
    if (!p) return CTN_ENOMEM;
    p->e = e;
    p->own = run;
    p->scratch = scratch;
    p->bytes = sizeof *p + size;
    snprintf(p->name, sizeof p->name, "%s", name);
    p->data = ctn__calloc(1, size);
    if (!p->data) {
        ctn__prim_free(p);
        *out = NULL;
        return CTN_ENOMEM;
    }
    memcpy(p->data, data, size);
    return CTN_OK;
}

void ctn__prim_free(void *prim)
{
    ctn__prim *p = prim;
    if (!p) return;
    for (int i = 0; i < p->nargs; i++)
        if (p->arg[i].memory) dnnl_memory_destroy(p->arg[i].memory);
    if (p->prim) dnnl_primitive_destroy(p->prim);
    ctn__free(p->data);
    ctn__free(p);
}

size_t ctn__prim_scratch(const ctn__prim *p)
{
    return p->scratch;
}

size_t ctn__prim_bytes(const ctn__prim *p)
{
    return p->bytes;
}

const char *ctn__prim_name(const ctn__prim *p)
{
    return p->name;
}

ctn_status ctn__prim_run(const ctn__prim *p, void *const *ptr, void *scratch)
{
    dnnl_exec_arg_t arg[CTN__PRIM_ARGS + 1];
    int n = 0;
    if (p->own) return p->own(p, ptr, scratch);
    for (int i = 0; i < p->nargs; i++) {
        if (!p->arg[i].memory) continue;
        void *at = i == p->nargs - 1 ? scratch : ptr[i];
        arg[n] = p->arg[i];
        dnnl_status_t s = dnnl_memory_set_data_handle(arg[n].memory, at);
        if (s != dnnl_success) return ctn__dnnl_fail(s, p->name);
        n++;
    }
    dnnl_status_t s = dnnl_primitive_execute(p->prim, p->e->stream, n, arg);
    return s == dnnl_success ? CTN_OK : ctn__dnnl_fail(s, p->name);
}
