#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mlp_chainer.py STEPS: training steps of an MLP 784-1000-1000-10 with batch 100 and Adam by
Chainer. Prints one JSON line with the best of five means. Run by dev/bench."""
import json
import sys
import time

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np


def main():
    steps = int(sys.argv[1])
    body = chainer.Sequential(L.Linear(784, 1000), F.relu, L.Linear(1000, 1000), F.relu,
                              L.Linear(1000, 10))
    net = L.Classifier(body)
    optim = chainer.optimizers.Adam()
    optim.setup(net)
    x = np.random.rand(100, 784).astype(np.float32)
    t = np.random.randint(0, 10, 100).astype(np.int32)

    def train(n):
        begin = time.perf_counter()
        for _ in range(n):
            optim.update(net, x, t)
        return (time.perf_counter() - begin) / n * 1e3
    train(5)
    print(json.dumps({"best_ms": min(train(steps) for _ in range(5))}))


if __name__ == "__main__":
    main()
