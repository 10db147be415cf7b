#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/cluster/test_requeue.sh CATENA: runs the job scripts of docs/cluster.md under a real Slurm.
# A job is requeued and resumes if it was asked to stop, or if its launcher was killed and lost the
# exit code. A job that is complete, cancelled or without data is not requeued. The script of
# docs/quickstart.md fails when its training fails. The script of docs/tutorial-cluster.md is
# stopped by its time limit, requeued, and completes. Exit code 0, 1, or 77 (skipped).
set -uo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
catena=$(realpath -e "${1:?usage: test_requeue.sh CATENA}") || exit 2
work=$(mktemp -d /tmp/catena-requeue.XXXXXX)
export CATENA_CLUSTER_DIR=$work/state OMP_NUM_THREADS=1 CATENA_TUNE=0 OMP_WAIT_POLICY=passive
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cluster=$top/dev/cluster
bad=0
trap '"$cluster" down; rm -rf "$work"' EXIT

"$top/tests/cluster/make_arrays.py" "$work" 503 || exit 1

"$cluster" up --hosts 2 --rate 1gbit || exit $?
"$cluster" slurm up || { echo "skipped: no Slurm here" && exit 77; }

c() { timeout 60 "$cluster" exec head "$@"; }
job() {
    c scontrol show job "$(< "$work/$1/id")" 2> /dev/null | grep -oE "\b$2=[^ ]*" | cut -d= -f2
}
# await SECONDS COMMAND...: repeats the command until it succeeds, for at most this time.
await() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.2
    done
}
saved() { [ -e "$work/$1/result/unfinished" ]; }
again() { [ "$(job "$1" Restarts)" = 1 ]; }
over() { [[ $(job "$1" JobState) =~ ^(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL)$ ]]; }
failed() { echo "FAILED  $1: $2" && cat "$work/$1/log" && bad=1; }

# submit NAME BLOCK: submits this script of the documentation with a small training on two hosts.
# The training ends after the number of steps in the file `steps`.
submit() {
    local dir=$work/$1
    local train="$catena train mlp --data $work/x.npy --target $work/y.npy --hidden 16"
    train+=" --batch 16 --epochs 0"
    local more="--iterations \$(cat steps) --oversubscribe --quiet"
    mkdir "$dir"
    echo 100000000 > "$dir/steps"
    python3 "$top/tests/consumer/docs.py" --print "$2" "$top/docs/cluster.md" |
        sed "s|catena train resnet50 --data shards|$train $more|" > "$dir/job"
    grep -qF "$train" "$dir/job" || failed "$1" "the script is not in docs/cluster.md"
    c sbatch --parsable --oversubscribe -D "$dir" -N2 --ntasks-per-node=1 --cpus-per-task=1 \
        --time=20 -o "$dir/log" --open-mode=append "$dir/job" > "$dir/id"
}

# requeued NAME TEXT: checks that the job was requeued once, resumed from its saved state and then
# completed.
requeued() {
    local ok=yes
    await 60 again "$1" || ok="it was not requeued"
    await 90 over "$1" || ok="it does not end"
    [ "$(job "$1" JobState)" = COMPLETED ] || ok="its state is $(job "$1" JobState)"
    [ ! -e "$work/$1/result/unfinished" ] || ok="unfinished is still there"
    grep -q 'resuming at iteration' "$work/$1/log" || ok="it did not resume"
    [ "$ok" = yes ] && echo "ok      $2: requeued once, then complete" || failed "$1" "$ok"
}

# All jobs run side by side, because Slurm makes a requeued job wait for 11 s.
# The tutorial's script is run as it is, apart from the length of the training and the time limit.
# Slurm looks at time limits every 30 s, so it sends the signal after 10 to 40 s.
tutorial=$work/tutorial
mkdir "$tutorial"
echo 100000000 > "$tutorial/steps"
cp "$work/x.npy" "$work/y.npy" "$tutorial"
ln -s waves.log "$tutorial/log"
python3 "$top/tests/consumer/docs.py" --print sbatch "$top/docs/tutorial-cluster.md" |
    sed -e "s|catena train|$catena train|" \
        -e "s|--epochs [0-9]*|--epochs 0 --iterations \$(cat steps)|" > "$tutorial/waves.sbatch"
grep -q -- --iterations "$tutorial/waves.sbatch" || failed tutorial "no script in the tutorial"
c sbatch --parsable --oversubscribe -D "$tutorial" --time=1 --signal=USR1@20 \
    "$tutorial/waves.sbatch" > "$tutorial/id"
submit term slurm-mpirun
await 60 saved term || failed term "no state after 60 s"
echo 1 > "$work/term/steps" # whatever was saved is beyond this end
timeout 60 "$cluster" exec node1 bash -c 'for p in /proc/[0-9]*; do
    [[ $(readlink "$p/exe") != */@(mpirun*|prte|prterun) ]] || kill -TERM "${p#/proc/}"
done' 2> /dev/null
submit srun slurm-srun
submit mpirun slurm-mpirun
submit cancel slurm-srun
for name in srun mpirun cancel tutorial; do
    await 60 saved $name || failed $name "no state after 60 s"
done
echo 1 | tee "$work/srun/steps" "$tutorial/steps" > "$work/mpirun/steps"
c scancel --signal=USR1 "$(< "$work/srun/id")"
c scancel --batch --signal=USR1 "$(< "$work/mpirun/id")"
c scancel "$(< "$work/cancel/id")"

# One task, as in docs/quickstart.md, but without data to train on.
mkdir "$work/fails"
python3 "$top/tests/consumer/docs.py" --print slurm-quickstart "$top/docs/quickstart.md" |
    sed "s|srun catena train|srun $catena train|" > "$work/fails/job"
c sbatch --parsable --oversubscribe -D "$work/fails" -n1 --time=20 -o "$work/fails/log" \
    "$work/fails/job" > "$work/fails/id"

requeued term "mpirun, TERM to mpirun itself"
requeued srun "srun, USR1 to the ranks"
requeued mpirun "mpirun, USR1 to the script"
grep -q 'stopped (SIGUSR1)' "$work/mpirun/log" || failed mpirun "the ranks were not asked to stop"
requeued tutorial "srun, time limit of the tutorial's script"
grep -q 'stopped (SIGUSR1)' "$tutorial/log" || failed tutorial "the ranks were not asked to stop"
grep -q 'exit code 85' "$tutorial/log" || failed tutorial "no rank exited with 85"
if over cancel && [ "$(job cancel JobState)" = CANCELLED ] && [ "$(job cancel Restarts)" = 0 ]; then
    echo "ok      scancel: not requeued"
else
    failed cancel "$(job cancel JobState), restarts $(job cancel Restarts)"
fi
await 60 over fails || failed fails "it does not end"
if [ "$(job fails JobState)" = FAILED ] && [ "$(job fails Restarts)" = 0 ] &&
    grep -q "shards" "$work/fails/log"; then
    echo "ok      a training that fails: the job has failed too, and is not requeued"
else
    failed fails "$(job fails JobState), restarts $(job fails Restarts)"
fi
exit $bad
