#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/cli/kills.py CATENA [--kills N] [--terms N] [--seed S]: trainings killed and resumed.

An MLP and a ResNet-20, each on 1 and 2 threads, are trained once without interruption. Then they
are started again, killed (SIGKILL) or asked to stop (SIGTERM, which must give exit code 85) at
random moments and resumed each time. In the end the weights must be the same bit for bit, and so
must the log apart from times. ctest runs a few of each; the full test has 50 kills and 20 stops.
Without NumPy: skipped (77)."""
import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not installed")
    sys.exit(77)

MLP = ["mlp", "--data", "x.npy", "--target", "y.npy", "--hidden", "64,64", "--batch", "16",
       "--epochs", "30", "--schedule", "cosine", "--ema", "0.9"]
RESNET = ["resnet20_cifar", "--data", "cifar", "--batch", "32", "--epochs", "6",
          "--schedule", "one-cycle", "--save-minutes", "0.005"]
TIMES = ("seconds", "compute", "input", "other", "items_per_s")


def make_data():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(700, 6))
    np.save("x.npy", x)
    np.save("y.npy", np.sin(x[:, :2]))
    Path("cifar").mkdir()
    for name, n in [(f"data_batch_{i}.bin", 30) for i in range(1, 6)] + [("test_batch.bin", 40)]:
        records = rng.integers(0, 256, (n, 3073), dtype=np.uint8)
        records[:, 0] %= 10
        (Path("cifar") / name).write_bytes(records.tobytes())


def start(catena, words, threads):
    env = {**os.environ, "CATENA_TUNE": "0", "OMP_NUM_THREADS": str(threads),
           "OMP_WAIT_POLICY": "passive"}
    return subprocess.Popen([catena, "train", *words, "--threads", str(threads), "--quiet"],
                            env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process):
    text = process.communicate()[0]
    return process.returncode, text


def log_of(folder):
    rows = [json.loads(line) for line in (Path(folder) / "log.jsonl").read_text().splitlines()]
    return [{k: v for k, v in row.items() if not k.startswith(TIMES)} for row in rows]


def same(folder):
    names = [p.name for p in Path("whole").glob("*.safetensors")]
    assert names, "the training left no weights"
    for name in names:
        whole, mine = (Path(where) / name for where in ("whole", folder))
        assert whole.read_bytes() == mine.read_bytes(), f"{name} differs"
    assert log_of("whole") == log_of(folder), "the logs differ"


def interrupt(catena, model, threads, signals):
    """Send all these signals at random moments, to as many trainings as it takes. Returns
    their number."""
    subprocess.run(["rm", "-rf", "whole"], check=True)
    began = time.time()
    code, text = finish(start(catena, model + ["--out", "whole"], threads))
    length = time.time() - began
    assert code == 0, text
    trainings = 0
    while signals:
        trainings += 1
        folder = f"part{trainings}"
        words = model + ["--out", folder]
        while True:
            process = start(catena, words, threads)
            sent = signals.pop() if signals else None
            if sent:
                time.sleep(random.uniform(0, length))
                process.send_signal(sent)
            code, text = finish(process)
            if code == 0:
                break
            assert sent and code in (-sent, 85), f"exit code {code} after signal {sent}:\n{text}"
            # "": main had not begun
            assert sent != signal.SIGTERM or code == 85 or text == "", text
            saved = (Path(folder) / "state").is_dir() and any((Path(folder) / "state").glob("0*"))
            words = ["--resume", "--out", folder] if saved else model + ["--out", folder, "--force"]
        same(folder)
        subprocess.run(["rm", "-rf", folder], check=True)
    return trainings


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catena", type=Path)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--terms", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random.seed(options.seed)
    catena = options.catena.resolve()
    signals = [signal.SIGKILL] * options.kills + [signal.SIGTERM] * options.terms
    random.shuffle(signals)
    cases = [(model, threads) for model in (MLP, RESNET) for threads in (1, 2)]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_data()
        for i, (model, threads) in enumerate(cases):
            mine = signals[i::len(cases)]
            count = len(mine)
            trainings = interrupt(catena, model, threads, mine)
            print(f"{model[0]}, {threads} threads: {count} signals in {trainings} trainings, "
                  "all equal to the bit", flush=True)
        os.chdir("/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
