# SPDX-License-Identifier: Apache-2.0
"""Catena: deep-learning training for CPU clusters.

    import catena as ct
    import numpy as np

    net = ct.nn.Sequential(ct.nn.Linear(2, 8), ct.tanh, ct.nn.Linear(8, 1))
    opt = ct.optim.Adam(net.parameters(), lr=0.05)
    x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.float32)
    y = np.array([[0], [1], [1], [0]], dtype=np.float32)
    for _ in range(200):
        with ct.step():
            loss = ct.mean_squared_error(net(x), y)
            opt.backward(loss)
            opt.step()
    print(loss.item())

What a step records is planned once and replayed. A read inside a step gives the value at once.
Outside of steps every op runs immediately, and nothing is differentiated.
"""
import os as _os

from . import _core
from ._core import (ArgumentError, Context, DtypeError, Error, FileError, FormatError, NotFound,
                    OutOfMemory, Parameter, ShapeError, Tensor, current_context, grad, retain,
                    retained_value, use_context)
from . import _ops
from ._ops import *  # noqa: F401,F403
from ._index import take as _take

_core.set_package(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)
_core.set_index(_take)

from . import data, dist, nn, optim, train, zoo  # noqa: E402
from ._show import plan  # noqa: E402
from ._steps import evaluation, no_grad, recompute, step  # noqa: E402
from ._tensor import arrays, from_dlpack, tensor  # noqa: E402
from ._weights import weights  # noqa: E402

__version__ = _core.version_text()
__all__ = ["ArgumentError", "Context", "DtypeError", "Error", "FileError", "FormatError",
           "NotFound", "OutOfMemory", "Parameter", "ShapeError", "Tensor", "arrays",
           "current_context", "data", "dist", "evaluation", "from_dlpack", "grad", "nn", "no_grad",
           "optim", "plan", "recompute", "retain", "retained_value", "step", "tensor", "train",
           "use_context", "weights", "zoo"]
__all__ += _ops.__all__
