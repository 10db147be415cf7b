#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small network learns exclusive or: xor.py [WEIGHTS]. The weights are saved if a file is named.

xor.c, xor.cpp and xor.f90 are the same program. All print the same losses and write the same file,
to the bit.
"""
import sys

import numpy as np

import catena as ct

x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
y = np.array([[0], [1], [1], [0]], np.float32)
ct.use_context(ct.Context(seed=1))
net = ct.nn.Sequential(ct.nn.Linear(2, 16), ct.tanh, ct.nn.Linear(16, 1))
opt = ct.optim.Adam(net.parameters(), lr=0.05)
for step in range(1, 101):
    with ct.step():
        loss = ct.mean_squared_error(net(x), y)
        opt.backward(loss)
        opt.step()  # what was recorded runs here
    if step % 20 == 0:
        print(f"step {step:3d}  loss {loss.item():.6f}")
if len(sys.argv) > 1:
    net.save(sys.argv[1])
