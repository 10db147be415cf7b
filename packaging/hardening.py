#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""packaging/hardening.py FOLDER...: check all programs and libraries in folders with readelf.

For all of them: no run path that depends on the current folder, and no executable stack. For those
of Catena also what cmake/Hardening.cmake asks for: no lazy binding and nothing writable after that,
programs at a random address, stack protector and checked copies. tests/package/quick.py checks the
build and an installation, and dev/package-check the finished packages. Exit code 1 if a file fails.
"""
import re
import subprocess
import sys
from pathlib import Path

OWN = re.compile(r"(lib)?catena\b|libcatena_\w+\.so|_core\.abi3\.so")
# These contain arrays on the stack and copies of known size.
LARGE = re.compile(r"catena|libcatena\.so[.][\d.]+")


def elf_files(folder):
    """The programs and libraries below a folder, without symbolic links."""
    files = (f for f in sorted(folder.rglob("*")) if f.is_file() and not f.is_symlink())
    return [f for f in files if f.open("rb").read(4) == b"\x7fELF"]


def readelf(option, file):
    return subprocess.run(["readelf", "-W", option, file], check=True, capture_output=True,
                          text=True).stdout


def common_faults(dynamic, segments):
    for kind, path in re.findall(r"\((RPATH|RUNPATH)\).*\[(.*)\]", dynamic):
        for element in path.split(":"):
            if not element.startswith(("/", "$ORIGIN", "${ORIGIN}")):
                yield f"{kind} {path} has the element '{element}'"
    if re.search(r"GNU_STACK\s.* RWE ", segments):
        yield "executable stack"


def own_faults(file, dynamic, segments):
    if "Elf file type is DYN" not in segments:
        yield "not at a random address (PIE)"
    if "GNU_RELRO" not in segments or not re.search(r"BIND_NOW|FLAGS_1.*NOW", dynamic):
        yield "not full RELRO (-z relro -z now)"
    if "(TEXTREL)" in dynamic:
        yield "relocations in code"
    if LARGE.fullmatch(file.name):
        symbols = readelf("--dyn-syms", file)
        if "__stack_chk_fail" not in symbols:
            yield "no stack protector"
        if not re.search(r" __(mem|str|[sv]\w*printf)\w*_chk", symbols):
            yield "no _FORTIFY_SOURCE"


def faults(file):
    dynamic, segments = readelf("-d", file), readelf("-l", file)
    found = list(common_faults(dynamic, segments))
    if OWN.match(file.name):
        found += own_faults(file, dynamic, segments)
    return [f"{file}: {text}" for text in found]


def check(folder):
    """The number of programs and libraries in a folder. Ends the program if one is at fault."""
    files = [f for f in elf_files(folder) if f.suffix != ".o"]
    if not files:
        sys.exit(f"hardening.py: {folder} has no programs and libraries: name another folder")
    found = [text for file in files for text in faults(file)]
    if found:
        sys.exit("\n".join(["hardening.py:", *found]))
    return len(files)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    for name in sys.argv[1:]:
        print(f"{name}: {check(Path(name))} programs and libraries")
