#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package: values, operators, steps, training, errors and lifetimes."""
import ctypes
import gc
import os
import struct
import tempfile
import unittest

import numpy as np

import catena as ct


def noise(*shape):
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


class Values(unittest.TestCase):
    def test_arrays_in_and_out(self):
        for dtype in (np.float32, np.float64, np.int64, np.int32, np.uint8, np.bool_, np.float16):
            a = np.arange(6).reshape(2, 3).astype(dtype)
            x = ct.Tensor(a)
            self.assertEqual(x.shape, (2, 3))
            np.testing.assert_array_equal(x.numpy(), a)
            self.assertEqual(x.numpy().dtype, a.dtype)
        self.assertEqual(ct.tensor([1.5, 2]).dtype, "f32")
        self.assertEqual(ct.tensor([1, 2]).dtype, "i64")
        self.assertEqual(ct.tensor(3.0).shape, ())

    def test_no_copy(self):
        a = noise(4, 5)
        x = ct.Tensor(a)
        a[0, 0] = 42
        self.assertEqual(x[0, 0].item(), 42)
        np.testing.assert_array_equal((ct.Tensor(a.T[1:]) + 0).numpy(), a.T[1:])
        self.assertTrue(np.shares_memory(np.asarray(x), a))

    def test_operators(self):
        a, b = noise(3, 4), noise(4) + 3
        x, y = ct.Tensor(a), ct.Tensor(b)
        cases = [(x + y, a + b), (x - y, a - b), (x * y, a * b), (x / y, a / b), (x + 2, a + 2),
                 (2 - x, 2 - a), (x - 2, a - 2), (3 * x, 3 * a), (x / 2, a / 2), (-x, -a),
                 (abs(x), abs(a)), (y ** 2, b ** 2), (x @ x.transpose((1, 0)), a @ a.T),
                 (x.relu(), np.maximum(a, 0)), (x.sum(), a.sum()), (x.mean(0), a.mean(0)),
                 (x.max(1, keepdims=True), a.max(1, keepdims=True)), (x[1], a[1]),
                 (x[:, 1:3], a[:, 1:3]), (x[..., -1], a[..., -1]), (x[None, 0], a[None, 0])]
        for got, expected in cases:
            np.testing.assert_allclose(got.numpy(), expected, rtol=2e-6, atol=1e-6)
        np.testing.assert_array_equal((x > 0).numpy(), a > 0)

    def test_numbers(self):
        self.assertAlmostEqual(float(ct.tensor(2.5) * 2), 5)
        self.assertEqual(int(ct.tensor(7)), 7)
        self.assertEqual(ct.tensor([4]).item(), 4)
        self.assertTrue(ct.tensor(1.0))
        self.assertEqual(len(ct.tensor([1, 2, 3])), 3)
        self.assertIn("3", repr(ct.tensor([3.0])))

    def test_numbers_next_to_f64(self):
        x = np.array([0.1, 0.7, 3.0])
        t = ct.Tensor(x)
        for got, want in ((1.1 - t, 1.1 - x), (t / 0.3, x / 0.3), (0.3 / t, 0.3 / x),
                          (1.3 ** t, 1.3 ** x), (t * 0.1 + 0.7, x * 0.1 + 0.7)):
            self.assertEqual(got.dtype, "f64")
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-15)
        self.assertEqual((t > 0.7).tolist(), [0, 0, 1])

    def test_several_results(self):
        values, indices = ct.topk(np.array([[1, 5, 3]], np.float32), 2)
        np.testing.assert_array_equal(values.numpy(), [[5, 3]])
        np.testing.assert_array_equal(indices.numpy(), [[1, 2]])
        parts = ct.split(np.arange(6, dtype=np.float32), 0, (2, 4))
        np.testing.assert_array_equal(parts[1].numpy(), [2, 3, 4, 5])
        joined = ct.concat([parts[0], parts[1]])
        np.testing.assert_array_equal(joined.numpy(), np.arange(6))

    def test_padding(self):
        """A 0 is no padding, and not the number before it."""
        x, w = np.ones((1, 1, 5, 4), np.float32), np.ones((2, 1, 3, 3), np.float32)
        for pad, shape in (((1, 0), (5, 2)), ((0, 1), (3, 4)), (1, (5, 4)), (0, (3, 2)),
                           ((1,), (5, 4))):
            self.assertEqual(ct.conv(x, w, pad=pad).shape, (1, 2, *shape))
            self.assertEqual(ct.nn.Conv(1, 2, 3, pad=pad)(x).shape, (1, 2, *shape))
        self.assertEqual(ct.conv(x, w, pad=1, pad_end=0).shape, (1, 2, 4, 3))
        self.assertEqual(ct.conv(x, w, pad=1, pad_end=(0, 1)).shape, (1, 2, 4, 4))
        self.assertEqual(ct.max_pool(x, 3, stride=1, pad=(0, 1)).shape, (1, 1, 3, 4))
        with self.assertRaises(ValueError):
            ct.conv(x, w, pad=-1)


