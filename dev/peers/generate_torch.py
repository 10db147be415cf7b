# SPDX-License-Identifier: Apache-2.0
"""generate_torch.py TOKENS PROMPT [THREADS]: GPT-2 with 124 million parameters and random weights
continues a prompt with its cache, in PyTorch with the package transformers, f32. Prints one JSON
line."""
import json
import sys
import time

import torch
import transformers

tokens, prompt = int(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(int(sys.argv[3]) if len(sys.argv) > 3 else 2)
torch.set_flush_denormal(True)
torch.manual_seed(1)
net = transformers.GPT2LMHeadModel(transformers.GPT2Config()).eval()
x = torch.tensor([[i * 7919 % 50257 for i in range(prompt)]])
best = 1e9
with torch.inference_mode():
    for _ in range(2):
        done = net(x, use_cache=True)
        for i in range(tokens):
            if i == 2:
                start = time.perf_counter()
            done = net(done.logits[:, -1:].argmax(-1), past_key_values=done.past_key_values,
                       use_cache=True)
        best = min(best, (time.perf_counter() - start) / (tokens - 2))
print(json.dumps({"ms_per_token": best * 1e3}))
