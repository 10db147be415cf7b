# SPDX-License-Identifier: Apache-2.0
"""Tensors from data, and what tensors have of NumPy's arrays."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _core
from ._core import Parameter, Tensor

if TYPE_CHECKING:
    import numpy.typing as npt


def tensor(data: Any, dtype: str | None = None) -> Tensor:
    """A tensor with a copy of data: numbers, nested lists or an array.

    Python's floats become f32, its integers i64. Tensor(array) uses an array without a copy.
    """
    import numpy as np

    names = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i64": np.int64,
             "i32": np.int32, "u8": np.uint8, "bool": np.bool_}
    if dtype is not None and dtype not in names:
        raise ValueError(f"dtype is {dtype!r}, expected one of {', '.join(names)}")
    array = np.array(data, dtype=names[dtype] if dtype else None)
    if dtype is None and array.dtype == np.float64 and not hasattr(data, "dtype"):
        array = array.astype(np.float32)
    return Tensor(array)


def arrays(*tensors: Tensor) -> tuple[npt.NDArray[Any], ...]:
    """The values of several tensors as NumPy arrays."""
    return tuple(t.numpy() for t in tensors)


def _numpy(self: Tensor) -> npt.NDArray[Any]:
    """The value as a NumPy array of its own."""
    import numpy as np

    source = self.cast("f32") if self.dtype == "bf16" else self
    return np.array(memoryview(source))  # type: ignore[arg-type]  # raises the first error


def _parameter_numpy(self: Parameter) -> npt.NDArray[Any]:
    """A copy of the value as a NumPy array."""
    return _numpy(self.data)


def _array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
    """For NumPy, which asks here if the value cannot be read."""
    import numpy as np

    array = np.asarray(memoryview(self))  # type: ignore[arg-type]
    return array if dtype is None and not copy else np.array(array, dtype=dtype)


def _tolist(self: Tensor) -> Any:
    """The value as nested lists."""
    return _numpy(self).tolist()


def from_dlpack(x: Any) -> Tensor:
    """A tensor that shares the memory of x, a tensor of another package on the CPU."""
    return _core.from_dlpack_capsule(x.__dlpack__())


for _name, _method in {
    "__array__": _array,
    "__dlpack__": lambda self, **options: _core.to_dlpack(self),
    "__dlpack_device__": lambda self: (1, 0),
    "numpy": _numpy,
    "tolist": _tolist,
    "ndim": property(lambda self: len(self.shape), doc="Number of dimensions."),
}.items():
    setattr(Tensor, _name, _method)
setattr(Parameter, "numpy", _parameter_numpy)
