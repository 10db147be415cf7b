# SPDX-License-Identifier: Apache-2.0
"""Training on several ranks: `mpirun -n 4 python3 PROGRAM`.

    comm = catena.dist.start()
    loader = catena.data.Loader(source, batch=32, comm=comm)  # each rank its own samples
    opt = catena.optim.Adam(net.parameters())
    catena.dist.broadcast(comm, net)     # the same initial weights everywhere
    catena.dist.connect(opt, comm)       # steps exchange gradients from now on

A communicator of mpi4py can be used instead: `catena.dist.Comm(MPI.COMM_WORLD)`.
"""
import atexit as _atexit

from . import _core


class Comm:
    """A group of ranks: all of the job, or those of a communicator of mpi4py."""

    def __init__(self, mpi4py=None, **options):
        if mpi4py is None:
            self._handle = _core.comm_open(**options)
        else:
            self._handle = _core.comm_adopt_fortran(mpi4py.py2f(), **options)

    @property
    def rank(self):
        """The number of this rank, from 0."""
        return _core.comm_rank(self)

    @property
    def size(self):
        """The number of ranks."""
        return _core.comm_size(self)

    def barrier(self):
        """Wait until all ranks are here."""
        _core.comm_barrier(self)

    def __repr__(self):
        return f"Comm(rank {self.rank} of {self.size})"


def start(**options):
    """Start MPI if a launcher started this process, and return the communicator of all ranks. MPI
    ends with the process. Without a launcher there is one rank."""
    if _core.mpi_init():
        _atexit.register(_finish)
    comm = Comm(**options)
    _open.append(comm)
    return comm


_open = []


def _finish():
    while _open:
        _open.pop()._handle = None  # frees it, because nothing else has it
    _core.mpi_finalize()


def connect(optimizer, comm, **options):
    """Let the steps of an optimizer exchange gradients: the mean over all ranks. shard=1 divides
    its state among the ranks."""
    _core.dist_optim(optimizer, comm, **options)
    optimizer.comm = comm


def broadcast(comm, module, root=0):
    """Give all ranks the parameters of one."""
    _core.dist_broadcast_vars(comm, module.parameters(), root)
