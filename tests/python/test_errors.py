#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wrong use is an exception that names the line of the program which recorded the op."""
import inspect
import os
import tempfile
import unittest

import numpy as np

import catena as ct


def ones(*shape):
    return np.ones(shape, np.float32)


def line(offset=0):
    """"FILE:LINE" of the caller, plus an offset."""
    return f"{os.path.basename(__file__)}:{inspect.currentframe().f_back.f_lineno + offset}"


class Recorded(unittest.TestCase):
    def check(self, kind, words, where, function):
        with self.assertRaisesRegex(kind, words) as caught:
            function()
        self.assertIn(where, str(caught.exception))

    def test_shapes(self):
        where = line(+1)
        self.check(ct.ShapeError, r"\(2\).*\(3\)", where, lambda: ct.tensor([1.0, 2.0]) + ones(3))

    def test_types(self):
        where = line(+1)
        self.check(ct.DtypeError, "i64, expected f32 or f64; use cast", where, lambda: ct.relu(
            np.arange(3)))

    def test_a_value_that_is_wrong_when_the_step_runs(self):
        net = ct.nn.Linear(2, 2)
        opt = ct.optim.SGD(net.parameters())

        def run():
            with ct.step():
                opt.backward(ct.softmax_cross_entropy(net(ones(1, 2)), np.array([7])))
                opt.step()

        self.check(ct.ArgumentError, "the class of row 0", line(-3), run)

    def test_reading_a_wrong_value(self):
        for read in (ct.Tensor.numpy, np.asarray, memoryview, ct.Tensor.tolist):
            with self.assertRaisesRegex(ct.Error, "an op of this step has failed before"):
                with ct.step():
                    y = ct.embedding(ones(3, 2), np.array([5]))
                    self.check(ct.ArgumentError, "is 5, outside 0 to 2", line(-1), lambda: read(y))

    def test_after_the_step(self):
        with ct.step():
            y = ct.relu(ones(2))
        for use in (y.numpy, lambda: y + 1, lambda: y.shape, lambda: len(y), lambda: np.asarray(y)):
            self.check(RuntimeError, "the step in which it was computed has ended", line(-2), use)

    def test_after_the_step_of_the_optimizer(self):
        net = ct.nn.Linear(2, 2)
        opt = ct.optim.SGD(net.parameters())
        with ct.step():
            y = net(ones(1, 2))
            opt.backward(y.sum())
            opt.step()
            self.check(ct.Error, "is gone after the step", line(-3), y.numpy)

    def test_a_loss_without_parameters(self):
        opt = ct.optim.SGD(ct.nn.Linear(2, 2).parameters())
        with ct.step():
            where = line(+1)
            self.check(ct.Error, "depends on no trainable", where, lambda: opt.backward(ct.sum(1)))


class Contexts(unittest.TestCase):
    def setUp(self):
        before = ct.current_context()
        self.addCleanup(ct.use_context, before)

    def test_another_context(self):
        x, net = ct.relu(ones(1, 2)), ct.nn.Linear(2, 2)
        made = line(-1)
        opt = ct.optim.SGD(net.parameters())
        ct.use_context(ct.Context())
        with self.assertRaisesRegex(ValueError, f"{made}: this tensor belongs to another context"):
            x + 1
        with self.assertRaisesRegex(ValueError, f"{line(+1)}: this module belongs to another"):
            net(ones(1, 2))
        with self.assertRaisesRegex(ValueError, f"{line(+1)}: this parameter belongs to another"):
            ct.linear(ones(1, 2), net.parameters()[0])
        with ct.step(), self.assertRaisesRegex(ValueError, "this optimizer belongs to another"):
            opt.backward(ct.tensor(1.0))
        np.testing.assert_array_equal(x.numpy(), ones(1, 2))  # a value can always be read


class Texts(unittest.TestCase):
    def test_a_message_that_is_cut(self):
        for start in ("", "a", "aa"):  # one of them is cut in the middle of a character
            with self.assertRaises(ct.Error) as raised:
                ct._core.weights_values(start + 4000 * "é")
            self.assertIn(100 * "é", str(raised.exception))


class NotFinite(unittest.TestCase):
    def test_reading(self):
        self.assertNotEqual((ct.tensor(0.0) / 0).item(), (ct.tensor(0.0) / 0).item())
        self.assertEqual(str((ct.tensor([1.0]) / 0).tolist()), "[inf]")

    def test_trainer(self):
        net = ct.nn.Linear(1, 1)
        data = ct.data.Arrays(np.full((4, 1), np.nan, np.float32))
        with tempfile.TemporaryDirectory() as folder:
            trainer = ct.train.Trainer(
                ct.optim.SGD(net.parameters()), ct.data.Loader(data, batch=2),
                lambda x: net(x).sum(), net=net, epochs=2, out=folder)
            trainer.fail_on_nonfinite()
            with self.assertRaisesRegex(ct.Error, "loss.*not finite|not finite.*loss|nan"):
                trainer.run()


if __name__ == "__main__":
    unittest.main()
