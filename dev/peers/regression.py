#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch on the regression problems of dev/bench: regression.py FOLDER THREADS.

Writes mlp-x.npy, mlp-y.npy, unet-x.npy and unet-y.npy (training) and the same with -test, in f64
and in units far from 1, with noise in the targets. If h5py is installed, writes all of them into
data.h5, too. Trains the networks of `catena train mlp` and `unet` on standardised values, and
prints the root mean square error on the test samples as JSON, in standard deviations of the
targets."""
import json
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

FOLDER, THREADS = Path(sys.argv[1]), int(sys.argv[2])
EPOCHS = {"mlp": 60, "unet": 30}
torch.set_num_threads(THREADS)
torch.manual_seed(1)
rng = np.random.default_rng(1)


def points(n):
    x = rng.normal(size=(n, 6))
    y = np.stack([np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2], np.tanh(x[:, 3]) - x[:, 4] ** 2 / 2], 1)
    y += 0.2 * rng.normal(size=y.shape)
    return x * [1, 10, 100, 1e3, 1e-3, 5] + [0, 5, -300, 1e4, 2, 0], y * [40, 1e-3] + [1e5, 0.3]


def fields(n):
    """Temperatures, and the heat flow after some steps of diffusion."""
    x = rng.normal(size=(n, 1, 32, 32))
    for _ in range(8):
        x = (x + sum(np.roll(x, s, a) for s in (1, -1) for a in (2, 3))) / 5
    x /= x.std()
    y = x
    for _ in range(4):
        y = y + 0.2 * (sum(np.roll(y, s, a) for s in (1, -1) for a in (2, 3)) - 4 * y)
    y = np.tanh(y) * y + 0.1 * rng.normal(size=y.shape)
    return 300 + 25 * x, 1e5 * y - 3e4


class Stage(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(i, outputs, 3, padding=1, bias=False)
                                  for i in (inputs, outputs))
        self.bn1, self.bn2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)

    def forward(self, x):
        return torch.relu(self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x))))))


class UNet(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        c = [width << i for i in range(depth + 1)]
        self.enc = nn.ModuleList(Stage(c[i - 1] if i else 1, c[i]) for i in range(depth + 1))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * k, k, 2, 2) for k in c[-2::-1])
        self.dec = nn.ModuleList(Stage(2 * k, k) for k in c[-2::-1])
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        kept = []
        for stage in self.enc[:-1]:
            kept.append(stage(x))
            x = nn.functional.max_pool2d(kept[-1], 2)
        x = self.enc[-1](x)
        for up, dec in zip(self.up, self.dec):
            x = dec(torch.cat([kept.pop(), up(x)], 1))
        return self.head(x)


def moments(a):
    axes = (0,) + tuple(range(2, a.ndim))
    return a.mean(axes, keepdims=True), a.std(axes, keepdims=True)


def train(net, data, test, epochs, batch):
    (mx, sx), (my, sy) = map(moments, data)
    x, y = (torch.tensor((a - m) / s, dtype=torch.float32)
            for a, (m, s) in zip(data, ((mx, sx), (my, sy))))
    steps = epochs * -(-len(x) // batch)
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(epochs):
        for part in torch.randperm(len(x)).split(batch):
            optimizer.zero_grad()
            nn.functional.mse_loss(net(x[part]), y[part]).backward()
            optimizer.step()
            schedule.step()
    net.eval()
    with torch.no_grad():
        found = net(torch.tensor((test[0] - mx) / sx, dtype=torch.float32)).numpy() * sy + my
    return float(np.sqrt(np.mean(((found - test[1]) / sy) ** 2)))


mlp = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
problems = {"mlp": (mlp, points, 4096, 1024, 32), "unet": (UNet(8, 2), fields, 512, 128, 16)}
result, arrays = {}, {}
for name, (net, make, n, tests, batch) in problems.items():
    data, test = make(n), make(tests)
    for which, pair in (("", data), ("-test", test)):
        for letter, a in zip("xy", pair):
            arrays[f"{name}-{letter}{which}"] = a
            np.save(FOLDER / f"{name}-{letter}{which}.npy", a)
    result[name] = train(net, data, test, EPOCHS[name], batch)
try:
    import h5py
    with h5py.File(FOLDER / "data.h5", "w") as f:
        for name, a in arrays.items():
            f[name] = a
    result["h5"] = True
except ImportError:
    result["h5"] = False
print(json.dumps(result))
