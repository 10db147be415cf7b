/* SPDX-License-Identifier: Apache-2.0
 *
 * bare_gpt2 BATCH LENGTH [ROUNDS]: the matrix products of a training step of GPT-2 (124 million
 * parameters) on oneDNN and nothing else: for each linear layer and for the logits one product of
 * the forward pass and two of the backward pass, and the six products of attention. Operands are
 * row-major without transposes, the form that oneDNN runs fastest. Prints one JSON line.
 */
#include "bare.h"

#include <math.h>

enum { WIDTH = 768, LAYERS = 12, HEADS = 12, HEAD = 64, WORDS = 50257, MOST = 32 };

typedef struct {
    bare_call call;
    int times; /* in one step */
} product;

static product list[MOST];
static int count;

static void add(int times, int64_t b, int64_t m, int64_t k, int64_t n)
{
    list[count++] = (product){bare_product(b, m, k, n, 0, 0), times};
}

/* x (rows,in) -> (rows,out), with the gradients of x and of the weights */
static void add_linear(int times, int64_t rows, int64_t in, int64_t out)
{
    add(times, 1, rows, in, out);
    add(times, 1, rows, out, in);
    add(times, 1, out, rows, in);
}

int main(int argc, char **argv)
{
    const int64_t batch = argc > 1 ? atoll(argv[1]) : 4, T = argc > 2 ? atoll(argv[2]) : 256;
    const int rounds = argc > 3 ? atoi(argv[3]) : 3;
    const int64_t rows = batch * T, heads = batch * HEADS;
    double total = 0;
    bare_begin();
    add_linear(LAYERS, rows, WIDTH, 3 * WIDTH);
    add_linear(LAYERS, rows, WIDTH, WIDTH);
    add_linear(LAYERS, rows, WIDTH, 4 * WIDTH);
    add_linear(LAYERS, rows, 4 * WIDTH, WIDTH);
    add_linear(1, rows, WIDTH, WORDS);
    add(2 * LAYERS, heads, T, HEAD, T); /* scores, gradient of probabilities */
    add(4 * LAYERS, heads, T, T, HEAD); /* result, gradients of q, k and v */
    for (int i = 0; i < count; i++) {
        double best = 1e9;
        for (int r = 0; r < rounds; r++) {
            const double t = bare_seconds();
            bare_run(&list[i].call);
            MUST(dnnl_stream_wait(bare_stream));
            best = fmin(best, bare_seconds() - t);
        }
        total += best * list[i].times;
    }
    printf("{\"best_ms\": %.3f}\n", total * 1e3);
    return 0;
}
