#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program on two ranks ends well although variables of it still hold what MPI carries."""
import os
import shutil
import subprocess
import sys
import unittest

PROGRAM = """
import catena as ct, numpy as np
comm = ct.dist.start()
net = ct.nn.Linear(2, 1)
opt = ct.optim.SGD(net.parameters(), lr=0.1)
ct.dist.connect(opt, comm)
x = np.ones((4, 2), np.float32)
loader = ct.data.Loader(ct.data.Arrays(x), batch=1, comm=comm)
for i in range(10):
    for (a,) in loader:
        with ct.step():
            opt.backward(net(a).mean())
            opt.step()
print("steps:", opt.steps)
"""


class Exit(unittest.TestCase):
    def test_two_ranks(self):
        mpirun = shutil.which("mpirun")
        if not mpirun:
            self.skipTest("there is no mpirun")
        env = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMP_NUM_THREADS": "1"}
        done = subprocess.run([mpirun, "-n", "2", sys.executable, "-c", PROGRAM], env=env,
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("steps: 20"), 2)


if __name__ == "__main__":
    unittest.main()
