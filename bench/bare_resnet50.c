/* SPDX-License-Identifier: Apache-2.0
 *
 * bare_resnet50 [BATCH [f32|bf16 [STEPS]]]: the least that a training step of ResNet-50 can take
 * on oneDNN: every convolution (forward, by data, by weights) and every batch normalisation, with
 * ReLU fused where the network has one, in the order of a training step. Each primitive works in
 * the layout it prefers, and neighbours share a buffer where their layouts agree. No reorders,
 * residual sums, pooling, classifier or update. Prints one JSON line with the best time.
 */
#include "bare.h"

enum { MOST_CALLS = 256 };

typedef struct {
    dnnl_memory_t x, g; /* an activation and its gradient; NULL: none yet */
} activation;

static struct {
    int64_t batch;
    dnnl_data_type_t type;
    bare_call forward[MOST_CALLS],
        backward[MOST_CALLS]; /* backward runs from the last to the first */
    int nforward, nbackward;
    double flops;
} step;

static const_dnnl_memory_desc_t asked(const_dnnl_primitive_desc_t pd, dnnl_query_t what)
{
    return dnnl_primitive_desc_query_md(pd, what, 0);
}

/* The neighbour's buffer where it has the wanted layout, otherwise a new one. */
static dnnl_memory_t take(dnnl_memory_t m, const_dnnl_memory_desc_t wanted)
{
    const_dnnl_memory_desc_t have = NULL;
    if (m) MUST(dnnl_memory_get_memory_desc(m, &have));
    return have && dnnl_memory_desc_equal(have, wanted) ? m : bare_memory(wanted);
}

static bare_call *begin(bare_call *list, int *n, dnnl_primitive_desc_t pd)
{
    bare_call *c = &list[(*n)++];
    if (*n > MOST_CALLS) exit(1);
    MUST(dnnl_primitive_create(&c->prim, pd));
    return c;
}

typedef struct {
    int64_t in, side, out, kernel, stride;
} conv_shape;

static dnnl_memory_desc_t any_layout(int64_t a, int64_t b, int64_t c, int64_t d)
{
    dnnl_memory_desc_t m;
    MUST(dnnl_memory_desc_create_with_tag(&m, 4, (dnnl_dims_t){a, b, c, d}, step.type,
                                          dnnl_format_tag_any));
    return m;
}

static activation conv(activation in, conv_shape s, int with_data)
{
    const int64_t pad = s.kernel / 2, side = (s.side + 2 * pad - s.kernel) / s.stride + 1;
    const dnnl_dims_t stride = {s.stride, s.stride}, none = {0, 0}, pads = {pad, pad};
    dnnl_memory_desc_t x = any_layout(step.batch, s.in, s.side, s.side),
                       w = any_layout(s.out, s.in, s.kernel, s.kernel),
                       y = any_layout(step.batch, s.out, side, side);
    dnnl_primitive_desc_t f, bd, bw;
    MUST(dnnl_convolution_forward_primitive_desc_create(&f, bare_engine, dnnl_forward_training,
                                                        dnnl_convolution_direct, x, w, NULL, y,
                                                        stride, none, pads, pads, NULL));
    MUST(dnnl_convolution_backward_weights_primitive_desc_create(&bw, bare_engine,
                                                                 dnnl_convolution_direct, x, w,
                                                                 NULL, y, stride, none, pads, pads,
                                                                 f, NULL));
    bare_call *c = begin(step.forward, &step.nforward, f);
    const dnnl_memory_t data = take(in.x, asked(f, dnnl_query_src_md));
    const activation out = {.x = bare_memory(asked(f, dnnl_query_dst_md)),
                            .g = bare_memory(asked(bw, dnnl_query_diff_dst_md))};
    bare_arg(c, DNNL_ARG_SRC, data);
    bare_arg(c, DNNL_ARG_WEIGHTS, bare_memory(asked(f, dnnl_query_weights_md)));
    bare_arg(c, DNNL_ARG_DST, out.x);
    if (with_data) {
        MUST(dnnl_convolution_backward_data_primitive_desc_create(
            &bd, bare_engine, dnnl_convolution_direct, x, w, y, stride, none, pads, pads, f, NULL));
        c = begin(step.backward, &step.nbackward, bd);
        bare_arg(c, DNNL_ARG_DIFF_SRC, take(in.g, asked(bd, dnnl_query_diff_src_md)));
        bare_arg(c, DNNL_ARG_WEIGHTS, bare_memory(asked(bd, dnnl_query_weights_md)));
        bare_arg(c, DNNL_ARG_DIFF_DST, take(out.g, asked(bd, dnnl_query_diff_dst_md)));
    }
    c = begin(step.backward, &step.nbackward, bw);
    bare_arg(c, DNNL_ARG_SRC, take(data, asked(bw, dnnl_query_src_md)));
    bare_arg(c, DNNL_ARG_DIFF_WEIGHTS, bare_memory(asked(bw, dnnl_query_diff_weights_md)));
    bare_arg(c, DNNL_ARG_DIFF_DST, out.g);
    step.flops += (with_data ? 6.0 : 4.0) * (double)(step.batch * s.out * side * side) *
                  (double)(s.in * s.kernel * s.kernel);
    return out;
}

