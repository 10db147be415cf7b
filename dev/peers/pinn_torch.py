#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of the physics-informed network of bench/pinn.c in PyTorch, with the same points,
initial weights and optimizer. Prints one JSON line.

  pinn_torch.py [STEPS]
"""
import json
import math
import sys
import time

import numpy as np
import torch

POINTS, BOUNDARY, WIDTH, LAYERS, NU = 20000, 256, 20, 9, 0.01 / math.pi


def number(i):
    x = (np.asarray(i, dtype=np.float64) + 1) * 0.6180339887498949
    return x - np.floor(x)


def data():
    i = np.arange(POINTS)
    inside = np.stack([number(i), 2 * (i + 0.5) / POINTS - 1], 1)
    i = np.arange(BOUNDARY)
    x, side = 2 * (i + 0.5) / BOUNDARY - 1, i % 2 == 1
    border = np.stack([np.where(side, number(i), 0),
                       np.where(side, np.where(i % 4 == 1, -1, 1), x)], 1)
    known = np.where(side, 0, -np.sin(math.pi * x))[:, None]
    return [torch.tensor(a, dtype=torch.float32) for a in (inside, border, known)]


def network():
    layers = []
    for k in range(LAYERS):
        fan = (2 if k == 0 else WIDTH, 1 if k == LAYERS - 1 else WIDTH)
        layer = torch.nn.Linear(*fan)
        bound = math.sqrt(6 / sum(fan))
        w = bound * (2 * number(1000 * (k + 1) + np.arange(fan[0] * fan[1])) - 1)
        with torch.no_grad():
            layer.weight.copy_(torch.tensor(w.reshape(fan[1], fan[0]), dtype=torch.float32))
            layer.bias.zero_()
        layers += [layer, torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1])


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    inside, border, known = data()
    inside.requires_grad_(True)
    net = network()
    adam = torch.optim.Adam(net.parameters())
    losses, best = [], 1e9
    for i in range(steps):
        begin = time.perf_counter()
        adam.zero_grad()
        u = net(inside)
        first = torch.autograd.grad(u.sum(), inside, create_graph=True)[0]
        ut, ux = first[:, 0:1], first[:, 1:2]
        uxx = torch.autograd.grad(ux.sum(), inside, create_graph=True)[0][:, 1:2]
        f = ut + u * ux - NU * uxx
        loss = f.square().mean() + torch.nn.functional.mse_loss(net(border), known)
        loss.backward()
        adam.step()
        losses.append(loss.item())
        if i >= 2:
            best = min(best, time.perf_counter() - begin)
    print(json.dumps({"ms": best * 1e3, "loss": losses[:5]}))


if __name__ == "__main__":
    main()
