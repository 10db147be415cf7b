#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/cluster/test_survive.sh CATENA [ROUND ...]: `catena launch --survive` on four hosts. Each
# round is a training in which, at a random moment, something is lost: kill (one rank), rank0, two
# (two ranks at once) or cut (the link of a host). The other ranks must continue, or the job must
# restart by itself, and the training must end with the loss of one that lost nothing. Each round
# prints a row of a table, with the seconds until the training continued. Default: 20 times kill,
# once two, 5 times cut. SEED sets the random numbers, ITERATIONS the length of a training. The test
# makes its own cluster. Exit code 0, 1, or 77 (skipped).
set -uo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
catena=$(realpath "${1:?usage: test_survive.sh CATENA [ROUND ...]}")
shift
[ $# -gt 0 ] || set -- $(printf 'kill %.0s' {1..20}) two cut cut cut cut cut
RANDOM=${SEED:-$$}
work=$(mktemp -d /tmp/catena-survive.XXXXXX)
export CATENA_CLUSTER_DIR=$work/state OMP_NUM_THREADS=1 CATENA_TUNE=0 OMP_WAIT_POLICY=passive
cluster=$top/dev/cluster
bad=0 rounds=0 continued=0 restarted=0 longest=0
trap '"$cluster" down; rm -rf "$work"' EXIT

"$top/tests/cluster/make_arrays.py" "$work" 4099 || exit 1
"$cluster" up --hosts 4 --rate 1gbit || exit $?

. "$top/tests/cluster/common.sh"
hosts=(node1 node2 node3 node4)

# What is left of a job on a host: its ranks and the daemon that started them, with their programs.
# As that host numbers processes.
left_on() {
    c exec "$1" bash -c 'for p in /proc/[0-9]*; do
        exe=$(readlink "$p/exe")
        [ "$exe" != "$0" ] && [[ $exe != */prte* ]] || echo "${p#/proc/} $exe"
    done' "$catena" 2> /dev/null
}
rank_on() { left_on "$1" | awk -v e="$catena" '$2 == e { print $1; exit }'; }

# start NAME WORDS...: a training on four hosts, in the background. Each step has 128 samples and
# sends 1 MB, so that all ranks are busy.
start() {
    log=$work/$1
    shift
    mkdir "$log"
    timeout 600 "$cluster" exec head env OMPI_MCA_btl=tcp,self \
        "$catena" launch --survive --restarts 2 -n 4 --hosts node1,node2,node3,node4 -- train mlp \
        --data "$work/x.npy" --target "$work/y.npy" --hidden 500,500 --batch 32 --val-share 0.1 \
        --lr 0.01 --iterations "${ITERATIONS:-600}" --log-iterations 10 --save-iterations 100 \
        --oversubscribe --quiet --out "$log/result" "$@" > "$log/out" 2> "$log/err" &
    launcher=$!
}

logged() { [ "$(cat "$log/result/log.jsonl" 2> /dev/null | wc -l)" -ge "$1" ]; }
# last NAME: the last value of this name in the log.
last() { grep -o "\"$1\":[^,}]*" "$log/result/log.jsonl" | tail -n 1 | cut -d: -f2; }
goes_on() { grep -aqE 'resuming (from memory )?at iteration' "$log/err"; }
nothing_left() { [ -z "$(left_on "$1")" ]; }

between() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f", b - a }'; }
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a <= b) }'; }

# The losses of trainings that lose nothing, with several seeds, and how far they are apart. Also
# how many rows the log of the last one has.
undisturbed() {
    local seed one all=
    for seed in 1 2 3; do
        start "whole$seed" --seed "$seed"
        wait "$launcher" || { cat "$log/err" && exit 1; }
        one=$(last val/loss)
        [ -n "$one" ] || { echo "no loss in $log/result/log.jsonl" && exit 1; }
        [ "$seed" != 1 ] || expected=$one
        all+=" $one"
    done
    spread=$(printf '%s\n' $all | sort -g | sed -n '1p;$p' | paste -sd' ' |
        awk '{ printf "%.3g", $2 - $1 }')
    rows=$(wc -l < "$log/result/log.jsonl")
    echo "losses without a loss of ranks:$all"
}

# lose KIND: loses ranks on random hosts, whose names go to `lost`.
lose() {
    local host pid=() first=$((RANDOM % 4)) second=$((1 + RANDOM % 3))
    [ "$1" != rank0 ] || first=0
    lost=("${hosts[first]}")
    [ "$1" != two ] || lost+=("${hosts[(first + second) % 4]}")
    for host in "${lost[@]}"; do pid+=("$(rank_on "$host")"); done
    since=$EPOCHREALTIME
    if [ "$1" = cut ]; then
        c cut "${lost[0]}"
    else
        for host in "${!lost[@]}"; do c exec "${lost[host]}" kill -9 "${pid[host]}" & done
        wait $(jobs -p | grep -vx "$launcher")
    fi
}

# judge: how the round ended; "ok" in $verdict, else what is wrong.
judge() {
    local code host
    verdict=ok how=- took=- ended=-
    if await 60 goes_on; then took=$(between "$since" "$EPOCHREALTIME")
    else verdict="does not continue"; fi
    wait "$launcher"
    code=$?
    [ "$code" = 0 ] || verdict="exit code $code"
    ended=$(between "$since" "$EPOCHREALTIME")
    ! grep -aq 'resuming at iteration' "$log/err" || how=saved
    ! grep -aq 'resuming from memory' "$log/err" || how=memory
    ! grep -aq 'catena launch: .*; restart ' "$log/err" || how=restart
    [ ! -e "$log/result/unfinished" ] || verdict="the training is not complete"
    final=$(last val/loss)
    off=$(awk -v a="${final:-1e9}" -v b="$expected" \
        'BEGIN { d = a - b; printf "%.2g", d < 0 ? -d : d }')
    less "$off" "$spread" || verdict="the loss is $final, expected $expected +- $spread"
    for host in "${hosts[@]}"; do
        await 60 nothing_left "$host" ||
            verdict="left on $host: $(left_on "$host" | paste -sd' ')"
    done
}

round() {
    local kind=$1 shard=() moment
    rounds=$((rounds + 1))
    [ $((rounds % 2)) = 1 ] || shard=(--shard)
    start "round$rounds" --seed 1 "${shard[@]}"
    moment=$((1 + RANDOM % (rows * 6 / 10)))
    await 300 logged $moment ||
        { echo "FAILED  the training does not log $moment rows" && cat "$log/err" && exit 1; }
    lose "$kind"
    judge
    printf '%5s  %-5s  %-12s %-7s %7s  %-8s %10s %8s  %s\n' "$rounds" "$kind" "${lost[*]}" \
        "${shard[*]:--}" "$moment" "$how" "$took" "$(printf %.3g "${final:-0}")" "$verdict"
    case $how in
    memory | saved) continued=$((continued + 1)) ;;
    restart) restarted=$((restarted + 1)) ;;
    esac
    ! less "$longest" "${took/-/0}" || longest=$took
    if [ "$verdict" != ok ]; then
        sed 's/^/        /' "$log/err" && bad=1
    fi
    if [ "$kind" = cut ]; then
        c mend "${lost[0]}"
        sees head "${lost[0]}"
    fi
}

undisturbed
printf '%5s  %-5s  %-12s %-7s %7s  %-8s %10s %8s\n' round lost on shard 'at row' from 'after (s)' \
    loss
for kind; do round "$kind"; done
echo "$continued of $rounds continued, $restarted restarted, longest $longest s"
exit $bad