class Net(ct.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = ct.nn.Linear(2, 16)
        self.second = ct.nn.Linear(16, 1)
        self.scale = ct.nn.parameter((1,), init=1.0)

    def forward(self, x):
        return self.second(ct.tanh(self.first(x))) * self.scale


XOR = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
WANTED = np.array([[0], [1], [1], [0]], np.float32)


def train(net, opt, steps):
    for _ in range(steps):
        with ct.step():
            loss = ct.mean_squared_error(net(XOR), WANTED)
            opt.backward(loss)
            opt.step()
    return loss


class Training(unittest.TestCase):
    def test_xor(self):
        net = Net()
        names = [name for name, _ in net.named_parameters()]
        self.assertEqual(sorted(names), sorted(["first.weight", "first.bias", "second.weight",
                                                "second.bias", "scale"]))
        opt = ct.optim.Adam(net.parameters(), lr=0.05)
        loss = train(net, opt, 200)
        self.assertLess(loss.item(), 0.01)  # kept, so it can be read after the step
        self.assertEqual(opt.steps, 200)
        stats = ct.current_context().stats()
        self.assertGreater(stats["hits"], 190)

    def test_read_in_a_step(self):
        net = Net()
        opt = ct.optim.SGD(net.parameters(), lr=0.1)
        with ct.step():
            y = net(XOR)
            before = y.numpy()
            loss = ct.mean_squared_error(y, WANTED)
            self.assertAlmostEqual(loss.item(), float(((before - WANTED) ** 2).mean()), places=5)
            opt.backward(loss)
            opt.step()

    def test_gradients(self):
        a = noise(3)
        with ct.step():
            x = ct.Tensor(a).with_grad()
            (g,) = ct.grad((x * x * x).sum(), [x])
            (h,) = ct.grad(g.sum(), [x])
            np.testing.assert_allclose(g.numpy(), 3 * a * a, rtol=1e-5)
            np.testing.assert_allclose(h.numpy(), 6 * a, rtol=1e-5)

    def test_weights(self):
        net, other = Net(), Net()
        other.load_state_dict(net.state_dict())
        np.testing.assert_array_equal(net(XOR).numpy(), other(XOR).numpy())
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "weights.safetensors")
            net.save(path)
            third = Net()
            third.load(path)
            np.testing.assert_array_equal(net(XOR).numpy(), third(XOR).numpy())
        with self.assertRaises(KeyError):
            net.load_state_dict({"x": noise(1)})

    def test_settings(self):
        x = np.ones((100,), np.float32)
        with ct.evaluation():
            self.assertFalse(ct.current_context().training)
            np.testing.assert_array_equal(ct.dropout(x, 0.5).numpy(), x)
        self.assertTrue(ct.current_context().training)

    def test_initial_values(self):
        table = ct.nn.Embedding(200, 10)
        values = table.parameters()[0].numpy()
        self.assertAlmostEqual(float(values.std()), 1, delta=0.1)
        self.assertTrue((ct.nn.Embedding(2, 3, weight=0.5).parameters()[0].numpy() == 0.5).all())
        linear = ct.nn.Linear(3, 2, bias=0.25, weight={"kind": "normal", "std": 0.01})
        weight, bias = (p.numpy() for p in linear.parameters())
        self.assertLess(abs(weight).max(), 0.1)
        self.assertEqual(bias.tolist(), [0.25, 0.25])
        self.assertEqual(len(ct.nn.Linear(3, 2, bias=False).parameters()), 1)

    def test_zero_is_no_default(self):
        net = ct.nn.Linear(2, 2)
        opt = ct.optim.Adam(net.parameters(), lr=0.0, beta1=0.0)
        self.assertEqual((opt.lr, ct._core.optim_hyper(opt, "beta1")), (0, 0))
        other = ct.nn.Linear(2, 2)
        opt = ct.optim.AdamW(other.parameters(), decay=0.0)
        self.assertEqual(ct._core.optim_hyper(opt, "decay"), 0)
        self.assertEqual(opt.group("bias", decay=0.5), 1)

    def test_zoo(self):
        net = ct.zoo.mlp(size=(4, 8, 8, 3))
        self.assertEqual(net(noise(2, 4)).shape, (2, 3))
        net = ct.zoo.make("resnet20_cifar")
        with ct.evaluation():
            y = net(noise(1, 3, 32, 32))
        self.assertEqual(y.shape, (1, 10))
        self.assertIn("conv1.weight", net.state_dict())

    def test_zoo_sizes(self):
        self.assertEqual(ct.zoo.mlp().state_dict()["0.weight"].shape, (1000, 784))
        net = ct.zoo.mlp(size=[3, 5, 2])
        self.assertEqual([v.shape for v in net.state_dict().values()],
                         [(5, 3), (5,), (2, 5), (2,)])


