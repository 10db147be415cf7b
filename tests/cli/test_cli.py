#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/cli/test_cli.py CATENA SOURCE LIBRARY [NAME ...]: the command as a user meets it.

CATENA is the built command, SOURCE the source tree and LIBRARY the folder of libcatena.so, which is
needed to build a user's own network. Every test runs in an empty folder. Without NumPy: skipped
(77).
"""
import itertools
import json
import os
import re
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
    print("skipped: NumPy is not installed")
    sys.exit(77)

CATENA, SOURCE, LIBRARY = (Path(p).resolve() for p in sys.argv[1:4])
ENV = {**os.environ, "CATENA_TUNE": "0", "CATENA_CACHE_DIR": "none", "OMP_NUM_THREADS": "1",
       "OMP_WAIT_POLICY": "passive"}


def run(*words, code=0, env=None):
    done = subprocess.run([CATENA, *map(str, words)], capture_output=True, text=True,
                          env={**ENV, **(env or {})})
    line = "catena " + " ".join(map(str, words))
    assert code is None or done.returncode == code, \
        f"{line}: exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}"
    return done


def train(*words, **more):
    return json.loads(run("train", *words, "--quiet", "--json", **more).stdout)


def same(a, b):
    return Path(a).read_bytes() == Path(b).read_bytes()


def make_arrays(n=256):
    """y = A x + b in f64, with values far from 1."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(n, 6)) * [1, 10, 100, 1e3, 1e-3, 5] + [0, 5, -300, 1e4, 2, 0]
    y = np.stack([x[:, 1] * 40 + 1e5, x[:, 2] * -0.01 + x[:, 0]], axis=1)
    np.save("x.npy", x)
    np.save("y.npy", y)
    return x, y


ARRAYS = ["--data", "x.npy", "--target", "y.npy", "--hidden", "16", "--batch", "32"]


def test_export():
    """ONNX models of a result folder, of a language model, and what is refused."""
    make_arrays()
    train("mlp", *ARRAYS, "--epochs", "1", "--out", "r")
    done = run("export", "./r", "--to", "m.onnx", "--json", code=None)
    if "protobuf" in done.stderr:
        return
    found = json.loads(done.stdout)
    assert found["network"] == "mlp" and found["standardised"] is True
    x, y = np.load("x.npy"), np.load("y.npy")
    np.save("x3.npy", x.reshape(-1, 3, 2))
    train("mlp", "--data", "x3.npy", "--target", "y.npy", "--hidden", "16", "--epochs", "1",
          "--out", "r3")
    run("export", "./r3", "--to", "m3.onnx", "--input", "3,2")
    run("predict", "m3.onnx", "--data", "x3.npy", "--out", "a.npy")
    run("predict", "./r3", "--data", "x3.npy", "--out", "b.npy")
    assert np.abs(np.load("a.npy") - np.load("b.npy")).max() < 1e-3 * y.std()
    model = Path("m.onnx").read_bytes()
    for name in (b"0.weight", b"target_mean", b"batch", b"output"):
        assert name in model
    train("m.onnx", "--data", "x.npy", "--target", "y.npy", "--epochs", "1", "--out", "tuned")
    assert "standardize: none" in Path("tuned/config.yaml").read_text()  # the model does it
    data = ["--data", "x.npy", "--target", "y.npy", "--json"]
    error = [json.loads(run("eval", *words, *data).stdout)
             for words in (["--weights", "r/weights.safetensors"], ["m.onnx"],
                           ["--weights", "tuned/weights.safetensors"])]
    assert np.isclose(error[0]["mae"], error[1]["mae"], rtol=1e-4), error
    assert error[2]["mae"] < error[1]["mae"], error
    run("export", "./r", "--to", "e.onnx", "--external", "--batch", "4", "--opset", "20")
    assert Path("e.onnx.data").stat().st_size > Path("e.onnx").stat().st_size
    assert "--to" in run("export", "./r", code=2).stderr
    assert "--any-length" in run("export", "./r", "--to", "x.onnx", "--any-length", code=2).stderr
    assert "18 to 21" in run("export", "./r", "--to", "x.onnx", "--opset", "3", code=2).stderr
    assert not Path("x.onnx").exists()


def test_tables():
    """CSV: regression and classes by column, missing values, the same columns in predict."""
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 300))
    rows = [f"{x:.4f},{y:.4f},{'big' if x > y else 'small'},{3 * x - y + 50:.5f}"
            for x, y in zip(a, b)]
    Path("t.csv").write_text("a,b,size,sum\n" + "\n".join(rows) + "\n")
    table = ["--data", "t.csv", "--hidden", "16", "--batch", "32", "--lr", "0.01", "--inputs",
             "a,b"]
    train("mlp", *table, "--target", "sum", "--epochs", "20", "--out", "sums")
    weights = ["--weights", "sums/weights.safetensors", "--data", "t.csv"]
    assert json.loads(run("eval", *weights, "--target", "sum", "--json").stdout)["mae"] < 0.3
    run("predict", *weights, "--out", "sum.npy")
    assert np.abs(np.load("sum.npy")[:, 0] - (3 * a - b + 50)).mean() < 0.3
    train("mlp", *table, "--target", "size", "--val", "t.csv", "--epochs", "10", "--out", "sizes")
    assert Path("sizes/classes.txt").read_text().split() == ["big", "small"]
    found = run("eval", "--weights", "sizes/best.safetensors", "--data", "t.csv", "--target",
                "size", "--json")
    assert json.loads(found.stdout)["accuracy"] > 0.9
    text = run("train", "mlp", *table[:2], "--target", "sum", "--out", "no", code=4).stderr
    assert 'line 2, column "size"' in text, text
    assert "--target" in run("train", "mlp", *table, "--out", "no", code=2).stderr
    rows[4] = ",1,big,2"
    Path("t.csv").write_text("a,b,size,sum\n" + "\n".join(rows) + "\n")
    text = run("train", "mlp", *table, "--target", "sum", "--out", "no", code=4).stderr
    assert 'line 6, column "a": the value is missing' in text, text
    train("mlp", *table, "--target", "sum", "--fill", "0", "--epochs", "1", "--out", "filled")


def png(path, rows):
    """A gray image."""
    def chunk(kind, data):
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    Path(path).write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data)
                           + chunk(b"IEND", b""))


def test_classes_like_numbers():
    """Names of classes are those of the training, also if the other table has only numbers."""
    rng = np.random.default_rng(2)
    names = rng.choice(list("123x"), 240)
    names[0] = "x"
    rows = [f"{'123x'.index(k) * 3 + 0.2 * rng.normal():g},{k}" for k in names]
    Path("all.csv").write_text("\n".join(["a,kind", *rows]))
    Path("some.csv").write_text("\n".join(["a,kind", *[r for r in rows if r[-1] != "x"]]))
    train("mlp", "--data", "all.csv", "--target", "kind", "--hidden", "32", "--epochs", "40",
          "--lr", "0.01", "--out", "r")
    found = [json.loads(run("eval", "./r", "--data", f"{name}.csv", "--target", "kind",
                            "--json").stdout)["accuracy"] for name in ("all", "some")]
    assert min(found) > 0.9, found
    # Two columns of one name are told apart by their numbers.
    Path("two.csv").write_text("a,a,y\n" + "1,2,3\n4,5,6\n7,8,1\n" * 4)
    words = ["mlp", "--data", "two.csv", "--target", "y", "--epochs", "1", "--out", "s"]
    assert "same name" in run("train", *words, code=4).stderr
    train(*words, "--inputs", "0,1")
    run("eval", "./s", "--data", "two.csv", "--target", "y")


