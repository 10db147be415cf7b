#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/cli/test_cli.py CATENA SOURCE LIBRARY [NAME ...]: the command as a user meets it.

CATENA is the built command, SOURCE the source tree and LIBRARY the folder of libcatena.so, for the
network of one's own. Every test runs in an empty folder. Without NumPy: skipped (77).
"""
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not here")
    sys.exit(77)

CATENA, SOURCE, LIBRARY = (Path(p).resolve() for p in sys.argv[1:4])
ENV = {**os.environ, "CATENA_TUNE": "0", "CATENA_CACHE_DIR": "none", "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}


def run(*words, code=0, env=None):
    done = subprocess.run([CATENA, *map(str, words)], capture_output=True, text=True, env={**ENV, **(env or {})})
    line = "catena " + " ".join(map(str, words))
    assert done.returncode == code, f"{line}: exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}"
    return done


def train(*words, **more):
    return json.loads(run("train", *words, "--quiet", "--json", **more).stdout)


def same(a, b):
    return Path(a).read_bytes() == Path(b).read_bytes()


def make_arrays(n=256):
    """y = A x + b in units far from 1, f64."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(n, 6)) * [1, 10, 100, 1e3, 1e-3, 5] + [0, 5, -300, 1e4, 2, 0]
    y = np.stack([x[:, 1] * 40 + 1e5, x[:, 2] * -0.01 + x[:, 0]], axis=1)
    np.save("x.npy", x)
    np.save("y.npy", y)
    return x, y


ARRAYS = ["--data", "x.npy", "--target", "y.npy", "--hidden", "16", "--batch", "32"]


# ---- usage


def test_usage():
    def wrong(words, *expected, env=None):
        done = run(*words.split(), code=2, env=env)
        assert done.stdout == "" and done.stderr.count("\n") == 1, (words, done.stdout, done.stderr)
        for text in expected:
            assert text in done.stderr, (words, text, done.stderr)

    wrong("trian", "did you mean train?")
    wrong("train", "name one of:", "cifar-resnet20")
    wrong("train rsnet50", "did you mean resnet50?")
    wrong("train mymodel.so", "path with a slash")
    wrong("train mlp --epcohs 3", "did you mean --epochs?")
    wrong("train mlp --lr fast", "--lr wants a number, found 'fast'")
    wrong("train mlp --lr nan", "--lr wants a number")
    wrong("train mlp --epochs 1.5", "whole number")
    wrong("train mlp --optimizer adma", "one of auto|sgd|adam|adamw")
    wrong("train mlp --epochs", "wants a value")
    wrong("train mlp --json=1", "takes no value")
    wrong("train mlp --threads 99999 --data x", "would wait for each other")
    wrong("train mlp --epochs 0 --data x", "give an end")
    wrong("eval mlp --data x", "--weights")
    wrong("pack onlyone", "DIR OUT")
    wrong("pack a b c", "unexpected argument")
    wrong("train mlp --config missing.yaml", "cannot read missing.yaml")
    wrong("train mlp", "CATENA_TRAIN_BATCH", env={"CATENA_TRAIN_BATCH": "many"})
    wrong("train mlp --out other", "--data PATH")
    wrong("train mlp --hidden 8,x", "numbers with commas")
    wrong("train mlp --hidden 8,", "numbers with commas")
    wrong("bench mpl", "did you mean mlp?")
    wrong("bench mlp --exchange all", "mpirun -np 2")


def test_help():
    for name in "train eval predict pack bench explain tune info selftest timeline".split():
        text = run(name, "--help").stdout
        assert "Usage: catena " + name in text and "Examples:" in text and "--json" in text, name
        page = run("help", "--man", name).stdout
        assert page.startswith(".TH CATENA-") and ".SH OPTIONS" in page and ".SH EXIT STATUS" in page, name
    assert ".BR catena\\-train (1)" in run("help", "--man").stdout


def test_bad_data():
    make_arrays()
    run("train", "mlp", "--data", "nothing", "--out", "r1", code=4)
    Path("noise.npy").write_bytes(b"not an array")
    run("train", "mlp", "--data", "noise.npy", "--target", "y.npy", "--out", "r2", code=4)
    run("train", "mlp", "--data", "x.npy", "--out", "r3", code=2)
    np.save("short.npy", np.zeros((3, 2)))
    run("train", "mlp", "--data", "x.npy", "--target", "short.npy", "--out", "r4", code=4)
    run("train", "unet", *ARRAYS, "--out", "r5", code=4)
    for r in ("r1", "r2", "r3", "r4", "r5"):
        assert not Path(r).exists(), f"{r} was made although the data is bad"
    np.savez("x.npz", x=np.zeros(3))
    Path("run.h5").write_bytes(b"")
    for name, says in (("nothing", "o such file"), ("x.npz", "numpy.save"), ("run.h5", "run.h5:/name")):
        for words in (["--data", name, "--target", "y.npy"], ["--data", "x.npy", "--target", name],
                      [*ARRAYS, "--val", name, "--val-target", "y.npy"]):
            error = run("train", "mlp", *words, "--epochs", "1", "--out", "r6", code=4).stderr
            assert says in error and error.count("\n") == 1, (words, error)


