# SPDX-License-Identifier: Apache-2.0
"""Optimizers."""
from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from . import _core

if TYPE_CHECKING:
    from ._core import Handle, Operand, Parameter


class Optimizer:
    """What all optimizers have. Make one outside of steps.

    A parameter belongs to at most one optimizer.
    """

    def __init__(self, handle: Handle, **settings: float) -> None:
        self._handle = handle
        self.comm: Any = None
        for name, value in settings.items():  # the library takes 0 as "the default"
            if value == 0 and _core.optim_hyper(self, name) != 0:
                _core.optim_set_hyper(self, name, 0.0)

    def backward(self, loss: Operand) -> None:
        """Contribute the gradients of the loss, one number; several calls add up.

        Needs an open step. The loss can be read after the step. Raises ShapeError if the loss is
        not one number, and Error if no gradient flows from it to the parameters.
        """
        _core.backward(self, loss)

    def step(self) -> None:
        """Update the parameters with the contributed gradients. The recorded step runs here."""
        _core.optim_step(self)

    @property
    def lr(self) -> float:
        """The learning rate, including the factor of a schedule. Setting it needs no new plan."""
        return _core.optim_lr(self)

    @lr.setter
    def lr(self, value: float) -> None:
        _core.optim_set_lr(self, value)

    @property
    def steps(self) -> int:
        """Number of steps taken."""
        return _core.optim_steps(self)

    @property
    def norm(self) -> float:
        """Norm of the gradients of the last step, if they are clipped or scaled."""
        return _core.optim_norm(self)

    def clip(self, norm: float) -> None:
        """Scale gradients so that their norm is at most this; 0: off."""
        _core.optim_set_clip(self, norm)

    def schedule(self, kind: str, **settings: Any) -> None:
        """Let the learning rate follow a schedule: "cosine", steps=1000, warmup=100."""
        _core.optim_set_schedule(self, kind=kind, **settings)  # type: ignore[arg-type]

    def loss_scale(self, **settings: Any) -> None:
        """Scale losses so that small gradients survive in f16: dynamic=1."""
        _core.optim_set_loss_scale(self, **settings)

    def group(self, pattern: str, **settings: Any) -> int:
        """Settings of the parameters whose names match: "*.bias", lr_scale=2, decay=0. freeze=1
        freezes them. Returns how many match."""
        return _core.optim_group(self, pattern, **settings)


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum if that is not 0.

    Parameters:
        parameters: what to train: net.parameters()
        lr: learning rate
        momentum, dampening, nesterov: as in PyTorch
        decay: weight decay, added to the gradients

    Raises: ArgumentError for a setting out of range, or if a parameter already has an optimizer;
    Error inside a step.
    """

    def __init__(self, parameters: Iterable[Parameter], lr: float = 0.01, momentum: float = 0.0,
                 dampening: float = 0.0, decay: float = 0.0, nesterov: bool = False) -> None:
        super().__init__(_core.sgd_new(list(parameters), lr, momentum, dampening, decay,
                                       int(nesterov)), lr=lr)


class Adam(Optimizer):
    """Adam.

    Parameters:
        parameters: what to train: net.parameters()
        lr: learning rate
        beta1, beta2: decay rates of the moments of the gradient
        eps: added to the root of the second moment
        decay: weight decay, added to the gradients
        amsgrad: use the largest second moment so far

    Raises: ArgumentError for a setting out of range, or if a parameter already has an optimizer;
    Error inside a step.
    """

    def __init__(self, parameters: Iterable[Parameter], lr: float = 0.001, beta1: float = 0.9,
                 beta2: float = 0.999, eps: float = 1e-8, decay: float = 0.0,
                 amsgrad: bool = False) -> None:
        super().__init__(_core.adam_new(list(parameters), lr, beta1, beta2, eps, decay,
                                        int(amsgrad)), lr=lr, beta1=beta1, beta2=beta2, eps=eps)


class AdamW(Optimizer):
    """Adam with decoupled weight decay: it does not go through the moments.

    Parameters:
        parameters: what to train: net.parameters()
        lr: learning rate
        beta1, beta2: decay rates of the moments of the gradient
        eps: added to the root of the second moment
        decay: weight decay; every step subtracts lr * decay * parameter
        amsgrad: use the largest second moment so far

    Raises: ArgumentError for a setting out of range, or if a parameter already has an optimizer;
    Error inside a step.
    """

    def __init__(self, parameters: Iterable[Parameter], lr: float = 0.001, beta1: float = 0.9,
                 beta2: float = 0.999, eps: float = 1e-8, decay: float = 0.01,
                 amsgrad: bool = False) -> None:
        super().__init__(_core.adamw_new(list(parameters), lr, beta1, beta2, eps, decay or -1.0,
                                         int(amsgrad)), lr=lr, beta1=beta1, beta2=beta2, eps=eps)