def test_metrics():
    """--metric: values of all samples together, compared with the predictions of each sample."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(300, 4))
    t = (x[:, 0] + 0.7 * rng.normal(size=300) > 0.3).astype(int)
    rows = np.column_stack([x, t])
    np.savetxt("two.csv", rows, delimiter=",", header="a,b,c,d,t", comments="",
               fmt=["%.6f"] * 4 + ["c%d"])
    two = ["--data", "two.csv", "--target", "t"]
    small = ["--hidden", "8", "--epochs", "5", "--batch", "32", "--lr", "0.02",
             "--val-share", "0.3"]
    done = train("mlp", *two, *small, "--metric", "auc,f1", "--out", "mt")
    assert {"val/auc", "val/f1"} <= set(done), done
    assert "train/f1" not in done
    weights = ["--weights", "mt/best.safetensors"]
    found = json.loads(run("eval", *weights, *two, "--batch", "7", "--metric",
                           "auc,f1,precision,recall,f1_macro,f1_micro", "--json").stdout)
    run("predict", *weights, "--data", "two.csv", "--out", "p.npy")
    p = np.load("p.npy").astype(float)
    said, high = p[:, 1] > p[:, 0], p[:, 1]
    hits = (said & (t == 1)).sum()
    precision, recall = hits / said.sum(), hits / (t == 1).sum()
    pairs = high[t == 1][:, None] - high[t == 0][None]
    for name, value in {"auc": ((pairs > 0) + 0.5 * (pairs == 0)).mean(), "precision": precision,
                        "recall": recall, "f1": 2 * precision * recall / (precision + recall),
                        "f1_micro": found["accuracy"]}.items():
        assert abs(found[name] - value) < 1e-5, (name, found[name], value)
    make_arrays()
    arrays = ["--data", "x.npy", "--target", "y.npy"]
    train("mlp", *arrays, *small, "--metric", "r2", "--out", "mr")
    weights = ["--weights", "mr/best.safetensors"]
    found = json.loads(run("eval", *weights, *arrays, "--metric", "r2,relative_l2",
                           "--json").stdout)
    run("predict", *weights, "--data", "x.npy", "--out", "q.npy")
    q, y = np.load("q.npy"), np.load("y.npy")
    r2 = 1 - ((q - y) ** 2).sum(0) / ((y - y.mean(0)) ** 2).sum(0)
    assert abs(found["r2"] - r2.mean()) < 1e-5, (found, r2)
    norm = np.linalg.norm
    assert abs(found["relative_l2"] - norm(q - y) / norm(y)) < 1e-5 * found["relative_l2"], found
    for metric, why in (("f2", "there is no 'f2' here"),
                        ("f1", "f1 needs targets that are classes")):
        text = run("train", "mlp", *arrays, "--metric", metric, "--out", "no", code=2).stderr
        assert why in text, text
    text = run("train", "mlp", *two, "--metric", "r2", "--out", "no", code=2).stderr
    assert "numbers, not classes" in text, text


def test_choices():
    """What tables and perceptrons often need: mae selects, another separator, activation, dropout,
    and a result folder in place of its weights."""
    make_arrays()
    arrays = ["--data", "x.npy", "--target", "y.npy"]
    done = train("mlp", *arrays, "--hidden", "16,8", "--activation", "tanh", "--dropout", "0.1",
                 "--epochs", "6", "--lr", "0.02", "--val-share", "0.25", "--metric", "mae,rmse",
                 "--out", "r")
    assert done["val/rmse"] > done["val/mae"] > 0, done
    assert set(weights_of("r/best.safetensors")) >= {"0.weight", "3.weight", "6.weight"}
    found = json.loads(run("eval", "./r", *arrays, "--metric", "mae", "--json").stdout)
    same_one = json.loads(run("eval", "--weights", "r/best.safetensors", *arrays,
                              "--json").stdout)
    assert found == same_one and found["mae"] > 0, (found, same_one)
    rows = [json.loads(row) for row in Path("r/log.jsonl").read_text().splitlines()]
    best = min(rows, key=lambda row: row["val/mae"])
    run("predict", "./r", "--data", "x.npy", "--out", "p.npy")
    error = np.abs(np.load("p.npy") - np.load("y.npy"))
    assert np.isclose(error.mean(), found["mae"], rtol=1e-4)
    assert error.mean() < 3 * best["val/mae"], (error.mean(), best)
    for wrong in ("--dropout", "1"), ("--activation", "relux"), ("--dropout", "-0.1"):
        run("train", "mlp", *arrays, *wrong, "--out", "no", code=2)
    for name, separator in (("a.csv", ";"), ("b.csv", "tab")):
        cell = "\t" if separator == "tab" else separator
        lines = [f"{i}{cell}{i % 7}{cell}{2 * i}" for i in range(64)]
        Path(name).write_text(cell.join("abc") + "\n" + "\n".join(lines) + "\n")
        train("mlp", "--data", name, "--separator", separator, "--target", "c", "--epochs", "1",
              "--out", name[0])
        run("eval", f"./{name[0]}", "--data", name, "--target", "c")


def test_segmentation():
    """Masks: training, exact intersection over union, predicted masks; and a list of images."""
    rng = np.random.default_rng(4)
    lines = []
    for part, n in ("train", 24), ("val", 6):
        for kind in "images", "masks":
            os.makedirs(f"seg/{part}/{kind}")
        for i in range(n):
            mask = np.zeros((32, 32), int)
            x, y = rng.integers(0, 16, 2)
            mask[y:y + 16, x:x + 16] = 1
            png(f"seg/{part}/masks/{i}.png", mask.tolist())
            image = mask * 150 + rng.integers(0, 80, mask.shape)
            png(f"seg/{part}/images/{i}.png", image.tolist())
            lines.append(f"seg/{part}/images/{i}.png {i % 2}")
    small = ["--size", "16", "--depth", "1", "--width", "4", "--batch", "8", "--lr", "0.02"]
    text = run("train", "unet", "--data", "seg", *small, "--out", "no", code=2).stderr
    assert "--classes" in text, text
    done = train("unet", "--data", "seg", *small, "--classes", "2", "--epochs", "6", "--out", "s")
    assert "val/miou" in json.dumps(done), done
    weights = ["--weights", "s/weights.safetensors", "--data"]
    found = json.loads(run("eval", *weights, "seg", "--json").stdout)
    assert found["accuracy"] > 0.8 and found["samples"] == 6
    assert abs(found["miou"] - (found["iou[0]"] + found["iou[1]"]) / 2) < 1e-5
    run("predict", *weights, "seg/val/images", "--out", "m.npy")
    masks = np.load("m.npy")
    assert masks.shape == (6, 16, 16) and masks.dtype == np.uint8 and masks.max() <= 1
    train("unet", "--data", "seg", *small, "--classes", "5000", "--iterations", "1", "--epochs",
          "0", "--out", "many")
    done = run("eval", "--weights", "many/weights.safetensors", "--data", "seg", code=4)
    assert "5000 classes, at most 4096" in done.stderr, done.stderr
    Path("list.txt").write_text("\n".join(lines))
    train("resnet20_cifar", "--data", "list.txt", "--format", "list", "--classes", "2", "--batch",
          "8", "--iterations", "1", "--epochs", "0", "--val-share", "0.2", "--out", "listed")


# ---- usage


def test_usage():
    def wrong(words, *expected, env=None):
        done = run(*words.split(), code=2, env=env)
        assert done.stdout == "" and done.stderr.count("\n") == 1, (words, done.stdout, done.stderr)
        for text in expected:
            assert text in done.stderr, (words, text, done.stderr)

    wrong("trian", "did you mean train?")
    wrong("train", "give one of:", "resnet20_cifar")
    wrong("train rsnet50", "did you mean resnet50?")
    wrong("train mymodel.so", "a network of your own (./mymodel.so)")
    wrong("train mlp --epcohs 3", "did you mean --epochs?")
    wrong("train mlp --lr fast", "--lr must be a number, not 'fast'")
    wrong("train mlp --lr nan", "--lr must be a number")
    wrong("train mlp --epochs 1.5", "an integer from 0")
    wrong("train mlp --optimizer adma", "one of auto|sgd|lars|adam|adamw|")
    wrong("train mlp --epochs", "needs a value")
    wrong("train mlp --json=1", "takes no value")
    wrong("train mlp --threads 99999 --data x", "would wait for each other")
    wrong("train mlp --epochs 0 --data x", "set a limit")
    wrong("eval mlp --data x", "--weights")
    wrong("pack onlyone", "SOURCE OUT")
    wrong("pack a b c", "unexpected argument")
    wrong("train mlp --config missing.yaml", "cannot read missing.yaml")
    wrong("train mlp", "CATENA_TRAIN_BATCH", env={"CATENA_TRAIN_BATCH": "many"})
    wrong("train mlp --out other", "--data PATH")
    wrong("train mlp --hidden 8,x", "numbers separated by commas")
    wrong("train mlp --hidden 8,", "numbers separated by commas")
    wrong("bench mpl", "did you mean mlp?")
    wrong("bench mlp --exchange all", "mpirun -np 2")
    wrong("checkpoint", "give one of: ls verify")
    wrong("checkpoint sl .", "did you mean ls?")
    wrong("checkpoint ls", "got 0 folders, expected at least 1")
    wrong("checkpoint diff a", "got 1 folders, expected 2")
    wrong("checkpoint prune a", "give --keep")
    wrong("checkpoint export a --keep 1", "remove --keep")
    wrong("verify-resume mlp --rounds 0", "must be positive")
    wrong("verify-resume mlp --hidden 8", "unknown option '--hidden'")
    wrong("verify-resume mlp -- --hours 1", "use --seconds before --")
    wrong("scale mlp --ranks 0", "must be positive")
    wrong("scale mlp --platform ring", "fat-tree")
    wrong("scale mlp.step", "a recorded step: ./resnet50.step")
    wrong("plan mlp --ranks 0", "must be positive")
    wrong("plan mlp --batch 4 --algorithm circle", "does not know the algorithm circle")
    wrong("plan mlp --shard --algorithm doubling", "leave out --algorithm doubling")


def test_habits():
    """Words that users of other programs type."""
    hints = {"--learning-rate": "--lr?", "--lr-scheduler": "--schedule?",
             "--workers": "--loader-threads?", "--pretrained": "--weights?",
             "--batch-size": "--batch?", "--unfreeze": "--unfreeze-at?",
             "--device": "runs on CPUs"}
    for option, hint in hints.items():
        assert hint in run("train", "mlp", option, "1", code=2).stderr, option
    assert "did you mean resnet20_cifar?" in run("train", "cifar-resnet20", code=2).stderr
    for option in ("--val-share", "--skip", "--smoothing", "--ema"):
        error = run("train", "mlp", option, "2", code=2).stderr
        assert f"{option} is 2, expected a number from 0" in error
    for option in ("--lr", "--gamma", "--every"):
        error = run("train", "mlp", option, "0", code=2).stderr
        assert f"{option} is 0, expected a number above 0" in error
    for option in ("--clip", "--decay", "--lasso", "--hours", "--warmup"):
        error = run("train", "mlp", f"{option}=-1", code=2).stderr
        assert f"{option} is -1, expected a number of at least 0" in error
    make_arrays()
    error = run("train", "mlp", *ARRAYS, "--val-share", "0.0001", "--out", "r", code=4).stderr
    assert "none is left for validation" in error


def test_overview():
    """What was understood, at the start and in the report; every output of eval; the network from
    config.yaml."""
    x, y = make_arrays()
    words = ["mlp", *ARRAYS, "--val-share", "0.25"]
    text = run("train", *words, "--epochs", "2", "--out", "r").stderr
    assert re.search(r"mlp: 146 parameters; 192 samples of shape 6 with targets of shape 2, "
                     r"64 for validation; batch size 32, adam with learning rate 0.001, f32, "
                     r"1 thread; best weights: smallest val/loss\n", text), text
    quiet = run("train", *words, "--epochs", "1", "--quiet", "--out", "q").stderr
    assert "parameters; " not in quiet
    rows = [json.loads(line) for line in Path("r/log.jsonl").read_text().splitlines()]
    assert [row["lr"] for row in rows] == [0.001, 0.001]
    page = Path("r/report.html").read_text()
    for word in ("command", "catena train mlp", "parameters", "146", "host", "CPU", "started",
                 "learning rate"):
        assert f">{word}" in page or word in page, word
    assert "<td></td>" not in page
    weights = ["--weights", "r/weights.safetensors"]
    found = json.loads(run("eval", *weights, *ARRAYS[:4], "--json").stdout)
    run("predict", *weights, *ARRAYS[:2], "--out", "found.npy")
    error = np.abs(np.load("found.npy") - y).mean(axis=0)
    assert found["network"] == "mlp"
    assert np.allclose([found["mae[0]"], found["mae[1]"]], error, rtol=1e-3)
    wrong = run("eval", "lenet5", *weights, *ARRAYS[:4], code=4).stderr
    assert "belong to the network mlp, not lenet5" in wrong, wrong
    Path("alone").mkdir()
    shutil.copy("r/weights.safetensors", "alone")
    wrong = run("eval", "--weights", "alone/weights.safetensors", *ARRAYS[:4], code=2).stderr
    assert "which network?" in wrong


def test_rate_of_sgd():
    """0.1 per 256 samples of a step."""
    make_arrays()
    for extra, rate in (((), 0.0125), (("--accumulate", "2"), 0.025), (("--lr", "0.3"), 0.3)):
        values = train("mlp", *ARRAYS, "--optimizer", "sgd", "--epochs", "1", *extra,
                       "--force", "--out", "r")
        assert values["lr"] == rate, (extra, values)


def test_help():
    names = re.findall(r"^  ([a-z][a-z-]+) ", run("help").stdout, re.M)
    assert {"train", "mpi-setup", "plan"} < set(names), names
    script = run("help", "--completion", "bash").stdout
    for name in names:
        text = run(name, "--help", "all").stdout
        assert "Usage: catena " + name in text and "Examples:" in text, name
        assert "--json" in text or name in ("generate", "mpi-setup"), name
        page = run("help", "--man", name).stdout
        assert page.startswith(".TH CATENA-"), name
        assert ".SH OPTIONS" in page and ".SH EXIT STATUS" in page, name
        # The installed files: a man page for each command, and every option in the completion.
        assert (CATENA.parent.parent / "man" / f"catena-{name}.1").read_text() == page, name
        offered = re.search(rf"^    {name}\)\n.* options='(.*)'$", script, re.M).group(1).split()
        assert set(offered) == {f"--{o}" for o in options_in(text)}, (name, offered)
    assert ".BR catena\\-train (1)" in run("help", "--man").stdout


def test_mpi_setup_without_mpi():
    """A compiler that finds no mpi.h: the message says what to install."""
    text = run("mpi-setup", "--mpicc", "cc", "--out", "plugins", code=3).stderr
    assert "cc finds no mpi.h" in text and "libopenmpi-dev" in text, text
    assert "fatal error" not in text and not list(Path("plugins").iterdir()), text


def options_in(text):
    return re.findall(r"^  --([a-z-]+)", text, re.M)


def test_help_groups():
    # Plain --help: the ten common options, and the names of the other groups.
    text, full = run("train", "--help").stdout, run("train", "--help", "all").stdout
    common = "data target batch val optimizer lr epochs precision out resume help".split()
    assert options_in(text) == common, options_in(text)
    assert "\nExample:\n  catena train " in text and text.count("\n") < 50, text
    groups = re.findall(r"^([A-Z].*):$", full, re.M)
    assert groups[0] == "Common options" and groups[-1] == "Examples" and len(groups) > 6, groups
    last = text[text.index("catena train --help all"):]
    assert all(group in last.replace("\n", " ") for group in groups[1:-1]), last
    # --help all: every option of the table, once, below the heading of a group. "Options" is the
    # heading of those without one.
    words = " ".join(run(*"help --man train".split()).stdout.replace("\\-", "-").split("\n"))
    named = options_in(full)
    assert len(named) == len(set(named)) > 80 and "Options" not in groups, (len(named), groups)
    for source in ("train.c", "task.h", "launch.h", "cli.h"):
        rows = re.findall(r'\{"([a-z-]+)",', (SOURCE / "tools/catena" / source).read_text())
        assert rows and set(rows) <= set(named), (source, set(rows) - set(named))
    # The man page has the same groups as subsections.
    assert re.findall(r"\.SS (.*?) \.TP", words) == groups[:-1], words
    assert all(f"--{name} " in words for name in named)
    assert "(default:\n" not in full
    # A short list has no groups and no `all`.
    assert run("info", "--help").stdout == run("info", "--help", "all").stdout


def test_info():
    # How it was installed: packages change the value, a build from source has the default.
    build = json.loads(run("info", "--json").stdout)["build"]
    assert build["installed"] == "from source", build
    assert re.search(r"^  installed +from source +how ", run("info").stdout, re.M)
    # One rank per NUMA node, as on A64FX with four groups of twelve cores.
    a64fx = {"HWLOC_SYNTHETIC": "numa:4 core:12 pu:1"}
    plan = json.loads(run("info", "--json", env=a64fx).stdout)["core_plan"]
    assert (plan["ranks_per_node"], plan["threads_per_rank"]) == (4, 12), plan
    assert "4, one per NUMA node, with 12 threads each" in run("info", env=a64fx).stdout


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
        assert not Path(r).exists(), f"{r} was created although the data is bad"
    np.savez("x.npz", x=np.zeros(3))
    Path("run.h5").write_bytes(b"")
    for name, says in (("nothing", "o such file"), ("x.npz", "numpy.save"),
                       ("run.h5", "run.h5:/name")):
        for words in (["--data", name, "--target", "y.npy"], ["--data", "x.npy", "--target", name],
                      [*ARRAYS, "--val", name, "--val-target", "y.npy"]):
            error = run("train", "mlp", *words, "--epochs", "1", "--out", "r6", code=4).stderr
            assert says in error and error.count("\n") == 1, (words, error)


def test_messages():
    """What is wrong is named as the user knows it: the file, the sample, the option."""
    rng = np.random.default_rng(3)
    y, bad = rng.normal(size=(2, 16, 1))
    bad[9] = np.inf
    holes = rng.normal(size=(16, 4))
    holes[3, 2] = np.nan
    arrays = {"x": rng.normal(size=(16, 4)), "y": y, "inf": bad, "holes": holes,
              "vast": np.array([0, 10**9] * 8), "minus": np.array([0] * 11 + [-1] + [0] * 4),
              "two": rng.normal(size=(16, 2)), "one": np.array([0, 1] * 8)[:, None],
              "labels": np.array([0, 1, 2, 5] * 4)}
    for name, array in arrays.items():
        np.save(f"{name}.npy", array)
    os.mkdir("gpt3")
    for words, code, text in (
            ("x inf", 4, "inf.npy: moments: field 1 of the sample x.npy[9] is not finite"),
            ("holes y", 4, "NaN can be replaced with --fill"),
            ("x vast", 4, "vast.npy: the class of sample 1 is 1000000000, but there are 16"),
            ("x minus", 4, "minus.npy: the class of sample 11 is -1, expected 0, 1, ..."),
            ("x one", 0, "1 value; a class would have the shape (16)"),
            ("holes y --fill 0", 0, "holes.npy")):
        data, target, *more = words.split()
        done = run("train", "mlp", "--data", f"{data}.npy", "--target", f"{target}.npy", "--hidden",
                   "4", "--epochs", "1", "--out", f"{data}-{target}{len(more)}", *more, code=None)
        assert done.returncode == code and text in done.stderr, (words, done)
    image = run("train", "resnet18", "--data", "two.npy", "--target", "y.npy", code=4).stderr
    assert "samples of 2 numbers are none: use mlp" in image, image
    for words, text in ((("--resume", "--out", "typo"), "typo has no config.yaml"),
                        (("gpt3", "--data", "x.npy"), "'gpt3' is a file or folder here"),
                        (("mlp", "--resume", "--out", "x-one0", "--loss", "mae"),
                         "--loss is mae, but x-one0 was started with mse")):
        done = run("train", *words, code=2)
        assert text in done.stderr and "vgg11" not in done.stderr, done.stderr
    small = ["--data", "x.npy", "--target", "y.npy", "--hidden", "4"]
    done = run("train", "mlp", *small, "--val-share", "0.25", "--early-stop", "2", "--lr", "0.9",
               "--epochs", "200", "--out", "early", "--quiet")
    assert "Stopped early: val/loss did not improve 2 times in a row." in done.stdout, done.stdout
    text = run("train", "mlp", *small, "--out", os.fsdecode(b"q\xff"), code=2).stderr
    assert "--out is not valid UTF-8" in text, text
    run("train", "mlp", "--data", "x.npy", "--target", "labels.npy", "--hidden", "4", "--epochs",
        "1", "--classes", "6", "--out", "c")
    np.save("labels.npy", np.array([0, 7] * 8))
    done = run("eval", "--weights", "c/weights.safetensors", "--data", "x.npy", "--target",
               "labels.npy", "--json", code=None)
    assert done.returncode not in (0, 2) and done.stdout == "", done
    random = run("generate", "--weights", "c/weights.safetensors", "--prompt", "a", "--top-p",
                 "0.5", code=2).stderr
    assert "--temperature above 0" in random, random


def test_class_folders():
    def wrong(data, *says):
        error = run("train", "resnet18", "--data", data, "--epochs", "1", "--size", "32",
                    "--out", "r", code=4).stderr
        assert all(text in error for text in says) and not Path("r").exists(), (data, error)

    for folder in ("deep/below/a", "deep/below/b", "deep/other/a", "none/a", "none/b", "one/a",
                   "mixed/a", "mixed/b", "mixed/result"):
        os.makedirs(folder)
        if not folder.startswith("none") and not folder.endswith("result"):
            make_png(f"{folder}/0.png", [[(9, 9, 9)] * 20] * 20)
    wrong("deep", "--data deep/below?")
    wrong("none", "no JPEG or PNG")
    wrong("one", "a is the only class")
    wrong("mixed", "result has no photos", "every folder here is a class")


def test_no_effect():
    make_arrays()
    short = ["mlp", *ARRAYS, "--epochs", "1", "--quiet"]
    words = ["--jitter", "0.1", "--heads", "3", "--momentum", "0.5", "--wire", "bf16",
             "--gamma", "0.5", "--smoothing", "0.1"]
    found = run("train", *short, "--out", "r", *words).stderr
    for name in words[::2]:
        assert f"warning: {name} has no effect: " in found, (name, found)
    assert found.count("has no effect") == len(words) // 2, found
    used = ["--hidden", "8", "--optimizer", "sgd", "--momentum", "0.5", "--schedule", "step",
            "--every", "1", "--gamma", "0.5"]
    assert "has no effect" not in run("train", *short, "--out", "s", *used).stderr
    # An unused key in a configuration file is no mistake in this command line.
    Path("c.yaml").write_text("heads: 3\n")
    found = run("train", *short, "--out", "t", "--config", "c.yaml").stderr
    assert "has no effect" not in found


def test_slow_kernels_are_counted():
    for name in "mlp lenet5 resnet20_cifar resnet32_cifar resnet44_cifar resnet56_cifar".split():
        done = run("bench", name, "--first-step", "--batch", "2", "--json")
        assert json.loads(done.stdout)["reference_kernels"] == 0, done.stderr
        assert "warning" not in done.stderr, done.stderr


def test_nonfinite():
    make_arrays()
    done = run("train", "mlp", *ARRAYS, "--optimizer", "sgd", "--lr", "1e30", "--out", "r",
               "--quiet", code=6)
    assert "Z rank 0 " in done.stderr, done.stderr


def test_on_nonfinite():
    make_arrays()
    # The learning rate rises until the training diverges.
    base = ["mlp", *ARRAYS, "--optimizer", "sgd", "--lr", "1e10", "--warmup", "1e6", "--epochs",
            "9", "--quiet"]
    done = run("train", *base, "--on-nonfinite", "skip", "--out", "s", code=6)
    assert "this step is skipped" in done.stderr, done.stderr
    assert "skipped step 20 in a row" in done.stderr, done.stderr
    rewind = ["--on-nonfinite", "rewind", "--save-iterations", "1", "--max-rewinds", "2"]
    done = run("train", *base, *rewind, "--out", "t", code=6)
    assert "with 0.25 times the learning rate (rewind 2 of 2)" in done.stderr, done.stderr
    assert "which is the limit" in done.stderr, done.stderr
    # A run that has stopped can be resumed with another policy.
    done = run("train", *base, "--save-iterations", "1", "--out", "u", code=6)
    done = run("train", "--resume", "--out", "u", *rewind, "--quiet", code=6)
    assert "resuming at iteration" in done.stderr and "(rewind 2 of 2)" in done.stderr, done.stderr
    run("train", *base, "--rewind-factor", "2", "--out", "v", code=2)


def test_save_share():
    make_arrays()
    base = ["mlp", *ARRAYS, "--epochs", "0", "--hours", str(3.2 / 3600), "--quiet", "--json"]
    done = run("train", *base, "--save-share", "10", "--mtbf", "6", "--out", "r")
    found = json.loads(done.stdout)
    # At most one in a second, and one at the end; more steps were taken.
    assert 2 <= found["saves"] <= found["seconds"] + 1, found
    assert found["iterations"] > found["saves"], found
    assert found["save_cost_s"] >= found["pause_s"] > 0, found
    assert abs(found["save_interval_s"] / (2 * found["save_cost_s"] * 6 * 3600) ** 0.5 - 1) < 1e-6
    run("train", *base, "--save-share", "100", "--out", "s", code=2)


def test_held_out():
    """The samples of --val-share can be evaluated again, by the training's own seed."""
    x, y = make_arrays(120)
    rows = [",".join(map(str, [*a, *b])) for a, b in zip(x, y)]
    Path("t.csv").write_text("a,b,c,d,e,f,u,v\n" + "\n".join(rows) + "\n")
    Path("a.txt").write_text("To be, or not to be, that is the question. " * 30)
    cases = {"r1": ["mlp", *ARRAYS], "r2": ["mlp", "--data", "t.csv", "--target", "u,v"],
             "r3": ["gpt", "--data", "a.txt", "--length", "16", "--width", "16", "--depth", "1",
                    "--heads", "2"]}
    for out, words in cases.items():
        found = train(*words, "--epochs", "2", "--val-share", "0.25", "--seed", "5", "--out", out)
        last = ["--weights", f"{out}/weights.safetensors"]
        again = json.loads(run("eval", *last, "--held-out", "--json").stdout)
        assert abs(again["loss"] / found["val/loss"] - 1) < 1e-6, (out, again, found)
        whole = json.loads(run("eval", f"./{out}", *words[1:5], "--json").stdout)
        assert 3 <= whole["samples"] / again["samples"] <= 5, (whole, again)
        assert whole["loss"] != again["loss"], (whole, again)
    found = train("mlp", *ARRAYS, "--epochs", "2", "--val", "x.npy", "--val-target", "y.npy",
                  "--out", "r4")
    again = json.loads(run("eval", "./r4", "--held-out", "--json").stdout)
    assert abs(again["loss"] / found["val/loss"] - 1) < 1e-6 and again["samples"] == 120, again
    train("mlp", *ARRAYS, "--epochs", "1", "--out", "r5")
    assert "neither" in run("eval", "./r5", "--held-out", code=2).stderr
    assert "neither" in run("eval", "./r5", "--held-out", *ARRAYS[:4], code=2).stderr
    folder = SOURCE / "tests/golden/published/llama"
    assert "result folder" in run("eval", f"{folder}/", "--held-out", code=2).stderr


