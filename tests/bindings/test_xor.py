#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/bindings/test_xor.py LIBDIR XOR XOR_CPP [python] [FC]: train examples/xor.

In all languages it must print the same losses and write the same weights, to the bit. XOR and
XOR_CPP are the built programs. With the word python, xor.py runs too, and PYTHONPATH names the
package. FC compiles xor.f90 with libcatena.so in LIBDIR. What is missing is skipped with a message.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
EXAMPLE = TOP / "examples" / "xor"


def run(work, *command):
    done = subprocess.run(command, cwd=work, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"xor: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def fortran(work, compiler, library):
    """xor.f90, compiled with the modules."""
    folder = TOP / "bindings" / "fortran"
    modules = [folder / name for name in (folder / "SOURCES").read_text(encoding="utf-8").split()]
    run(work, compiler, "-O0", *modules, EXAMPLE / "xor.f90", "-o", "xor_fortran", f"-L{library}",
        f"-Wl,-rpath,{library}", "-lcatena")
    return work / "xor_fortran"


def programs(work, library, xor, xor_cpp, *others):
    """{language: command}"""
    out = {"C": [xor], "C++": [xor_cpp]}
    compiler = next((word for word in others if word != "python"), None)
    if "python" in others:
        out["Python"] = [sys.executable, EXAMPLE / "xor.py"]
    if compiler:
        out["Fortran"] = [fortran(work, compiler, Path(library).resolve())]
    for language in {"Python", "Fortran"} - out.keys():
        print(f"xor: skipped {language}: it is not part of this build")
    return out


def main(args):
    if len(args) < 3:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        results = {}
        for language, command in programs(work, *args).items():
            path = work / f"{language}.safetensors"
            results[language] = run(work, *command, path), path.read_bytes()
    printed, weights = results["C"]
    for language, (text, wrote) in results.items():
        if text != printed or not text:
            sys.exit(f"xor: C prints\n{printed}and {language}\n{text}")
        if wrote != weights:
            sys.exit(f"xor: {language} wrote other weights than C")
    print(f"{printed}xor: the same in {', '.join(results)}")


if __name__ == "__main__":
    main(sys.argv[1:])
