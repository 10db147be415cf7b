#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# prints.sh PATTERN COMMAND...: run the command. It must end with 0 and print a line that matches.
# ctest's own PASS_REGULAR_EXPRESSION does not look at the exit code.
pattern=$1
shift
out=$("$@" 2>&1)
code=$?
printf '%s\n' "$out"
[ $code = 0 ] || { echo "expected exit code 0, found $code"; exit 1; }
printf '%s\n' "$out" | grep -E -e "$pattern" > /dev/null ||
    { echo "expected a line that matches '$pattern', found none"; exit 1; }