def test_short_epochs():
    """On a disk that takes 20 ms to sync, short epochs do not wait for it."""
    if not shutil.which("cc"):
        print("  no cc: not checked")
        return
    Path("slow.c").write_text("""
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <stdio.h>
        #include <unistd.h>
        static int count(const char *name, int file) {
            int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
            FILE *f = fopen("synced", "a");
            fputs("sync\\n", f);
            fclose(f);
            usleep(20000);
            return real(file);
        }
        int fsync(int file) { return count("fsync", file); }
        int fdatasync(int file) { return count("fdatasync", file); }""")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "slow.so", "slow.c", "-ldl"], check=True)
    make_arrays(32)
    env = {"LD_PRELOAD": f"{os.environ.get('LD_PRELOAD', '')} ./slow.so".strip(),
           "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
    for more in [], ["--val-share", "0.2"]:
        found = train("mlp", *ARRAYS, *more, "--epochs", "300", "--out", f"r{len(more)}", env=env)
        n = len(Path("synced").read_text().splitlines())
        Path("synced").unlink()
        print(f"  300 epochs: {found['seconds']:.1f} s, {n} times synced")
        # At the first epoch, at most every 5 seconds, and at the end.
        assert n <= 60 + 20 * found["seconds"] / 5, (n, found["seconds"])


def test_hours():
    """A run that its time limit has ended is not done: a job script continues it."""
    make_arrays()
    base = ["mlp", *ARRAYS, "--epochs", "1000000", "--quiet", "--out", "r"]
    found = json.loads(run("train", *base, "--hours", str(0.5 / 3600), "--json", code=85).stdout)
    assert found["stopped"] == "--hours" and Path("r/unfinished").exists(), found
    text = run("train", *base, "--hours", str(0.5 / 3600), "--resume", code=85).stdout
    assert text.startswith("stopped: "), text
    run("train", "mlp", *ARRAYS, "--epochs", "1", "--quiet", "--out", "r", "--resume")
    assert not Path("r/unfinished").exists()
    # Without another limit, the time is all there is.
    run("train", "mlp", *ARRAYS, "--hours", str(0.5 / 3600), "--quiet", "--out", "s")
    assert not Path("s/unfinished").exists()


def test_unwritable():
    make_arrays()
    os.makedirs("r/weights.safetensors/there")
    run("train", "mlp", *ARRAYS, "--epochs", "1", "--out", "r", "--force", "--quiet", code=3)


# ---- configuration


def resolved(out):
    lines = Path(out, "config.yaml").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if line[0] != "#")


def test_precedence():
    make_arrays()
    Path("c.yaml").write_text("batch: 16\nlr: 1e-2\nepochs: 2\n")
    env = {"CATENA_TRAIN_LR": "0.5", "CATENA_TRAIN_SEED": "7", "CATENA_TRAIN_EPOCHS": "9"}
    base = ["mlp", "--data", "x.npy", "--target", "y.npy", "--hidden", "8", "--config", "c.yaml"]
    train(*base, "--epochs", "1", "--out", "r", env=env)
    c = resolved("r")
    got = {k: c[k] for k in ("batch", "lr", "epochs", "seed", "optimizer", "loss")}
    assert got == {"batch": "16", "lr": "1e-2", "epochs": "1", "seed": "7", "optimizer": "adam",
                   "loss": "mse"}, got
    # The site file has the lowest precedence.
    for folder in ("bin", "etc"):
        os.mkdir(folder)
    shutil.copy(CATENA, "bin/catena")
    Path("etc/catena.yaml").write_text("seed: 3\nlr: 0.25\nmomentum: 0.5\n")
    subprocess.run(["bin/catena", "train", *base, "--epochs", "1", "--out", "site", "--quiet"],
                   check=True, capture_output=True,
                   env={**ENV, **env, "LD_LIBRARY_PATH": str(LIBRARY)})
    c = resolved("site")
    assert (c["seed"], c["lr"], c["momentum"]) == ("7", "1e-2", "0.5"), c
    # The written configuration gives the same weights again.
    train("--config", "r/config.yaml", "--out", "again")
    assert same("r/weights.safetensors", "again/weights.safetensors")


def test_typing():
    make_arrays()
    base = ["mlp", "--data", "x.npy", "--target", "y.npy", "--epochs", "1"]
    # "no" is text for a text key and false for a flag; 1e1 is an integer where one is expected.
    Path("c.yaml").write_text("model-args: no\nnesterov: no\ndrop-last: yes\nbatch: 1e1\n"
                              "hidden: [8, 4]\nclip: 1e3\n")
    train(*base, "--config", "c.yaml", "--out", "r")
    c = resolved("r")
    got = [c[k] for k in ("model-args", "nesterov", "drop-last", "batch")]
    assert got == ['"no"', "false", "true", "1e1"], c
    assert c["hidden"] == "[8,4]" and float(c["clip"]) == 1000, c

    def refused(text, *expected):
        Path("bad.yaml").write_text(text)
        done = run("train", *base, "--config", "bad.yaml", "--out", "bad", code=2)
        for part in expected:
            assert part in done.stderr, (text, part, done.stderr)
        assert not Path("bad").exists()

    refused("batch: 8\nepcohs: 3\n", "line 2", "unknown key 'epcohs'", "did you mean epochs?")
    refused("batch: no\n", "line 1", "an integer", "'no'")
    refused("lr: fast\n", "a number")
    refused("optimizer: adagrab\n", "one of")
    refused("lr: &a 1\nmomentum: *a\n", "anchors")
    refused("momentum: *a\n", "alias")
    refused("lr: !!float 1\n", "tags")
    refused("lr: [1, 2]\n", "expected a single value, found a list")
    refused("lr: {a: 1}\n", "found nested keys")
    refused("- 1\n- 2\n", "line 1")
    refused("just words\n", "expected keys and values")
    refused("lr: 1\nlr: 2\n", "twice")
    refused("lr: 1\n---\nlr: 2\n", "second document")
    refused("force: true\n", "only allowed as a flag")
    refused("lr: '1\n", "not YAML")
    refused("#" * (1 << 20) + "\nlr: 1\n", "larger than 1 MB")


# ---- training


def test_regression():
    x, y = make_arrays()
    values = train("mlp", *ARRAYS, "--epochs", "60", "--lr", "0.01", "--val-share", "0.2",
                   "--out", "r")
    assert values["val/loss"] < 0.05, values
    for name in ("config.yaml log.jsonl weights.safetensors best.safetensors machine.json plan.txt "
                 "decisions.txt report.html loss.svg state").split():
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
    # eval prints the same errors as computed from the file.
    found = json.loads(run("eval", "mlp", "--weights", weights, *ARRAYS[:4], "--json").stdout)
    assert found["samples"] == len(x)
    assert abs(found["rmse"] / np.sqrt(((p - y) ** 2).mean()) - 1) < 1e-3, found
    np.save("x32.npy", x.astype(np.float32))
    run("predict", "mlp", "--weights", weights, "--data", "x32.npy", "--out", "p32.npy")
    assert np.load("p32.npy").dtype == np.float32
    run("predict", "mlp", "--weights", weights, "--data", "x.npy", "--out", "p.txt", code=2)


