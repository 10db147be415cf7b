#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of test_cifar.c, made by PyTorch: the losses of 100 training steps of ResNet-18,
and the logits of the published ResNet-20.

CATENA_DATA=... python3 cifar.py FOLDER > cifar.inc
Needs torch. FOLDER holds the .bin files of CIFAR-10. With --f64, prints the losses in f32 and in
f64 and their relative difference instead.
"""
import json
import os
import struct
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from hashed import emit, fill
from resnet import Basic, ResNet

STEPS, BATCH, RATE, IMAGES = 100, 32, 0.002, 1000
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
torch.set_num_threads(2)


def load(path, n):
    a = np.fromfile(path, np.uint8, n * 3073).reshape(n, 3073)
    x = a[:, 1:].reshape(n, 3, 32, 32).astype(np.float32) / np.float32(255)
    mean, std = (np.array(v, np.float32).reshape(3, 1, 1) for v in (MEAN, STD))
    return torch.from_numpy((x - mean) / std), torch.from_numpy(a[:, 0].astype(np.int64))


def train(dtype):
    net = ResNet(Basic, [2, 2, 2, 2], 10)
    fill(net, "bn2.weight")
    net.to(dtype)
    opt = torch.optim.SGD(net.parameters(), lr=RATE)
    x, t = load(os.path.join(sys.argv[1], "data_batch_1.bin"), STEPS * BATCH)
    losses = []
    for s in range(0, STEPS * BATCH, BATCH):
        loss = F.cross_entropy(net(x[s : s + BATCH].to(dtype)), t[s : s + BATCH])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.pad, self.stride = (cout - cin) // 2, stride

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        x = x[:, :, :: self.stride, :: self.stride]
        return F.relu(y + F.pad(x, (0, 0, 0, 0, self.pad, self.pad)))


class Cifar(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        cin = 16
        for s, c in enumerate((16, 32, 64)):
            layer = nn.Sequential()
            for i in range(n):
                layer.append(Block(cin, c, 2 if s > 0 and i == 0 else 1))
                cin = c
            setattr(self, f"layer{s + 1}", layer)
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(F.relu(self.bn1(self.conv1(x))))))
        return self.linear(x.mean((2, 3)))


def published(path):
    with open(path, "rb") as f:
        head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    head.pop("__metadata__", None)
    part = lambda h: np.frombuffer(data[slice(*h["data_offsets"])], np.float32).reshape(h["shape"])
    return {name: torch.from_numpy(part(h).copy()) for name, h in head.items()}


def logits():
    net = Cifar(3)
    weights = "weights/cifar10-resnet/resnet20-12fca82f.safetensors"
    state = published(os.path.join(os.environ["CATENA_DATA"], weights))
    missing, unexpected = net.load_state_dict(state, strict=False)
    assert not unexpected and all(m.endswith("num_batches_tracked") for m in missing)
    net.double().eval()
    x, t = load(os.path.join(sys.argv[1], "test_batch.bin"), IMAGES)
    with torch.no_grad():
        y = net(x.double())
    return y.numpy(), int((y.argmax(1) == t).sum())


if "--f64" in sys.argv:
    for step, (a, b) in enumerate(zip(train(torch.float32), train(torch.float64))):
        print(step, a, b, f"{abs(a - b) / b:.1e}")
    sys.exit()
y, right = logits()
print("/* Made by cifar.py; do not edit. */")
emit("losses", train(torch.float32))
print(f"enum {{ RIGHT = {right} }}; /* of the first {IMAGES} test images */")
print(f"static const int logits[{IMAGES}][10] = {{ /* in 1e-5 */")
for row in y:
    print("    {" + ",".join(f"{round(v * 1e5)}" for v in row) + "},")
print("};")
