# SPDX-License-Identifier: Apache-2.0

from spack_repo.builtin.packages.yyjson.package import Yyjson as BuiltinYyjson

from spack.package import *


class Yyjson(BuiltinYyjson):
    """yyjson as in Spack's own repository, but as a shared library, for libcatena.so."""

    def cmake_args(self):
        return super().cmake_args() + [self.define("BUILD_SHARED_LIBS", True)]
