#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/cli/test_launch.py CATENA [NAME ...]: the command under a launcher, on this machine.

Open MPI's mpirun starts the ranks. tests/cluster tests several hosts, Slurm and cut links. Every
test runs in an empty folder. Without mpirun or NumPy: skipped (77).
"""
import fcntl
import json
import os
import pty
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
    print("skipped: NumPy is not installed")
    sys.exit(77)

CATENA = Path(sys.argv[1]).resolve()
SOURCE = Path(__file__).resolve().parents[2]
MPIRUN = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
VERSION = [MPIRUN, "--version"]
if not MPIRUN or "Open" not in subprocess.run(VERSION, capture_output=True, text=True).stdout:
    print("skipped: no mpirun of Open MPI here")
    sys.exit(77)
LAUNCHERS = re.compile(r"^(OMPI_|PMIX_|PMI_|SLURM_|PJM_|CATENA_)")
ENV = {k: v for k, v in os.environ.items() if not LAUNCHERS.match(k)}
# A killed mpirun leaves a folder in TMPDIR, named after its pid, and a later mpirun that gets the
# same pid fails. So each test has a TMPDIR of its own.
ENV |= {"CATENA_TUNE": "0", "CATENA_CACHE_DIR": "none", "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "passive", "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "self,sm"}

LIMIT = 300  # seconds; a program that takes longer hangs, even on a busy machine

# Starts a rank with files of its own for its output. mpirun would mix what ranks print with each
# other and with its own notices, even in the middle of a line.
APART = ["sh", "-c", 'r=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; exec "$0" "$@" > out.$r 2> err.$r']
# The same with a file for its exit code.
RECORDED = ["sh", "-c", 'r=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; "$0" "$@" > out.$r 2> err.$r; '
            'code=$?; echo $code > end.$r; exit $code']


def printed(stream):
    """What ranks that APART started have printed. stream: out or err."""
    return "".join(p.read_text(errors="replace") for p in sorted(Path().glob(f"{stream}.*")))


def outcome(job, ranks):
    """Waits for a program, and returns its output and exit code. Open MPI 5.0.7 sometimes overlooks
    that ranks have ended, and waits for them forever. So if all ranks have recorded their exit
    codes and their launcher is still there half a minute later, it is killed, and the code is that
    of the ranks."""
    ended, limit = None, time.monotonic() + LIMIT
    while True:
        try:
            out, err = job.communicate(timeout=1)
            return subprocess.CompletedProcess(job.args, job.returncode, out, err)
        except subprocess.TimeoutExpired:
            now = time.monotonic()
            codes = [p.read_text() for p in Path().glob("end.*")]
            if ranks and len(codes) == ranks and all(codes):
                ended = ended or now
            if ended and now > ended + 30:
                job.kill()
                out, err = job.communicate()
                return subprocess.CompletedProcess(job.args, max(map(int, codes)), out, err)
            if now > limit:
                job.kill()
                raise


def call(words, code=0, env=None, ranks=0):
    """ranks: how many ranks RECORDED starts; their output is that of the program."""
    done = outcome(subprocess.Popen([str(w) for w in words], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True, errors="replace",
                                    env={**ENV, **(env or {})}), ranks)
    if ranks:
        done.stdout, done.stderr = printed("out"), done.stderr + printed("err")
    line = " ".join(map(str, words))
    assert code is None or done.returncode == code, \
        f"{line}: exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}"
    return done


def run(*words, **more):
    return call([CATENA, *words], **more)


def ranks(n, *words, launcher=(MPIRUN, "--oversubscribe"), **more):
    """Runs the words on n ranks; their output is that of all ranks."""
    for old in (p for kind in ("out", "err", "end") for p in Path().glob(f"{kind}.*")):
        old.unlink()
    return call([*launcher, "-np", n, *RECORDED, *words], ranks=n, **more)


STARTED = []  # main() kills these in any case


def start(*words):
    STARTED.append(subprocess.Popen([str(w) for w in words], env=ENV, text=True, errors="replace",
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    return STARTED[-1]


def wait_for(condition, what):
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, f"waited {LIMIT} s for {what}"
        time.sleep(0.05)


def wait_for_steps():
    """Waits until the log in result has rows, which means that steps have been taken."""
    log = Path("result/log.jsonl")
    wait_for(lambda: log.exists() and log.stat().st_size > 200, "the first steps")


def has_bf16():
    """Whether there are bf16 kernels for this CPU, or for the limit ONEDNN_MAX_CPU_ISA."""
    done = run("bench", "mlp", "--steps", "1", "--precision", "bf16", code=None)
    assert done.returncode == 0 or "no kernels for bf16" in done.stderr, done.stderr
    return done.returncode == 0


def own_lines(done):
    """The lines on stderr that the command itself printed."""
    return [line for line in done.stderr.splitlines()
            if "catena " in line or re.search(r"Z rank \d+ ", line)]


def make_arrays(n=515):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(n, 6)).astype(np.float32)
    np.save("x.npy", x)
    np.save("y.npy", (x[:, 0] - 2 * x[:, 3]).astype(np.float32))


ARRAYS = ["mlp", "--data", "x.npy", "--target", "y.npy", "--hidden", "16", "--val-share", "0.1",
          "--quiet", "--json"]


def make_shards():
    def chunk(kind, data):
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0))
    rng = np.random.default_rng(2)
    for c in "ab":
        Path("images", c).mkdir(parents=True)
        for i in range(24):
            rows = b"".join(b"\0" + rng.integers(0, 255, 28, dtype=np.uint8).tobytes()
                            for _ in range(28))
            body = chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
            Path("images", c, f"{i}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + head + body)
    run("pack", "images", "shards")


# ---- without a launcher


def test_plain_command_loads_no_mpi():
    make_arrays()
    if not shutil.which("strace"):
        print("  no strace: not checked")
        return
    call(["strace", "-f", "-e", "trace=openat", "-o", "trace", CATENA, "train", *ARRAYS,
          "--iterations", "2"])
    text = Path("trace").read_text(errors="replace")
    assert "libcatena.so" in text and "libmpi" not in text and "catena_mpi" not in text


def test_job_script_is_no_launcher():
    """The variables that sbatch sets for its script do not turn a plain command into a rank."""
    make_arrays()
    run("train", *ARRAYS, "--iterations", "2", "--out", "a",
        env={"SLURM_NTASKS": "4", "SLURM_JOB_ID": "1", "SLURM_PROCID": "0", "PJM_MPI_PROC": "4"})
    run("train", *ARRAYS, "--iterations", "2", "--out", "b",
        env={"SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"})


def test_singletons_are_stopped():
    make_arrays()
    step = {"SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_ID": "0"}
    done = run("train", *ARRAYS, code=3, env={**step, "SLURM_PROCID": "0"})
    assert "Slurm started 4 tasks but MPI" in done.stderr, done.stderr
    assert "srun --mpi=pmix" in done.stderr, done.stderr
    done = run("train", *ARRAYS, code=3, env={**step, "SLURM_PROCID": "2"})
    assert not own_lines(done), done.stderr
    assert not Path("result").exists()
    done = run("pack", "a", "b", code=3, env={**step, "SLURM_PROCID": "0"})
    assert "runs as a single task" in done.stderr, done.stderr
    done = run("train", *ARRAYS, code=3, env={**step, "SLURM_PROCID": "0", "PMIX_RANK": "0"})
    assert "srun --mpi=pmi2" in done.stderr and "--mpi=pmix" not in done.stderr, done.stderr


def test_nested_launchers():
    inner = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}
    done = run("selftest", code=3, env={**inner, "PMI_RANK": "1", "PMI_SIZE": "2"})
    assert "use only one launcher" in done.stderr, done.stderr
    run("info", env={**inner, "PMI_RANK": "1", "PMI_SIZE": "2"})
    run("selftest", env={**inner, "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1"})


def test_memory():
    make_arrays()
    done = run("train", *ARRAYS, "--hidden", "4000,4000", "--memory-gb", "0.05", code=5)
    found = re.search(r"make ([\d.]+) GB; --memory-gb is 0.05 GB: ([\d.]+) GB too much",
                      done.stderr)
    assert found and abs(float(found[1]) - float(found[2]) - 0.05) < 0.011, done.stderr


def test_memory_of_files():
    """Pages of files can be reclaimed, so neither data nor files mapped by a library count."""
    count = 400000
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({count}, 250), }}\n".encode()
    with open("x.npy", "wb") as f:  # 400 MB of zeros in a sparse file
        f.write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head)
        f.truncate(f.tell() + 4 * 250 * count)
    np.save("y.npy", np.zeros(count, dtype=np.float32))
    words = ["train", "mlp", "--data", "x.npy", "--target", "y.npy", "--hidden", "2500",
             "--batch", "4096", "--iterations", "2", "--quiet", "--memory-gb", "0.4"]
    run(*words, "--out", "data")
    if not shutil.which("cc"):
        print("  no cc: mapped files not checked")
        return
    Path("mapped.c").write_text("""
        #include <fcntl.h>
        #include <stdlib.h>
        #include <sys/mman.h>
        static volatile char sum;
        __attribute__((constructor)) static void touch(void) {
            const int file = open("x.npy", O_RDONLY);
            const char *p = mmap(NULL, 400000000, PROT_READ, MAP_SHARED, file, 0);
            if (p == MAP_FAILED) abort();
            for (long i = 0; i < 400000000; i += 4096) sum += p[i];
        }""")
    call(["cc", "-shared", "-fPIC", "-o", "mapped.so", "mapped.c"])
    run(*words, "--out", "mapped", env={"LD_PRELOAD": "./mapped.so"})


# ---- with a launcher


def test_same_losses():
    make_arrays()
    one = json.loads(run("train", *ARRAYS, "--batch", "32", "--epochs", "3", "--out", "r1").stdout)
    two = json.loads(ranks(2, CATENA, "train", *ARRAYS, "--batch", "16", "--epochs", "3",
                           "--out", "r2").stdout)
    assert two["ranks"] == 2 and two["iterations"] == one["iterations"]
    for key in ("train/loss", "val/loss"):
        assert abs(one[key] - two[key]) < 1e-4 * abs(one[key]), (key, one[key], two[key])
    assert len(Path("r2/log.jsonl").read_text().splitlines()) == 3
    words = ["eval", "mlp", "--weights", "r2/weights.safetensors", "--data", "x.npy",
             "--target", "y.npy", "--json"]
    alone, both = json.loads(run(*words).stdout), json.loads(ranks(2, CATENA, *words).stdout)
    for key, value in alone.items():
        there = both[key]
        same = there == value if isinstance(value, str) else abs(value - there) < 1e-5 * abs(value)
        assert same, (key, value, there)


def test_language_model():
    """A GPT on 4 ranks with sharded updates has the losses of one rank, for 10 steps to 1e-5."""
    rng = np.random.default_rng(2)
    rng.integers(0, 300, 4000, dtype=np.uint16).tofile("tokens.bin")
    words = ["train", "gpt", "--data", "tokens.bin", "--classes", "300", "--length", "32",
             "--width", "32", "--depth", "2", "--iterations", "10", "--log-iterations", "1",
             "--quiet", "--json"]

    def losses(out):
        return [json.loads(line)["train/loss"]
                for line in Path(out, "log.jsonl").read_text().splitlines()]

    run(*words, "--batch", "16", "--out", "one")
    ranks(4, CATENA, *words, "--batch", "4", "--shard", "--oversubscribe", "--out", "four")
    one, four = losses("one"), losses("four")
    assert len(one) == 10 and one[-1] < one[0], one
    assert max(abs(a - b) / a for a, b in zip(one, four)) < 1e-5, (one, four)


def test_resume():
    make_arrays()
    low = ["--precision", "bf16"] if has_bf16() else []
    for k, words in enumerate(([], ["--shard", *low])):
        job = ["train", *ARRAYS, *words]
        whole = json.loads(ranks(2, CATENA, *job, "--epochs", "4", "--out", f"a{k}").stdout)
        ranks(2, CATENA, *job, "--epochs", "2", "--out", f"b{k}")
        rest = json.loads(ranks(2, CATENA, "train", *ARRAYS, "--epochs", "4", "--resume",
                                "--out", f"b{k}").stdout)
        assert rest["iterations"] == whole["iterations"], (whole, rest)
        assert rest["train/loss"] == whole["train/loss"], (whole, rest)
        files = [Path(f"{run}{k}/weights.safetensors").read_bytes() for run in "ab"]
        assert files[0] == files[1], words


def test_verify_resume():
    """One rank or both are killed, and all of them are resumed."""
    done = json.loads(run("verify-resume", "mlp", "--ranks", "2", "--rounds", "2", "--json", "--",
                          "--iterations", "15", "--shard").stdout)
    assert done["ranks"] == 2 and done["rounds"] == 2 and done["identical"] is True, done


def elsewhere():
    """A script that starts rank 1 in another folder, where relative paths name other files."""
    Path("other").mkdir()
    Path("rank").write_text(f'[ "$OMPI_COMM_WORLD_RANK" != 1 ] || cd other\nexec "{CATENA}" "$@"\n')
    return ["sh", "rank", "train"]


def test_stop_while_mpi_starts():
    """Rank 0 gets SIGUSR1 while it waits in MPI_Init for rank 1, and saves all the same."""
    make_arrays()
    Path("rank").write_text('while [ "$OMPI_COMM_WORLD_RANK" = 1 ] && [ ! -e go ]; do sleep 0.05; '
                            f'done\necho $$ > pid.$OMPI_COMM_WORLD_RANK\nexec "{CATENA}" "$@"\n')
    job = start(MPIRUN, "--oversubscribe", "-np", 2, "sh", "rank", "train", *ARRAYS, "--epochs", 0,
                "--iterations", 10 ** 9, "--save-iterations", 10 ** 9)

    def waits():
        try:
            pid = int(Path("pid.0").read_text())
            return "catena_mpi" in Path(f"/proc/{pid}/maps").read_text() and pid
        except (OSError, ValueError):
            return 0
    wait_for(waits, "MPI to start")
    os.kill(waits(), signal.SIGUSR1)
    Path("go").touch()
    _, text = job.communicate(timeout=LIMIT)
    assert job.returncode == 85 and "stopped (SIGUSR1)" in text, (job.returncode, text)
    assert Path("result/unfinished").exists()


def test_resume_where_one_rank_sees_nothing():
    """Rank 0 reads the state and sends it to the other ranks, which need no result folder."""
    make_arrays()
    words = [w if w not in ("x.npy", "y.npy") else Path(w).resolve() for w in ARRAYS]
    for k, more in enumerate(([], ["--shard"])):
        job = ["train", *words, *more, "--batch", "16"]
        whole = json.loads(ranks(2, CATENA, *job, "--iterations", "30", "--out", f"a{k}").stdout)
        ranks(2, CATENA, *job, "--iterations", "20", "--out", f"b{k}")
        start = elsewhere() if k == 0 else ["sh", "rank", "train"]
        done = ranks(2, *start, "--resume", "--iterations", "30", "--out", f"b{k}", "--quiet",
                     "--json")
        assert "resuming at iteration 20" in done.stderr, done.stderr
        rest = json.loads(done.stdout)
        # train/loss is the mean since the last row of the log, and every run ends with a row
        assert rest["iterations"] == 30, (whole, rest)
        assert abs(rest["val/loss"] / whole["val/loss"] - 1) < 1e-9, (whole, rest)
        files = [Path(f"{run}{k}/weights.safetensors").read_bytes() for run in "ab"]
        assert files[0] == files[1]
    assert not list(Path("other").iterdir())


def test_resume_on_other_ranks():
    """2, 3 and 1 ranks in one epoch: the samples per step stay the same, and each sample is used
    once."""
    make_arrays(480)
    words = [w for w in ARRAYS if w not in ("--val-share", "0.1")] + ["--oversubscribe"]
    whole = json.loads(run("train", *words, "--batch", "24", "--epochs", "2",
                           "--out", "whole").stdout)
    assert whole["iterations"] == 40 and whole["samples"] == 960
    ranks(2, CATENA, "train", *words, "--batch", "12", "--epochs", "2", "--iterations", "5",
          "--out", "a")
    again = ["train", "--resume", "--out", "a", "--quiet", "--json", "--epochs", "2"]
    done = ranks(3, CATENA, *again, "--iterations", "12", "--oversubscribe")
    assert "a step keeps its 24 samples, 8 for each rank" in done.stderr, done.stderr
    assert json.loads(done.stdout)["samples"] == 12 * 24, done.stderr
    done = ranks(5, CATENA, *again, "--iterations", "0", "--batch", "5", "--oversubscribe", code=2)
    assert len(own_lines(done)) == 1, done.stderr
    assert "24 samples in a step of all ranks, which cannot change" in done.stderr, done.stderr
    done = ranks(5, CATENA, *again, "--iterations", "14", "--oversubscribe")
    assert "up to 5 for each rank" in done.stderr, done.stderr
    assert json.loads(done.stdout)["samples"] == 14 * 24, done.stderr
    run(*again, "--iterations", "15", "--batch", "8", "--accumulate", "3")
    assert "ranks: 1\n" in Path("a/config.yaml").read_text()
    rest = json.loads(ranks(4, CATENA, *again, "--iterations", "0", "--accumulate", "1",
                            "--oversubscribe").stdout)
    assert rest["iterations"] == 40 and rest["samples"] == 960 and rest["epochs"] == 2, rest
    assert abs(rest["train/loss"] / whole["train/loss"] - 1) < 1e-4, (whole, rest)
    log = [json.loads(line) for line in Path("a/log.jsonl").read_text().splitlines()]
    # one row at the end of every run and of every epoch
    found = [(row["iteration"], row["samples"]) for row in log]
    assert found == [(n, 24 * n) for n in (5, 12, 14, 15, 20, 40)], log


def test_reproducible():
    """The same losses and weights, to the bit, on 1 and 3 ranks, on any number of threads, and if
    another number of ranks resumes."""
    make_arrays(480)
    words = ["train", *ARRAYS, "--total-batch", "20", "--blocks", "7", "--reproducible"]
    steps = [*words, "--epochs", "0", "--log-iterations", "1", "--oversubscribe"]

    def results(out):
        log = [json.loads(line) for line in Path(out, "log.jsonl").read_text().splitlines()]
        return [row["train/loss"] for row in log], Path(out, "weights.safetensors").read_bytes()

    run(*steps, "--iterations", "30", "--threads", "1", "--out", "one")
    run(*steps, "--iterations", "30", "--threads", "2", "--out", "threads")
    ranks(3, CATENA, *steps, "--iterations", "11", "--out", "three")
    ranks(2, CATENA, "train", "--resume", "--out", "three", "--iterations", "30", "--quiet",
          "--json", "--oversubscribe")
    assert len(results("one")[0]) == 30
    assert results("threads") == results("one")
    rows, weights = results("three")
    assert sorted(set(rows)) == sorted(set(results("one")[0])) and weights == results("one")[1]
    for more, text in ((["--shard"], "cannot be combined with --shard"),
                       (["--total-batch", "0"], "needs --total-batch"),
                       (["--blocks", "21"], "--blocks is 21")):
        done = run(*words, *more, "--out", "no", code=2)
        assert text in done.stderr, done.stderr


def test_other_data():
    """A rank that sees other data is named, in one error for the whole job."""
    make_arrays()
    start = elsewhere()
    os.chdir("other")
    make_arrays(580)
    os.chdir("..")
    done = ranks(3, *start, *ARRAYS, "--val-share", "0", "--batch", "16", "--oversubscribe", code=4)
    lines = [line for line in own_lines(done) if "error:" in line]
    says = "error: rank 1 has 580 training samples, rank 0 has 515 training samples"
    assert len(lines) == 1 and says in lines[0], done.stderr
    assert not Path("result/state").exists()


def test_sharded_weights():
    """With --shard and bf16 the ranks hold weights in 16 bits, but the file has the optimizer's f32
    weights."""
    if not has_bf16():
        print("no kernels for bf16 here")
        return
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
    launcher = [MPIRUN, "--oversubscribe", "--bind-to", "none"]
    words = [CATENA, "train", *ARRAYS, "--iterations", "2", "--allreduce", "ring"]
    done = ranks(n, *words, launcher=launcher, code=3)
    assert len(own_lines(done)) == 1, done.stderr
    assert "--oversubscribe" in done.stderr and f"{n} ranks" in done.stderr, done.stderr
    done = ranks(n, *words, "--oversubscribe", launcher=launcher)
    assert done.stderr.count("OVERSUBSCRIBED") == 1, done.stderr


def cpus_of(text):
    """The CPUs of "0-3,8"."""
    ends = [part.split("-") for part in text.split(",")]
    return {c for end in ends for c in range(int(end[0]), int(end[-1]) + 1)}


def test_ranks_bound_in_groups():
    """Like mpirun's default binding with several NUMA nodes: two ranks on the first half, two on
    the second."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        print("  one CPU: not checked")
        return
    make_arrays()
    halves = cpus[:len(cpus) // 2], cpus[len(cpus) // 2:]
    first, second = (",".join(map(str, half)) for half in halves)
    bind = f'cpus=$1; shift; exec taskset -c "$cpus" "{CATENA}" "$@"\n'
    Path("rank").write_text(f'[ $OMPI_COMM_WORLD_RANK -lt 2 ] && set -- {first} "$@" || '
                            f'set -- {second} "$@"\n{bind}')
    launcher = [MPIRUN, "--oversubscribe", "--bind-to", "none"]
    words = ["sh", "rank", "train", *ARRAYS, "--iterations", "2"]
    done = ranks(4, *words, launcher=launcher, code=None)
    if done.returncode != 0:  # a half is one core
        assert done.returncode == 3 and "2 ranks share 1 core (CPUs " in done.stderr, done.stderr
        done = ranks(4, *words, "--oversubscribe", launcher=launcher)
    rows = [line.split() for line in done.stderr.splitlines() if re.match(r"^ +[0-3]  ", line)]
    sets = [cpus_of(row[2]) for row in rows]
    assert len(sets) == 4 and all(sets[r] <= set(halves[r // 2]) for r in range(4)), (halves, sets)
    if "OVERSUBSCRIBED" not in done.stderr:
        assert sum(map(len, sets)) == len(cpus) and set().union(*sets) == set(cpus), sets
    if len(cpus) < 3:
        return
    Path("rank").write_text(f'[ $OMPI_COMM_WORLD_RANK = 0 ] && set -- {cpus[0]},{cpus[1]} "$@" || '
                            f'set -- {cpus[1]},{cpus[2]} "$@"\n{bind}')
    done = ranks(2, *words, launcher=launcher, code=3)
    assert "overlap but are not the same" in done.stderr and len(own_lines(done)) == 1, done.stderr


def test_files_of_other_ranks():
    """Only rank 0 opens the configuration, indexes and weights."""
    if not shutil.which("strace"):
        print("  no strace: not checked")
        return
    make_shards()
    Path("mine.yaml").write_text("model: lenet5\ndata: shards\nsize: 28\nbatch: 8\niterations: 2\n"
                                 "val-share: 0.25\n")
    run("train", "--config", "mine.yaml", "--quiet", "--out", "first")
    Path("rank").write_text('exec strace -f -e trace=openat,open -o trace.$OMPI_COMM_WORLD_RANK '
                            f'"{CATENA}" "$@"\n')
    ranks(2, "sh", "rank", "train", "--config", "mine.yaml",
          "--weights", "first/weights.safetensors", "--quiet", "--out", "second")
    ours, others = (Path(f"trace.{r}").read_text(errors="replace") for r in (0, 1))
    for what in ("mine.yaml", ".tar.index", "first/weights.safetensors"):
        assert what in ours, f"rank 0 did not open {what}"
        assert what not in others, [line for line in others.splitlines() if what in line]
    assert ".tar" in others
    assert "second/" not in others, [line for line in others.splitlines() if "second/" in line]
    ranks(2, "sh", "rank", "train", "--resume", "--iterations", "4", "--quiet", "--out", "second")
    ours, others = (Path(f"trace.{r}").read_text(errors="replace") for r in (0, 1))
    assert ours.count("second/state/0") >= 3, "rank 0 did not read the state"
    assert "second/" not in others, [line for line in others.splitlines() if "second/" in line]
    words = ["eval", "lenet5", "--weights", "first/weights.safetensors", "--data", "shards"]
    ranks(2, "sh", "rank", *words)
    others = Path("trace.1").read_text(errors="replace")
    for what in ("first/config.yaml", ".tar.index", "first/weights.safetensors"):
        assert what not in others, [line for line in others.splitlines() if what in line]


def test_only_rank_0_writes():
    """With every extension that writes files, the other ranks write nothing."""
    if not shutil.which("strace"):
        print("  no strace: not checked")
        return
    make_arrays()
    Path("rank").write_text('exec strace -f -s 4096 -e trace=%file -o trace.$OMPI_COMM_WORLD_RANK '
                            f'"{CATENA}" "$@"\n')
    writes = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|"
                        r"^\d+ +(?:mkdir|rename|unlink|link|symlink|truncate|rmdir)")
    here = str(Path.cwd())
    for words in ([], ["--shard", "--resume", "--epochs", "3"]):
        ranks(2, "bash", "rank", "train", *ARRAYS, "--epochs", "2", "--ema", "0.9", "--tensorboard",
              "--timeline", f"{here}/timeline.json", "--early-stop", "9", "--schedule", "plateau",
              "--save-minutes", "0.0001", "--log-iterations", "3", "--out", f"{here}/out", *words)
        traces = [Path(f"trace.{r}").read_text(errors="replace").splitlines() for r in (0, 1)]
        ours, others = ([line for line in one
                         if writes.search(line) and here in line and "execve" not in line]
                        for one in traces)
        for what in ("average.safetensors", "best.safetensors", "log.jsonl", "tensorboard",
                     "timeline.json", "state"):
            assert any(what in line for line in ours), f"rank 0 did not write {what}"
        assert not others, others


def test_others_do_not_look():
    """Only rank 0 lists folders; other ranks open a file only when they read a sample from it."""
    if not shutil.which("strace"):
        print("  no strace: not checked")
        return
    make_shards()
    names = sorted(Path("images").glob("*/*.png"))
    Path("many").mkdir()
    for k in range(12):
        with tarfile.open(f"many/{k:03d}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for name in names[4 * k:4 * k + 4]:
                tar.add(name, f"{name.parent.name}{name.stem}.png")
                Path("cls").write_text(str(k % 2))
                tar.add("cls", f"{name.parent.name}{name.stem}.cls")
    Path("rank").write_text('exec strace -f -y -e trace=file,getdents64,getdents '
                            f'-o trace.$OMPI_COMM_WORLD_RANK "{CATENA}" "$@"\n')
    words = ["train", "lenet5", "--size", "28", "--batch", "2", "--iterations", "1",
             "--loader-threads", "0", "--quiet", "--force", "--classes", "2", "--val-share"]

    def traces(data, share):
        ranks(2, "sh", "rank", *words, share, "--data", data)
        lines = [Path(f"trace.{r}").read_text(errors="replace").splitlines() for r in (0, 1)]
        about = re.compile(f'"{data}[/"]|{os.path.realpath(data)}[/">]')
        ours, others = ([x for x in one if about.search(x) and " execve(" not in x]
                        for one in lines)
        assert any("getdents" in line for line in ours), "rank 0 did not list the folder"
        return ours, others

    # The samples of one batch, of one more if the trainer prefetches, and finally this rank's half
    # of the validation data.
    for share, most in (("0", 4), ("0.25", 4 + len(names) // 8)):
        _, others = traces("images", share)
        assert 2 <= len(others) <= most, others
        assert all("open" in x and '.png"' in x for x in others), others
        ours, others = traces("many", share)
        assert sum(".tar.index" in x for x in ours) >= 12
        assert 1 <= len(others) <= most, others
        assert all("open" in x and '.tar"' in x for x in others), others
    # A rank that has the index does not open the original of a shard that is staged already.
    words[-1:-1] = ["--stage", "local"]
    traces("many", "0")
    assert traces("many", "0")[1] == []


def test_killed_rank():
    make_arrays()
    # mpirun kills all ranks 1 s after the shell of one ended, so the shells wait for each other.
    Path("rank").write_text(f'trap "" TERM\n"{CATENA}" "$@" &\n'
                            'echo $! > pid.$OMPI_COMM_WORLD_RANK\nwait $!\ncode=$?\n'
                            'echo $code > code.$OMPI_COMM_WORLD_RANK\n'
                            'for _ in $(seq 600); do\n'
                            '[ -s code.0 ] && [ -s code.1 ] && [ -s code.2 ] && break\n'
                            'sleep 0.1\ndone\nexit $code\n')
    words = ["train", *ARRAYS, "--epochs", "0", "--hours", "1", "--oversubscribe"]
    job = start(MPIRUN, "--oversubscribe", "-np", 3, *APART, "bash", "rank", *words)
    wait_for_steps()
    os.kill(int(Path("pid.1").read_text()), signal.SIGKILL)
    notice = job.communicate(timeout=LIMIT)[1]
    text = printed("err")
    assert job.returncode != 0, (notice, text)
    lines = [line for line in text.splitlines() if "error: rank 1 on " in line]
    assert len(lines) == 1 and re.search(r"died, step [1-9]", lines[0]), text
    assert Path("code.0").read_text() == "7\n" and Path("code.2").read_text() == "7\n"


def test_different_options():
    def apart(first, other, code):
        """Two ranks with different options. (The mpirun of Debian 13 crashes on "words : other
        words".)"""
        lines = ['if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then', "exec " + " ".join(map(str, first)),
                 "fi", "exec " + " ".join(map(str, other))]
        Path("rank").write_text("\n".join(lines) + "\n")
        return ranks(2, "bash", "rank", code=code).stderr

    make_arrays()
    base = [CATENA, "train", *ARRAYS, "--epochs", "1", "--oversubscribe", "--quiet"]
    first = [*base, "--lr", "0.1"]
    for other, says in (([*base, "--lr", "0.2"], "rank 1 has --lr 0.2, rank 0 has --lr 0.1"),
                        (base, "rank 1 has no --lr, rank 0 has --lr 0.1"),
                        ([*first, "--shard"], "rank 1 has --shard, rank 0 has no --shard")):
        error = apart(first, other, code=2)
        assert error.count(says) == 1, error
        assert not Path("result").exists()
    apart(first, [*base, "--lr=0.1"], code=0)


def test_mpirun_is_ended():
    """Open MPI's mpirun kills its ranks right after SIGTERM. Rank 0 prints at the start how to
    stop, and again on the terminal after the signal. After SIGUSR1 the state is saved."""
    make_arrays()
    mpirun = [MPIRUN, "--oversubscribe", "-np", "2"]
    words = [str(CATENA), "train", *ARRAYS, "--epochs", "0", "--hours", "1", "--oversubscribe",
             "--quiet", "--force"]
    job = start(*mpirun, *APART, *words)
    wait_for(lambda: Path("result/unfinished").exists(), "the first state")
    job.send_signal(signal.SIGUSR1)
    job.communicate(timeout=LIMIT)
    text = printed("err")
    assert f"to stop and save: kill -USR1 {job.pid} (" in text, text
    assert text.count("catena: SIGUSR1: stopping after this step") == 1, text
    assert job.returncode == 85 and "stopped (SIGUSR1)" in text, text
    Path("result/unfinished").unlink()
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(MPIRUN, [*mpirun, *words], ENV)
    wait_for(lambda: Path("result/unfinished").exists(), "the first state")
    os.write(terminal, b"\x03")
    seen = b""
    try:
        while part := os.read(terminal, 4096):
            seen += part
    except OSError:
        pass  # it has ended
    os.waitpid(pid, 0)
    says = "SIGTERM: this mpirun leaves no time to save the state; to stop and save: kill -USR1"
    assert f"{says} {pid}" in seen.decode(), seen


def listening(pid):
    """(address, port) of the TCP sockets that a process listens on."""
    links = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            links.append(os.readlink(link))
        except FileNotFoundError:
            pass  # closed in the meantime
    inodes = {link[8:-1] for link in links if link.startswith("socket:")}
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return [tuple(row[1].split(":")) for row in rows if row[3] == "0A" and row[9] in inodes]


def test_watchdog_listens_no_more():
    """Rank 0 listens on the loopback address, and only until all ranks have joined. MPI's own
    sockets are ignored."""
    make_arrays()
    strace = shutil.which("strace")
    watch = f'{strace} -f -e trace=bind,listen -o trace.$OMPI_COMM_WORLD_RANK' if strace else ""
    Path("rank").write_text(f'echo $$ > pid.$OMPI_COMM_WORLD_RANK\nexec "{CATENA}" "$@"\n')
    words = [MPIRUN, "--oversubscribe", "-np", "2", "bash", "rank", "train", *ARRAYS]
    job = start(*words, "--epochs", "0", "--hours", "1")
    wait_for_steps()
    pid = int(Path("pid.0").read_text())
    wait_for(lambda: not listening(pid), "the end of listening")
    os.kill(pid, signal.SIGUSR1)
    job.communicate(timeout=LIMIT)
    assert job.returncode == 85, job.returncode
    if not strace:
        print("  no strace: listening addresses not checked")
        return
    Path("rank").write_text(f'exec {watch} "{CATENA}" "$@"\n')
    call([*words, "--iterations", "2", "--out", "other"])
    trace = Path("trace.0").read_text(errors="replace")
    bound = re.findall(r'bind\(.*AF_INET, .*inet_addr\("([^"]*)"\)', trace)
    assert bound == ["127.0.0.1"], bound


# ---- the result folder


FOREVER = [*ARRAYS, "--epochs", "0", "--hours", "0.1", "--resume"]


def test_two_jobs_in_a_folder():
    """All ranks of the second job end with the same code, and rank 0 prints why."""
    make_arrays()
    first = start(MPIRUN, "--oversubscribe", "-np", 2, CATENA, "train", *FOREVER)
    wait_for(lambda: Path("result/plan.txt").exists(), "the first job")
    done = ranks(2, CATENA, "train", *FOREVER, code=3)
    lines = own_lines(done)
    assert len(lines) == 1 and "another job is running in result (on " in lines[0], done.stderr
    assert first.poll() is None
    first.send_signal(signal.SIGUSR1)
    out, err = first.communicate(timeout=LIMIT)
    assert first.returncode == 85, (first.returncode, err)


def test_signal_to_the_launcher():
    """mpirun may lose the exit code or leave no time to save: the folder shows whether to
    resume."""
    make_arrays(64)
    words = [CATENA, "train", *ARRAYS, "--epochs", "0", "--iterations", "100000000",
             "--resume"]
    launchers = [[MPIRUN, "--oversubscribe"]] + [[m] for m in [shutil.which("mpirun.mpich")] if m]

    def saved():
        return max((int(p.name) for p in Path("result/state").glob("0*")), default=0)

    for launcher in launchers:
        for number, code in ((signal.SIGUSR1, 85), (signal.SIGTERM, None)):
            shutil.rmtree("result", ignore_errors=True)
            job = start(*launcher, "-np", 2, *words)
            wait_for(lambda: saved() > 1 and Path("result/unfinished").exists(), "a saved state")
            job.send_signal(number)
            err = job.communicate(timeout=LIMIT)[1]
            assert job.returncode == code if code else job.returncode != 0, \
                (launcher, number, job.returncode, err)
            assert Path("result/unfinished").exists(), (launcher, number, err)
            last = saved()  # or one more: a rank may still be saving when mpirun has ended
            done = ranks(2, *words, "--iterations", "1", launcher=launcher)
            assert json.loads(done.stdout)["iterations"] >= last > 1, (last, done.stdout)
            assert not Path("result/unfinished").exists(), done.stdout


FOREIGN = ("running\nhost far\npid 12\njob PBS job 5.far\nsince 2026-01-02T03:04:05Z\n"
           "boot elsewhere\nbeat 7\n")


def test_folder_after_a_crash():
    """How a job detects that the previous one is gone. strace changes how long a second of its
    waiting takes."""
    if not shutil.which("strace"):
        print("  no strace: not checked")
        return
    make_arrays()

    def words(second_ms):
        return ["strace", "-f", "-o", "trace", "-e", "trace=clock_nanosleep",
                "-e", f"inject=clock_nanosleep:retval=0:delay_exit={1000 * second_ms}",
                CATENA, "train", *ARRAYS, "--iterations", "2", "--resume"]

    Path("result").mkdir()
    file = Path("result/job.txt")
    # A job on another host was killed: it is silent, and the lock is free.
    file.write_text(FOREIGN)
    done = call(words(20))
    waits = "a job that has not released it (on far, process 12, PBS job 5.far"
    assert waits in done.stderr, done.stderr
    assert file.read_text().startswith("complete\n")
    # A host crashed: the server keeps its lock for a while, or forever.
    says = f"no sign of life for 150 s: if you are sure that it is gone, remove {file}"
    lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    for kept, second_ms in ((True, 20), (False, 400)):  # 400 ms: it waits for up to 60 s
        file.write_text(FOREIGN)
        with file.open("r+") as held:
            fcntl.fcntl(held, 37, lock)  # F_OFD_SETLK
            job = start(*words(second_ms))
            if not kept:
                assert waits in job.stderr.readline()
                held.close()
            text = job.communicate(timeout=LIMIT)[1]
            assert job.returncode == (3 if kept else 0), (job.returncode, text)
            assert not kept or says in text, text


def test_folder_without_locks():
    """There is a warning, and a running job is detected by its beat."""
    if not shutil.which("strace"):
        print("  no strace: not checked")
        return
    make_arrays()
    no_locks = ["strace", "-f", "-o", "trace", "-P", f"{Path.cwd().resolve()}/result/job.txt",
                "-e", "trace=fcntl", "-e", "inject=fcntl:error=ENOLCK"]
    words = [*no_locks, CATENA, "train", *FOREVER]
    first = start(*words)
    wait_for(lambda: Path("result/plan.txt").exists(), "the first job")
    done = call(words, code=3)
    assert "another job is running in result" in done.stderr, done.stderr
    pid = int(re.search(r"^pid (\d+)$", Path("result/job.txt").read_text(), re.M)[1])
    os.kill(pid, signal.SIGTERM)
    text = first.communicate(timeout=LIMIT)[1]
    assert first.returncode == 85, text
    assert "warning: result does not support file locks (No locks available)" in text, text


def test_signal_to_one_rank():
    """All ranks stop after the same step, and the state is saved."""
    make_arrays()
    Path("rank").write_text(f'echo $$ > pid.$OMPI_COMM_WORLD_RANK\nexec "{CATENA}" "$@"\n')
    words = ["train", *ARRAYS, "--epochs", "0", "--hours", "1"]
    job = start(MPIRUN, "--oversubscribe", "-np", 2, *APART, "bash", "rank", *words)
    wait_for_steps()
    os.kill(int(Path("pid.1").read_text()), signal.SIGUSR1)
    notice = job.communicate(timeout=LIMIT)[1]
    assert job.returncode == 85, (job.returncode, notice, printed("err"))
    stopped = json.loads(printed("out"))
    rest = json.loads(ranks(2, CATENA, "train", "--resume", "--hours", "0", "--iterations",
                            stopped["iterations"] + 5, "--quiet", "--json").stdout)
    assert rest["iterations"] == stopped["iterations"] + 5, rest


def test_timeline_of_some_ranks():
    make_arrays()
    words = ["train", *ARRAYS, "--iterations", "8", "--timeline-steps", "3", "--oversubscribe"]
    for n, expected in (("2", [0, 1]), ("0", [0, 1, 2])):
        ranks(3, CATENA, *words, "--timeline", "t.json", "--timeline-ranks", n, "--out", f"r{n}")
        facts = json.loads(Path("t.json").read_text())["otherData"]
        assert facts["ranks"] == 3 and facts["recorded_ranks"] == expected, (n, facts)
        for key in ("clock_ahead_ns", "clock_within_ns", "lost_spans"):
            assert len(facts[key]) == len(expected), (n, key, facts)
        split = json.loads(run("timeline", "t.json", "--json").stdout)
        assert split["job_ranks"] == 3 and split["steps"] == 3, split
        assert [r["rank"] for r in split["by_rank"]] == expected, split
    ranks(2, CATENA, "bench", "mlp", "--batch", "4", "--steps", "3", "--timeline", "b.json",
          "--timeline-ranks", "1", "--oversubscribe")
    assert json.loads(run("timeline", "b.json", "--json").stdout)["ranks"] == 1


def test_stop_near_the_end():
    """Exit code 85 if steps remain, 0 if the signal came during the last step. The network sends
    the signal to its own process in a chosen forward pass: each of 2 epochs has 3 batches of
    training and 1 of evaluation."""
    make_arrays(64)
    text = (SOURCE / "examples/own_model/mymodel.c").read_text()
    text = text.replace("#include <stdlib.h>", "#include <signal.h>\n#include <stdlib.h>")
    text = text.replace("    mymodel *net = self;\n", """    mymodel *net = self;
    static int calls;
    const char *at = getenv("SIGNAL_AT"), *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (++calls == atoi(at ? at : "0") && (!rank || rank[0] == '1')) raise(SIGUSR1);
""", 1)
    Path("signal.c").write_text(text)
    call(["cc", "-shared", "-fPIC", f"-I{SOURCE}/include", "signal.c", "-o", "signal.so"])

    def train(n, at, out, code):
        words = [CATENA, "train", "./signal.so", "--data", "x.npy", "--target", "y.npy",
                 "--val-share", "0.25", "--batch", 16 // n, "--epochs", "2", "--json", "--quiet",
                 "--out", out, "--resume", "--allreduce", "ring"]
        env = {"SIGNAL_AT": str(at)}
        done = ranks(n, *words, env=env, code=code) if n > 1 else call(words, env=env, code=code)
        return json.loads(done.stdout)

    # Forward passes: t1 t2 t3 e1 t4 t5 t6 e2. Cases map the number of the pass to the steps done
    # when all ranks have stopped. Several ranks agree by a message that is sent with the gradients
    # of the next step.
    for n, cases in ((1, {4: 3, 6: 5, 7: 6, 8: 6}), (2, {5: 5, 6: 6, 8: 6})):
        whole = train(n, 0, f"whole{n}", 0)
        for at, steps in cases.items():
            out = f"part{n}.{at}"
            done = train(n, at, out, 0 if steps == 6 else 85)
            assert done["iterations"] == steps, (n, at, done)
            assert (done["stopped"] is None) == (steps == 6), (n, at, done)
            assert steps < 6 or "val/loss" in done, done
            rest = train(n, 0, out, 0)
            assert rest["iterations"] == 6, (n, at, whole, rest)
            assert rest["val/loss"] == whole["val/loss"], (n, at, whole, rest)
            same = [Path(d, "weights.safetensors").read_bytes() for d in (f"whole{n}", out)]
            assert same[0] == same[1], (n, at)


def test_selftest():
    alone = json.loads(run("selftest", "--json").stdout)
    assert alone["ranks"] == 1 and alone["failed"] == 0
    both = json.loads(ranks(2, CATENA, "selftest", "--json").stdout)
    checks = {c["check"]: c["result"] for c in both["checks"]}
    assert both["ranks"] == 2 and both["failed"] == 0 and both["seconds"] > 0
    for name in ("binding", "convolution", "training step", "allreduce ring", "allreduce flat",
                 "allreduce hierarchical", "allreduce auto", "clock", "file locks"):
        assert checks[name] == "ok", (name, checks)
    assert "all checks passed" in ranks(2, CATENA, "selftest").stdout


def main():
    tests = {name[5:]: fn for name, fn in globals().items() if name.startswith("test_")}
    chosen = sys.argv[2:] or list(tests)
    for name in chosen:
        with (tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
              tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as ENV["TMPDIR"]):
            os.chdir(folder)
            began = time.monotonic()
            try:
                tests[name]()
            finally:
                for job in STARTED:
                    job.kill()
                STARTED.clear()
            print(f"ok {name} ({time.monotonic() - began:.1f} s)", flush=True)
            os.chdir("/")


main()
