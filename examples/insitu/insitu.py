#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""insitu.c in Python: a heat-equation solver in NumPy that trains a surrogate while it runs.

    mpirun -n 4 python3 insitu.py [--no-train]

Ranks exchange rows through mpi4py or, if it is not installed, through Catena. The result, heat.bin,
has the same bits with training and without, on any number of ranks. One rank without training needs
neither package.
"""
import os
import sys

import numpy as np

try:
    from mpi4py import MPI
except ImportError:
    MPI = None
try:
    import catena as ct
except ImportError:
    ct = None

NX, NY, STEPS, SPARK, REPORT, AHEAD = 128, 128, 2000, 100, 400, 5
REACH, FILTERS = 4, 8


class Alone:
    """One rank."""

    rank, size = 0, 1

    def exchange(self, u):
        """Set rows 0 and -1 to the edges of the neighbouring slabs."""

    def total(self, values):
        """The sum of an array over all ranks."""
        return values


class Mpi4py(Alone):
    """The ranks of a communicator of the solver's own."""

    def __init__(self):
        self.comm = MPI.COMM_WORLD.Create_cart([MPI.COMM_WORLD.size], reorder=True)
        self.rank, self.size = self.comm.rank, self.comm.size
        self.up, self.down = self.comm.Shift(0, 1)

    def exchange(self, u):
        self.comm.Sendrecv(u[1], self.up, 0, u[-1], self.down, 0)
        self.comm.Sendrecv(u[-2], self.down, 0, u[0], self.up, 0)

    def total(self, values):
        return self.comm.allreduce(values)

    def group(self):
        return ct.dist.Comm(self.comm)


class Catena(Alone):
    """The ranks of the job, which Catena starts."""

    def __init__(self):
        self.comm = ct.dist.start()
        self.rank, self.size = self.comm.rank, self.comm.size

    def exchange(self, u):
        edges = ct.dist.allgather(self.comm, u[[1, -2]]).numpy()  # two rows of every rank
        if self.rank > 0:
            u[0] = edges[2 * self.rank - 1]
        if self.rank + 1 < self.size:
            u[-1] = edges[2 * self.rank + 2]

    def total(self, values):
        return ct.dist.allreduce(self.comm, values).numpy()

    def group(self):
        return self.comm


def field(u, edge):
    """The slab without `edge` cells on each side as a tensor (1,1,H,W): the solver's memory."""
    return ct.Tensor(u[None, None, edge:len(u) - edge, edge:NX - edge]).cast("f32")


class Surrogate:
    """Predicts the temperature of a cell AHEAD steps later from the 9 x 9 cells around it."""

    def __init__(self, group):
        self.net = ct.nn.Sequential(ct.nn.Conv(1, FILTERS, 2 * REACH + 1), ct.relu,
                                    ct.nn.Conv(FILTERS, 1, 1))
        self.opt = ct.optim.Adam(self.net.parameters(), lr=0.002)
        ct.dist.broadcast(group, self.net)  # these two lines train ...
        ct.dist.connect(self.opt, group)    # ... one network on all ranks

    def learn(self, old, u):
        """Learn to predict u from the field AHEAD steps ago. Returns the squared errors of the
        network and of predicting "no change"."""
        with ct.step():
            y = field(u, REACH)
            loss = ct.mean_squared_error(self.net(field(old, 0)), y)
            still = ct.mean_squared_error(field(old, REACH), y).keep()
            self.opt.backward(loss)
            self.opt.step()  # runs here and averages gradients over the ranks
        return np.array([loss.item(), still.item()])


def sparks(u, first, t):
    """Set some squares of 16 x 16 cells to 1."""
    j, i = np.ogrid[first + 1:first + len(u) - 1, 1:NX - 1]
    u[1:-1, 1:-1][(j // 16 * 3 + i // 16 * 7 + t) % 13 == 0] = 1


def step(u):
    near = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    u[1:-1, 1:-1] += 0.2 * (near - 4 * u[1:-1, 1:-1])


def report(ranks, u, t, errors):
    heat, *mean = ranks.total(np.array([u[1:-1].sum(), *errors * AHEAD / REPORT / ranks.size]))
    learned = f"  loss {mean[0]:.2e}  baseline {mean[1]:.2e}" if mean[0] > 0 else ""
    if ranks.rank == 0:
        print(f"step {t:4d}  heat {heat:.6f}{learned}", flush=True)


def main(train):
    if ct:
        ct.use_context(ct.Context(seed=1))
    ranks = Mpi4py() if MPI else Catena() if ct else Alone()
    first, end = NY * ranks.rank // ranks.size, NY * (ranks.rank + 1) // ranks.size
    u = np.zeros((end - first + 2, NX))  # the first and last row are halos or cold walls
    surrogate = Surrogate(ranks.group()) if train else None
    old, errors = u, np.zeros(2)
    for t in range(STEPS + 1):
        if surrogate and t > 0 and t % AHEAD == 0:
            try:
                errors += surrogate.learn(old, u)
            except ct.Error as error:
                print("training stopped:", error, file=sys.stderr)
                surrogate = None
        if t > 0 and t % REPORT == 0:
            report(ranks, u, t, errors)
            errors[:] = 0
        if t % SPARK == 0:
            sparks(u, first, t)
        ranks.exchange(u)
        if t % AHEAD == 0:
            old = u.copy()
        step(u)
    file = os.open("heat.bin", os.O_CREAT | os.O_WRONLY, 0o644)
    os.pwrite(file, u[1:-1].tobytes(), first * NX * u.itemsize)
    os.close(file)


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--no-train"]):
        sys.exit("usage: insitu.py [--no-train]")
    if not ct and not sys.argv[1:]:
        sys.exit("insitu.py: there is no package catena: set PYTHONPATH, or use --no-train")
    main(train=not sys.argv[1:])
