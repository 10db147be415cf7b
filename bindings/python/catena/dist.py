# SPDX-License-Identifier: Apache-2.0
"""Training on several ranks: `mpirun -n 4 python3 PROGRAM`.

    comm = catena.dist.start()
    loader = catena.data.Loader(source, batch=32, comm=comm)  # each rank its own samples
    opt = catena.optim.Adam(net.parameters())
    catena.dist.broadcast(comm, net)     # the same initial weights everywhere
    catena.dist.connect(opt, comm)       # steps exchange gradients from now on

A communicator of mpi4py can be used instead: `catena.dist.Comm(MPI.COMM_WORLD)`.
"""
from __future__ import annotations

import atexit as _atexit
import pickle as _pickle
import weakref as _weakref
from typing import TYPE_CHECKING, Any

from . import _core
from ._steps import step as _step

if TYPE_CHECKING:
    from ._core import Operand, Tensor
    from .nn import Module
    from .optim import Optimizer


class Comm:
    """A group of ranks: all of the job, or those of a communicator of mpi4py."""

    def __init__(self, mpi4py: Any = None, **options: Any) -> None:
        if mpi4py is None:
            self._handle = _core.comm_open(**options)
        else:
            self._handle = _core.comm_adopt_fortran(mpi4py.py2f(), **options)

    @property
    def rank(self) -> int:
        """The number of this rank, from 0."""
        return _core.comm_rank(self)

    @property
    def size(self) -> int:
        """The number of ranks."""
        return _core.comm_size(self)

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        _core.comm_barrier(self)

    def send_obj(self, obj: Any, to: int) -> None:
        """Send an object that can be pickled to a rank, without waiting until it is received."""
        _core.comm_send_bytes(self, _pickle.dumps(obj), to)

    def recv_obj(self, source: int) -> Any:
        """Wait for the next object that rank `source` sends to this one."""
        return _pickle.loads(_core.comm_recv_bytes(self, source))

    def bcast_obj(self, obj: Any = None, root: int = 0) -> Any:
        """The object of rank `root`, on every rank. Collective."""
        if self.rank != root:
            return self.recv_obj(root)
        for rank in range(self.size):
            if rank != root:
                self.send_obj(obj, rank)
        return obj

    def gather_obj(self, obj: Any, root: int = 0) -> list[Any] | None:
        """On rank `root`, the objects of all ranks in order; None on the others. Collective."""
        if self.rank != root:
            self.send_obj(obj, root)
            return None
        return [obj if rank == root else self.recv_obj(rank) for rank in range(self.size)]

    def allreduce_obj(self, obj: Any) -> Any:
        """The sum (+) of the objects of all ranks, in their order, on every rank. Collective."""
        found = self.gather_obj(obj)
        if found is None:
            return self.bcast_obj()
        total = found[0]
        for other in found[1:]:
            total = total + other
        return self.bcast_obj(total)

    def __repr__(self) -> str:
        return f"Comm(rank {self.rank} of {self.size})"


def start(**options: Any) -> Comm:
    """Start MPI if a launcher started this process, and return the communicator of all ranks. MPI
    ends with the process. Without a launcher there is one rank."""
    if _core.mpi_init():
        _atexit.register(_finish)
    comm = Comm(**options)
    _open.append(comm)
    return comm


_open: list[Comm] = []
_connected: _weakref.WeakSet[Optimizer] = _weakref.WeakSet()  # they use a communicator


def _finish() -> None:
    """End MPI. What uses it is freed before, even if a variable of the program still holds it."""
    for one in [*_connected, *_open]:
        one._handle.close()
    _core.mpi_finalize()


def connect(optimizer: Optimizer, comm: Comm, **options: Any) -> None:
    """Let the steps of an optimizer exchange gradients: the mean over all ranks. shard=1 divides
    its state among the ranks."""
    _core.dist_optim(optimizer, comm, **options)
    optimizer.comm = comm
    _connected.add(optimizer)


def step_empty(optimizer: Optimizer) -> None:
    """Take part in a step of the other ranks without samples, with weight 0: on a rank that has
    fewer batches than others. Call it outside of steps."""
    with _step():
        _core.dist_step_empty(optimizer)


def broadcast(comm: Comm, module: Module, root: int = 0) -> None:
    """Give all ranks the parameters of one."""
    _core.dist_broadcast_vars(comm, module.parameters(), root)


def allreduce(comm: Comm, x: Operand) -> Tensor:
    """The sum of x over all ranks, as an op: gradients are summed over the ranks too."""
    return _core.dist_allreduce(comm, x)


def allgather(comm: Comm, x: Operand) -> Tensor:
    """The x (N,...) of all ranks, in the order of the ranks: (size * N,...). Gradients go back to
    the rank that gave x."""
    return _core.dist_allgather(comm, x)


def reduce_scatter(comm: Comm, x: Operand) -> Tensor:
    """This rank's part (N,...) of the sum of x (size * N,...) over all ranks."""
    return _core.dist_reduce_scatter(comm, x)
