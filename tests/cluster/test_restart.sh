#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/cluster/test_restart.sh CATENA [NAME ...]: `catena launch` on four hosts when a rank or a
# host is lost. The job must resume by itself on the hosts that are left and reach its end. Each
# case prints the restart and the time from the loss until the training resumed. The test makes its
# own cluster. Cases: kill crash cut slurm. Exit code 0, 1, or 77 (skipped).
set -uo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
catena=$(realpath "${1:?usage: test_restart.sh CATENA [NAME ...]}")
shift
[ $# -gt 0 ] || set -- kill crash cut slurm
work=$(mktemp -d /tmp/catena-restart.XXXXXX)
export CATENA_CLUSTER_DIR=$work/state OMP_NUM_THREADS=1 CATENA_TUNE=0 OMP_WAIT_POLICY=passive
cluster=$top/dev/cluster
bad=0
trap '"$cluster" down; rm -rf "$work"' EXIT

"$top/tests/cluster/make_arrays.py" "$work" 4099 || exit 1
"$cluster" up --hosts 4 --rate 1gbit || exit $?

. "$top/tests/cluster/common.sh"
hosts=(node1 node2 node3 node4)
train=(train mlp --data "$work/x.npy" --target "$work/y.npy" --hidden 64 --batch 24 --epochs 0
    --iterations 1500 --save-iterations 50 --oversubscribe --quiet)

saved() { compgen -G "$log/result/state/0*" > /dev/null && [ -e "$log/result/unfinished" ]; }

# start NAME: a training on four hosts, in the background.
start() {
    name=$1 log=$work/$1
    mkdir "$log"
    timeout 300 "$cluster" exec head "$catena" launch -n 4 \
        --hosts node1,node2,node3,node4 --restarts 2 -- "${train[@]}" --out "$log/result" \
        > "$log/out" 2> "$log/err" &
    launcher=$!
    await 60 saved
}

# finished RANKS: checks that the job was restarted once, on this number of ranks, and is complete.
finished() {
    local ok=yes code since=$EPOCHREALTIME host
    await 60 grep -q 'resuming at iteration' "$log/err" || ok="it does not resume"
    took=$(awk -v a="$since" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
    wait "$launcher"
    code=$?
    [ "$code" = 0 ] || ok="exit code $code"
    [ "$(grep -c 'catena launch: .*; restart ' "$log/err")" = 1 ] || ok="not one restart"
    grep -q "restart 1 of 2 in 1 s, on $1 rank" "$log/err" || ok="not on $1 ranks"
    [ ! -e "$log/result/unfinished" ] || ok="the training is not complete"
    for host in "${hosts[@]}"; do
        [ "$host" = "${down:-}" ] || [ -z "$(pid_on "$host")" ] || ok="a rank is left on $host"
    done
    [ "$ok" = yes ] && echo "ok      $name: resumed on $1 ranks after $took s" ||
        { echo "FAILED  $name: $ok" && sed 's/^/        /' "$log/err" && bad=1; }
    grep -ah 'catena launch: .*; restart' "$log/err" | sed 's/^/        /'
}

# One process is killed; its host is used again.
case_kill() {
    start kill && c exec node3 kill -9 "$(pid_on node3)"
    finished 4
}

case_crash() {
    start crash && c crash node4
    down=node4 finished 3
    c boot node4
}

# The link of a host is cut; the host itself goes on.
case_cut() {
    start cut && c cut node2
    down=node2 finished 3
    c mend node2
    sees head node2
}

# Inside of a Slurm job mpirun finds the hosts by itself.
case_slurm() {
    name=slurm log=$work/slurm
    mkdir "$log"
    "$cluster" slurm up || { echo "skipped: no Slurm here" && return; }
    { echo '#!/bin/bash'
      printf '%q ' "$catena" launch --restarts 2 -- "${train[@]}" --out "$log/result"
      echo "> $log/out 2> $log/err"; } > "$log/job"
    timeout 300 "$cluster" exec head sbatch -N4 --ntasks-per-node=1 --wait -o /dev/null "$log/job" \
        > /dev/null 2> "$log/sbatch" &
    launcher=$!
    await 60 saved && c exec node3 kill -9 "$(pid_on node3)"
    finished 4
}

for name; do "case_$name"; done
exit $bad
