#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data sets and loaders from Python: coverage, order, lifetimes of batches, errors, threads."""
import concurrent.futures
import gc
import os
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
import zlib

import numpy as np

import catena as ct


def png(width, height, value):
    """A PNG file of one colour."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(
            ">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes([value] * 3 * width)) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(
        b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class Squares:
    """Sample i is (a small array, i)."""

    def __init__(self, n, bad=-1):
        self.n, self.bad = n, bad

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i == self.bad:
            raise OSError("this sample is broken")
        return np.full((2, 3), i, np.float32), i


class Loading(unittest.TestCase):
    def check_epoch(self, loader, n):
        seen = []
        for x, i in loader:
            self.assertEqual(x.shape[1:], (2, 3))
            np.testing.assert_array_equal(x.numpy()[:, 0, 0], i.numpy())
            seen += i.tolist()
        self.assertEqual(sorted(seen), list(range(n)))
        return seen

    def test_python_objects(self):
        for threads in (0, 1, 3):
            loader = ct.data.Loader(Squares(50), batch=8, threads=threads, seed=5)
            first, second = self.check_epoch(loader, 50), self.check_epoch(loader, 50)
            self.assertNotEqual(first, second)
            again = ct.data.Loader(Squares(50), batch=8, threads=2, seed=5)
            self.assertEqual(self.check_epoch(again, 50), first)
            self.assertEqual(len(loader), 7)
            self.assertEqual(loader.stats()["samples"], 100)

    def test_arrays(self):
        x = np.repeat(np.arange(20, dtype=np.float32), 6).reshape(20, 2, 3)
        loader = ct.data.Loader(ct.data.Arrays(x, np.arange(20)), batch=6, shuffle=False)
        del x
        gc.collect()
        self.assertEqual(self.check_epoch(loader, 20), list(range(20)))

    def test_samples_by_index(self):
        x = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
        data = ct.data.Arrays(x, np.arange(4))
        self.assertEqual([int(i) for _, i in data], [0, 1, 2, 3])
        np.testing.assert_array_equal(data[-1][0].numpy(), x[3])
        with self.assertRaisesRegex(IndexError, "sample 4 of 4"):
            data[4]

        class Doubled:  # a data set of Python around one of the library
            def __len__(self):
                return len(data)

            def __getitem__(self, i):
                y, t = data[i]
                return 2 * y.numpy(), t

        for y, t in ct.data.Loader(Doubled(), batch=2):
            np.testing.assert_array_equal(y.numpy(), 2 * x[t.numpy()])

    def test_image_options(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "class"))
            with open(os.path.join(folder, "class", "a.png"), "wb") as file:
                file.write(png(8, 8, 255))
            plain = ct.data.image_folder(folder, height=4, width=4, crop="whole")[0][0].numpy()
            scaled = ct.data.image_folder(folder, height=4, width=4, crop="whole", std=0.5,
                                          mean=(0.5, 0.25, 0))
            np.testing.assert_array_equal(plain, np.ones((3, 4, 4)))
            np.testing.assert_array_equal(scaled[0][0].numpy()[:, 0, 0], [1, 1.5, 2])
            last = ct.data.image_folder(folder, height=4, width=4, channels_last=1)[0][0]
            with self.assertRaisesRegex(BufferError, "row by row"):
                zlib.crc32(last)
            with self.assertRaisesRegex(ValueError, "mean has 2 numbers, expected one or 3"):
                ct.data.image_folder(folder, mean=(1, 2))

    def test_batches_outlive_the_next_one(self):
        kept = [x for x, _ in ct.data.Loader(Squares(12), batch=3, shuffle=False)]
        gc.collect()
        np.testing.assert_array_equal([x.numpy()[0, 0, 0] for x in kept], [0, 3, 6, 9])

    def test_arrays_of_batches_outlive_the_loader(self):
        def export(how):
            loader = ct.data.Loader(Squares(12), batch=3, shuffle=False, threads=1)
            kept = [how(x) for x, _ in loader]
            last = how(next(iter(loader))[0])
            del loader
            return [*kept, last]

        for how in (np.asarray, memoryview, np.from_dlpack, ct.from_dlpack, ct.Tensor):
            kept = export(how)
            gc.collect()
            ct.data.Loader(Squares(50), batch=3, shuffle=False)  # may get the memory that was freed
            self.assertEqual([np.asarray(x)[0, 0, 0] for x in kept], [0, 3, 6, 9, 0], how)

    def test_batches_outlive_the_loader(self):
        loader = ct.data.Loader(Squares(6), batch=3, shuffle=False)
        x, _ = next(iter(loader))
        del loader
        gc.collect()
        self.assertEqual(x.tolist(), [[[i] * 3] * 2 for i in range(3)])

    def test_loader_dropped_in_a_step_that_uses_it(self):
        for there in (np.asarray, lambda x: x):
            loader = ct.data.Loader(Squares(6), batch=3, shuffle=False)
            with ct.step():
                x, _ = next(iter(loader))
                y = (x + 1).keep()
                there(x)
                del loader
                gc.collect()
            self.assertEqual(y.numpy()[:, 0, 0].tolist(), [1, 2, 3])
            self.assertEqual(x.numpy()[:, 0, 0].tolist(), [0, 1, 2])

    def test_batches_of_a_loader_that_a_trainer_uses(self):
        x = np.arange(24, dtype=np.float32).reshape(12, 2)
        net = ct.nn.Linear(2, 1)
        loader = ct.data.Loader(ct.data.Arrays(x), batch=3, shuffle=False)
        before = next(iter(loader))[0]
        trainer = ct.train.Trainer(ct.optim.SGD(net.parameters(), lr=0), loader,
                                   lambda a: ct.sum(net(a)), net=net, iterations=6)
        after = next(iter(loader))[0]
        seen = np.asarray(after).copy()
        trainer.run()
        np.testing.assert_array_equal(before.numpy(), x[:3])
        np.testing.assert_array_equal(after.numpy(), seen)

    def test_threads_that_share_a_loader(self):
        asked, answer = threading.Event(), threading.Event()

        class Waiting(Squares):
            def __getitem__(self, i):
                if i == 4:
                    asked.set()
                    answer.wait(60)
                return super().__getitem__(i)

        loader = ct.data.Loader(Waiting(8), batch=4, shuffle=False, threads=0)
        next(iter(loader))
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            other = pool.submit(next, iter(loader))
            self.assertTrue(asked.wait(60))
            try:
                with self.assertRaisesRegex(RuntimeError, "another thread takes a batch"):
                    next(iter(loader))
            finally:
                answer.set()
            self.assertEqual(other.result()[1].tolist(), [4, 5, 6, 7])

    def test_batch_of_an_open_step(self):
        loader = ct.data.Loader(Squares(12), batch=3)
        with ct.step():
            x, _ = next(iter(loader))
            y = ct.relu(x)
            for _ in range(2):
                with self.assertRaisesRegex(RuntimeError, "the open step uses the last batch"):
                    next(iter(loader))
        del y

    def test_errors_name_the_sample(self):
        with self.assertRaisesRegex(ct.Error, "sample 7.*this sample is broken"):
            list(ct.data.Loader(Squares(20, bad=7), batch=4))
        loader = ct.data.Loader(Squares(20, bad=7), batch=4, skip=0.5)
        self.assertEqual(sum(len(x) for x, _ in loader), 19)
        self.assertEqual(loader.stats()["skipped"], 1)

    def test_samples_of_another_type(self):
        class Mixed(Squares):
            def __getitem__(self, i):
                return np.full(2, i, np.int32 if i == 3 else np.float32)

        with self.assertRaisesRegex(ct.Error, "sample 3.*type 'i', expected 8 bytes of type f32"):
            list(ct.data.Loader(Mixed(6), batch=2))

    def test_arrays_that_are_not_stored_row_by_row(self):
        row = ct.Tensor(np.broadcast_to(np.float32([1, 2]), (100000, 2)))
        with self.assertRaisesRegex(TypeError, "row by row"):
            ct._core.arrays_open([row])

    def test_stream(self):
        def numbers():
            yield from ((np.float32(i), i) for i in range(10))

        sizes = [len(x) for x, _ in ct.data.Stream(numbers, batch=4)]
        self.assertEqual(sizes, [4, 4, 2])
        seen = [v for _, i in ct.data.Stream(numbers, batch=4, drop_last=True) for v in i.tolist()]
        self.assertEqual(seen, list(range(8)))

    def test_loader_dropped_while_it_loads(self):
        for _ in range(20):
            loader = ct.data.Loader(Squares(1000), batch=4, threads=2)
            next(iter(loader))
            del loader
        gc.collect()

    def test_no_sample_is_asked_for_when_python_ends(self):
        """A thread that asks for the GIL then is stopped where it stands."""
        program = """
import atexit, time
asked = []
def after_all():
    n = len(asked)
    time.sleep(0.05)
    print("asked", len(asked) - n, "times after the end")
atexit.register(after_all)  # handlers run in reverse order
import catena as ct
class Slow:
    def __len__(self):
        return 100000
    def __getitem__(self, i):
        asked.append(i)
        time.sleep(0.001)
        return float(i)
loader = ct.data.Loader(Slow(), batch=4, threads=4, depth=200)
next(iter(loader))
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual(done.stdout, "asked 0 times after the end\n", done.stderr)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_training(self):
        rng = np.random.default_rng(1)
        x = rng.standard_normal((200, 4)).astype(np.float32)
        y = (x @ np.array([[1], [2], [-1], [0.5]], np.float32)).astype(np.float32)
        net = ct.nn.Linear(4, 1)
        opt = ct.optim.Adam(net.parameters(), lr=0.05)
        for _ in range(20):
            for a, b in ct.data.Loader(ct.data.Arrays(x, y), batch=20):
                with ct.step():
                    loss = ct.mean_squared_error(net(a), b)
                    opt.backward(loss)
                    opt.step()
        self.assertLess(loss.item(), 1e-3)


if __name__ == "__main__":
    unittest.main()
