# SPDX-License-Identifier: Apache-2.0
# Slurm on the test cluster; sourced by tests/cluster/control. munged and slurmctld run on `head`,
# which is no compute node, so that any node can be cut or lose power; each host runs one slurmd.
# One munged serves all, its socket is a file in the shared /run. STATE/slurm is /etc/slurm on every
# host.

slurm_is_up() { [ -e "$state/slurm/up" ]; }

slurm_start() {
    local name=$1 host=$2
    shift 2
    on "$host" env TESTCLUSTER_SLURM=1 setsid "$@" < /dev/null >> "$state/slurm/$name.log" 2>&1 &
}

slurm_start_host() { slurm_start "slurmd.$1" "$1" slurmd -N "$1" -D; }

slurm_fail() {
    local log
    for log in "$state"/slurm/*.log; do
        say "end of $(basename "$log"):"
        tail -n 5 "$log" >&2
    done
    slurm_down
    die "$*"
}

# Waits up to $1 seconds until the rest of the arguments succeeds.
slurm_wait() {
    local i limit=$1
    shift
    for ((i = 0; i < limit * 10; i++)); do
        ! "$@" > /dev/null 2>&1 || return 0
        sleep 0.1
    done
    return 1
}

slurm_idle() {
    [ "$(sinfo -h -N -o %T | grep -cx idle)" = "$(ls "$state/hosts" | grep -c '^node[0-9]*$')" ]
}

slurm_empty() { [ -z "$(squeue -h)" ]; }

slurm_up() {
    local host dir=$state/slurm
    ! slurm_is_up || die "Slurm is up already"
    mkdir -p "$dir/state" "$dir/munge" /run/munge
    sed -e "s|@DIR@|$dir|" -e "s|@COUNT@|$(< "$state/count")|" "$parts/slurm.conf" \
        > "$dir/slurm.conf"
    for host in $(all_hosts); do
        echo "NodeName=$host NodeAddr=10.77.0.$(number "$host") CPUs=2 RealMemory=4000"
    done >> "$dir/slurm.conf"
    echo 'CgroupPlugin=disabled' > "$dir/cgroup.conf"
    # /tmp is shared by the hosts and the folder's name has no host in it; /var/tmp is each host's
    # own.
    echo 'PMIxCliTmpDirBase=/var/tmp' > "$dir/mpi.conf"
    head -c 128 /dev/urandom > "$dir/munge/key"
    chmod 600 "$dir/munge/key"
    touch "$dir/up"
    # --force: root instead of the user munge, and files in folders it would not choose itself.
    slurm_start munged head munged --foreground --force --key-file="$dir/munge/key" \
        --pid-file="$dir/munge/pid" --seed-file="$dir/munge/seed" --log-file="$dir/munge/log"
    slurm_wait 10 munge -n || slurm_fail "munged does not answer"
    slurm_start slurmctld head slurmctld -D -i
    slurm_wait 20 scontrol ping || slurm_fail "slurmctld does not answer"
    for host in $(all_hosts); do ! up "$host" || slurm_start_host "$host"; done
    slurm_wait 40 slurm_idle || { sinfo -N >&2; slurm_fail "not all nodes are idle after 40 s"; }
}

# Ends the daemons on every host by the mark that slurm_start gave them, and job steps with them.
slurm_down() {
    local name
    slurm_is_up || return 0
    timeout 5 scancel --user=root > /dev/null 2>&1 || true
    slurm_wait 3 slurm_empty || true
    rm -f "$state/slurm/up"
    kill -KILL $(marked TESTCLUSTER_SLURM=1) 2> /dev/null || true
    rm -rf "$state"/slurm/* /run/munge
    # Job numbers begin at 1 again: a folder of an old job would be in the way of the new one.
    for name in $(all_hosts); do
        ! up "$name" || on "$name" bash -c 'rm -rf /var/tmp/slurm* /var/tmp/pmix*'
    done
}
