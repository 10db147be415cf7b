#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python_data.py FOLDER [STEPS [ROUNDS [BATCH]]]: steps of ResNet-50 on the photos of an image
folder, fed by the library's loader and by a data set written in Python, both with two threads, and
on one batch in memory. Runs of STEPS steps alternate. Prints one JSON line with medians per step:

compute_ms               the step on a batch in memory
library_ms, python_ms    the step with its wait for the batch
library_wait_ms, ...     that wait
python_cpu_ms            CPU time of the Python data set, in the threads of the loader
"""
import itertools
import json
import statistics
import sys
import time

import numpy as np

import catena as ct

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CROP = {"crop": "random", "flip": 1}


class Photos:
    """Photos as u8, which Python code normalises."""

    def __init__(self, folder):
        self.photos = ct.data.image_folder(folder, raw=1, **CROP)
        self.shift = np.array(MEAN, np.float32).reshape(3, 1, 1)
        self.factor = 1 / np.array(STD, np.float32).reshape(3, 1, 1)
        self.cpu = 0.0

    def __len__(self):
        return len(self.photos)

    def __getitem__(self, index):
        begin = time.thread_time()
        pixels, label = self.photos[index]
        x = (pixels.numpy() * np.float32(1 / 255) - self.shift) * self.factor
        self.cpu += time.thread_time() - begin
        return x, label


def endless(loader):
    while True:
        yield from loader


class Training:
    """One network, trained on whatever comes."""

    def __init__(self):
        self.net = ct.zoo.make("resnet50")
        self.opt = ct.optim.SGD(self.net.parameters(), lr=0.001, momentum=0.9)

    def step(self, x, t):
        with ct.step():
            self.opt.backward(ct.softmax_cross_entropy(self.net(x), t))
            self.opt.step()

    def run(self, batches, steps):
        """Medians in ms of the times of steps, and of their waits for the batch."""
        self.step(*next(batches))  # the threads fill their first batches
        times, waits = [], []
        for _ in range(steps):
            begin = time.perf_counter()
            batch = next(batches)
            waits.append(time.perf_counter() - begin)
            self.step(*batch)
            times.append(time.perf_counter() - begin)
            del batch
        return statistics.median(times) * 1e3, statistics.median(waits) * 1e3


def loaded(training, source, batch, steps):
    """The same with a new loader, so that it works ahead for these steps only."""
    return training.run(endless(ct.data.Loader(source, batch, threads=2, drop_last=True)), steps)


def main(folder, steps=5, rounds=3, batch=16):
    training = Training()
    own, photos = ct.data.image_folder(folder, mean=MEAN, std=STD, **CROP), Photos(folder)
    rng = np.random.default_rng(1)
    fixed = rng.random((batch, 3, 224, 224), np.float32), rng.integers(0, 37, batch)
    found = {}
    for _ in range(rounds):
        row = {"compute_ms": training.run(itertools.repeat(fixed), steps)[0]}
        row["library_ms"], row["library_wait_ms"] = loaded(training, own, batch, steps)
        photos.cpu = 0.0
        row["python_ms"], row["python_wait_ms"] = loaded(training, photos, batch, steps)
        row["python_cpu_ms"] = photos.cpu * 1e3 / (steps + 1)
        for name, value in row.items():
            found.setdefault(name, []).append(value)
    print(json.dumps({name: statistics.median(values) for name, values in found.items()}))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
