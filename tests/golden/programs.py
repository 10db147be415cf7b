#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of test_programs.c, made by PyTorch: small but complete training programs.

python3 programs.py > programs.inc
Needs torch. Computes in f64, so that only Catena's own rounding counts as an error.
"""
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


def data(seed, *shape):
    n = 1
    for s in shape:
        n *= s
    i = torch.arange(n, dtype=torch.int64)
    return ((((i * 37 + seed * 101) * 7919) % 257 - 128).double() / 128).reshape(shape)


def param(seed, scale, *shape):
    return (data(seed, *shape) * scale).requires_grad_()


def emit(name, values):
    print(f"static const double {name}[] = {{")
    for v in values:
        print(f"    {float(v):.12e},")
    print("};")


def control_flow():
    # At this learning rate the program is well conditioned: random relative errors of 2^-24 in
    # every operation move no value by more than 2e-6. At a rate of 0.1 they moved the last loss by
    # 2e-4, and PyTorch's own f32 was off by 6e-5.
    w, b = param(1, 1.3, 4, 4), param(2, 0.1, 4)
    opt = torch.optim.SGD([w, b], lr=0.03)
    out = []
    for step in range(8):
        h = torch.tanh(F.linear(data(10 + step, 4, 4) * (0.25 * (step + 1)), w, b))
        n = 0
        while (h * h).sum().item() > 1.0 and n < 6:
            h = torch.tanh(F.linear(h, w, b))
            n += 1
        loss = (h * h).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        out += [loss, n]
    emit("control_flow", out + [w.sum(), b.sum()])


def gradient_penalty():
    w1, b1, w2, b2 = param(3, 0.8, 8, 4), param(4, 0.1, 8), param(5, 0.8, 1, 8), param(6, 0.1, 1)
    ps = [w1, b1, w2, b2]
    opt = torch.optim.SGD(ps, lr=0.05)
    out = []
    for step in range(6):
        x = data(30 + step, 5, 4).requires_grad_()
        y = F.linear(torch.tanh(F.linear(x, w1, b1)), w2, b2)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        norm = (g * g).sum(1).sqrt()
        loss = y.mean() + 10 * ((norm - 1) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        out.append(loss)
    emit("gradient_penalty", out + [p.sum() for p in ps])


def gan():
    g = [param(7, 0.7, 4, 2), param(8, 0.1, 4), param(9, 0.7, 3, 4), param(10, 0.1, 3)]
    d = [param(11, 0.7, 8, 3), param(12, 0.1, 8), param(13, 0.7, 1, 8), param(14, 0.1, 1)]
    og, od = torch.optim.Adam(g, lr=0.02), torch.optim.Adam(d, lr=0.02)
    net = lambda p, x: F.linear(torch.tanh(F.linear(x, p[0], p[1])), p[2], p[3])
    bce = F.binary_cross_entropy_with_logits
    out = []
    for step in range(10):
        z, real = data(50 + step, 6, 2), data(80 + step, 6, 3)
        fake = net(g, z)
        yr, yf = net(d, real), net(d, fake.detach())
        dl = bce(yr, torch.ones_like(yr)) + bce(yf, torch.zeros_like(yf))
        od.zero_grad()
        dl.backward()
        od.step()
        yg = net(d, fake)
        gl = bce(yg, torch.ones_like(yg))
        og.zero_grad()
        gl.backward()
        og.step()
        out += [dl, gl]
    emit("gan", out + [p.sum() for p in g + d])


def accumulation():
    w, b = param(15, 0.8, 3, 5), param(16, 0.1, 3)
    opt = torch.optim.SGD([w, b], lr=0.1, momentum=0.9)
    out = []
    for step in range(5):
        opt.zero_grad()
        for micro in range(4):
            loss = (F.linear(data(100 + 4 * step + micro, 2, 5), w, b) ** 2).mean() * 0.25
            loss.backward()
            out.append(loss)
        opt.step()
    emit("accumulation", out + [w.sum(), b.sum()])


def truncated():
    wx, wh, b = param(17, 0.6, 6, 3), param(18, 0.6, 6, 6), param(19, 0.1, 6)
    opt = torch.optim.SGD([wx, wh, b], lr=0.05)
    h = torch.zeros(2, 6)
    out = []
    for step in range(8):
        h = h.detach()
        loss = 0
        for t in range(3):
            h = torch.tanh(F.linear(data(200 + 3 * step + t, 2, 3), wx, b) + F.linear(h, wh))
            loss = loss + ((h - 0.5) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        out.append(loss)
    emit("truncated", out + [wx.sum(), wh.sum(), b.sum()])


print("/* Made by programs.py; do not edit. */")
for f in (control_flow, gradient_penalty, gan, accumulation, truncated):
    f()
