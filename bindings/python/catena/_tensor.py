# SPDX-License-Identifier: Apache-2.0
"""Tensors from data, and what tensors have of NumPy's arrays."""
from . import _core
from ._core import Parameter, Tensor


def tensor(data, dtype=None):
    """A tensor with a copy of data: numbers, nested lists or an array.

    Python's floats become f32, its integers i64. Tensor(array) uses an array without a copy.
    """
    import numpy as np

    names = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i64": np.int64,
             "i32": np.int32, "u8": np.uint8, "bool": np.bool_}
    if dtype is not None and dtype not in names:
        raise ValueError(f"dtype is {dtype!r}, expected one of {', '.join(names)}")
    array = np.array(data, dtype=names.get(dtype))
    if dtype is None and array.dtype == np.float64 and not hasattr(data, "dtype"):
        array = array.astype(np.float32)
    return Tensor(array)


def arrays(*tensors):
    """The values of several tensors as NumPy arrays."""
    return tuple(t.numpy() for t in tensors)


def _numpy(self):
    """The value as a NumPy array of its own."""
    import numpy as np

    source = self.cast("f32") if self.dtype == "bf16" else self
    return np.array(source)


def _tolist(self):
    """The value as nested lists."""
    return _numpy(self).tolist()


def from_dlpack(x):
    """A tensor that shares the memory of x, a tensor of another package on the CPU."""
    return _core.from_dlpack_capsule(x.__dlpack__())


Tensor.__dlpack__ = lambda self, **options: _core.to_dlpack(self)
Tensor.__dlpack_device__ = lambda self: (1, 0)
Tensor.numpy = _numpy
Tensor.tolist = _tolist
Tensor.ndim = property(lambda self: len(self.shape), doc="Number of dimensions.")
Parameter.numpy = lambda self: _numpy(self.data)
