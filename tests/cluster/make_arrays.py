#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_arrays.py DIR COUNT: writes arrays to train on, without needing NumPy: DIR/x.npy of shape
(COUNT,6), and DIR/y.npy of shape (COUNT), a linear function of x."""
import random
import struct
import sys

folder, count = sys.argv[1], int(sys.argv[2])


def npy(name, shape, data):
    head = repr({"descr": "<f4", "fortran_order": False, "shape": shape})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(f"{folder}/{name}", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)


random.seed(1)
x = [random.gauss(0, 1) for _ in range(count * 6)]
npy("x.npy", (count, 6), struct.pack(f"<{len(x)}f", *x))
y = [x[6 * i] - 2 * x[6 * i + 3] for i in range(count)]
npy("y.npy", (count,), struct.pack(f"<{len(y)}f", *y))
