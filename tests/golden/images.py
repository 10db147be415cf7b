#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of test_images.c: the networks for images and fields of the zoo, written out with
NumPy in f64 after the papers and torchvision, in evaluation mode. Of each, the result.

python3 images.py > images.inc
Needs numpy.
"""
import itertools

import numpy as np

from hashed import emit, uniform, values


def array(name, *shape):
    """A parameter or a state by its name; fill_states in test_images.c has the same formulas."""
    if name.endswith("running_mean"):
        return (0.25 * uniform(name, shape[0])).astype(np.float32).astype(float)
    if name.endswith("running_var"):
        return (1 + 0.5 * uniform(name, shape[0])).astype(np.float32).astype(float)
    return values(name, shape).astype(float)


def windows(x, kernel, stride):
    """x as (N,C,out...,kernel...)."""
    spatial = x.ndim - 2
    size = kernel if isinstance(kernel, list) else [kernel] * spatial
    w = np.lib.stride_tricks.sliding_window_view(x, size, tuple(range(2, x.ndim)))
    return w[(slice(None), slice(None)) + (slice(None, None, stride),) * spatial]


def padded(x, pad):
    return np.pad(x, [(0, 0), (0, 0)] + [(pad, pad)] * (x.ndim - 2))


def conv(x, name, out, kernel, stride=1, pad=None, groups=1, bias=True):
    spatial = x.ndim - 2
    pad = kernel // 2 if pad is None else pad
    c, o = x.shape[1] // groups, out // groups
    w = array(f"{name}.weight", out, c, *(kernel,) * spatial)
    v = windows(padded(x, pad), kernel, stride)
    last = list(range(-spatial, 0))
    y = [np.tensordot(v[:, g * c:(g + 1) * c], w[g * o:(g + 1) * o],
                      ([1, *last], [1, *range(2, 2 + spatial)])) for g in range(groups)]
    y = np.moveaxis(np.concatenate(y, -1), -1, 1)
    return y + array(f"{name}.bias", out).reshape(-1, *(1,) * spatial) if bias else y


def conv_transpose(x, name, out):
    """Kernel 2 and stride 2: every point becomes a block of its own."""
    spatial = x.ndim - 2
    w = array(f"{name}.weight", x.shape[1], out, *(2,) * spatial)
    y = np.zeros((len(x), out, *(2 * n for n in x.shape[2:])))
    for at in itertools.product((0, 1), repeat=spatial):
        part = np.moveaxis(np.tensordot(x, w[(slice(None), slice(None), *at)], ([1], [0])), -1, 1)
        y[(slice(None), slice(None), *(slice(a, None, 2) for a in at))] = part
    return y + array(f"{name}.bias", out).reshape(-1, *(1,) * spatial)


def norm(x, name, eps=1e-5):
    def row(what):
        return array(f"{name}.{what}", x.shape[1]).reshape(-1, *(1,) * (x.ndim - 2))
    y = (x - row("running_mean")) / np.sqrt(row("running_var") + eps)
    return y * row("weight") + row("bias")


def linear(x, name, out):
    return x @ array(f"{name}.weight", out, x.shape[1]).T + array(f"{name}.bias", out)


def relu(x):
    return np.maximum(x, 0)


def max_pool(x, kernel, stride, pad=0, ceil=False):
    """Whole windows only or, with ceil, one more that is cut off by the end."""
    size = kernel if isinstance(kernel, list) else [kernel] * (x.ndim - 2)
    after = [pad + (-(n + 2 * pad - k) % stride if ceil else 0) for n, k in zip(x.shape[2:], size)]
    x = np.pad(x, [(0, 0), (0, 0)] + [(pad, a) for a in after], constant_values=-np.inf)
    return windows(x, kernel, stride).max(tuple(range(-(x.ndim - 2), 0)))


def global_avg_pool(x):
    return x.mean(tuple(range(2, x.ndim)))


# ---- networks ------------------------------------------------------------------------------------


def lenet5(x):
    x = max_pool(relu(conv(x, "conv1", 6, 5, pad=2)), 2, 2)
    x = max_pool(relu(conv(x, "conv2", 16, 5, pad=0)), 2, 2)
    x = relu(linear(x.reshape(len(x), -1), "fc1", 120))
    return linear(relu(linear(x, "fc2", 84)), "fc3", 4)


def resnet(x, width, blocks, bottleneck):
    def layer(x, name, number, out, kernel, stride=1):
        x = conv(x, f"{name}.conv{number}", out, kernel, stride, bias=False)
        return norm(x, f"{name}.bn{number}")
    x = relu(norm(conv(x, "conv1", width, 7, 2, bias=False), "bn1"))
    x = max_pool(x, 3, 2, 1)
    for stage, n in enumerate(blocks):
        w = width * 2**stage
        out = 4 * w if bottleneck else w
        for i in range(n):
            name, stride = f"layer{stage + 1}.{i}", 2 if stage and i == 0 else 1
            if bottleneck:
                y = relu(layer(x, name, 1, w, 1))
                y = layer(relu(layer(y, name, 2, w, 3, stride)), name, 3, out, 1)
            else:
                y = layer(relu(layer(x, name, 1, w, 3, stride)), name, 2, w, 3)
            if stride > 1 or x.shape[1] != out:
                x = conv(x, f"{name}.downsample.0", out, 1, stride, bias=False)
                x = norm(x, f"{name}.downsample.1")
            x = relu(y + x)
    return linear(global_avg_pool(x), "fc", 4)


def resnet_cifar(x, width, n):
    x = relu(norm(conv(x, "conv1", width, 3, bias=False), "bn1"))
    for stage in range(3):
        out = width * 2**stage
        for i in range(n):
            name, stride = f"layer{stage + 1}.{i}", 2 if stage and i == 0 else 1
            y = relu(norm(conv(x, f"{name}.conv1", out, 3, stride, bias=False), f"{name}.bn1"))
            y = norm(conv(y, f"{name}.conv2", out, 3, bias=False), f"{name}.bn2")
            more = out - x.shape[1]
            x = np.pad(x[:, :, ::stride, ::stride],
                       [(0, 0), (more // 2, more - more // 2), (0, 0), (0, 0)])
            x = relu(y + x)
    return linear(global_avg_pool(x), "linear", 4)


def mobilenet_v2(x, width):
    def channels(c):  # the multiple of 8 nearest to c, not more than a tenth below
        n = max(8, int(c * width + 4) // 8 * 8)
        return n + 8 if n < 0.9 * c * width else n
    def layer(x, name, out, kernel, stride=1, groups=1):
        x = conv(x, f"{name}.0", out, kernel, stride, groups=groups, bias=False)
        return np.clip(norm(x, f"{name}.1"), 0, 6)
    x = layer(x, "features.0", channels(32), 3, 2)
    number = 1
    for t, c, n, s in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                       (6, 160, 3, 2), (6, 320, 1, 1)]:
        for i in range(n):
            name, wide, out = f"features.{number}.conv", t * x.shape[1], channels(c)
            y = layer(x, f"{name}.0", wide, 1) if t > 1 else x
            k = 1 if t > 1 else 0
            y = layer(y, f"{name}.{k}", wide, 3, s if i == 0 else 1, wide)
            y = norm(conv(y, f"{name}.{k + 1}", out, 1, bias=False), f"{name}.{k + 2}")
            x = x + y if y.shape == x.shape and (i > 0 or s == 1) else y
            number += 1
    x = layer(x, f"features.{number}", int(max(1, width) * 1280), 1)
    return linear(global_avg_pool(x), "classifier.1", 4)


def unet(x, width, depth, out):
    def stage(x, name, c):
        for i in (1, 2):
            x = relu(norm(conv(x, f"{name}.conv{i}", c, 3, bias=False), f"{name}.bn{i}"))
        return x
    kept = []
    for i in range(depth):
        kept.append(stage(x, f"enc.{i}", width * 2**i))
        x = max_pool(kept[-1], 2, 2)
    x = stage(x, f"enc.{depth}", width * 2**depth)
    for i in range(depth):
        c = width * 2**(depth - 1 - i)
        x = np.concatenate([kept.pop(), conv_transpose(x, f"up.{i}", c)], 1)
        x = stage(x, f"dec.{i}", c)
    return conv(x, "head", out, 1)


def conv_relu(x, name, out, kernel, stride=1, bn=False):
    x = conv(x, f"{name}.conv", out, kernel, stride, bias=not bn)
    return relu(norm(x, f"{name}.bn", 1e-3) if bn else x)


def inception(x, name, out1, reduce3, out3, reduce5, out5, pool, bn):
    def branch(x, number, *layers):  # channels and kernels
        for i, (out, kernel) in enumerate(layers):
            x = conv_relu(x, f"{name}branch{number}.{i}", out, kernel, bn=bn)
        return x
    last = max_pool(x, 3, 1, 1)
    return np.concatenate([conv_relu(x, f"{name}branch1", out1, 1, bn=bn),
                           branch(x, 2, (reduce3, 1), (out3, 3)),
                           branch(x, 3, (reduce5, 1), (out5, 3 if bn else 5)),
                           conv_relu(last, f"{name}branch4.1", pool, 1, bn=bn)], 1)


def inception_bn(x, out1, reduce3, out3, reduce33, out33, pool, stride, average):
    y = [conv_relu(x, "branch1", out1, 1, bn=True)] if out1 else []
    v = conv_relu(x, "branch2.0", reduce3, 1, bn=True)
    y.append(conv_relu(v, "branch2.1", out3, 3, stride, bn=True))
    v = conv_relu(x, "branch3.0", reduce33, 1, bn=True)
    v = conv_relu(v, "branch3.1", out33, 3, bn=True)
    y.append(conv_relu(v, "branch3.2", out33, 3, stride, bn=True))
    v = (windows(padded(x, 1), 3, stride).mean((-2, -1)) if average
         else max_pool(x, 3, stride, 1))
    y.append(conv_relu(v, "branch4.1", pool, 1, bn=True) if pool else v)
    return np.concatenate(y, 1)


def local_response(x):
    """Over 5 channels."""
    p = np.pad(x**2, [(0, 0), (2, 2), (0, 0), (0, 0)])
    s = sum(p[:, i:i + x.shape[1]] for i in range(5))
    return x / (2 + 1e-4 * s)**0.75


def googlenet(x, bn):
    def respond(x):
        return x if bn else local_response(x)
    def pool(x, kernel):  # of small images a window has at most the whole
        return max_pool(x, [min(kernel, n) for n in x.shape[2:]], 2, ceil=True)
    x = respond(pool(conv_relu(x, "conv1", 64, 7, 2, bn), 3))
    x = conv_relu(conv_relu(x, "conv2", 64, 1, bn=bn), "conv3", 192, 3, bn=bn)
    x = pool(respond(x), 3)
    for name, *sizes in [("3a", 64, 96, 128, 16, 32, 32), ("3b", 128, 128, 192, 32, 96, 64),
                         ("4a", 192, 96, 208, 16, 48, 64), ("4b", 160, 112, 224, 24, 64, 64),
                         ("4c", 128, 128, 256, 24, 64, 64), ("4d", 112, 144, 288, 32, 64, 64),
                         ("4e", 256, 160, 320, 32, 128, 128), ("5a", 256, 160, 320, 32, 128, 128),
                         ("5b", 384, 192, 384, 48, 128, 128)]:
        x = inception(x, f"inception{name}.", *sizes, bn)
        if name in ("3b", "4e"):
            x = pool(x, 2 if bn and name == "4e" else 3)
    return linear(global_avg_pool(x), "fc", 4)


# The same list is in test_images.c.
CASES = [
    ("lenet5", (2, 1, 28, 28), lenet5),
    ("resnet18", (2, 3, 40, 33), lambda x: resnet(x, 4, (2, 2, 2, 2), False)),
    ("resnet50", (1, 2, 33, 48), lambda x: resnet(x, 3, (3, 4, 6, 3), True)),
    ("resnet14_cifar", (2, 3, 9, 8), lambda x: resnet_cifar(x, 3, 2)),
    ("mobilenet_v2", (1, 3, 40, 33), lambda x: mobilenet_v2(x, 0.35)),
    ("unet1", (2, 2, 8), lambda x: unet(x, 3, 2, 2)),
    ("unet2", (1, 1, 8, 16), lambda x: unet(x, 2, 3, 1)),
    ("unet3", (1, 1, 4, 2, 6), lambda x: unet(x, 2, 1, 1)),
    ("inception", (1, 3, 5, 4), lambda x: inception(x, "", 1, 2, 2, 3, 1, 2, False)),
    ("inception_norm", (1, 3, 5, 4), lambda x: inception(x, "", 1, 2, 2, 3, 1, 2, True)),
    ("inception_bn", (1, 3, 5, 4), lambda x: inception_bn(x, 1, 2, 2, 3, 1, 2, 1, True)),
    ("inception_bn_stride", (1, 3, 5, 4), lambda x: inception_bn(x, 0, 2, 2, 3, 1, 0, 2, False)),
    ("googlenet", (1, 3, 70, 49), lambda x: googlenet(x, False)),
    ("googlenet_norm", (1, 3, 70, 49), lambda x: googlenet(x, True)),
    ("googlenet_small", (1, 3, 20, 9), lambda x: googlenet(x, False)),
]


def main():
    print("/* SPDX-License-Identifier: Apache-2.0\n *\n * Made by images.py. */")
    for name, shape, network in CASES:
        x = uniform(f"x of {name}", int(np.prod(shape))).astype(np.float32).astype(float)
        emit(name, network(x.reshape(shape)).ravel())


if __name__ == "__main__":
    main()
