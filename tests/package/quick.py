#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/package/quick.py BUILD [CHECK ...]: check what the packages and the build from source need,
without making a package. BUILD is the folder of the release build. Runs in dev/shell, where
`dev/check install` calls it. Checks (default: all):

  versions   what the portable archive and the wheel contain can be adapted to glibc 2.28
  hardening  run paths, stack protector, RELRO and the like in the build and an installation
  pinned     what is fetched from PyPI and GitHub is named by its hash
  debian     every installed file is in a Debian package, and catena.pc fits these packages
  folders    absolute and unusual folders of the installation
  options    options that cannot be met, what is missing, and README.md's list of packages
  compilers  clang; an MPI that is installed later
  readme     the prefix of README.md does not hide a missing Python package
  inside     Catena as a part of another CMake project
  minimal    the build without optional libraries refuses to train; a static link
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

TOP = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "packaging"))
import bundle  # noqa: E402
import hardening as elf  # noqa: E402


def run(*command, code=0, **options):
    """What a command prints. Ends the program if its exit code is another one."""
    command = [str(c) for c in command]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **options)
    if done.returncode != code:
        sys.exit(f"quick.py: {' '.join(command)} ended with code {done.returncode}\n{done.stdout}")
    return done.stdout


def versions(build, work):
    """Functions that are newer than the systems of the archive, by the code that makes it, and
    formats that Python 3.11 refuses (bindings/python/src/python.h)."""
    for source in sorted((TOP / "bindings" / "python" / "src").glob("*.c")):
        found = re.search(r'Py(Arg_|_Build|Object_Call)\w*\([^;]*"[^"]*#[^"]*"',
                          source.read_text(encoding="utf-8"))
        if found:
            sys.exit(f"quick.py: {source.name}: Python 3.11 refuses the format in {found[0]}")
    compat = bundle.add_compat(work)
    files = [build / "libcatena.so", build / "bin" / "catena", *build.glob("libcatena_*.so"),
             *build.glob("python/catena/*.so"), *(work / name for name in compat)]
    found = set()
    for file in files:
        found |= set().union(*bundle.find_homes(file, compat).values())
    return f"{len(files)} files, {len(found)} functions have a home on older systems"


def hardening(build, work):
    """Every file of the build, tests included, and every installed one. The check itself finds a
    file that is at fault."""
    weak = ("-no-pie", "-Wl,-z,norelro,-z,lazy,-z,execstack", "-Wl,-rpath,/usr/lib:")
    source = work / "weak.c"
    source.write_text("int main(void) { return 0; }\n", encoding="utf-8")
    run("gcc", *weak, source, "-o", work / "catena")
    expect("what is wrong with a weak program", [
        text.split(": ", 1)[1].split(" ")[0] for text in elf.faults(work / "catena")],
        ["RUNPATH", "executable", "not", "not", "no", "no"])
    built = elf.check(build)
    run("cmake", "--install", build, "--prefix", work / "prefix")
    return f"{built} files of the build, {elf.check(work / 'prefix')} installed"


# Text for people, and a test that installs what users get.
UNPINNED = ("dev/performance.py", "dev/published", "dev/tokens", "dev/wheel-check")


def pinned(*_):
    """No command of the project takes what an index or a tag names today."""
    count = 0
    for file in run("git", "-c", "safe.directory=*", "ls-files", "dev", "packaging", ".github",
                    ".ci", cwd=TOP).split():
        text = (TOP / file).read_text(encoding="utf-8", errors="ignore")
        found = re.findall(r'.*\bpip"?,? "?install\b.*|.*\buses: .*', text)
        loose = [line.strip() for line in found if file not in UNPINNED
                 and not re.search(r"--require-hashes|uses: \S+@[0-9a-f]{40} ", line)]
        expect(f"what {file} takes unpinned", loose, [])
        count += len(found)
    return f"{count} commands"


def copy_built(build, tree):
    """Copies the files that an installation takes from a build into another build folder."""
    for name in ("bin", "man", "python", "generated/python", "share"):
        shutil.copytree(build / name, tree / name, dirs_exist_ok=True)
    for file in build.glob("lib*.so*"):
        shutil.copy2(file, tree / file.name, follow_symlinks=False)