class Errors(unittest.TestCase):
    def test_line_of_the_program(self):
        with self.assertRaises(ct.ShapeError) as caught:
            ct.add(noise(2), noise(3))  # this line
        self.assertIn(os.path.basename(__file__), str(caught.exception))
        self.assertIsInstance(caught.exception, ValueError)
        self.assertLess(caught.exception.status, 0)
        with self.assertRaises(ct.ShapeError) as caught:
            Net()(noise(2, 3))  # recorded inside forward, in this file
        self.assertIn("test_basics.py", str(caught.exception))

    def test_wrong_arguments(self):
        with self.assertRaisesRegex(TypeError, "has no argument 'axes'"):
            ct.sum(noise(2), axes=0)
        with self.assertRaisesRegex(TypeError, "'x' is missing"):
            ct.relu()
        with self.assertRaisesRegex(ValueError, "expected one of mean"):
            ct.mean_squared_error(noise(2), noise(2), reduction="average")
        with self.assertRaisesRegex(TypeError, "expected a tensor"):
            ct.relu("x")

    def test_gone(self):
        with ct.step():
            y = ct.relu(noise(2))
            kept = ct.relu(noise(2)).keep()
        with self.assertRaisesRegex(RuntimeError, "the step in which it was computed has ended"):
            y.numpy()
        np.testing.assert_array_equal(kept.numpy(), np.maximum(noise(2), 0))
        self.assertIn("gone", repr(y))

    def test_after_an_exception(self):
        for _ in range(3):
            with self.assertRaises(ZeroDivisionError):
                with ct.step():
                    ct.relu(noise(2))
                    1 / 0
        self.assertEqual(ct.current_context().depth, 0)
        np.testing.assert_array_equal((ct.tensor([1.0]) + 1).numpy(), [2])

    def test_backward_needs_a_step(self):
        net = Net()
        opt = ct.optim.SGD(net.parameters())
        with self.assertRaisesRegex(RuntimeError, "needs a step"):
            opt.backward(ct.tensor(1.0))


class Capsules(unittest.TestCase):
    def capsule(self, ndim, *shape):
        """A DLPack capsule of f32 as another package makes it."""
        dims = (ctypes.c_int64 * 9)(*shape)
        data = (ctypes.c_float * 4)()
        # data, device (2 int32), ndim, type (2 uint8, uint16), shape, strides, offset, owner, ...
        memory = ctypes.create_string_buffer(struct.pack(
            "PiiiBBHPPQPP", ctypes.addressof(data), 1, 0, ndim, 2, 32, 1, ctypes.addressof(dims), 0,
            0, 0, 0))
        self.kept = dims, data, memory
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p,
                                                       ctypes.c_void_p]
        return new(ctypes.addressof(memory), b"dltensor", None)

    def test_shapes(self):
        self.assertEqual(ct._core.from_dlpack_capsule(self.capsule(2, 2, 2)).shape, (2, 2))
        for wrong in ((-1, 2), (9, 1, 1, 1, 1, 1, 1, 1, 1, 1), (1, -4)):
            with self.assertRaisesRegex(TypeError, "from_dlpack: expected a tensor"):
                ct._core.from_dlpack_capsule(self.capsule(*wrong))


class Lifetimes(unittest.TestCase):
    def test_objects_dropped_in_a_step(self):
        with ct.step():
            net = Net()
            y = net(XOR)
            del net
            gc.collect()
            self.assertEqual(y.shape, (4, 1))
        opt = ct.optim.SGD(Net().parameters())  # the optimizer keeps the module
        gc.collect()
        self.assertEqual(opt.steps, 0)

    @unittest.skipIf("asan" in os.environ.get("LD_PRELOAD", ""), "freed memory is kept for a while")
    def test_no_growth(self):
        def memory():
            with open("/proc/self/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        def round_():
            net = Net()
            opt = ct.optim.SGD(net.parameters(), lr=0.1)
            for _ in range(3):
                train(net, opt, 1)
                try:
                    ct.add(noise(2), noise(3))
                except ct.Error:
                    pass

        for _ in range(100):
            round_()
        gc.collect()
        before = memory()
        for _ in range(300):
            round_()
        gc.collect()
        self.assertLess(memory() - before, 4 << 20)


if __name__ == "__main__":
    unittest.main()
