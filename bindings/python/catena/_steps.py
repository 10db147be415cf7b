# SPDX-License-Identifier: Apache-2.0
"""Blocks of a program: `with catena.step():` and others."""
from __future__ import annotations

from typing import Literal

from . import _core


class step:
    """One step: what is recorded in this block is planned once and replayed.

    Tensors made in the block cannot be used after it, except the loss given to backward() and
    those on which keep() was called. Blocks may be nested.
    """

    def __enter__(self) -> step:
        self.context = _core.current_context()
        self.context.begin()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> Literal[False]:
        if kind is None:
            self.context.end()
        else:
            self.context.abandon()
        return False


class _Setting:
    """A setting of the current context that lasts for a block."""

    def _set(self, on: bool) -> bool:
        raise NotImplementedError

    def __enter__(self) -> _Setting:
        self.before = self._set(False)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> Literal[False]:
        self._set(self.before)
        return False


class evaluation(_Setting):
    """Ops such as dropout and batch normalisation behave as in evaluation in this block."""

    def _set(self, on: bool) -> bool:
        return _core.current_context().set_training(on)


class no_grad(_Setting):
    """What is recorded in this block cannot be differentiated."""

    def _set(self, on: bool) -> bool:
        return _core.current_context().set_grad(on)


class recompute:
    """Activations of this block are not kept for the backward pass but computed again there."""

    def __enter__(self) -> recompute:
        _core.recompute_begin()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> Literal[False]:
        if kind is None:
            _core.recompute_end()
        return False