def test_what_was_read():
    """A line for each array or column: what its dimensions are taken for, what would be lost."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=(512, 20, 3)) * [1, 1e5, 1e-2] + [0, 1e6, 300]
    np.save("x.npy", x)
    np.save("y.npy", (x[:, :, 0].mean(1) + 100 * x[:, :, 2].mean(1))[:, None])
    np.save("t.npy", 1_700_000_000 + np.arange(512) // 8)  # 64 s
    np.save("h.npy", np.arange(512) // 8 * 0.5)
    small = ["--hidden", "32", "--lr", "0.01", "--batch", "32", "--quiet"]
    for data, target in ("x", "y"), ("t", "h"):
        names = ["--data", f"{data}.npy", "--target", f"{target}.npy"]
        run("train", "mlp", *names, *small, "--epochs", "30", "--out", data)
        found = json.loads(run("eval", "--weights", f"{data}/weights.safetensors", *names,
                               "--metric", "r2", "--json").stdout)
        assert found["r2"] > 0.9, (data, found)
    shown = [["train", "mlp", "--data", "t.npy", "--target", "h.npy"],
             ["train", "fno", "--data", "x.npy", "--target", "x.npy"],
             ["train", "mlp", "--data", "t.csv", "--target", "kind"]]
    Path("t.csv").write_text("a,b,kind\n1,-2,x\n3,5,y\n2,1,x\n")
    text = ""
    for words in shown:
        text += run(*words, "--iterations", 1, "--out", f"o{len(text)}").stderr
    for line in (r"t.npy +i64 +\(512\) +1700000000 to 1700000063, mean 1.7e.09: one input",
                 r"x.npy +f64 +\(512,20,3\) .*: 20 channels, 1 dimension",
                 "channel 0 the values at index 0 of dimension 2 vary .e.05 times less",
                 "a +input +1 to 3, mean 2\n", "b +input +-2 to 5", "kind +target .*a class of 2"):
        assert re.search(line, text), (line, text)
    assert "lost" not in run("train", "mlp", "--data", "x.npy", "--target", "y.npy", *small[:-1],
                             "--iterations", 1, "--out", "flat").stderr


def test_unet():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(32, 1, 16, 16))
    np.save("x.npy", x * 3 + 7)
    np.save("y.npy", (x + np.roll(x, 1, axis=-1)) * 50 - 20)
    words = ["--data", "x.npy", "--target", "y.npy", "--batch", "8"]
    train("unet", *words, "--width", "4", "--depth", "2", "--epochs", "20", "--lr", "0.01",
          "--out", "r")
    run("predict", "unet", "--weights", "r/weights.safetensors", "--data", "x.npy",
        "--out", "p.npy")
    y, p = np.load("y.npy"), np.load("p.npy")
    assert p.shape == y.shape
    assert np.sqrt(((p - y) ** 2).mean()) < 0.5 * y.std()
    # Fields without channels.
    np.save("x.npy", np.load("x.npy")[:, 0])
    np.save("y.npy", np.load("y.npy")[:, 0])
    train("unet", *words, "--spatial", "2", "--width", "4", "--depth", "2", "--epochs", "1",
          "--out", "s")
    run("predict", "unet", "--weights", "s/weights.safetensors", "--data", "x.npy",
        "--out", "p.npy")
    assert np.load("p.npy").shape == (32, 16, 16)


def test_fno():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(32, 1, 16, 16))
    y = x
    for _ in range(4):
        y = (y + np.roll(y, 1, axis=-1) + np.roll(y, 1, axis=-2)) / 3
    np.save("x.npy", x * 3 + 7)
    np.save("y.npy", y * 50 - 20)
    words = ["--data", "x.npy", "--target", "y.npy", "--batch", "8", "--loss", "relative-l2"]
    train("fno", *words, "--width", "8", "--depth", "2", "--modes", "8", "--epochs", "40", "--lr",
          "0.01", "--out", "r")
    run("predict", "fno", "--weights", "r/weights.safetensors", "--data", "x.npy", "--out", "p.npy")
    y, p = np.load("y.npy"), np.load("p.npy")
    assert p.shape == y.shape
    assert np.sqrt(((p - y) ** 2).mean()) < 0.5 * y.std()
    run("train", "fno", *words, "--modes", "1,2,3", "--out", "s", code=2)


def test_classes():
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 3, size=200)
    np.save("x.npy", (rng.normal(size=(200, 5)) + 3 * labels[:, None]).astype(np.float32))
    for dtype in (np.uint8, np.int64):
        np.save("y.npy", labels.astype(dtype))
        out = f"r{np.dtype(dtype).itemsize}"
        values = train("mlp", *ARRAYS, "--epochs", "30", "--lr", "0.02", "--val-share", "0.25",
                       "--out", out)
        assert values["val/accuracy"] > 0.8, values
    best = ["mlp", "--weights", "r8/best.safetensors"]
    run("predict", *best, "--data", "x.npy", "--out", "p.csv")
    lines = Path("p.csv").read_text().splitlines()
    assert lines[0] == "sample,class,name,probability" and len(lines) == 201
    right = np.mean([int(line.split(",")[1]) == k for line, k in zip(lines[1:], labels)])
    assert right > 0.8, right
    run("predict", *best, "--data", "x.npy", "--out", "p.npy")
    p = np.load("p.npy")
    assert p.dtype == np.float32 and len(p) == 200 and np.allclose(p.sum(axis=1), 1, atol=1e-5)
    assert [int(line.split(",")[1]) for line in lines[1:]] == list(p.argmax(axis=1))
    found = json.loads(run("eval", *best, *ARRAYS[:4], "--json").stdout)
    assert abs(found["accuracy"] - right) < 1e-6, (found, right)
    mixed = train("mlp", *ARRAYS, "--epochs", "2", "--smoothing", "0.1", "--schedule", "one-cycle",
                  "--warmup", "0.5", "--ema", "0.9", "--clip", "1", "--accumulate", "2",
                  "--out", "m")
    assert mixed["epochs"] == 2


def test_onnx():
    """tests/onnx/small.onnx is a small convolutional network with batch normalisation."""
    if run("eval", "small.onnx", code=None).stderr.count("protobuf-c"):
        return
    shutil.copy(SOURCE / "tests/onnx/small.onnx", "small.onnx")
    x = np.sin(np.arange(2 * 3 * 32 * 32) / 7).astype(np.float32).reshape(2, 3, 32, 32)
    np.save("x.npy", x)
    run("predict", "small.onnx", "--data", "x.npy", "--out", "y.npy")
    expected = [[0.25660, 0.03268, -0.01149, -0.03439, -0.18173],  # of ONNX Runtime
                [0.25100, 0.02354, -0.01257, -0.03961, -0.18238]]
    assert np.allclose(np.load("y.npy")[:, :5], expected, atol=1e-5), np.load("y.npy")
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 3, size=96)
    images = rng.normal(size=(96, 3, 32, 32)).astype(np.float32) * 0.3
    images[np.arange(96), labels] += 1
    np.save("x.npy", images)
    np.save("y.npy", labels)
    data = ["--data", "x.npy", "--target", "y.npy", "--standardize", "none"]
    words = ["small.onnx", *data, "--batch", "16", "--lr", "0.02", "--optimizer", "adam",
             "--val-share", "0.25", "--out", "r"]
    train(*words, "--epochs", "4")
    values = train(*words, "--epochs", "8", "--resume")
    assert values["val/accuracy"] > 0.8, values
    found = json.loads(run("eval", "--weights", "r/weights.safetensors", *data, "--json").stdout)
    assert found["accuracy"] > 0.8, found
    run("export", "./r", "--to", "again.onnx")
    run("predict", "again.onnx", "--data", "x.npy", "--out", "logits.npy")
    run("predict", "--weights", "r/best.safetensors", "--data", "x.npy", "--out", "p.npy")
    p = np.exp(np.load("logits.npy"))
    assert np.allclose(p / p.sum(axis=1, keepdims=True), np.load("p.npy"), atol=1e-5)
    assert "conv" in run("explain", "small.onnx", "--steps", "1").stdout
    Path("bad.onnx").write_bytes(b"nothing")
    assert "bad.onnx is not an ONNX model" in run("predict", "bad.onnx", "--data", "x.npy", "--out",
                                                  "y.npy", code=None).stderr


def make_png(path, rows):
    """8-bit RGB, rows of (r,g,b)."""
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
    raw = b"".join(b"\0" + bytes(v for pixel in row for v in pixel) for row in rows)
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    Path(path).write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) +
                           chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def test_images():
    colours = {"blue": (10, 20, 200), "green": (20, 200, 10), "red": (200, 10, 20)}
    for name, colour in colours.items():
        os.makedirs(f"photos/{name}")
        for i in range(8):
            make_png(f"photos/{name}/{i}.png", [[tuple(min(255, v + i) for v in colour)] * 20] * 20)
    words = ["--size", "16", "--batch", "6", "--lr", "0.01"]
    best = ["resnet20_cifar", "--weights", "r/best.safetensors"]
    values = train("resnet20_cifar", "--data", "photos", *words, "--epochs", "6",
                   "--val-share", "0.25", "--out", "r")
    assert "val/accuracy" in values, values
    assert Path("r/classes.txt").read_text().split() == sorted(colours), values
    lines = run("predict", *best, "--data", "photos/red").stdout
    found = [json.loads(line) for line in lines.splitlines()]
    assert len(found) == 8 and found[0]["sample"].endswith("0.png"), found
    assert found[0]["name"] in colours, found
    # Classes are identified by name, not by the order of the folders that are present.
    shutil.copytree("photos/red", "some/red")
    names = [line["name"] for line in found]
    some = json.loads(run("eval", *best, "--data", "some", "--json").stdout)
    assert some["accuracy"] == names.count("red") / 8, (some, names)
    values = train("resnet20_cifar", "--data", "photos", *words, "--epochs", "1", "--val", "some",
                   "--out", "v")
    some = json.loads(run("eval", "resnet20_cifar", "--weights", "v/weights.safetensors",
                          "--data", "some", "--json").stdout)
    assert abs(values["val/accuracy"] - some["accuracy"]) < 1e-6, (values, some)
    shutil.copytree("photos/red", "some/purple")
    error = run("eval", *best, "--data", "some", code=4).stderr
    assert "the class 'purple' is not one of the 3 known classes" in error, error
    packed = json.loads(run("pack", "photos", "shards", "--json").stdout)
    assert packed["samples"] == 24 and Path("shards/shard-000000.tar").exists()
    train("resnet20_cifar", "--data", "shards", *words, "--epochs", "1", "--mixup", "0.2",
          "--out", "s")
    shards, folder = (json.loads(run("eval", *best, "--data", data, "--json").stdout)
                      for data in ("shards", "photos"))
    assert shards["accuracy"] == folder["accuracy"], (shards, folder)
    assert abs(shards["loss"] - folder["loss"]) < 1e-4, (shards, folder)
    # Several image sizes: the same training, interrupted and resumed, ends with the same weights.
    scales = ["resnet20_cifar", "--data", "photos", "--size", "16", "--image-sizes", "12,16,20",
              "--size-every", "1", "--batch", "6", "--lr", "0.01", "--threads", "1"]
    train(*scales, "--epochs", "2", "--out", "w")
    train(*scales, "--epochs", "1", "--out", "x")
    train(*scales, "--epochs", "2", "--out", "x", "--resume")
    assert same("w/weights.safetensors", "x/weights.safetensors")
    np.save("x.npy", np.ones((8, 4)))
    assert "cannot change the size" in run("train", "mlp", "--data", "x.npy", "--target", "x.npy",
                                           "--image-sizes", "8", "--out", "y", code=4).stderr
    # A damaged file: training fails and names it, or skips it with --skip.
    Path("photos/red/3.png").write_bytes(b"\x89PNG nonsense")
    bad = ["resnet20_cifar", "--data", "photos", *words, "--epochs", "1", "--quiet"]
    assert "3.png" in run("train", *bad, "--out", "t", code=4).stderr
    assert "3.png" in run("train", *bad, "--out", "u", "--skip", "0.2").stderr
    run("eval", *best, "--data", "photos/red", code=4)
    os.mkdir("pipes")
    os.mkfifo("pipes/a.png")  # waiting for its writer would take forever
    run("predict", *best, "--data", "pipes", code=4)


def test_bench_loader_links():
    """Links among folders, and sizes that a tar file claims, are not followed."""
    os.makedirs("photos/below")
    for i in range(6):
        os.symlink(".", f"photos/self{i}")
        os.symlink("..", f"photos/below/up{i}")
    done = run("bench", "loader", "--data", "photos", code=4)
    assert "no JPEG files" in done.stderr, done.stderr
    head = b"a.jpg".ljust(124, b"\0") + b"17777777777\0" + bytes(20) + b"0"
    Path("photos/a.tar").write_bytes(head.ljust(512, b"\0"))
    done = run("bench", "loader", "--data", "photos", code=None)
    assert done.returncode in (3, 4) and "a.tar is truncated" in done.stderr, done


def test_small_images():
    rng = np.random.default_rng(4)
    os.mkdir("c100")
    Path("c100/fine_label_names.txt").write_text("apple\n")
    for part in ("train", "test"):
        records = rng.integers(0, 256, size=(40, 3074), dtype=np.uint8)
        records[:, 0], records[:, 1] = np.arange(40) % 20, np.arange(40) * 2
        Path(f"c100/{part}.bin").write_bytes(records.tobytes())
    words = ["--epochs", "1", "--batch", "20", "--lr", "0.01"]
    values = train("resnet20_cifar", "--data", "c100", *words, "--out", "r")
    assert "val/accuracy" in values, values
    weights = Path("r/weights.safetensors").read_bytes()
    head = json.loads(weights[8:8 + struct.unpack("<Q", weights[:8])[0]])
    assert any(v.get("shape") == [100, 64] for v in head.values()), head

    def element(kind, data):
        return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)

    def array(name, dims, data):  # compressed, as MATLAB writes it
        parts = [element(6, struct.pack("<II", 9, 0)),
                 element(5, struct.pack(f"<{len(dims)}I", *dims)), element(1, name),
                 element(2, data)]
        packed = zlib.compress(element(14, b"".join(parts)))
        return struct.pack("<II", 15, len(packed)) + packed

    os.mkdir("svhn")
    for part in ("train", "test"):
        pixels = rng.integers(0, 256, size=40 * 3072, dtype=np.uint8).tobytes()
        digits = bytes(1 + i % 10 for i in range(40))
        Path(f"svhn/{part}_32x32.mat").write_bytes(
            b"MATLAB 5.0".ljust(124) + b"\0\1IM" + array(b"X", (32, 32, 3, 40), pixels) +
            array(b"y", (40, 1), digits))
    values = train("resnet20_cifar", "--data", "svhn", *words, "--out", "s")
    assert "val/accuracy" in values, values


def weights_of(path):
    """The arrays of a safetensors file, as bytes."""
    data = Path(path).read_bytes()
    n = struct.unpack("<Q", data[:8])[0]
    head = {k: v for k, v in json.loads(data[8:8 + n]).items() if k != "__metadata__"}
    return {k: data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]
            for k, v in head.items()}


def changed(a, b):
    """Names of the arrays that two files have with other values."""
    a, b = weights_of(a), weights_of(b)
    return {name for name in a if a[name] != b[name]}


def test_finetune():
    """A new head, a frozen body, training in stages, and the same bits after a resume."""
    colours = {"blue": (10, 20, 200), "green": (20, 200, 10), "red": (200, 10, 20)}
    for name, colour in colours.items():
        for part in ("photos", "two") if name != "red" else ("photos",):
            os.makedirs(f"{part}/{name}")
            for i in range(6):
                make_png(f"{part}/{name}/{i}.png",
                         [[tuple(min(255, v + i) for v in colour)] * 8] * 8)
    small = ["resnet20_cifar", "--size", "8", "--batch", "4", "--lr", "0.01", "--data"]
    train(*small, "photos", "--epochs", "2", "--out", "base")
    base = "base/weights.safetensors"
    named = ["predict", "--weights", base, "--data", "two"]
    assert '"name": "' in run(*named).stdout
    os.rename("base/classes.txt", "classes")
    assert '"name": ""' in run(*named).stdout and "blue\"," not in run(*named).stdout
    os.rename("classes", "base/classes.txt")
    tune = [*small, "two", "--weights", base]
    text = run("train", *tune, "--train-only", "linear", "--epochs", "2", "--out", "tuned").stderr
    assert "linear (2,64) starts fresh: the file has (3,64)" in text, text
    assert "130 of them trained" in text, text
    assert changed(base, "tuned/weights.safetensors") == {"linear.weight", "linear.bias"}
    other = ["--freeze", "conv1,bn1", "--freeze", "layer?", "--freeze-statistics", "none"]
    train(*tune, *other, "--epochs", "1", "--out", "moving")
    moved = changed(base, "moving/weights.safetensors")
    assert "layer1.0.bn1.running_mean" in moved and "layer1.0.bn1.weight" not in moved, moved
    # Everything is trained after one epoch; cut before, at and after that.
    stages = [*tune, "--train-only", "linear", "--unfreeze-at", "1", "--lr-scale",
              "layer1=0.5,bn1=2", "--optimizer", "adam"]
    train(*stages, "--epochs", "3", "--out", "whole")
    assert "layer3.2.bn2.running_var" in changed(base, "whole/weights.safetensors")
    train(*stages, "--epochs", "0", "--iterations", "2", "--out", "parts")
    for end in (3, 5, 9):
        train("--out", "parts", "--resume", "--iterations", end)
    assert changed("whole/weights.safetensors", "parts/weights.safetensors") == set()

    def wrong(*words):
        return run("train", *words, "--out", "no", code=None).stderr
    assert "no parameter matches 'layer4'; the network has conv1, bn1, layer1, layer2, layer3, " \
        "linear" in wrong(*tune, "--freeze", "layer4")
    assert "no parameter matches 'lin'" in wrong(*tune, "--lr-scale", "lin=2")
    assert "expected PATTERN=X" in wrong(*tune, "--lr-scale", "linear=0")
    assert "no parameter to train" in wrong(*tune, "--freeze", "*")
    assert "needs --freeze" in wrong(*tune, "--unfreeze-at", "1")
    assert "cannot be combined" in wrong(*tune, "--freeze", "conv1", "--lora", "2")
    assert "cannot be combined" in wrong(*stages, "--shard")
    assert "conv1.weight is (64,3,7,7) in the model" in wrong("resnet18", *tune[1:])
    text = run("train", *small, "two", "--freeze", "conv1", "--epochs", "1", "--out", "r").stderr
    assert "random initial values" in text, text
    done = run("train", "--out", "parts", "--resume", "--freeze", "layer1", code=2).stderr
    assert "--freeze is layer1, but parts was started" in done, done
    found = json.loads(run("explain", "resnet20_cifar", "--train-only", "linear", "--batch", "2",
                           "--steps", "1", "--json").stdout)
    assert found["backward_kernels"] < 8 < found["forward_kernels"], found["backward_kernels"]
    assert found["gradient_and_state_bytes"] == 2 * 4 * 650


def test_mnist():
    rng = np.random.default_rng(4)
    for part, n in (("train", 60), ("t10k", 20)):
        images = rng.integers(0, 256, size=(n, 28, 28), dtype=np.uint8).tobytes()
        labels = (np.arange(n, dtype=np.uint8) % 10).tobytes()
        image_head, label_head = struct.pack(">4I", 0x803, n, 28, 28), struct.pack(">2I", 0x801, n)
        Path(f"{part}-images-idx3-ubyte").write_bytes(image_head + images)
        Path(f"{part}-labels-idx1-ubyte").write_bytes(label_head + labels)
    values = train("mlp", "--data", ".", "--hidden", "8", "--epochs", "1", "--out", "r")
    assert values["samples"] == 60
    found = run("eval", "mlp", "--weights", "r/weights.safetensors", "--data", ".", "--json")
    assert json.loads(found.stdout)["samples"] == 20
    values = train("lenet5", "--data", ".", "--iterations", "1", "--batch", "4", "--out", "s")
    assert values["iterations"] == 1


def test_text():
    Path("a.txt").write_text("to be or not to be, that is the question. " * 100)
    values = train("gpt", "--data", "a.txt", "--length", "16", "--width", "16", "--depth", "1",
                   "--heads", "2", "--iterations", "200", "--eval-iterations", "50",
                   "--val-share", "0.2", "--out", "r", "--log-iterations", "50")
    assert values["iterations"] == 200 and values["val/loss"] < 4, values
    assert len(Path("r/log.jsonl").read_text().splitlines()) == 4


def test_pack_text():
    words = "[UNK] [SEP] to be or not , that is the question .".split()
    Path("vocab.txt").write_text("\n".join(words) + "\n")
    Path("texts").mkdir()
    Path("texts/b.txt").write_text("to be\nor not to be, that is the question. " * 5000)
    Path("texts/a.txt").write_text("To BE what?")
    Path("texts/.hidden").write_text("not")
    results = []
    for threads in ("1", "2") if os.cpu_count() > 1 else ("1",):
        done = run("pack", "texts", "t.bin", "--tokenizer", "vocab.txt", "--json",
                   "--threads", threads)
        found = json.loads(done.stdout)
        assert found["files"] == 2 and found["token_bytes"] == 2, found
        results.append(np.fromfile("t.bin", "<u2"))
        assert found["tokens"] == len(results[-1]) == 5 + 12 * 5000 + 1, found
    assert (results[0] == results[-1]).all()
    assert results[0][:8].tolist() == [2, 3, 0, 0, 1, 2, 3, 4], results[0][:8]
    found = run("pack", "texts/a.txt", "u.bin", "--tokenizer", "vocab.txt", "--end", "none")
    assert "4 tokens of 2 bytes in u.bin, from 1 file" in found.stdout, found.stdout
    pack = ["pack", "texts", "v.bin", "--tokenizer"]
    assert "such.txt" in run(*pack, "such.txt", code=4).stderr
    assert "to end a document" in run(*pack, "vocab.txt", "--end", "[EOS]", code=4).stderr
    assert "missing" in run("pack", "missing", "v.bin", "--tokenizer", "vocab.txt", code=4).stderr
    Path("x.json").write_text('{"model": {"type": "Unigram"}}')
    assert "'Unigram'" in run(*pack, "x.json", code=3).stderr
    assert not Path("v.bin").exists()


def test_generate():
    """A trained model continues text; several prompts together give what each gives alone."""
    Path("abc.txt").write_text("abcdefgh " * 400)
    train("gpt", "--data", "abc.txt", "--length", "24", "--width", "32", "--depth", "1",
          "--iterations", "150", "--lr", "0.01", "--out", "r")
    words = ["generate", "--weights", "r/weights.safetensors"]
    text = run(*words, "--prompt", "cdefgh ab", "--tokens", "12").stdout
    assert text == "cdefgh abcdefgh abcde\n", text
    Path("prompts").write_text("cdefgh ab\n\nfgh a\n")
    both = json.loads(run(*words, "--prompts", "prompts", "--tokens", "12", "--json").stdout)
    assert [t["text"] for t in both["texts"]] == ["cdefgh abcde", "bcdefgh abcd"], both
    assert both["texts"][0]["tokens"] == list(b"cdefgh abcde"), both
    drawn = [json.loads(run(*words, "--prompt", "cd", "--temperature", "3", "--seed", seed,
                            "--tokens", "20", "--json").stdout)["texts"] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2], drawn
    for bad, what in ((["--prompt", ""], "empty"), (["--prompt", "a" * 30], "1 to 24"),
                      (["--prompts", "none"], "none")):
        assert what in run(*words, *bad, code=None).stderr, bad
    assert "--weights" in run("generate", "gpt", "--prompt", "a", code=2).stderr
    assert "--prompt" in run(*words, code=2).stderr


def byte_tokenizer(special):
    """tokenizer.json with the bytes as tokens, and special tokens from 256 on."""
    characters = [chr(b) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174 else None
                  for b in range(256)]
    more = iter(range(256, 400))
    vocabulary = {c or chr(next(more)): i for i, c in enumerate(characters)}
    return {"added_tokens": [{"id": 256 + k, "content": text, "special": True}
                             for k, text in enumerate(special)],
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
            "model": {"type": "BPE", "vocab": vocabulary, "merges": []}}


def byte_model(tokenizer, text, length=32, iterations=30, **config):
    """The folder m: a small GPT with this tokenizer, trained on a text."""
    os.mkdir("m")
    config = {"model_type": "gpt2", "n_embd": 16, "n_layer": 1, "n_head": 2,
              "vocab_size": 256 + len(tokenizer["added_tokens"]), "n_positions": length, **config}
    Path("m/config.json").write_text(json.dumps(config))
    Path("m/tokenizer.json").write_text(json.dumps(tokenizer))
    Path("a.txt").write_text(text)
    train("./m/config.json", "--data", "a.txt", "--tokenizer", "m/tokenizer.json", "--length", "16",
          "--iterations", iterations, "--lr", "0.01", "--out", "r")
    shutil.copy("r/weights.safetensors", "m/model.safetensors")


def test_begin_and_end():
    """generate puts the tokens of the post-processor around a prompt, and stops where the model's
    own files say that a text ends."""
    tokenizer = byte_tokenizer(["<s>", "</s>"])
    template = {"type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
                "special_tokens": {"<s>": {"ids": [256]}}}
    byte_model(tokenizer, "abcdefgh " * 200, eos_token_id=257)

    def tokens(prompt, *more):
        done = run("generate", "./m", "--prompt", prompt, "--tokens", "6", "--json", *more)
        return json.loads(done.stdout)["texts"][0]["tokens"]
    plain, begun = tokens("abc"), tokens("<s>abc")
    Path("m/tokenizer.json").write_text(json.dumps({**tokenizer, "post_processor": template}))
    assert tokens("abc") == begun, (plain, begun)
    assert run("generate", "./m", "--prompt", "abc", "--tokens", "1").stdout.startswith("abc")
    end = begun[3]
    Path("m/generation_config.json").write_text(json.dumps({"eos_token_id": [255, end]}))
    assert tokens("abc") == begun[:begun.index(end)], (begun, end)
    assert tokens("abc", "--ignore-end") == begun
    # Prompts of all lengths, some of which end at once: each gives what it gives alone.
    Path("m/generation_config.json").write_text(json.dumps({"eos_token_id": ord("h")}))
    prompts = [("abcdefgh " * 5)[k % 9:k % 9 + k] for k in range(20, 31)]
    Path("prompts").write_text("\n".join(prompts) + "\n")
    together = run("generate", "./m", "--prompts", "prompts", "--tokens", "20", "--json").stdout
    for prompt, found in zip(prompts, json.loads(together)["texts"]):
        alone = run("generate", "./m", "--prompt", prompt, "--tokens", "20", "--json").stdout
        assert json.loads(alone)["texts"][0] == found, (prompt, alone, found)
    Path("m/generation_config.json").write_text('{"eos_token_id": [')
    assert "generation_config.json" in run("generate", "./m", "--prompt", "a", code=4).stderr


TEMPLATE = """{% for m in messages %}
{{ '<u>' if m.role == 'user' else '<a>' }}{{ m.content|trim }}
{%- endfor %}
{%- if add_generation_prompt %}<a>{% endif %}
"""


def test_chat():
    """generate --chat answers what the same text without it is continued with."""
    tokenizer = byte_tokenizer(["<s>", "<u>", "<a>", "</s>"])
    around = {"type": "TemplateProcessing",
              "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
              "special_tokens": {"<s>": {"ids": [256]}}}
    byte_model(tokenizer, "<u>ab<a>cdef</s>" * 100, length=64, iterations=60, eos_token_id=259)
    words = ["generate", "./m", "--tokens", "8"]

    def texts(*more):
        return json.loads(run(*words, *more, "--json").stdout)["texts"]
    assert "chat_template.jinja" in run(*words, "--chat", "--prompt", "a", code=None).stderr
    want = texts("--prompt", "<u>ab<a>")[0]
    system = texts("--prompt", "<a>S<u>ab<a>")[0]
    turns = texts("--prompt", '<u>ab<a>cd<u>a"\\b<a>')[0]
    # The template writes the tokens that belong around a text.
    Path("m/tokenizer.json").write_text(json.dumps({**tokenizer, "post_processor": around}))
    Path("m/tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    found = texts("--chat", "--prompt", " ab ")[0]
    assert found == want and found["text"].startswith("cdef"), (found, want)
    assert texts("--chat", "--system", "S", "--prompt", "ab")[0] == system
    shown = run(*words, "--chat", "--prompt", "ab").stdout
    assert shown == want["text"] + "\n", (shown, want)
    answer = run(*words, "--chat", "--ignore-end", "--prompt", "ab").stdout
    assert answer.startswith("cdef") and "<" not in answer, answer
    conversation = [{"role": "user", "content": "ab"}, {"role": "assistant", "content": "cd"},
                    {"role": "user", "content": 'a"\\b'}]
    Path("prompts.jsonl").write_text(json.dumps({"messages": conversation}) + "\nab\n" +
                                     json.dumps(conversation) + "\n")
    assert texts("--chat", "--prompts", "prompts.jsonl") == [turns, want, turns]
    several = run(*words, "--chat", "--prompts", "prompts.jsonl").stdout
    assert several == "\n\n".join(t["text"] for t in (turns, want, turns)) + "\n", several
    Path("prompts.jsonl").write_text("[1]\n")
    assert "role" in run(*words, "--chat", "--prompts", "prompts.jsonl", code=None).stderr
    assert "--chat" in run(*words, "--system", "S", "--prompt", "a", code=2).stderr
    Path("m/tokenizer_config.json").write_text(json.dumps({"chat_template": "a\n{{ x|sort }}"}))
    assert "line 2" in run(*words, "--chat", "--prompt", "a", code=None).stderr
    assert texts("--prompt", "<u>ab<a>")  # the template is not in the way of others


def test_stop():
    """generate --stop cuts a text before the first TEXT in what is new, also while it streams."""
    Path("abc.txt").write_text("abcdefgh " * 400)
    train("gpt", "--data", "abc.txt", "--length", "48", "--width", "32", "--depth", "1",
          "--iterations", "150", "--lr", "0.01", "--out", "r")
    words = ["generate", "--weights", "r/weights.safetensors", "--tokens", "24"]
    plain = json.loads(run(*words, "--prompt", "abcdefgh ab", "--json").stdout)["texts"][0]["text"]
    assert plain == "cdefgh abcdefgh abcdefgh", plain
    Path("prompts").write_text("abcdefgh ab\nefgh abc\n")
    for stop in ("h", "gh ab", "h a", "b", " ", "ghx", "gh abcdefgh abcdefgh", "c", "zz"):
        cut = plain.split(stop)[0]
        words_now = [*words, "--prompt", "abcdefgh ab", "--stop", stop]
        assert run(*words_now).stdout == f"abcdefgh ab{cut}\n", stop
        found = json.loads(run(*words_now, "--json").stdout)["texts"][0]
        assert found["text"] == cut, (stop, found)
        # The tokens end with the one that completes TEXT, as in transformers.
        number = len(cut) + len(stop) if stop in plain else len(plain)
        assert bytes(found["tokens"]) == plain[:number].encode(), (stop, found)
        both = json.loads(run(*words, "--prompts", "prompts", "--stop", stop, "--json").stdout)
        other = "defgh abcdefgh abcdefgh "
        assert [t["text"] for t in both["texts"]] == [cut, other.split(stop)[0]], (stop, both)


def test_repetition_penalty():
    """generate --repetition-penalty takes the tokens of a plain implementation."""
    tokenizer = byte_tokenizer(["</s>"])
    byte_model(tokenizer, "abcdefgh abdc " * 100)
    words = ["generate", "./m", "--prompt", "abab", "--tokens", "6", "--json"]

    def tokens(*more):
        return json.loads(run(*words, *more).stdout)["texts"][0]["tokens"]
    plain = tokens()
    assert tokens("--repetition-penalty", "1") == plain
    # So large that every token is new, as long as a new one has a positive logit.
    far = tokens("--repetition-penalty", "1e6")
    assert len(set(far)) == len(far) and not set(far) & set(b"ab"), far
    assert tokens("--repetition-penalty", "1e6") == far
    for wrong in ("0", "-1", "nan"):
        run(*words, "--repetition-penalty", wrong, code=2)


def test_long_prompt():
    """A prompt that fills the model ends alone; more prompts than are continued together."""
    Path("abc.txt").write_text("abcdefgh " * 400)
    train("gpt", "--data", "abc.txt", "--length", "24", "--width", "32", "--depth", "1",
          "--iterations", "150", "--lr", "0.01", "--out", "r")
    words = ["generate", "--weights", "r/weights.safetensors", "--tokens", "12", "--json"]
    texts = [f"{'abcdefgh ' * 3}"[k:k + n] for k, n in ((0, 23), (2, 9), (1, 24), (5, 4))]
    Path("prompts").write_text("\n".join(texts + ["cde"] * 90) + "\n")
    found = [t["text"] for t in json.loads(run(*words, "--prompts", "prompts").stdout)["texts"]]
    alone = [json.loads(run(*words, "--prompt", t).stdout)["texts"][0]["text"] for t in texts]
    assert found[:4] == alone and [len(t) for t in alone] == [2, 12, 1, 12], (found, alone)
    assert len(found) == 94 and set(found[4:]) == {"fgh abcdefgh"[:12]}, found


def test_lora_best():
    """--lora: the best adapters, not the last ones, become best.safetensors; also in f64."""
    Path("abc.txt").write_text("abcdefgh " * 300 + "zyxwvu " * 300)
    gpt = ["gpt", "--data", "abc.txt", "--length", "24", "--width", "32", "--depth", "1",
           "--val-share", "0.2"]
    train(*gpt, "--iterations", "40", "--lr", "0.01", "--out", "base")
    for name, more in (("r", []), ("d", ["--precision", "f64"])):
        train(*gpt, "--weights", "base/weights.safetensors", "--lora", "4", "--iterations", "24",
              "--eval-iterations", "8", "--log-iterations", "8", "--lr", "0.3", *more,
              "--metric", "loss", "--out", name)
        rows = [json.loads(row)["val/loss"] for row in
                Path(f"{name}/log.jsonl").read_text().splitlines()]
        best, last = (json.loads(run("eval", "--weights", f"{name}/{w}.safetensors", "--data",
                                     "abc.txt", "--length", "24", *more, "--json").stdout)["loss"]
                      for w in ("best", "weights"))
        if rows[-1] > min(rows):
            assert best < last, (rows, best, last)
        else:
            assert same(f"{name}/best.safetensors", f"{name}/weights.safetensors"), rows
        assert b"lora_A" not in Path(f"{name}/best.safetensors").read_bytes()
    os.remove("r/weights.safetensors")
    run("train", "--resume", "--out", "r", "--iterations", "100000", "--epochs", "0", "--hours",
        "0.0002", code=85)
    assert Path("r/weights.safetensors").exists() and Path("r/unfinished").exists()


def test_force():
    """--force leaves nothing of the earlier training that could be exported or resumed."""
    make_arrays()
    train("mlp", *ARRAYS, "--val-share", "0.25", "--epochs", "2", "--out", "r")
    assert Path("r/best.safetensors").exists()
    own = run("train", "mlp", *ARRAYS, "--weights", "r/best.safetensors", "--force", "--out", "r",
              code=2).stderr
    assert "--force would remove r/best.safetensors" in own, own
    Path("r/notes.txt").write_text("mine")
    [state, *_] = sorted(Path("r/state").iterdir())
    for obstacle in (state / "mine.txt", Path("r/state/000000999/x"), Path("r/plan.txt")):
        if obstacle.name == "plan.txt":
            os.rename(obstacle, "plan")
            obstacle.mkdir()
        else:
            obstacle.parent.mkdir(exist_ok=True)
            obstacle.write_text("mine")
        run("train", "mlp", *ARRAYS, "--epochs", "1", "--out", "r", "--force", code=None)
        assert Path("r/best.safetensors").exists() and obstacle.exists(), obstacle
        assert (state / "state.safetensors").exists(), obstacle
        if obstacle.name == "plan.txt":
            obstacle.rmdir()
        else:
            obstacle.unlink()
        if obstacle.name == "x":
            obstacle.parent.rmdir()
    Path("r/average.safetensors").write_bytes(b"old")
    train("mlp", *ARRAYS, "--epochs", "1", "--out", "r", "--force")
    assert not Path("r/best.safetensors").exists() and Path("r/notes.txt").exists()
    assert not Path("r/average.safetensors").exists()
    assert Path("r/weights.safetensors").exists()
    same_name = run("predict", "./r", "--data", "x.npy", "--out", "x.npy", code=None).stderr
    assert "the same file" in same_name and len(np.load("x.npy")) == 256


def test_f64():
    """--precision f64: weights and results in f64, closer to each other than f32 can be."""
    make_arrays()
    found = {}
    for precision in ("f32", "f64"):
        train("mlp", *ARRAYS, "--epochs", "3", "--precision", precision, "--out", precision)
        name = f"{precision}/weights.safetensors"
        found[precision] = json.loads(run("eval", "--weights", name, "--precision", precision,
                                          "--data", "x.npy", "--target", "y.npy",
                                          "--json").stdout)["rmse"]
        head = Path(name).read_bytes()[8:4000].split(b'"0.weight":{"dtype":"')[1][:3]
        assert head == precision.replace("f", "F").encode(), head
    assert found["f32"] != found["f64"]
    assert np.isclose(found["f32"], found["f64"], rtol=1e-2), found


def test_other_weights():
    """Weights for other data, and those inside a checkpoint: what is wrong, and what works."""
    x, _ = make_arrays()
    train("mlp", *ARRAYS, "--epochs", "1", "--out", "r")
    np.save("few.npy", x[:, :4])
    text = run("predict", "--weights", "r/weights.safetensors", "--data", "few.npy", "--out",
               "p.npy", code=None)
    assert text.returncode == 4, text
    assert "trained on samples with 6 inputs or channels, those of few.npy have 4" in text.stderr
    own = [("state_dict.module.0.weight", 16, 6), ("state_dict.module.0.bias", 16),
           ("state_dict.module.2.weight", 2, 16), ("state_dict.module.2.bias", 2), ("best_acc1",)]
    flat = [(name.replace("state_dict.module.", ""), *shape) for name, *shape in own]
    for arrays, only in ((own, "'state_dict.module.*' --rename 'state_dict.module='"),
                         (flat, "'0.*,2.*'")):
        head, at, shape = {}, 0, ()
        for name, *shape in arrays:
            size = 4 * int(np.prod(shape))
            head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(head).encode()
        Path("w.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(at))
        text = run("eval", "mlp", "--weights", "w.safetensors", "--standardize", "none", *ARRAYS,
                   code=None).stderr
        command = f"catena weights w.safetensors --to NEW.safetensors --only {only}"
        assert command in text, (only, text)
        subprocess.run(f"{CATENA} {command[7:]}", shell=True, check=True, env=ENV,
                       stdout=subprocess.DEVNULL)
        run("eval", "mlp", "--weights", "NEW.safetensors", "--standardize", "none", *ARRAYS)
        os.remove("NEW.safetensors")
        os.rename("w.safetensors", "two words.safetensors")
        text = run("eval", "mlp", "--weights", "two words.safetensors", "--standardize", "none",
                   *ARRAYS, code=None).stderr
        assert "catena weights" not in text and "a file of these alone" in text, text


def test_published():
    """A folder of Hugging Face is a network: evaluated, trained, adapted, and refused clearly."""
    folder = SOURCE / "tests/golden/published/llama"
    Path("tokens.bin").write_bytes(bytes(k * k % 37 for k in range(4000)))
    data = ["--data", "tokens.bin", "--token-bytes", "1", "--classes", "40", "--length", "8"]
    steps = ["--iterations", "60", "--batch", "8", "--lr", "0.01"]
    before = json.loads(run("eval", folder, *data, "--json").stdout)
    assert abs(np.exp(before["loss"]) - before["perplexity"]) < 1e-3 * before["perplexity"]
    train(folder, *data, *steps, "--out", "whole")
    train(folder, *data, *steps, "--out", "adapted", "--lora", "4")
    for out in ("whole", "adapted"):
        after = json.loads(run("eval", folder, "--weights", f"{out}/weights.safetensors", *data,
                               "--json").stdout)
        assert after["loss"] < 0.8 * before["loss"], (before, after)
    names = Path("adapted/adapters.safetensors").read_bytes()[8:]
    assert names.count(b"lora_A.weight") == names.count(b"lora_B.weight") == 14
    assert b"q_proj.weight" not in names and not Path("adapted/best.safetensors").exists()
    assert b"lora_A" not in Path("adapted/weights.safetensors").read_bytes()
    # As folders of a published model and of adapters, they are what they were.
    losses = {}
    for out in ("whole", "adapted"):
        run("export", f"./{out}", "--to", f"{out}-model/")
        losses[out] = json.loads(run("eval", f"./{out}-model", *data, "--json").stdout)["loss"]
        assert losses[out] == json.loads(run("eval", folder, "--weights", f"{out}/weights."
                                             "safetensors", *data, "--json").stdout)["loss"]
    added = json.loads(run("eval", folder, "--adapters", "adapted/adapters", *data,
                           "--json").stdout)["loss"]
    assert abs(added - losses["adapted"]) < 1e-5, (added, losses)
    kept = ["--val-share", "0.2", "--lora", "4"]
    train(folder, *data, *steps, *kept, "--out", "best")
    best = json.loads(run("eval", folder, "--weights", "best/best.safetensors", *data,
                          "--json").stdout)["loss"]
    added = json.loads(run("eval", folder, "--adapters", "best/adapters", *data,
                           "--json").stdout)["loss"]
    assert abs(added - best) < 1e-5, (added, best)
    assert "itself" in run("export", f"{folder}/", "--to", f"{folder}/", code=2).stderr
    make_arrays()
    train("mlp", *ARRAYS, "--epochs", "1", "--out", "arrays")
    assert "ONNX" in run("export", "./arrays", "--to", "arrays-model/", code=2).stderr
    fresh = train(folder / "config.json", *data, "--iterations", "1", "--out", "fresh")
    assert abs(fresh["train/loss"] - np.log(40)) < 0.2, fresh
    assert "--lora" in run("train", folder, *data, "--lora", "4", "--ema", "0.9", "--out", "no",
                           code=2).stderr
    other = SOURCE / "tests/golden/published/bert_classes"
    done = run("train", other, *data, "--out", "no", code=3)
    assert "language model" in done.stderr, done.stderr


WORDS = "to be or not , that is the question .".split()
BERT = ["--data", "a.txt", "--length", "16", "--tokenizer", "vocab.txt"]
TINY = ["--width", "32", "--depth", "1", "--heads", "2", "--batch", "8", "--lr", "0.003"]


def make_hamlet():
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    Path("vocab.txt").write_text("\n".join(special + WORDS) + "\n")
    Path("a.txt").write_text("To be, or not to be, that is the question. " * 100)


def test_bert():
    """A BERT learns to fill in words; text and its token file are the same data."""
    make_hamlet()
    words = ["--width", "64", "--depth", "1", "--heads", "2", "--lr", "0.002", "--schedule",
             "one-cycle", "--iterations", "400", "--val-share", "0.2", "--eval-iterations", "200"]
    done = train("bert", *BERT, *words, "--out", "r")
    assert done["val/loss"] < 0.4 * np.log(len(WORDS)) and done["val/accuracy"] > 0.8, done
    first = json.loads(Path("r/log.jsonl").read_text().splitlines()[0])
    assert done["train/loss"] < 0.5 * first["train/loss"], (done, first)
    evaluate = ["eval", "--weights", "r/weights.safetensors", "--data"]
    found = json.loads(run(*evaluate, "a.txt", "--json").stdout)
    assert found["loss"] < 1 and found["accuracy"] > 0.8, found
    assert abs(np.exp(found["loss"]) - found["perplexity"]) < 1e-3, found
    run("pack", "a.txt", "a.bin", "--tokenizer", "vocab.txt")
    assert json.loads(run(*evaluate, "a.bin", "--json").stdout) == found
    assert "perplexity" in run(*evaluate, "a.txt").stdout
    more = json.loads(run(*evaluate, "a.txt", "--mask-share", "0.9", "--json").stdout)
    assert more["loss"] > 2 * found["loss"], (more, found)


def test_bert_resumed():
    """A resumed training hides the same words as one that was not interrupted."""
    make_hamlet()
    # The part that ends at step 15 is evaluated there, so the whole training must be too:
    # best.safetensors belongs to the first of the evaluations with the best value.
    words = ["bert", *BERT, *TINY, "--val-share", "0.2", "--eval-iterations", "5"]
    train(*words, "--iterations", "40", "--out", "whole")
    train(*words, "--iterations", "15", "--out", "parts")  # within the second epoch
    train(*words, "--iterations", "40", "--out", "parts", "--resume", "--loader-threads", "3")
    assert same("whole/weights.safetensors", "parts/weights.safetensors")
    assert same("whole/best.safetensors", "parts/best.safetensors")


def test_bert_published():
    """A folder with a BERT is trained, adapted and evaluated with its own tokenizer."""
    make_hamlet()
    shutil.copytree(SOURCE / "tests/golden/published/bert", "bert")
    shutil.copy("vocab.txt", "bert")
    data = ["--data", "a.txt", "--length", "8"]
    steps = ["--iterations", "100", "--lr", "0.01", "--out", "r", "--force"]
    before = json.loads(run("eval", "./bert", *data, "--json").stdout)
    for share, more in ((0.7, []), (0.9, ["--lora", "4"])):
        train("./bert", *data, *steps, *more)
        after = json.loads(run("eval", "./bert", "--weights", "r/weights.safetensors", *data,
                               "--json").stdout)
        assert after["loss"] < share * before["loss"], (more, before, after)
    assert Path("r/adapters.safetensors").exists()
    fresh = train("./bert/config.json", *data, "--iterations", "1", "--out", "fresh")
    assert abs(fresh["train/loss"] - np.log(40)) < 0.3, fresh


def test_bert_refused():
    make_hamlet()
    words = ["train", "bert", *TINY, "--iterations", "2", "--out", "no"]
    assert "bert has no tokenizer" in run(*words, "--data", "a.txt", code=2).stderr
    folder = SOURCE / "tests/golden/published/bert"
    done = run("train", folder, "--data", "a.txt", "--out", "no", code=2)
    assert "--tokenizer" in done.stderr, done.stderr
    for bad, what in ((["--length", "2"], "at least 3"), (["--classes", "9"], "15 tokens"),
                      (["--mask-share", "2"], "is 2"), (["--mask-share", "0"], "is 0")):
        assert what in run(*words, *BERT, *bad, code=2).stderr, bad
    done = run(*words, *BERT, "--length", "5000", code=4)
    assert "smaller --length" in done.stderr, done.stderr
    Path("small.txt").write_text("[UNK]\n[CLS]\n[SEP]\nto\nbe\n")
    done = run(*words, "--data", "a.txt", "--tokenizer", "small.txt", code=4)
    assert "no token '[MASK]'" in done.stderr, done.stderr
    train(*words[1:], *BERT)
    done = run("generate", "--weights", "no/weights.safetensors", "--prompt", "to", code=3)
    assert "cannot continue a text" in done.stderr, done.stderr
    done = run("predict", "--weights", "no/weights.safetensors", "--data", "a.txt", code=None)
    assert done.returncode != 0 and "catena eval" in done.stderr, done.stderr
    done = run("train", "gpt", "--data", "a.txt", "--length", "16", "--width", "16", "--depth", "1",
               "--iterations", "1", "--mask-share", "0.2", "--out", "gpt")
    assert "--mask-share has no effect" in done.stderr, done.stderr


def test_encoded_text():
    """Any language model trains on text that a tokenizer encodes."""
    make_hamlet()
    done = train("gpt", *BERT, *TINY, "--iterations", "60", "--out", "r")
    assert done["train/loss"] < 1.5, done
    assert resolved("r")["classes"] == "15", resolved("r")


def test_timeline():
    make_arrays()
    train("mlp", *ARRAYS, "--epochs", 3, "--out", "r", "--timeline", "t.json",
          "--timeline-steps", 12)
    trace = json.loads(Path("t.json").read_text())
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert [e["args"]["step"] for e in spans if e["cat"] == "step"] == list(range(12))
    assert sum(e["name"] == "adam" for e in spans) == 12
    assert any(e["cat"] == "input" for e in spans)
    threads = {e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert threads == {"steps", "kernels", "input"}

    split = json.loads(run("timeline", "t.json", "--json").stdout)
    parts = [split[k + "_ms"] for k in ("compute", "exposed", "progress", "input", "other")]
    assert split["ranks"] == 1 and split["steps"] == 12 and split["hidden_share"] is None
    assert abs(sum(parts) - split["step_ms"]) < 1e-6 * split["step_ms"] + 1e-9, split
    assert 0 < split["optimizer_ms"] < split["compute_ms"]
    assert split["by_rank"][0]["step_ms"] == split["step_ms"]
    text = run("timeline", "t.json").stdout
    assert "1 rank, 12 steps" in text and "rank 0 (" in text

    # A handmade timeline of two ranks: the first waits 3 ms for the second; gradients are in flight
    # during 2 of its 6 ms of kernels.
    def span(pid, cat, ts, dur):
        return {"name": "x", "cat": cat, "ph": "X", "ts": ts * 1e3, "dur": dur * 1e3, "pid": pid,
                "tid": 0, "args": {"step": 0}}
    events = [span(0, "step", 0, 10), span(0, "compute", 0, 5), span(0, "compute", 4, 2),
              span(0, "exchange", 4, 1.5), span(0, "exchange", 5, 4), span(0, "wait", 6, 3),
              span(0, "input", 9, 0.5), span(1, "step", 0, 10), span(1, "compute", 0, 9),
              span(1, "optimizer", 9, 1), span(1, "exchange", 8, 1)]
    other = {"catena_timeline": 1, "clock_within_ns": [0, 5000], "more": [None, {}]}
    hand = {"traceEvents": events, "otherData": other}
    Path("hand.json").write_text(json.dumps(hand, indent=1))
    split = json.loads(run("timeline", "hand.json", "--json").stdout)
    first, second = split["by_rank"]
    keys = ("step", "compute", "exposed", "input", "other", "hidden", "ahead")
    assert np.allclose([first[k + "_ms"] for k in keys], [10, 6, 3, 0.5, 0.5, 2, 3]), first
    keys = ("compute", "exposed", "optimizer", "hidden", "ahead")
    assert np.allclose([second[k + "_ms"] for k in keys], [10, 0, 1, 1, 0])
    assert np.isclose(split["imbalance_ms"], 3) and split["slowest_rank"] == 1
    assert np.isclose(split["hidden_share"], 0.5)
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
        refused("cut.json", whole[:n], "cut.json is not valid JSON at byte")
    refused("deep.json", "[" * 100000, "not valid JSON")
    refused("deep.json", '{"a":' + "[" * 100000, "not valid JSON")
    refused("other.json", '{"traceEvents":[]}', "not a timeline")
    refused("empty.json", '{"traceEvents":[],"otherData":{"catena_timeline":1}}',
            "no complete optimizer step")
    run("timeline", "missing.json", code=4)
    run("timeline", code=2)
    error = run("train", "mlp", *ARRAYS, "--out", "q", "--epochs", 1,
                "--timeline", "no/folder/t.json", code=3).stderr
    assert "no/folder/t.json" in error and "1 iterations" not in error
    assert not Path("q/weights.safetensors").exists()


def test_folder_is_refused():
    make_arrays()
    words = ["mlp", *ARRAYS, "--epochs", "1", "--out", "r"]
    train(*words)
    before = Path("r/weights.safetensors").read_bytes()
    assert "not empty" in run("train", *words, code=2).stderr
    assert Path("r/weights.safetensors").read_bytes() == before
    train(*words, "--force", "--seed", "2")
    assert Path("r/weights.safetensors").read_bytes() != before
    done = run("train", "mlp", *ARRAYS, "--out", "x.npy/r", code=3)
    assert "cannot create the folder x.npy/r: Not a directory" in done.stderr, done.stderr
    done = run("train", "--resume", "--out", "other", code=2)
    assert "other has no config.yaml to resume with" in done.stderr, done.stderr


# ---- only one job at a time in a folder


LIMIT = 300  # seconds; a program that takes longer hangs, even on a busy machine
STARTED = []  # main() kills these in any case


def start(*words, env=None):
    STARTED.append(subprocess.Popen([CATENA, "train", *words, "--quiet"],
                                    env={**ENV, **(env or {})}, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    return STARTED[-1]


def output(job):
    return job.communicate(timeout=LIMIT)[1]


def wait_for(condition, what):
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, f"waited {LIMIT} s for {what}"
        time.sleep(0.05)


def wait_for_rows(job):
    """Wait until a job has the folder and has logged some epochs. At its start it truncates the log
    to its state."""
    wait_for(lambda: f"pid {job.pid}\n" in Path("r/job.txt").read_text(), "the folder")
    log = Path("r/log.jsonl")
    rows = log.stat().st_size
    wait_for(lambda: log.stat().st_size > rows + 1000 or job.poll() is not None, "some epochs")


FOREVER = ["mlp", *ARRAYS, "--epochs", "0", "--hours", "0.1", "--out", "r", "--resume"]


def test_folder_of_another_job():
    make_arrays()
    job = start(*FOREVER, env={"SLURM_JOB_ID": "4711"})
    wait_for(lambda: Path("r/plan.txt").exists(), "the first job")
    for words in ([], ["--force"]):
        error = run("train", "mlp", *ARRAYS, "--out", "r", *(words or ["--resume"]), code=3).stderr
        assert f"process {job.pid}, Slurm job 4711, since 20" in error and "--out" in error, error
        assert error.count("\n") == 1, error
    assert "not empty" in run("train", "mlp", *ARRAYS, "--out", "r", code=2).stderr
    # A killed job leaves no lock, so the next job does not wait.
    job.kill()
    output(job)
    job = start(*FOREVER)
    wait_for_rows(job)
    job.terminate()
    text = output(job)
    assert job.returncode == 85 and "waiting" not in text, text
    assert Path("r/job.txt").read_text().startswith("ended\n")
    # The refused jobs destroyed nothing.
    values = train("--resume", "--hours", "0", "--iterations", "1000000", "--epochs", "1",
                   "--out", "r")
    assert values["epochs"] >= 1


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
        assert job.returncode == 85 or "another job is running in r" in text, (job.returncode, text)


FOREIGN = ("running\nhost far\npid 12\njob PBS job 5.far\nsince 2026-01-02T03:04:05Z\n"
           "boot elsewhere\nbeat %03d\n")


def test_folder_of_another_host():
    """Locks may not be visible to other hosts: a job that keeps rewriting its file is alive."""
    make_arrays()
    os.mkdir("r")
    Path("r/job.txt").write_text(FOREIGN % 0)
    job = start(*FOREVER)
    assert "belongs to a job" in job.stderr.readline()
    job.terminate()
    text = output(job)
    assert job.returncode == 3 and "stopped by a signal while waiting for r" in text, text
    job = start(*FOREVER)
    beats = itertools.cycle(range(1, 1000))

    def refused():
        with open("r/job.txt", "r+") as f:  # in place, like a job
            f.write(FOREIGN % next(beats))
        return job.poll() is not None

    wait_for(refused, "the refusal")
    text = output(job)
    assert job.returncode == 3, text
    assert "(on far, process 12, PBS job 5.far, since 2026-01-02T03:04:05Z)" in text, text
    assert Path("r/job.txt").read_text().startswith("running\nhost far\n")


def test_folder_that_is_lost():
    """Another job took the folder between two beats: this job ends and changes nothing."""
    make_arrays()
    job = start(*FOREVER)
    wait_for(lambda: Path("r/plan.txt").exists(), "the job")
    Path("other").write_text(FOREIGN % 1)
    os.replace("other", "r/job.txt")
    text = output(job)
    assert job.returncode == 3, (job.returncode, text)
    assert "another job has taken over r (on far, process 12" in text, text
    assert Path("r/job.txt").read_text() == FOREIGN % 1


def signalling():
    """Builds a network that sends its own process a signal in a chosen forward pass, so that this
    moment does not depend on how busy the machine is. SIGNAL="15 12": number 15 in the 12th."""
    text = (SOURCE / "examples/own_model/mymodel.c").read_text()
    begin = "    mymodel *net = self;\n"
    text = text.replace(begin, begin + """    static int calls;
    int number, at;
    const char *wanted = getenv("SIGNAL");
    if (wanted && sscanf(wanted, "%d %d", &number, &at) == 2 && ++calls == at) raise(number);
