#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""inference_onnx.py MODEL.onnx onnxruntime|torch STEPS THREADS DIMENSIONS...: the best time of a
forward pass of an exported model by ONNX Runtime, or of the same ResNet-50 or GPT-2 in PyTorch
(untrained, eager). Prints one JSON line. Run by dev/bench."""
import json
import sys
import time

import numpy as np

path, engine, steps, threads, *dims = sys.argv[1:]
steps, threads, dims = int(steps), int(threads), [int(d) for d in dims]
tokens = len(dims) == 2
x = (np.arange(np.prod(dims)).reshape(dims) % 1000 if tokens else
     np.random.default_rng(1).standard_normal(dims, dtype=np.float32))


def onnxruntime_call():
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: x}
    return lambda: session.run(None, feed)


def gpt2():
    """GPT-2 of 124 million parameters, with the logits of all tokens."""
    import torch
    from torch import nn
    from torch.nn.functional import scaled_dot_product_attention as attention
    width, heads, layers, words = 768, 12, 12, 50257

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.gelu = nn.GELU("tanh")

        def forward(self, x):
            n, length, _ = x.shape
            q, k, v = (h.view(n, length, heads, -1).transpose(1, 2)
                       for h in self.qkv(self.ln1(x)).split(width, dim=2))
            y = attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, length, width)
            x = x + self.out(y)
            return x + self.down(self.gelu(self.up(self.ln2(x))))

    class GPT2(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(1024, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm = nn.LayerNorm(width)

        def forward(self, x):
            h = self.words(x) + self.places(torch.arange(x.shape[1]))
            for block in self.blocks:
                h = block(h)
            return self.norm(h) @ self.words.weight.T
    return GPT2()


def torch_call():
    import torch
    from resnet50_ddp import resnet50
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    net = (gpt2() if tokens else resnet50()).eval()
    given = torch.from_numpy(x)

    def run():
        with torch.inference_mode():
            return net(given)
    return run


call = onnxruntime_call() if engine == "onnxruntime" else torch_call()
for _ in range(2):
    call()
best = float("inf")
for _ in range(steps):
    start = time.perf_counter()
    call()
    best = min(best, time.perf_counter() - start)
print(json.dumps({"best_ms": best * 1e3}))
