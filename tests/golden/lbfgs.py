#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of test_lbfgs.c, made by PyTorch: L-BFGS in f64 on two functions.

python3 lbfgs.py > lbfgs.inc
Needs torch.
"""
import torch
import torch.nn.functional as F
from optim import data, emit, net


def closure(opt, p, f):
    def evaluate():
        opt.zero_grad()
        loss = f(*p)
        loss.backward()
        return loss

    return evaluate


def flat(p):
    return [float(v) for t in p for v in t.flatten()]


def lbfgs(name, p, f, **how):
    """The loss before and 6 parameters after each of 20 steps of one iteration, then all."""
    opt = torch.optim.LBFGS(p, max_iter=1, max_eval=25, **how)
    out = []
    for _ in range(20):
        out.append(opt.step(closure(opt, p, f)))
        out += flat(p)[:6]
    emit(name, out + flat(p), 16, 3)


def whole(name, p, f, **how):
    """The parameters after one step of many iterations, which ends by itself."""
    opt = torch.optim.LBFGS(p, **how)
    emit(name, [opt.step(closure(opt, p, f))] + flat(p), 16, 3)


def rosenbrock(x, y):
    return (100 * (y - x * x) ** 2 + (1 - x) ** 2).sum()


def network(w1, b1, w2, b2):
    h = torch.tanh(F.linear(data(20, 5, 4), w1, b1))
    return ((F.linear(h, w2, b2) - data(60, 5, 3)) ** 2).mean()


def waves(x, y):
    """Steps into other valleys. Errors grow here: 1e-15 at the start becomes 4e-10."""
    return (0.05 * x * x + 2 * torch.sin(3 * x) + 0.2 * (y - x) ** 2).sum()


def dents(x, y):
    """Flat far away: searches that go too far, and come back in small steps."""
    return (1 - torch.exp(-0.5 * x * x) + 0.5 * torch.tanh(y) ** 2 + 0.01 * y * y).sum()


def points():
    x = [torch.tensor([-1.2, 0.5, 2.0]), torch.tensor([1.0, -1.0, 3.0])]
    return [t.requires_grad_() for t in x]


wolfe = {"line_search_fn": "strong_wolfe"}
print("/* Made by lbfgs.py; do not edit. */")
lbfgs("lbfgs_rosenbrock", points(), rosenbrock, **wolfe)
lbfgs("lbfgs_short", points(), rosenbrock, lr=0.5, history_size=3, **wolfe)
lbfgs("lbfgs_small", points(), rosenbrock, lr=0.01, **wolfe)
lbfgs("lbfgs_waves", points(), waves, lr=5, **wolfe)
lbfgs("lbfgs_dents", points(), dents, lr=10, **wolfe)
lbfgs("lbfgs_network", net(), network, **wolfe)
lbfgs("lbfgs_fixed", net(), network, lr=0.1)
whole("lbfgs_whole", points(), rosenbrock, max_iter=200, **wolfe)
whole("lbfgs_few", net(), network, max_iter=30, max_eval=17, **wolfe)
