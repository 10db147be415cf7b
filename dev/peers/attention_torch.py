# SPDX-License-Identifier: Apache-2.0
"""attention_torch.py BATCH LENGTH [causal] [THREADS]: PyTorch's scaled_dot_product_attention over
12 heads of 64, forward and backward. Prints one JSON line."""
import json
import resource
import sys
import time

import torch
import torch.nn.functional as F

batch, length = int(sys.argv[1]), int(sys.argv[2])
causal = len(sys.argv) > 3 and sys.argv[3] == "causal"
torch.set_num_threads(int(sys.argv[4]) if len(sys.argv) > 4 else 2)
torch.set_flush_denormal(True)
torch.manual_seed(1)
q, k, v = (torch.rand(batch, 12, length, 64, requires_grad=True) for _ in range(3))
g = torch.rand(batch, 12, length, 64)
best = 1e9
for _ in range(4 if length >= 4096 else 12):
    start = time.perf_counter()
    y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    torch.autograd.grad(y, (q, k, v), g)
    best = min(best, time.perf_counter() - start)
print(json.dumps({"best_ms": best * 1e3,
                  "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
