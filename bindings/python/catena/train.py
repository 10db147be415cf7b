# SPDX-License-Identifier: Apache-2.0
"""The trainer: the training loop with evaluation, logs, checkpoints and functions of your own.

    def loss(x, t):
        y = net(x)
        catena.train.report("accuracy", catena.accuracy(y, t))
        return catena.softmax_cross_entropy(y, t)

    trainer = catena.train.Trainer(opt, loader, loss, net=net, epochs=10, out="result")
    trainer.evaluate(test_loader)
    trainer.log()
    trainer.print()
    trainer.run()

`when` says when an extension runs: (1, "epochs"), (100, "iterations"), (60, "seconds"),
([30, 60, 80], "epochs"), ("val/accuracy", "max"), (0, "end"). None is the extension's own default,
mostly every epoch.
"""
from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _core, _show
from ._core import report, report_metric, report_ratio, report_targets, report_weight

if TYPE_CHECKING:
    from ._core import Tensor, When
    from .data import Loader
    from .nn import Module
    from .optim import Optimizer

__all__ = ["Trainer", "report", "report_metric", "report_ratio", "report_targets",
           "report_weight"]


class Trainer:
    """Runs the loop until `epochs`, `iterations` or `seconds` is reached; 0: no such limit.

    Parameters:
        optimizer: takes the steps
        loader: gives the batches
        loss: is called with the fields of a batch and returns one number
        net: what evaluate(), weights() and state() need
        accumulate: batches per step of the optimizer; 0: one
        out: folder of the results; None: nothing is written
    """

    def __init__(self, optimizer: Optimizer, loader: Loader, loss: Callable[..., Tensor],
                 net: Module | None = None, epochs: int = 0, iterations: int = 0,
                 seconds: float = 0.0, accumulate: int = 0,
                 out: str | os.PathLike[str] | None = None) -> None:
        self.loss = loss
        self.held: list[Any] = []
        self._handle = _core.trainer_new(optimizer, loader, loss, net, epochs, iterations,
                                         float(seconds), accumulate,
                                         None if out is None else str(out))

    def run(self) -> Trainer:
        """Train. An exception of the loss function or of an extension ends the run."""
        _core.trainer_run(self)
        return self

    def stop(self) -> None:
        """Stop after the current step."""
        _core.trainer_stop(self)

    def evaluate(self, loader: Loader, loss: Callable[..., Tensor] | None = None,
                 when: When = None) -> None:
        """Evaluate on another loader; what the loss reports is observed as "val/..."."""
        loss = loss or self.loss
        _core.extend_evaluator(self, when, loader, loss)
        self.held.append((loader, loss))  # the library borrows them

    def extend(self, function: Callable[[], object], when: When = (1, "epochs"),
               name: str | None = None) -> Callable[[], object]:
        """Call function() when the trigger fires. Also usable as a decorator."""
        name = name or f"{getattr(function, '__name__', 'function')}{len(self.held)}"
        self.held.append(function)
        _core.extend(self, name, when, function)
        return function

    def log(self, file: str | None = None, when: When = None) -> None:
        """Write one JSON object per entry to out/log.jsonl."""
        _core.extend_ready(self, "log", when, file)

    def print(self, when: When = None) -> None:
        """Print a table with a line for every entry of the log."""
        _core.extend_ready(self, "print", when, None)

    def progress(self, when: When = None) -> None:
        """Print the progress from time to time."""
        _core.extend_ready(self, "progress", when, None)

    def weights(self, file: str | None = None, when: When = None) -> None:
        """Save the weights of the net as out/weights.safetensors."""
        _core.extend_ready(self, "weights", when, file)

    def state(self, when: When = None) -> None:
        """Save everything that a resumed run needs, in out/state."""
        _core.extend_ready(self, "state", when, None)

    def unfreeze(self, epoch: int, pattern: str | None = None, statistics: bool = True) -> None:
        """Train what net.freeze() has frozen from the beginning of an epoch on, counted from 0.

        pattern: the part of it, as in net.freeze(); None: all. statistics: batch normalisations of
        these names update their statistics again.
        """
        _core.extend_unfreeze(self, epoch, pattern, int(statistics))

    def tensorboard(self, folder: str | None = None, when: When = None) -> None:
        """Write event files for TensorBoard."""
        _core.extend_ready(self, "tensorboard", when, folder)

    def html(self, file: str | None = None, when: When = None) -> None:
        """Write a page with curves and facts."""
        _core.extend_ready(self, "html", when, file)

    def fail_on_nonfinite(self, when: When = None) -> None:
        """Raise an Error as soon as a reported value is not finite, and every epoch if a parameter
        is not. The message names the first such value."""
        _core.extend_ready(self, "fail_on_nonfinite", when, None)

    def skip_nonfinite(self, when: When = None) -> None:
        """Leave out steps whose loss or gradients are not finite; raise an Error after 20 of them
        in a row."""
        _core.extend_ready(self, "skip_nonfinite", when, None)

    def rewind_on_nonfinite(self, when: When = None) -> None:
        """Go on from the newest saved state (see state) with half the learning rate if the loss or
        the gradients are not finite; raise an Error after 3 times."""
        _core.extend_ready(self, "rewind_on_nonfinite", when, None)

    def spikes(self) -> None:
        """Warn about losses far above their running mean, and count them as train/spikes."""
        _core.extend_ready(self, "spikes", None, None)

    def resume(self, folder: str | os.PathLike[str]) -> None:
        """Go on from the newest state in a folder; call it after all extensions were added."""
        _core.trainer_load(self, str(folder))

    @property
    def values(self) -> dict[str, float]:
        """The last observed values: {"train/loss": ..., "val/accuracy": ...}."""
        return _core.trainer_values(self)

    @property
    def progress_now(self) -> dict[str, float]:
        """Counts and times: iteration, epoch, samples, seconds."""
        return _core.trainer_progress(self)

    def history(self) -> dict[str, list[float]]:
        """{name: values} of all entries that log() has written."""
        rows = range(_core.trainer_rows(self))
        return {name: [_core.trainer_row_value(self, i, name) for i in rows]
                for name in self.values}

    def _repr_html_(self) -> str:
        return _show.table(self.history())

    def observe(self, name: str, value: float) -> None:
        """Record a value under a name, for logs and triggers."""
        _core.trainer_observe(self, name, float(value))
