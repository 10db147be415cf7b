# SPDX-License-Identifier: Apache-2.0
"""graph_torch.py [THREADS]: message passing over 1,000,000 random edges between 100,000 nodes with
64 features in PyTorch, index_select and index_add_, forward and backward, as in bench/graph.c.
The time is CPU time with one thread, and wall time with more. Prints one JSON line."""
import json
import os
import sys
import time

os.environ["THP_MEM_ALLOC_ENABLE"] = "1"  # huge pages, as in Catena
import torch  # noqa: E402

threads = int(sys.argv[1]) if len(sys.argv) > 1 else 2
clock = time.process_time if threads == 1 else time.perf_counter
torch.set_num_threads(threads)
torch.set_flush_denormal(True)
torch.manual_seed(1)
edges, nodes, features = 1000000, 100000, 64
source, target = (torch.randint(nodes, (edges,)) for _ in range(2))
x = torch.rand(nodes, features, requires_grad=True)
weight = torch.rand(nodes, features)
best = 1e9
for _ in range(8):
    start = clock()
    y = torch.zeros(nodes, features).index_add_(0, target, x.index_select(0, source))
    torch.autograd.grad(y, x, weight)
    best = min(best, clock() - start)
print(json.dumps({"rows_ms": best * 1e3}))
