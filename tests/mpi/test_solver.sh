#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_solver.sh PROGRAM LEVEL TIMES SEED LAUNCHER...: runs test_solver in its mode "alone", then
# TIMES times in its mode "fails", where some rank fails. See test_solver.c.
set -euo pipefail
program=$1 level=$2 times=$3 seed=$4
shift 4
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
timeout -k 5 120 "$@" -n 2 "$program" "$level" alone ||
    { echo "level $level, alone: exit $?" >&2; exit 1; }
for ((i = 0; i < times; i++)); do
    timeout -k 5 120 "$@" -n 3 "$program" "$level" fails $((seed + i)) ||
        { echo "level $level, seed $((seed + i)): exit $?" >&2; exit 1; }
done
