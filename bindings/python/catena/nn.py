# SPDX-License-Identifier: Apache-2.0
"""Modules. A module of your own is a class with attributes and a forward method:

    class Net(catena.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = catena.nn.Linear(784, 10)
            self.scale = catena.nn.parameter((1,), init=1.0)

        def forward(self, x):
            return self.fc(x) * self.scale

Attributes that are modules or parameters get the attribute's name in the tree: "fc.weight". Names
of weights are those of PyTorch.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from . import _core

if TYPE_CHECKING:
    import numpy.typing as npt

    from ._core import Handle, Init, Operand, Parameter, Shape, Tensor


class _Wanted(NamedTuple):
    """A parameter that becomes real when it is assigned to an attribute of a module."""

    shape: Shape
    init: Init | None
    dtype: str
    state: bool


def parameter(shape: Shape, init: Init | None = None, dtype: str = "f32",
              state: bool = False) -> Parameter:
    """A new parameter: assign it to an attribute of a module, which makes it.

    Parameters:
        shape: one number, or several
        init: a number, the name of a kind ("he_normal", "glorot_uniform", ...) or a dictionary:
            {"kind": "normal", "std": 0.02}. None: zeros
        dtype: "f32", "f64" and so on
        state: True: a state, which optimizers leave alone

    Raises: ArgumentError and ValueError, when it is assigned.
    """
    return cast("Parameter", _Wanted(shape, init, dtype, state))


class Module:
    """The base class of modules. A module of your own calls super().__init__() first."""

    _handle: Handle

    def __init__(self) -> None:
        object.__setattr__(self, "_handle", _core.module_new(self))

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any: ...

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Module):
            if "_handle" not in self.__dict__:
                raise RuntimeError("call super().__init__() before assigning modules")
            _core.module_add(self, name, value)
        elif isinstance(value, _Wanted):
            make = _core.module_state if value.state else _core.module_param
            value = make(self, name, value.shape, value.init, value.dtype)
        object.__setattr__(self, name, value)

    def forward(self, *inputs: Any) -> Any:
        """What the module computes. A module of your own has this method."""
        raise NotImplementedError(f"{type(self).__name__} has no forward method")

    def __call__(self, *inputs: Any) -> Any:
        return self.forward(*inputs)

    def parameters(self) -> list[Parameter]:
        """All parameters of this module and those in it, for an optimizer."""
        return _core.params(self)

    def named_parameters(self) -> list[tuple[str, Parameter]]:
        """The same with their names in this module."""
        return [(p.name, p) for p in self.parameters()]

    def children(self) -> list[Module]:
        """The modules that are attributes of this one."""
        return [m for m in self.__dict__.values() if isinstance(m, Module)]

    def modules(self) -> Iterator[Module]:
        """This module and all modules in it."""
        yield self
        for child in self.children():
            yield from child.modules()

    def state_dict(self) -> dict[str, npt.NDArray[Any]]:
        """The values of all parameters and states by name, as NumPy arrays."""
        return {v.name: v.numpy() for v in _core.module_variables(self)}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """Set parameters and states by name. Values are arrays, or tensors of PyTorch."""
        own = {v.name: v for v in _core.module_variables(self)}
        missing, unexpected = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
        if strict and (missing or unexpected):
            raise KeyError(f"missing: {', '.join(missing) or 'none'}; "
                           f"unexpected: {', '.join(unexpected) or 'none'}")
        for name in own.keys() & state.keys():
            own[name].data = _array(state[name], own[name])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all parameters and states to a safetensors file."""
        _core.weights_save(self, str(path))

    def load(self, path: str | os.PathLike[str], partial: bool = False,
             new_head: bool = False) -> list[str]:
        """Read them from a file of weights: see catena.weights for the formats.

        partial=True ignores names that only the module or only the file has. With new_head=True,
        for fine-tuning, the last layer may have another number of outputs than in the file; then
        its parameters keep their values. Returns the names of these parameters. Raises NotFound,
        ShapeError or DtypeError with the names that do not fit, and FileError.
        """
        if new_head:
            if partial:
                raise ValueError("partial and new_head cannot be combined")
            return _core.load_new_head(self, str(path))
        _core.weights_load(self, str(path), int(partial))
        return []

    def freeze(self, *patterns: str, statistics: bool = True) -> Module:
        """Do not train some parameters: names of modules ("layer1") or patterns ("*.bias").

        Without patterns: all. Batch normalisations whose parameters are all frozen then use and
        keep their running statistics in training too, unless statistics=False. Freeze before
        making the optimizer, so that it needs no memory for frozen parameters. Raises NotFound
        with the names that there are if a pattern matches nothing.
        """
        for pattern in patterns or (None,):
            _core.module_set_trainable(self, pattern, 0)
        if statistics:
            _core.module_freeze_statistics(self, None, 1)
        return self

    def unfreeze(self, *patterns: str, statistics: bool = True) -> Module:
        """Train parameters again that freeze() has frozen; without patterns: all.

        Batch normalisations of these names update their statistics again, unless
        statistics=False.
        """
        for pattern in patterns or (None,):
            _core.module_set_trainable(self, pattern, 1)
            if statistics:
                _core.module_freeze_statistics(self, pattern, 0)
        return self

    def train_only(self, *patterns: str, statistics: bool = True) -> Module:
        """Freeze all parameters but these, as freeze() does."""
        _core.module_set_trainable(self, None, 0)
        for pattern in patterns:
            _core.module_set_trainable(self, pattern, 1)
        if statistics:
            _core.module_freeze_statistics(self, None, 1)
        return self

    def export_onnx(self, path: str | os.PathLike[str], shape: Sequence[int], dtype: str = "f32",
                    *, batch: int = 0, fold: bool = False, external: bool = False,
                    opset: int = 18) -> None:
        """Write the module in evaluation mode as an ONNX model with one input.

        shape is that of one sample; the model takes any number of them, or exactly `batch`. fold
        makes batch normalisation part of the convolution before it, and external puts the weights
        into a second file, path.data. Raises Error with all ops that ONNX cannot express.
        """
        _core.onnx_export(self, str(path), shape, dtype, batch, fold, external, opset)

    def recompute(self, on: bool = True) -> Module:
        """Compute activations of this module again in the backward pass instead of keeping them."""
        _core.module_set_recompute(self, int(on))
        return self

    def __repr__(self) -> str:
        inner = ", ".join(f"{k}={type(v).__name__}" for k, v in self.__dict__.items()
                          if isinstance(v, Module))
        return f"{type(self).__name__}({inner})"


