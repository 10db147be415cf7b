#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ops.py catena|torch|list: CPU time of single ops on one thread, by Catena or by PyTorch. Reads
lines `NUMBER forward|backward` and answers each with a JSON line: the best time, and the sums of
the results, which the two programs must agree on. dev/bench ops asks both in turn. The number is
that of a case in the table below; `list` prints the table. The backward pass includes the forward
pass if the gradient needs it, and starts from a given gradient of the result. Both programs also
sum what they compute, so that all of it is computed and nothing else has to be."""
import json
import sys
import time

import numpy as np

CASES = []
ct = T = F = None  # catena, torch, torch.nn.functional: whichever this process measures
SIDE = sys.argv[1] if len(sys.argv) > 1 else "list"
if SIDE == "catena":
    import catena as ct
elif SIDE == "torch":
    import torch as T
    import torch.nn.functional as F


# ---- inputs: functions of a random generator -----------------------------------------------------


def normal(*shape):
    return lambda r: r.standard_normal(shape, dtype=np.float32)


def between(lo, hi, *shape):
    return lambda r: r.uniform(lo, hi, shape).astype(np.float32)


def below(n, *shape):
    return lambda r: r.integers(0, n, shape)


def bools(*shape):
    return lambda r: r.integers(0, 2, shape).astype(bool)


def positive_definite(*shape):
    def make(r):
        x = r.standard_normal(shape, dtype=np.float32)
        return x @ np.swapaxes(x, -1, -2) + shape[-1] * np.eye(shape[-1], dtype=np.float32)
    return make


def case(name, ours, theirs, *inputs, by=(0,), equal=True):
    """by: the inputs with a gradient. equal: the results are the same but for rounding."""
    CASES.append((name, ours, theirs, inputs, by, equal))


# ---- elementwise ---------------------------------------------------------------------------------

BIG = (1000, 2000)
for op, lo, hi, other in (
        ("exp", -3, 3, "exp"), ("expm1", -3, 3, "expm1"), ("log", .1, 9, "log"),
        ("log1p", 0, 9, "log1p"), ("log2", .1, 9, "log2"), ("sqrt", .1, 9, "sqrt"),
        ("rsqrt", .1, 9, "rsqrt"), ("square", -3, 3, "square"), ("abs", -3, 3, "abs"),
        ("sign", -3, 3, "sign"), ("sin", -9, 9, "sin"), ("cos", -9, 9, "cos"),
        ("tan", -1, 1, "tan"), ("arcsin", -.9, .9, "asin"), ("arctan", -9, 9, "atan"),
        ("sinh", -3, 3, "sinh"), ("arcsinh", -9, 9, "asinh"), ("arctanh", -.9, .9, "atanh"),
        ("tanh", -3, 3, "tanh"), ("floor", -9, 9, "floor"), ("round", -9, 9, "round"),
        ("erf", -3, 3, "erf"), ("erfc", -3, 3, "erfc"), ("erfinv", -.99, .99, "erfinv"),
        ("lgamma", .1, 9, "lgamma"), ("digamma", .1, 9, "digamma"), ("relu", -3, 3, "relu"),
        ("sigmoid", -3, 3, "sigmoid"), ("erfcx", -2, 9, "special.erfcx"),
        ("ndtri", .01, .99, "special.ndtri"), ("log_ndtr", -9, 3, "special.log_ndtr")):
    def theirs(x, other=other):
        return (getattr(T.special, other[8:]) if other[7:8] == "." else getattr(T, other))(x)
    case(op, lambda x, op=op: getattr(ct, op)(x), theirs, between(lo, hi, *BIG),
         by=() if op in ("sign", "floor", "round") else (0,))
for op, other in (("gelu", "gelu"), ("softplus", "softplus"), ("elu", "elu"), ("selu", "selu"),
                  ("swish", "silu"), ("mish", "mish"), ("hard_swish", "hardswish"),
                  ("leaky_relu", "leaky_relu")):
    case(op, lambda x, op=op: getattr(ct, op)(x), lambda x, other=other: getattr(F, other)(x),
         normal(*BIG))
case("gelu_tanh", lambda x: ct.gelu_tanh(x), lambda x: F.gelu(x, approximate="tanh"), normal(*BIG))
for op, other in (("add", "add"), ("mul", "mul"), ("maximum", "maximum"), ("arctan2", "atan2")):
    case(op, lambda a, b, op=op: getattr(ct, op)(a, b),
         lambda a, b, other=other: getattr(T, other)(a, b), normal(*BIG), normal(*BIG), by=(0, 1))
case("div", lambda a, b: a / b, lambda a, b: a / b, normal(*BIG), between(.5, 2, *BIG), by=(0, 1))
case("pow", lambda a, b: ct.pow(a, b), lambda a, b: T.pow(a, b), between(.1, 3, *BIG),
     between(-2, 2, *BIG), by=(0, 1))
case("power 2.5", lambda x: ct.power(x, 2.5), lambda x: x ** 2.5, between(.1, 3, *BIG))
case("clip", lambda x: ct.clip(x, -1.0, 1.0), lambda x: T.clip(x, -1, 1), normal(*BIG))
case("polygamma 1", lambda x: ct.polygamma(1, x), lambda x: T.special.polygamma(1, x),
     between(.1, 9, *BIG), by=())
case("add row and column", lambda a, b: a + b, lambda a, b: a + b, normal(2000, 1),
     normal(1, 1000), by=(0, 1))
case("mul, broadcast in the middle", lambda a, b: a * b, lambda a, b: a * b, normal(64, 1, 256),
     normal(64, 200, 1), by=(0, 1))
case("where", lambda c, a, b: ct.where(c, a, b), lambda c, a, b: T.where(c, a, b), bools(*BIG),
     normal(*BIG), normal(*BIG), by=(1, 2))
case("masked_fill", lambda x, m: ct.masked_fill(x, m, -1.0), lambda x, m: x.masked_fill(m, -1.0),
     normal(*BIG), bools(*BIG))
case("less", lambda a, b: ct.less(a, b), lambda a, b: T.less(a, b), normal(*BIG), normal(*BIG),
     by=())
case("cast to i32", lambda x: ct.cast(x, "i32"), lambda x: x.to(T.int32), between(-99, 99, *BIG),
     by=())
case("prelu", lambda x, s: ct.prelu(x, s), lambda x, s: F.prelu(x, s), normal(8, 64, 56, 56),
     normal(64), by=(0, 1))
case("dropout", lambda x: ct.dropout(x, .5), lambda x: F.dropout(x, .5), normal(*BIG), equal=False)

# ---- reductions ----------------------------------------------------------------------------------

CUBE = (64, 128, 128)
for axis in (0, 1, 2):
    for op, other in (("sum", "sum"), ("max", "amax"), ("prod", "prod"),
                      ("logsumexp", "logsumexp")):
        case(f"{op}, axis {axis}", lambda x, op=op, axis=axis: getattr(ct, op)(x, axis),
             lambda x, other=other, axis=axis: getattr(T, other)(x, axis), between(.5, 1.5, *CUBE))
case("mean of all", lambda x: ct.mean(x), lambda x: x.mean(), normal(*BIG))
case("variance, axis 0", lambda x: ct.variance(x, 0), lambda x: T.var(x, 0), normal(4096, 512))
case("std of all", lambda x: ct.std(x), lambda x: T.std(x), normal(*BIG))
case("norm, axis 1", lambda x: ct.norm(x, 2.0, 1), lambda x: T.linalg.vector_norm(x, 2, 1),
     normal(4096, 512))
case("argmax, axis 0", lambda x: ct.argmax(x, 0), lambda x: T.argmax(x, 0), normal(2048, 1024),
     by=())
case("argmax, axis 1", lambda x: ct.argmax(x, 1), lambda x: T.argmax(x, 1), normal(2048, 1024),
     by=())
for axis in (0, 1):
    case(f"cumsum, axis {axis}", lambda x, axis=axis: ct.cumsum(x, axis),
         lambda x, axis=axis: T.cumsum(x, axis), normal(2048, 1024))
case("cumprod", lambda x: ct.cumprod(x, 1), lambda x: T.cumprod(x, 1), between(.9, 1.1, 2048, 256))

# ---- shapes and indices --------------------------------------------------------------------------

case("transpose", lambda x: ct.transpose(x, [1, 0]) * 2.0, lambda x: x.t().contiguous() * 2.0,
     normal(2000, 1500))
case("NCHW to NHWC", lambda x: ct.relu(ct.transpose(x, [0, 2, 3, 1])),
     lambda x: T.relu(x.permute(0, 2, 3, 1).contiguous()), normal(8, 64, 56, 56))
case("concat, axis 1", lambda *x: ct.concat(list(x), 1), lambda *x: T.cat(x, 1),
     *[normal(2000, 250)] * 4, by=(0, 1, 2, 3))
case("stack, last axis", lambda *x: ct.stack(list(x), 2), lambda *x: T.stack(x, 2),
     *[normal(2000, 250)] * 4, by=(0, 1, 2, 3))
case("slice with step", lambda x: ct.slice_step(x, 1, 0, 1000, 2),
     lambda x: x[:, ::2].contiguous(), normal(2000, 2000))
case("pad", lambda x: ct.pad(x, [0, 0, 2, 2], [0, 0, 2, 2]), lambda x: F.pad(x, (2, 2, 2, 2)),
     normal(8, 64, 56, 56))
for mode, other in (("reflect", "reflect"), ("replicate", "replicate"), ("wrap", "circular")):
    case(f"pad, {mode}", lambda x, mode=mode: ct.pad_by(x, mode, [0, 0, 2, 2], [0, 0, 2, 2]),
         lambda x, other=other: F.pad(x, (2, 2, 2, 2), other), normal(8, 64, 56, 56))
case("flip", lambda x: ct.flip(x, [1]), lambda x: T.flip(x, [1]), normal(*BIG))
case("roll", lambda x: ct.roll(x, 1, 7), lambda x: T.roll(x, 7, 1), normal(*BIG))
case("tile", lambda x: ct.tile(x, [1, 8]), lambda x: x.repeat(1, 8), normal(1000, 256))
case("repeat", lambda x: ct.repeat(x, 4, 1), lambda x: x.repeat_interleave(4, 1),
     normal(1000, 512))
case("tril", lambda x: ct.tril(x, 0), lambda x: T.tril(x), normal(4, 700, 700))
case("diagonal", lambda x: ct.diagonal(x, 0), lambda x: T.diagonal(x, dim1=1, dim2=2).contiguous(),
     normal(50, 200, 200))
case("depth_to_space", lambda x: ct.depth_to_space(x, 2), lambda x: F.pixel_shuffle(x, 2),
     normal(8, 64, 56, 56), equal=False)
case("one_hot", lambda i: ct.one_hot(i, 1000), lambda i: F.one_hot(i, 1000).float(),
     below(1000, 2000), by=())
case("gather", lambda x, i: ct.gather(x, i, 1), lambda x, i: T.gather(x, 1, i), normal(1000, 1000),
     below(1000, 1000, 1000))
for axis in (0, 1):
    case(f"scatter_add, axis {axis}", lambda x, i, s, axis=axis: ct.scatter_add(x, i, s, axis),
         lambda x, i, s, axis=axis: x.scatter_add(axis, i, s), normal(1000, 1000),
         below(1000, 1000, 1000), normal(1000, 1000), by=(0, 2))
case("index_select, axis 0", lambda x, i: ct.index_select(x, i, 0),
     lambda x, i: T.index_select(x, 0, i), normal(10000, 128), below(10000, 30000))
case("index_select, last axis", lambda x, i: ct.index_select(x, i, 1),
     lambda x, i: T.index_select(x, 1, i), normal(1000, 4096), below(4096, 4096))
case("segment_sum", lambda x, i: ct.segment_sum(x, i, 20000),
     lambda x, i: T.zeros(20000, 64).index_add(0, i, x), normal(100000, 64), below(20000, 100000))
case("embedding", lambda x, i: ct.embedding(x, i), lambda x, i: F.embedding(i, x),
     normal(30000, 256), below(30000, 8192))
case("sort, last axis", lambda x: ct.sort(x, 1)[0], lambda x: T.sort(x, 1)[0], normal(100, 10000))
case("sort, axis 0", lambda x: ct.sort(x, 0)[0], lambda x: T.sort(x, 0)[0], normal(5000, 100))
case("topk", lambda x: ct.topk(x, 50, 1)[0], lambda x: T.topk(x, 50, 1)[0], normal(64, 50257))

# ---- linear algebra ------------------------------------------------------------------------------

for name, a, b in (("512 x 512 x 512", (512, 512), (512, 512)),
                   ("4096 of 16 x 16 x 16", (4096, 16, 16), (4096, 16, 16)),
                   ("300000 x 4 x 64", (300000, 4), (4, 64)),
                   ("100000 x 256 x 1", (100000, 256), (256, 1)),
                   ("1 x 4096 x 4096", (1, 4096), (4096, 4096)),
                   ("64 of 100 x 64 with one 64 x 64", (64, 100, 64), (64, 64))):
    case(f"matmul, {name}", lambda a, b: ct.matmul(a, b), lambda a, b: a @ b, normal(*a),
         normal(*b), by=(0, 1))
case("linear", lambda x, w, b: ct.linear(x, w, b), lambda x, w, b: F.linear(x, w, b),
     normal(1024, 512), normal(512, 512), normal(512), by=(0, 1, 2))
for equation, a, b in (("bqhd,bkhd->bhqk", (4, 128, 8, 64), (4, 128, 8, 64)),
                       ("bixy,ioxy->boxy", (20, 32, 16, 16), (32, 32, 16, 16))):
    case(f"einsum {equation}", lambda a, b, e=equation: ct.einsum(e, [a, b]),
         lambda a, b, e=equation: T.einsum(e, a, b), normal(*a), normal(*b), by=(0, 1))
case("cholesky, 1000 of 32", lambda a: ct.cholesky(a), lambda a: T.linalg.cholesky(a),
     positive_definite(1000, 32, 32), equal=False)
case("solve, 1000 of 32", lambda a, b: ct.solve(a, b), lambda a, b: T.linalg.solve(a, b),
     positive_definite(1000, 32, 32), normal(1000, 32, 4), by=(0, 1))
case("inverse, 4 of 256", lambda a: ct.inverse(a), lambda a: T.linalg.inv(a),
     positive_definite(4, 256, 256))
case("det, 1000 of 16", lambda a: ct.det(a * .125), lambda a: T.linalg.det(a * .125),
     positive_definite(1000, 16, 16))
case("rfft, two axes", lambda x: ct.rfft(x, [1, 2]), lambda x: T.view_as_real(T.fft.rfft2(x)),
     normal(8, 256, 256))
case("rfft, prime length", lambda x: ct.rfft(x, [1]), lambda x: T.view_as_real(T.fft.rfft(x)),
     normal(32, 10007))
case("fft, axis 0", lambda x: ct.fft(x, [0]),
     lambda x: T.view_as_real(T.fft.fft(T.view_as_complex(x), dim=0)), normal(1024, 256, 2))

# ---- convolutions, pooling, images ---------------------------------------------------------------

for name, x, w, how in (
        ("1d, 9 taps", (8, 64, 2000), (64, 64, 9), {"pad": 4}),
        ("1d, one channel, stride 5", (8, 1, 80000), (64, 1, 10), {"stride": 5}),
        ("1d, depthwise, 31 taps", (4, 64, 1000), (64, 1, 31), {"pad": 15, "groups": 64}),
        ("1d, depthwise, 4 taps", (4, 512, 512), (512, 1, 4), {"pad": 2, "groups": 512}),
        ("2d, 3 x 3", (4, 64, 56, 56), (64, 64, 3, 3), {"pad": 1}),
        ("2d, 1 x 1", (4, 128, 28, 28), (256, 128, 1, 1), {}),
        ("2d, 7 x 7, stride 2, 3 channels", (2, 3, 224, 224), (64, 3, 7, 7),
         {"pad": 3, "stride": 2}),
        ("2d, depthwise, 3 x 3", (4, 96, 56, 56), (96, 1, 3, 3), {"pad": 1, "groups": 96}),
        ("2d, depthwise, 7 x 7", (4, 96, 56, 56), (96, 1, 7, 7), {"pad": 3, "groups": 96}),
        ("2d, 32 groups", (4, 128, 28, 28), (128, 4, 3, 3), {"pad": 1, "groups": 32}),
        ("2d, dilation 4", (2, 64, 64, 64), (64, 64, 3, 3), {"pad": 4, "dilation": 4}),
        ("3d", (1, 16, 24, 24, 24), (16, 16, 3, 3, 3), {"pad": 1}),
        ("3d, depthwise", (2, 32, 16, 16, 16), (32, 1, 3, 3, 3), {"pad": 1, "groups": 32})):
    n = len(x) - 2
    ours = {k: v if k == "groups" else [v] * n for k, v in how.items()}
    theirs = {"padding" if k == "pad" else k: v for k, v in how.items()}
    case(f"conv {name}", lambda x, w, o=ours: ct.conv(x, w, **o),
         lambda x, w, o=theirs, n=n: (F.conv1d, F.conv2d, F.conv3d)[n - 1](x, w, **o), normal(*x),
         normal(*w), by=(0, 1))
case("conv_transpose 2d", lambda x, w: ct.conv_transpose(x, w, pad=[1, 1], stride=[2, 2]),
     lambda x, w: F.conv_transpose2d(x, w, padding=1, stride=2), normal(4, 64, 32, 32),
     normal(64, 32, 4, 4), by=(0, 1))
case("im2col", lambda x: ct.im2col(x, [3, 3], pad=[1, 1]), lambda x: F.unfold(x, 3, padding=1),
     normal(4, 32, 56, 56), equal=False)
case("max_pool 1d", lambda x: ct.max_pool(x, [3], [2], [1]), lambda x: F.max_pool1d(x, 3, 2, 1),
     normal(8, 64, 4000))
case("max_pool 2d", lambda x: ct.max_pool(x, [3, 3], [2, 2], [1, 1]),
     lambda x: F.max_pool2d(x, 3, 2, 1), normal(4, 64, 112, 112))
case("max_pool 3d", lambda x: ct.max_pool(x, [2, 2, 2]), lambda x: F.max_pool3d(x, 2),
     normal(2, 16, 32, 64, 64))
case("avg_pool 2d", lambda x: ct.avg_pool(x, [3, 3], [1, 1], [1, 1]),
     lambda x: F.avg_pool2d(x, 3, 1, 1), normal(4, 64, 56, 56))
case("adaptive_avg_pool 2d", lambda x: ct.adaptive_avg_pool(x, [7, 7]),
     lambda x: F.adaptive_avg_pool2d(x, 7), normal(8, 256, 30, 30))
for mode, other in (("linear", "bilinear"), ("nearest", "nearest")):
    case(f"resize, {mode}", lambda x, mode=mode: ct.resize(x, mode, [128, 128]),
         lambda x, other=other: F.interpolate(x, (128, 128), mode=other), normal(4, 64, 64, 64))
case("grid_sample", lambda x, g: ct.grid_sample(x, g, 0),
     lambda x, g: F.grid_sample(x, g, align_corners=False), normal(4, 16, 128, 128),
     between(-1, 1, 4, 128, 128, 2), by=(0, 1))

# ---- norms, losses, attention --------------------------------------------------------------------

case("layer_norm", lambda x: ct.layer_norm(x), lambda x: F.layer_norm(x, (768,)),
     normal(4096, 768))
case("rms_norm", lambda x: ct.rms_norm(x), lambda x: F.rms_norm(x, (768,), eps=1e-6),
     normal(4096, 768))
case("group_norm", lambda x: ct.group_norm(x, 8, None, None, 1e-5), lambda x: F.group_norm(x, 8),
     normal(8, 64, 56, 56))
case("instance_norm", lambda x: ct.instance_norm(x, None, None, 1e-5),
     lambda x: F.instance_norm(x), normal(8, 64, 56, 56))
case("local_response_norm", lambda x: ct.local_response_norm(x, 5, 2., 1e-4, .75),
     lambda x: F.local_response_norm(x, 5, 5e-4, .75, 2.), normal(8, 64, 56, 56))
case("softmax, last axis", lambda x: ct.softmax(x, 1), lambda x: T.softmax(x, 1),
     normal(2048, 1000))
case("softmax, axis 1 of 4", lambda x: ct.softmax(x, 1), lambda x: T.softmax(x, 1),
     normal(4, 512, 32, 32))
case("log_softmax, axis 0", lambda x: ct.log_softmax(x, 0), lambda x: T.log_softmax(x, 0),
     normal(1000, 2048))
case("cosine_similarity", lambda a, b: ct.cosine_similarity(a, b, 1),
     lambda a, b: F.cosine_similarity(a, b, 1), normal(4096, 512), normal(4096, 512), by=(0, 1))
case("cross-entropy, 50257 classes", lambda x, t: ct.softmax_cross_entropy(x, t),
     lambda x, t: F.cross_entropy(x, t), normal(128, 50257), below(50257, 128))
case("cross-entropy, smoothing", lambda x, t: ct.softmax_cross_entropy(x, t, smoothing=.1),
     lambda x, t: F.cross_entropy(x, t, label_smoothing=.1), normal(2048, 1000), below(1000, 2048))
case("cross-entropy, 21 classes", lambda x, t: ct.softmax_cross_entropy(x, t),
     lambda x, t: F.cross_entropy(x, t), normal(131072, 21), below(21, 131072))
case("cross-entropy, 21 classes, NCHW",
     lambda x, t: ct.softmax_cross_entropy(ct.transpose(x, [0, 2, 3, 1]), t),
     lambda x, t: F.cross_entropy(x, t), normal(8, 21, 128, 128), below(21, 8, 128, 128))
case("sigmoid_cross_entropy", lambda x, t: ct.sigmoid_cross_entropy(x, t),
     lambda x, t: F.binary_cross_entropy_with_logits(x, t), normal(*BIG), between(0, 1, *BIG))
case("mean_squared_error", lambda x, t: ct.mean_squared_error(x, t),
     lambda x, t: F.mse_loss(x, t), normal(*BIG), normal(*BIG))
case("huber", lambda x, t: ct.huber(x, t), lambda x, t: F.huber_loss(x, t), normal(*BIG),
     normal(*BIG))
case("ctc_loss", lambda x, i: ct.ctc_loss(x, i, reduction="sum"),
     lambda x, i: F.ctc_loss(T.log_softmax(x, 2), i, T.full((16,), 200), T.full((16,), 50),
                             reduction="sum"),
     normal(200, 16, 50), lambda r: r.integers(1, 50, (16, 50)))
for name, how in (("attention", {}), ("attention, causal", {"causal": 1})):
    case(name, lambda q, k, v, o=how: ct.attention(q, k, v, **o),
         lambda q, k, v, o=how: F.scaled_dot_product_attention(q, k, v, is_causal=bool(o)),
         *[normal(1, 12, 512, 64)] * 3, by=(0, 1, 2))
case("attention, mask", lambda q, k, v, m: ct.attention(q, k, v, m),
     lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), *[normal(128, 4, 49, 32)] * 3,
     normal(1, 4, 49, 49), by=(0, 1, 2))

# ---- measurement ---------------------------------------------------------------------------------


class Catena:
    def __init__(self):
        ct.use_context(ct.Context(threads=1))
        self.kept = []

    def run(self, f, arrays, by, gy, whole=False):
        """One step. Sums of the results are retained, so nothing but the results is computed."""
        with ct.step():
            x = [ct.Tensor(a) for a in arrays]
            if gy is None:
                found = [f(*x)]
            else:
                for i in by:
                    x[i] = x[i].with_grad()
                found = ct.grad(ct.sum(f(*x) * ct.Tensor(gy)), [x[i] for i in by])
            self.kept += [None] * (len(found) - len(self.kept))
            for i, y in enumerate(found):
                y = y if whole else ct.sum(y if y.dtype == "f32" else ct.cast(y, "f32"))
                self.kept[i] = ct.retain(y, self.kept[i])

    def results(self, f, arrays, by, gy):
        self.kept = []
        self.run(f, arrays, by, gy, whole=True)
        with ct.step():
            found = [ct.retained_value(k).numpy() for k in self.kept]
        self.kept = []
        return found


class Torch:
    def __init__(self):
        T.set_num_threads(1)

    def run(self, f, arrays, by, gy, whole=False):
        x = [T.from_numpy(a) for a in arrays]
        if gy is None:
            with T.no_grad():
                found = [f(*x)]
        else:
            for i in by:
                x[i].requires_grad_(True)
            found = T.autograd.grad(f(*x), [x[i] for i in by], T.from_numpy(gy))
        return found if whole else [y.float().sum() for y in found]

    def results(self, f, arrays, by, gy):
        return [y.detach().numpy() for y in self.run(f, arrays, by, gy, whole=True)]


def best_of(step):
    """The best CPU time of at least 3 runs and up to 20, within about 0.1 s."""
    best, spent, runs = 1e9, 0.0, 0
    while runs < 3 or (runs < 20 and spent < 0.1):
        begin = time.process_time()
        step()
        took = time.process_time() - begin
        best, spent, runs = min(best, took), spent + took, runs + 1
    return best * 1e3


def answer(side, number, part):
    _, ours, theirs, inputs, by, _ = CASES[number]
    f = ours if SIDE == "catena" else theirs
    r = np.random.default_rng(number)
    arrays, gy = [make(r) for make in inputs], None
    if part == "backward":
        shape = side.results(f, arrays, by, None)[0].shape
        gy = np.asarray(r.standard_normal(shape, dtype=np.float32))
    found = side.results(f, arrays, by, gy)
    sums = [[float(y.sum(dtype=np.float64)), float(np.abs(y).sum(dtype=np.float64))]
            for y in found]
    return {"ms": best_of(lambda: side.run(f, arrays, by, gy)), "sums": sums}


def main():
    if SIDE == "list":
        print(json.dumps([{"name": c[0], "backward": bool(c[4]), "equal": c[5]} for c in CASES]))
        return
    side = Catena() if SIDE == "catena" else Torch()
    for line in sys.stdin:
        number, part = line.split()
        print(json.dumps(answer(side, int(number), part)), flush=True)


if __name__ == "__main__":
    main()
