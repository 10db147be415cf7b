#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/fortran/run.py LIBDIR CC FC: build and run the tests of module catena.

- The modules compile as standard Fortran 2018 without warnings.
- Each test_*.f90 is a program that checks one area.
- stops.f90 must stop with the message of an error.
- train.c and train.f90 train the same network and must write the same bits.

LIBDIR holds libcatena.so. Without FC, exit code 77: skipped.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODULES = HERE.parent.parent / "bindings" / "fortran"
STRICT = ["-std=f2018", "-Wall", "-Wextra", "-Werror"]


def run(work, *command):
    done = subprocess.run(command, cwd=work, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"fortran: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def stops(work):
    done = subprocess.run(["./stops"], cwd=work, capture_output=True, text=True)
    if done.returncode == 0 or "catena: " not in done.stderr or "-7" not in done.stderr:
        sys.exit(f"fortran: stops.f90: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    print("stops: ok")


def same_bits(work):
    run(work, "./train_c", "c.safetensors")
    run(work, "./train_f", "f.safetensors")
    wrote = [(work / name).read_bytes() for name in ("c.safetensors", "f.safetensors")]
    if wrote[0] != wrote[1]:
        sys.exit("fortran: C and Fortran trained different weights")
    print(f"train: C and Fortran wrote the same {len(wrote[0])} bytes")


def main(args):
    if len(args) == 2:
        print("fortran: skipped: there is no Fortran compiler")
        return 77
    if len(args) != 3:
        sys.exit(__doc__)
    library, cc, fc = str(Path(args[0]).resolve()), args[1], args[2]
    link = [f"-L{library}", f"-Wl,-rpath,{library}", "-lcatena"]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        sources = [str(MODULES / name) for name in (MODULES / "SOURCES").read_text().split()]
        flags = [*STRICT, "-fcheck=all"]
        run(work, fc, *flags, "-c", *sources, str(HERE / "support.f90"))
        objects = [f"{Path(source).stem}.o" for source in sources]
        for test in sorted(HERE.glob("test_*.f90")):
            run(work, fc, *flags, str(test), "support.o", *objects, "-o", test.stem, *link)
            print(run(work, f"./{test.stem}"), end="")
        for name, program in (("stops", "stops"), ("train", "train_f")):
            run(work, fc, *flags, str(HERE / f"{name}.f90"), *objects, "-o", program, *link)
        include = HERE.parent.parent / "include"
        run(work, cc, "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{include}",
            str(HERE / "train.c"), "-o", "train_c", *link)
        stops(work)
        same_bits(work)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
