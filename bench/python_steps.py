#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python_steps.py mlp|resnet50|op_chain [STEPS]: steps of `catena bench mlp` and `resnet50`, and
the chain of bench/op_chain.c, from Python. Prints one JSON line with the best time."""
import json
import sys
import time

import numpy as np

import catena as ct


class MLP(ct.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = ct.nn.Linear(784, 1000)
        self.fc2 = ct.nn.Linear(1000, 1000)
        self.fc3 = ct.nn.Linear(1000, 10)

    def forward(self, x):
        return self.fc3(ct.relu(self.fc2(ct.relu(self.fc1(x)))))


def best_of(step, steps):
    best = 1e9
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        best = min(best, time.perf_counter() - begin)
    return best


def training(net, opt, x, t, steps):
    def step():
        with ct.step():
            opt.backward(ct.softmax_cross_entropy(net(x), t))
            opt.step()

    return {"best_ms": best_of(step, steps + 5) * 1e3}


def mlp(steps):
    net = MLP()
    rng = np.random.default_rng(1)
    return training(net, ct.optim.Adam(net.parameters()),
                    rng.random((100, 784), np.float32), rng.integers(0, 10, 100), steps)


def resnet50(steps):
    net = ct.zoo.make("resnet50")
    rng = np.random.default_rng(1)
    opt = ct.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, decay=1e-4)
    return training(net, opt, rng.random((16, 3, 224, 224), np.float32),
                    rng.integers(0, 1000, 16), steps)


class One(ct.nn.Module):
    def __init__(self):
        super().__init__()
        self.v = ct.nn.parameter((16,), init="normal")


def op_chain(steps):
    ct.use_context(ct.Context(threads=1))
    one, record = One(), [1e9]
    opt = ct.optim.SGD(one.parameters())

    def step():
        begin = time.perf_counter()
        with ct.step():
            y = one.v
            for _ in range(250):
                y = y * 1.0001
                y = y + 0.001
                y = ct.tanh(y)
                y = ct.relu(y)
            record[0] = min(record[0], time.perf_counter() - begin)
            opt.backward(ct.mean(y))
            opt.step()

    whole = best_of(step, steps)
    return {"record_us_per_op": record[0] * 1e3, "us_per_op": whole * 1e3}


if __name__ == "__main__":
    given = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    print(json.dumps({"mlp": mlp, "resnet50": resnet50, "op_chain": op_chain}[sys.argv[1]](given)))
