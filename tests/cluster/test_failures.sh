#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/cluster/test_failures.sh CATENA [NAME ...]: what a job on four hosts does when one rank
# fails. The test makes its own cluster. Each case prints the line that names the cause, the time
# until every rank had ended, and the exit codes.
# Cases: door kill segv error memory cut crash rank0 sleep. Exit code 0, 1, or 77 (skipped).
set -uo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
catena=$(realpath "${1:?usage: test_failures.sh CATENA [NAME ...]}")
shift
[ $# -gt 0 ] || set -- door kill segv error memory cut crash rank0 sleep
work=$(mktemp -d /tmp/catena-failures.XXXXXX)
export CATENA_CLUSTER_DIR=$work/state OMP_NUM_THREADS=1 CATENA_TUNE=0 OMP_WAIT_POLICY=passive
cluster=$top/dev/cluster
bad=0
trap '"$cluster" down; rm -rf "$work"' EXIT

. "$top/tests/cluster/common.sh"

# Each rank records its exit code and the time. The launcher may send TERM to this shell, which
# ignores it and waits for its rank. It kills all shells 1 s after one has ended, so they wait until
# all exit codes are there.
cat > "$work/rank" << 'RANK'
#!/usr/bin/env bash
trap '' TERM
echo "$$" > "$LOG/pid.$OMPI_COMM_WORLD_RANK"
"$@"
code=$?
echo "$code $(date +%s.%N)" > "$LOG/code.$OMPI_COMM_WORLD_RANK"
for _ in $(seq 600); do
    [ "$(find "$LOG" -name 'code.*' -size +0 | wc -l)" -lt 4 ] || break
    sleep 0.1
done
exit "$code"
RANK
chmod +x "$work/rank"

python3 - "$work" << 'PYTHON' || exit 1
import os, random, struct, sys, zlib
work = sys.argv[1]
def npy(name, descr, shape, data):
    head = repr({"descr": descr, "fortran_order": False, "shape": shape})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    head = struct.pack("<H", len(head)) + head.encode()
    open(f"{work}/{name}", "wb").write(b"\x93NUMPY\x01\x00" + head + data)
random.seed(1)
x = [random.gauss(0, 1) for _ in range(4099 * 6)]
npy("x.npy", "<f4", (4099, 6), struct.pack(f"<{len(x)}f", *x))
y = [x[6 * i] - 2 * x[6 * i + 3] for i in range(4099)]
npy("y.npy", "<f4", (4099,), struct.pack("<4099f", *y))
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
for label in "ab":
    os.makedirs(f"{work}/images/{label}")
    for i in range(200):
        rows = b"".join(b"\0" + bytes(random.randrange(256) for _ in range(28)) for _ in range(28))
        png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0))
        png += chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
        if label == "b" and i == 117:  # damaged
            png = png[: len(png) // 2]
        open(f"{work}/images/{label}/{i:03}.png", "wb").write(png)
PYTHON

"$cluster" up --hosts 4 --rate 1gbit || exit $?

ARRAYS=(mlp --data "$work/x.npy" --target "$work/y.npy" --hidden 64 --batch 32 --val-share 0.1
    --oversubscribe --quiet)

# start NAME WORDS...: a training on four hosts, in the background.
start() {
    name=$1 log=$work/$1
    shift
    mkdir "$log"
    timeout 360 "$cluster" run -n 4 --env LOG="$log" --keep --timeout 300 \
        "$work/rank" "$catena" train "$@" --out "$log/result" > "$log/out" 2> "$log/err" &
    launcher=$!
}

# Waits until the log has lines, which means that steps have been taken.
logged() { [ "$(cat "$log/result/log.jsonl" 2> /dev/null | wc -l)" -ge 2 ]; }
training() {
    await 120 logged && return
    echo "FAILED  $name: the training does not begin" && cat "$log/err"
    return 1
}

all_ended() { [ "$(find "$log" -name 'code.*' -size +0 | wc -l)" = 4 ]; }
gone() { ! kill -0 "$launcher" 2> /dev/null; }
# said TEXT: waits until the launcher or a rank has printed it.
said() { await 60 grep -aqE "$1" "$log/err"; }

# ended TEXT CODES...: checks that every rank ended, with these exit codes in rank order ("any"
# matches every code), and that the error has this text.
ended() {
    local text=$1 r h code when ending last=$since codes=() ok=yes
    shift
    await 120 all_ended
    for r in 0 1 2 3; do
        code=none when=$(date +%s.%N)
        [ ! -e "$log/code.$r" ] || read -r code when < "$log/code.$r"
        codes+=("$code")
        last=$(printf '%s\n%s\n' "$last" "$when" | sort -n | tail -n 1)
        [[ ${!#} ]] && [[ $code == "${*:r+1:1}" || ${*:r+1:1} == any ]] ||
            ok="codes are ${codes[*]}, expected $*"
    done
    took=$(echo "$last $since" | awk '{ printf "%.1f", $1 - $2 }')
    for h in node1 node2 node3 node4; do
        [ "$h" = "${down:-}" ] || [ -z "$(pid_on $h)" ] || ok="a rank is left on $h"
    done
    # The last lines of a rank may appear only when the launcher ends, and mpirun keeps waiting for
    # a host that it cannot reach.
    [ -z "${down:-}" ] || said "$text"
    await "${patience:-120}" gone
    ending="the launcher did not end by itself"
    kill "$launcher" 2> /dev/null || ending=
    wait "$launcher"
    code=$?
    [ -n "$ending" ] || ending="the launcher's exit code is $code"
    # Count Catena's own lines only, not the launcher's.
    lines=$(grep -acE "Z rank [0-9]+ [a-z0-9]+: error:" "$log/err")
    [ "$lines" = 1 ] || ok="the cause is reported $lines times"
    grep -aqE "$text" "$log/err" || ok="no line with: $text"
    [ ! -e "$log/result/log.jsonl" ] || grep -aqsE "$text" "$log/result/failures.txt" ||
        ok="not in failures.txt: $text"
    [ "$ok" = yes ] &&
        echo "ok      $name: all ranks ended after $took s, exit codes ${codes[*]}" ||
        { echo "FAILED  $name: $ok" && sed 's/^/        /' "$log/err" && bad=1; }
    grep -ahE "Z rank [0-9]+ [a-z0-9]+: error:" "$log/err" | sed 's/^/        /'
    echo "        $ending"
}

# own_code N: the rank that failed ended with its own exit code N.
own_code() {
    if grep -qE "^$1 " "$log"/code.*; then
        grep -lE "^$1 " "$log"/code.* | sed "s/.*code\\./        exit code $1: rank /"
    else
        echo "FAILED  $name: no rank ended with $1" && bad=1
    fi
}

now() { since=$(date +%s.%N); }

# Rank 0's host also has an unreachable address. The watchdogs must find the reachable one.
case_door() {
    c exec node1 ip link add nowhere type bridge
    c exec node1 ip address add 10.99.0.1/24 dev nowhere
    c exec node1 ip link set nowhere up
    start door "${ARRAYS[@]}" --iterations 20
    local ok=yes
    wait "$launcher" || ok="exit code $?"
    ! grep -a "no connection" "$log/err" || ok="a rank has not joined"
    [ "$ok" = yes ] && echo "ok      door: all ranks joined" ||
        { echo "FAILED  door: $ok" && cat "$log/err" && bad=1; }
    c exec node1 ip link del nowhere
}

case_kill() {
    start kill "${ARRAYS[@]}" --epochs 0 --hours 1
    now
    training && now && c exec node3 kill -9 "$(pid_on node3)"
    ended 'rank 2 on node3 died, step [1-9]' 7 7 137 7
}

case_segv() {
    start segv "${ARRAYS[@]}" --epochs 0 --hours 1
    now
    training && now && c exec node4 kill -SEGV "$(pid_on node4)"
    ended 'rank 3 on node4 died, step [1-9]' 7 7 7 139
}

# An image that cannot be read. The rank that gets it fails with exit code 4.
case_error() {
    now
    start error lenet5 --data "$work/images" --size 28 --batch 8 --epochs 3 --augment none \
        --oversubscribe --quiet
    ended 'rank [0-3] on node[1-4], step [0-9]+: .*117.png' any any any any
    own_code 4
}

# Four ranks on four hosts of one machine, each with its own limit.
case_memory() {
    now
    start memory "${ARRAYS[@]}" --epochs 1 --hidden 12000,12000 --memory-gb 0.3
    ended 'not enough memory on node[1-4]: .* GB too much' any any any any
    own_code 5
}

case_cut() {
    start cut "${ARRAYS[@]}" --epochs 0 --hours 1
    now
    training && now && c cut node2
    patience=5 down=node2 ended 'rank 1 on node2 cannot be reached' 7 7 7 7
    c mend node2
    sees head node2 || { echo "FAILED  cut: node2 is not back" && bad=1; }
}

ranks_left() { for h in node1 node2 node3; do pid_on $h; done; }
no_rank_left() { [ -z "$(ranks_left)" ]; }
# A power failure. Open MPI's launcher notices that its daemon is gone, possibly before the 4 s of
# the watchdog are over, so either message is fine.
case_crash() {
    start crash "${ARRAYS[@]}" --epochs 0 --hours 1
    now
    training && now && c crash node4
    echo "gone $since" > "$log/code.3"
    local says='rank 3 on node4 cannot|Remote daemon.*node4'
    if await 60 no_rank_left && said "$says"; then
        echo "ok      crash: no rank is left"
        grep -ahE "$says" "$log/err" | sed 's/^/        /'
    else
        echo "FAILED  crash: left: $(ranks_left)" && sed 's/^/        /' "$log/err" && bad=1
    fi
    await 60 gone || kill "$launcher"
    wait "$launcher"
    c boot node4
}

# Rank 0 reports failures for the whole job. Here it is the one that dies.
case_rank0() {
    start rank0 "${ARRAYS[@]}" --epochs 0 --hours 1
    now
    training && now && c exec node1 kill -9 "$(pid_on node1)"
    ended 'rank 0 on node1 died' 137 7 7 7
}

# A stopped rank is reported but not killed. When it continues, so does the training.
case_sleep() {
    start sleep "${ARRAYS[@]}" --epochs 0 --hours 1 --stall-seconds 10
    training || { bad=1 && return; }
    local pid ok=yes codes
    pid=$(pid_on node3)
    c exec node3 kill -STOP "$pid"
    said 'missing: rank' || ok="no rank is missing"
    c exec node3 kill -CONT "$pid"
    said 'the job makes progress again' || ok="it does not say that the job makes progress again"
    c exec node1 kill -USR1 "$(pid_on node1)"
    await 120 all_ended
    codes=$(cut -d ' ' -f 1 "$log"/code.* | sort -u) # the launcher may crash when a job ends
    [ "$codes" = 85 ] || ok="exit codes ${codes//$'\n'/ }, not 85"
    wait "$launcher"
    [ "$(grep -ac 'no progress for 10 s' "$log/err")" = 1 ] ||
        ok="reported $(grep -ac 'no progress' "$log/err") times"
    grep -aq 'missing: rank 2' "$log/err" || ok="it does not say that rank 2 is missing"
    [ "$ok" = yes ] && echo "ok      sleep: reported once, went on, exit code $codes" ||
        { echo "FAILED  sleep: $ok" && bad=1; }
    grep -ahE 'progress|missing|  rank' "$log/err" | sed 's/^/        /'
}

for name; do "case_$name"; done
exit $bad
