# SPDX-License-Identifier: Apache-2.0
# Slurm on the test cluster; sourced by tests/cluster/control. munged and slurmctld run on `head`,
# which is not a compute node, so that any node can be cut off or lose power. Each host runs one
# slurmd. One munged serves all hosts through a socket in the shared /run. STATE/slurm is /etc/slurm
# on every host.

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

# Waits up to $1 seconds until the command in the other arguments succeeds.
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
    ! slurm_is_up || die "Slurm is already up"
    mkdir -p "$dir/state" "$dir/munge" /run/munge
    sed -e "s|@DIR@|$dir|" -e "s|@COUNT@|$(< "$state/count")|" "$parts/slurm.conf" \
        > "$dir/slurm.conf"
    for host in $(all_hosts); do
        echo "NodeName=$host NodeAddr=10.77.0.$(number "$host") CPUs=2 RealMemory=4000"
    done >> "$dir/slurm.conf"
    echo 'CgroupPlugin=disabled' > "$dir/cgroup.conf"
    # Hosts share /tmp, and the name of this folder does not depend on the host. So use /var/tmp,
    # of which each host has its own.
    echo 'PMIxCliTmpDirBase=/var/tmp' > "$dir/mpi.conf"
    head -c 128 /dev/urandom > "$dir/munge/key"
    chmod 600 "$dir/munge/key"
    touch "$dir/up"
    # --force allows root instead of the user munge, and files in unusual folders.
    slurm_start munged head munged --foreground --force --key-file="$dir/munge/key" \
        --pid-file="$dir/munge/pid" --seed-file="$dir/munge/seed" --log-file="$dir/munge/log"
    slurm_wait 60 munge -n || slurm_fail "munged does not answer"
    slurm_start slurmctld head slurmctld -D -i
    slurm_wait 60 scontrol ping || slurm_fail "slurmctld does not answer"
    for host in $(all_hosts); do ! up "$host" || slurm_start_host "$host"; done
    slurm_wait 60 slurm_idle || { sinfo -N >&2; slurm_fail "not all nodes are idle after 60 s"; }
}

# Kills the daemons and job steps on every host, which are found by the mark from slurm_start.
slurm_down() {
    local name
    slurm_is_up || return 0
    timeout 5 scancel --user=root > /dev/null 2>&1 || true
    slurm_wait 3 slurm_empty || true
    rm -f "$state/slurm/up"
    kill -KILL $(marked TESTCLUSTER_SLURM=1) 2> /dev/null || true
    rm -rf "$state"/slurm/* /run/munge
    # Job numbers start at 1 again, so folders of old jobs must be removed.
    for name in $(all_hosts); do
        ! up "$name" || on "$name" bash -c 'rm -rf /var/tmp/slurm* /var/tmp/pmix*'
    done
}
