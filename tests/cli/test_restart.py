#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/cli/test_restart.py CATENA [NAME ...]: `catena launch` on this machine, with the mpirun of
Open MPI and, if it is installed, the mpiexec of MPICH.

tests/cluster/test_restart.sh tests several hosts. Every test runs in an empty folder, and after it
no process of its jobs may be left. Without mpirun or NumPy: skipped (77).
"""
import json
import os
import re
import shutil
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

CATENA = Path(sys.argv[1]).resolve()
MPIRUN = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
VERSION = [MPIRUN, "--version"]
if not MPIRUN or "Open" not in subprocess.run(VERSION, capture_output=True, text=True).stdout:
    print("skipped: no mpirun of Open MPI here")
    sys.exit(77)
MPICH = shutil.which("mpiexec.mpich")
LAUNCHERS = re.compile(r"^(OMPI_|PMIX_|PMI_|SLURM_|PJM_|CATENA_)")
MARK = f"TEST_RESTART={os.getpid()}.{time.time_ns()}"  # of all processes that the tests start
ENV = {k: v for k, v in os.environ.items() if not LAUNCHERS.match(k)}
# A killed mpirun leaves a folder in TMPDIR, named after its pid, and a later mpirun that gets the
# same pid fails. So each test has a TMPDIR of its own.
ENV |= {"CATENA_TUNE": "0", "CATENA_CACHE_DIR": "none", "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "passive", "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "self,sm"}
ENV |= dict([MARK.split("=")])
# The fastest allreduce is measured anew by each start; bit-identical runs need a fixed one.
TRAIN = ["train", "mlp", "--data", "x.npy", "--target", "y.npy", "--hidden", "16", "--batch", "16",
         "--epochs", "0", "--allreduce", "ring", "--oversubscribe", "--quiet"]
FOREVER = [*TRAIN, "--iterations", 10 ** 9, "--save-iterations", 20]
LIMIT = 300  # seconds; a program that takes longer hangs, even on a busy machine


def make_arrays(n=515):
    x = np.random.default_rng(1).normal(size=(n, 6)).astype(np.float32)
    np.save("x.npy", x)
    np.save("y.npy", (x[:, 0] - 2 * x[:, 3]).astype(np.float32))


def launch(*words, mpirun=MPIRUN):
    """Starts `catena launch`; its output goes to files, so that no pipe stays open. With --json,
    the output of mpirun and of the ranks is in err."""
    with open("out", "w") as out, open("err", "w") as err:
        return subprocess.Popen([CATENA, "launch", "--mpirun", mpirun, *map(str, words)], env=ENV,
                                stdout=out, stderr=err, stdin=subprocess.DEVNULL)


def ending():
    return json.loads(Path("out").read_text())


def error():
    return Path("err").read_text(errors="replace")


def finish(job, code=0):
    found = job.wait(timeout=LIMIT)
    assert found == code or code is None and found != 0, (found, error())
    return error()


def variables(pid):
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def marked():
    """The environments of all living processes of this test, by process id."""
    found = {int(p.name): variables(p.name) for p in Path("/proc").glob("[0-9]*")}
    return {pid: v for pid, v in found.items() if MARK in v and pid != os.getpid()}


def rank(n):
    """The process of a rank that runs catena; None: there is none."""
    for pid, text in marked().items():
        try:
            program = os.readlink(f"/proc/{pid}/exe")
        except OSError:
            continue
        if program == str(CATENA) and {f"OMPI_COMM_WORLD_RANK={n}", f"PMI_RANK={n}"} & set(text):
            return pid
    return None


def wait_for(condition, what):
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, f"waited {LIMIT} s for {what}: {error()}"
        time.sleep(0.02)


def latest():
    """The number of the last checkpoint; -1: there is none."""
    return max((int(p.name) for p in Path("result/state").glob("0*")), default=-1)


def saved():
    return Path("result/unfinished").exists() and latest() >= 0


def kill_rank(n):
    wait_for(saved, "a checkpoint")
    os.kill(rank(n), signal.SIGKILL)


def wait_for_restart():
    """Waits until the job that was started again has taken steps."""
    wait_for(lambda: "resuming at iteration" in error(), "the restart")
    before = latest()
    wait_for(lambda: latest() > before, "a checkpoint after the restart")


# ---- without a job


def test_command():
    make_arrays()

    def dry(*words, code=0):
        done = subprocess.run([CATENA, "launch", "--dry-run", *words], env=ENV, text=True,
                              capture_output=True, check=False)
        assert done.returncode == code, (words, done.stderr)
        return (done.stdout if code == 0 else done.stderr).strip()

    own = " ".join([str(CATENA), *TRAIN])
    assert dry("-n", "2", "--mpirun", MPIRUN, "--", *TRAIN[:-2]) == \
        f"{MPIRUN} -n 2 --host localhost:2 --map-by slot --bind-to none {own}".rsplit(" ", 2)[0]
    two = dry("-n", "4", "--hosts", "a,b", "--mpirun", MPIRUN, "--", *TRAIN)
    assert "-n 4 --host a:2,b:2 --map-by slot:OVERSUBSCRIBE --bind-to none --prtemca" in two, two
    assert " -x CATENA_TUNE " in two and " -x OMP_NUM_THREADS " in two and two.endswith(own), two
    for words in (["-n", "2"], ["--hosts", "a,b"]):
        survive = dry(*words, "--survive", "--mpirun", MPIRUN, "--", *TRAIN)
        assert survive.count(" --with-ft ulfm ") == 1 and "--mca" not in survive, survive
    Path("hosts").write_text("# the hosts\na slots=2\nb:1\n\nc\nc\n")
    some = dry("--hostfile", "hosts", "--mpirun", MPIRUN, "--", "selftest")
    assert "-n 5 --host a:2,b:1,c:2 " in some and some.endswith(f"{CATENA} selftest"), some
    assert "do not fit" in dry("-n", "6", "--hostfile", "hosts", "--", "selftest", code=2)
    words = json.loads(dry("-np", "3", "--json", "--mpirun", MPIRUN, "--", "train", "mlp", "--out",
                           "it's"))
    assert words["command"][-2:] == ["--out", "it's"] and words["mpi"].startswith("Open MPI")
    assert dry("-n", "3", "--", "train", "mlp", "--out", "it's").endswith("--out 'it'\\''s'")
    for words, says in ((["-n", "2"], "expected -- and a command"),
                        (["--", "selftest"], "how many ranks?"),
                        (["-n", "2", "--", "trian"], "no command 'trian'"),
                        (["-n", "2", "--", "pack", "a", "b"], "does not run on several ranks"),
                        (["-n", "2", "--", "train", "mlp", "--epcohs", "3"], "--epochs?"),
                        (["-n", "2", "--hosts", "a:0", "--", "selftest"], "number of ranks"),
                        (["-n", "2", "--hosts", "a", "--hostfile", "hosts", "--", "selftest"],
                         "not both")):
        found = dry(*words, code=2)
        assert says in found and found.count("\n") == 0, (words, found)
    assert "cannot run nothing" in dry("-n", "2", "--mpirun", "nothing", "--", "selftest", code=3)
    assert "does not name an MPI" in dry("-n", "2", "--mpirun", "cat", "--", "selftest", code=3)
    if not MPICH:
        print("  no mpiexec.mpich: not checked")
        return
    assert dry("-n", "2", "--mpirun", MPICH, "--", *TRAIN) == f"{MPICH} -n 2 {own}"
    assert dry("-n", "4", "--hosts", "a,b", "--mpirun", MPICH, "--", *TRAIN) == \
        f"{MPICH} -n 4 -hosts a,b -ppn 2 {own}"
    done = subprocess.run([CATENA, "launch", "--dry-run", "-n", "3", "--hosts", "a:2,b",
                           "--survive", "--mpirun", MPICH, "--", *TRAIN], env=ENV, text=True,
                          capture_output=True, check=True)
    assert done.stdout.startswith(f"{MPICH} -n 3 -hosts a:2,b:1 "), done.stdout
    assert "cannot survive a loss under MPICH" in done.stderr, done.stderr


def test_slurm():
    """In a Slurm job mpirun finds the hosts by itself."""
    Path("scontrol").write_text('#!/bin/sh\n[ "$*" = "show hostnames n[1-3]" ] && '
                                'printf "n1\\nn2\\nn3\\n"\n')
    Path("scontrol").chmod(0o755)
    env = {**ENV, "PATH": f"{Path.cwd()}:{ENV['PATH']}", "SLURM_JOB_NODELIST": "n[1-3]",
           "SLURM_TASKS_PER_NODE": "2(x2),1"}
    for words, ranks in (([], ""), (["-n", "5"], "-n 5 ")):
        done = subprocess.run([CATENA, "launch", "--dry-run", *words, "--mpirun", MPIRUN, "--",
                               "selftest"], env=env, text=True, capture_output=True, check=True)
        assert done.stdout.startswith(f"{MPIRUN} {ranks}--map-by slot --bind-to none"), done.stdout


# ---- jobs


def stopped_at():
    """The step of the last checkpoint."""
    done = subprocess.run([CATENA, "checkpoint", "ls", "result", "--json"], env=ENV, text=True,
                          capture_output=True, check=True)
    return json.loads(done.stdout)["folders"][0]["states"][-1]["iteration"]


def weights(out):
    return Path(out, "weights.safetensors").read_bytes()


def test_plain():
    make_arrays()
    job = launch("-n", 2, "--json", "--", *TRAIN, "--iterations", 20)
    text = finish(job)
    end = ending()
    assert end["code"] == 0 and end["restarts"] == 0 and end["end"] == "done", end
    assert end["ranks"] == 2 and end["cause"] is None and end["seconds"] > 0, end
    assert "ranks: 2\n" in Path("result/config.yaml").read_text()
    assert "done: 20 iterations" in text and "kill -USR1" not in text, text
    assert f"to stop and save: Ctrl-C or kill {job.pid}" in text, text
    finish(launch("-n", 2, "--json", "--", "selftest"))
    assert ending()["end"] == "done" and ending()["ranks"] == 2, ending()


def test_survive():
    """Open MPI starts and connects ranks with the options of --survive."""
    make_arrays()
    finish(launch("-n", 2, "--survive", "--", *TRAIN, "--iterations", 5))
    assert "done: 5 iterations" in Path("out").read_text()


def script(name, text):
    """A launcher that is not quite what it seems to be."""
    path = Path(name)
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exec {MPIRUN} --version\n{text}\n')
    path.chmod(0o755)
    return path.resolve()


def test_never_ran():
    """A launcher that starts nothing and returns 0, as Open MPI's does with --survive if all ranks
    are killed at the start."""
    make_arrays()
    nothing = script("nothing", "exit 0")
    for words in ([*TRAIN, "--iterations", 5], ["selftest"]):
        for options in ([], ["--survive"]):
            text = finish(launch("-n", 2, *options, "--json", "--", *words, mpirun=nothing), code=7)
            assert ending()["end"] == "lost", ending()
            assert "rank 0 has not reported a result" in text, text
    assert not Path("result").exists()
    waits = script("waits", 'trap "exit 0" USR1\ntouch waiting\nwhile :; do sleep 0.1; done')
    job = launch("-n", 2, "--survive", "--json", "--", *TRAIN, "--iterations", 5, mpirun=waits)
    wait_for(lambda: Path("waiting").exists(), "the launcher")
    job.send_signal(signal.SIGTERM)
    finish(job, code=128 + signal.SIGTERM)
    assert ending()["end"] == "stopped", ending()


def test_lost_exit_codes():
    """A launcher that always returns 0, as MPICH's does after some failures."""
    make_arrays()
    for number, real in enumerate(filter(None, (MPIRUN, MPICH))):
        for mpirun in script("zero", f'{real} "$@"\nexit 0'), script("one", f'{real} "$@"\nexit 1'):
            out = f"{mpirun.name}{number}"
            finish(launch("-n", 2, "--", *TRAIN, "--iterations", 9, "--out", out, mpirun=mpirun))
            text = finish(launch("-n", 2, "--restarts", 3, "--json", "--", *TRAIN, "--target",
                                 "none.npy", "--iterations", 9, "--out", f"{out}b", mpirun=mpirun),
                          code=4)
            assert ending()["end"] == "failed" and "not started again" in text, (ending(), text)