def debian(build, work):
    """Installs the release build as debian/rules does and lets debhelper divide the files."""
    source = work / "catena"
    source.mkdir()
    for entry in TOP.iterdir():
        if entry.name not in ("build", ".git"):
            (source / entry.name).symlink_to(entry)
    shutil.copytree(TOP / "packaging" / "debian", source / "debian")
    run("make", "-f", "debian/rules", "override_dh_auto_configure", cwd=source)
    tree = next(source.glob("obj-*"))
    run("cmake", "-DCMAKE_SKIP_RPATH=ON", tree)  # copied files have run paths of another folder
    copy_built(build, tree)
    run("env", f"DESTDIR={source}/debian/tmp", "cmake", "--install", tree)
    run("dh_install", cwd=source)
    run("dh_missing", cwd=source)
    packages = source / "debian"
    pc = next(packages.glob("libcatena-dev/**/catena.pc"))
    held = {"includedir": "catena", "fortrandir": "SOURCES", "pythondir": "catena"}
    for name, file in held.items():
        folder = os.path.normpath(run("pkg-config", f"--variable={name}", pc).strip())
        folder = os.path.relpath(folder, packages / "libcatena-dev")
        if not any((package / folder / file).exists() for package in packages.iterdir()):
            sys.exit(f"catena.pc says {name}=/{folder}, but no Debian package has {file} there")
    return f"{sum(1 for f in (packages / 'tmp').rglob('*') if f.is_file())} files"


def configure(tree, *options, source=TOP, **how):
    """What CMake prints. It prefers Makefiles, as it does for users."""
    return run("cmake", "-S", source, "-B", tree, "-G", "Unix Makefiles", *options, **how)


def expect(what, found, expected):
    if found != expected:
        sys.exit(f"quick.py: {what} is {found}, expected {expected}")


def expect_words(text, *words):
    """CMake breaks the lines of its messages."""
    plain = " ".join(text.split())
    for word in words:
        if word not in plain:
            sys.exit(f"quick.py: '{word}' is not in this output of CMake:\n{text}")


def pc_folders(pc, root):
    """The variables of catena.pc if it is installed below the folder root."""
    names = ("includedir", "libdir", "fortrandir", "pythondir")
    found = {n: run("pkg-config", f"--variable={n}", pc).strip() for n in names}
    return {n: os.path.normpath(text).removeprefix(str(root)) for n, text in found.items()}


def run_paths(tree, prefix):
    """{installed file: its run path as a folder} of the command and the Python module."""
    text = (tree / "cmake_install.cmake").read_text(encoding="utf-8")
    found = re.findall(r'RPATH_CHANGE\s+FILE "\$ENV{DESTDIR}([^"]+)"\s+OLD_RPATH "[^"]*"\s+'
                       r'NEW_RPATH "([^"]*)"', text)
    files = {file.replace("${CMAKE_INSTALL_PREFIX}", prefix): path for file, path in found}
    return {Path(file).name: os.path.normpath(path.replace("\\$ORIGIN", str(Path(file).parent)))
            for file, path in files.items() if re.search(r"bin/catena$|_core", file)}


def folders(_, work):
    """catena.pc, run paths and the module file agree with CMake about the folders."""
    prefix = "/opt/catena"
    for lib, include in (("lib64", "include"), ("/opt/lib/x", "/opt/dev/include")):
        tree = work / Path(lib).name
        configure(tree, f"-DCMAKE_INSTALL_PREFIX={prefix}", f"-DCMAKE_INSTALL_LIBDIR={lib}",
                  f"-DCMAKE_INSTALL_INCLUDEDIR={include}", "-DCATENA_STATIC=ON")
        full = os.path.join(prefix, lib)
        place = work / "root" / full.lstrip("/") / "pkgconfig"
        place.mkdir(parents=True)
        pc = shutil.copy(tree / "catena.pc", place)
        expect(f"catena.pc with {lib}", pc_folders(pc, work / "root"), {
            "includedir": os.path.join(prefix, include), "libdir": full,
            "fortrandir": f"{prefix}/share/catena/fortran",
            "pythondir": f"{full}/catena/python"})
        expect("the run path", run_paths(tree, prefix), {"catena": full, "_core.abi3.so": full})
        module = next(tree.glob("share/modulefiles/catena/*")).read_text(encoding="utf-8")
        line = re.search(r"LD_LIBRARY_PATH +(\S+)", module)[1].replace("$prefix", prefix)
        expect("LD_LIBRARY_PATH of the module file", line, full)
        exported = next(tree.glob("CMakeFiles/Export/*/catenaTargets.cmake"))
        expect_words(exported.read_text(encoding="utf-8"), "add_library(catena::catena_static")
    return "lib64 and absolute folders"