""", 1)
    Path("signalling.c").write_text("#include <signal.h>\n#include <stdio.h>\n" + text)
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{SOURCE}/include", f"-L{LIBRARY}", "-lcatena",
                    "signalling.c", "-o", "signalling.so"], check=True)
    return ["./signalling.so", "--data", "x.npy", "--target", "y.npy", "--batch", "32",
            "--val-share", "0.2", "--schedule", "cosine", "--optimizer", "adam"]


def test_resume():
    """A training that is stopped by signals in mid-epoch and resumed ends with the same bits."""
    make_arrays()
    words = [*signalling(), "--epochs", "6"]
    train(*words, "--out", "whole")
    # Each epoch has 7 steps, and then 2 forward passes of the evaluation.
    for number, at, steps in ((signal.SIGTERM, 12, 10), (signal.SIGUSR1, 3, 13),
                              (signal.SIGTERM, 6, 17)):
        done = run("train", *words, "--out", "parts", "--resume", "--quiet", "--json", code=85,
                   env={"SIGNAL": f"{number} {at}"})
        found = json.loads(done.stdout)
        assert found["stopped"] == number.name and found["iterations"] == steps, found
        assert "Z rank 0 " in done.stderr and "--resume" in done.stderr, done.stderr
    train(words[0], "--out", "parts", "--resume")
    assert same("whole/weights.safetensors", "parts/weights.safetensors")
    assert same("whole/best.safetensors", "parts/best.safetensors")
    done = run("train", words[0], "--out", "parts", "--resume", "--lr", "0.5", code=2)
    assert "--lr is 0.5, but parts was started with" in done.stderr, done.stderr
    # Resuming a complete training does nothing.
    assert train(words[0], "--out", "parts", "--resume")["epochs"] == 6
    assert same("whole/weights.safetensors", "parts/weights.safetensors")
    drop = ("seconds", "_s", "per_s")
    rows = [[{k: v for k, v in json.loads(line).items() if not k.endswith(drop)}
             for line in Path(out, "log.jsonl").read_text().splitlines()]
            for out in ("whole", "parts")]
    assert rows[0] == rows[1]
    # A refused resume changes nothing, so the training can still be resumed.
    before = Path("parts/config.yaml").read_text()
    done = run("train", words[0], "--out", "parts", "--resume", "--model-args", "32", code=4)
    assert Path("parts/config.yaml").read_text() == before, done.stderr
    train(words[0], "--out", "parts", "--resume", "--epochs", "7")


def test_shorter_than_an_epoch():
    """The last step is logged, evaluated and reported, like the end of an epoch."""
    make_arrays()
    values = train("mlp", *ARRAYS, "--epochs", "0", "--iterations", "3", "--val-share", "0.2",
                   "--out", "short")
    assert values["iterations"] == 3 and values["val/loss"] > 0, values
    lines = [json.loads(line) for line in Path("short/log.jsonl").read_text().splitlines()]
    assert len(lines) == 1 and lines[0]["train/loss"] > 0 and lines[0]["val/loss"] > 0, lines
    assert Path("short/best.safetensors").exists()


def test_unfinished():
    """The mark for job scripts: this run has saved a state and is not complete."""
    make_arrays()
    mark = Path("r/unfinished")
    job = start(*FOREVER)
    wait_for(mark.exists, "the first state")
    assert list(Path("r/state").glob("0*"))
    job.kill()
    output(job)
    assert mark.exists()
    # A run that is killed before it saves anything must not be restarted.
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
    # No mark remains after a complete run, or after an error that would occur again.
    train("--resume", "--hours", "0", "--iterations", "1", "--out", "r")
    assert not mark.exists()
    run("train", "mlp", *ARRAYS, "--optimizer", "sgd", "--lr", "1e30", "--save-minutes", "0.00001",
        "--out", "s", "--quiet", code=6)
    assert not Path("s/unfinished").exists()


def test_kill():
    """After SIGKILL, resuming ends with the same bits."""
    make_arrays()
    words = [*signalling(), "--epochs", "80", "--save-iterations", "20"]
    train(*words, "--out", "whole")
    resumed = 0
    while resumed < 2:  # a training may be killed before its first state is complete
        done = run("train", *words, "--out", "parts", "--resume", "--quiet", code=-signal.SIGKILL,
                   env={"SIGNAL": f"{signal.SIGKILL} 200"})
        resumed += "resuming at iteration" in done.stderr
    train(*words, "--out", "parts", "--resume")
    assert same("whole/weights.safetensors", "parts/weights.safetensors")


def checkpoint(*words, **more):
    return json.loads(run("checkpoint", *words, "--json", **more).stdout)


def test_checkpoint():
    """A result folder, its folder state and one state are all understood."""
    make_arrays()
    for seed in "12":
        train("mlp", *ARRAYS, "--epochs", "3", "--seed", seed, "--save-iterations", "8", "--out",
              "r" + seed)
    found = checkpoint("ls", "r1/", "r2/state")["folders"]
    assert [f["folder"] for f in found] == ["r1/state", "r2/state"], found
    assert [s["epoch"] for s in found[0]["states"]] == [2, 3], found
    last = found[0]["states"][1]
    assert (last["iteration"], last["samples"], last["ranks"]) == (24, 768, 1), last
    arrays = checkpoint("ls", last["path"])["folders"][0]["arrays"]
    assert len(arrays) == last["arrays"], (arrays, last)
    weight = next(a for a in arrays if a["name"] == "net.0.weight")
    assert weight["type"] == "f32" and weight["shape"] == [16, 6], weight
    text = run("checkpoint", "ls", "r1").stdout
    assert "iteration" in text and re.search(r"^ +2 +24 +3 +768 ", text, re.M), text

    assert checkpoint("diff", "r1", last["path"])["identical"] is True
    other = checkpoint("diff", "r1", "r2", code=4)
    names = {d["name"]: d["what"] for d in other["differences"]}
    assert names["net.0.weight"] == "differs" and other["identical"] is False, other
    train("mlp", *ARRAYS, "--hidden", "8,8", "--epochs", "1", "--out", "r3")
    text = run("checkpoint", "diff", "r1", "r3", code=4).stdout
    for line in ("net.0.weight has another shape", "net.4.weight is only in the second"):
        assert line in text, text

    run("checkpoint", "export", "r1", "--out", "r1/exported.safetensors")
    words = ["eval", "mlp", "--data", "x.npy", "--target", "y.npy", "--json", "--weights"]
    assert run(*words, "r1/exported.safetensors").stdout == \
        run(*words, "r1/weights.safetensors").stdout

    assert all(s["intact"] for s in checkpoint("verify", "r1", "r2")["states"])
    with open(last["path"] + "/state.safetensors", "r+b") as f:
        f.seek(-1, os.SEEK_END)
        byte = f.read(1)[0]
        f.seek(-1, os.SEEK_END)
        f.write(bytes([byte ^ 1]))
    found = checkpoint("verify", "r1", code=4)["states"]
    assert [s["intact"] for s in found] == [True, False], found
    assert "state.safetensors" in found[1]["damage"][0], found
    assert checkpoint("prune", "r1", "--keep", "1")["folders"][0]["kept"] == 2
    assert checkpoint("prune", "r2", "--keep", "1")["folders"][0]["removed"] == 1
    assert "result folder of a training" in run("checkpoint", "ls", "none", code=4).stderr
    assert "no saved state" in run("checkpoint", "verify", ".", code=4).stderr


def weights(*words, **more):
    return json.loads(run("weights", *words, "--json", **more).stdout)


def test_weights():
    """Files of safetensors and of PyTorch: list, compare, convert, merge, hold against networks."""
    saved = SOURCE / "tests" / "fuzz" / "corpus" / "pytorch"
    found = weights(saved / "training.pt")
    assert found["format"] == "pytorch" and (found["values"], found["bytes"]) == (8, 32), found
    assert found["arrays"][0] == {"name": "fc.weight", "type": "f32", "shape": [2, 3],
                                  "bytes": 24}, found
    text = run("weights", saved / "types.pt").stdout
    assert "bf16 (2,3)" in text and "8 arrays, 48 values, 180 bytes (pytorch)" in text, text

    assert weights(saved / "training.pt", "--to", "a.safetensors")["arrays"] == 2
    assert weights(saved / "training.pt", "a.safetensors")["identical"] is True
    run("weights", saved / "types.pt", "--to", "half.safetensors", "--cast", "bf16", "--only",
        "f*,i64", "--rename", "f32=x.y,=z")
    names = {a["name"]: a["type"] for a in weights("half.safetensors")["arrays"]}
    assert names == {"x.y": "bf16", "z.f64": "bf16", "z.f16": "bf16", "z.i64": "i64"}, names
    run("weights", "a.safetensors", "half.safetensors", "--to", "both.safetensors")
    assert len(weights("both.safetensors")["arrays"]) == 6
    failed = run("weights", "both.safetensors", "a.safetensors", "--to", "b.safetensors", code=4)
    assert "'fc.weight' is in both.safetensors and in a.safetensors" in failed.stderr, failed.stderr
    assert not Path("b.safetensors").exists()

    other = weights(saved / "protocol4.pt", saved / "training.pt", code=4)["differences"]
    assert [(d["name"], d["absolute"], round(d["relative"], 2)) for d in other] == \
        [("fc.weight", 4, 1), ("fc.bias", 4, 1.33)], other
    text = run("weights", "a.safetensors", "half.safetensors", code=4).stdout
    assert "fc.bias is only in the first" in text and "x.y is only in the second" in text, text

    make_arrays()
    train("mlp", *ARRAYS, "--epochs", "1", "--out", "r")
    found = weights("r/weights.safetensors", "--model", "mlp", code=4)
    problems = "\n".join(p["problem"] for p in found["problems"])
    assert "0.weight is (1000,784) in the model and (16,6) in the file" in problems, problems
    assert "not in the model: input_mean (6)" in problems, problems
    for file, line in (("legacy.pt", "torch.save(torch.load("), ("script.pt", "torch.jit.load("),
                       ("module.pt", "state_dict()"), ("int8.pt", "CharStorage")):
        assert line in run("weights", saved / file, code=4).stderr
    assert "more than two files" in run("weights", "a", "b", "c", code=2).stderr
    assert "need --to" in run("weights", "a", "--cast", "f16", code=2).stderr
    assert "OLD=NEW" in run("weights", "a.safetensors", "--to", "b", "--rename", "x", code=2).stderr
    assert "did you mean resnet50?" in run("weights", "a", "--model", "resnet5", code=2).stderr
    assert "expected FILE" in run("weights", code=2).stderr


def test_verify_resume():
    words = ["verify-resume", "mlp", "--seconds", "0.4", "--json", "--rounds"]
    done = json.loads(run(*words, "3", "--out", "kept").stdout)
    assert done["rounds"] == 3 and done["identical"] is True, done
    assert done["trainings"] > 0 and done["differences"] == [], done
    assert run("checkpoint", "verify", "kept/whole").returncode == 0
    make_arrays()
    text = run("verify-resume", "mlp", "--rounds", "1", "--", *ARRAYS, "--epochs", "2").stdout
    assert "16 steps" in text and "kills: 1," in text and "identical: all " in text, text
    done = run(*words, "1", "--", "--epcohs", "2", code=2)
    assert "did you mean --epochs?" in done.stderr, done.stderr
    done = run(*words, "1", "--out", "kept", code=2)
    assert "kept is not empty" in done.stderr, done.stderr


# ---- simulation

STEP = """name tiny
batch 10
memory 40000000 16000000
elements 2000000
update 0.001
param 0
param 1000000
need 2000000
kernel 0.003
ready 1000000 2000000
kernel 0.003
ready 0 1000000
step
"""


def plan(*words, **more):
    return json.loads(run("plan", "./tiny.step", "--json", *words, **more).stdout)


def test_plan():
    """A job from a recorded step, without a simulator."""
    Path("tiny.step").write_text(STEP)
    one = plan("--ranks", "1")
    assert one["step_s"] == one["compute_s"] == 0.007 and one["efficiency"] == 1, one
    assert one["memory"]["total"] == 8e6 + 8e6 + 16e6 + 40e6 + 24e6, one  # and a copy to save
    assert one["memory"]["checkpoint"] == one["checkpoint_bytes"] == 24e6, one
    for platform in "fat-tree", "torus", "dragonfly", "ethernet":
        few, many = (plan("--platform", platform, "--ranks", n) for n in ("4", "1024"))
        assert 0.007 <= few["step_s"] <= many["step_s"] < 1, (few, many)
        assert many["algorithm"] != "none" and many["tuning_s"] > 0 and many["start_s"] > 0, many
        assert few["lost"] < many["lost"] < 1, (few, many)
        wide = plan("--platform", platform, "--ranks", "4", "--wire", "f32")
        assert wide["step_s"] > 0.998 * few["step_s"] and wide["bytes_sent"] >= 12e6, wide
        for name, factor in ("ring", 2 * 15 / 16), ("rabenseifner", 2 * 15 / 16), ("doubling", 4):
            way = plan("--platform", platform, "--ranks", "16", "--wire", "f32",
                       "--algorithm", name)
            assert way["bytes_sent"] == 8e6 * factor and way["algorithm"] == name, way
    # The sums hide behind the kernels: of all that are as fast, the one with the fewest bytes.
    assert plan("--ranks", "16", "--wire", "f32")["bytes_sent"] == 8e6 * 2 * 15 / 16
    shard = plan("--ranks", "4", "--shard")
    assert shard["memory"]["state"] == 4e6 and shard["algorithm"] == "shard", shard
    assert shard["bytes_sent"] in (8e6 * 1.5, 4e6 * 1.5), shard
    assert "--allreduce" not in run("plan", "./tiny.step", "--ranks", "4", "--shard").stdout
    Path("large.step").write_text(STEP.replace("2000000", "200000000").replace("16000000",
                                                                               "1600000000"))
    large = json.loads(run("plan", "./large.step", "--json", "--ranks", "8").stdout)
    assert large["memory"]["checkpoint"] == 2.4e9 / 8, large  # the ranks divide it among them
    small = run("plan", "./tiny.step", "--memory", "0.07", code=5).stderr
    assert "a rank needs 96 MB, 26 MB more" in small and "a batch of 3 would fit" in small, small
    small = run("plan", "./tiny.step", "--memory", "0.03", code=5).stderr
    assert "try --shard" in small, small
    sums = json.loads(run("plan", "allreduce", "--ranks", "64", "--bytes", "4000,4000000",
                          "--json").stdout)
    assert len(sums) >= 8 and all(x["seconds"] > 0 for x in sums), sums
    Path("bad.step").write_text("elements many\n")
    assert "line 1" in run("plan", "./bad.step", code=4).stderr
    assert "memory of a rank" in run("plan", "mlp", "--batch", "4", "--ranks", "2").stdout


def simulates():
    """Whether SimGrid was there when the command was built."""
    return (CATENA.parent.parent / "libexec" / "catena-simulate").exists()


def scale(*words):
    return json.loads(run("scale", "mlp", "--batch", "32", "--threads", "1", "--items-per-s",
                          "3200", "--record-steps", "2", "--json", *words).stdout)


def test_scale():
    if not simulates():
        print("skipped: no simulator in this build")
        return
    for platform in "fat-tree", "torus", "dragonfly", "ethernet":
        r = scale("--platform", platform, "--ranks", "1,2,4", "--algorithm", "ring")
        assert [x["ranks"] for x in r["sizes"]] == [1, 2, 4], r
        for x in r["sizes"]:
            assert abs(x["compute_s"] - 0.01) < 1e-6 and x["step_s"] >= x["compute_s"], x
        assert r["sizes"][0]["efficiency"] == 1 and r["efficiency"] == r["sizes"][2]["efficiency"]
        assert r["efficiency"] > (0.3 if platform == "ethernet" else 0.8), r
    # What a rank sends in a ring, and half of it in 16 bits.
    x = scale("--algorithm", "ring", "--ranks", "4")["sizes"][0]
    most = 2 * 3 / 4 * 4 * 1796032
    assert most <= x["bytes_sent"] < 1.01 * most + 2000, x
    half = scale("--algorithm", "ring", "--ranks", "4", "--wire", "bf16")["sizes"][0]
    assert most / 2 <= half["bytes_sent"] < 0.51 * most + 2000, half
    # Overlap hides what waiting for each parameter does not.
    each = scale("--when", "each", "--ranks", "4", "--algorithm", "ring")["sizes"][0]
    x = scale("--bucket", "500000", "--ranks", "4", "--algorithm", "ring")["sizes"][0]
    assert each["exposed_s"] > x["exposed_s"], (each, x)
    assert scale("--ranks", "3")["sizes"][0]["algorithm"] != "auto"
    links = json.loads(run("scale", "links", "--ranks", "16", "--json").stdout)[0]
    assert 0.8 < links["latency_us"] < 1.3 and 11 < links["gb_per_s"] < 12.5, links
    sums = json.loads(run("scale", "allreduce", "--ranks", "4", "--bytes", "4000,400000",
                          "--json").stdout)
    assert len({(x["bytes"], x["algorithm"]) for x in sums}) == len(sums) > 6, sums
    assert all(x["seconds"] > 1e-6 for x in sums), sums
    assert any(x["algorithm"] == "auto" and x["chosen"] != "auto" for x in sums), sums
    assert scale("--shard", "--ranks", "4")["sizes"][0]["algorithm"] == "sharded"
    # Other links; what was recorded is used again; a picture.
    slow = scale("--algorithm", "ring", "--ranks", "4", "--link-gb-per-s", "1", "--latency-us",
                 "20", "--save", "mlp.step", "--svg", "mlp.svg")["sizes"][0]
    assert slow["exposed_s"] > 2 * x["exposed_s"] and slow["hidden_s"] >= 0, slow
    assert 0.9 * most < slow["bytes_per_link"] <= slow["bytes_per_link_most"], slow
    assert "<svg" in Path("mlp.svg").read_text()
    again = json.loads(run("scale", "./mlp.step", "--algorithm", "ring", "--ranks", "4", "--json")
                       .stdout)
    assert again["model"] == "mlp" and abs(again["kernels_s"] + again["update_s"] - 0.01) < 1e-5
    plan = json.loads(run("plan", "./mlp.step", "--ranks", "4", "--algorithm", "ring", "--wire",
                          "f32", "--json").stdout)
    assert abs(plan["step_s"] / again["sizes"][0]["step_s"] - 1) < 0.15, (plan, again)


# ---- the user's own network


def test_verify_resume_differs():
    """A network that is another one in every process."""
    text = (SOURCE / "examples/own_model/mymodel.c").read_text()
    begin = "    mymodel *net = self;\n"
    text = text.replace(begin, begin + "    x = ctn_shift(x, (double)(getpid() % 1000));\n", 1)
    Path("other.c").write_text("#include <unistd.h>\n" + text)
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{SOURCE}/include", f"-L{LIBRARY}", "-lcatena",
                    "other.c", "-o", "other.so"], check=True)
    done = run("verify-resume", "./other.so", "--rounds", "1", "--json", "--out", "kept", "--",
               "--iterations", "5", code=3)
    found = json.loads(done.stdout)
    assert found["identical"] is False, found
    assert any(line.startswith("net.") and "differs" in line for line in found["differences"])


def test_own_model():
    make_arrays()
    os.mkdir("code")
    template = SOURCE / "examples/own_model/mymodel.c"
    build = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", f"-I{SOURCE}/include",
             f"-L{LIBRARY}", "-lcatena"]
    subprocess.run([*build, template, "-o", "code/mymodel.so"], check=True)
    words = ["--data", "x.npy", "--target", "y.npy", "--batch", "32"]
    values = train("./code/mymodel.so", *words, "--epochs", "30", "--lr", "0.01",
                   "--model-args", "32", "--out", "r")
    assert values["train/loss"] < 0.2, values
    c = resolved("r")
    assert len(c["model-hash"]) == 18 and c["model-args"] == '"32"', c
    run("predict", "./code/mymodel.so", "--weights", "r/weights.safetensors", "--data", "x.npy",
        "--out", "p.npy")
    assert np.load("p.npy").shape == (256, 2)

    one = ["--epochs", "1", "--out", "x"]
    os.chmod("code/mymodel.so", 0o666)
    assert "writable by everybody" in run("train", "./code/mymodel.so", *words, *one, code=2).stderr
    os.chmod("code/mymodel.so", 0o755)
    os.chmod("code", 0o777)
    assert "writable by everybody" in run("train", "./code/mymodel.so", *words, *one, code=2).stderr
    os.chmod("code", 0o755)
    text = template.read_text().replace(".abi = CTN_MODEL_ABI", ".abi = 999")
    Path("code/old.c").write_text(text)
    subprocess.run([*build, "code/old.c", "-o", "code/old.so"], check=True)
    assert "ABI 999" in run("train", "./code/old.so", *words, *one, code=2).stderr
    # An error in the network is reported with its source line.
    wrong = "ctn_matmul(x, x, 0, 0)"
    last = "return ctn_call(net->out"
    text = template.read_text().replace(last, f"x = {wrong};\n    {last}")
    Path("code/wrong.c").write_text(text)
    subprocess.run([*build, "code/wrong.c", "-o", "code/wrong.so"], check=True)
    error = run("train", "./code/wrong.so", *words, *one, "--quiet", code=4).stderr
    line = text.splitlines().index(f"    x = {wrong};") + 1
    assert error.count("\n") == 2 and f"\n  at code/wrong.c:{line} " in error, error
    assert "src/" not in error, error
    shutil.rmtree("x", ignore_errors=True)
    Path("code/empty.c").write_text("int nothing;\n")
    subprocess.run([*build, "code/empty.c", "-o", "code/empty.so"], check=True)
    assert "catena_model" in run("train", "./code/empty.so", *words, *one, code=2).stderr
    run("train", "./code/missing.so", *words, *one, code=2)
    assert not Path("x").exists()


REPORTS_OWN = """
#include <catena/train.h>
static ctn_tensor *loss(void *net, ctn_step *s)
{
    ctn_tensor *y = ctn_call(net, ctn_step_input(s, 0)), *t = ctn_step_input(s, 1);
    ctn_report(s, "apart", ctn_mean_absolute_error(y, t, CTN_MEAN));
    return ctn_mean_squared_error(y, t, CTN_MEAN);
}
const ctn_model catena_model = {
    .loss = loss,"""


def test_direction():
    """Of a value of somebody's own, only they know what is better."""
    make_arrays()
    os.mkdir("code")
    text = (SOURCE / "examples/own_model/mymodel.c").read_text()
    Path("code/m.c").write_text(text.replace("const ctn_model catena_model = {", REPORTS_OWN))
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", f"-I{SOURCE}/include", f"-L{LIBRARY}",
                    "code/m.c", "-lcatena", "-o", "code/m.so"], check=True)
    words = ["./code/m.so", "--data", "x.npy", "--target", "y.npy", "--val-share", "0.2",
             "--epochs", "5"]
    error = run("train", *words, "--metric", "apart", "--out", "r", code=2).stderr
    assert "apart:min or apart:max" in error, error
    text = run("train", *words, "--metric", "apart:min", "--out", "s").stderr
    assert "best weights: smallest val/apart" in text, text
    log = [json.loads(line)["val/apart"] for line in Path("s/log.jsonl").read_text().splitlines()]
    run("train", *words, "--metric", "apart:max", "--out", "t", "--quiet")
    assert log[-1] == min(log) and log[0] == max(log), log
    assert Path("s/best.safetensors").read_bytes() != Path("t/best.safetensors").read_bytes()
    assert resolved("s")["metric"] == '"apart:min"', resolved("s")["metric"]
    run("train", "mlp", *ARRAYS, "--val-share", "0.2", "--metric", "r2:most", "--out", "u", code=2)


