#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The blocks of the documentation are true: every ```c block is compiled against an installed Catena.

  docs.py PREFIX FILE.md ...    check the files
  docs.py --print WORD FILE.md  print the ```sh blocks marked with WORD, for others to run

A C block with main() is a program: it is run and must end with 0 and say nothing on stderr. Any other is
the inside of a function with the parameters below. A program with <catena/mpi.h>, and ```fortran, is compiled by mpicc and mpifort and
run as one rank; without them it is skipped, and said so. ```c NAME leaves the block as file NAME for the
commands after it; the commands of ```sh run are run in order, in one folder per document that is also
their HOME, with the prefix as $HOME/catena and its bin in the PATH.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BLOCK = re.compile(r"^```(c|sh|fortran)\b[ ]*(\S*)[ ]*\n(.*?)^```[ ]*$", re.M | re.S)
FRAGMENT = """#include <catena/catena.h>
void fragment(ctn_context *ctx, ctn_module *net, ctn_module *fc1, ctn_module *fc2, ctn_optim *opt,
              const void *data, ctn_tensor *t);
void fragment(ctn_context *ctx, ctn_module *net, ctn_module *fc1, ctn_module *fc2, ctn_optim *opt,
              const void *data, ctn_tensor *t)
{
    (void)ctx, (void)net, (void)fc1, (void)fc2, (void)opt, (void)data, (void)t;
#line 1
%s}
"""


def blocks(path):
    """(line, language, word behind it, text) of each block."""
    text = Path(path).read_text(encoding="utf-8")
    for m in BLOCK.finditer(text):
        yield text.count("\n", 0, m.start()) + 1, m[1], m[2], m[3]


class Checker:
    def __init__(self, prefix, work):
        (work / "catena").symlink_to(prefix)
        self.work = work
        self.env = {**os.environ, "HOME": str(work), "PATH": f"{prefix}/bin:{os.environ['PATH']}"}
        self.lib = next(Path(prefix).rglob("catena.pc")).parent.parent
        self.flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{prefix}/include"]
        self.link = [f"-L{self.lib}", f"-Wl,-rpath,{self.lib}", "-lcatena", "-lm"]

    def run(self, where, command, quiet=False):
        done = subprocess.run(command, cwd=self.work, env=self.env, capture_output=True, text=True)
        if done.returncode == 0 and not (quiet and done.stderr):
            return
        sys.stderr.write(done.stdout + done.stderr)
        sys.exit(f"docs: {where}: exit code {done.returncode}")

    def program(self, where, name, text):
        (self.work / name).write_text(text, encoding="utf-8")
        self.run(where, ["gcc", *self.flags, name, "-o", "program", *self.link])
        self.run(where, ["./program"], quiet=True)

    def mpi_program(self, where, name, text):
        """C or Fortran. What MPI itself has to say about one rank on this machine is not looked at."""
        fortran = name.endswith(".f90")
        compiler = "mpifort" if fortran else "mpicc"
        if not shutil.which(compiler):
            print(f"docs: {where}: skipped, there is no {compiler}")
            return
        (self.work / name).write_text(text, encoding="utf-8")
        module = "catena/share/catena/fortran/catena.f90"
        options = ["-Wall", "-Wextra", "-Werror", module] if fortran else self.flags
        self.run(where, [compiler, *options, name, "-o", "program", *self.link])
        self.run(where, ["./program"])

    def fragment(self, where, text):
        (self.work / "fragment.c").write_text(FRAGMENT % text, encoding="utf-8")
        # A fragment may leave out the checks that a program must have.
        self.run(where, ["gcc", *self.flags, "-Wno-unused", "-Wno-unused-result", "-c", "fragment.c"])


def check(prefix, path):
    counts = {"programs": 0, "fragments": 0, "command blocks": 0}
    with tempfile.TemporaryDirectory() as name:
        checker = Checker(Path(prefix).resolve(), Path(name))
        for line, language, word, text in blocks(path):
            where = f"{path}:{line}"
            if language == "sh" and word == "run":
                checker.run(where, ["bash", "-euo", "pipefail", "-c", text])
                counts["command blocks"] += 1
            elif language == "fortran" or (language == "c" and "<catena/mpi.h>" in text):
                checker.mpi_program(where, word, text)
                counts["programs"] += 1
            elif language == "c" and re.search(r"\bmain\(", text):
                checker.program(where, word or "main.c", text)
                counts["programs"] += 1
            elif language == "c":
                checker.fragment(where, text)
                counts["fragments"] += 1
    return counts


def main(args):
    if len(args) == 3 and args[0] == "--print":
        texts = [text for _, lang, word, text in blocks(args[2]) if lang == "sh" and word == args[1]]
        if not texts:
            sys.exit(f"docs: {args[2]} has no ```sh {args[1]} block")
        print("".join(texts), end="")
        return
    if len(args) < 2 or args[0].startswith("-"):
        sys.exit(__doc__)
    total = {}
    for path in args[1:]:
        for key, n in check(args[0], path).items():
            total[key] = total.get(key, 0) + n
    # Nothing found means that the marks changed, not that all is well.
    if not total["programs"] or not total["command blocks"]:
        sys.exit(f"docs: no program or no command found in {' '.join(args[1:])}")
    print("docs: right:", ", ".join(f"{n} {key}" for key, n in total.items()))


if __name__ == "__main__":
    main(sys.argv[1:])