def test_lost_at_start():
    """A rank that dies while MPI starts is a reason to start again, also with --survive."""
    make_arrays()
    if not shutil.which("cc"):
        print("  no cc: not checked")
        return
    Path("dies.c").write_text("""
        #include <signal.h>
        #include <stdlib.h>
        #include <unistd.h>
        int MPI_Comm_dup(void *from, void *to) {
            (void)from, (void)to;
            const char *rank = getenv("OMPI_COMM_WORLD_RANK");
            if (rank && rank[0] == '1') kill(getpid(), SIGKILL);
            return 13; /* the others find that it is gone, and say so in their way */
        }""")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "dies.so", "dies.c"], check=True)
    once = script("once", f"""if mkdir first; then export LD_PRELOAD=$PWD/dies.so; fi
exec {MPIRUN} "$@\"""")
    for options in ([], ["--survive"]):
        shutil.rmtree("first", ignore_errors=True)
        shutil.rmtree("result", ignore_errors=True)
        text = finish(launch("-n", 2, *options, "--restarts", 2, "--json", "--", *TRAIN,
                             "--iterations", 5, mpirun=once))
        assert ending()["end"] == "done" and ending()["restarts"] == 1, (ending(), text)


def test_killed_rank():
    """The job is started again, resumes, and ends with the same bits as without the loss."""
    make_arrays()
    for mpirun in filter(None, (MPIRUN, MPICH)):
        shutil.rmtree("result", ignore_errors=True)
        shutil.rmtree("whole", ignore_errors=True)
        job = launch("-n", 2, "--restarts", 3, "--json", "--", *FOREVER, mpirun=mpirun)
        kill_rank(1)
        wait_for_restart()
        job.send_signal(signal.SIGTERM)
        text = finish(job, code=85)
        cause = r"rank 1 on \S+ died, step \d+ .*"
        if mpirun == MPICH:  # may kill the other ranks before they name the cause, and return 0
            cause = f"({cause}|the job ended .*)"
        says = rf"catena launch: {cause}; restart 1 of 3 in 1 s, on 2 ranks\n"
        assert re.search(says, text), text
        assert text.count("resuming at iteration") == 1, text
        assert ending()["restarts"] == 1 and ending()["code"] == 85, ending()
        steps = stopped_at() + 20
        finish(launch("-n", 2, "--", *TRAIN, "--iterations", steps, "--resume", mpirun=mpirun))
        finish(launch("-n", 2, "--", *TRAIN, "--iterations", steps, "--out", "whole"))
        assert weights("result") == weights("whole"), mpirun
        assert not saved() and not marked()


