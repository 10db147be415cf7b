/* SPDX-License-Identifier: Apache-2.0
 *
 * bare_mlp [STEPS]: the least that a training step of an MLP 784-1000-1000-10 with batch 100 and
 * Adam can take on oneDNN: its eight matrix products (three forward, three for the weights, two
 * for the data) and one pass of Adam over all parameters. No activations, loss or biases'
 * gradients. Prints one JSON line with the best times.
 */
#include "bare.h"

#include <math.h>

enum { BATCH = 100, LAYERS = 3, PRODUCTS = 8 };
static const int64_t width[LAYERS + 1] = {784, 1000, 1000, 10};

/* C (m,n) = A (m,k) B (k,n); a transposed operand is stored the other way round. */
static bare_call product(int64_t m, int64_t k, int64_t n, int transpose_a, int transpose_b)
{
    bare_call c = {0};
    dnnl_memory_desc_t a, b, y;
    dnnl_primitive_desc_t pd;
    MUST(dnnl_memory_desc_create_with_tag(&a, 2, (dnnl_dims_t){m, k}, dnnl_f32,
                                          transpose_a ? dnnl_ba : dnnl_ab));
    MUST(dnnl_memory_desc_create_with_tag(&b, 2, (dnnl_dims_t){k, n}, dnnl_f32,
                                          transpose_b ? dnnl_ba : dnnl_ab));
    MUST(dnnl_memory_desc_create_with_tag(&y, 2, (dnnl_dims_t){m, n}, dnnl_f32, dnnl_ab));
    MUST(dnnl_matmul_primitive_desc_create(&pd, bare_engine, a, b, NULL, y, NULL));
    MUST(dnnl_primitive_create(&c.prim, pd));
    bare_arg(&c, DNNL_ARG_SRC, bare_memory(a));
    bare_arg(&c, DNNL_ARG_WEIGHTS, bare_memory(b));
    bare_arg(&c, DNNL_ARG_DST, bare_memory(y));
    return c;
}

typedef struct {
    float *w, *g, *m, *v;
} parameters;

static float *array(int64_t n, float value)
{
    float *x = aligned_alloc(64, (size_t)(n + 15) / 16 * 64);
    for (int64_t i = 0; x && i < n; i++) x[i] = value;
    if (!x) exit(1);
    return x;
}

/* Compiled for each instruction set and with -ffast-math (CMakeLists.txt): a bound, not an
 * optimizer. */
#if defined __x86_64__ && !defined __clang__ && __GNUC__ >= 12
#define COPIES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#elif defined __x86_64__ && !defined __clang__ /* older ones do not know these levels */
#define COPIES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define COPIES
#endif
COPIES static void adam(const parameters *p, int64_t begin, int64_t end)
{
    const float beta1 = 0.9f, beta2 = 0.999f, rate = 1e-3f, eps = 1e-8f;
    float *restrict w = p->w, *restrict m = p->m, *restrict v = p->v;
    const float *restrict g = p->g;
    for (int64_t i = begin; i < end; i++) {
        m[i] = beta1 * m[i] + (1 - beta1) * g[i];
        v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
        w[i] -= rate * m[i] / (sqrtf(v[i]) + eps);
    }
}

static void adam_all(const parameters *p, int64_t n)
{
    const int64_t block = 4096;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i += block) adam(p, i, i + block < n ? i + block : n);
}

int main(int argc, char **argv)
{
    const int steps = argc > 1 ? atoi(argv[1]) : 200;
    bare_call call[PRODUCTS];
    int calls = 0;
    int64_t count = 0;
    bare_begin();
    for (int l = 0; l < LAYERS; l++) {
        const int64_t in = width[l], out = width[l + 1];
        call[calls++] = product(BATCH, in, out, 0, 0);
        call[calls++] = product(in, BATCH, out, 1, 0);
        if (l > 0) call[calls++] = product(BATCH, out, in, 0, 1);
        count += in * out + out;
    }
    const parameters p = {array(count, 0.1f), array(count, 1e-3f), array(count, 0),
                          array(count, 0)};
    double best = 1e9, products = 1e9, update = 1e9;
    for (int i = 0; i < steps; i++) {
        const double t0 = bare_seconds();
        for (int k = 0; k < calls; k++) bare_run(&call[k]);
        MUST(dnnl_stream_wait(bare_stream));
        const double t1 = bare_seconds();
        adam_all(&p, count);
        const double t2 = bare_seconds();
        products = fmin(products, t1 - t0);
        update = fmin(update, t2 - t1);
        best = fmin(best, t2 - t0);
    }
    printf("{\"best_ms\": %.4f, \"products_ms\": %.4f, \"adam_ms\": %.4f}\n", best * 1e3,
           products * 1e3, update * 1e3);
    return 0;
}
