# SPDX-License-Identifier: Apache-2.0
"""Weights, inputs and directions computed from a name and an index, so that Python and C (hashed.h)
get the same numbers without sharing a file."""
import numpy as np


def mixed(i):
    mask = np.uint64(0xFFFFFFFF)
    i = (i * np.uint64(2654435761)) & mask
    i = ((i ^ (i >> np.uint64(16))) * np.uint64(0x85EBCA6B)) & mask
    i = ((i ^ (i >> np.uint64(13))) * np.uint64(0xC2B2AE35)) & mask
    return i ^ (i >> np.uint64(16))


def key(name):
    """FNV-1a."""
    h = 2166136261
    for c in name.encode():
        h = ((h ^ c) * 16777619) & 0xFFFFFFFF
    return np.uint64(h)


def bits(name, n):
    return mixed(np.arange(n, dtype=np.uint64) ^ key(name))


def uniform(name, n):
    """n doubles from -1 to 1."""
    return bits(name, n).astype(np.float64) / 2.0**32 * 2 - 1


def values(name, shape, small=""):
    """Values of a parameter: weights (out, in, ...) scaled by the fan-in, scales near 1, biases
    near 0.

    Scales whose names end in `small` are a tenth of that. Otherwise a ResNet-50 with random weights
    is so ill-conditioned that its gradients are off by 3 % in f32 and meaningless in bf16."""
    u = uniform(name, int(np.prod(shape)))
    if len(shape) > 1:
        u *= np.sqrt((6.0 if len(shape) > 2 else 3.0) / np.prod(shape[1:]))
    else:
        u = u * 0.25 + (1 if name.endswith("weight") else 0)
        u = u * (0.1 if small and name.endswith(small) else 1)
    return u.astype(np.float32).reshape(shape)


def fill(net, small=""):
    import torch

    with torch.no_grad():
        for name, p in net.named_parameters():
            p.copy_(torch.from_numpy(values(name, tuple(p.shape), small)))


def emit(name, values):
    print(f"static const double {name}[] = {{")
    values = [f"{float(v):.9e}," for v in values]
    for i in range(0, len(values), 5):
        print("    " + " ".join(values[i : i + 5]))
    print("};")
