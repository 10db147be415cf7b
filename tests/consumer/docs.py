#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the code blocks of the documentation: compiles and runs them against an installed Catena.

  docs.py PREFIX FILE.md ...    check the files
  docs.py --print WORD FILE.md  print the ```sh blocks marked with WORD, for other tests to run

- A C block with main() is a program. It is run, must end with 0 and print nothing to stderr. Any
  other C block is the body of a function with the parameters below and is only compiled.
- ```cpp is the same in C++17, with references to such objects.
- A program that includes <catena/mpi.h>, and ```fortran, is compiled by mpicc or mpifort and run as
  one rank. Without these compilers it is skipped with a message.
- ```python run, ```c run, ```cpp run and ```fortran run: the blocks of a page in one language are
  one program, named after the page, which grows from block to block and is run each time. In C, C++
  and Fortran the blocks take the place of the line with `...` in the page's ```c frame; on such a
  page the programs of all languages must print the same. Without the Python package or the compiler
  they are skipped with a message.
- A table after <!-- python run --> is such a block too: the code in its second column is run.
- ```c NAME saves the block as file NAME for later commands. If NAME is a path below src/ of the
  project, the block is an op file. It is compiled with the project's internal headers, not run.
- The commands of ```sh run are run in order, in one folder per document that is also their HOME,
  with the prefix as $HOME/opt/catena and its bin in the PATH. Exported variables stay set.
- ```output shows what the program or command before it prints. The words must be the same; a number
  or time may be any other one, and a line `...` stands for any lines. The pages call this machine
  node1. With ```output exact, the numbers must be the same too.
- ```sh run needs PROGRAM, and the same for other languages, is skipped with a message if that
  program is missing.
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

BLOCK = re.compile(r"^```(c|cpp|sh|fortran|python|output)\b[ ]*(\S*)[ ]*(?:needs (\S+))?[ ]*\n"
                   r"(.*?)^```[ ]*$", re.M | re.S)
TABLE = re.compile(r"^<!-- python run -->\n((?:\|.*\n)+)", re.M)
NUMBER = re.compile(r"(?<![A-Za-z_])[-+]?\d[\d.,:]*(?:[eE][-+]?\d+)?")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
HOST = re.compile(rf"(?<![\w.-]){re.escape(socket.gethostname())}(?![\w.-])")
SUFFIX = {"c": "c", "cpp": "cpp", "fortran": "f90", "python": "py"}
TOP = Path(__file__).resolve().parents[2]
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
CPP_FRAGMENT = """#include <catena/catena.hpp>
using namespace catena;
void fragment(ContextRef ctx, ModuleRef net, OptimRef opt, LoaderRef loader, const Tensor &x,
              const Tensor &t);
void fragment(ContextRef ctx, ModuleRef net, OptimRef opt, LoaderRef loader, const Tensor &x,
              const Tensor &t)
{
    (void)ctx, (void)net, (void)opt, (void)loader, (void)x, (void)t;
#line 1
%s}
"""


def line_pattern(line):
    """A pattern for a line of output in which numbers, times and the width of blanks may differ."""
    words = [re.escape(NUMBER.sub("\0", word)) for word in TIME.sub("\1", line).split()]
    number = r"[-+]?[\d.,:]+(?:[eE][-+]?\d+)?"
    words = [word.replace("\0", number).replace("\1", TIME.pattern) for word in words]
    pattern = r"[^\S\n]+".join(words)
    return r"[^\S\n]*" + pattern + r"[^\S\n]*\n"


def blocks(path):
    """Yields (line, language, word after it, program it needs, text) of each block."""
    text = Path(path).read_text(encoding="utf-8")
    for m in sorted((*BLOCK.finditer(text), *TABLE.finditer(text)), key=lambda m: m.start()):
        line = text.count("\n", 0, m.start()) + 1
        if m.re is TABLE:
            yield line, "python", "run", None, code_of(m[1])
        else:
            yield line, m[1], m[2], m[3], m[4]


def code_of(table):
    """The code in the second column of a table, one line for each piece."""
    cells = (re.split(r"(?<!\\)\|", row)[2] for row in table.splitlines())
    return "".join(code + "\n" for cell in cells for code in re.findall(r"`([^`]+)`", cell))


def uses_mpi(text):
    return re.search(r"mpi", text, re.I) is not None


