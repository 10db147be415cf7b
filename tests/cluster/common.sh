# SPDX-License-Identifier: Apache-2.0
# What several tests of the cluster need. They set $cluster and $catena, and read this file.

c() { timeout 90 "$cluster" "$@"; }

# The process id of the rank on a host, as that host numbers processes.
pid_on() {
    c exec "$1" bash -c 'for p in /proc/[0-9]*; do
        [ "$(readlink "$p/exe")" != "$0" ] || echo "${p#/proc/}"
    done' "$catena" 2> /dev/null | head -n 1
}

# sees HOST OTHER: waits until HOST reaches the other one.
sees() { await 60 c exec "$1" ping -q -W 1 -c 1 "$2" > /dev/null; }

# await SECONDS COMMAND...: repeats the command until it succeeds, for at most this time.
await() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.1
    done
}
