#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""command.py BUILD WORK COUNT SEED [FOLDER ...]: pass COUNT changed files, and all files of the
folders, to the command of a build (dev/hostile files). Each call must end with an exit code of the
command, without a report of a sanitizer, within SECONDS of processor time and MEGABYTES of memory.
Files that fail are kept in WORK/failed with the command line. Exit code 1: there are some."""
import collections
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

TOP = Path(__file__).resolve().parent
SECONDS, MEGABYTES, WALL_SECONDS, REPORT = 5, 2048, 300, 99
# The exit code for a wrong command line, for a wrong key in a config.yaml, and for a model whose
# result has no known shape.
WRONG_LINE, UNKNOWN_SHAPE = 2, "use --target-shape"

# What is called with a file of a target: its name in the folder of the case, and command lines. X
# are arrays, W weights of the network mlp for their four columns, U of one for samples of 2 x 2, V
# of one for images, all valid; Y is an array of the type and shape that an ONNX model says it
# takes, N samples of them its batch. The folder "run" has W and a config.yaml. Half of the changed
# files are made from the corpora and half from the VALID file of the target, if it has one.
PREDICT = "predict --out out.npy"
CALLS = {
    "onnx": ("m.onnx", ["explain ./m.onnx", f"{PREDICT} ./m.onnx --data Y --batch N",
                        "eval ./m.onnx --data Y --batch N --target Y"]),
    "safetensors": ("w.safetensors", ["weights w.safetensors",
                                      "weights w.safetensors --model resnet20_cifar",
                                      f"{PREDICT} mlp --hidden 8 --weights w.safetensors --data X "
                                      "--target X"]),
    "pytorch": ("w.pt", ["weights w.pt", f"{PREDICT} mlp --weights w.pt --data X --target X"]),
    "npy": ("x.npy", [f"{PREDICT} --weights W --data x.npy", "eval --weights W --data X "
                      "--target x.npy"]),
    "csv": ("x.csv", [f"{PREDICT} --weights W --data x.csv",
                      "eval --weights W --data x.csv --target t"]),
    "hdf5": ("x.h5", [f"{PREDICT} --weights W --data x.h5:/a", "eval --weights W --data x.h5:/g/b "
                      "--target x.h5:/c"]),
    "netcdf": ("x.nc", [f"{PREDICT} --weights U --data x.nc:/t,p --fill 0"]),
    "image": ("a.jpg", [f"{PREDICT} --weights V --standardize none --data a.jpg"]),
    "yaml": ("run/config.yaml", [f"{PREDICT} --weights run/w.safetensors --data X",
                                 "eval --weights run/w.safetensors --data X --target X"]),
    "config": ("n/config.json", ["weights W --model ./n", "weights W --model ./n/config.json"]),
    "timeline": ("t.json", ["timeline t.json"]),
    "step": ("./s.step", ["plan ./s.step"]),
    "manifest": ("state/000000001/manifest.txt", ["checkpoint verify .", "checkpoint ls ."]),
}
VALID = {"npy": "x.npy", "csv": "x.csv", "yaml": "run/config.yaml",
         "safetensors": "run/weights.safetensors"}


def fields(message):
    """Yields (number, value) of a message of protobuf; stops where it is damaged."""
    at = 0

    def number():
        nonlocal at
        n = shift = 0
        while True:
            byte = message[at]
            at += 1
            n |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return n

    try:
        while at < len(message):
            key = number()
            if key & 7 == 0:
                yield key >> 3, number()
            elif key & 7 == 2:
                n = number()
                yield key >> 3, message[at:at + n]
                at += n
            elif key & 7 in (1, 5):
                at += 8 if key & 7 == 1 else 4
            else:
                return
    except IndexError:
        return


def only(message, *path):
    """The last field of this path; None: there is none."""
    for number in path:
        if not isinstance(message, bytes):
            return None
        message = dict(fields(message)).get(number)
    return message


def input_of(model):
    """Type and shape of the first input of an ONNX model that is not an initializer."""
    types = {1: "f4", 2: "u1", 6: "i4", 7: "i8", 9: "?", 11: "f8"}
    graph = list(fields(only(model, 7) or b""))  # ModelProto.graph
    known = {only(v, 8) for n, v in graph if n == 5 and isinstance(v, bytes)}  # initializer
    for n, value in graph:
        if n != 11 or not isinstance(value, bytes) or only(value, 1) in known:  # input
            continue
        tensor = only(value, 2, 1) or b""  # type.tensor_type
        dims = [only(d, 1) for m, d in fields(only(tensor, 2) or b"") if m == 1]
        dims = [d if isinstance(d, int) and 0 < d <= 64 else 2 for d in dims[:8]]
        return types.get(only(tensor, 1), "f4"), dims if np.prod(dims) <= 1 << 18 else [2]
    return "f4", [2]


def run(command, line, folder):
    """The exit code, what it printed, and why this call is not acceptable; empty: it is."""
    env = {**os.environ, "CATENA_THREADS": "1", "CATENA_CACHE_DIR": "none", "CATENA_TUNE": "0",
           "OMP_WAIT_POLICY": "passive", "UBSAN_OPTIONS": f"exitcode={REPORT}",
           "ASAN_OPTIONS": f"exitcode={REPORT}:allocator_may_return_null=1:quarantine_size_mb=64"}
    limits = ["prlimit", f"--cpu={SECONDS}:{SECONDS + 2}", "--core=0", "--"]
    with tempfile.TemporaryFile() as out:
        done = subprocess.Popen([*limits, command, *line.split()], cwd=folder, env=env,
                                stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        timer = threading.Timer(WALL_SECONDS, done.kill)  # a call that waits takes no time
        timer.start()
        _, status, used = os.wait4(done.pid, 0)
        timer.cancel()
        done.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode(errors="replace")
    seconds, mb = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    if done.returncode < 0 or done.returncode >= REPORT or "Sanitizer" in text:
        why = f"exit code {done.returncode}, {seconds:.1f} s, {mb:.0f} MB\n{text[-6000:]}"
    else:
        why = f"{mb:.0f} MB of memory" if mb > MEGABYTES else ""
    return done.returncode, text, why


def prepare(command, work):
    """Valid arrays and weights."""
    good = work / "good"
    shutil.rmtree(good, ignore_errors=True)
    good.mkdir(parents=True)
    rng = np.random.default_rng(1)
    np.save(good / "x.npy", rng.random((8, 4), dtype="f4"))
    np.save(good / "v.npy", rng.random((8, 3, 32, 32), dtype="f4"))
    np.save(good / "classes.npy", np.arange(8, dtype="i4") % 2)
    np.save(good / "u.npy", rng.random((8, 2, 2), dtype="f4"))
    np.savetxt(good / "x.csv", rng.random((8, 4)), "%.3f", ",", header="a,t,c,d", comments="")
    for line in ("mlp --hidden 8 --data x.npy --target x.npy --out run",
                 "mlp --hidden 8 --data u.npy --target u.npy --out two",
                 "resnet20_cifar --data v.npy --target classes.npy --standardize none "
                 "--out images"):
        subprocess.run([command, "train", *line.split(), "--epochs", "1"], cwd=good, check=True,
                       capture_output=True)
    return good


def cases(build, work, good, count, seed, folders):
    """(target, file): the given files, and then the changed ones."""
    for folder in folders:
        for path in sorted(p for p in Path(folder).rglob("*") if p.is_file()):
            target = {".onnx": "onnx", ".h5": "hdf5", ".npy": "npy", ".yaml": "yaml",
                      ".safetensors": "safetensors", ".pt": "pytorch"}.get(path.suffix)
            if target:
                yield target, path
    for k, target in enumerate(CALLS):
        n = (count + len(CALLS) - 1 - k) // len(CALLS)
        corpora = [TOP / "corpus" / target, build / "tests/fuzz/grown" / target]
        valid = []
        if target in VALID:
            valid = [good / "valid" / target]
            valid[0].mkdir(parents=True)
            shutil.copy(good / VALID[target], valid[0])
        for name, seeds, m in (("valid", valid, n // 2 if valid else 0),
                               ("corpora", corpora, n - n // 2 if valid else n)):
            made = work / "files" / target / name
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir(parents=True)
            if m > 0:
                subprocess.run([build / f"tests/fuzz/fuzz_{target}", "--write", made, "--cases",
                                str(m), "--seed", str(seed), *(s for s in seeds if s.exists())],
                               check=True, stdout=subprocess.DEVNULL)
            yield from ((target, path) for path in sorted(made.iterdir()))


def check(command, good, names, target, path):
    """Yields the line, the exit code and why it failed (empty: it did not) of each call."""
    name, lines = CALLS[target]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(good / "run", Path(folder) / "run")
        shutil.copy(names["W"], Path(folder) / "run/w.safetensors")
        file = Path(folder) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, file)
        words = dict(names, Y="y.npy")
        if target == "onnx":
            dtype, shape = input_of(path.read_bytes())
            words["N"] = str(shape[0]) if shape else "1"
            values = np.arange(np.prod(shape, dtype=int)) % 7 * 0.5 - 1
            np.save(Path(folder) / "y.npy", values.astype(dtype).reshape(shape or (1,)))
        for line in lines:
            line = " ".join(words.get(word, word) for word in line.split())
            code, text, why = run(command, line, folder)
            if (code == WRONG_LINE and target != "yaml" and UNKNOWN_SHAPE not in text
                    and not why):  # the file was not read
                why = "the command line above is wrong, see CALLS"
            yield line, code, why


def main():
    build, work = (Path(a).resolve() for a in sys.argv[1:3])
    count, seed = int(sys.argv[3]), int(sys.argv[4])
    command = build / "bin/catena"
    good = prepare(command, work)
    names = {"X": str(good / "x.npy"), "W": str(good / "run/weights.safetensors"),
             "U": str(good / "two/weights.safetensors"),
             "V": str(good / "images/weights.safetensors")}
    calls, complete, failed = collections.Counter(), collections.Counter(), 0
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        running = [(target, path, pool.submit(
            lambda *case: list(check(command, good, names, *case)), target, path))
            for target, path in cases(build, work, good, count, seed, sys.argv[5:])]
        for target, path, job in running:
            for line, code, why in job.result():
                calls[target] += 1
                complete[target] += code == 0
                if why:
                    failed += 1
                    kept = work / "failed" / f"{target}-{path.parent.name}-{path.name}"
                    kept.parent.mkdir(exist_ok=True)
                    shutil.copy(path, kept)
                    print(f"{kept}: catena {line}\n{why}", flush=True)
    print(f"{sum(calls.values())} calls, {failed} failed; calls, and those with exit code 0:",
          {t: (calls[t], complete[t]) for t in calls})
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
