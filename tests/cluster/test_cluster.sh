#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/cluster/test_cluster.sh: tests of the test cluster itself. Makes its own cluster and does
# not touch others on the machine. Prints one line per check and a count at the end. Exit code 0, 1,
# or 77 (skipped).
set -uo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
work=$(mktemp -d)
export CATENA_CLUSTER_DIR=$work/state
cluster=$top/dev/cluster
good=0 bad=0
trap '"$cluster" down; rm -rf "$work"' EXIT

. "$top/tests/cluster/common.sh"

# Rarely and only on a busy machine, the launcher of Open MPI 5.0.7 fails when a job ends: glibc
# aborts it over a lock that has been freed, it ends with SIGSEGV, or it never ends. No command of
# this file does any of that.
launcher_crashed='Fatal glibc error: (tpp|pthread_mutex_lock)\.c|^exit 139|^Abort is in progress'

# check TEXT COMMAND...: runs a check, and shows the output of the command if it fails. Repeated
# only if the launcher crashed.
check() {
    local text=$1 try status
    shift
    for try in 1 2 3; do
        status=0
        "$@" > "$work/check.log" 2>&1 || status=$?
        [ $status != 0 ] && grep -qE "$launcher_crashed" "$work/check.log" || break
        echo "        $text: the launcher of Open MPI crashed, try $try"
    done
    if [ $status = 0 ]; then
        good=$((good + 1)) && echo "ok      $text"
    else
        bad=$((bad + 1)) && echo "FAILED  $text" && sed 's/^/        /' "$work/check.log"
    fi
}

code() {
    local want=$1 got=0
    shift
    "$@" || got=$?
    [ "$got" = "$want" ] || { echo "exit $got, expected $want"; return 1; }
}

# on_hosts LOG N: the ranks in this log ran on N different hosts.
on_hosts() {
    [ "$(awk '/^rank/ { print $NF }' "$1" | sort -u | wc -l)" = "$2" ] || { cat "$1"; return 1; }
}

tx() { c bytes | sed "s/.*\"$1\":{\"tx\":\([0-9]*\).*/\1/"; }

ranks() {
    local hosts=$1
    shift
    c run "$@" > "$work/run.log" && on_hosts "$work/run.log" "$hosts"
}

# Sends 10 MB from each rank to the next. Every host must have sent at least that, and not much
# more.
crosses() {
    local before after
    before=$(tx node2)
    c run "$@" 10000000 || return 1
    after=$(tx node2)
    echo "node2 sent $((after - before)) bytes, expected 10 to 11 million"
    [ $((after - before)) -ge 10000000 ] && [ $((after - before)) -le 11000000 ]
}

# 10 MB at 100 Mbit/s take 0.8 s, plus 4.6 % for headers. The token bucket lets 256 kB pass at once.
# A busy machine takes longer, but nothing is faster than the link.
obeys_rate() {
    c rate 100mbit && c run -n 4 "$work/probe.openmpi" 10000000 > "$work/run.log" &&
        c rate 1gbit || return 1
    awk '/^seconds/ { print; found = $2 > 0.78 } END { exit !found }' "$work/run.log"
}

no_shared_memory() { c exec node1 touch /dev/shm/x && code 1 c exec node2 test -e /dev/shm/x; }
sees_not() { code 1 c exec "$1" ping -q -W 1 -c 1 "$2"; }
power_failure() { c crash node3 && code 3 c exec node3 true && code 1 ps -p "$1"; }
times_out() {
    code 124 c run -n 4 --timeout 2 sleep 1234 2> "$work/run.log" &&
        ! grep 'left running' "$work/run.log" &&
        ! c exec head ps -eo args | grep -x 'sleep 1234'
}
no_left_over() {
    [ -n "$namespaces" ] || { echo "namespaces of the cluster were not found"; return 1; }
    ! ls -l /proc/[0-9]*/ns 2> /dev/null | grep -wE "$namespaces" || return 1
    ! cat /proc/[0-9]*/mountinfo 2> /dev/null | grep -F "$CATENA_CLUSTER_DIR" || return 1
    [ ! -e "$CATENA_CLUSTER_DIR" ]
}
# with_srun TEXT ...: runs srun with 4 tasks on 4 hosts. TEXT must be in the output four times.
with_srun() {
    local text=$1 log=$work/run.log
    shift
    c exec node1 srun -N4 -n4 "$@" > "$log" && on_hosts "$log" 4 || return 1
    [ "$(grep -c "$text" "$log")" = 4 ] || { cat "$log"; return 1; }
}
pmix() { with_srun '^rank [0-3] of 4 ' --mpi=pmix "$work/probe.openmpi"; }
pmi2() { with_srun '^rank [0-3] of 4 ' --mpi=pmi2 "$work/probe.mpich"; }
singletons() { with_srun '^rank 0 of 1 ' "$work/probe.openmpi"; }
idle() { [ "$(c exec head sinfo -h -N -o %T | grep -cx idle)" = 4 ]; }
all_idle() { await 60 idle || { c exec head sinfo -N && return 1; }; }

