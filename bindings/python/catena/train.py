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
("val/accuracy", "max"), (0, "end"). None is the extension's own default, mostly every epoch.
"""
from . import _core, _show
from ._core import report  # noqa: F401


class Trainer:
    """Runs the loop until `epochs`, `iterations` or `seconds` is reached."""

    def __init__(self, optimizer, loader, loss, net=None, epochs=0, iterations=0, seconds=0.0,
                 accumulate=0, out=None):
        self.loss, self.held = loss, []
        self._handle = _core.trainer_new(optimizer, loader, loss, net, epochs, iterations,
                                         float(seconds), accumulate,
                                         None if out is None else str(out))

    def run(self):
        """Train. An exception of the loss function or of an extension ends the run."""
        _core.trainer_run(self)
        return self

    def stop(self):
        """Stop after the current step."""
        _core.trainer_stop(self)

    def evaluate(self, loader, loss=None, when=None):
        """Evaluate on another loader; what the loss reports is observed as "val/..."."""
        loss = loss or self.loss
        _core.extend_evaluator(self, when, loader, loss)
        self.held.append((loader, loss))  # the library borrows them

    def extend(self, function, when=(1, "epochs"), name=None):
        """Call function() when the trigger fires. Also usable as a decorator."""
        name = name or f"{getattr(function, '__name__', 'function')}{len(self.held)}"
        self.held.append(function)
        _core.extend(self, name, when, function)
        return function

    def log(self, file=None, when=None):
        """Write one JSON object per entry to out/log.jsonl."""
        _core.extend_ready(self, "log", when, file)

    def print(self, when=None):
        """Print a table with a line for every entry of the log."""
        _core.extend_ready(self, "print", when, None)

    def progress(self, when=None):
        """Print the progress from time to time."""
        _core.extend_ready(self, "progress", when, None)

    def weights(self, file=None, when=None):
        """Save the weights of the net as out/weights.safetensors."""
        _core.extend_ready(self, "weights", when, file)

    def state(self, when=None):
        """Save everything that a resumed run needs, in out/state."""
        _core.extend_ready(self, "state", when, None)

    def tensorboard(self, folder=None, when=None):
        """Write event files for TensorBoard."""
        _core.extend_ready(self, "tensorboard", when, folder)

    def html(self, file=None, when=None):
        """Write a page with curves and facts."""
        _core.extend_ready(self, "html", when, file)

    def resume(self, folder):
        """Go on from the newest state in a folder; call it after all extensions were added."""
        _core.trainer_load(self, str(folder))

    @property
    def values(self):
        """The last observed values: {"train/loss": ..., "val/accuracy": ...}."""
        return _core.trainer_values(self)

    @property
    def progress_now(self):
        """Counts and times: iteration, epoch, samples, seconds."""
        return _core.trainer_progress(self)

    def history(self):
        """{name: values} of all entries that log() has written."""
        rows = range(_core.trainer_rows(self))
        return {name: [_core.trainer_row_value(self, i, name) for i in rows]
                for name in self.values}

    def _repr_html_(self):
        return _show.table(self.history())

    def observe(self, name, value):
        """Record a value under a name, for logs and triggers."""
        _core.trainer_observe(self, name, float(value))
