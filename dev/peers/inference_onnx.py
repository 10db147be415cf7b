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


def torch_call():
    import torch
    from gpt2_torch import GPT
    from resnet50_ddp import resnet50
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    net = (GPT() if tokens else resnet50()).eval()
    forward = net.logits if tokens else net
    given = torch.from_numpy(x)

    def run():
        with torch.inference_mode():
            return forward(given)
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
