#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fno_torch.py STEPS THREADS: training steps of a 2-D Fourier neural operator by PyTorch, with
torch.fft and einsum as the original has them: 8 fields of 128 x 128, 12 modes, width 32, 4 layers,
Adam. Prints one JSON line: the best wall and CPU time of a step, and the losses of the first steps,
to compare with bench/fno.c, which has the same weights and inputs. Run by dev/bench."""
import json
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn.functional import gelu, mse_loss

N, SIZE, WIDTH, MODES, LAYERS, HIDDEN = 8, 128, 32, 12, 4, 128


def value(k, shape):
    i = np.arange(int(np.prod(shape)), dtype=np.int64)
    v = ((i * 7919 + k * 104729) % 10007).astype(np.float32) / np.float32(10007) - np.float32(0.5)
    return torch.from_numpy(v.reshape(shape))


class SpectralConv2d(nn.Module):
    def __init__(self):
        super().__init__()
        shape = (WIDTH, WIDTH, MODES, MODES)
        self.weights1, self.weights2 = (nn.Parameter(torch.zeros(shape, dtype=torch.cfloat))
                                        for _ in range(2))

    def forward(self, x):
        found = torch.fft.rfft2(x)
        y = torch.zeros(len(x), WIDTH, x.size(-2), x.size(-1) // 2 + 1, dtype=torch.cfloat)
        y[:, :, :MODES, :MODES] = torch.einsum("bixy,ioxy->boxy", found[:, :, :MODES, :MODES],
                                               self.weights1)
        y[:, :, -MODES:, :MODES] = torch.einsum("bixy,ioxy->boxy", found[:, :, -MODES:, :MODES],
                                                self.weights2)
        return torch.fft.irfft2(y, s=(x.size(-2), x.size(-1)))


class FNO2d(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc0 = nn.Linear(3, WIDTH)
        for i in range(LAYERS):
            setattr(self, f"conv{i}", SpectralConv2d())
        for i in range(LAYERS):
            setattr(self, f"w{i}", nn.Conv2d(WIDTH, WIDTH, 1))
        self.fc1, self.fc2 = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, 1)

    def forward(self, x):  # (N,H,W,C)
        side = torch.linspace(0, 1, SIZE)
        grid = torch.stack(torch.meshgrid(side, side, indexing="ij"), -1)
        x = self.fc0(torch.cat([x, grid.expand(len(x), -1, -1, -1)], -1)).permute(0, 3, 1, 2)
        for i in range(LAYERS):
            x = getattr(self, f"conv{i}")(x) + getattr(self, f"w{i}")(x)
            x = gelu(x) if i < LAYERS - 1 else x
        return self.fc2(gelu(self.fc1(x.permute(0, 2, 3, 1))))


def main():
    steps, threads = int(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    net = FNO2d()
    with torch.no_grad():
        for name, p in net.named_parameters():
            flat = torch.view_as_real(p) if p.is_complex() else p
            scale = 2 / WIDTH if p.is_complex() else 0.5
            flat.copy_(value(sum(name.encode()), tuple(flat.shape)) * np.float32(scale))
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    x, t = value(1, (N, SIZE, SIZE, 1)), value(2, (N, SIZE, SIZE, 1))

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = mse_loss(net(x), t)
        loss.backward()
        optimizer.step()
        return loss.item()

    losses = [step() for _ in range(3)]
    wall = cpu = 1e30
    for _ in range(steps):
        w, c = time.perf_counter(), time.process_time()
        step()
        wall = min(wall, time.perf_counter() - w)
        cpu = min(cpu, time.process_time() - c)
    print(json.dumps({"losses": losses, "best_ms": wall * 1e3, "best_cpu_ms": cpu * 1e3}))


if __name__ == "__main__":
    main()
