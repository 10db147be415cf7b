# SPDX-License-Identifier: Apache-2.0
"""Files of weights: safetensors, and what torch.save has written, without PyTorch."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from . import _core

if TYPE_CHECKING:
    import numpy.typing as npt


def weights(path: str | os.PathLike[str]) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a file of weights by name, in the order of the file; bf16 becomes f32.

    path is a safetensors file, a file of torch.save (.pt, .pth, .bin), the index of a model in
    several files, or the folder of a published model. Nothing in a file is executed. Nested
    dictionaries become names with dots. Raises FileError, FormatError or DtypeError.

        net.load_state_dict(catena.weights("model.pt"))
    """
    return {name: x.numpy() for name, x in _core.weights_values(str(path)).items()}