def test_used_up():
    make_arrays()
    job = launch("-n", 2, "--restarts", 1, "--", *FOREVER)
    kill_rank(0)
    wait_for_restart()
    kill_rank(1)
    text = finish(job, code=None)
    assert re.search(r"catena launch: rank 1 on \S+ died, .*; all 1 restarts are used up", text), \
        text
    assert saved() and "lost after" in text, text


def test_same_error_again():
    """An error that would come back is not worth a restart."""
    make_arrays()
    text = finish(launch("-n", 2, "--restarts", 3, "--", *TRAIN, "--target", "none.npy",
                         "--iterations", 9), code=4)
    assert "not started again" in text and "0 restarts, exit code 4" in text, text


def test_stop():
    """SIGTERM, SIGINT and SIGUSR1 let the ranks save; the job is not restarted."""
    make_arrays()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        shutil.rmtree("result", ignore_errors=True)
        job = launch("-n", 2, "--restarts", 3, "--", *FOREVER)
        wait_for(saved, "a checkpoint")
        job.send_signal(number)
        text = finish(job, code=85)
        assert "stopped (SIGUSR1)" in text and "0 restarts, exit code 85" in text, text
        assert saved() and not marked()


def test_stop_in_a_pause():
    """The pause takes 1 s. If the signal comes later, on a busy machine, the test tries again."""
    make_arrays()
    text = "resuming"
    while "resuming" in text:
        shutil.rmtree("result", ignore_errors=True)
        job = launch("-n", 2, "--restarts", 9, "--", *FOREVER)
        kill_rank(1)
        wait_for(lambda: "restart 1 of 9" in error(), "the loss")
        job.send_signal(signal.SIGTERM)
        text = finish(job, code=85)
        assert "stopped after" in text, text


