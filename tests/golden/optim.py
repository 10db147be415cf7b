#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of test_optim.c, made by PyTorch: every optimizer and schedule on a small net.

python3 optim.py > optim.inc
Needs torch. Computes in f64, so that only Catena's own rounding counts as an error.
"""
import fnmatch
import warnings

import torch
import torch.nn.functional as F
from torch.optim import SGD, Adam, AdamW
from torch.optim import lr_scheduler as sched

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
warnings.simplefilter("ignore")  # SequentialLR calls its parts in a way that torch warns about

STEPS = 16
NAMES = ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"]


def data(seed, *shape):
    n = 1
    for s in shape:
        n *= s
    i = torch.arange(n, dtype=torch.int64)
    return ((((i * 37 + seed * 101) * 7919) % 257 - 128).double() / 128).reshape(shape)


def net():
    shapes = [(6, 4), (6,), (3, 6), (3,)]
    return [(data(i + 1, *s) * 0.7).requires_grad_() for i, s in enumerate(shapes)]


def emit(name, values):
    print(f"static const double {name}[] = {{")
    values = [f"{float(v):.12e}," for v in values]
    for i in range(0, len(values), 4):
        print("    " + " ".join(values[i : i + 4]))
    print("};")


def train(name, make, clip=0, before=None, schedule=None):
    """Prints the losses, the gradient norms if they are clipped, then every parameter."""
    p = net()
    opt = make(p)
    follow = schedule(opt) if schedule else None
    losses, norms = [], []
    for step in range(STEPS):
        if before:
            before(step, p)
        h = torch.tanh(F.linear(data(20 + step, 5, 4), p[0], p[1]))
        loss = ((F.linear(h, p[2], p[3]) - data(60 + step, 5, 3)) ** 2).mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        if clip:
            norms.append(torch.nn.utils.clip_grad_norm_(p, clip))
        opt.step()
        if follow:
            follow.step()
        losses.append(loss)
    emit(name, losses + norms + [v for t in p for v in t.flatten()])


def grouped(make, **how):
    """Biases have no weight decay and three times the learning rate. Weights have the decay."""
    return lambda p: make(
        [
            {"params": [p[0], p[2]], "weight_decay": how["decay"]},
            {"params": [p[1], p[3]], "lr": 3 * how["lr"], "weight_decay": 0},
        ],
        lr=how["lr"],
        **how.get("more", {}),
    )


def freeze(p, pattern, on):
    for name, t in zip(NAMES, p):
        if fnmatch.fnmatch(name, pattern):
            t.requires_grad_(not on)


def thaw(step, p):
    if step == 0:
        freeze(p, "fc2.bias", True)
    if step == 3:
        freeze(p, "fc2.bias", False)
    if step == 5:
        freeze(p, "fc1.*", True)
    if step == 9:
        freeze(p, "fc1.*", False)


def warm(then, n):
    def make(opt):
        first = sched.LinearLR(opt, start_factor=1 / n, end_factor=1, total_iters=n - 1)
        return sched.SequentialLR(opt, [first, then(opt)], milestones=[n])

    return make


def factors(name, make):
    opt = SGD([torch.zeros(1, requires_grad=True)], lr=1)
    s = make(opt)
    out = []
    for _ in range(STEPS):
        out.append(opt.param_groups[0]["lr"])
        opt.step()
        s.step()
    emit(name, out)


print("/* Made by optim.py; do not edit. */")
train("sgd", lambda p: SGD(p, lr=0.1))
train("sgd_decay", lambda p: SGD(p, lr=0.1, weight_decay=0.05))
train("momentum", lambda p: SGD(p, lr=0.05, momentum=0.9))
train("dampening", lambda p: SGD(p, lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.01))
train("nesterov", lambda p: SGD(p, lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.01))
train("adam", lambda p: Adam(p, lr=0.02))
train("adam_decay", lambda p: Adam(p, lr=0.02, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1))
train("adamw", lambda p: AdamW(p, lr=0.02))
train("adamw_none", lambda p: AdamW(p, lr=0.02, weight_decay=0))
train("amsgrad", lambda p: Adam(p, lr=0.02, betas=(0.9, 0.5), amsgrad=True))
train("adam_clip", lambda p: Adam(p, lr=0.02), clip=0.4)
train("sgd_clip", lambda p: SGD(p, lr=0.2, momentum=0.5), clip=0.3)
train("groups_sgd", grouped(SGD, lr=0.03, decay=0.05, more={"momentum": 0.9}))
train("groups_adamw", grouped(AdamW, lr=0.02, decay=0.2))
train("freeze_momentum", lambda p: SGD(p, lr=0.1, momentum=0.9, dampening=0.5), before=thaw)
train("freeze_adam", lambda p: Adam(p, lr=0.02), before=thaw)
train("freeze_clip", lambda p: AdamW(p, lr=0.02), clip=0.3, before=thaw)
step3 = lambda opt: sched.StepLR(opt, 3, 0.5)
exponential = lambda opt: sched.ExponentialLR(opt, 0.9)
linear = lambda opt: sched.LinearLR(opt, start_factor=1, end_factor=0.2, total_iters=10)
polynomial = lambda opt: sched.PolynomialLR(opt, total_iters=12, power=2)
# CosineAnnealingLR rises again after its end, ours stays at its last value. So this is the closed
# formula, held at the end.
COS = lambda t: 0.1 + 0.9 * 0.5 * (1 + torch.cos(torch.tensor(torch.pi * min(t, 12) / 12)).item())
cosine = lambda opt: sched.LambdaLR(opt, COS)
annealing = lambda opt: sched.CosineAnnealingLR(opt, 16, eta_min=0.1)
train("sgd_step", lambda p: SGD(p, lr=0.2, momentum=0.5), schedule=step3)
train("adam_warm_cosine", lambda p: Adam(p, lr=0.02), schedule=warm(cosine, 4))
factors("f_step", step3)
factors("f_exponential", exponential)
factors("f_cosine", cosine)
factors("f_annealing", annealing)
factors("f_linear", linear)
factors("f_polynomial", polynomial)
factors("f_warm", warm(lambda opt: sched.ConstantLR(opt, 1, 1), 5))
factors("f_warm_cosine", warm(cosine, 4))
factors("f_warm_linear", warm(linear, 3))