c up --hosts 4 --rate 1gbit
case $? in
    0) ;;
    77) echo "skipped: no cluster on this machine" && exit 77 ;;
    *) echo "FAILED  up" && exit 1 ;;
esac
echo "ok      up: 4 hosts" && good=1
"$top/dev/shell" bash -euc '
    mpicc -O1 -o "$1/probe.openmpi" "$0"
    mpicc.mpich -O1 -o "$1/probe.mpich" "$0"' \
    "$top/tests/cluster/probe.c" "$work" || { echo "FAILED  compile probe.c" && exit 1; }

check "a second up is refused" code 3 c up
check "without root: up exits 77" code 77 setpriv --reuid 65534 --clear-groups "$cluster" up
check "wrong use: exit 2" code 2 c run -n 9 --per-host 2 true
check "exit code of the command: exec" code 9 c exec node4 bash -c 'exit 9'
check "exit code of the command: run" code 7 c run -n 4 bash -c 'exit 7'
check "hosts share no memory" no_shared_memory
check "Open MPI: 4 ranks on 4 hosts" ranks 4 -n 4 "$work/probe.openmpi"
check "Open MPI: 7 ranks on 4 hosts" ranks 4 -n 7 "$work/probe.openmpi"
check "Open MPI: 4 ranks on 2 hosts" ranks 2 -n 4 --per-host 2 "$work/probe.openmpi"
check "MPICH: 4 ranks on 4 hosts" ranks 4 -n 4 --mpi mpich "$work/probe.mpich"
check "Open MPI: 10 MB cross the link" crosses -n 4 "$work/probe.openmpi"
check "Open MPI, 2 ranks per host: only one of two crosses" \
    crosses -n 4 --per-host 2 "$work/probe.openmpi"
check "MPICH: 10 MB cross the link" crosses -n 4 --mpi mpich "$work/probe.mpich"
check "MPICH, 2 ranks per host: only one of two crosses" \
    crosses -n 4 --per-host 2 --mpi mpich "$work/probe.mpich"
check "rate: 10 MB at 100 Mbit/s" obeys_rate
check "--timeout ends a run on all hosts" times_out

check "Slurm: all nodes idle" c slurm up
check "Slurm: srun --mpi=pmix, Open MPI on 4 hosts" pmix
check "Slurm: srun --mpi=pmi2, MPICH on 4 hosts" pmi2
check "Slurm: plain srun starts 4 singletons" singletons

"$cluster" exec node3 sleep "4321.$$" &
sleeps() {
    sleeper=$(ps -eo pid,args | awk -v s="4321.$$" '$2 == "sleep" && $3 == s { print $1 }')
    [ -n "$sleeper" ]
}
await 60 sleeps
check "cut: node3 cannot be reached" eval 'c cut node3 && sees_not node1 node3'
check "cut: node3 keeps running" ps -p "${sleeper:-none}"
check "mend: node3 is back" eval 'c mend node3 && sees node1 node3'
check "crash: everything on node3 has ended" power_failure "${sleeper:-1}"
wait
check "boot: node3 is back" eval 'c boot node3 && sees node1 node3'
check "boot: Slurm has node3 again" all_idle
check "boot: srun --mpi=pmix on 4 hosts" pmix
check "Slurm: down" eval 'c slurm down && ! c exec head ps -eo comm | grep -E "slurm|munge"'

namespaces=$(for h in head node1 node2 node3 node4; do
    c exec $h bash -c 'readlink /proc/self/ns/{net,pid,mnt,uts}'
done | tr -dc '0-9\n' | paste -sd '|')
check "down" c down
check "down: no process, namespace or mount is left" no_left_over
check "down again is no error" c down

echo "$good of $((good + bad)) checks passed in $SECONDS s"
[ "$bad" = 0 ]
