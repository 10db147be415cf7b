#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden losses of test_gpt.c, made by PyTorch in f32: a small GPT on the characters of
tinyshakespeare, 100 steps of AdamW.

CATENA_DATA=... python3 gpt.py > gpt.inc
Needs torch. With --f64, prints the losses in f32 and in f64 and their relative difference instead.
"""
import os
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from hashed import bits, emit, fill

STEPS, BATCH, T, C, HEADS, LAYERS, RATE = 100, 8, 128, 128, 4, 4, 3e-4
torch.set_num_threads(2)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(C, 3 * C)
        self.c_proj = nn.Linear(C, C)

    def forward(self, x):
        heads = lambda v: v.reshape(BATCH, T, HEADS, C // HEADS).transpose(1, 2)
        q, k, v = map(heads, self.c_attn(x).split(C, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(BATCH, T, C))


class Feed(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc = nn.Linear(C, 4 * C)
        self.c_proj = nn.Linear(4 * C, C)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(C)
        self.attn = Attention()
        self.ln_2 = nn.LayerNorm(C)
        self.mlp = Feed()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """Uses the parameter names of GPT-2. The output layer is tied to the embedding."""

    def __init__(self, vocabulary):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, C)
        self.wpe = nn.Embedding(T, C)
        self.h = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.ln_f = nn.LayerNorm(C)

    def forward(self, x):
        return F.linear(self.ln_f(self.h(self.wte(x) + self.wpe.weight)), self.wte.weight)


def train(dtype):
    with open(os.path.join(os.environ["CATENA_DATA"], "tinyshakespeare/input.txt"), "rb") as f:
        text = np.frombuffer(f.read(), np.uint8)
    chars, text = np.unique(text, return_inverse=True)
    net = GPT(len(chars))
    fill(net)
    net.to(dtype)
    opt = torch.optim.AdamW(net.parameters(), lr=RATE)
    start = (bits("batches", STEPS * BATCH) % np.uint64(len(text) - T)).astype(np.int64)
    losses = []
    for step in range(STEPS):
        rows = [text[i : i + T + 1] for i in start[step * BATCH : (step + 1) * BATCH]]
        rows = torch.from_numpy(np.stack(rows).astype(np.int64))
        loss = F.cross_entropy(net(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


if "--f64" in sys.argv:
    for step, (a, b) in enumerate(zip(train(torch.float32), train(torch.float64))):
        print(step, a, b, f"{abs(a - b) / b:.1e}")
    sys.exit()
print("/* Made by gpt.py; do not edit. */")
emit("losses", train(torch.float32))
