# SPDX-License-Identifier: Apache-2.0
"""Blocks of a program: `with catena.step():` and others."""
from . import _core


class step:
    """One step: what is recorded in this block is planned once and replayed.

    Tensors made in the block cannot be used after it, except the loss given to backward() and
    those on which keep() was called. Blocks may be nested.
    """

    def __enter__(self):
        self.context = _core.current_context()
        self.context.begin()
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.context.end()
        else:
            self.context.abandon()
        return False


class _Setting:
    """A setting of the current context that lasts for a block."""

    def __enter__(self):
        self.before = self.set(False)
        return self

    def __exit__(self, kind, error, trace):
        self.set(self.before)
        return False


class evaluation(_Setting):
    """Ops such as dropout and batch normalisation behave as in evaluation in this block."""

    def set(self, on):
        return _core.current_context().set_training(on)


class no_grad(_Setting):
    """What is recorded in this block cannot be differentiated."""

    def set(self, on):
        return _core.current_context().set_grad(on)


class recompute:
    """Activations of this block are not kept for the backward pass but computed again there."""

    def __enter__(self):
        _core.recompute_begin()
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            _core.recompute_end()
        return False