def check_apt_lines(table):
    """The documentation installs every package that CMake names if all are missing, except MPI."""
    named = set(re.findall(r"\b(?:lib|zlib|python|protobuf)[\w-]+-(?:dev|compiler)\b", table))
    for page in ("README.md", "docs/install.md"):
        text = (TOP / page).read_text(encoding="utf-8")
        line = re.search(r"apt install gcc[^`]*", text)[0]
        missing = named - {"libopenmpi-dev", "libmpich-dev"} - set(line.split())
        expect(f"what apt install of {page} lacks", missing, set())


def readme(_, work):
    """A Python that starts in $HOME does not take README.md's prefix for the package."""
    text = (TOP / "README.md").read_text(encoding="utf-8")
    prefix = re.search(r"CMAKE_INSTALL_PREFIX=[$]HOME/(\S+)", text)[1]
    (work / prefix).mkdir(parents=True)
    expect_words(run("python3", "-c", "import catena", cwd=work, code=1),
                 "No module named 'catena'")
    return f"prefix $HOME/{prefix}"


def options(_, work):
    """An explicit ON that cannot be met is an error. AUTO says what is lost."""
    names = ("ARCHIVE", "HDF5", "JPEG", "SPNG", "UTF8PROC", "YAML", "YYJSON", "ZLIB")
    without = {name: [f"-DCATENA_{name}_INCLUDE=OFF"] for name in names}
    without["PROTOBUFC"] = ["-DCATENA_PROTOC=OFF"]
    without["MPI"] = ["-DCATENA_OPENMPI_INCLUDE=OFF", "-DCATENA_MPICH_INCLUDE=OFF"]
    without["PYTHON"] = ["-DCMAKE_DISABLE_FIND_PACKAGE_Python3=ON"]
    tree = work / "tree"
    missing = [word for words in without.values() for word in words]
    text = configure(tree, *missing)
    expect_words(text, "libjpeg-turbo missing: no JPEG images (Debian: libjpeg62-turbo-dev)",
                 "Python headers missing:", "MPI missing:", "CMake Warning",
                 "this build is without yyjson")
    check_apt_lines(text)
    for name in without:
        values = (f"-DCATENA_{n}={'ON' if n == name else 'AUTO'}" for n in without)
        text = configure(tree, *values, code=1)
        expect_words(text, f"CATENA_{name} is ON, but", "(Debian: ", f"-DCATENA_{name}=OFF")
    refused = {"-DCATENA_SMPICC=ON": "expected the path of smpicc, or OFF",
               "-DBUILD_SHARED_LIBS=OFF": "-DCATENA_STATIC=ON"}
    for option, words in refused.items():
        expect_words(configure(work / "other", option, code=1), words)
        shutil.rmtree(work / "other")
    text = configure(work / "other", "-DCMAKE_DISABLE_FIND_PACKAGE_dnnl=ON",
                     "-DCATENA_DNNL_INCLUDE=OFF", code=1)
    expect_words(text, 'see "Older systems" in docs/install.md')
    return f"{len(without) + len(refused) + 1} refused"


def compilers(_, work):
    """clang has another OpenMP library than oneDNN. MPI changes the options of no source file."""
    tree = work / "gcc"
    text = configure(tree, "-DCATENA_MPI=OFF")
    if "OpenMP library" in text:
        sys.exit(f"quick.py: a warning about OpenMP with gcc:\n{text}")
    flags = tree / "CMakeFiles" / "catena_objects.dir" / "flags.make"
    before = flags.read_text(encoding="utf-8")
    configure(tree, "-DCATENA_MPI=ON")
    expect("flags.make with MPI", flags.read_text(encoding="utf-8"), before)
    text = configure(work / "clang", "-DCMAKE_C_COMPILER=clang", "-DCATENA_TOOLS=OFF")
    expect_words(text, "uses the OpenMP library libomp, but oneDNN uses libgomp")
    return "gcc without and with MPI, clang"


