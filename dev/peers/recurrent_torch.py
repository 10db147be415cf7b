#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""recurrent_torch.py lstm|gru STEPS THREADS: forward and backward passes of a recurrent network of
2 layers x 512, 32 samples x 100 steps, by PyTorch. Prints one JSON line: the best wall and CPU time
of a step, and the loss and the norms of the gradients, to compare with bench/recurrent.c, which has
the same weights and inputs. Run by dev/bench."""
import json
import sys
import time

import numpy as np
import torch
from torch import nn

T, N, H, LAYERS = 100, 32, 512, 2


def value(k, shape):
    i = np.arange(int(np.prod(shape)), dtype=np.int64)
    v = ((i * 7919 + k * 104729) % 10007).astype(np.float32) / np.float32(10007) - np.float32(0.5)
    return torch.from_numpy(v.reshape(shape))


def main():
    kind, steps, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    net = (nn.LSTM if kind == "lstm" else nn.GRU)(H, H, LAYERS)
    with torch.no_grad():
        for k, p in enumerate(net.parameters()):
            p.copy_(value(k, tuple(p.shape)) * np.float32(2 / np.sqrt(np.float32(H))))
    x = value(100, (T, N, H))

    def step():
        net.zero_grad(set_to_none=True)
        loss = net(x)[0].square().mean()
        loss.backward()
        return loss

    loss = step().item()
    norms = [p.grad.double().norm().item() for p in net.parameters()]
    wall = cpu = 1e30
    for _ in range(steps):
        w, c = time.perf_counter(), time.process_time()
        step()
        wall = min(wall, time.perf_counter() - w)
        cpu = min(cpu, time.process_time() - c)
    print(json.dumps({"loss": loss, "norms": norms, "best_ms": wall * 1e3,
                      "best_cpu_ms": cpu * 1e3}))


if __name__ == "__main__":
    main()
