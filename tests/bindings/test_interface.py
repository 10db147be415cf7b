#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/bindings/test_interface.py LIBDIR CC [FC]: compare bindings/interface.json with compilers.

- Every struct, field and constant of the description is laid out as the C compiler says, and as the
  Fortran compiler says for module catena_c.
- The description has the functions that the library exports, no more and no less.
- A Fortran program (calls.f90) calls the library through catena_c.

LIBDIR holds libcatena.so. Without FC the Fortran part is skipped with a message.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "bindings"))
from generate import layout  # noqa: E402


def run(work, *command):
    done = subprocess.run(command, cwd=work, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"bindings: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def check_c(description, work, compiler):
    (work / "layout.c").write_text(layout.c_program(description), encoding="utf-8")
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{TOP}/include"]
    run(work, compiler, *flags, "-fsyntax-only", "layout.c")
    wrong = layout.equal("sizeof(ctn_desc)", 1)
    (work / "wrong.c").write_text("#include <catena/catena.h>\n" + wrong, encoding="utf-8")
    if not subprocess.run([compiler, *flags, "-fsyntax-only", "wrong.c"], cwd=work,
                          capture_output=True).returncode:
        sys.exit("bindings: a wrong size was not noticed")


def check_symbols(description):
    exported = (TOP / "dev" / "exported-symbols.txt").read_text(encoding="utf-8").split()
    described = {f["name"] for f in description["functions"] if not f.get("inline")}
    differ = sorted(described ^ set(exported))
    if differ:
        sys.exit(f"bindings: only in the headers, or only exported: {', '.join(differ)}")


def check_fortran(description, work, compiler, library):
    flags = ["-Wall", "-Wextra", "-Werror", "-fcheck=all"]
    module = str(TOP / "bindings" / "fortran" / "catena_c.f90")
    run(work, compiler, *flags, "-std=f2018", "-pedantic", "-c", module)
    (work / "layout.f90").write_text(layout.fortran_program(description), encoding="utf-8")
    run(work, compiler, *flags, "layout.f90", "-o", "layout")
    run(work, "./layout")
    link = [f"-L{library}", f"-Wl,-rpath,{library}", "-lcatena"]
    run(work, compiler, *flags, str(HERE / "calls.f90"), "-o", "calls", *link)
    print(run(work, "./calls"), end="")


def main(args):
    if len(args) not in (2, 3):
        sys.exit(__doc__)
    text = (TOP / "bindings" / "interface.json").read_text(encoding="utf-8")
    description = json.loads(text)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        check_c(description, work, args[1])
        check_symbols(description)
        if len(args) == 3:
            check_fortran(description, work, args[2], str(Path(args[0]).resolve()))
        else:
            print("bindings: skipped Fortran: there is no Fortran compiler")
    print(f"bindings: ok, {len(description['structs'])} structs and "
          f"{len(description['functions'])} functions")


if __name__ == "__main__":
    main(sys.argv[1:])