static activation norm(activation in, int64_t channels, int relu)
{
    const unsigned flags =
        dnnl_use_scale | dnnl_use_shift | (relu ? (unsigned)dnnl_fuse_norm_relu : 0);
    const_dnnl_memory_desc_t d;
    dnnl_memory_desc_t vector;
    dnnl_primitive_desc_t f, b;
    MUST(dnnl_memory_get_memory_desc(in.x, &d));
    MUST(dnnl_memory_desc_create_with_tag(&vector, 1, (dnnl_dims_t){channels}, dnnl_f32, dnnl_a));
    MUST(dnnl_batch_normalization_forward_primitive_desc_create(&f, bare_engine,
                                                                dnnl_forward_training, d, d, 1e-5f,
                                                                flags, NULL));
    MUST(dnnl_batch_normalization_backward_primitive_desc_create(&b, bare_engine, dnnl_backward, d,
                                                                 d, d, 1e-5f, flags, f, NULL));
    const activation out = {bare_memory(d), bare_memory(d)};
    const dnnl_memory_t mean = bare_memory(vector), variance = bare_memory(vector),
                        scale = bare_memory(vector);
    bare_call *c = begin(step.forward, &step.nforward, f),
              *k = begin(step.backward, &step.nbackward, b);
    bare_arg(c, DNNL_ARG_DST, out.x);
    bare_arg(c, DNNL_ARG_SHIFT, bare_memory(vector));
    bare_arg(k, DNNL_ARG_DIFF_DST, out.g);
    bare_arg(k, DNNL_ARG_DIFF_SRC, take(in.g, d));
    bare_arg(k, DNNL_ARG_DIFF_SCALE, bare_memory(vector));
    bare_arg(k, DNNL_ARG_DIFF_SHIFT, bare_memory(vector));
    for (int i = 0; i < 2; i++) {
        bare_call *each = i ? k : c;
        bare_arg(each, DNNL_ARG_SRC, in.x);
        bare_arg(each, DNNL_ARG_MEAN, mean);
        bare_arg(each, DNNL_ARG_VARIANCE, variance);
        bare_arg(each, DNNL_ARG_SCALE, scale);
    }
    if (relu) {
        const dnnl_memory_t signs = bare_memory(asked(f, dnnl_query_workspace_md));
        bare_arg(c, DNNL_ARG_WORKSPACE, signs);
        bare_arg(k, DNNL_ARG_WORKSPACE, signs);
    }
    return out;
}

/* Max pooling is left out, so the first block's input is a new buffer. */
static void build(void)
{
    static const struct {
        int64_t width, blocks, stride;
    } stage[] = {{64, 3, 1}, {128, 4, 2}, {256, 6, 2}, {512, 3, 2}};
    int64_t in = 64, side = 56;
    activation x = {0};
    norm(conv(x, (conv_shape){3, 224, 64, 7, 2}, 0), 64, 1);
    for (int s = 0; s < 4; s++) {
        const int64_t width = stage[s].width, out = 4 * width;
        for (int64_t i = 0; i < stage[s].blocks; i++) {
            const int64_t stride = i == 0 ? stage[s].stride : 1;
            if (i == 0) norm(conv(x, (conv_shape){in, side, out, 1, stride}, 1), out, 0);
            activation y = norm(conv(x, (conv_shape){in, side, width, 1, 1}, 1), width, 1);
            y = norm(conv(y, (conv_shape){width, side, width, 3, stride}, 1), width, 1);
            side /= stride;
            x = norm(conv(y, (conv_shape){width, side, out, 1, 1}, 1), out, 0);
            in = out;
        }
    }
}

int main(int argc, char **argv)
{
    const int low = argc > 2 && strcmp(argv[2], "bf16") == 0, steps = argc > 3 ? atoi(argv[3]) : 5;
    step.batch = argc > 1 ? atoll(argv[1]) : 16;
    step.type = low ? dnnl_bf16 : dnnl_f32;
    bare_begin();
    build();
    double best = 1e9;
    for (int i = 0; i <= steps; i++) { /* the first is a warm-up */
        const double t = bare_seconds();
        for (int k = 0; k < step.nforward; k++) bare_run(&step.forward[k]);
        for (int k = step.nbackward; k-- > 0;) bare_run(&step.backward[k]);
        MUST(dnnl_stream_wait(bare_stream));
        const double spent = bare_seconds() - t;
        if (i > 0 && spent < best) best = spent;
    }
    printf("{\"best_ms\": %.3f, \"images_per_s\": %.3f, \"gflops\": %.1f}\n", best * 1e3,
           (double)step.batch / best, step.flops / best * 1e-9);
    return 0;
}
