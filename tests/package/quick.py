#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/package/quick.py BUILD [CHECK ...]: check what the packages and the build from source need,
without making a package. BUILD is the folder of the release build. Runs in dev/shell, where
`dev/check install` calls it. Checks (default: all):

  versions   what the portable archive and the wheel contain can be adapted to glibc 2.28
"""
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "packaging"))
import bundle  # noqa: E402


def versions(build, work):
    """Functions that are newer than the systems of the archive, by the code that makes it."""
    compat = bundle.add_compat(work)
    files = [build / "libcatena.so", build / "bin" / "catena", *build.glob("libcatena_*.so"),
             *build.glob("python/catena/*.so"), *(work / name for name in compat)]
    found = set()
    for file in files:
        found |= set().union(*bundle.find_homes(file, compat).values())
    return f"{len(files)} files, {len(found)} functions have a home on older systems"


CHECKS = {f.__name__: f for f in (versions,)}


def main():
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= CHECKS.keys():
        sys.exit(__doc__)
    build = Path(sys.argv[1]).resolve()
    for name in sys.argv[2:] or CHECKS:
        with tempfile.TemporaryDirectory() as work:
            print(f"{name}: {CHECKS[name](build, Path(work))}", flush=True)


if __name__ == "__main__":
    main()
