#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_arrays.py DIR COUNT: write DIR/x.npy (COUNT,6) and DIR/y.npy (COUNT), a linear function of x, without NumPy."""
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
npy("y.npy", (count,), struct.pack(f"<{count}f", *[x[6 * i] - 2 * x[6 * i + 3] for i in range(count)]))