PARENT = """cmake_minimum_required(VERSION 3.20)
project(parent LANGUAGES C)
option(BUILD_SHARED_LIBS "" OFF)
add_subdirectory({top} catena)
add_executable(hello hello.c)
target_link_libraries(hello PRIVATE catena::catena)
install(TARGETS hello)
get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
message(STATUS "parent: build type '${{CMAKE_BUILD_TYPE}}', languages '${{languages}}'")
"""


def inside(_, work):
    """A parent project gets the library and nothing else."""
    source, tree = work / "source", work / "tree"
    source.mkdir()
    (source / "CMakeLists.txt").write_text(PARENT.format(top=TOP), encoding="utf-8")
    (source / "hello.c").write_text("int main(void) { return 0; }\n", encoding="utf-8")
    text = configure(tree, source=source)
    expect_words(text, "parent: build type '', languages 'C'", "CMAKE_BUILD_TYPE is not set")
    targets = set(re.findall(r"^[.]{3} (\w+)$", run("make", "help", cwd=tree), re.M))
    own = {t for t in targets if re.match(r"bench|example|test|catena|mpi_|hdf5_", t)}
    expect("the list of targets", own, {"catena", "catena_objects", "hdf5_plugin",
                                        "mpi_plugin_mpich", "mpi_plugin_openmpi"})
    if "file(INSTALL" in (tree / "catena" / "cmake_install.cmake").read_text(encoding="utf-8"):
        sys.exit("quick.py: a parent project installs files of Catena")
    configure(tree, "-DCATENA_INSTALL=ON", source=source)
    expect_words((tree / "catena" / "cmake_install.cmake").read_text(encoding="utf-8"),
                 "file(INSTALL")
    return f"{len(own)} targets"


CONSUMER = """cmake_minimum_required(VERSION 3.20)
project(consumer LANGUAGES C)
find_package(catena REQUIRED CONFIG)
add_executable(consumer {top}/tests/consumer/consumer.c)
target_link_libraries(consumer PRIVATE catena::catena_static)
"""


def minimal(_, work):
    """Builds the preset minimal in its own folder, mostly from the compiler's cache."""
    expect_words(run("cmake", "--preset", "minimal", cwd=TOP), "this build is without yyjson")
    run("cmake", "--build", "--preset", "minimal", "-j", os.cpu_count(), "--target",
        "catena_static", "catena_man", cwd=TOP)
    tree = TOP / "build" / "minimal"
    for name in ("x.npy", "y.npy"):  # with data that could be trained on
        np.save(work / name, np.zeros((8, 2), np.float32))
    text = run(tree / "bin" / "catena", "train", "mlp", "--data", "x.npy", "--target", "y.npy",
               "--epochs", 1, "--out", "result", cwd=work, code=3)
    expect_words(text, "catena train: this build is without yyjson", "libyyjson-dev")
    if (work / "result").exists():
        sys.exit("quick.py: a refused training made its result folder")
    run("cmake", "--install", tree, "--prefix", work / "prefix")
    (work / "CMakeLists.txt").write_text(CONSUMER.format(top=TOP), encoding="utf-8")
    configure(work / "tree", f"-DCMAKE_PREFIX_PATH={work}/prefix", source=work)
    run("cmake", "--build", work / "tree")
    shutil.rmtree(work / "prefix")  # the program must not need the shared library
    run(work / "tree" / "consumer")
    return "built, training refused, static link"


CHECKS = {f.__name__: f for f in (versions, hardening, pinned, debian, folders, options, compilers,
                                  readme, inside, minimal)}


def main():
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= CHECKS.keys():
        sys.exit(__doc__)
    build = Path(sys.argv[1]).resolve()
    for name in sys.argv[2:] or CHECKS:
        with tempfile.TemporaryDirectory() as work:
            print(f"{name}: {CHECKS[name](build, Path(work))}", flush=True)


if __name__ == "__main__":
    main()
