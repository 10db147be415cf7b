#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/package/check.sh INSTALLED COMMANDS: test the catena in the PATH as somebody who installed a
# package does. INSTALLED is what `catena info` must say, COMMANDS a file with the first commands of
# README.md. Works in an empty home folder. Fails if there is a compiler or if this is root:
# packages must work without. dev/package-check runs this in clean systems.
set -euo pipefail

installed=$1
commands=$2

fail() { echo "check.sh: $*" >&2; exit 1; }

[ "$(id -u)" != 0 ] || fail "this is root"
for compiler in cc gcc g++ clang; do
    ! command -v $compiler > /dev/null || fail "there is a compiler: $compiler"
done
HOME=$(mktemp -d)
export HOME
trap 'rm -rf "$HOME"' EXIT
cd "$HOME"
catena info > info.txt || fail "catena info failed"
grep -Eq "^  installed +$installed  " info.txt || fail "expected '$installed' in: $(cat info.txt)"
catena selftest > log.txt 2>&1 || fail "catena selftest failed: $(cat log.txt)"
bash -eu "$commands" > log.txt 2>&1 || fail "the commands of README.md failed: $(cat log.txt)"
[ -s counting/report.html ] || fail "the first training of README.md wrote no report"
