#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/golden/mnist.sh PROGRAM [EPOCHS]: examples/mnist must reach 98 % accuracy on the test images
# (default: 8 epochs; 20 give 98.7 %). Two shorter runs with the same seed and thread count must
# print the same and write bitwise equal weights. Skipped (exit code 77) without CATENA_DATA.
set -euo pipefail

program=${1:?usage: mnist.sh PROGRAM [EPOCHS]}
[ -n "${CATENA_DATA:-}" ] || { echo "skipped: set CATENA_DATA to find MNIST"; exit 77; }
[ -d "$CATENA_DATA/mnist" ] || { echo "skipped: there is no $CATENA_DATA/mnist"; exit 77; }

export CATENA_THREADS=2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
run() { # NAME EPOCHS
    "$program" "$2" 1 "$CATENA_DATA/mnist" "$work/$1.safetensors" > "$work/$1.log"
    echo "$2 epochs: $(tail -n 1 "$work/$1.log")"
}
run long "${2:-8}"
run short 2
run again 2

awk 'END { exit !($5 == "accuracy" && $6 >= 0.98) }' "$work/long.log" ||
    { echo "accuracy is below 0.98"; exit 1; }
cmp "$work/short.log" "$work/again.log"
cmp "$work/short.safetensors" "$work/again.safetensors"
echo "both short runs are equal"
