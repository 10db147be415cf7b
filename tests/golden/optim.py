#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of test_optim.c, made by PyTorch: every optimizer and schedule on a small net.

python3 optim.py > optim.inc
Needs torch. Computes in f64, so that only Catena's own rounding counts as an error.
"""
import fnmatch
import math
import warnings

import torch
import torch.nn.functional as F
from torch.optim import SGD, Adam, AdamW, Adadelta, Adafactor, Adagrad, Adamax, NAdam, RAdam
from torch.optim import RMSprop
from torch.optim import lr_scheduler as sched
from torch.optim.swa_utils import SWALR

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
warnings.simplefilter("ignore")  # SequentialLR calls its parts in a way that torch warns about

STEPS = 20
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


def emit(name, values, digits=12, row=4):
    print(f"static const double {name}[] = {{")
    values = [f"{float(v):.{digits}e}," for v in values]
    for i in range(0, len(values), row):
        print("    " + " ".join(values[i : i + row]))
    print("};")


class Rule:
    """An optimizer that PyTorch does not have: a function of parameter, gradient, state and t."""

    def __init__(self, params, rule):
        self.params, self.rule, self.t = params, rule, 0
        self.state = [{} for _ in params]

    def zero_grad(self, set_to_none):
        for p in self.params:
            p.grad = None

    def step(self):
        self.t += 1
        with torch.no_grad():
            for p, s in zip(self.params, self.state):
                p.copy_(self.rule(p, p.grad, s, self.t))


def moments(s, g, b1, b2):
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0) + (1 - b2) * g * g
    return s["m"], s["v"]


def lion(w, g, s, t, lr=0.01, b1=0.9, b2=0.99, decay=0.1):
    m = s.get("m", torch.zeros_like(w))
    s["m"] = b2 * m + (1 - b2) * g
    return w - lr * (torch.sign(b1 * m + (1 - b1) * g) + decay * w)


def lamb(w, g, s, t, lr=0.02, b1=0.9, b2=0.999, eps=1e-6, decay=0.05):
    m, v = moments(s, g, b1, b2)
    r = m / (1 - b1**t) / ((v / (1 - b2**t)).sqrt() + eps) + decay * w
    a, b = w.norm(), r.norm()
    return w - lr * (a / b if a > 0 and b > 0 else 1) * r


def lars(w, g, s, t, lr=0.5, momentum=0.8, trust=0.05, decay=0.01):
    a, b = w.norm(), g.norm()
    rate = trust * a / (b + decay * a) if a > 0 and b > 0 else 1
    s["b"] = momentum * s.get("b", 0) + lr * rate * (g + decay * w)
    return w - s["b"]


def adabound(w, g, s, t, lr=0.02, final=0.1, gamma=0.01, b1=0.9, b2=0.999, eps=1e-8, ams=False):
    m, v = moments(s, g, b1, b2)
    if ams:
        v = s["top"] = torch.maximum(s.get("top", torch.zeros_like(v)), v)
    rate = lr * (1 - b2**t) ** 0.5 / (1 - b1**t) / (v.sqrt() + eps)
    low, high = final * (1 - 1 / (gamma * t + 1)), final * (1 + 1 / (gamma * t))
    return w - rate.clamp(low, high) * m


def smorms3(w, g, s, t, lr=0.02, eps=1e-16):
    k = s.get("k", torch.ones_like(w))
    r = 1 / (k + 1)
    s["m"] = (1 - r) * s.get("m", 0) + r * g
    s["v"] = (1 - r) * s.get("v", 0) + r * g * g
    x = s["m"] ** 2 / (s["v"] + eps)
    s["k"] = 1 + k * (1 - x)
    return w - g * torch.clamp(x, max=lr) / (s["v"].sqrt() + eps)


def msvag(w, g, s, t, lr=0.2, b=0.9):
    m, v = moments(s, g, b, b)
    m, v = m / (1 - b**t), v / (1 - b**t)
    if t == 1:
        return w - lr * m
    p = (1 - b) * (1 + b**t) / ((1 + b) * (1 - b**t))
    return w - lr * m * m * m / (m * m + p * (v - m * m) / (1 - p))


def own(rule, **how):
    return lambda p: Rule(p, lambda w, g, s, t: rule(w, g, s, t, **how))


def train(name, make, clip=0, before=None, schedule=None, hook=None):
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
        if hook:
            hook(p)
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


def factors_swa(name, first, start, **how):
    """The schedule `first`, and after `start` steps SWALR."""
    opt = SGD([torch.zeros(1, requires_grad=True)], lr=1)
    s = first(opt)
    out = []
    for step in range(STEPS):
        if step == start:  # SWALR starts from the rates of the groups
            s = SWALR(opt, **how)
        out.append(opt.param_groups[0]["lr"])
        opt.step()
        s.step()
    emit(name, out)


def fixed_adafactor(w, g, s, t, lr=0.02, decay=0.1, d=0.9, b=-0.6):
    """Without relative steps, which PyTorch always has."""
    k = t**b
    if w.ndim == 1:
        s["v"] = s.get("v", 0) + k * (g * g - s.get("v", 0))
        v = s["v"]
    else:
        s["r"] = s.get("r", 0) + k * ((g * g).mean(1, keepdim=True) - s.get("r", 0))
        s["c"] = s.get("c", 0) + k * ((g * g).mean(0, keepdim=True) - s.get("c", 0))
        v = s["r"] * s["c"] / s["r"].mean()
    u = g / v.sqrt()
    return w * (1 - lr * decay) - lr / max(1, u.norm() / u.numel() ** 0.5 / d) * u


def clip_value(p):
    torch.nn.utils.clip_grad_value_(p, 0.02)


def lasso(p):
    for t in p:
        t.grad += 0.03 * torch.sign(t.detach())


def main():
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
    # CosineAnnealingLR rises again after its end, ours stays at its last value. So this is the
    # closed formula, held at the end.
    COS = lambda t: 0.1 + 0.45 * (1 + math.cos(math.pi * min(t, 12) / 12))
    cosine = lambda opt: sched.LambdaLR(opt, COS)
    annealing = lambda opt: sched.CosineAnnealingLR(opt, 20, eta_min=0.1)
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
    factors("f_restarts", lambda opt: sched.CosineAnnealingWarmRestarts(opt, 5, 1, 0.1))
    factors("f_restarts2", lambda opt: sched.CosineAnnealingWarmRestarts(opt, 3, 2))
    train("rmsprop", lambda p: RMSprop(p, lr=0.01))
    train("rmsprop_momentum", lambda p: RMSprop(p, 0.004, alpha=0.9, momentum=0.8,
                                                weight_decay=0.1))
    train("rmsprop_centered", lambda p: RMSprop(p, lr=0.01, eps=1e-3, centered=True))
    train("graves", lambda p: RMSprop(p, 0.004, alpha=0.95, eps=1e-2, momentum=0.9,
                                      centered=True))
    train("adagrad", lambda p: Adagrad(p, lr=0.05))
    train("adagrad_more", lambda p: Adagrad(p, 0.1, lr_decay=0.1, weight_decay=0.1,
                                            initial_accumulator_value=0.2, eps=1e-6))
    train("adadelta", lambda p: Adadelta(p))
    train("adadelta_more", lambda p: Adadelta(p, lr=2, rho=0.8, eps=1e-4, weight_decay=0.1))
    train("adamax", lambda p: Adamax(p, lr=0.02))
    train("adamax_more", lambda p: Adamax(p, 0.02, betas=(0.8, 0.95), eps=1e-3,
                                          weight_decay=0.1))
    train("nadam", lambda p: NAdam(p, lr=0.02))
    train("nadam_more", lambda p: NAdam(p, lr=0.02, betas=(0.8, 0.95), eps=1e-5, weight_decay=0.1,
                                        momentum_decay=0.05, decoupled_weight_decay=True))
    train("radam", lambda p: RAdam(p, lr=0.02))
    train("radam_more", lambda p: RAdam(p, lr=0.02, betas=(0.8, 0.9), weight_decay=0.1))
    train("lion", own(lion))
    train("lamb", own(lamb))
    train("lars", own(lars))
    train("adabound", own(adabound))
    train("amsbound", own(adabound, ams=True, b2=0.5))
    train("smorms3", own(smorms3))
    train("msvag", own(msvag))
    train("adafactor", lambda p: Adafactor(p, lr=0.5))
    train("adafactor_more", lambda p: Adafactor(p, lr=0.3, beta2_decay=-0.5, eps=(1e-4, 0.5), d=1.2,
                                                weight_decay=0.1))
    train("adafactor_fixed", own(fixed_adafactor))
    factors_swa("f_swa", lambda opt: sched.ConstantLR(opt, 1, 1), 4, swa_lr=0.2, anneal_epochs=8)
    factors_swa("f_swa_linear", lambda opt: sched.ExponentialLR(opt, 0.9), 6, swa_lr=0.3,
                anneal_epochs=5, anneal_strategy="linear")
    train("clip_value", lambda p: SGD(p, lr=0.2, momentum=0.5), hook=clip_value)
    train("lasso", lambda p: Adam(p, lr=0.02), hook=lasso)
    train("all_clips", lambda p: SGD(p, lr=0.2), clip=0.3, hook=lambda p: (clip_value(p), lasso(p)))


if __name__ == "__main__":
    main()
