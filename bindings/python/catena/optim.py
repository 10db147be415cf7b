# SPDX-License-Identifier: Apache-2.0
"""Optimizers."""
from . import _core


class Optimizer:
    """What all optimizers have. Make one outside of steps."""

    def __init__(self, handle):
        self._handle = handle

    def backward(self, loss):
        """Contribute the gradients of the loss; several calls add up."""
        _core.backward(self, loss)

    def step(self):
        """Update the parameters with the contributed gradients. The recorded step runs here."""
        _core.optim_step(self)

    @property
    def lr(self):
        """The learning rate, including the factor of a schedule. Setting it needs no new plan."""
        return _core.optim_lr(self)

    @lr.setter
    def lr(self, value):
        _core.optim_set_lr(self, value)

    @property
    def steps(self):
        """Number of steps taken."""
        return _core.optim_steps(self)

    @property
    def norm(self):
        """Norm of the gradients of the last step, if they are clipped or scaled."""
        return _core.optim_norm(self)

    def clip(self, norm):
        """Scale gradients so that their norm is at most this; 0: off."""
        _core.optim_set_clip(self, norm)

    def schedule(self, kind, **settings):
        """Let the learning rate follow a schedule: "cosine", steps=1000, warmup=100."""
        _core.optim_set_schedule(self, kind=kind, **settings)

    def loss_scale(self, **settings):
        """Scale losses so that small gradients survive in f16: dynamic=1."""
        _core.optim_set_loss_scale(self, **settings)

    def group(self, pattern, **settings):
        """Settings of the parameters whose names match: "*.bias", lr_scale=2. Returns how many."""
        return _core.optim_group(self, pattern, **settings)


class SGD(Optimizer):
    """Stochastic gradient descent: lr, momentum, dampening, decay, nesterov."""

    def __init__(self, parameters, lr=0.01, **settings):
        super().__init__(_core.sgd_new(list(parameters), lr=lr, **settings))


class Adam(Optimizer):
    """Adam: lr, beta1, beta2, eps, decay, amsgrad."""

    def __init__(self, parameters, lr=0.001, **settings):
        super().__init__(_core.adam_new(list(parameters), lr=lr, **settings))


class AdamW(Optimizer):
    """Adam with decoupled weight decay, which is 0.01 unless given; < 0: none."""

    def __init__(self, parameters, lr=0.001, **settings):
        super().__init__(_core.adamw_new(list(parameters), lr=lr, **settings))