# ---- files of somebody else


def test_code_in_configuration():
    """A configuration, wherever it is found, does not decide what code runs."""
    make_arrays()
    os.mkdir("code")
    Path("code/evil.c").write_text("#include <stdio.h>\n__attribute__((constructor)) static void "
                                   "go(void) { fclose(fopen(\"PWNED\", \"w\")); }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "code/evil.c", "-o", "code/evil.so"], check=True)
    train("mlp", *ARRAYS, "--epochs", "1", "--out", "r")
    config = Path("r/config.yaml")
    right = config.read_text()
    evil = Path("code/evil.so").resolve()
    config.write_text(right.replace('"mlp"', f'"{evil}"'))
    data = ["--data", "x.npy", "--target", "y.npy"]
    weights = ["--weights", "r/weights.safetensors"]
    tries = [["eval", *weights, *data], ["predict", *weights, *data[:2], "--out", "p.npy"],
             ["export", "./r", "--to", "m.onnx"],
             ["train", "--resume", "--out", "r", "--epochs", "2"],
             ["train", "--config", "r/config.yaml", "--out", "other"]]
    for words in tries:
        done = run(*words, code=2)
        assert f"use catena {words[0]} {evil}" in done.stderr, (words, done.stderr)
        assert not Path("PWNED").exists(), words
    run("generate", *weights, "--prompt", "a", code=4)
    env = {"CATENA_TRAIN_MODEL": str(evil)}
    assert "is only loaded if" in run("train", *data, "--out", "other", env=env, code=2).stderr
    assert not Path("PWNED").exists()
    # Named on the command line, it is loaded.
    assert "catena_model" in run("eval", "./code/evil.so", *weights, *data, code=2).stderr
    assert Path("PWNED").exists()
    # Other values of the file are data, and are checked.
    for key, value, part in (("model-hash", '"\\e[2J"', "16 hexadecimal digits"),
                             ("hidden", "[1e30]", "each an integer"), ("lr", "'1", "not YAML")):
        config.write_text(re.sub(f"^{key}:.*\n", "", right, flags=re.M) + f"{key}: {value}\n")
        done = run("eval", *weights, *data, code=2)
        assert part in done.stderr and "\x1b" not in done.stderr, (key, done.stderr)


def test_paths_in_configuration():
    """Relative paths start from the folder of the file; what is written is absolute."""
    os.makedirs("project/data")
    os.chdir("project/data")
    make_arrays()
    os.chdir("../..")
    Path("project/c.yaml").write_text("model: mlp\ndata: data/x.npy\ntarget: data/y.npy\n"
                                      "hidden: [8]\nepochs: 1\nout: made\n")
    train("--config", "project/c.yaml")
    c = resolved("project/made")
    assert c["data"] == f'"{os.getcwd()}/project/data/x.npy"', c
    assert c["model"] == '"mlp"' and c["out"] == f'"{os.getcwd()}/project/made"', c
    os.rename("project/made", "moved")
    train("--resume", "--out", "moved", "--epochs", "2")
    # The names of columns are no paths.
    Path("project/t.csv").write_text("a,b,c\n" + "1,2,3\n4,5,7\n" * 8)
    Path("project/t.yaml").write_text("model: mlp\ndata: t.csv\ntarget: c\nepochs: 1\n")
    train("--config", "project/t.yaml", "--out", "t")
    assert resolved("t")["target"] == '"c"'
    # A result folder does not choose a file that is overwritten.
    Path("moved/config.yaml").write_text(Path("moved/config.yaml").read_text()
                                         + f"timeline: {os.getcwd()}/precious\n")
    Path("precious").write_text("mine")
    done = run("train", "--resume", "--out", "moved", "--epochs", "3", "--quiet")
    assert "--timeline" in done.stderr and Path("precious").read_text() == "mine", done.stderr


def test_links_in_results():
    """Nothing is removed or overwritten through links in a result folder."""
    make_arrays()
    train("mlp", *ARRAYS, "--epochs", "1", "--out", "r")
    os.mkdir("victim")
    for name in ("manifest.txt", "a.txt", "b.bin"):
        Path("victim", name).write_text("mine")
    shutil.copytree("r/state/000000000", "archive")
    before = sorted(os.listdir("archive"))
    for name in ("unfinished-1", "removed-000000000"):
        os.symlink("../../victim", f"r/state/{name}")
    os.rename("r/state/000000000", "r/state/000000005")
    os.symlink("../../archive", "r/state/000000000")
    os.mkdir("r/state/unfinished-mine")
    Path("r/state/unfinished-mine/a.txt").write_text("mine")
    for name in ("config.yaml.part", "machine.json.part", "failures.txt"):
        os.symlink("../victim/a.txt", f"r/{name}")
    for epochs in (2, 3, 4):
        train("--resume", "--out", "r", "--epochs", epochs)
    assert sorted(os.listdir("archive")) == before
    assert all(Path("victim", n).read_text() == "mine" for n in ("manifest.txt", "a.txt", "b.bin"))
    assert Path("r/state/unfinished-mine/a.txt").exists()
    # Starting over removes states, but neither a link nor what is not a state's.
    done = run("train", "mlp", *ARRAYS, "--epochs", "1", "--out", "r", "--force", code=2)
    assert "000000000" in done.stderr and "no link" in done.stderr, done.stderr
    os.unlink("r/state/000000000")
    train("mlp", *ARRAYS, "--epochs", "1", "--out", "r", "--force")
    assert sorted(os.listdir("archive")) == before and Path("victim/b.bin").exists()
    for name in ("job.txt", "log.jsonl"):
        Path("r", name).unlink()
        os.symlink("../victim/a.txt", f"r/{name}")
        run("train", "--resume", "--out", "r", "--epochs", "5", "--quiet", code=3)
        os.unlink(f"r/{name}")
    assert Path("victim/a.txt").read_text() == "mine"
    # The states of another folder are not pruned.
    os.rename("r/state", "states")
    os.symlink("../states", "r/state")
    done = run("train", "--resume", "--out", "r", "--epochs", "6", code=2)
    assert "symbolic link" in done.stderr, done.stderr


def array_file(path, names):
    head = {n: {"dtype": "F32", "shape": [1], "data_offsets": [4 * i, 4 * i + 4]}
            for i, n in enumerate(names)}
    text = json.dumps(head).encode()
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + bytes(4 * len(names)))


