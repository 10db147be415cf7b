# SPDX-License-Identifier: Apache-2.0
"""The optimizers of the Python package. Their numbers are compared with PyTorch in tests/golden."""
import gc
import sys
import unittest

import catena as ct
import numpy as np


def problem():
    r = np.random.default_rng(1)
    x = r.normal(size=(32, 4)).astype(np.float32)
    return x, (x @ np.array([[1.0], [-2.0], [0.5], [0.0]], np.float32) + 0.3).astype(np.float32)


class Optimizers(unittest.TestCase):
    def test_each_lowers_the_loss(self):
        x, t = problem()
        rates = {"SGD": 0.1, "Adam": 0.05, "AdamW": 0.05, "RMSprop": 0.05, "Adagrad": 0.5,
                 "Adadelta": 10.0, "Adamax": 0.1, "NAdam": 0.05, "RAdam": 0.2, "Lion": 0.05,
                 "LAMB": 0.05, "LARS": 10.0, "AdaBound": 0.05, "SMORMS3": 0.05, "MSVAG": 0.2}
        start = np.array([[0.5, -0.5, 0.5, -0.5]], np.float32)
        for name, lr in rates.items():
            with self.subTest(name):
                net = ct.nn.Linear(4, 1)
                net.load_state_dict({"weight": start, "bias": np.ones(1, np.float32)})
                opt = getattr(ct.optim, name)(net.parameters(), lr=lr)
                opt.clip_value(5.0)
                opt.lasso(1e-6)
                opt.noise(1e-6)
                losses = []
                for _ in range(40):
                    with ct.step():
                        loss = ct.mean_squared_error(net(x), t)
                        opt.backward(loss)
                        opt.step()
                    losses.append(float(loss))
                self.assertLess(losses[-1], 0.5 * losses[0])

    def test_settings_out_of_range(self):
        net = ct.nn.Linear(2, 2)
        with self.assertRaises(ct.ArgumentError):
            ct.optim.RMSprop(net.parameters(), alpha=1.5)
        with self.assertRaises(ct.ArgumentError):
            ct.optim.LBFGS(net.parameters(), iterations=-1)
        opt = ct.optim.LARS(net.parameters(), momentum=0.0)
        self.assertEqual(ct._core.optim_hyper(opt, "momentum"), 0)

    def test_holds_its_parameters(self):
        parameters = ct.nn.Linear(3, 2).parameters()
        before = sys.getrefcount(parameters[0])
        opt = ct._core.sgd_new(p for p in parameters)
        self.assertGreater(sys.getrefcount(parameters[0]), before)
        del opt
        gc.collect()
        self.assertEqual(sys.getrefcount(parameters[0]), before)

    def test_schedule_with_restarts(self):
        opt = ct.optim.SGD(ct.nn.Linear(2, 2).parameters(), lr=1.0)
        opt.schedule("cosine_restarts", steps=5, gamma=2)
        self.assertEqual(opt.lr, 1)


class Lbfgs(unittest.TestCase):
    def test_least_squares(self):
        x, t = problem()
        net = ct.nn.Linear(4, 1)
        opt = ct.optim.LBFGS(net.parameters())
        first = opt.minimize(lambda: ct.mean_squared_error(net(x), t))
        last = opt.minimize(lambda: ct.mean_squared_error(net(x), t))
        self.assertGreater(first, 0.1)
        self.assertLess(last, 1e-6)
        self.assertEqual(opt.steps, 2)
        weight, bias = (p.numpy() for p in net.parameters())
        self.assertTrue(np.allclose(weight, [[1, -2, 0.5, 0]], atol=1e-3))
        self.assertTrue(np.allclose(bias, 0.3, atol=1e-3))

    def test_exception_of_the_closure(self):
        net = ct.nn.Linear(4, 1)
        opt = ct.optim.LBFGS(net.parameters())

        def closure():
            raise KeyError("mine")

        with self.assertRaises(KeyError):
            opt.minimize(closure)
        x, t = problem()
        opt.minimize(lambda: ct.mean_squared_error(net(x), t))


if __name__ == "__main__":
    unittest.main()
