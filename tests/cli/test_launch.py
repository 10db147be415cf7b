#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/cli/test_launch.py CATENA [NAME ...]: the command as launchers start it, on this machine.

Open MPI's mpirun starts the ranks; hosts, Slurm and cut links are tested by tests/cluster. Every test runs in an empty
folder. Without mpirun or NumPy: skipped (77).
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import zlib
import struct
from pathlib import Path

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not here")
    sys.exit(77)

CATENA = Path(sys.argv[1]).resolve()
MPIRUN = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
if not MPIRUN or "Open" not in subprocess.run([MPIRUN, "--version"], capture_output=True, text=True).stdout:
    print("skipped: no mpirun of Open MPI here")
    sys.exit(77)
LAUNCHERS = re.compile(r"^(OMPI_|PMIX_|PMI_|SLURM_|PJM_|CATENA_)")
ENV = {k: v for k, v in os.environ.items() if not LAUNCHERS.match(k)}
ENV |= {"CATENA_TUNE": "0", "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "self,sm"}


def call(words, code=0, env=None):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, errors="replace", timeout=120,
                          env={**ENV, **(env or {})})
    line = " ".join(map(str, words))
    assert code is None or done.returncode == code, \
        f"{line}: exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}"
    return done


def run(*words, **more):
    return call([CATENA, *words], **more)


def ranks(n, *words, **more):
    return call([MPIRUN, "--oversubscribe", "-np", n, *words], **more)


def own_lines(done):
    """What the command itself said on stderr."""
    return [line for line in done.stderr.splitlines() if "catena " in line or re.search(r"Z rank \d+ ", line)]


def make_arrays(n=515):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(n, 6)).astype(np.float32)
    np.save("x.npy", x)
    np.save("y.npy", (x[:, 0] - 2 * x[:, 3]).astype(np.float32))


ARRAYS = ["mlp", "--data", "x.npy", "--target", "y.npy", "--hidden", "16", "--val-share", "0.1", "--quiet", "--json"]