def test_class_folders():
    def wrong(data, *says):
        error = run("train", "resnet18", "--data", data, "--epochs", "1", "--size", "32", "--out", "r", code=4).stderr
        assert all(text in error for text in says) and not Path("r").exists(), (data, error)

    for folder in ("deep/below/a", "deep/below/b", "deep/other/a", "none/a", "none/b", "one/a", "mixed/a", "mixed/b", "mixed/result"):
        os.makedirs(folder)
        if not folder.startswith("none") and not folder.endswith("result"):
            make_png(f"{folder}/0.png", [[(9, 9, 9)] * 20] * 20)
    wrong("deep", "--data deep/below?")
    wrong("none", "no JPEG or PNG")
    wrong("one", "a is the only class")
    wrong("mixed", "result has no photos", "every folder here is a class")


def test_no_effect():
    make_arrays()
    words = ["--jitter", "0.1", "--heads", "3", "--momentum", "0.5", "--wire", "bf16", "--gamma", "0.5", "--smoothing", "0.1"]
    found = run("train", "mlp", *ARRAYS, "--epochs", "1", "--quiet", "--out", "r", *words).stderr
    for name in words[::2]:
        assert f"warning: {name} has no effect: " in found, (name, found)
    assert found.count("has no effect") == len(words) // 2, found
    used = ["--hidden", "8", "--optimizer", "sgd", "--momentum", "0.5", "--schedule", "step", "--every", "1", "--gamma", "0.5"]
    assert "has no effect" not in run("train", "mlp", *ARRAYS, "--epochs", "1", "--quiet", "--out", "s", *used).stderr
    # what a configuration file says is no mistake of this command line
    Path("c.yaml").write_text("heads: 3\n")
    assert "has no effect" not in run("train", "mlp", *ARRAYS, "--epochs", "1", "--quiet", "--out", "t", "--config", "c.yaml").stderr


def test_slow_kernels_are_counted():
    for name in "mlp lenet5 resnet20_cifar resnet32_cifar resnet44_cifar resnet56_cifar".split():
        done = run("bench", name, "--first-step", "--batch", "2", "--json")
        assert json.loads(done.stdout)["reference_kernels"] == 0 and "warning" not in done.stderr, done.stderr


def test_nonfinite():
    make_arrays()
    done = run("train", "mlp", *ARRAYS, "--optimizer", "sgd", "--lr", "1e30", "--out", "r", "--quiet", code=6)
    assert "Z rank 0 " in done.stderr, done.stderr


def test_unwritable():
    make_arrays()
    os.makedirs("r/weights.safetensors/there")
    run("train", "mlp", *ARRAYS, "--epochs", "1", "--out", "r", "--force", "--quiet", code=3)


# ---- configuration


def resolved(out):
    pairs = (line.split(": ", 1) for line in Path(out, "config.yaml").read_text().splitlines() if line[0] != "#")
    return dict(pairs)


def test_precedence():
    make_arrays()
    Path("c.yaml").write_text("batch: 16\nlr: 1e-2\nepochs: 2\n")
    env = {"CATENA_TRAIN_LR": "0.5", "CATENA_TRAIN_SEED": "7", "CATENA_TRAIN_EPOCHS": "9"}
    base = ["mlp", "--data", "x.npy", "--target", "y.npy", "--hidden", "8", "--config", "c.yaml"]
    train(*base, "--epochs", "1", "--out", "r", env=env)
    c = resolved("r")
    got = {k: c[k] for k in ("batch", "lr", "epochs", "seed", "optimizer", "loss")}
    assert got == {"batch": "16", "lr": "1e-2", "epochs": "1", "seed": "7", "optimizer": "adam", "loss": "mse"}, got
    # The site file is the weakest.
    for folder in ("bin", "etc"):
        os.mkdir(folder)
    shutil.copy(CATENA, "bin/catena")
    Path("etc/catena.yaml").write_text("seed: 3\nlr: 0.25\nmomentum: 0.5\n")
    subprocess.run(["bin/catena", "train", *base, "--epochs", "1", "--out", "site", "--quiet"], check=True,
                   capture_output=True, env={**ENV, **env, "LD_LIBRARY_PATH": str(LIBRARY)})
    c = resolved("site")
    assert (c["seed"], c["lr"], c["momentum"]) == ("7", "1e-2", "0.5"), c
    # What was written is a configuration that gives the same weights.
    train("--config", "r/config.yaml", "--out", "again")
    assert same("r/weights.safetensors", "again/weights.safetensors")


