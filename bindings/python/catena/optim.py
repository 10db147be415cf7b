# SPDX-License-Identifier: Apache-2.0
"""Optimizers."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from . import _core

if TYPE_CHECKING:
    from ._core import Handle, Operand, Parameter, Tensor


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

    def clip_value(self, largest: float) -> None:
        """Clip every element of the gradients to this absolute value; 0: off."""
        _core.optim_set_clip_value(self, largest)

    def lasso(self, rate: float) -> None:
        """L1 regularisation: add rate * sign(parameter) to the gradients; 0: off."""
        _core.optim_set_lasso(self, rate)

    def noise(self, eta: float, gamma: float = 0.55, seed: int = 0) -> None:
        """Add normal numbers of variance eta / (1+t)^gamma to the gradients; eta 0: off."""
        _core.optim_set_noise(self, eta, gamma, seed)

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


class RMSprop(Optimizer):
    """RMSprop; with centered and momentum, the variant of Graves.

    Parameters:
        parameters: what to train: net.parameters()
        lr: learning rate
        alpha: decay rate of the second moment
        eps: keeps divisors away from 0
        momentum: momentum
        decay: weight decay, added to the gradients
        centered: divide by the deviation and not by the root of the second moment

    Raises: ArgumentError for a setting out of range, or if a parameter already has an optimizer;
    Error inside a step.
    """

    def __init__(self, parameters: Iterable[Parameter], lr: float = 0.01, alpha: float = 0.99,
                 eps: float = 1e-8, momentum: float = 0.0, decay: float = 0.0,
                 centered: bool = False) -> None:
        super().__init__(_core.rmsprop_new(list(parameters), lr, alpha, eps, momentum, decay,
                         int(centered)), lr=lr, alpha=alpha, eps=eps)


class Adagrad(Optimizer):
    """Adagrad.

    Parameters:
        parameters: what to train: net.parameters()
        lr: learning rate
        lr_decay: step t, from 0, has the learning rate lr / (1 + t lr_decay)
        eps: keeps divisors away from 0
        initial: initial sum of squares
        decay: weight decay, added to the gradients

    Raises: ArgumentError for a setting out of range, or if a parameter already has an optimizer;
    Error inside a step.
    """

    def __init__(self, parameters: Iterable[Parameter], lr: float = 0.01, lr_decay: float = 0.0,
                 eps: float = 1e-10, initial: float = 0.0, decay: float = 0.0) -> None:
        super().__init__(_core.adagrad_new(list(parameters), lr, lr_decay, eps, initial, decay),
                         lr=lr, eps=eps)


class Adadelta(Optimizer):
    """Adadelta.

    Parameters:
        parameters: what to train: net.parameters()
        lr: learning rate
        rho: decay rate of both moments
        eps: keeps divisors away from 0
        decay: weight decay, added to the gradients

    Raises: ArgumentError for a setting out of range, or if a parameter already has an optimizer;
    Error inside a step.
    """

    def __init__(self, parameters: Iterable[Parameter], lr: float = 1.0, rho: float = 0.9,
                 eps: float = 1e-6, decay: float = 0.0) -> None:
        super().__init__(_core.adadelta_new(list(parameters), lr, rho, eps, decay), lr=lr,
                         rho=rho, eps=eps)


class Adamax(Optimizer):
    """Adamax: Adam with the infinity norm.

    Parameters:
        parameters: what to train: net.parameters()
        lr: learning rate
        beta1, beta2: decay rates of the moments of the gradient
        eps: keeps divisors away from 0
        decay: weight decay, added to the gradients

    Raises: ArgumentError for a setting out of range, or if a parameter already has an optimizer;
    Error inside a step.
    """

    def __init__(self, parameters: Iterable[Parameter], lr: float = 0.002, beta1: float = 0.9,
                 beta2: float = 0.999, eps: float = 1e-8, decay: float = 0.0) -> None:
        super().__init__(_core.adamax_new(list(parameters), lr, beta1, beta2, eps, decay), lr=lr,
                         beta1=beta1, beta2=beta2, eps=eps)


class NAdam(Optimizer):
    """NAdam: Adam with Nesterov momentum.

    Parameters:
        parameters: what to train: net.parameters()
        lr: learning rate
        beta1, beta2: decay rates of the moments of the gradient
        eps: keeps divisors away from 0
        momentum_decay: how slowly the momentum grows to beta1
        decay: weight decay
        decoupled: weight decay does not go through the moments

    Raises: ArgumentError for a setting out of range, or if a parameter already has an optimizer;
    Error inside a step.
    """

    def __init__(self, parameters: Iterable[Parameter], lr: float = 0.002, beta1: float = 0.9,
                 beta2: float = 0.999, eps: float = 1e-8, momentum_decay: float = 0.004,
                 decay: float = 0.0, decoupled: bool = False) -> None:
        super().__init__(_core.nadam_new(list(parameters), lr, beta1, beta2, eps, momentum_decay,
                         decay, int(decoupled)), lr=lr, beta1=beta1, beta2=beta2, eps=eps,
                         momentum_decay=momentum_decay)


class RAdam(Optimizer):
    """RAdam: Adam with a rectified learning rate in the first steps.

    Parameters:
        parameters: what to train: net.parameters()
        lr: learning rate
        beta1, beta2: decay rates of the moments of the gradient
        eps: keeps divisors away from 0
        decay: weight decay
        decoupled: weight decay does not go through the moments

    Raises: ArgumentError for a setting out of range, or if a parameter already has an optimizer;
    Error inside a step.
    """

    def __init__(self, parameters: Iterable[Parameter], lr: float = 0.001, beta1: float = 0.9,
                 beta2: float = 0.999, eps: float = 1e-8, decay: float = 0.0,
                 decoupled: bool = False) -> None:
        super().__init__(_core.radam_new(list(parameters), lr, beta1, beta2, eps, decay,
                         int(decoupled)), lr=lr, beta1=beta1, beta2=beta2, eps=eps)


class Lion(Optimizer):
    """Lion: the sign of a momentum.

    Parameters:
        parameters: what to train: net.parameters()
        lr: learning rate
        beta1, beta2: decay rates of the moments of the gradient
        decay: weight decay; every step subtracts lr * decay * parameter

    Raises: ArgumentError for a setting out of range, or if a parameter already has an optimizer;
    Error inside a step.
    """

    def __init__(self, parameters: Iterable[Parameter], lr: float = 1e-4, beta1: float = 0.9,
                 beta2: float = 0.99, decay: float = 0.0) -> None:
        super().__init__(_core.lion_new(list(parameters), lr, beta1, beta2, decay), lr=lr,
                         beta1=beta1, beta2=beta2)


class LAMB(Optimizer):
    """LAMB: the update of Adam, scaled by norm(parameter) / norm(update).

    Parameters:
        parameters: what to train: net.parameters()
        lr: learning rate
        beta1, beta2: decay rates of the moments of the gradient
        eps: keeps divisors away from 0
        decay: weight decay, part of the update

    Raises: ArgumentError for a setting out of range, or if a parameter already has an optimizer;
    Error inside a step.
    """

    def __init__(self, parameters: Iterable[Parameter], lr: float = 0.001, beta1: float = 0.9,
                 beta2: float = 0.999, eps: float = 1e-6, decay: float = 0.0) -> None:
        super().__init__(_core.lamb_new(list(parameters), lr, beta1, beta2, eps, decay), lr=lr,
                         beta1=beta1, beta2=beta2, eps=eps)


class LARS(Optimizer):
    """LARS: SGD with a learning rate of its own for each parameter, from the norms.

    Parameters:
        parameters: what to train: net.parameters()
        lr: learning rate
        momentum: momentum
        trust: factor of norm(parameter) / norm(gradient)
        eps: added to the norms that are divided by
        decay: weight decay, added to the gradients

    Raises: ArgumentError for a setting out of range, or if a parameter already has an optimizer;
    Error inside a step.
    """

    def __init__(self, parameters: Iterable[Parameter], lr: float = 0.1, momentum: float = 0.9,
                 trust: float = 0.001, eps: float = 0.0, decay: float = 0.0) -> None:
        super().__init__(_core.lars_new(list(parameters), lr, momentum or -1.0, trust, eps,
                         decay), lr=lr)


class AdaBound(Optimizer):
    """AdaBound and AMSBound: Adam whose step lengths have bounds.

    Parameters:
        parameters: what to train: net.parameters()
        lr: learning rate
        final_lr: what the bounds converge to
        gamma: speed of that
        beta1, beta2: decay rates of the moments of the gradient
        eps: keeps divisors away from 0
        decay: weight decay, added to the gradients
        amsbound: use the largest second moment so far

    Raises: ArgumentError for a setting out of range, or if a parameter already has an optimizer;
    Error inside a step.
    """

    def __init__(self, parameters: Iterable[Parameter], lr: float = 0.001, final_lr: float = 0.1,
                 gamma: float = 0.001, beta1: float = 0.9, beta2: float = 0.999,
                 eps: float = 1e-8, decay: float = 0.0, amsbound: bool = False) -> None:
        super().__init__(_core.adabound_new(list(parameters), lr, final_lr, gamma, beta1, beta2,
                         eps, decay, int(amsbound)), lr=lr, beta1=beta1, beta2=beta2, eps=eps)


class SMORMS3(Optimizer):
    """SMORMS3.

    Parameters:
        parameters: what to train: net.parameters()
        lr: learning rate
        eps: keeps divisors away from 0
        decay: weight decay, added to the gradients

    Raises: ArgumentError for a setting out of range, or if a parameter already has an optimizer;
    Error inside a step.
    """

    def __init__(self, parameters: Iterable[Parameter], lr: float = 0.001, eps: float = 1e-16,
                 decay: float = 0.0) -> None:
        super().__init__(_core.smorms3_new(list(parameters), lr, eps, decay), lr=lr, eps=eps)


class MSVAG(Optimizer):
    """M-SVAG: momentum with shorter steps where the gradients vary.

    Parameters:
        parameters: what to train: net.parameters()
        lr: learning rate
        beta: decay rate of the moments
        decay: weight decay, added to the gradients

    Raises: ArgumentError for a setting out of range, or if a parameter already has an optimizer;
    Error inside a step.
    """

    def __init__(self, parameters: Iterable[Parameter], lr: float = 0.1, beta: float = 0.9,
                 decay: float = 0.0) -> None:
        super().__init__(_core.msvag_new(list(parameters), lr, beta, decay), lr=lr)


class LBFGS(Optimizer):
    """L-BFGS, a quasi-Newton method for losses without noise.

    Its steps are minimize(closure) instead of backward() and step().

    Parameters:
        parameters: what to train: net.parameters()
        lr: step length; with line search, its first guess
        iterations: maximum number of iterations of a step
        evaluations: maximum number of calls of the closure in a step; 0: 5/4 of iterations
        history: number of earlier iterations that are remembered
        tol_grad: ends a step if no gradient is larger
        tol_change: ends a step if loss or parameters change less
        line_search: search for the strong Wolfe conditions; False: steps of length lr

    Raises: ArgumentError for a setting out of range, or if a parameter already has an optimizer;
    Error inside a step.
    """

    def __init__(self, parameters: Iterable[Parameter], lr: float = 1.0, iterations: int = 20,
                 evaluations: int = 0, history: int = 100, tol_grad: float = 1e-7,
                 tol_change: float = 1e-9, line_search: bool = True) -> None:
        super().__init__(_core.lbfgs_new(list(parameters), lr, iterations, evaluations, history,
                                         tol_grad, tol_change, int(not line_search)), lr=lr)

    def minimize(self, closure: Callable[[], Tensor]) -> float:
        """Take one step: up to `iterations` iterations, with several calls of the closure.

        The closure computes the loss, one number, and returns it. Every call is a step of its own,
        so call this outside of steps. Returns the loss before the step. An exception of the
        closure ends the step.
        """
        return _core.lbfgs_step(self, closure)