def _array(value: Any, like: Parameter) -> npt.NDArray[Any]:
    """An array of the type of a parameter."""
    import numpy as np

    if hasattr(value, "detach"):  # a tensor of PyTorch or of this package
        value = value.detach()
    types: dict[str, Any] = {"f32": np.float32, "f64": np.float64, "i64": np.int64,
                             "i32": np.int32, "u8": np.uint8, "bool": np.bool_,
                             "f16": np.float16}
    array = np.ascontiguousarray(np.asarray(value), dtype=types[like.dtype])
    if array.shape != like.shape:
        raise ValueError(f"{like.name} has shape {like.shape}, the value has {array.shape}")
    return array


class Native(Module):
    """A module of the library."""

    def __init__(self, handle: Handle) -> None:
        object.__setattr__(self, "_handle", handle)

    def forward(self, x: Operand) -> Tensor:
        """What the module computes."""
        return _core.call(self, x)

    def __call__(self, x: Operand) -> Tensor:
        return self.forward(x)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _bias(bias: bool | Init) -> dict[str, Any]:
    """The options of a bias: True, False, or its initial value."""
    if isinstance(bias, bool):
        return {} if bias else {"no_bias": 1}
    return {"bias": bias}


class Linear(Native):
    """y = x weight^T + bias. (...,inputs) -> (...,outputs).

    Parameters:
        inputs, outputs: lengths of the last dimension
        bias: False: none. Instead of True: its initial value
        weight: initial value, as of nn.parameter. None: uniform from -1/sqrt(inputs) to
            1/sqrt(inputs), also for the bias

    Names: weight (outputs,inputs), bias (outputs). Raises: ArgumentError; when called, ShapeError
    and DtypeError.
    """

    def __init__(self, inputs: int, outputs: int, bias: bool | Init = True,
                 weight: Init | None = None) -> None:
        super().__init__(_core.linear_new(inputs, outputs, weight=weight, **_bias(bias)))


