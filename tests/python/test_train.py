#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The trainer from Python: losses, evaluation, extensions, logs, exceptions, resume."""
import contextlib
import io
import json
import os
import tempfile
import unittest
import weakref
from unittest import mock

import numpy as np

import catena as ct


def make(folder, epochs, seed=1):
    """A small classifier with its trainer."""
    ct.use_context(ct.Context(threads=1, seed=seed))
    rng = np.random.default_rng(5)
    x = rng.standard_normal((60, 4)).astype(np.float32)
    t = (x[:, 0] > 0).astype(np.int64)
    net = ct.nn.Sequential(ct.nn.Linear(4, 8), ct.relu, ct.nn.Linear(8, 2))
    opt = ct.optim.Adam(net.parameters(), lr=0.05)

    def loss(a, b):
        y = net(a)
        ct.train.report("accuracy", ct.accuracy(y, b))
        return ct.softmax_cross_entropy(y, b)

    trainer = ct.train.Trainer(opt, ct.data.Loader(ct.data.Arrays(x, t), batch=10), loss, net=net,
                               epochs=epochs, out=folder)
    trainer.evaluate(ct.data.Loader(ct.data.Arrays(x, t), batch=25, shuffle=False))
    trainer.log()
    return net, trainer


class Training(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_run(self):
        net, trainer = make(self.folder, 15)
        seen = []
        trainer.extend(lambda: seen.append(trainer.values["val/accuracy"]), (2, "epochs"))
        trainer.print()
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            trainer.run()
        self.assertGreater(trainer.values["val/accuracy"], 0.9)
        self.assertGreaterEqual(len(seen), 7)
        self.assertEqual(len(shown.getvalue().splitlines()), 17)  # two lines of names
        self.assertEqual(trainer.progress_now["iteration"], 90)
        with open(os.path.join(self.folder, "log.jsonl"), encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        self.assertEqual(len(rows), 15)
        self.assertEqual(len(trainer.history()["val/loss"]), 15)
        page = trainer._repr_html_()
        self.assertEqual(page.count("<tr>"), 17)
        self.assertIn("<polyline", page)
        self.assertIn("kernels", ct.plan()._repr_html_())
        self.assertEqual(ct.current_context().depth, 0)
        self.assertEqual(net(np.zeros((1, 4), np.float32)).shape, (1, 2))

    def test_metrics(self):
        """Of all samples of an evaluation; and a trigger with a list of points."""
        ct.use_context(ct.Context(threads=1, seed=1))
        net = ct.nn.Linear(4, 2)
        opt = ct.optim.SGD(net.parameters(), lr=0.1)
        rng = np.random.default_rng(6)
        x = rng.standard_normal((50, 4)).astype(np.float32)
        t = (x[:, 0] + rng.standard_normal(50) > 0).astype(np.int64)
        seen = []

        def loss(a, b):
            y = net(a)
            ct.train.report_metric("f1", y, b)
            ct.train.report_metric("area", y, b, "auc")
            ones = ct.cast(b, "f32")
            ct.train.report_ratio("ones", ct.sum(ones), ct.sum(ones * 0 + 1))
            return ct.softmax_cross_entropy(y, b)

        loader = ct.data.Loader(ct.data.Arrays(x, t), batch=8)
        trainer = ct.train.Trainer(opt, loader, loss, net=net, epochs=3)
        trainer.evaluate(ct.data.Loader(ct.data.Arrays(x, t), batch=9, shuffle=False))
        trainer.extend(lambda: seen.append(trainer.progress_now["iteration"]),
                       ([2, 9], "iterations"))
        trainer.run()
        y = net(x).numpy()
        score = y[:, 1] - y[:, 0]
        hits = ((score > 0) & (t == 1)).sum()
        pairs = score[t == 1][:, None] - score[t == 0][None]
        self.assertAlmostEqual(trainer.values["val/f1"], 2 * hits / ((score > 0).sum() + t.sum()))
        self.assertAlmostEqual(trainer.values["val/area"],
                               ((pairs > 0) + 0.5 * (pairs == 0)).mean())
        self.assertAlmostEqual(trainer.values["val/ones"], t.mean())
        self.assertNotIn("train/f1", trainer.values)
        self.assertEqual(seen, [2, 9])
        with self.assertRaises(ct.Error):
            ct.train.Trainer(opt, loader, lambda a, b: ct.train.report_metric("f2", a, b),
                             epochs=1).run()
        with self.assertRaises(RuntimeError):
            ct.train.report_metric("f1", x, t)

    def test_targets(self):
        """The loss of a mean over targets does not depend on the batches of an evaluation."""
        ct.use_context(ct.Context(threads=1, seed=1))
        net = ct.nn.Linear(4, 3)
        rng = np.random.default_rng(6)
        x = rng.standard_normal((20, 4)).astype(np.float32)
        t = rng.integers(3, size=20)
        t[np.arange(20) % 3 > 0] = -100

        def loss(a, b):
            ct.train.report_targets(1)
            return ct.softmax_cross_entropy(net(a), b)

        values = []
        opt = ct.optim.SGD(net.parameters(), lr=0)
        for batch in 1, 3, 20:
            loader = ct.data.Loader(ct.data.Arrays(x, t), batch=20)
            trainer = ct.train.Trainer(opt, loader, loss, net=net, epochs=1)
            trainer.evaluate(ct.data.Loader(ct.data.Arrays(x, t), batch=batch, shuffle=False))
            trainer.run()
            values.append(trainer.values["val/loss"])
        for value in values:
            self.assertAlmostEqual(value, values[-1], places=5)
        with self.assertRaisesRegex(ct.Error, "no field 7"):
            ct.train.Trainer(opt, loader, lambda a, b: ct.train.report_targets(7),
                             epochs=1).run()
        with self.assertRaisesRegex(ct.Error, "weight is -1"):
            ct.train.Trainer(opt, loader, lambda a, b: ct.train.report_weight(-1),
                             epochs=1).run()
        with self.assertRaises(RuntimeError):
            ct.train.report_targets(1)

    def test_exceptions_come_out(self):
        _, trainer = make(self.folder, 3)

        def fail():
            raise KeyError("from an extension")

        trainer.extend(fail, (4, "iterations"))
        with self.assertRaisesRegex(KeyError, "from an extension"):
            trainer.run()
        net = ct.nn.Linear(4, 2)
        opt = ct.optim.SGD(net.parameters())
        loader = ct.data.Loader(ct.data.Arrays(np.zeros((8, 4), np.float32)), batch=4)

        def loss(x):
            return ct.mean_squared_error(net(x), np.zeros((3, 3), np.float32))

        with self.assertRaises(ct.ShapeError):
            ct.train.Trainer(opt, loader, loss, epochs=1).run()
        self.assertEqual(ct.current_context().depth, 0)

    def test_arrays_of_a_step_are_let_go(self):
        net, alive, most = ct.nn.Linear(2, 1), [], []
        opt = ct.optim.SGD(net.parameters(), lr=0.01)

        def loss(a):
            most.append(sum(r() is not None for r in alive))
            more = np.ones((4, 1), np.float32)
            alive.append(weakref.ref(more))
            return ct.sum(net(a) + more)

        loader = ct.data.Loader(ct.data.Arrays(np.ones((8, 2), np.float32)), batch=4)
        ct.train.Trainer(opt, loader, loss, net=net, iterations=10).run()
        self.assertEqual(max(most), 0)
        self.assertEqual([r() for r in alive], [None] * 10)

    def test_steps_of_the_trainer_stay_open(self):
        net = ct.nn.Linear(2, 1)
        opt = ct.optim.SGD(net.parameters(), lr=0.01)
        loader = ct.data.Loader(ct.data.Arrays(np.ones((8, 2), np.float32)), batch=4)

        def run(act):
            def loss(a):
                y = ct.sum(net(a))
                act(ct.current_context())
                return y

            ct.train.Trainer(opt, loader, loss, net=net, iterations=2).run()

        with self.assertRaisesRegex(RuntimeError, "belongs to the caller of this function"):
            run(lambda context: context.end())
        with self.assertRaisesRegex(RuntimeError, "has left a step open"):
            run(lambda context: context.begin())
        run(lambda context: context.abandon())
        self.assertEqual(ct.current_context().depth, 0)

    def test_steps_around_a_module_stay_open(self):
        class Ending(ct.nn.Module):
            def forward(self, x):
                ct.current_context().end()
                return x

        net = Ending()
        with mock.patch("sys.unraisablehook") as hook, self.assertRaises(ct.Error):
            with ct.step():
                ct._core.call(net, np.ones((1, 2), np.float32))
        self.assertIn("belongs to the caller", str(hook.call_args[0][0].exc_value))
        self.assertEqual(ct.current_context().depth, 0)

    def test_nothing_is_closed_while_the_trainer_runs(self):
        net = ct.nn.Linear(2, 1)
        opt = ct.optim.SGD(net.parameters(), lr=0.01)
        loader = ct.data.Loader(ct.data.Arrays(np.ones((8, 2), np.float32)), batch=4)

        def loss(a):
            opt._handle.close()
            return ct.sum(net(a))

        with self.assertRaisesRegex(RuntimeError, "close: the library is running"):
            ct.train.Trainer(opt, loader, loss, net=net, iterations=2).run()
        opt._handle.close()

    def test_stop_and_resume(self):
        net, trainer = make(self.folder, 6)
        trainer.run()
        whole = net.state_dict()
        other = os.path.join(self.folder, "other")
        net, trainer = make(other, 6)
        trainer.state()
        trainer.extend(trainer.stop, (10, "iterations"), name="stop")
        trainer.run()
        self.assertEqual(trainer.progress_now["iteration"], 10)
        net, trainer = make(other, 6)
        trainer.state()
        trainer.extend(lambda: None, (10, "iterations"), name="stop")
        trainer.resume(os.path.join(other, "state"))
        trainer.run()
        for name, value in net.state_dict().items():
            np.testing.assert_array_equal(value, whole[name])


def body_and_head(classes):
    """A network with a batch normalisation in its body "0" and a head "1"."""
    body = ct.nn.Sequential(ct.nn.Linear(4, 8), ct.nn.BatchNorm(8), ct.relu)
    return ct.nn.Sequential(body, ct.nn.Linear(8, classes))


class FineTuning(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = os.path.join(folder.name, "w.safetensors")
        self.folder = folder.name
        ct.use_context(ct.Context(threads=1, seed=2))

    def train(self, net, out, epochs, unfreeze=None, resume=False):
        rng = np.random.default_rng(5)
        x = rng.standard_normal((20, 4)).astype(np.float32)
        t = (x[:, 0] > 0).astype(np.int64)
        opt = ct.optim.Adam(net.parameters(), lr=0.05)
        trainer = ct.train.Trainer(opt, ct.data.Loader(ct.data.Arrays(x, t), batch=10),
                                   lambda a, b: ct.softmax_cross_entropy(net(a), b), net=net,
                                   epochs=epochs, out=os.path.join(self.folder, out))
        trainer.state()
        if unfreeze:
            trainer.unfreeze(unfreeze)
        if resume:
            trainer.resume(os.path.join(self.folder, out, "state"))
        trainer.run()

    def test_new_head(self):
        body_and_head(3).save(self.file)
        net = body_and_head(2)
        with self.assertRaises(ct.ShapeError):
            net.load(self.file)
        self.assertEqual(net.load(self.file, new_head=True), ["1.weight", "1.bias"])
        self.assertEqual(body_and_head(3).load(self.file, new_head=True), [])
        net.train_only("1")
        before = net.state_dict()
        self.train(net, "head", 2)
        changed = {k for k, v in net.state_dict().items() if not np.array_equal(v, before[k])}
        self.assertEqual(changed, {"1.weight", "1.bias"})

    def test_patterns(self):
        net = body_and_head(2).freeze("0.1", "*.bias")
        self.assertEqual([p.name for p in net.parameters() if p.trainable],
                         ["0.0.weight", "1.weight"])
        with self.assertRaisesRegex(ct.NotFound, "'2'; the network has 0, 1"):
            net.freeze("2")
        self.assertTrue(all(p.trainable for p in net.unfreeze().parameters()))
        self.assertFalse(any(p.trainable for p in net.freeze().parameters()))

    def test_stages(self):
        """Resumed across the epoch in which the body is unfrozen, with the same bits."""
        body_and_head(2).save(self.file)

        def frozen():
            net = body_and_head(2)
            net.load(self.file)
            return net.freeze("0")
        whole, parts = frozen(), frozen()
        self.train(whole, "whole", 4, unfreeze=2)
        self.train(parts, "parts", 1, unfreeze=2)
        for epochs in (3, 4):
            parts = frozen()
            self.train(parts, "parts", epochs, unfreeze=2, resume=True)
        for name, value in whole.state_dict().items():
            np.testing.assert_array_equal(value, parts.state_dict()[name], name)


if __name__ == "__main__":
    unittest.main()
