#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dev/fuzz_coverage.py PROGRAM CORPUS ...: how many edges of each folder of src a corpus reaches.
PROGRAM was built for libFuzzer; its section __sancov_pcs has the address of every edge. Called by
dev/fuzz --coverage."""
import collections
import re
import subprocess
import sys
import tempfile
from pathlib import Path


def output(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def all_edges(program):
    """The entries of the section are pairs of an address, which is relocated, and flags."""
    found = re.search(r"__sancov_pcs +\w+ +(\w+) \w+ (\w+)", output("readelf", "-SW", program))
    begin, size = (int(x, 16) for x in found.groups())
    edges = {}
    for line in output("readelf", "-rW", program).splitlines():
        words = line.split()
        if len(words) == 4 and words[2].endswith("_RELATIVE"):
            at = int(words[0], 16) - begin
            if 0 <= at < size and at % 16 == 0:
                edges[at // 16] = words[3]
    return [edges[k] for k in sorted(edges)]


def covered_edges(program, corpora):
    """libFuzzer's notes for a merge have the numbers of the edges that a file was the first to
    reach."""
    with tempfile.TemporaryDirectory() as folder:
        notes, to = Path(folder, "notes"), Path(folder, "to")
        to.mkdir()
        done = subprocess.run([program, "-merge=1", f"-merge_control_file={notes}", to, *corpora],
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr[-3000:])
        return {int(k) for line in notes.read_text().splitlines() if line.startswith("COV ")
                for k in line.split()[2:]}


def main():
    program, corpora = sys.argv[1], [str(Path(c).resolve()) for c in sys.argv[2:]]
    program = str(Path(program).resolve())
    edges = all_edges(program)
    places = output("addr2line", "-e", program, input="\n".join(edges))
    covered = covered_edges(program, corpora)
    total, reached = collections.Counter(), collections.Counter()
    for k, place in enumerate(places.splitlines()):
        found = re.search(r"/((?:src|tools)/\w+)/", place)
        if found:
            total[found[1]] += 1
            reached[found[1]] += k in covered
    for folder in sorted(total):
        if reached[folder]:
            share = 100 * reached[folder] / total[folder]
            print(f"{folder}: {reached[folder]} of {total[folder]} edges ({share:.0f} %)")


main()