def framed(frame, text):
    """The frame of a program with the text in place of its line with dots."""
    return re.sub(r"^.*\.\.\..*\n", lambda _: text, frame, count=1, flags=re.M)


class Checker:
    def __init__(self, prefix, work, page):
        (work / "opt").mkdir()
        (work / "opt" / "catena").symlink_to(prefix)
        self.work, self.page = work, page
        self.env = {**os.environ, "HOME": str(work), "PATH": f"{prefix}/bin:{os.environ['PATH']}",
                    # Pages are checked at the same time: threads that wait must not keep a core.
                    "OMP_WAIT_POLICY": "passive",
                    # Without these, Open MPI refuses to run as root, as the tests do.
                    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        self.lib = next(Path(prefix).rglob("catena.pc")).parent.parent
        self.flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{prefix}/include"]
        self.cpp = ["g++", "-std=c++17", *self.flags[1:]]
        self.printed = ""  # by the last program or command; None: it was skipped
        self.frames = {}  # of each language
        self.pieces = {}  # of each language: its blocks so far, and the lines that they print
        self.told = {}  # what the program in each language prints
        self.link = [f"-L{self.lib}", f"-Wl,-rpath,{self.lib}", "-lcatena", "-lm"]

    def skip(self, where, why):
        print(f"docs: {where}: skipped, {why}")
        self.printed = None

    def run(self, where, command, quiet=False):
        done = subprocess.run(command, cwd=self.work, env=self.env, capture_output=True, text=True)
        self.printed = HOST.sub("node1", done.stdout + done.stderr)
        if done.returncode == 0 and not (quiet and done.stderr):
            return done.stdout
        sys.stderr.write(done.stdout + done.stderr)
        sys.exit(f"docs: {where}: exit code {done.returncode}")

    def commands(self, where, text):
        """Runs commands in a shell that knows what the blocks before it exported."""
        text = f"[ ! -f ~/.exported ] || . ~/.exported\n{text}\nexport -p > ~/.exported\n"
        self.run(where, ["bash", "-euo", "pipefail", "-c", text])

    def build(self, where, name, text, *options):
        """Compiles C, C++ or Fortran as ./program. False: there is no compiler."""
        (self.work / name).write_text(text, encoding="utf-8")
        fortran = name.endswith(".f90")
        compiler = "mpifort" if fortran else "mpicc" if "<catena/mpi.h>" in text else "gcc"
        if not shutil.which(compiler):
            self.skip(where, f"{compiler} was not found")
            return False
        command = [compiler, *self.flags]
        if name.endswith(".cpp"):
            command = self.cpp
        elif fortran:
            command = [compiler, "-Wall", "-Wextra", "-Werror"]
        modules = self.fortran_modules(where) if fortran else []
        self.run(where, [*command, *options, name, *modules, "-o", "program", *self.link])
        return True

    def program(self, where, name, text):
        """Messages on stderr are ignored where MPI may run: it prints some for one rank."""
        if self.build(where, name, text):
            self.run(where, ["./program"], quiet=not uses_mpi(text))

    def fortran_modules(self, where):
        """The object files of module catena, compiled once for each document."""
        folder = Path("opt/catena/share/catena/fortran")
        sources = (self.work / folder / "SOURCES").read_text(encoding="utf-8").split()
        objects = [Path(source).stem + ".o" for source in sources]
        if not (self.work / objects[-1]).is_file():
            self.run(where, ["mpifort", "-c", *(str(folder / source) for source in sources)])
        return objects

    def op_file(self, where, text):
        """An op of the library, as a tutorial shows it."""
        (self.work / "op.c").write_text(text, encoding="utf-8")
        generated = next(iter(sorted(TOP.glob("build/*/generated/catena_config.h"))), None)
        if not generated:
            print(f"docs: {where}: skipped, there is no build of the library")
            return
        flags = [*self.flags, "-fopenmp", "-Wno-unused", f"-I{TOP}/src", f"-I{generated.parent}"]
        self.run(where, ["gcc", *flags, "-c", "op.c"])

    def piece(self, where, language, text):
        """Adds a block to the program of a page, and runs the program so far. What the blocks
        before it print is left out."""
        before, lines = self.pieces.get(language, ("", 0))
        whole = framed(self.frames.get(language, "...\n"), before + text)
        name = f"{self.page}.{SUFFIX[language]}"
        if language == "python":
            package = self.lib / "catena" / "python"
            if not package.exists():
                self.skip(where, "the Python package is not installed")
                return
            self.env["PYTHONPATH"] = str(package)
            (self.work / name).write_text(whole, encoding="utf-8")
        elif not self.build(where, name, whole, "-Wno-unused"):
            return
        command = ["python3", name] if language == "python" else ["./program"]
        self.told[language] = self.run(where, command, quiet=not uses_mpi(whole))
        printed = self.printed.splitlines(keepends=True)
        self.pieces[language] = before + text, len(printed)
        self.printed = "".join(printed[lines:])

    def compare(self, path):
        """The programs of a page with frames print the same."""
        if self.frames and len(set(self.told.values())) > 1:
            for language, text in self.told.items():
                sys.stderr.write(f"{language}:\n{text}")
            sys.exit(f"docs: {path}: the programs do not print the same")

    def output(self, where, text, exact):
        # A line that only a slow disk causes.
        printed = re.sub(r"^Saving a checkpoint costs .*\n", "", self.printed, flags=re.M)
        if exact and text in self.printed:
            return
        wanted = re.split(r"^\.\.\.\n", text, flags=re.M)
        parts = ("".join(line_pattern(line) for line in part.splitlines()) for part in wanted)
        pattern = "^" + ".*".join(parts)  # from the beginning of a line to the end of one
        for all_lines in (self.printed, printed) if not exact else ():
            if re.search(pattern, all_lines, re.S | re.M):
                return
        sys.stderr.write(self.printed)
        sys.exit(f"docs: {where}: the output shown is not what was printed")

    def fragment(self, where, text):
        (self.work / "fragment.c").write_text(FRAGMENT % text, encoding="utf-8")
        # A fragment may leave out the checks that a program must have.
        flags = [*self.flags, "-fopenmp", "-Wno-unused", "-Wno-unused-result"]
        self.run(where, ["gcc", *flags, "-c", "fragment.c"])

    def cpp_fragment(self, where, text):
        (self.work / "fragment.cpp").write_text(CPP_FRAGMENT % text, encoding="utf-8")
        self.run(where, [*self.cpp, "-Wno-unused", "-c", "fragment.cpp"])


    def block(self, where, language, word, text):
        """Checks one block. Returns what kind it was, None if there is nothing to check."""
        if language == "sh":
            if word != "run":
                return None
            self.commands(where, text)
            return "command blocks"
        if language == "output":
            if self.printed is None:
                return None
            self.output(where, text, word == "exact")
            return "outputs"
        if word == "frame":
            self.frames[language] = text
            return None
        if word == "run":
            self.piece(where, language, text)
            return "programs"
        if language == "fortran" or (language in ("c", "cpp") and re.search(r"\bmain\(", text)):
            self.program(where, word or f"main.{SUFFIX[language]}", text)
            return "programs"
        if language == "python":
            return None
        how = self.op_file if word.startswith("src/") else \
            self.cpp_fragment if language == "cpp" else self.fragment
        how(where, text)
        return "fragments"


def check(prefix, path):
    counts = {"programs": 0, "fragments": 0, "command blocks": 0, "outputs": 0}
    with tempfile.TemporaryDirectory() as name:
        checker = Checker(Path(prefix).resolve(), Path(name), Path(path).stem)
        for line, language, word, needs, text in blocks(path):
            where = f"{path}:{line}"
            if needs and not shutil.which(needs):
                checker.skip(where, f"there is no {needs}")
                continue
            kind = checker.block(where, language, word, text)
            if kind:
                counts[kind] += 1
        checker.compare(path)
    return counts


def main(args):
    if len(args) == 3 and args[0] == "--print":
        texts = [b[4] for b in blocks(args[2]) if b[1:3] == ("sh", args[1])]
        if not texts:
            sys.exit(f"docs: {args[2]} has no ```sh {args[1]} block")
        print("".join(texts), end="")
        return
    if len(args) < 2 or args[0].startswith("-"):
        sys.exit(__doc__)
    total = {}
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for counts in pool.map(check, repeat(args[0]), args[1:]):
            for key, n in counts.items():
                total[key] = total.get(key, 0) + n
    # Finding nothing means that the marks changed, not that all is well.
    if not total["programs"] or not total["command blocks"]:
        sys.exit(f"docs: no program or no command found in {' '.join(args[1:])}")
    print("docs: ok:", ", ".join(f"{n} {key}" for key, n in total.items()))


if __name__ == "__main__":
    main(sys.argv[1:])
