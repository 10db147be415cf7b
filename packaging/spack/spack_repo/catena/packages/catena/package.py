# SPDX-License-Identifier: Apache-2.0

import os

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Catena(CMakePackage):
    """Deep-learning training library in C for CPU clusters, with the command catena."""

    # There is no public download. `spack dev-build` builds a checkout, and
    # `spack install --no-checksum` takes this archive from the current folder: docs/install.md.
    manual_download = True
    url = f"file://{os.getcwd()}/catena-0.1.0.tar.gz"

    license("Apache-2.0")

    version("0.1.0")

    # Variant, CMake option, library, purpose.
    libraries = (
        ("zlib", "ZLIB", "zlib-api", "Read gzip-compressed idx files"),
        ("json", "YYJSON", "yyjson", "Read and write safetensors; needed to save a training"),
        ("yaml", "YAML", "libyaml", "Read configuration files; needed to resume a training"),
        ("jpeg", "JPEG", "jpeg", "Read JPEG images"),
        ("png", "SPNG", "libspng", "Read PNG images"),
        ("tar", "ARCHIVE", "libarchive", "Read tar shards without an index"),
        ("tokenizers", "UTF8PROC", "utf8proc+shared", "Tokenize text"),
        ("hdf5", "HDF5", "hdf5", "Read HDF5 arrays"),
        ("tensorboard", "PROTOBUFC", "protobuf-c", "Write TensorBoard events, open ONNX models"),
    )
    for _variant, _option, _library, _purpose in libraries:
        variant(_variant, default=True, description=_purpose)
        depends_on(_library, when=f"+{_variant}")

    variant("mpi", default=True, description="Train on several ranks with the MPI of this spec")
    variant("python", default=False, description="Build the Python package")
    variant("scale", default=False, description="Simulate large machines with SimGrid")
    variant("static", default=False, description="Also build libcatena.a")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.20:", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("onednn@3.2: cpu_runtime=omp")
    depends_on("hwloc@2:")
    depends_on("xxhash")
    depends_on("mpi", when="+mpi")
    depends_on("python@3.11:", type=("build", "run"), when="+python")
    depends_on("py-numpy", type=("build", "run"), when="+python")
    depends_on("simgrid@4:+smpi", when="+scale")

    conflicts("%gcc@:9", msg="gcc 10 or newer is needed")

    def cmake_args(self):
        args = [
            self.define_from_variant(f"CATENA_{option}", name)
            for name, option, _, _ in self.libraries
        ]
        args += [
            self.define_from_variant("CATENA_MPI", "mpi"),
            self.define_from_variant("CATENA_PYTHON", "python"),
            self.define_from_variant("CATENA_STATIC", "static"),
        ]
        if not self.spec.satisfies("+scale"):
            args.append(self.define("CATENA_SMPICC", False))
        return args

    def setup_run_environment(self, env):
        if self.spec.satisfies("+python"):
            for folder in find(self.prefix, "python", recursive=True):
                if folder.endswith(join_path("catena", "python")):
                    env.prepend_path("PYTHONPATH", folder)

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_command(self):
        Executable(self.prefix.bin.catena)("selftest")
