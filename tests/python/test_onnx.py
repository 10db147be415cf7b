#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Modules are written as ONNX models. If onnxruntime is there, it runs them."""
import os
import tempfile
import unittest

import numpy as np

import catena as ct

try:
    import onnxruntime
except ImportError:
    onnxruntime = None


class Net(ct.nn.Module):
    """A module of Python, whose forward function is called while the model is written."""

    def __init__(self):
        super().__init__()
        self.fc1 = ct.nn.Linear(6, 5)
        self.fc2 = ct.nn.Linear(5, 2)

    def forward(self, x):
        return ct.softmax(self.fc2(ct.relu(self.fc1(x))) * 2, axis=1)


class Onnx(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "net.onnx")

    def export(self, net, shape, **options):
        try:
            net.export_onnx(self.path, shape, **options)
        except ct.Error as error:
            if "protobuf" in str(error):
                self.skipTest("built without protobuf-c")
            raise
        with open(self.path, "rb") as file:
            return file.read()

    def compare(self, net, x):
        if onnxruntime is None:
            return
        session = onnxruntime.InferenceSession(self.path, providers=["CPUExecutionProvider"])
        with ct.evaluation():
            want = net(ct.Tensor(x)).numpy()
        np.testing.assert_allclose(session.run(None, {"input": x})[0], want, atol=1e-5)

    def test_module_of_python(self):
        net = Net()
        model = self.export(net, (6,))
        for name in (b"fc1.weight", b"fc2.bias", b"Softmax", b"batch"):
            self.assertIn(name, model)
        self.compare(net, np.random.default_rng(1).random((4, 6), dtype=np.float32))
        self.assertTrue(np.isfinite(net(np.zeros((1, 6), np.float32)).numpy()).all())

    def test_zoo(self):
        net = ct.zoo.make("resnet20_cifar")
        self.assertNotIn(b"BatchNormalization", self.export(net, (3, 32, 32), fold=True, batch=2))

    def test_refused(self):
        class Bad(Net):
            def forward(self, x):
                return ct.lgamma(self.fc1(x))
        self.export(Net(), (6,))
        with self.assertRaisesRegex(ct.Error, "lgamma"):
            Bad().export_onnx(self.path, (6,))
        with self.assertRaisesRegex(ct.Error, "opset"):
            Net().export_onnx(self.path, (6,), opset=3)


if __name__ == "__main__":
    unittest.main()
