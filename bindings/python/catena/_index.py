# SPDX-License-Identifier: Apache-2.0
"""tensor[key]: integers, slices with step 1, None and ..."""
from __future__ import annotations

from typing import Any

from . import _core
from ._core import Tensor


def _expanded(key: Any, ndim: int) -> list[Any]:
    """The key with ... written out as full slices."""
    keys = list(key) if isinstance(key, tuple) else [key]
    real = [k for k in keys if k is not None and k is not Ellipsis]
    if len(real) > ndim:
        raise IndexError(f"got {len(real)} indices for {ndim} dimensions")
    rest = [slice(None)] * (ndim - len(real))
    if any(k is Ellipsis for k in keys):
        at = next(i for i, k in enumerate(keys) if k is Ellipsis)
        return keys[:at] + rest + [k for k in keys[at + 1:] if k is not Ellipsis]
    return keys + rest


def take(x: Tensor, key: Any) -> Tensor:
    """What x[key] means."""
    axis = 0
    for k in _expanded(key, len(x.shape)):
        if k is None:
            x = _core.unsqueeze(x, axis)
            axis += 1
        elif isinstance(k, slice):
            start, stop, by = k.indices(x.shape[axis])
            if by != 1:
                raise IndexError("slices of a tensor must have step 1")
            if (start, stop) != (0, x.shape[axis]):
                x = _core.slice(x, axis, start, max(stop - start, 0))
            axis += 1
        elif isinstance(k, int):
            if not -x.shape[axis] <= k < x.shape[axis]:
                raise IndexError(f"index {k} is out of range for length {x.shape[axis]}")
            x = _core.squeeze(_core.slice(x, axis, k, 1), axis)
        else:
            raise IndexError(f"cannot index a tensor with {k!r}; use catena.gather or embedding")
    return x
