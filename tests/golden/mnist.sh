#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/golden/mnist.sh PROGRAM: 20 epochs of examples/mnist reach 98 % on the test images, and a second
# run with the same seed and threads leaves the same weights, bit by bit. Without CATENA_DATA: skipped (77).
set -euo pipefail

program=${1:?usage: mnist.sh PROGRAM}
[ -n "${CATENA_DATA:-}" ] || { echo "skipped: CATENA_DATA is not set, MNIST is looked for in it"; exit 77; }
[ -d "$CATENA_DATA/mnist" ] || { echo "skipped: there is no $CATENA_DATA/mnist"; exit 77; }

export CATENA_THREADS=2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for run in 1 2; do
    "$program" 20 1 "$CATENA_DATA/mnist" "$work/$run.safetensors" > "$work/$run.log"
    echo "run $run: $(tail -n 1 "$work/$run.log")"
done

awk 'END { exit !($5 == "accuracy" && $6 >= 0.98) }' "$work/1.log" || { echo "accuracy is below 0.98"; exit 1; }
cmp "$work/1.log" "$work/2.log"
cmp "$work/1.safetensors" "$work/2.safetensors"
echo "both runs left the same weights"