def test_typing():
    make_arrays()
    base = ["mlp", "--data", "x.npy", "--target", "y.npy", "--epochs", "1"]
    # no is a word for a text key, false for a flag; 1e1 is a whole number where one is expected.
    Path("c.yaml").write_text("model-args: no\nnesterov: no\ndrop-last: yes\nbatch: 1e1\nhidden: [8, 4]\nclip: 1e3\n")
    train(*base, "--config", "c.yaml", "--out", "r")
    c = resolved("r")
    assert (c["model-args"], c["nesterov"], c["drop-last"], c["batch"]) == ('"no"', "false", "true", "1e1"), c
    assert c["hidden"] == "[8,4]" and float(c["clip"]) == 1000, c

    def refused(text, *expected):
        Path("bad.yaml").write_text(text)
        done = run("train", *base, "--config", "bad.yaml", "--out", "bad", code=2)
        for part in expected:
            assert part in done.stderr, (text, part, done.stderr)
        assert not Path("bad").exists()

    refused("batch: 8\nepcohs: 3\n", "line 2", "unknown key 'epcohs'", "did you mean epochs?")
    refused("batch: no\n", "line 1", "whole number", "'no'")
    refused("lr: fast\n", "a number")
    refused("optimizer: adagrad\n", "one of")
    refused("lr: &a 1\nmomentum: *a\n", "anchors")
    refused("momentum: *a\n", "alias")
    refused("lr: !!float 1\n", "tags")
    refused("lr: [1, 2]\n", "a list where a single value")
    refused("lr: {a: 1}\n", "keys below a key")
    refused("- 1\n- 2\n", "line 1")
    refused("just words\n", "expected keys and values")
    refused("lr: 1\nlr: 2\n", "twice")
    refused("lr: 1\n---\nlr: 2\n", "second document")
    refused("force: true\n", "only a flag")
    refused("lr: '1\n", "not YAML")
    refused("#" * (1 << 20) + "\nlr: 1\n", "larger than 1 MB")


# ---- training


def test_regression():
    x, y = make_arrays()
    values = train("mlp", *ARRAYS, "--epochs", "60", "--lr", "0.01", "--val-share", "0.2", "--out", "r")
    assert values["val/loss"] < 0.05, values
    for name in ("config.yaml log.jsonl weights.safetensors best.safetensors machine.json plan.txt decisions.txt "
                 "report.html loss.svg state").split():
        assert Path("r", name).exists(), f"{name} is missing"
    assert json.loads(Path("r/machine.json").read_text())["machine"]["host"]
    rows = [json.loads(line) for line in Path("r/log.jsonl").read_text().splitlines()]
    assert len(rows) == 60, len(rows)

    # Units: predictions are near the targets themselves, which are around 1e5 and 1.
    weights = "r/weights.safetensors"
    run("predict", "mlp", "--weights", weights, "--data", "x.npy", "--out", "p.npy")
    p = np.load("p.npy")
    assert p.shape == y.shape and p.dtype == np.float64
    error = np.sqrt(((p - y) ** 2).mean(axis=0)) / y.std(axis=0)
    assert (error < 0.25).all(), error
    # eval tells the same errors as the file has.
    found = json.loads(run("eval", "mlp", "--weights", weights, *ARRAYS[:4], "--json").stdout)
    assert found["samples"] == len(x)
    assert abs(found["rmse"] / np.sqrt(((p - y) ** 2).mean()) - 1) < 1e-3, found
    np.save("x32.npy", x.astype(np.float32))
    run("predict", "mlp", "--weights", weights, "--data", "x32.npy", "--out", "p32.npy")
    assert np.load("p32.npy").dtype == np.float32
    run("predict", "mlp", "--weights", weights, "--data", "x.npy", "--out", "p.txt", code=2)


def test_unet():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(32, 1, 16, 16))
    np.save("x.npy", x * 3 + 7)
    np.save("y.npy", (x + np.roll(x, 1, axis=-1)) * 50 - 20)
    words = ["--data", "x.npy", "--target", "y.npy", "--batch", "8"]
    train("unet", *words, "--width", "4", "--depth", "2", "--epochs", "20", "--lr", "0.01", "--out", "r")
    run("predict", "unet", "--weights", "r/weights.safetensors", "--data", "x.npy", "--out", "p.npy")
    y, p = np.load("y.npy"), np.load("p.npy")
    assert p.shape == y.shape
    assert np.sqrt(((p - y) ** 2).mean()) < 0.5 * y.std()
    # Fields without channels.
    np.save("x.npy", np.load("x.npy")[:, 0])
    np.save("y.npy", np.load("y.npy")[:, 0])
    train("unet", *words, "--spatial", "2", "--width", "4", "--depth", "2", "--epochs", "1", "--out", "s")
    run("predict", "unet", "--weights", "s/weights.safetensors", "--data", "x.npy", "--out", "p.npy")
    assert np.load("p.npy").shape == (32, 16, 16)