def onnx_model(size, name=b"x"):
    """y = Relu(x), where x is said to have the shape (1, size)."""
    def number(n):
        return bytes([n & 127 | 128]) + number(n >> 7) if n > 127 else bytes([n])
    def part(field, content):
        return number(field << 3 | 2) + number(len(content)) + content
    def whole(field, n):
        return number(field << 3) + number(n)
    dims = part(1, whole(1, 1)) + part(1, whole(1, size))
    port = part(2, part(1, whole(1, 1) + part(2, dims)))
    node = part(1, name) + part(2, b"y") + part(4, b"Relu")
    graph = part(1, node) + part(11, part(1, name) + port) + part(12, part(1, b"y") + port)
    return whole(1, 8) + part(7, graph) + part(8, whole(2, 17))


def test_names_with_escapes():
    """Names from files do not control the terminal, and are the same in JSON."""
    names = ["\x1b[2J\x1b]0;title\x07", "c1\u009b31m", "caf\u00e9", "line\rstart", "del\x7f",
             "a\nFAKE", "\x01\x02\x03\nFAKE\x04\x05\x06\x07\x08"]
    array_file("a.safetensors", names)
    array_file("b.safetensors", names[2:3])
    def harmless(done):
        for text in (done.stdout, done.stderr):
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text), repr(text)
            assert "\nFAKE" not in text, text  # a name does not begin a line
        return done.stdout + done.stderr
    text = harmless(run("weights", "a.safetensors"))
    assert "\\x1b[2J" in text and "caf\u00e9" in text, text
    found = json.loads(run("weights", "a.safetensors", "--json").stdout)
    assert names[0] in json.dumps(found, ensure_ascii=False).encode().decode("unicode_escape") or \
        any(a["name"] == names[0] for a in found["arrays"]), found
    harmless(run("weights", "a.safetensors", "--json"))
    harmless(run("weights", "a.safetensors", "b.safetensors", code=None))
    harmless(run("weights", "a.safetensors", "--model", "mlp", code=None))
    harmless(run("eval", "mlp", "--weights", "a.safetensors", "--data", "\x1b[2J", code=None))
    harmless(run("weights", "a.safetensors", "a.safetensors", "--to", "o.safetensors", code=4))
    Path("m.onnx").write_bytes(onnx_model(4, b"x\nFAKE"))
    harmless(run("explain", "./m.onnx", "--steps", "1", code=None))
    harmless(run("train", "\x1b[2J", code=2))
    make_arrays()
    Path("bad.yaml").write_text('"\\e[2J": 1\n')
    harmless(run("train", "mlp", *ARRAYS, "--config", "bad.yaml", code=2))
    Path("t.csv").write_text("a,b,\x1b[31m\n1,2,<b>x\n3,4,\x1b[2Jy\n")
    harmless(run("train", "mlp", "--data", "t.csv", "--target", "\x1b[31m", "--epochs", "1",
                 "--out", "t\x1b[2J<b>", code=0))
    text = Path("t\x1b[2J<b>/report.html").read_text()
    assert "\x1b" not in text and "<b>" not in re.sub("<b>[-0-9.]", "", text), text


