#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of test_weight_norm.c, made by PyTorch: weight and spectral normalisation.

python3 weight_norm.py > weight_norm.inc
Needs torch.
"""
import torch
from optim import data, emit
from torch import nn
from torch.nn.utils import parametrizations as norms

net = nn.Sequential(nn.Conv2d(2, 3, 2), nn.Tanh(), nn.Flatten(), nn.Linear(12, 5), nn.Tanh(),
                    nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 4), nn.Linear(4, 2))
with torch.no_grad():
    for i, p in enumerate(net.parameters()):
        p.copy_(0.6 * data(i + 1, *p.shape))
norms.weight_norm(net[0])
norms.spectral_norm(net[3])
norms.spectral_norm(net[5], dim=1, n_power_iterations=2)
norms.weight_norm(net[7], dim=1)
norms.weight_norm(net[8], dim=-1)
with torch.no_grad():
    for i in (3, 5):
        s = net[i].parametrizations.weight[0]
        for k, b in enumerate((s._u, s._v)):
            b.copy_(nn.functional.normalize(data(40 + i + k, *b.shape) + 1.5, dim=0))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
losses = []
for step in range(10):
    loss = ((net(data(20 + step, 4, 2, 3, 3)) - data(60 + step, 4, 2)) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(float(loss))
net.eval()
values = [net(data(90, 4, 2, 3, 3))]
for m in (net[0], net[3], net[5], net[7], net[8]):
    w = m.parametrizations.weight
    if hasattr(w, "original0"):
        values += [w.original1, m.bias, w.original0]
    else:
        values += [w.original, m.bias, w[0]._u, w[0]._v]
print("/* Made by weight_norm.py; do not edit. */")
emit("golden", losses + [float(v) for t in values for v in t.flatten()])
