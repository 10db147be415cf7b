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
from . import _core


class parameter:
    """A parameter to be made: assign it to an attribute of a module.

    init is a number, the name of a kind ("he_normal", "glorot_uniform", ...) or a dictionary:
    {"kind": "normal", "std": 0.02}. state=True makes a state, which optimizers leave alone.
    """

    def __init__(self, shape, init=None, dtype="f32", state=False):
        self.shape, self.init, self.dtype, self.state = shape, init, dtype, state


class Module:
    """The base class of modules."""

    def __init__(self):
        object.__setattr__(self, "_handle", _core.module_new(self))

    def __setattr__(self, name, value):
        if isinstance(value, Module):
            if "_handle" not in self.__dict__:
                raise RuntimeError("call super().__init__() before assigning modules")
            _core.module_add(self, name, value)
        elif isinstance(value, parameter):
            make = _core.module_state if value.state else _core.module_param
            value = make(self, name, value.shape, value.init, value.dtype)
        object.__setattr__(self, name, value)

    def forward(self, *inputs):
        raise NotImplementedError(f"{type(self).__name__} has no forward method")

    def __call__(self, *inputs):
        return self.forward(*inputs)

    def parameters(self):
        """All parameters of this module and those in it, for an optimizer."""
        return _core.params(self)

    def named_parameters(self):
        return [(p.name, p) for p in self.parameters()]

    def children(self):
        """The modules that are attributes of this one."""
        return [m for m in self.__dict__.values() if isinstance(m, Module)]

    def modules(self):
        """This module and all modules in it."""
        yield self
        for child in self.children():
            yield from child.modules()

    def state_dict(self):
        """The values of all parameters and states by name, as NumPy arrays."""
        return {v.name: v.numpy() for v in _core.module_variables(self)}

    def load_state_dict(self, state, strict=True):
        """Set parameters and states by name. Values are arrays, or tensors of PyTorch."""
        own = {v.name: v for v in _core.module_variables(self)}
        missing, unexpected = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
        if strict and (missing or unexpected):
            raise KeyError(f"missing: {', '.join(missing) or 'none'}; "
                           f"unexpected: {', '.join(unexpected) or 'none'}")
        for name in own.keys() & state.keys():
            own[name].data = _array(state[name], own[name])

    def save(self, path):
        """Write all parameters and states to a safetensors file."""
        _core.weights_save(self, str(path))

    def load(self, path, **options):
        """Read them from a safetensors file, a sharded index or the folder of a published model."""
        _core.weights_load(self, str(path), **options)

    def recompute(self, on=True):
        """Compute activations of this module again in the backward pass instead of keeping them."""
        _core.module_set_recompute(self, int(on))
        return self

    def __repr__(self):
        inner = ", ".join(f"{k}={type(v).__name__}" for k, v in self.__dict__.items()
                          if isinstance(v, Module))
        return f"{type(self).__name__}({inner})"


def _array(value, like):
    """An array of the type of a parameter."""
    import numpy as np

    if hasattr(value, "detach"):  # a tensor of PyTorch or of this package
        value = value.detach()
    types = {"f32": np.float32, "f64": np.float64, "i64": np.int64, "i32": np.int32,
             "u8": np.uint8, "bool": np.bool_, "f16": np.float16}
    array = np.ascontiguousarray(np.asarray(value), dtype=types[like.dtype])
    if array.shape != like.shape:
        raise ValueError(f"{like.name} has shape {like.shape}, the value has {array.shape}")
    return array


class Native(Module):
    """A module of the library."""

    def __init__(self, handle):
        object.__setattr__(self, "_handle", handle)

    def forward(self, x):
        return _core.call(self, x)

    def __repr__(self):
        return f"{type(self).__name__}()"


class Linear(Native):
    """y = x weight^T + bias."""

    def __init__(self, inputs, outputs, bias=True, **options):
        super().__init__(_core.linear_new(inputs, outputs, no_bias=int(not bias), **options))


class Conv(Native):
    """Convolution over 1, 2 or 3 dimensions; kernel is one number or one per dimension."""

    def __init__(self, inputs, outputs, kernel, bias=True, **options):
        kernel = (kernel, kernel) if isinstance(kernel, int) else tuple(kernel)
        super().__init__(_core.conv_new(inputs, outputs, kernel, no_bias=int(not bias), **options))


class BatchNorm(Native):
    """Batch normalisation of channels."""

    def __init__(self, channels, **options):
        super().__init__(_core.batch_norm_new(channels, **options))


class LayerNorm(Native):
    """Normalisation over the last dimensions, which have this shape."""

    def __init__(self, shape, **options):
        super().__init__(_core.layer_norm_new(shape, **options))


class RMSNorm(Native):
    """Normalisation by the root of the mean square over the last dimensions."""

    def __init__(self, shape, **options):
        super().__init__(_core.rms_norm_new(shape, **options))


class Embedding(Native):
    """Rows of a table, chosen by indices."""

    def __init__(self, rows, width, **options):
        super().__init__(_core.embedding_new(rows, width, **options))


class Dropout(Native):
    """Sets a share of the elements to zero in training."""

    def __init__(self, rate=0.5):
        super().__init__(_core.dropout_new(rate))


class Flatten(Native):
    """All dimensions after the first as one."""

    def __init__(self):
        super().__init__(_core.flatten_new())


class Sequential(Module):
    """Modules and functions, one after another."""

    def __init__(self, *steps):
        super().__init__()
        self.steps = []
        for i, one in enumerate(steps):
            if isinstance(one, Module):
                setattr(self, str(i), one)
            self.steps.append(one)

    def forward(self, x):
        for one in self.steps:
            x = one(x)
        return x

    def __len__(self):
        return len(self.steps)

    def __getitem__(self, i):
        return self.steps[i]
