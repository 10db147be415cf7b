# SPDX-License-Identifier: Apache-2.0
"""Files of torch.save, without PyTorch: the arrays of a state_dict.

Such a file is a zip archive with a pickle. Only what a state_dict needs is allowed in it, so a file
from a stranger cannot run code.
"""
from __future__ import annotations

import collections
import os
import pickle
import zipfile
from collections.abc import Sequence
from typing import Any

TYPES = {"FloatStorage": "<f4", "DoubleStorage": "<f8", "HalfStorage": "<f2", "LongStorage": "<i8",
         "IntStorage": "<i4", "ByteStorage": "<u1", "BoolStorage": "?", "BFloat16Storage": "bf16"}


class _Storage:
    """Stands for the type of a storage."""

    def __init__(self, name: str) -> None:
        self.name = name


def _rebuild(storage: Any, offset: int, size: Sequence[int], stride: Sequence[int],
             *unused: Any) -> Any:
    """An array of a storage, as torch._utils._rebuild_tensor_v2 makes a tensor."""
    import numpy as np

    steps = [s * storage.itemsize for s in stride]
    last = offset + sum((n - 1) * s for n, s in zip(size, stride)) if 0 not in size else 0
    if min([offset, *stride, *size], default=0) < 0 or last >= max(len(storage), 1):
        raise pickle.UnpicklingError("a tensor does not lie within its storage")
    return np.lib.stride_tricks.as_strided(storage[offset:], size, steps).copy()


class _Reader(pickle.Unpickler):
    def __init__(self, archive: zipfile.ZipFile, folder: str) -> None:
        super().__init__(archive.open(f"{folder}/data.pkl"))
        self.archive, self.folder = archive, folder
        self.storages: dict[Any, Any] = {}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if module == "torch._utils" and name == "_rebuild_tensor_v2":
            return _rebuild
        if module == "torch._utils" and name == "_rebuild_parameter":
            return lambda array, *unused: array
        if module == "torch" and name in TYPES:
            return _Storage(name)
        raise pickle.UnpicklingError(f"{module}.{name} is not part of a state_dict; save "
                                     "net.state_dict() instead of the whole object")

    def persistent_load(self, key: Any) -> Any:
        import numpy as np

        _, kind, number, *_ = key
        if number not in self.storages:
            data = self.archive.read(f"{self.folder}/data/{number}")
            if TYPES[kind.name] == "bf16":
                bits = np.frombuffer(data, "<u2").astype("<u4") << 16
                self.storages[number] = bits.view("<f4")
            else:
                self.storages[number] = np.frombuffer(data, TYPES[kind.name])
        return self.storages[number]


def load_pt(path: str | os.PathLike[str]) -> Any:
    """The content of a file of torch.save, with NumPy arrays instead of tensors; bf16 becomes f32.
    For a state_dict: net.load_state_dict(catena.load_pt("model.pt"))."""
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is not a file of torch.save since PyTorch 1.6")
    with zipfile.ZipFile(path) as archive:
        folder = archive.namelist()[0].split("/")[0]
        return _Reader(archive, folder).load()
