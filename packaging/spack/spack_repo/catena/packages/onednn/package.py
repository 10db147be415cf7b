# SPDX-License-Identifier: Apache-2.0

from spack_repo.builtin.packages.onednn.package import Onednn as BuiltinOnednn

from spack.package import *


class Onednn(BuiltinOnednn):
    """oneDNN as in Spack's own repository, whose newest release is 3.0: Catena needs 3.2."""

    version("3.7.3", sha256="071f289dc961b43a3b7c8cbe8a305290a7c5d308ec4b2f586397749abdc88296")
