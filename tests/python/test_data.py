#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data sets and loaders from Python: coverage, order, lifetimes of batches, errors, threads."""
import gc
import os
import struct
import subprocess
import sys
import tempfile
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

    def test_batch_of_an_open_step(self):
        batches = iter(ct.data.Loader(Squares(12), batch=3))
        with self.assertRaisesRegex(RuntimeError, "the open step uses the last batch"):
            with ct.step():
                x, _ = next(batches)
                y = ct.relu(x)
                next(batches)
        del y

    def test_errors_name_the_sample(self):
        with self.assertRaisesRegex(ct.Error, "sample 7.*this sample is broken"):
            list(ct.data.Loader(Squares(20, bad=7), batch=4))
        loader = ct.data.Loader(Squares(20, bad=7), batch=4, skip=0.5)
        self.assertEqual(sum(len(x) for x, _ in loader), 19)
        self.assertEqual(loader.stats()["skipped"], 1)

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
