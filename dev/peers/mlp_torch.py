#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mlp_torch.py plain|fused|compiled STEPS THREADS: training steps of an MLP 784-1000-1000-10 with
batch 100 and Adam by PyTorch. fused: its fused Adam; compiled: that and torch.compile. Prints one
JSON line with the best of seven means. Run by dev/bench."""
import json
import sys
import time

import torch
from torch import nn
from torch.nn.functional import cross_entropy


def main():
    mode, steps, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    net = nn.Sequential(nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, 1000), nn.ReLU(),
                        nn.Linear(1000, 10))
    optim = torch.optim.Adam(net.parameters(), 1e-3, fused=mode != "plain")
    x, t = torch.rand(100, 784), torch.randint(0, 10, (100,))

    def loss():
        return cross_entropy(net(x), t)
    if mode == "compiled":
        loss = torch.compile(loss)

    def train(n):
        begin = time.perf_counter()
        for _ in range(n):
            optim.zero_grad(set_to_none=True)
            loss().backward()
            optim.step()
        return (time.perf_counter() - begin) / n * 1e3
    train(20)
    print(json.dumps({"best_ms": min(train(steps) for _ in range(7))}))


if __name__ == "__main__":
    main()
