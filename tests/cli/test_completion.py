#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/cli/test_completion.py SHARE [SHELL ...]: what the Tab key offers.

SHARE is the folder `share` of a build or an installation, with the scripts that
`catena help --completion` printed. Each script is tested in its own shell, if that is installed.
Shells that are named must be installed.
"""
import os
import pty
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SHARE = Path(sys.argv[1]).resolve()
SCRIPTS = {"bash": "bash-completion/completions/catena", "zsh": "zsh/site-functions/_catena",
           "fish": "fish/vendor_completions.d/catena.fish"}

BASH = r"""
source "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_catena
printf '%s\n' "${COMPREPLY[@]}"
"""

# Writes the matches to the file $HITS and ends at the first Tab. The functions of the completion
# system call compadd with -O, -A or -D for their own purposes.
ZSH = r"""
PROMPT= fpath=($SCRIPTS $fpath)
autoload -Uz compinit
compinit -u -D
compadd() {
    [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]] || { builtin compadd "$@"; return }
    local -a hits
    builtin compadd -A hits "$@"
    print -rl -- $hits >> $HITS
    builtin compadd "$@"
}
finish() { exit }
comppostfuncs=(finish)
"""


def in_bash(script, line):
    # Readline makes words of its own of `=`.
    words = line.replace("=", " = ").split(" ")
    words = [w for w in words[:-1] if w] + words[-1:]
    return run("bash", "--norc", "-c", BASH, "bash", str(script), *words)


def in_fish(script, line):
    command = "source $argv[1]; complete -C $argv[2]"
    return [hit.split("\t")[0] for hit in run("fish", "--no-config", "-c", command, script, line)]


def in_zsh(script, line):
    Path("setup.zsh").write_text(ZSH)
    Path("hits").write_text("")
    master, slave = pty.openpty()
    env = {**os.environ, "HITS": "hits", "SCRIPTS": str(script.parent), "TERM": "dumb"}
    shell = subprocess.Popen(["zsh", "-f", "-i"], env=env, stdin=slave, stdout=slave, stderr=slave,
                             start_new_session=True)
    os.close(slave)
    os.write(master, f"source ./setup.zsh\n{line}\t".encode())
    try:
        while os.read(master, 4096):  # an error: the shell has closed its end
            pass
    except OSError:
        pass
    shell.wait(timeout=60)
    os.close(master)
    hits = Path("hits").read_text().split("\n")
    Path("setup.zsh").unlink()
    Path("hits").unlink()
    return [hit for hit in hits if hit]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == "", (command[-1], done.stderr)
    return [line for line in done.stdout.split("\n") if line]


def check(shell):
    complete = {"bash": in_bash, "zsh": in_zsh, "fish": in_fish}[shell]
    script = SHARE / SCRIPTS[shell]

    def offers(line, expected, never=()):
        # Some shells show `--name=`, `--option=value` or `folder/`.
        hits = {h.rstrip("/=") for h in complete(script, line)}
        hits |= {h.split("=")[1] for h in hits if "=" in h}
        missing = set(expected.split()) - hits
        extra = hits & set(never.split()) if never else set()
        assert not missing and not extra, (line, "missing", missing, "extra", extra, hits)
        return hits

    Path("data").mkdir()
    Path("data.npy").write_text("")
    offers("catena ", "train eval plan mpi-setup help", "--help data data.npy")
    assert offers("catena verif", "verify-resume") == {"verify-resume"}
    offers("catena --", "--help --version", "train")
    offers("catena train ", "resnet50 mlp", "--data train")
    offers("catena train resn", "resnet50 resnet20_cifar", "mlp")
    offers("catena train mlp --", "--data --optimizer --config --help", "mlp data")
    offers("catena train mlp --data x --opt", "--optimizer", "--out")
    offers("catena train mlp --optimizer ", "auto sgd adam adamw lamb", "mlp --data data")
    offers("catena train mlp --optimizer=ad", "adam adamw adagrad", "sgd mlp")
    offers("catena train mlp --data ", "data data.npy", "mlp")
    offers("catena train mlp --out ", "data", "data.npy mlp")
    assert not offers("catena train mlp --lr ", "")
    offers("catena train ./", "")
    offers("catena pack ", "data data.npy", "mlp")
    offers("catena pack data ", "data data.npy")
    offers("catena checkpoint ", "ls verify")
    offers("catena checkpoint ls ", "data")
    offers("catena weights ", "data data.npy", "resnet50")
    offers("catena weights data.npy data.npy --to ", "data data.npy")
    offers("catena weights data.npy --cast ", "f32 bf16", "data")
    offers("catena launch -n 2 -", "--ranks --hosts")
    offers("catena launch -n 2 -- ", "train eval", "--hosts")
    offers("catena launch -n 2 -- train mlp --optimizer ", "adam adamw", "mlp")
    offers("catena launch -n 2 -- train mlp --opt", "--optimizer", "--hosts")
    offers("catena verify-resume mlp -- --opt", "--optimizer", "--rounds")
    offers("catena help ", "train mpi-setup")
    offers("catena help --completion ", "bash zsh fish", "train")


def main():
    named, bad, tested = sys.argv[2:], 0, 0
    for shell in named or SCRIPTS:
        if not named and not shutil.which(shell):
            print(f"skipped {shell}: it is not installed")
            continue
        with tempfile.TemporaryDirectory() as work:
            os.chdir(work)
            try:
                check(shell)
                print(f"ok      {shell}")
            except (AssertionError, OSError, subprocess.TimeoutExpired) as e:
                print(f"FAILED  {shell}: {e}")
                bad += 1
            os.chdir("/")
        tested += 1
    return 1 if bad else 0 if tested else 77


if __name__ == "__main__":
    sys.exit(main())