def make_shards():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rng = np.random.default_rng(2)
    for c in "ab":
        Path("images", c).mkdir(parents=True)
        for i in range(24):
            rows = b"".join(b"\0" + rng.integers(0, 255, 28, dtype=np.uint8).tobytes() for _ in range(28))
            png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0))
            Path("images", c, f"{i}.png").write_bytes(png + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    run("pack", "images", "shards")


# ---- without a launcher


def test_plain_command_loads_no_mpi():
    make_arrays()
    if not shutil.which("strace"):
        print("  no strace: not looked at")
        return
    call(["strace", "-f", "-e", "trace=openat", "-o", "trace", CATENA, "train", *ARRAYS, "--iterations", "2"])
    text = Path("trace").read_text(errors="replace")
    assert "libcatena.so" in text and "libmpi" not in text and "catena_mpi" not in text


def test_job_script_is_no_launcher():
    """What sbatch leaves in the environment of its script does not make a plain command a rank."""
    make_arrays()
    run("train", *ARRAYS, "--iterations", "2", "--out", "a", env={"SLURM_NTASKS": "4", "SLURM_JOB_ID": "1",
                                                                  "SLURM_PROCID": "0", "PJM_MPI_PROC": "4"})
    run("train", *ARRAYS, "--iterations", "2", "--out", "b", env={"SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"})


def test_singletons_are_stopped():
    make_arrays()
    step = {"SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_ID": "0"}
    done = run("train", *ARRAYS, code=3, env={**step, "SLURM_PROCID": "0"})
    assert "Slurm started 4 tasks but MPI" in done.stderr and "srun --mpi=pmix" in done.stderr, done.stderr
    done = run("train", *ARRAYS, code=3, env={**step, "SLURM_PROCID": "2"})
    assert not own_lines(done), done.stderr
    assert not Path("result").exists()
    done = run("pack", "a", "b", code=3, env={**step, "SLURM_PROCID": "0"})
    assert "works in one" in done.stderr, done.stderr


def test_memory():
    make_arrays()
    done = run("train", *ARRAYS, "--hidden", "4000,4000", "--memory-gb", "0.05", code=5)
    found = re.search(r"make ([\d.]+) GB; --memory-gb is 0.05 GB: ([\d.]+) GB too much", done.stderr)
    assert found and abs(float(found[1]) - float(found[2]) - 0.05) < 0.011, done.stderr


# ---- with one


def test_same_losses():
    make_arrays()
    one = json.loads(run("train", *ARRAYS, "--batch", "32", "--epochs", "3", "--out", "r1").stdout)
    two = json.loads(ranks(2, CATENA, "train", *ARRAYS, "--batch", "16", "--epochs", "3", "--out", "r2").stdout)
    assert two["ranks"] == 2 and two["iterations"] == one["iterations"]
    for key in ("train/loss", "val/loss"):
        assert abs(one[key] - two[key]) < 1e-4 * abs(one[key]), (key, one[key], two[key])
    assert len(Path("r2/log.jsonl").read_text().splitlines()) == 3
    words = ["eval", "mlp", "--weights", "r2/weights.safetensors", "--data", "x.npy", "--target", "y.npy", "--json"]
    alone, both = json.loads(run(*words).stdout), json.loads(ranks(2, CATENA, *words).stdout)
    for key, value in alone.items():
        same = value == both[key] if isinstance(value, str) else abs(value - both[key]) < 1e-5 * abs(value)
        assert same, (key, value, both[key])


def test_resume():
    make_arrays()
    for k, words in enumerate(([], ["--shard", "--precision", "bf16"])):
        whole = json.loads(ranks(2, CATENA, "train", *ARRAYS, *words, "--epochs", "4", "--out", f"a{k}").stdout)
        ranks(2, CATENA, "train", *ARRAYS, *words, "--epochs", "2", "--out", f"b{k}")
        rest = json.loads(ranks(2, CATENA, "train", *ARRAYS, "--epochs", "4", "--resume", "--out", f"b{k}").stdout)
        assert rest["iterations"] == whole["iterations"] and rest["train/loss"] == whole["train/loss"], (whole, rest)
        files = [Path(f"{run}{k}/weights.safetensors").read_bytes() for run in "ab"]
        assert files[0] == files[1], words


def test_sharded_weights():
    """Sharded under bf16 the ranks have 16 bits of each weight; the file has all that the optimizers have."""
    make_arrays()
    words = [*ARRAYS, "--precision", "bf16", "--epochs", "2"]
    ranks(2, CATENA, "train", *words, "--out", "whole")
    ranks(2, CATENA, "train", *words, "--shard", "--out", "shard")
    one, two = (Path(f"{out}/weights.safetensors").read_bytes() for out in ("whole", "shard"))
    begin = 8 + int.from_bytes(one[:8], "little")
    one, two = (np.frombuffer(text[begin:], np.float32) for text in (one, two))
    assert one.shape == two.shape and np.abs(one - two).max() < 1e-5, np.abs(one - two).max()
    assert (two.view(np.uint32) & 0xffff != 0).mean() > 0.9


def test_rank_0_speaks():
    make_arrays()
    done = ranks(2, CATENA, "train", "mlp", "--epcohs", "3", code=2)
    assert len(own_lines(done)) == 1 and "--epochs" in done.stderr, done.stderr
    done = ranks(2, CATENA, "train", *ARRAYS, "--target", "nothing.npy", code=None)
    assert done.returncode in (4, 7), done.returncode
    assert sum("error:" in line for line in own_lines(done)) == 1, done.stderr
    Path("config.yaml").write_text("batch: 8\nwrong: 1\n")
    done = ranks(2, CATENA, "train", *ARRAYS, "--config", "config.yaml", code=2)
    assert len(own_lines(done)) == 1 and "unknown key 'wrong'" in done.stderr, done.stderr


def test_more_ranks_than_cores():
    make_arrays()
    n = 2 * len(os.sched_getaffinity(0)) + 1
    done = ranks(n, "--bind-to", "none", CATENA, "train", *ARRAYS, "--iterations", "2", code=3)
    assert len(own_lines(done)) == 1 and "--oversubscribe" in done.stderr and f"{n} ranks" in done.stderr, done.stderr
    done = ranks(n, "--bind-to", "none", CATENA, "train", *ARRAYS, "--iterations", "2", "--oversubscribe")
    assert done.stderr.count("OVERSUBSCRIBED") == 1, done.stderr


def test_files_of_other_ranks():
    """Configuration, indexes and weights are opened by rank 0 only."""
    if not shutil.which("strace"):
        print("  no strace: not looked at")
        return
    make_shards()
    Path("mine.yaml").write_text("model: lenet5\ndata: shards\nsize: 28\nbatch: 8\niterations: 2\nval-share: 0.25\n")
    run("train", "--config", "mine.yaml", "--quiet", "--out", "first")
    Path("rank").write_text(f'exec strace -f -e trace=openat,open -o trace.$OMPI_COMM_WORLD_RANK "{CATENA}" "$@"\n')
    ranks(2, "sh", "rank", "train", "--config", "mine.yaml", "--weights", "first/weights.safetensors", "--quiet",
          "--out", "second")
    ours, others = (Path(f"trace.{r}").read_text(errors="replace") for r in (0, 1))
    for what in ("mine.yaml", ".tar.index", "first/weights.safetensors"):
        assert what in ours, f"rank 0 did not open {what}"
        assert what not in others, [line for line in others.splitlines() if what in line]
    assert ".tar" in others and "second/" not in others, [line for line in others.splitlines() if "second/" in line]
    words = ["eval", "lenet5", "--weights", "first/weights.safetensors", "--data", "shards", "--quiet"][:-1]
    ranks(2, "sh", "rank", *words)
    others = Path("trace.1").read_text(errors="replace")
    for what in ("first/config.yaml", ".tar.index", "first/weights.safetensors"):
        assert what not in others, [line for line in others.splitlines() if what in line]


def test_killed_rank():
    make_arrays()
    Path("rank").write_text(f'trap "" TERM\n"{CATENA}" "$@" &\necho $! > pid.$OMPI_COMM_WORLD_RANK\nwait $!\n'
                            'code=$?\necho $code > code.$OMPI_COMM_WORLD_RANK\nexit $code\n')
    job = subprocess.Popen([MPIRUN, "--oversubscribe", "-np", "3", "bash", "rank", "train", *ARRAYS, "--epochs", "0",
                            "--hours", "1", "--oversubscribe"], env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end = time.monotonic() + 60
    log = Path("result/log.jsonl")
    while time.monotonic() < end and not (log.exists() and log.stat().st_size > 200):
        time.sleep(0.05)
    os.kill(int(Path("pid.1").read_text()), signal.SIGKILL)
    start = time.monotonic()
    text = job.communicate(timeout=60)[1].decode(errors="replace")
    took = time.monotonic() - start
    assert took < 10 and job.returncode != 0, took
    lines = [line for line in text.splitlines() if "error: rank 1 on " in line]
    assert len(lines) == 1 and re.search(r"died, step [1-9]", lines[0]), text
    assert Path("code.0").read_text() == "7\n" and Path("code.2").read_text() == "7\n"


def test_signal_to_one_rank():
    """All ranks stop after the same step, and the state is saved."""
    make_arrays()
    Path("rank").write_text(f'echo $$ > pid.$OMPI_COMM_WORLD_RANK\nexec "{CATENA}" "$@"\n')
    job = subprocess.Popen([MPIRUN, "--oversubscribe", "-np", "2", "bash", "rank", "train", *ARRAYS, "--epochs", "0",
                            "--hours", "1"], env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end = time.monotonic() + 60
    log = Path("result/log.jsonl")
    while time.monotonic() < end and not (log.exists() and log.stat().st_size > 200):
        time.sleep(0.05)
    os.kill(int(Path("pid.1").read_text()), signal.SIGUSR1)
    out, err = job.communicate(timeout=60)
    assert job.returncode == 85, (job.returncode, err.decode(errors="replace"))
    stopped = json.loads(out)
    rest = json.loads(ranks(2, CATENA, "train", "--resume", "--hours", "0", "--iterations",
                            stopped["iterations"] + 5, "--quiet", "--json").stdout)
    assert rest["iterations"] == stopped["iterations"] + 5, rest


def test_selftest():
    alone = json.loads(run("selftest", "--json").stdout)
    assert alone["ranks"] == 1 and alone["failed"] == 0
    both = json.loads(ranks(2, CATENA, "selftest", "--json").stdout)
    checks = {c["check"]: c["result"] for c in both["checks"]}
    assert both["ranks"] == 2 and both["failed"] == 0 and both["seconds"] < 60
    for name in ("binding", "convolution", "training step", "allreduce ring", "allreduce flat", "allreduce hierarchical",
                 "clock", "file locks"):
        assert checks[name] == "ok", (name, checks)
    assert "all well" in ranks(2, CATENA, "selftest").stdout


def main():
    tests = {name[5:]: fn for name, fn in globals().items() if name.startswith("test_")}
    chosen = sys.argv[2:] or list(tests)
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            start = time.monotonic()
            tests[name]()
            print(f"ok {name} ({time.monotonic() - start:.1f} s)", flush=True)
            os.chdir("/")


main()
