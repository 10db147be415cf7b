#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The solver of examples/insitu in Python: training while it runs changes no bit of its result, on
one rank and on two."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOLVER = Path(__file__).resolve().parents[2] / "examples" / "insitu" / "insitu.py"


def mpirun(ranks):
    """The start of a command line that runs several ranks here."""
    env = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    said = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, env=env).stdout
    more = ["--oversubscribe", "--bind-to", "none"] if "Open MPI" in said else []
    return ["mpirun", *more, "-n", str(ranks)], env


class Solver(unittest.TestCase):
    def solve(self, *options, start=(), env=None):
        """The bits of the result, and the last line of the output."""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [*start, sys.executable, SOLVER, *options], cwd=folder, capture_output=True,
                text=True, timeout=300, env={**(env or os.environ), "OMP_NUM_THREADS": "1"})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertNotIn("training stopped", done.stderr)
            return (Path(folder) / "heat.bin").read_bytes(), done.stdout.splitlines()[-1]

    def check(self, start=(), env=None):
        """The result of the solver, with training and without."""
        alone, _ = self.solve("--no-train", start=start, env=env)
        trained, said = self.solve(start=start, env=env)
        self.assertEqual(len(alone), 128 * 128 * 8)
        self.assertTrue(alone == trained, "training has changed the result of the solver")
        *_, loss, _, baseline = said.split()
        self.assertLess(float(loss), float(baseline) / 5)
        return alone

    def test_one_rank(self):
        alone = self.check()
        without = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        plain, said = self.solve("--no-train", env=without)
        self.assertTrue(alone == plain, "the package has changed the result of the solver")
        self.assertNotIn("loss", said)

    @unittest.skipUnless(shutil.which("mpirun"), "there is no mpirun")
    def test_two_ranks(self):
        plain, _ = self.solve("--no-train")
        start, env = mpirun(2)
        self.assertTrue(self.check(start, env) == plain, "two ranks compute something else")


if __name__ == "__main__":
    unittest.main()
