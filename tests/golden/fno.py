#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of test_fno.c, made by PyTorch in f64: Fourier neural operators in one, two and
three dimensions, written with torch.fft and einsum as the original code is. Of each, the result and
the gradients of the first step, and the losses and parameters of three steps of Adam.

python3 fno.py > fno.inc
Needs torch.
"""
import numpy as np
import torch
from torch import nn
from torch.nn.functional import gelu, pad

from hashed import emit, uniform, values

N, IN, OUT, WIDTH, LAYERS, HIDDEN, STEPS = 2, 2, 1, 3, 2, 5, 3
# The same list is in test_fno.c: sizes, modes, padding.
CASES = [("one", (8,), (5,), 0), ("two", (8, 9), (3, 4), 0), ("padded", (7, 6), (2, 3), 3),
         ("three", (4, 5, 6), (2, 1, 3), 0)]


class SpectralConv(nn.Module):
    def __init__(self, modes):
        super().__init__()
        self.modes = modes
        self.n = 2 ** (len(modes) - 1)
        for i in range(self.n):
            setattr(self, f"weights{i + 1}", nn.Parameter(torch.zeros(WIDTH, WIDTH, *modes, 2)))

    def forward(self, x):
        axes = tuple(range(2, x.ndim))
        found = torch.fft.rfftn(x, dim=axes)
        y = torch.zeros(len(x), WIDTH, *found.shape[2:], dtype=found.dtype)
        for i in range(self.n):  # bit k of i: negative frequencies of dimension k
            part = tuple(slice(-m, None) if i >> k & 1 else slice(m)
                         for k, m in enumerate(self.modes))
            w = torch.view_as_complex(getattr(self, f"weights{i + 1}"))
            y[(..., *part)] = torch.einsum("bi...,io...->bo...", found[(..., *part)], w)
        return torch.fft.irfftn(y, s=x.shape[2:], dim=axes)


class FNO(nn.Module):
    def __init__(self, modes, padding):
        super().__init__()
        conv = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[len(modes) - 1]
        self.padding = padding
        self.fc0 = nn.Linear(IN + len(modes), WIDTH)
        for i in range(LAYERS):
            setattr(self, f"conv{i}", SpectralConv(modes))
        for i in range(LAYERS):
            setattr(self, f"w{i}", conv(WIDTH, WIDTH, 1))
        self.fc1, self.fc2 = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, OUT)

    def forward(self, x):  # (N,C,...)
        lines = [torch.linspace(0, 1, n, dtype=x.dtype) for n in x.shape[2:]]
        grid = torch.stack(torch.meshgrid(*lines, indexing="ij"))
        x = torch.cat([x, grid.expand(len(x), *grid.shape)], 1)
        x = self.fc0(x.movedim(1, -1)).movedim(-1, 1)
        x = pad(x, [0, self.padding] * len(lines))
        for i in range(LAYERS):
            x = getattr(self, f"conv{i}")(x) + getattr(self, f"w{i}")(x)
            x = gelu(x) if i < LAYERS - 1 else x
        x = x[(..., *(slice(line.numel()) for line in lines))]
        return self.fc2(gelu(self.fc1(x.movedim(1, -1)))).movedim(-1, 1)


def array(name, *shape):
    v = uniform(name, int(np.prod(shape))).astype(np.float32).reshape(shape)
    return torch.from_numpy(v.astype(np.float64))


def weighted(t, name):
    return (t.detach() * torch.from_numpy(uniform(name, t.numel()).reshape(t.shape))).sum()


def run(name, sizes, modes, padding):
    net = FNO(modes, padding)
    with torch.no_grad():
        for n, p in net.named_parameters():
            p.copy_(torch.from_numpy(values(n, tuple(p.shape))))
    net.double()
    x, t = array("x", N, IN, *sizes), array("t", N, OUT, *sizes)
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        y = net(x)
        loss = (y - t).square().mean()
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            emit(f"{name}_result", y.detach().flatten())
            # of each parameter's gradient, the sum of its elements times hashed numbers
            emit(f"{name}_grads", [weighted(p.grad, "u" + n) for n, p in net.named_parameters()])
        optimizer.step()
    emit(f"{name}_losses", losses)
    emit(f"{name}_params", [weighted(p, "u" + n) for n, p in net.named_parameters()])


print("/* Made by fno.py; do not edit. */")
for case in CASES:
    run(*case)
