#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""op_chain_torch.py: the chain of bench/op_chain.c in PyTorch, eager with autograd, on one thread.
Prints one JSON line with the best time per op."""
import json
import time

import torch

torch.set_num_threads(1)
v = torch.linspace(0, 1.5, 16, requires_grad=True)
opt = torch.optim.SGD([v], lr=0.01)
best = 1e9
for _ in range(100):
    begin = time.perf_counter()
    y = v
    for _ in range(250):
        y = y * 1.0001
        y = y + 0.001
        y = torch.tanh(y)
        y = torch.relu(y)
    y.mean().backward()
    opt.step()
    opt.zero_grad()
    best = min(best, time.perf_counter() - begin)
print(json.dumps({"us_per_op": best * 1e3}))
