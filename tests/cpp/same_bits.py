#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""same_bits.py XOR XOR_CPP MNIST MNIST_CPP: train the examples in C and in C++ with the same seed.
They must print the same and write the same weights, to the bit. The images are made here."""
import filecmp
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path


def write_idx(path, count, numbers, shape):
    """An idx file of bytes."""
    dims = (count, *shape)
    head = struct.pack(f">BBBB{len(dims)}I", 0, 0, 8, len(dims), *dims)
    path.write_bytes(head + bytes(numbers))


def write_images(folder):
    numbers = random.Random(1)
    for part, count in (("train", 350), ("t10k", 120)):
        write_idx(folder / f"{part}-images-idx3-ubyte", count, numbers.randbytes(count * 784),
                  (28, 28))
        write_idx(folder / f"{part}-labels-idx1-ubyte", count,
                  [numbers.randrange(10) for _ in range(count)], ())


def compare(work, first, second, *options):
    printed = []
    for number, program in enumerate((first, second)):
        done = subprocess.run([program, *options, work / f"{number}.safetensors"], check=True,
                              capture_output=True, text=True)
        printed.append(done.stdout)
    if printed[0] != printed[1] or not printed[0]:
        sys.exit(f"same_bits: {first} prints\n{printed[0]}and {second}\n{printed[1]}")
    if not filecmp.cmp(work / "0.safetensors", work / "1.safetensors", shallow=False):
        sys.exit(f"same_bits: the weights of {first} and {second} differ")
    print(f"{Path(first).name}: same output, same weights")


def main():
    xor, xor_cpp, mnist, mnist_cpp = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        write_images(work)
        compare(work, xor, xor_cpp)
        compare(work, mnist, mnist_cpp, "2", "1", work)


if __name__ == "__main__":
    main()
