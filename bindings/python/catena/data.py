# SPDX-License-Identifier: Apache-2.0
"""Data sets and loaders.

A data set is one of the library (`mnist`, `image_folder`, ...), arrays in memory, or any Python
object with `__len__` and `__getitem__` whose samples are arrays and numbers. A loader prepares
batches in threads; which samples are in a batch depends only on the seed.

    loader = catena.data.Loader(catena.data.Arrays(x, y), batch=32)
    for x, y in loader:  # one epoch
        ...
"""
from __future__ import annotations

import atexit as _atexit
import warnings as _warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from . import _core
from ._core import Handle, Tensor

if TYPE_CHECKING:
    from .dist import Comm

_atexit.register(_core.end_threads)


class Source(Protocol):
    """What a data set written in Python has. A sample is an array or a number, or a tuple of them.
    All samples have the same shapes and types."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


class Native:
    """A data set of the library. data[i] is a tuple of tensors, one per field; random choices, such
    as crops, are those of epoch 0."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def __len__(self) -> int:
        return _core.dataset_count(self)

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"sample {index} of {count}")
        return _core.dataset_get(self, index % count)


class Arrays(Native):
    """Samples are the rows of arrays, which all have the same length. They are not copied."""

    def __init__(self, *arrays: Any) -> None:
        import numpy as np

        super().__init__(_core.arrays_open([Tensor(np.ascontiguousarray(a)) for a in arrays]))


def _field(value: Any) -> tuple[str, tuple[int, ...]]:
    """Type and shape of a field, from a value of it."""
    import numpy as np

    if isinstance(value, (bool, int)):
        return "i64", ()
    if isinstance(value, float):
        return "f32", ()
    array = np.asarray(value)
    names = {"float32": "f32", "float64": "f64", "float16": "f16", "int64": "i64", "int32": "i32",
             "uint8": "u8", "bool": "bool"}
    if array.dtype.name not in names:
        raise TypeError(f"a sample has type {array.dtype}, expected one of {', '.join(names)}")
    return names[array.dtype.name], array.shape


def _python(source: Source) -> Native:
    """A data set of the library that asks a Python object for its samples."""
    if len(source) == 0:
        raise ValueError("the data set has no samples")
    first = source[0]
    fields = first if isinstance(first, tuple) else (first,)
    return Native(_core.dataset_new(source, len(source), [_field(v) for v in fields]))


class Loader:
    """Batches of a data set. Iterating gives one epoch; the next iteration gives the next one.

    Parameters:
        source: a data set of this module, or any object with __len__ and __getitem__
        batch: samples per batch
        shuffle: another order in every epoch, which depends on seed
        threads: number of threads that prepare batches ahead; 0: none
        seed: of the order and of all random choices
        comm: each of its ranks gets samples of its own. There is a warning if some ranks have one
            batch less, because all must take the same number of steps: use drop_last, a Trainer, or
            dist.step_empty
        drop_last: leave out an incomplete batch at the end of an epoch
        skip: share of samples that may fail and are left out
        options: other options of the library's loader, such as depth=4 (batches ahead), mixup=0.2
            with classes=10, pad_multiple=8, or sizes=[128, 160] (image sizes that change)

    A batch is a list of tensors, one per field. The threads hold the GIL only while they run Python
    code of the data set. Raises: Error that names the sample if one cannot be read.
    """

    def __init__(self, source: Source | Native | Handle, batch: int, shuffle: bool = True,
                 threads: int = 2, seed: int = 1, comm: Comm | None = None,
                 drop_last: bool = False, skip: float = 0.0, **options: Any) -> None:
        if not isinstance(source, Handle) and not hasattr(source, "_handle"):
            source = _python(source)
        self.source = source
        self.count = _core.dataset_count(source)
        most = 0
        sampler = _core.sampler_shuffled(self.count, seed) if shuffle else \
            _core.sampler_sequential(self.count)
        if comm is not None:
            _core.sampler_shard(sampler, comm.rank, comm.size)
            self.count = _core.sampler_count(sampler)
            if not drop_last and "total" not in options:
                most = -(-_core.sampler_total(sampler) // comm.size)
        self._handle = _core.loader_new(source, sampler, batch=batch, threads=threads,
                                        drop_last=int(drop_last), skip=skip, **options)
        self.batch = batch
        self.drop_last = drop_last
        self._missing = max(-(-most // batch) - len(self), 0)  # batches that other ranks have more

    def __iter__(self) -> Iterator[list[Tensor]]:
        while (fields := _core.loader_next(self)) is not None:
            yield fields
        if self._missing:
            _warnings.warn("this rank has one batch less in an epoch than others: if each batch is "
                           "a step, use drop_last=True or call dist.step_empty", RuntimeWarning,
                           stacklevel=2)

    def __len__(self) -> int:
        """Batches per epoch, if no sample is left out."""
        return self.count // self.batch if self.drop_last else -(-self.count // self.batch)

    def stats(self) -> dict[str, int]:
        """Counters: batches, samples, skipped, and nanoseconds spent waiting and filling."""
        return _core.loader_stats(self)


class Stream:
    """Batches of an iterable that has no length: its samples are stacked as they come. A function
    that returns an iterator makes every epoch start anew.

    Parameters:
        source: an iterable, or a function that returns one
        batch: samples per batch
        drop_last: leave out an incomplete batch at the end
    """

    def __init__(self, source: Iterable[Any] | Callable[[], Iterable[Any]], batch: int,
                 drop_last: bool = False) -> None:
        self.source, self.batch, self.drop_last = source, batch, drop_last

    def _stacked(self, samples: list[tuple[Any, ...]]) -> list[Tensor]:
        import numpy as np

        return [Tensor(np.stack([np.asarray(v) for v in field])) for field in zip(*samples)]

    def __iter__(self) -> Iterator[list[Tensor]]:
        samples: list[tuple[Any, ...]] = []
        for one in self.source() if callable(self.source) else self.source:
            samples.append(one if isinstance(one, tuple) else (one,))
            if len(samples) == self.batch:
                yield self._stacked(samples)
                samples = []
        if samples and not self.drop_last:
            yield self._stacked(samples)


def __getattr__(name: str) -> Callable[..., Native]:
    """mnist("folder", ...), image_folder(...), ...: functions of the library that open data."""
    function = getattr(_core, name + "_open", None)
    if function is None:
        raise AttributeError(f"there is no data set {name}")

    def opened(*args: Any, **options: Any) -> Native:
        return Native(function(*args, **options))

    opened.__name__ = name
    opened.__doc__ = function.__doc__
    opened.__text_signature__ = function.__text_signature__  # type: ignore[attr-defined]
    return opened
