#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/cluster/test_kills.sh CATENA [KILLS [NETWORK ...]]: `catena verify-resume` with four ranks
# on four hosts: each training is killed KILLS times (default 50) at random moments, many of them
# while a checkpoint is written, and must end like one that was never killed. Prints a line for each
# network (default: mlp resnet20_cifar). SECONDS_EACH is the length of a training. The test makes
# its own cluster. Exit code 0, 1, or 77 (skipped).
set -uo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
catena=$(realpath "${1:?usage: test_kills.sh CATENA [KILLS [NETWORK ...]]}")
kills=${2:-50}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- mlp resnet20_cifar
work=$(mktemp -d /tmp/catena-kills.XXXXXX)
export CATENA_CLUSTER_DIR=$work/state OMP_NUM_THREADS=1 CATENA_TUNE=0 OMP_WAIT_POLICY=passive
cluster=$top/dev/cluster
bad=0
trap '"$cluster" down; rm -rf "$work"' EXIT

"$cluster" up --hosts 4 --rate 1gbit || exit $?
printf 'node%d slots=1\n' 1 2 3 4 > "$work/hosts"

for network; do
    "$cluster" exec head env PRTE_MCA_prte_default_hostfile="$work/hosts" \
        "$catena" verify-resume "$network" --ranks 4 --rounds "$kills" \
        --seconds "${SECONDS_EACH:-10}" --json --out "$work/$network" \
        > "$work/json" 2> "$work/err" || bad=1
    echo "$network: $(tr -d '\n' < "$work/json" | tr -s ' ')"
    [ "$bad" = 0 ] || cat "$work/err"
done
exit $bad