class Conv(Native):
    """Convolution over 1, 2 or 3 dimensions. (N,inputs,...) -> (N,outputs,...).

    Parameters:
        inputs, outputs: numbers of channels
        kernel: one length per dimension; a single number stands for two dimensions
        stride, pad, dilation: one number, or one per dimension
        pad_end: the same after the last element. None: as pad
        groups: the channels are divided into groups that do not mix
        bias: False: none. Instead of True: its initial value
        weight: initial value, as of nn.parameter

    Names: weight (outputs,inputs/groups,...), bias (outputs). Raises: ArgumentError; when called,
    ShapeError and DtypeError.
    """

    def __init__(self, inputs: int, outputs: int, kernel: Shape, stride: Shape = 1,
                 pad: Shape = 0, pad_end: Shape | None = None, dilation: Shape = 1,
                 groups: int = 1, bias: bool | Init = True, weight: Init | None = None) -> None:
        kernel = (kernel, kernel) if isinstance(kernel, int) else tuple(kernel)
        super().__init__(_core.conv_new(inputs, outputs, kernel, stride, pad, pad_end, dilation,
                                        groups, weight=weight, **_bias(bias)))


class BatchNorm(Native):
    """Batch normalisation of channels. (N,channels,...) -> the same shape.

    Parameters:
        channels: length of the second dimension
        eps: added to the variance
        momentum: share of the new batch in the running mean and variance
        affine: False: without weight and bias

    Names: weight, bias, running_mean, running_var. Raises: when called, ShapeError, DtypeError.
    """

    def __init__(self, channels: int, eps: float = 1e-5, momentum: float = 0.1,
                 affine: bool = True) -> None:
        super().__init__(_core.batch_norm_new(channels, eps, momentum, int(not affine)))


class LayerNorm(Native):
    """Normalisation over the last dimensions, which have this shape.

    Parameters:
        shape: one number, or several
        eps: added to the variance
        affine: False: without weight and bias
        bias: False: without bias

    Names: weight, bias. Raises: when called, ShapeError and DtypeError.
    """

    def __init__(self, shape: Shape, eps: float = 1e-5, affine: bool = True,
                 bias: bool = True) -> None:
        super().__init__(_core.layer_norm_new(shape, eps, int(not affine), int(not bias)))


class RMSNorm(Native):
    """Normalisation by the root of the mean square over the last dimensions.

    Parameters:
        shape: of these dimensions: one number, or several
        eps: added to the mean square
        affine: False: without weight

    Names: weight. Raises: when called, ShapeError and DtypeError.
    """

    def __init__(self, shape: Shape, eps: float = 1e-5, affine: bool = True) -> None:
        super().__init__(_core.rms_norm_new(shape, eps, int(not affine)))


class Embedding(Native):
    """Rows of a table, chosen by indices. (...) of i64 or i32 -> (...,width).

    Parameters:
        rows, width: of the table
        weight: initial value, as of nn.parameter. None: normal with standard deviation 1

    Names: weight (rows,width). Raises: ArgumentError for an index out of range, when it runs.
    """

    def __init__(self, rows: int, width: int, weight: Init | None = None) -> None:
        super().__init__(_core.embedding_new(rows, width, **_init(weight)))


def _init(value: Init | None) -> dict[str, Any]:
    """An initial value as options."""
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    return {"kind": value} if isinstance(value, str) else {"kind": "constant", "value": value}


class Dropout(Native):
    """Sets a share of the elements to zero in training, and scales the others."""

    def __init__(self, rate: float = 0.5) -> None:
        super().__init__(_core.dropout_new(rate))


class Flatten(Native):
    """All dimensions after the first as one."""

    def __init__(self) -> None:
        super().__init__(_core.flatten_new())


class Sequential(Module):
    """Modules and functions, one after another: Sequential(Linear(2, 8), catena.relu). The names
    of the modules are their numbers: "0.weight"."""

    def __init__(self, *steps: Callable[..., Any]) -> None:
        super().__init__()
        self.steps: list[Callable[..., Any]] = []
        for i, one in enumerate(steps):
            if isinstance(one, Module):
                setattr(self, str(i), one)
            self.steps.append(one)

    def forward(self, x: Operand) -> Any:
        """Call all of them."""
        for one in self.steps:
            x = one(x)
        return x

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, i: int) -> Callable[..., Any]:
        return self.steps[i]
