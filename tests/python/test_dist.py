#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two ranks under mpirun train like one rank with both batches; DLPack shares memory."""
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings

import numpy as np

import catena as ct


def samples():
    rng = np.random.default_rng(7)
    return rng.standard_normal((32, 6)).astype(np.float32), rng.integers(0, 3, 32)


def train(comm):
    """Steps on this rank's half of each batch; with comm None, on the whole batch."""
    x, t = samples()
    net = ct.nn.Sequential(ct.nn.Linear(6, 8), ct.tanh, ct.nn.Linear(8, 3))
    opt = ct.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    if comm:
        ct.dist.broadcast(comm, net)
        ct.dist.connect(opt, comm)
    for k in range(8):
        rows = slice(4 * k, 4 * k + 4)
        if comm:
            rows = slice(4 * k + 2 * comm.rank, 4 * k + 2 * comm.rank + 2)
        with ct.step():
            opt.backward(ct.softmax_cross_entropy(net(x[rows]), t[rows]))
            opt.step()
    return net


def mpirun(path, *words):
    """Run this file on two ranks, which write the trained weights to path."""
    program = shutil.which("mpirun")
    if not program:
        raise unittest.SkipTest("there is no mpirun")
    env = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
           "OMP_NUM_THREADS": "1"}
    version = subprocess.run([program, "--version"], capture_output=True, text=True, env=env)
    more = ["--oversubscribe", "--bind-to", "none"] if "Open MPI" in version.stdout else []
    return subprocess.run([program, *more, "-n", "2", sys.executable, __file__, path, *words],
                          env=env, capture_output=True, text=True, timeout=120)


class Ranks(unittest.TestCase):
    def compare(self, *words):
        """Two ranks with one rank."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "two.safetensors")
            done = mpirun(path, *words)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            two = ct.nn.Sequential(ct.nn.Linear(6, 8), ct.tanh, ct.nn.Linear(8, 3))
            two.load(path)
        ct.use_context(ct.Context(threads=1, seed=1))
        one = train(None)
        for name, value in one.state_dict().items():
            np.testing.assert_allclose(two.state_dict()[name], value, rtol=1e-5, atol=1e-6)

    def test_two_ranks(self):
        self.compare()

    @unittest.skipUnless(importlib.util.find_spec("mpi4py"), "mpi4py is not installed")
    def test_mpi4py(self):
        self.compare("mpi4py")

    def test_one_rank(self):
        comm = ct.dist.Comm()
        self.assertEqual((comm.rank, comm.size), (0, 1))
        loader = ct.data.Loader(ct.data.Arrays(*samples()), batch=4, comm=comm)
        self.assertEqual(sum(len(x) for x, _ in loader), 32)
        comm.send_obj({"a": [1, 2]}, 0)
        comm.send_obj(None, 0)
        self.assertEqual(comm.recv_obj(0), {"a": [1, 2]})
        self.assertIsNone(comm.recv_obj(0))
        self.assertEqual(comm.allreduce_obj("x"), "x")
        with self.assertRaises(ct.Error):
            comm.send_obj(1, 1)


class Uneven(unittest.TestCase):
    """Ranks whose last batch is missing."""

    def batches(self, rank, samples, **more):
        class Fake:
            size = 2
        Fake.rank = rank
        x = np.zeros((samples, 2), np.float32)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            n = len(list(ct.data.Loader(ct.data.Arrays(x), batch=2, comm=Fake, **more)))
        return n, len(told)

    def test_warning(self):
        self.assertEqual(self.batches(0, 5), (2, 0))
        self.assertEqual(self.batches(1, 5), (1, 1))
        self.assertEqual(self.batches(1, 5, drop_last=True), (1, 0))
        self.assertEqual(self.batches(1, 7), (2, 0))
        self.assertEqual(self.batches(1, 8), (2, 0))


class Sharing(unittest.TestCase):
    def test_dlpack(self):
        x = ct.tensor([[1.0, 2.0], [3.0, 4.0]])
        a = np.from_dlpack(x)
        np.testing.assert_array_equal(a, [[1, 2], [3, 4]])
        del x
        np.testing.assert_array_equal(a + 1, [[2, 3], [4, 5]])
        b = np.arange(6, dtype=np.int64).reshape(2, 3).T
        y = ct.from_dlpack(b)
        self.assertEqual((y.shape, y.dtype), ((3, 2), "i64"))
        np.testing.assert_array_equal(y.numpy(), b)
        b[0, 0] = 9
        self.assertEqual(y[0, 0].item(), 9)


def uneven(comm):
    """Rank 0 has a batch more than the others."""
    line = ct.nn.Linear(2, 1)
    opt = ct.optim.SGD(line.parameters(), lr=0.1)
    ct.dist.connect(opt, comm)
    x = np.arange(2 * comm.size + 2, dtype=np.float32).reshape(-1, 2)
    loader = ct.data.Loader(ct.data.Arrays(x), batch=1, comm=comm)
    with warnings.catch_warnings(record=True):
        for x, in loader:
            with ct.step():
                opt.backward(ct.mean(line(x)))
                opt.step()
    for _ in range(2 - len(loader)):
        ct.dist.step_empty(opt)
    assert opt.steps == 2
    weights = comm.allreduce_obj(line.parameters()[0].numpy())
    np.testing.assert_array_equal(weights, comm.size * line.parameters()[0].numpy())


def rank(path, words):
    """What each rank runs."""
    ct.use_context(ct.Context(threads=1, seed=1))
    if "mpi4py" in words:
        from mpi4py import MPI
        world = ct.dist.Comm(MPI.COMM_WORLD)
    else:
        world = ct.dist.start()
    size = world.size
    for other in range(size):
        world.send_obj(("from", world.rank, "x" * 1000 * other), other)
    for other in range(size):
        assert world.recv_obj(other) == ("from", other, "x" * 1000 * world.rank)
    assert world.bcast_obj(world.rank, 1) == 1
    assert world.gather_obj(world.rank, 1) == (list(range(size)) if world.rank == 1 else None)
    assert world.allreduce_obj([world.rank]) == list(range(size))
    trained = train(world)
    if world.rank == 0:
        trained.save(path)
    uneven(world)
    world.barrier()


if __name__ == "__main__":
    if len(sys.argv) >= 2 and sys.argv[1].endswith(".safetensors"):
        rank(sys.argv[1], sys.argv[2:])
    else:
        unittest.main()