def test_stuck():
    """Ranks that do not react are killed after --stop-seconds."""
    make_arrays()
    job = launch("-n", 2, "--stop-seconds", 0.5, "--", *FOREVER)
    wait_for(saved, "a checkpoint")
    for n in (0, 1):
        os.kill(rank(n), signal.SIGSTOP)
    job.send_signal(signal.SIGTERM)
    finish(job, code=85)
    assert not marked()


def test_killed_mpirun():
    """Ranks that outlive mpirun do not disturb the next start."""
    make_arrays()
    job = launch("-n", 2, "--restarts", 1, "--", *FOREVER)
    wait_for(saved, "a checkpoint")
    parent = Path(f"/proc/{rank(0)}/stat").read_text().rsplit(")", 1)[1].split()[1]
    os.kill(int(parent), signal.SIGKILL)
    wait_for_restart()
    job.send_signal(signal.SIGTERM)
    text = finish(job, code=85)
    assert "restart 1 of 1" in text, text


def test_killed_launch():
    """mpirun and its ranks end with it."""
    make_arrays()
    job = launch("-n", 2, "--", *FOREVER)
    wait_for(saved, "a checkpoint")
    job.kill()
    job.wait()
    wait_for(lambda: not marked(), "the end of the ranks")


def main():
    tests = {name[5:]: fn for name, fn in globals().items() if name.startswith("test_")}
    for name in sys.argv[2:] or list(tests):
        with (tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
              tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as ENV["TMPDIR"]):
            os.chdir(folder)
            began = time.monotonic()
            try:
                tests[name]()
                left = marked()
                assert not left, f"{name} has left processes: {sorted(left)}"
            finally:
                for pid in marked():
                    os.kill(pid, signal.SIGKILL)
                os.chdir("/")
            print(f"ok {name} ({time.monotonic() - began:.1f} s)", flush=True)


main()
