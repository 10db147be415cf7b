#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden losses of test_mlp.c, made by PyTorch in f32: the 784-1000-1000-10 MLP on MNIST, 200 steps
with batch size 100.

CATENA_DATA=... python3 mlp.py [weights.safetensors] > mlp.inc
Needs torch, and safetensors to write the weights.
"""
import gzip
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

torch.set_num_threads(2)
root = os.path.join(os.environ["CATENA_DATA"], "mnist")


def idx(name, head):
    with gzip.open(os.path.join(root, name)) as f:
        return np.frombuffer(f.read(), np.uint8)[head:]


images = idx("train-images-idx3-ubyte.gz", 16).reshape(-1, 784)
labels = idx("train-labels-idx1-ubyte.gz", 8)
sizes = [784, 1000, 1000, 10]


def mixed(i):
    mask = np.uint64(0xFFFFFFFF)
    i = (i * np.uint64(2654435761)) & mask
    i = ((i ^ (i >> np.uint64(16))) * np.uint64(0x85EBCA6B)) & mask
    i = ((i ^ (i >> np.uint64(13))) * np.uint64(0xC2B2AE35)) & mask
    return i ^ (i >> np.uint64(16))


def weights():
    out = {}
    for l in range(3):
        n_in, n_out = sizes[l], sizes[l + 1]
        for name, shape in ((f"{2 * l}.weight", (n_out, n_in)), (f"{2 * l}.bias", (n_out,))):
            i = np.arange(np.prod(shape), dtype=np.uint64) + np.uint64(1000003 * l + len(name))
            u = mixed(i).astype(np.float64) / 2.0**32
            w = ((u - 0.5) * 2 / np.sqrt(n_in)).reshape(shape)
            out[name] = torch.tensor(w.astype(np.float32))
    return out


def train(make):
    net = torch.nn.Sequential(torch.nn.Linear(784, 1000), torch.nn.ReLU(),
                              torch.nn.Linear(1000, 1000), torch.nn.ReLU(),
                              torch.nn.Linear(1000, 10))
    net.load_state_dict(weights())
    opt = make(net.parameters())
    losses = []
    for step in range(200):
        x = torch.tensor(images[100 * step:100 * step + 100].astype(np.float32) / np.float32(255))
        t = torch.tensor(labels[100 * step:100 * step + 100].astype(np.int64))
        loss = F.cross_entropy(net(x), t)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


if len(sys.argv) > 1:
    from safetensors.torch import save_file
    save_file(weights(), sys.argv[1])
print("/* Made by mlp.py; do not edit. */")
for name, make in (("sgd", lambda p: torch.optim.SGD(p, lr=0.02)),
                   ("adam", lambda p: torch.optim.Adam(p, lr=1e-4))):
    print(f"static const double {name}_losses[] = {{")
    for v in train(make):
        print(f"    {v:.9e},")
    print("};")
