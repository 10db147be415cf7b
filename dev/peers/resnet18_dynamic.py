#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""resnet18_dynamic.py BATCH SIZE STEPS THREADS: PyTorch eager on the same sequence of shapes as
`catena bench resnet18 --dynamic`.

Prints the total time of all steps in seconds and the peak resident memory. Run by dev/bench."""
import resource
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "golden"))
from resnet import Basic, ResNet  # noqa: E402

batch, size, steps, threads = map(int, sys.argv[1:5])
torch.set_num_threads(threads)
torch.set_flush_denormal(True)
net = ResNet(Basic, [2, 2, 2, 2]).to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, weight_decay=1e-4, fused=True)
images = torch.rand(batch * 3 * size * size)
labels = torch.randint(0, 1000, (batch,))
state = 1


def uniform():
    global state
    state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
    return (state >> 40) * 2.0**-24


start = time.time()
for _ in range(steps):
    b = 1 + int(uniform() * batch)
    n = size - 32 * int(uniform() * 5)
    x = images[: b * 3 * n * n].reshape(b, 3, n, n).contiguous(memory_format=torch.channels_last)
    optimizer.zero_grad(set_to_none=True)
    F.cross_entropy(net(x), labels[:b]).backward()
    optimizer.step()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
print(f"dynamic: {time.time() - start:.2f} s; maxrss {peak:.2f} GB")
