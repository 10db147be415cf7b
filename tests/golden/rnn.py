#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of test_rnn.c, made by PyTorch in f64: recurrent modules with several layers, both
directions, lengths, initial states and projections. Also a small safetensors file with PyTorch's
names.

python3 rnn.py > rnn.inc
Needs torch.
"""
import json
import struct

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from hashed import emit, fill, uniform, values

T, N, I, H = 4, 3, 2, 3
LENGTHS = torch.tensor([3, 4, 1])
# The same list is in test_rnn.c. state: initial states are given.
CASES = [
    ("lstm", nn.LSTM, dict(num_layers=2, bidirectional=True), True, True),
    ("lstm_projection", nn.LSTM, dict(num_layers=2, bidirectional=True, proj_size=2), True, True),
    ("lstm_batch_first", nn.LSTM, dict(batch_first=True, bias=False), False, False),
    ("gru", nn.GRU, dict(num_layers=2, bidirectional=True), True, True),
    ("gru_three_layers", nn.GRU, dict(num_layers=3), True, False),
    ("rnn_tanh", nn.RNN, dict(num_layers=2, bidirectional=True), False, True),
    ("rnn_relu", nn.RNN, dict(nonlinearity="relu"), True, False),
]


def leaf(name, *shape):
    v = uniform(name, int(np.prod(shape))).astype(np.float32).reshape(shape)
    return torch.from_numpy(v.astype(np.float64)).requires_grad_()


def weighted(t, name):
    return (t * torch.from_numpy(uniform(name, t.numel()).reshape(t.shape))).sum()


def run(name, kind, options, state, lengths):
    net = kind(I, H, **options)
    fill(net)
    net.double()
    first = options.get("batch_first", False)
    x = leaf("x", N, T, I) if first else leaf("x", T, N, I)
    rows = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    given = [leaf("h0", rows, N, options.get("proj_size", H))] if state else []
    if state and kind is nn.LSTM:
        given.append(leaf("c0", rows, N, H))
    start = (tuple(given) if kind is nn.LSTM else given[0]) if state else None
    if lengths:
        packed = pack_padded_sequence(x, LENGTHS, batch_first=first, enforce_sorted=False)
        y, final = net(packed, start)
        y = pad_packed_sequence(y, batch_first=first, total_length=T)[0]
    else:
        y, final = net(x, start)
    results = [y, *(final if kind is nn.LSTM else [final])]
    loss = sum(weighted(t, f"weight{i}") for i, t in enumerate(results))
    loss.backward()
    emit(f"{name}_results", torch.cat([t.detach().flatten() for t in results]))
    emit(f"{name}_inputs", torch.cat([t.grad.flatten() for t in [x, *given]]))
    # of each parameter's gradient: the sum of its elements times hashed numbers, and its norm
    emit(f"{name}_params", [v for n, p in net.named_parameters()
                            for v in (weighted(p.grad, "u" + n), p.grad.norm())])


def weights_file():
    net = nn.LSTM(2, 1, bidirectional=True)
    head, data = {}, b""
    for name, p in net.named_parameters():
        raw = values(name, tuple(p.shape)).tobytes()
        head[name] = {"dtype": "F32", "shape": list(p.shape),
                      "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    raw = struct.pack("<Q", len(text)) + text + data
    print("static const unsigned char weights_file[] = {")
    for i in range(0, len(raw), 16):
        print("    " + " ".join(f"{b}," for b in raw[i : i + 16]))
    print("};")


print("/* Made by rnn.py; do not edit. */")
for case in CASES:
    run(*case)
weights_file()