def test_many_arrays():
    """Files of many arrays are converted in time that is in proportion to their number."""
    n = 150000
    head = ",".join('"%x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}' % i for i in range(n))
    text = f"{{{head}}}".encode()
    Path("a.safetensors").write_bytes(struct.pack("<Q", len(text)) + text)
    began = os.times().children_user
    assert str(n) in run("weights", "a.safetensors", "--to", "b.safetensors").stdout
    assert os.times().children_user - began < 10
    done = run("weights", "a.safetensors", "b.safetensors", "--to", "c.safetensors", code=4)
    assert "is in a.safetensors and in b.safetensors" in done.stderr, done.stderr


def test_sizes_from_outside():
    """Sizes are limited where they enter, so neither time nor memory is spent on them."""
    Path("m.onnx").write_bytes(onnx_model(4))
    if "built without" not in run("explain", "./m.onnx", "--steps", "1", code=None).stderr:
        for size in (1 << 29, 1 << 40, (1 << 63) - 1):
            Path("m.onnx").write_bytes(onnx_model(size))
            assert "1024 MB" in run("explain", "./m.onnx", code=4).stderr

    def refused(*words, code=(2, 4, 5), part=""):
        began = time.time()
        done = run(*words, code=None)
        assert done.returncode in code and part in done.stderr, (words, done)
        assert time.time() - began < 60, words

    os.mkdir("m")
    array_file("w.safetensors", ["a"])
    base = {"gpt2": {"n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 8, "vocab_size": 16},
            "llama": {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1,
                      "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 16,
                      "max_position_embeddings": 8, "head_dim": 4},
            "bert": {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1,
                     "num_attention_heads": 2, "max_position_embeddings": 8, "vocab_size": 16,
                     "type_vocab_size": 2}}
    wrong = {"n_layer": ((1 << 31) - 1, "expected 1 to 4096"), "n_embd": (1 << 32, "too large"),
             "num_hidden_layers": ((1 << 32) + 1, "too large"), "head_dim": (-4, "negative"),
             "intermediate_size": ((1 << 31) - 1, ""), "vocab_size": ((1 << 31) - 1, ""),
             "num_attention_heads": (1 << 63, "too large")}
    for kind, sizes in base.items():
        for key, (value, part) in wrong.items():
            if key not in sizes or key == "vocab_size" and kind != "gpt2":
                continue
            Path("m/config.json").write_text(json.dumps({"model_type": kind, **sizes, key: value}))
            refused("weights", "w.safetensors", "--model", "m", part=part)
    Path("m/config.json").write_text("[" * 5000000)
    refused("weights", "w.safetensors", "--model", "m", part="not a JSON object")
    make_arrays()
    arrays = [*ARRAYS[:4], "--epochs", "1", "--out", "x"]
    refused("train", "mlp", *arrays, "--hidden", "1e30", part="integer")
    refused("train", "mlp", *arrays, "--hidden", "2147483647,2147483647")
    refused("train", "mlp", *arrays, "--hidden", ",".join(["8"] * 65), part="at most 64")
    Path("text.txt").write_text("words " * 1000)
    text = ["--data", "text.txt", "--epochs", "1", "--out", "x", "--length", "16"]
    refused("train", "gpt", *text, "--depth", "2147483647", part="expected 1 to 4096")
    refused("train", "gpt", *text, "--width", "2147483644", part="parameters")
    for line in ("hidden: " + "[" * 100000, "&a [" * 1000, "? " * 100000):
        Path("deep.yaml").write_text(line + "\n")
        refused("train", "mlp", *arrays, "--config", "deep.yaml")
    Path("r").mkdir()
    shutil.copy("w.safetensors", "r")
    Path("r/config.yaml").write_text('model: mlp\ntarget-shape: [2147483647, 2147483647]\n')
    refused("predict", "--weights", "r/w.safetensors", "--data", "x.npy", "--out", "p.npy",
            part="expected at most")


def test_size_of_results():
    """The room for results follows what the network returns, not what config.yaml says."""
    rng = np.random.default_rng(3)
    for name, n in (("x", 16), ("y", 16), ("large", 32)):
        np.save(f"{name}.npy", rng.normal(size=(8, 1, n, n)).astype("f4"))
    train("unet", "--data", "x.npy", "--target", "y.npy", "--depth", "1", "--width", "2",
          "--epochs", "1", "--batch", "4", "--loss", "relative-l2", "--out", "r")
    weights = ["--weights", "r/weights.safetensors"]
    run("predict", *weights, "--data", "large.npy", "--out", "p.npy")
    assert np.load("p.npy").shape == (8, 1, 32, 32)
    done = run("eval", *weights, "--data", "large.npy", "--target", "y.npy", code=4)
    assert "relative-l2" in done.stderr, done.stderr


def test_recorded_step():
    """The numbers of a recorded step and of a timeline are checked where they are read."""
    right = ("name mlp\nbatch 4\nmemory 1000 1000\nelements 1600\nupdate 0.001\nparam 0\n"
             "param 800\nkernel 0.002\nready 800 1600\nneed 800\nready 0 800\nstep\n")
    Path("s").write_text(right)
    run("plan", "./s", "--ranks", "4")
    run("plan", "mlp", "--record-steps", "0", code=2)
    for old, new in (("need 800", "need 99999999999999"), ("need 800", "need -1"),
                     ("ready 0 800", "ready 800 0"), ("ready 0 800", "ready 0 1601"),
                     ("elements 1600", "elements 9223372036854775807"),
                     ("elements 1600", "elements 99999999999999999999999"),
                     ("batch 4", "batch -4"), ("batch 4", "batch 0"), ("batch 4", "batch 4 4"),
                     ("param 800", "param 1600"), ("param 800", "param 0"),
                     ("memory 1000", "memory -1"), ("kernel 0.002", "kernel nan"),
                     ("kernel 0.002", "kernel 1e300"), ("kernel 0.002", "kernel -1"),
                     ("update 0.001", "update inf"), ("name mlp", "name <script>"),
                     ("name mlp", "name \x1b[2J"), ("step\n", "step\n" * 70000),
                     ("step\n", "step\n" * 60000)):
        assert old in right
        Path("s").write_text(right.replace(old, new, 1))
        for command in ("plan", "scale") if "need" in new else ("plan",):
            done = run(command, "./s", "--ranks", "4", code=None)
            assert done.returncode in (3, 4), (command, new, done)
            assert "recorded step" in done.stderr and "\x1b" not in done.stderr, done.stderr
    span = {"ph": "X", "cat": "step", "pid": 0, "ts": 0, "dur": 5, "name": "step"}
    for key, value in (("ts", "1e999"), ("ts", "nan"), ("pid", "-1"), ("pid", "1e300"),
                       ("dur", "0x1p2000")):
        event = json.dumps({**span, key: "@"}).replace('"@"', value)
        facts = '{"catena_timeline": 1, "lost_spans": [1e17, 9e17, 9e17]}'
        Path("t.json").write_text(f'{{"otherData": {facts}, "traceEvents": [{event}]}}')
        assert run("timeline", "t.json", code=None).returncode in (0, 4), (key, value)


def main():
    names = sys.argv[4:]
    part = re.fullmatch(r"(\d+)/(\d+)", names[0]) if names else None  # 1/4: the first of 4 parts
    tests = {k[5:]: f for k, f in globals().items()
             if k.startswith("test_") and (not names or part or k[5:] in names)}
    if part:
        first, step = int(part[1]) - 1, int(part[2])
        tests = dict(list(tests.items())[first::step])
    elif set(names) - set(tests):
        sys.exit(f"no test is named {', '.join(set(names) - set(tests))}")
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