def test_classes():
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 3, size=200)
    np.save("x.npy", (rng.normal(size=(200, 5)) + 3 * labels[:, None]).astype(np.float32))
    for dtype in (np.uint8, np.int64):
        np.save("y.npy", labels.astype(dtype))
        out = f"r{np.dtype(dtype).itemsize}"
        values = train("mlp", *ARRAYS, "--epochs", "30", "--lr", "0.02", "--val-share", "0.25", "--out", out)
        assert values["val/accuracy"] > 0.8, values
    run("predict", "mlp", "--weights", "r8/best.safetensors", "--data", "x.npy", "--out", "p.csv")
    lines = Path("p.csv").read_text().splitlines()
    assert lines[0] == "sample,class,name,probability" and len(lines) == 201
    right = np.mean([int(line.split(",")[1]) == k for line, k in zip(lines[1:], labels)])
    assert right > 0.8, right
    run("predict", "mlp", "--weights", "r8/best.safetensors", "--data", "x.npy", "--out", "p.npy")
    p = np.load("p.npy")
    assert p.dtype == np.float32 and len(p) == 200 and np.allclose(p.sum(axis=1), 1, atol=1e-5)
    assert [int(line.split(",")[1]) for line in lines[1:]] == list(p.argmax(axis=1))
    found = json.loads(run("eval", "mlp", "--weights", "r8/best.safetensors", *ARRAYS[:4], "--json").stdout)
    assert abs(found["accuracy"] - right) < 1e-6, (found, right)
    mixed = train("mlp", *ARRAYS, "--epochs", "2", "--smoothing", "0.1", "--schedule", "one-cycle", "--warmup", "0.5",
                  "--ema", "0.9", "--clip", "1", "--accumulate", "2", "--out", "m")
    assert mixed["epochs"] == 2


def make_png(path, rows):
    """8-bit RGB, rows of (r,g,b)."""
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
    raw = b"".join(b"\0" + bytes(v for pixel in row for v in pixel) for row in rows)
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    Path(path).write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) +
                           chunk(b"IEND", b""))


def test_images():
    colours = {"blue": (10, 20, 200), "green": (20, 200, 10), "red": (200, 10, 20)}
    for name, colour in colours.items():
        os.makedirs(f"photos/{name}")
        for i in range(8):
            make_png(f"photos/{name}/{i}.png", [[tuple(min(255, v + i) for v in colour)] * 20] * 20)
    words = ["--size", "16", "--batch", "6", "--lr", "0.01"]
    values = train("cifar-resnet20", "--data", "photos", *words, "--epochs", "6", "--val-share", "0.25", "--out", "r")
    assert "val/accuracy" in values and Path("r/classes.txt").read_text().split() == sorted(colours), values
    lines = run("predict", "cifar-resnet20", "--weights", "r/best.safetensors", "--data", "photos/red").stdout
    found = [json.loads(line) for line in lines.splitlines()]
    assert len(found) == 8 and found[0]["sample"].endswith("0.png") and found[0]["name"] in colours, found
    # Classes are known by name, not by their place among the folders that happen to be there.
    shutil.copytree("photos/red", "some/red")
    names = [line["name"] for line in found]
    some = json.loads(run("eval", "cifar-resnet20", "--weights", "r/best.safetensors", "--data", "some", "--json").stdout)
    assert some["accuracy"] == names.count("red") / 8, (some, names)
    values = train("cifar-resnet20", "--data", "photos", *words, "--epochs", "1", "--val", "some", "--out", "v")
    some = json.loads(run("eval", "cifar-resnet20", "--weights", "v/weights.safetensors", "--data", "some", "--json").stdout)
    assert abs(values["val/accuracy"] - some["accuracy"]) < 1e-6, (values, some)
    shutil.copytree("photos/red", "some/purple")
    error = run("eval", "cifar-resnet20", "--weights", "r/best.safetensors", "--data", "some", code=4).stderr
    assert "the class 'purple' is none of the 3 that are known" in error, error
    packed = json.loads(run("pack", "photos", "shards", "--json").stdout)
    assert packed["samples"] == 24 and Path("shards/shard-000000.tar").exists()
    train("cifar-resnet20", "--data", "shards", *words, "--epochs", "1", "--mixup", "0.2", "--out", "s")
    shards, folder = (json.loads(run("eval", "cifar-resnet20", "--weights", "r/best.safetensors", "--data", data,
                                     "--json").stdout) for data in ("shards", "photos"))
    assert shards["accuracy"] == folder["accuracy"] and abs(shards["loss"] - folder["loss"]) < 1e-4, (shards, folder)
    # A damaged file: the training ends and names it, or leaves it out when told so.
    Path("photos/red/3.png").write_bytes(b"\x89PNG nonsense")
    bad = ["cifar-resnet20", "--data", "photos", *words, "--epochs", "1", "--quiet"]
    assert "3.png" in run("train", *bad, "--out", "t", code=4).stderr
    assert "3.png" in run("train", *bad, "--out", "u", "--skip", "0.2").stderr
    run("eval", "cifar-resnet20", "--weights", "r/best.safetensors", "--data", "photos/red", code=4)


