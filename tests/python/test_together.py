#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Catena in one process with packages that have threads of their own: NumPy (OpenBLAS), PyTorch and
scikit-learn (OpenMP). In either order of import, with their work done in turn, results are the same
to the bit as alone.

`test_together.py MODULE ...` imports the modules in this order and prints the results of each.
"""
import hashlib
import importlib
import importlib.util
import subprocess
import sys
import unittest

STEPS = 5


def digest(arrays):
    return hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()


def samples():
    np = importlib.import_module("numpy")
    rng = np.random.default_rng(5)
    return rng.standard_normal((64, 100)).astype(np.float32), rng.integers(0, 10, 64)


def work_catena(ct):
    """Yields after each step, then gives the result. So do the other three."""
    x, t = samples()
    ct.use_context(ct.Context(seed=1))
    net = ct.nn.Sequential(ct.nn.Linear(100, 300), ct.relu, ct.nn.Linear(300, 10))
    opt = ct.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(STEPS):
        with ct.step():
            opt.backward(ct.softmax_cross_entropy(net(x), t))
            opt.step()
        yield
    return digest(p.numpy() for p in net.parameters())


def work_torch(torch):
    x, t = (torch.from_numpy(a) for a in samples())
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(100, 300), torch.nn.ReLU(), torch.nn.Linear(300, 10))
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(STEPS):
        opt.zero_grad()
        torch.nn.functional.cross_entropy(net(x), t).backward()
        opt.step()
        yield
    return f"{digest(p.detach().numpy() for p in net.parameters())} {torch.get_num_threads()}"


def work_sklearn(_):
    cluster = importlib.import_module("sklearn.cluster")
    x = samples()[0]
    x[:, 0] += 50 * (x[:, 1] > 0)
    for _ in range(STEPS):
        labels = cluster.KMeans(2, n_init=1, random_state=0).fit(x).labels_
        yield
    return digest([labels])


def work_numpy(_):
    x = samples()[0]
    for _ in range(STEPS):
        y = x @ x.T
        yield
    return digest([y])


WORK = {"catena": work_catena, "torch": work_torch, "sklearn": work_sklearn, "numpy": work_numpy}


def take_turns(names):
    """Import all modules, let each do one step in turn, and print what each one gives."""
    waiting = {name: WORK[name](importlib.import_module(name)) for name in names}
    while waiting:
        for name, work in list(waiting.items()):
            try:
                next(work)
            except StopIteration as end:
                print(name, end.value)
                del waiting[name]


def results(*names):
    """{name: result} of modules in a process of their own."""
    done = subprocess.run([sys.executable, __file__, *names], capture_output=True, text=True,
                          timeout=300)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(names)}: {done.stdout}{done.stderr}")
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


class Together(unittest.TestCase):
    def compare(self, other):
        if not importlib.util.find_spec(other):
            self.skipTest(f"{other} is not installed")
        alone = {**results("catena"), **results(other)}
        self.assertEqual(results("catena", other), alone)
        self.assertEqual(results(other, "catena"), alone)

    def test_numpy(self):
        self.compare("numpy")

    def test_torch(self):
        self.compare("torch")

    def test_sklearn(self):
        self.compare("sklearn")


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in WORK:
        take_turns(sys.argv[1:])
    else:
        unittest.main()
