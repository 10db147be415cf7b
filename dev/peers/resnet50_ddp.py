#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""resnet50_ddp.py BATCH STEPS: ResNet-50 training steps with PyTorch's DistributedDataParallel.

Uses Gloo, channels-last and one thread per rank. Started by mpirun on the hosts of dev/cluster.
Rank 0 prints the median and the best time of a step. Used by dev/bench overlap."""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn


class Block(nn.Module):
    def __init__(self, c, width, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(c, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))
        self.side = nn.Sequential() if stride == 1 and c == 4 * width else nn.Sequential(
            nn.Conv2d(c, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        return torch.relu(self.body(x) + self.side(x))


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
              nn.MaxPool2d(3, 2, 1)]
    c = 64
    for i, n in enumerate((3, 4, 6, 3)):
        for k in range(n):
            layers.append(Block(c, 64 << i, 2 if k == 0 and i > 0 else 1))
            c = 256 << i
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, 1000))


def main():
    batch, steps = int(sys.argv[1]), int(sys.argv[2])
    rank, size = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
    os.environ.setdefault("MASTER_ADDR", "node1")
    os.environ.setdefault("MASTER_PORT", "29517")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "eth0")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", rank=rank, world_size=size)
    net = nn.parallel.DistributedDataParallel(resnet50().to(memory_format=torch.channels_last))
    optim = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, foreach=True)
    x = torch.rand(batch, 3, 224, 224).to(memory_format=torch.channels_last)
    t = torch.randint(0, 1000, (batch,))
    times = []
    for _ in range(steps + 2):
        begin = time.perf_counter()
        optim.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(net(x), t).backward()
        optim.step()
        times.append(time.perf_counter() - begin)
    if rank == 0:
        median, best = statistics.median(times[2:]), min(times[2:])
        print(f"step {1e3 * median:.1f} ms, best {1e3 * best:.1f} ms")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
