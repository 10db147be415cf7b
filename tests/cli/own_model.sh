#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/own_model.sh PREFIX: builds the template of examples/own_model with the command in its
# README against an installed Catena, then trains and evaluates it on synthetic data.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
prefix=$(cd "${1:?usage: own_model.sh PREFIX}" && pwd -P)
template=$here/../../examples/own_model
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name catena.pc)")
export PKG_CONFIG_PATH PATH="$prefix/bin:$PATH" OMP_NUM_THREADS=1 CATENA_TUNE=0

cp "$template/mymodel.c" "$work"
cd "$work"
line=$(grep '^cc -shared' "$template/README.md")
bash -euc "$line"
python3 - << 'PYTHON'
import struct
# 64 images (1,8,8) of two classes: bright above or below.
def save(name, descr, shape, data):
    head = repr({"descr": descr, "fortran_order": False, "shape": shape})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode()
    open(name, "wb").write(head + data)
pixels = [float((r < 4) == (n % 2 == 0)) + 0.01 * n
          for n in range(64) for r in range(8) for c in range(8)]
save("x.npy", "<f4", (64, 1, 8, 8), struct.pack("<4096f", *pixels))
save("y.npy", "|u1", (64,), bytes(n % 2 for n in range(64)))
PYTHON
catena train ./mymodel.so --data x.npy --target y.npy --batch 16 --epochs 10 --out result --quiet \
    > train.log
accuracy=$(catena eval ./mymodel.so --weights result/weights.safetensors --data x.npy \
    --target y.npy --json | sed -n 's/.*"accuracy": \([0-9.]*\).*/\1/p')
if ! awk -v a="$accuracy" 'BEGIN { exit !(a >= 0.95) }'; then
    cat train.log
    echo "own model: accuracy $accuracy"
    exit 1
fi
echo "own model: built by the documented line, trained, accuracy $accuracy"
