# SPDX-License-Identifier: Apache-2.0
"""gpt2_torch.py BATCH LENGTH eager|compiled [THREADS]: the training step of GPT-2 with 124 million
parameters in PyTorch, AdamW, f32. Prints one JSON line."""
import json
import resource
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

WIDTH, LAYERS, HEADS, WORDS = 768, 12, 12, 50257


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.c_fc, self.c_out = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = (y.view(n, t, HEADS, -1).transpose(1, 2)
                   for y in self.c_attn(self.ln_1(x)).split(WIDTH, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).reshape(n, t, WIDTH))
        return x + self.c_out(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(WORDS, WIDTH), nn.Embedding(1024, WIDTH)
        self.h = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.ln_f = nn.LayerNorm(WIDTH)

    def logits(self, x):
        y = self.wte(x) + self.wpe.weight[:x.shape[1]]
        for layer in self.h:
            y = layer(y)
        return self.ln_f(y) @ self.wte.weight.t()

    def forward(self, x, t):
        return F.cross_entropy(self.logits(x).view(-1, WORDS), t.view(-1))


def main():
    batch, length, mode = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(int(sys.argv[4]) if len(sys.argv) > 4 else 2)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    net = GPT()
    forward = torch.compile(net) if mode == "compiled" else net
    optimizer = torch.optim.AdamW(net.parameters(), 1e-4, fused=True)
    x, t = (torch.randint(0, WORDS, (batch, length)) for _ in range(2))
    best = 1e9
    for _ in range(5):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        forward(x, t).backward()
        optimizer.step()
        best = min(best, time.perf_counter() - start)
    print(json.dumps({"best_ms": best * 1e3,
                      "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


if __name__ == "__main__":
    main()
