# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Environments: Debian systems in folders below `base`, made by debootstrap and entered by chroot in
# a private mount namespace. Sourced by dev/shell, dev/wheel-check, dev/recipes and dev/older, which
# set `program`, their name in messages. Needs root.

base=${CATENA_ENV_DIR:-${HOME:-/root}/.cache/catena}

say() { printf '%s: %s\n' "${program:?}" "$*" >&2; }
die() { say "$*"; exit 3; }

# Removes earlier environments of a kind, except those in which a command still runs.
remove_old() {
    local old
    for old in "$base/$1"-*; do
        [ -d "$old" ] || continue
        (flock -n 8 && rm -rf "$old") 8> "$base/$(basename "$old" .part).in-use" ||
            say "keeping $old, which is in use"
    done
}

check_space() {
    local need_mb=$1 free_mb
    free_mb=$(df -Pm "$base" | awk 'NR == 2 { print $4 }')
    [ "$free_mb" -ge "$need_mb" ] ||
        die "$base has $free_mb MB free, but $need_mb MB are needed: set CATENA_ENV_DIR"
}

# create ROOT KIND SUITE PACKAGES
create() {
    local root=$1 kind=$2 suite=$3 packages=$4
    if ! command -v debootstrap > /dev/null; then
        say "installing debootstrap"
        { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y debootstrap; } \
            > "$base/setup.log" 2>&1 || die "cannot install debootstrap, see $base/setup.log"
    fi
    say "creating the environment in $root (once, about 2 minutes)"
    remove_old "$kind"
    debootstrap --variant=minbase --include=ca-certificates "$suite" "$root.part" \
        > "$base/setup.log" 2>&1 || die "debootstrap failed, see $base/setup.log"
    # pip and TLS inside the environment use the configuration of the machine.
    [ ! -f /etc/pip.conf ] || cp /etc/pip.conf "$root.part/etc/pip.conf"
    if compgen -G '/usr/local/share/ca-certificates/*.crt' > /dev/null; then
        cp /usr/local/share/ca-certificates/*.crt "$root.part/usr/local/share/ca-certificates/"
    fi
    printf '#!/bin/sh\nexit 101\n' > "$root.part/usr/sbin/policy-rc.d"
    chmod +x "$root.part/usr/sbin/policy-rc.d"
    # Packages of another architecture, as in libc6-dev:arm64.
    case $packages in *:arm64*) chroot "$root.part" dpkg --add-architecture arm64 ;; esac
    chroot "$root.part" /bin/sh -c "update-ca-certificates && apt-get update &&
        DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages &&
        apt-get clean" >> "$base/setup.log" 2>&1 ||
        die "package installation failed, see $base/setup.log"
    mv "$root.part" "$root"
}

# prepare KIND SUITE MEGABYTES PACKAGES: sets `root` to the environment with these packages, and
# makes it if there is none. Another list of packages replaces the environments of this kind.
prepare() {
    local kind=$1 suite=$2 need_mb=$3 packages=$4
    root=$base/$kind-$(printf '%s' "$packages" | sha256sum | cut -c1-12)
    [ ! -d "$root" ] || return 0 # without waiting for another environment that is being made
    mkdir -p "$base"
    (
        exec 9> "$base/lock"
        flock 9
        [ -d "$root" ] || { check_space "$need_mb" && create "$root" "$kind" "$suite" "$packages"; }
    )
}

# Runs in the new mount namespace: ROOT FOLDER... -- COMMAND...
mount_and_run='
set -e
root=$1
shift
mount --rbind "$root" "$root"
for d in /proc /sys /dev /tmp; do mount --rbind "$d" "$root$d"; done
while [ "$1" != -- ]; do
    mkdir -p "$root$1"
    mount --rbind "$1" "$root$1"
    shift
done
shift
cp -f /etc/resolv.conf "$root/etc/resolv.conf" 2> /dev/null || true
exec "$@"'

# enter FOLDER... -- COMMAND...: becomes the command in `root`. It sees only that system, /tmp and
# the given folders, starts in the current folder, and has the variables in the array `keep`. All
# mounts disappear with it.
enter() {
    local folders=()
    while [ "$1" != -- ]; do
        folders+=("$1")
        shift
    done
    shift
    exec 8> "$root.in-use"
    flock -s 8 # held while the command or any process it left behind is running
    exec unshare --mount --propagation private -- bash -c "$mount_and_run" enter \
        "$root" "${folders[@]}" -- env -i "${keep[@]}" "$(command -v chroot)" "$root" /bin/bash -c \
        'cd "$0" 2> /dev/null || cd /; exec "$@"' "$PWD" "$@"
}
