#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of tests/golden/test_programs.c in Python: the same results to the bit, planned and
eager."""
import os
import subprocess
import tempfile
import unittest

import numpy as np

import catena as ct


def value(seed, scale, *shape):
    i = np.arange(int(np.prod(shape)))
    x = scale * (((i * 37 + seed * 101) * 7919) % 257 - 128).astype(np.float64) / 128
    return x.astype(np.float32).reshape(shape)


class Params(ct.nn.Module):
    """A module with one parameter for each (seed, scale, shape)."""

    def __init__(self, *wanted):
        super().__init__()
        self.all = []
        for seed, scale, *shape in wanted:
            setattr(self, f"p{seed}", ct.nn.parameter(shape))
            p = getattr(self, f"p{seed}")
            p.data = value(seed, scale, *shape)
            self.all.append(p)


def totals(params):
    return [float(np.sum(p.numpy().reshape(-1), dtype=np.float64)) for p in params]


def control_flow():
    w, b = (m := Params((1, 1.3, 4, 4), (2, 0.1, 4))).all
    opt = ct.optim.SGD(m.parameters(), lr=0.03)
    out = []
    for step in range(8):
        with ct.step():
            h = ct.tanh(ct.linear(value(10 + step, 0.25 * (step + 1), 4, 4), w, b))
            n = 0
            while (h * h).sum().item() > 1.0 and n < 6:
                h = ct.tanh(ct.linear(h, w, b))
                n += 1
            loss = (h * h).sum()
            opt.backward(loss)
            opt.step()
            out += [loss.item(), n]
    return out + totals(m.all)


def net(p, x):
    return ct.linear(ct.tanh(ct.linear(x, p[0], p[1])), p[2], p[3])


def gradient_penalty():
    m = Params((3, 0.8, 8, 4), (4, 0.1, 8), (5, 0.8, 1, 8), (6, 0.1, 1))
    opt = ct.optim.SGD(m.parameters(), lr=0.05)
    out = []
    for step in range(6):
        with ct.step():
            x = ct.Tensor(value(30 + step, 1, 5, 4)).with_grad()
            y = net(m.all, x)
            (g,) = ct.grad(y.sum(), [x])
            off = (g * g).sum(1).sqrt() - 1
            loss = y.sum() * (1.0 / 5) + (off * off).sum() * (10.0 / 5)
            opt.backward(loss)
            opt.step()
            out.append(loss.item())
    return out + totals(m.all)


def bce(y, target):
    return ct.sigmoid_cross_entropy(y, ct.full(target, shape=(6, 1)))


def gan():
    g = Params((7, 0.7, 4, 2), (8, 0.1, 4), (9, 0.7, 3, 4), (10, 0.1, 3))
    d = Params((11, 0.7, 8, 3), (12, 0.1, 8), (13, 0.7, 1, 8), (14, 0.1, 1))
    of_g, of_d = (ct.optim.Adam(m.parameters(), lr=0.02) for m in (g, d))
    out = []
    for step in range(10):
        with ct.step():
            z, real = value(50 + step, 1, 6, 2), value(80 + step, 1, 6, 3)
            fake = net(g.all, z).keep_graph()
            loss_d = bce(net(d.all, real), 1) + bce(net(d.all, fake.detach()), 0)
            of_d.backward(loss_d)
            of_d.step()
            loss_g = bce(net(d.all, fake), 1)
            of_g.backward(loss_g)
            of_g.step()
            out += [loss_d.item(), loss_g.item()]
    return out + totals(g.all + d.all)


def accumulation():
    m = Params((15, 0.8, 3, 5), (16, 0.1, 3))
    opt = ct.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
    out = []
    for step in range(5):
        for micro in range(4):
            with ct.step():
                y = ct.linear(value(100 + 4 * step + micro, 1, 2, 5), *m.all)
                loss = (y * y).sum() * (0.25 / 6)
                opt.backward(loss)
                if micro == 3:
                    opt.step()
                out.append(loss.item())
    return out + totals(m.all)


def truncated():
    u, w, b = (m := Params((17, 0.6, 6, 3), (18, 0.6, 6, 6), (19, 0.1, 6))).all
    opt = ct.optim.SGD(m.parameters(), lr=0.05)
    state, out = None, []
    for step in range(8):
        with ct.step():
            h = ct.retained_value(state) if state else ct.full(0, shape=(2, 6))
            loss = None
            for t in range(3):
                x = value(200 + 3 * step + t, 1, 2, 3)
                h = ct.tanh(ct.linear(x, u, b) + ct.linear(h, w))
                off = h - 0.5
                one = (off * off).sum() * (1.0 / 12)
                loss = one if loss is None else loss + one
            opt.backward(loss)
            state = ct.retain(h, state)
            opt.step()
            out.append(loss.item())
    return out + totals(m.all)


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if "CATENA_BUILD" not in os.environ:
            raise unittest.SkipTest("CATENA_BUILD names no build with tests")
        program = os.path.join(os.environ["CATENA_BUILD"], "tests", "golden", "test_programs")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "results")
            subprocess.run([program], check=True, capture_output=True,
                           env={**os.environ, "CATENA_PROGRAMS_OUT": path})
            with open(path, encoding="ascii") as file:
                rows = [line.split() for line in file]
        cls.expected = {}
        for name, _, number in rows:  # planned, then eager
            cls.expected.setdefault(name, []).append(float.fromhex(number))

    def compare(self, program):
        expected = self.expected[program.__name__]
        half = len(expected) // 2
        for eager, want in ((False, expected[:half]), (True, expected[half:])):
            before = ct.current_context()
            ct.use_context(ct.Context(eager=eager))
            try:
                self.assertEqual([float(x) for x in program()], want)
            finally:
                ct.use_context(before)

    def test_control_flow(self):
        self.compare(control_flow)

    def test_gradient_penalty(self):
        self.compare(gradient_penalty)

    def test_gan(self):
        self.compare(gan)

    def test_accumulation(self):
        self.compare(accumulation)

    def test_truncated(self):
        self.compare(truncated)


if __name__ == "__main__":
    unittest.main()
