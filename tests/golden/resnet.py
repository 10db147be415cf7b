#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden gradients of test_resnet.c, made by PyTorch: one backward pass of ResNet-50 with batch
size 4 and images of 96 pixels.

python3 resnet.py > resnet.inc   (needs torch)

hashed.py makes the weights and images. For each gradient in f64, the script prints its norm and its
dot products with 8 random directions of unit variance. The root mean square of the differences
between these products and those of another gradient estimates the norm of the difference of the two
gradients. The script also prints the errors of PyTorch's own f32 and bf16 (autocast) gradients.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from hashed import bits, emit, fill, uniform

BATCH, SIZE, DIRECTIONS = 4, 96, 8
torch.set_num_threads(2)


class Basic(nn.Module):
    out = 1

    def __init__(self, cin, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = shortcut(cin, width, stride)

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (self.downsample(x) if self.downsample else x))


class Bottleneck(nn.Module):
    out = 4

    def __init__(self, cin, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = shortcut(cin, 4 * width, stride)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn3(self.conv3(F.relu(self.bn2(self.conv2(y)))))
        return F.relu(y + (self.downsample(x) if self.downsample else x))


def shortcut(cin, cout, stride):
    if stride == 1 and cin == cout:
        return None
    return nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))


class ResNet(nn.Module):
    """Uses the parameter names of torchvision."""

    def __init__(self, block, blocks, classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        cin = 64
        for s, n in enumerate(blocks):
            layer = nn.Sequential()
            for i in range(n):
                layer.append(block(cin, 64 << s, 2 if s > 0 and i == 0 else 1))
                cin = block.out * (64 << s)
            setattr(self, f"layer{s + 1}", layer)
        self.fc = nn.Linear(cin, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def lift(net):
    """Gives every normalisation small scales and large biases, so that few values come near the
    kink of a ReLU. Values that change sign there would hide the errors of f32. Half of the channels
    inside of a block are off."""
    with torch.no_grad():
        for name, p in net.named_parameters():
            if p.ndim > 1 or name.startswith("fc."):
                continue
            inner = name.startswith("layer") and ("bn1" in name or "bn2" in name)
            if name.endswith("weight"):
                p.mul_(0.3)
            else:
                odd = torch.arange(p.numel()) % 2 == 1
                p.add_(torch.where(odd & inner, -1.0, 1.0))


def gradients(dtype, autocast=False, lifted=False):
    net = ResNet(Bottleneck, [3, 4, 6, 3])
    fill(net, "" if lifted else "bn3.weight")
    if lifted:
        lift(net)
    net.to(dtype)
    n = BATCH * 3 * SIZE * SIZE
    x = torch.from_numpy((uniform("images", n) * np.sqrt(3.0)).astype(np.float32)).to(dtype)
    t = torch.from_numpy((bits("labels", BATCH) % np.uint64(1000)).astype(np.int64))
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        y = net(x.reshape(BATCH, 3, SIZE, SIZE))
    loss = F.cross_entropy(y.to(torch.float64 if dtype == torch.float64 else torch.float32), t)
    loss.backward()
    grads = {name: p.grad.double().numpy().ravel() for name, p in net.named_parameters()}
    return loss.item(), grads


def products(name, g):
    return np.array([g @ uniform(f"{name}#{j}", g.size) for j in range(DIRECTIONS)]) * np.sqrt(3.0)


def main():
    loss, exact = gradients(torch.float64)
    loss32, f32 = gradients(torch.float32)
    loss16, bf16 = gradients(torch.float32, autocast=True)
    print("/* Made by resnet.py; do not edit. */")
    emit("losses", [loss, loss32, loss16])
    print("static const struct {\n    const char *name;\n    double norm, f32, bf16, product[8];")
    print("} golden[] = {")
    for name, g in exact.items():
        norm, p = np.linalg.norm(g), products(name, g)
        error = lambda other: np.sqrt(np.mean((products(name, other[name]) - p) ** 2)) / norm
        numbers = ", ".join(f"{v:.9e}" for v in p)
        print(f'    {{"{name}", {norm:.9e}, {error(f32):.2e}, {error(bf16):.2e},')
        print(f"     {{{numbers}}}}},")
    print("};")
    loss, exact = gradients(torch.float64, lifted=True)
    loss32, f32 = gradients(torch.float32, lifted=True)
    emit("lifted_losses", [loss, loss32])
    print("static const struct {\n    double norm, f32, product[8];\n} lifted[] = {")
    for name, g in exact.items():
        norm, p = np.linalg.norm(g), products(name, g)
        error = np.sqrt(np.mean((products(name, f32[name]) - p) ** 2)) / norm
        print(f'    {{{norm:.9e}, {error:.2e},\n     {{{", ".join(f"{v:.9e}" for v in p)}}}}},')
    print("};")


if __name__ == "__main__":
    main()
