#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""resnet50_step.py MODE BATCH STEPS THREADS: training steps of ResNet-50 by PyTorch on one process.

MODE is f32 or bf16, then any of -rows (activations not channels-last) and -compiled. Prints one
JSON line: the best step, the first one, and the peak resident memory. Run by dev/bench."""
import json
import resource
import sys
import time

import torch
from torch.nn.functional import cross_entropy

from resnet50_ddp import resnet50


def main():
    words = sys.argv[1].split("-")
    batch, steps, threads = map(int, sys.argv[2:5])
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    layout = torch.contiguous_format if "rows" in words else torch.channels_last
    net = resnet50().to(memory_format=layout)
    x = torch.randn(batch, 3, 224, 224).to(memory_format=layout)
    t = torch.randint(0, 1000, (batch,))
    optim = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, weight_decay=1e-4, fused=True)

    def loss():
        with torch.autocast("cpu", torch.bfloat16, enabled="bf16" in words):
            return cross_entropy(net(x), t)
    if "compiled" in words:
        loss = torch.compile(loss)
    times = []
    for _ in range(steps + 2):
        begin = time.perf_counter()
        optim.zero_grad(set_to_none=True)
        loss().backward()
        optim.step()
        times.append(time.perf_counter() - begin)
    print(json.dumps({"best_ms": 1e3 * min(times[2:]), "first_s": times[0],
                      "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


if __name__ == "__main__":
    main()
