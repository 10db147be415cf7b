#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""help() and types: every public function has a signature, a text and a line for each parameter,
and a typed program passes mypy --strict, if that is installed."""
import importlib.util
import inspect
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import catena as ct
from catena import _core

PROGRAM = Path(__file__).with_name("typed_program.py")


class Help(unittest.TestCase):
    def test_ops(self):
        for name in ct._ops.__all__:
            op = getattr(ct, name)
            said = inspect.getdoc(op)
            for argument in inspect.signature(op).parameters:
                self.assertRegex(said, rf"(?m)^    {argument}: ", name)
            self.assertFalse(said.startswith("Parameters"), f"{name}: no sentence")
            self.assertNotRegex(said, r"\bNULL\b|\bctn_|\bE[A-Z]{4,}\b", name)
        self.assertEqual(str(inspect.signature(ct.softmax)), "(x, axis=-1)")
        self.assertEqual(str(inspect.signature(ct.Tensor.softmax)), "(self, /, axis=-1)")
        self.assertIn("Raises: ShapeError, DtypeError, ArgumentError.", ct.conv.__doc__)
        self.assertIn("stride=1", str(inspect.signature(ct.conv)))

    def check_class(self, kind):
        self.assertTrue(inspect.getdoc(kind), kind)
        if not issubclass(kind, (Exception, ct.Parameter, _core.Handle)):
            inspect.signature(kind)
        for name, member in vars(kind).items():
            if not name.startswith("_") and (callable(member) or isinstance(member, property)):
                self.assertTrue(inspect.getdoc(member), f"{kind.__name__}.{name}")

    def test_classes(self):
        found = 0
        for module in (ct, ct.nn, ct.optim, ct.data, ct.dist, ct.train):
            for name, one in vars(module).items():
                if name.startswith("_"):
                    continue
                if inspect.isclass(one) and one.__module__.startswith("catena"):
                    self.check_class(one)
                    found += 1
                elif inspect.isroutine(one) and one.__module__.startswith("catena"):
                    self.assertTrue(inspect.getdoc(one), name)
                    inspect.signature(one)
        self.assertGreater(found, 30)
        inspect.signature(ct.data.image_folder)

    def test_every_function_has_a_type(self):
        stub = Path(_core.__file__).with_name("_core.pyi").read_text(encoding="utf-8")
        for name in dir(_core):
            if not name.startswith("_"):
                self.assertRegex(stub, rf"(?m)^(def|class) {name}\b", name)


class Types(unittest.TestCase):
    def test_program_runs(self):
        subprocess.run([sys.executable, PROGRAM], check=True, capture_output=True)

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "there is no mypy")
    def test_mypy(self):
        with tempfile.TemporaryDirectory() as cache:
            done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache,
                                   PROGRAM], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
