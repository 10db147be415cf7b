/* SPDX-License-Identifier: Apache-2.0
 *
 * Small products: BRGEMM micro-kernels of oneDNN, or loops over blocks of C that fit into
 * registers.
 */
#include "engine/tile.h"

#include "engine/isa.h"
#include "engine/onednn.h"

enum { ROWS = 4, COLS = 32 }; /* of a block of C in our own loops */

struct ctn__tile {
    ctn__tile_shape s;
#if CTN_HAVE_BRGEMM
    dnnl_brgemm_t brgemm; /* NULL: our own loops */
#endif
};

/* ---- our own loops --------------------------------------------------------------------------- */

#if defined(__aarch64__) && defined(__GNUC__)
#define TYPE float
#define VEC svfloat32_t
#define ZERO svdup_f32(0)
#define COUNT svcntw
#define BELOW svwhilelt_b32_s64
#include "engine/sve_tile.h"

CTN__FOR_SVE static void sve_run(const ctn__tile_shape *s, const float *a, const float *b, float *c)
{
    const int64_t wide = 2 * (int64_t)svcntw();
    for (int64_t j = 0; j < s->n; j += wide)
        for (int64_t i = 0; i < s->m; i += SVE_ROWS)
            sve_tile(s->m - i < SVE_ROWS ? s->m - i : SVE_ROWS, s->n - j < wide ? s->n - j : wide,
                     s->k, a + i * s->lda, s->lda, 1, b + j, b + j + wide / 2, s->ldb, NULL,
                     c + i * s->ldc + j, s->ldc, s->add);
}
#endif

static void whole_block(const ctn__tile_shape *s, const float *a, const float *b, float *c)
{
    float sum[ROWS][COLS] = {{0}};
    for (int64_t k = 0; k < s->k; k++)
        for (int i = 0; i < ROWS; i++) {
            const float x = a[i * s->lda + k];
#pragma omp simd
            for (int j = 0; j < COLS; j++) sum[i][j] += x * b[k * s->ldb + j];
        }
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS; j++)
            c[i * s->ldc + j] = sum[i][j] + (s->add ? c[i * s->ldc + j] : 0);
}

/* The block at the edge, m rows and n columns of it. */
static void part_block(const ctn__tile_shape *s, int64_t m, int64_t n, const float *a,
                       const float *b, float *c)
{
    for (int64_t i = 0; i < m; i++) {
        float sum[COLS] = {0};
        for (int64_t k = 0; k < s->k; k++)
            for (int64_t j = 0; j < n; j++) sum[j] += a[i * s->lda + k] * b[k * s->ldb + j];
        for (int64_t j = 0; j < n; j++)
            c[i * s->ldc + j] = sum[j] + (s->add ? c[i * s->ldc + j] : 0);
    }
}

static void own_run(const ctn__tile_shape *s, const float *a, const float *b, float *c)
{
#if defined(__aarch64__) && defined(__GNUC__)
    if (ctn__isa_in_use() == CTN__ISA_SVE) {
        sve_run(s, a, b, c);
        return;
    }
#endif
    for (int64_t j = 0; j < s->n; j += COLS)
        for (int64_t i = 0; i < s->m; i += ROWS) {
            const int64_t m = s->m - i < ROWS ? s->m - i : ROWS;
            const int64_t n = s->n - j < COLS ? s->n - j : COLS;
            if (m == ROWS && n == COLS) whole_block(s, a + i * s->lda, b + j, c + i * s->ldc + j);
            else part_block(s, m, n, a + i * s->lda, b + j, c + i * s->ldc + j);
        }
}

/* ---- BRGEMM ---------------------------------------------------------------------------------- */

#if CTN_HAVE_BRGEMM

/* Is g a kernel that needs neither a packed B nor scratch memory? */
static bool is_plain(const_dnnl_brgemm_t g)
{
    dnnl_pack_type_t pack = dnnl_pack_type_undef;
    size_t scratch = 0;
    return dnnl_brgemm_get_B_pack_type(g, &pack) == dnnl_success &&
           pack == dnnl_pack_type_no_trans &&
           dnnl_brgemm_get_scratchpad_size(g, &scratch) == dnnl_success && scratch == 0;
}

/* NULL: this oneDNN has no such kernel for this CPU. */
static dnnl_brgemm_t find_kernel(const ctn__tile_shape *s)
{
    dnnl_brgemm_t g = NULL;
    if (dnnl_brgemm_create(&g, s->m, s->n, s->k, 1, s->lda, s->ldb, s->ldc, dnnl_f32, dnnl_f32,
                           dnnl_f32) != dnnl_success)
        return NULL;
    if (dnnl_brgemm_set_add_C(g, s->add) == dnnl_success &&
        dnnl_brgemm_finalize(g) == dnnl_success && is_plain(g) &&
        dnnl_brgemm_generate(g) == dnnl_success)
        return g;
    dnnl_brgemm_destroy(g);
    return NULL;
}

#endif

ctn_status ctn__tile_new(ctn__tile **t, const ctn__tile_shape *s)
{
    *t = ctn__calloc(1, sizeof **t);
    if (!*t) return CTN_ENOMEM;
    (*t)->s = *s;
#if CTN_HAVE_BRGEMM
    (*t)->brgemm = find_kernel(s);
#endif
    return CTN_OK;
}

void ctn__tile_free(ctn__tile *t)
{
    if (!t) return;
#if CTN_HAVE_BRGEMM
    if (t->brgemm) dnnl_brgemm_destroy(t->brgemm);
#endif
    ctn__free(t);
}

void ctn__tile_run(const ctn__tile *t, const float *a, const float *b, float *c)
{
#if CTN_HAVE_BRGEMM
    static const dnnl_dim_t start[2] = {0, 0};
    if (t->brgemm) {
        (void)dnnl_brgemm_execute(t->brgemm, a, b, start, c, NULL); /* fails for NULL only */
        return;
    }
#endif
    own_run(&t->s, a, b, c);
}

const char *ctn__tile_name(const ctn__tile *t)
{
#if CTN_HAVE_BRGEMM
    if (t->brgemm) return "brgemm";
#endif
    (void)t;
    return "own";
}
