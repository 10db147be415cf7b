#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files of weights are read without PyTorch, and cannot run code."""
import collections
import io
import os
import pickle
import sys
import tempfile
import types
import unittest
import zipfile

import numpy as np

import catena as ct


class FloatStorage:
    """Stands for torch.FloatStorage while a file is written."""


class BFloat16Storage:
    pass


def _rebuild_tensor_v2(*args):
    raise AssertionError("only its name is used")


class Tensor:
    """Is pickled as a tensor of PyTorch is."""

    def __init__(self, key, kind, offset, size, stride):
        self.key, self.kind, self.args = key, kind, (offset, size, stride)

    def __reduce__(self):
        return _rebuild_tensor_v2, (Place(self.key, self.kind), *self.args, False,
                                    collections.OrderedDict())


class Place:
    def __init__(self, key, kind):
        self.key, self.kind = key, kind


class Writer(pickle.Pickler):
    def persistent_id(self, obj):
        return ("storage", obj.kind, obj.key, "cpu", 0) if isinstance(obj, Place) else None


def write(path, content, storages):
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    for kind in (FloatStorage, BFloat16Storage):
        kind.__module__, kind.__qualname__ = "torch", kind.__name__
        setattr(torch, kind.__name__, kind)
    _rebuild_tensor_v2.__module__ = "torch._utils"
    utils._rebuild_tensor_v2 = _rebuild_tensor_v2
    sys.modules.update({"torch": torch, "torch._utils": utils})
    try:
        out = io.BytesIO()
        Writer(out, 2).dump(content)
    finally:
        del sys.modules["torch"], sys.modules["torch._utils"]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/data.pkl", out.getvalue())
        for key, data in storages.items():
            archive.writestr(f"model/data/{key}", data)


class Reading(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "model.pt")

    def test_state_dict(self):
        values = np.arange(8, dtype=np.float32)
        bits = (np.array([1.5, -2.25], np.float32).view(np.uint32) >> 16).astype(np.uint16)
        write(self.path, collections.OrderedDict(
            weight=Tensor("0", FloatStorage, 2, (2, 3), (1, 2)), steps=7,
            low=Tensor("1", BFloat16Storage, 0, (2,), (1,))), {"0": values.tobytes(),
                                                               "1": bits.tobytes()})
        state = ct.weights(self.path)
        np.testing.assert_array_equal(state["weight"], [[2, 4, 6], [3, 5, 7]])
        np.testing.assert_array_equal(state["low"], [1.5, -2.25])
        self.assertEqual(list(state), ["weight", "low"])

    def test_safetensors(self):
        net = ct.nn.Linear(3, 2)
        net.save(self.path)
        state = ct.weights(self.path)
        np.testing.assert_array_equal(state["weight"], net.state_dict()["weight"])
        other = ct.nn.Linear(3, 2)
        other.load_state_dict(state)
        np.testing.assert_array_equal(state["bias"], other.state_dict()["bias"])

    def test_module(self):
        values = np.arange(8, dtype=np.float32)
        write(self.path, {"state_dict": {
            "module.weight": Tensor("0", FloatStorage, 0, (2, 3), (3, 1)),
            "module.bias": Tensor("0", FloatStorage, 6, (2,), (1,))}}, {"0": values.tobytes()})
        net = ct.nn.Linear(3, 2)
        net.load(self.path)
        np.testing.assert_array_equal(net.state_dict()["bias"], [6, 7])

    def test_wrong_files(self):
        write(self.path, {"x": Tensor("0", FloatStorage, 2, (3,), (1,))}, {"0": bytes(16)})
        with self.assertRaisesRegex(ct.FormatError, "beyond the end of its storage"):
            ct.weights(self.path)
        write(self.path, {"x": os.system}, {})
        with self.assertRaisesRegex(ct.FormatError, "found no tensors"):
            ct.weights(self.path)
        with open(self.path, "wb") as file:
            file.write(b"nothing")
        with self.assertRaisesRegex(ct.FormatError, "7 bytes are too few"):
            ct.weights(self.path)
        with self.assertRaisesRegex(ct.FileError, "none"):
            ct.weights("none")


if __name__ == "__main__":
    unittest.main()
