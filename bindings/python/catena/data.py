# SPDX-License-Identifier: Apache-2.0
"""Data sets and loaders.

A data set is one of the library (`mnist`, `image_folder`, ...), arrays in memory, or any Python
object with `__len__` and `__getitem__` whose samples are arrays and numbers. A loader prepares
batches in threads; which samples are in a batch depends only on the seed.

    loader = catena.data.Loader(catena.data.Arrays(x, y), batch=32)
    for x, y in loader:  # one epoch
        ...
"""
from . import _core
from ._core import Handle, Tensor


class Arrays:
    """Samples are the rows of arrays."""

    def __init__(self, *arrays):
        import numpy as np

        self._handle = _core.arrays_open(
            [Tensor(np.ascontiguousarray(a)) for a in arrays])

    def __len__(self):
        return _core.dataset_count(self)


class Native:
    """A data set of the library."""

    def __init__(self, handle):
        self._handle = handle

    def __len__(self):
        return _core.dataset_count(self)


def _field(value):
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


def _python(source):
    """A data set of the library that asks a Python object for its samples."""
    if len(source) == 0:
        raise ValueError("the data set has no samples")
    first = source[0]
    fields = first if isinstance(first, tuple) else (first,)
    return Native(_core.dataset_new(source, len(source), [_field(v) for v in fields]))


class Loader:
    """Batches of a data set. Iterating gives one epoch; the next iteration gives the next one.

    batch: samples per batch. shuffle: another order in every epoch, which depends on seed.
    threads: number of threads that prepare batches ahead; 0: none. comm: each of its ranks gets
    samples of its own. More options are those of ctn_loader_opt, such as drop_last=1 or depth=4. A
    batch is a list of tensors, one per field.
    """

    def __init__(self, source, batch, shuffle=True, threads=2, seed=1, comm=None, **options):
        if not isinstance(source, Handle) and not hasattr(source, "_handle"):
            source = _python(source)
        self.source = source
        self.count = _core.dataset_count(source)
        sampler = _core.sampler_shuffled(self.count, seed) if shuffle else \
            _core.sampler_sequential(self.count)
        if comm is not None:
            _core.sampler_shard(sampler, comm.rank, comm.size)
            self.count = _core.sampler_count(sampler)
        self._handle = _core.loader_new(source, sampler, batch=batch, threads=threads, **options)
        self.batch, self.last = batch, None

    def __iter__(self):
        while True:
            fields = _core.loader_next(self, self.last)
            self.last = fields
            if fields is None:
                return
            yield list(fields)

    def __len__(self):
        """Batches per epoch, if none is dropped."""
        return -(-self.count // self.batch)

    def stats(self):
        """Counters: batches, samples, time spent waiting and filling."""
        return _core.loader_stats(self)


class Stream:
    """Batches of an iterable that has no length: its samples are stacked as they come. A function
    that returns an iterator makes every epoch start anew."""

    def __init__(self, source, batch, drop_last=False):
        self.source, self.batch, self.drop_last = source, batch, drop_last

    def _stacked(self, samples):
        import numpy as np

        return [Tensor(np.stack([np.asarray(v) for v in field])) for field in zip(*samples)]

    def __iter__(self):
        samples = []
        for one in self.source() if callable(self.source) else self.source:
            samples.append(one if isinstance(one, tuple) else (one,))
            if len(samples) == self.batch:
                yield self._stacked(samples)
                samples = []
        if samples and not self.drop_last:
            yield self._stacked(samples)


def __getattr__(name):
    """mnist("folder", ...), image_folder(...), ...: functions of the library that open data."""
    function = getattr(_core, name + "_open", None)
    if function is None:
        raise AttributeError(f"there is no data set {name}")

    def opened(*args, **options):
        return Native(function(*args, **options))

    opened.__name__ = name
    opened.__doc__ = function.__doc__
    return opened