def test_mnist():
    rng = np.random.default_rng(4)
    for part, n in (("train", 60), ("t10k", 20)):
        images, labels = rng.integers(0, 256, size=(n, 28, 28), dtype=np.uint8), np.arange(n, dtype=np.uint8) % 10
        Path(f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, n, 28, 28) + images.tobytes())
        Path(f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, n) + labels.tobytes())
    assert train("mlp", "--data", ".", "--hidden", "8", "--epochs", "1", "--out", "r")["samples"] == 60
    assert json.loads(run("eval", "mlp", "--weights", "r/weights.safetensors", "--data", ".", "--json").stdout)["samples"] == 20
    assert train("lenet5", "--data", ".", "--iterations", "1", "--batch", "4", "--out", "s")["iterations"] == 1


def test_text():
    Path("a.txt").write_text("to be or not to be, that is the question. " * 100)
    values = train("gpt", "--data", "a.txt", "--length", "16", "--width", "16", "--depth", "1", "--heads", "2",
                   "--iterations", "200", "--eval-iterations", "50", "--val-share", "0.2", "--out", "r", "--log-iterations", "50")
    assert values["iterations"] == 200 and values["val/loss"] < 4, values
    assert len(Path("r/log.jsonl").read_text().splitlines()) == 4


def test_timeline():
    make_arrays()
    train("mlp", *ARRAYS, "--epochs", 3, "--out", "r", "--timeline", "t.json", "--timeline-steps", 12)
    trace = json.loads(Path("t.json").read_text())
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert [e["args"]["step"] for e in spans if e["cat"] == "step"] == list(range(12))
    assert sum(e["name"] == "adam" for e in spans) == 12 and any(e["cat"] == "input" for e in spans)
    assert {e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"} == {"steps", "kernels", "input"}

    split = json.loads(run("timeline", "t.json", "--json").stdout)
    parts = [split[k + "_ms"] for k in ("compute", "exposed", "progress", "input", "other")]
    assert split["ranks"] == 1 and split["steps"] == 12 and split["hidden_share"] is None
    assert abs(sum(parts) - split["step_ms"]) < 1e-6 * split["step_ms"] + 1e-9, split
    assert 0 < split["optimizer_ms"] < split["compute_ms"]
    assert split["by_rank"][0]["step_ms"] == split["step_ms"]
    text = run("timeline", "t.json").stdout
    assert "1 rank, 12 steps" in text and "rank 0 (" in text

    # Two ranks, made by hand: the first waits 3 ms for the second; gradients are on their way in 2 of its 6 ms of kernels.
    def span(pid, cat, ts, dur):
        return {"name": "x", "cat": cat, "ph": "X", "ts": ts * 1e3, "dur": dur * 1e3, "pid": pid, "tid": 0, "args": {"step": 0}}
    events = [span(0, "step", 0, 10), span(0, "compute", 0, 5), span(0, "compute", 4, 2), span(0, "exchange", 4, 1.5),
              span(0, "exchange", 5, 4), span(0, "wait", 6, 3), span(0, "input", 9, 0.5), span(1, "step", 0, 10),
              span(1, "compute", 0, 9), span(1, "optimizer", 9, 1), span(1, "exchange", 8, 1)]
    hand = {"traceEvents": events, "otherData": {"catena_timeline": 1, "clock_within_ns": [0, 5000], "more": [None, {}]}}
    Path("hand.json").write_text(json.dumps(hand, indent=1))
    split = json.loads(run("timeline", "hand.json", "--json").stdout)
    first, second = split["by_rank"]
    assert np.allclose([first[k + "_ms"] for k in ("step", "compute", "exposed", "input", "other", "hidden", "ahead")],
                       [10, 6, 3, 0.5, 0.5, 2, 3]), first
    assert np.allclose([second[k + "_ms"] for k in ("compute", "exposed", "optimizer", "hidden", "ahead")], [10, 0, 1, 1, 0])
    assert np.isclose(split["imbalance_ms"], 3) and split["slowest_rank"] == 1 and np.isclose(split["hidden_share"], 0.5)
    assert np.isclose(split["clock_within_us"], 5) and split["ranks"] == split["job_ranks"] == 2

    # A sample of a larger job: ranks 0 and 70 of 140.
    for event in events:
        event["pid"] *= 70
    hand["otherData"]["ranks"] = 140
    Path("hand.json").write_text(json.dumps(hand))
    split = json.loads(run("timeline", "hand.json", "--json").stdout)
    assert split["ranks"] == 2 and split["job_ranks"] == 140 and split["slowest_rank"] == 70, split
    assert [r["rank"] for r in split["by_rank"]] == [0, 70] and np.isclose(split["imbalance_ms"], 3)
    assert "2 of 140 ranks, 1 steps" in run("timeline", "hand.json").stdout

    run("bench", "mlp", "--batch", 4, "--steps", 3, "--timeline", "b.json")
    assert json.loads(run("timeline", "b.json", "--json").stdout)["steps"] == 5

    def refused(path, text, *expected):
        Path(path).write_text(text)
        error = run("timeline", path, code=4).stderr
        assert all(e in error for e in expected), error
    whole = Path("t.json").read_text()
    for n in (0, 1, 100, len(whole) // 2, len(whole) - 3):
        refused("cut.json", whole[:n], "cut.json is not JSON at byte")
    refused("deep.json", "[" * 100000, "not JSON")
    refused("deep.json", '{"a":' + "[" * 100000, "not JSON")
    refused("other.json", '{"traceEvents":[]}', "not a timeline")
    refused("empty.json", '{"traceEvents":[],"otherData":{"catena_timeline":1}}', "no whole step")
    run("timeline", "missing.json", code=4)
    run("timeline", code=2)
    error = run("train", "mlp", *ARRAYS, "--out", "q", "--epochs", 1, "--timeline", "no/folder/t.json", code=3).stderr
    assert "no/folder/t.json" in error and "1 iterations" not in error and not Path("q/weights.safetensors").exists()


def test_folder_is_refused():
    make_arrays()
    words = ["mlp", *ARRAYS, "--epochs", "1", "--out", "r"]
    train(*words)
    before = Path("r/weights.safetensors").read_bytes()
    assert "not empty" in run("train", *words, code=2).stderr
    assert Path("r/weights.safetensors").read_bytes() == before
    train(*words, "--force", "--seed", "2")
    assert Path("r/weights.safetensors").read_bytes() != before


# ---- one job at a time in a folder


STARTED = []  # ended by main(), whatever happens


def start(*words, env=None):
    STARTED.append(subprocess.Popen([CATENA, "train", *words, "--quiet"], env={**ENV, **(env or {})}, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    return STARTED[-1]


def output(job):
    return job.communicate(timeout=60)[1]


def wait_for(condition, what):
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(f"waited 60 s for {what}")


def wait_for_rows(job):
    """Until a job has the folder and has logged some epochs of its own: at its start it cuts the log to its state."""
    wait_for(lambda: f"pid {job.pid}\n" in Path("r/job.txt").read_text(), "the folder")
    rows = Path("r/log.jsonl").stat().st_size
    wait_for(lambda: Path("r/log.jsonl").stat().st_size > rows + 1000 or job.poll() is not None, "some epochs")


FOREVER = ["mlp", *ARRAYS, "--epochs", "0", "--hours", "0.03", "--out", "r", "--resume"]


def test_folder_of_another_job():
    make_arrays()
    job = start(*FOREVER, env={"SLURM_JOB_ID": "4711"})
    wait_for(lambda: Path("r/plan.txt").exists(), "the first job")
    for words in ([], ["--force"]):
        error = run("train", "mlp", *ARRAYS, "--out", "r", *(words or ["--resume"]), code=3).stderr
        assert f"process {job.pid}, Slurm job 4711, since 20" in error and "--out" in error, error
        assert error.count("\n") == 1, error
    assert "not empty" in run("train", "mlp", *ARRAYS, "--out", "r", code=2).stderr
    # A killed job leaves no lock; its successor waits for nothing.
    job.kill()
    output(job)
    began = time.time()
    job = start(*FOREVER)
    wait_for_rows(job)
    assert time.time() - began < 20
    job.terminate()
    text = output(job)
    assert job.returncode == 85, text
    assert Path("r/job.txt").read_text().startswith("ended\n")
    # Nothing was lost by those who were refused.
    assert train("--resume", "--hours", "0", "--iterations", "1000000", "--epochs", "1", "--out", "r")["epochs"] >= 1


def test_jobs_that_start_together():
    make_arrays()
    jobs = [start(*FOREVER) for _ in range(4)]
    wait_for(lambda: sum(job.poll() is not None for job in jobs) == 3, "three refusals")
    assert sorted(job.poll() or 0 for job in jobs) == [0, 3, 3, 3], [job.poll() for job in jobs]
    for job in jobs:
        if job.poll() is None:
            wait_for(lambda: Path("r/plan.txt").exists(), "the one that runs")
            job.terminate()
        text = output(job)
        assert job.returncode == 85 or "another job works in r" in text, (job.returncode, text)


FOREIGN = "running\nhost far\npid 12\njob PBS job 5.far\nsince 2026-01-02T03:04:05Z\nboot elsewhere\nbeat %03d\n"


def test_folder_of_another_host():
    """Locks that other hosts do not see: a job that rewrites its file lives."""
    make_arrays()
    os.mkdir("r")
    Path("r/job.txt").write_text(FOREIGN % 0)
    job = start(*FOREVER)
    assert "belongs to a job" in job.stderr.readline()
    job.terminate()
    text = output(job)
    assert job.returncode == 3 and "stopped by a signal while it waited for r" in text, text
    job = start(*FOREVER)
    for beat in range(1, 300):
        if job.poll() is not None:
            break
        with open("r/job.txt", "r+") as f:  # in place, as a job does it
            f.write(FOREIGN % beat)
        time.sleep(0.1)
    text = output(job)
    assert job.returncode == 3 and "(on far, process 12, PBS job 5.far, since 2026-01-02T03:04:05Z)" in text, text
    assert Path("r/job.txt").read_text().startswith("running\nhost far\n")


def test_folder_that_is_lost():
    """Another job took the folder while this one did not beat: this one ends and leaves everything as it is."""
    make_arrays()
    job = start(*FOREVER)
    wait_for(lambda: Path("r/plan.txt").exists(), "the job")
    Path("other").write_text(FOREIGN % 1)
    os.replace("other", "r/job.txt")
    text = output(job)
    assert job.returncode == 3 and "another job has taken r (on far, process 12" in text, (job.returncode, text)
    assert Path("r/job.txt").read_text() == FOREIGN % 1


LONG = ["mlp", *ARRAYS, "--val-share", "0.2", "--schedule", "cosine", "--optimizer", "adam", "--epochs", "6"]


def test_resume():
    """Stopped by a signal in mid-epoch as often as it likes: the same bits as without."""
    make_arrays(4096)
    words = [*LONG, "--epochs", "40", "--hidden", "64"]
    train(*words, "--out", "whole")
    stops = 0
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGTERM):
        p = subprocess.Popen([CATENA, "train", *words, "--out", "parts", "--resume", "--json"], env=ENV,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for(lambda: p.poll() is not None or Path("parts/job.txt").exists() and
                 f"pid {p.pid}\n" in Path("parts/job.txt").read_text(), "the training")
        time.sleep(0.3)
        p.send_signal(number)
        out, err = p.communicate(timeout=60)
        if p.returncode == 0:
            break
        assert p.returncode == 85, (p.returncode, err)
        assert json.loads(out)["stopped"] == number.name, out
        assert "Z rank 0 " in err and "--resume" in err, err
        stops += 1
    assert stops > 0, "it was never stopped: the training is too short for this test"
    train("--out", "parts", "--resume")
    assert same("whole/weights.safetensors", "parts/weights.safetensors")
    assert same("whole/best.safetensors", "parts/best.safetensors")
    done = run("train", "--out", "parts", "--resume", "--lr", "0.5", code=2)
    assert "--lr is 0.5, but parts was begun with" in done.stderr, done.stderr
    # A training that is done has nothing to go on with.
    assert train("--out", "parts", "--resume")["epochs"] == 40
    assert same("whole/weights.safetensors", "parts/weights.safetensors")
    drop = ("seconds", "_s", "per_s")
    rows = [[{k: v for k, v in json.loads(line).items() if not k.endswith(drop)}
             for line in Path(out, "log.jsonl").read_text().splitlines()] for out in ("whole", "parts")]
    assert rows[0] == rows[1]
    # What the state refuses has changed nothing: it can be gone on with.
    before = Path("parts/config.yaml").read_text()
    done = run("train", "--out", "parts", "--resume", "--hidden", "32", code=4)
    assert Path("parts/config.yaml").read_text() == before, done.stderr
    train("--out", "parts", "--resume", "--epochs", "41")


def test_shorter_than_an_epoch():
    """The last step is an end like any other: it is logged, evaluated and reported."""
    make_arrays()
    values = train(*LONG, "--hidden", "8", "--epochs", "0", "--iterations", "3", "--val-share", "0.2", "--out", "short")
    assert values["iterations"] == 3 and values["val/loss"] > 0, values
    lines = [json.loads(line) for line in Path("short/log.jsonl").read_text().splitlines()]
    assert len(lines) == 1 and lines[0]["train/loss"] > 0 and lines[0]["val/loss"] > 0, lines
    assert Path("short/best.safetensors").exists()


def test_unfinished():
    """The mark of a job script: this run has saved a state and not come to its end."""
    make_arrays()
    mark = Path("r/unfinished")
    job = start(*FOREVER)
    wait_for(mark.exists, "the first state")
    assert list(Path("r/state").glob("0*"))
    job.kill()
    output(job)
    assert mark.exists()
    # A run that saves nothing before it is killed is not worth another one.
    job = start(*FOREVER, "--save-minutes", "1000")
    wait_for_rows(job)
    job.kill()
    output(job)
    assert not mark.exists()
    job = start(*FOREVER, "--save-minutes", "1000")
    wait_for_rows(job)
    job.terminate()
    text = output(job)
    assert job.returncode == 85 and mark.exists(), text
    # At the end, and after an error that another run would meet again, nothing is left to do.
    train("--resume", "--hours", "0", "--iterations", "1", "--out", "r")
    assert not mark.exists()
    run("train", "mlp", *ARRAYS, "--optimizer", "sgd", "--lr", "1e30", "--save-minutes", "0.00001", "--out", "s",
        "--quiet", code=6)
    assert not Path("s/unfinished").exists()


def test_kill():
    """SIGKILL leaves a state that goes on to the same bits."""
    make_arrays(4096)
    words = [*LONG, "--epochs", "30", "--hidden", "64"]
    train(*words, "--out", "whole")
    for k in range(3):
        p = subprocess.Popen([CATENA, "train", *words, "--out", "parts", "--resume", "--quiet"], env=ENV,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.3 + 0.2 * k)
        p.kill()
        p.wait()
    train(*words, "--out", "parts", "--resume")
    assert same("whole/weights.safetensors", "parts/weights.safetensors")


# ---- a network of one's own


def test_own_model():
    make_arrays()
    os.mkdir("code")
    template = SOURCE / "examples/own_model/mymodel.c"
    build = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", f"-I{SOURCE}/include", f"-L{LIBRARY}", "-lcatena"]
    subprocess.run([*build, template, "-o", "code/mymodel.so"], check=True)
    words = ["--data", "x.npy", "--target", "y.npy", "--batch", "32"]
    values = train("./code/mymodel.so", *words, "--epochs", "30", "--lr", "0.01", "--model-args", "32", "--out", "r")
    assert values["train/loss"] < 0.2, values
    c = resolved("r")
    assert len(c["model-hash"]) == 18 and c["model-args"] == '"32"', c
    run("predict", "./code/mymodel.so", "--weights", "r/weights.safetensors", "--data", "x.npy", "--out", "p.npy")
    assert np.load("p.npy").shape == (256, 2)

    one = ["--epochs", "1", "--out", "x"]
    os.chmod("code/mymodel.so", 0o666)
    assert "writable by everybody" in run("train", "./code/mymodel.so", *words, *one, code=2).stderr
    os.chmod("code/mymodel.so", 0o755)
    os.chmod("code", 0o777)
    assert "writable by everybody" in run("train", "./code/mymodel.so", *words, *one, code=2).stderr
    os.chmod("code", 0o755)
    Path("code/old.c").write_text(template.read_text().replace(".abi = CTN_MODEL_ABI", ".abi = 999"))
    subprocess.run([*build, "code/old.c", "-o", "code/old.so"], check=True)
    assert "ABI 999" in run("train", "./code/old.so", *words, *one, code=2).stderr
    # An error in it: with the line of its source.
    wrong = "ctn_matmul(x, x, 0, 0)"
    Path("code/wrong.c").write_text(template.read_text().replace("return ctn_call(net->out", f"x = {wrong};\n    return ctn_call(net->out"))
    subprocess.run([*build, "code/wrong.c", "-o", "code/wrong.so"], check=True)
    error = run("train", "./code/wrong.so", *words, *one, "--quiet", code=4).stderr
    line = Path("code/wrong.c").read_text().splitlines().index(f"    x = {wrong};") + 1
    assert error.count("\n") == 2 and f"\n  at code/wrong.c:{line} " in error and "src/" not in error, error
    shutil.rmtree("x", ignore_errors=True)
    Path("code/empty.c").write_text("int nothing;\n")
    subprocess.run([*build, "code/empty.c", "-o", "code/empty.so"], check=True)
    assert "catena_model" in run("train", "./code/empty.so", *words, *one, code=2).stderr
    run("train", "./code/missing.so", *words, *one, code=2)
    assert not Path("x").exists()


def main():
    names = sys.argv[4:]
    tests = {k[5:]: f for k, f in globals().items() if k.startswith("test_") and (not names or k[5:] in names)}
    failed = []
    for name, test in tests.items():
        start = time.time()
        with tempfile.TemporaryDirectory() as work:
            os.chdir(work)
            try:
                test()
                print(f"ok      {name} ({time.time() - start:.1f} s)", flush=True)
            except Exception as e:  # pylint: disable=broad-except
                failed.append(name)
                print(f"FAILED  {name}: {type(e).__name__}: {e}\n", flush=True)
            for job in STARTED:
                job.kill()
            STARTED.clear()
            os.chdir("/")
    print(f"{len(tests) - len(failed)} of {len(tests)} passed")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
