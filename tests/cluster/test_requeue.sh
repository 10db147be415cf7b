#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/cluster/test_requeue.sh CATENA: runs the job scripts of docs/cluster.md under a real Slurm.
# A job is requeued and resumes if it was asked to stop, or if its launcher was killed and lost the
# exit code. A job that is complete, cancelled or without data is not requeued. The script of
# docs/command.md fails when its training fails. The script of docs/tutorial-cluster.md is
# stopped by its time limit, requeued, and completes. Trainings on four ranks under srun and mpirun
# that their time limits stop end with the same bits as one uninterrupted training. Exit code 0, 1,
# or 77 (skipped).
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

. "$top/tests/cluster/common.sh"
job() {
    c exec head scontrol show job "$(< "$work/$1/id")" 2> /dev/null |
        grep -oE "\b$2=[^ ]*" | cut -d= -f2
}
saved() { [ -e "$work/$1/result/unfinished" ]; }
again() { [ "$(job "$1" Restarts)" = 1 ]; }
over() { [[ $(job "$1" JobState) =~ ^(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL)$ ]]; }
failed() { echo "FAILED  $1: $2" && cat "$work/$1/log" && bad=1; }

# submit NAME BLOCK [OPTION...]: submits this script of the documentation with a small training on
# two hosts and with these options of sbatch. The training ends after the number of steps in the
# file `steps`. Jobs that choose their allreduce by measurement might add in different orders.
submit() {
    local dir=$work/$1 script=$2
    local train="$catena train mlp --data $work/x.npy --target $work/y.npy --hidden 16"
    train+=" --batch 16 --epochs 0"
    local more="--iterations \$(cat steps) --allreduce ring --oversubscribe --quiet"
    mkdir -p "$dir"
    [ -e "$dir/steps" ] || echo 100000000 > "$dir/steps"
    python3 "$top/tests/consumer/docs.py" --print "$script" "$top/docs/cluster.md" |
        sed "s|catena train resnet50 --data shards|$train $more|" > "$dir/job"
    grep -qF "$train" "$dir/job" || failed "$1" "the script is not in docs/cluster.md"
    shift 2
    c exec head sbatch --parsable --oversubscribe -D "$dir" -N2 --ntasks-per-node=1 \
        --cpus-per-task=1 --time=20 -o "$dir/log" --open-mode=append "$@" "$dir/job" > "$dir/id"
}

# requeued NAME TEXT: checks that the job was requeued once, resumed from its saved state and then
# completed.
requeued() {
    local ok=yes
    await 180 again "$1" || ok="it was not requeued"
    await 180 over "$1" || ok="it does not end"
    [ "$(job "$1" JobState)" = COMPLETED ] || ok="its state is $(job "$1" JobState)"
    [ ! -e "$work/$1/result/unfinished" ] || ok="unfinished is still there"
    grep -q 'resuming at iteration' "$work/$1/log" || ok="it did not resume"
    [ "$ok" = yes ] && echo "ok      $2: requeued once, then complete" || failed "$1" "$ok"
}

# The number of steps after which a job was stopped.
stopped_at() { sed -n 's/^stopped: \([0-9]*\) iterations.*/\1/p' "$work/$1/log" | head -n 1; }

# The rows of a job's log, without their times.
rows() { sed -E 's/"(seconds|compute_s|input_s|other_s)":[^,]*,//g' "$work/$1/result/log.jsonl"; }

# same_bits NAME TEXT: compares the results of a job with those of the uninterrupted one. The
# position of the end of the log depends on the times in it.
same_bits() {
    local ok=yes differ="$work/$1/diff" count
    "$catena" checkpoint diff "$work/whole/result" "$work/$1/result" > "$differ"
    count=$(sed -n 's/^[0-9]* of \([0-9]*\) arrays differ$/\1/p' "$differ")
    [ -n "$count" ] || ok="the final states cannot be compared"
    ! grep -E ' (differs|is only in .*|has another .*)$' "$differ" | grep -vF '[log].position' ||
        ok="the final states differ"
    cmp "$work/whole/result/weights.safetensors" "$work/$1/result/weights.safetensors" ||
        ok="the weights differ"
    diff <(rows whole) <(rows "$1") || ok="the logs differ"
    if [ "$ok" = yes ]; then
        echo "ok      $2: stopped at step $(stopped_at "$1") of $(< "$work/$1/steps")," \
            "same bits as without a stop: $count arrays of the state, the weights," \
            "$(rows "$1" | wc -l) rows of the log"
    else
        failed "$1" "$ok"
    fi
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
c exec head sbatch --parsable --oversubscribe -D "$tutorial" --time=1 --signal=USR1@20 \
    "$tutorial/waves.sbatch" > "$tutorial/id"
submit term slurm-mpirun
await 60 saved term || failed term "no state after 60 s"
echo 1 > "$work/term/steps" # whatever was saved is beyond this end
c exec node1 bash -c 'for p in /proc/[0-9]*; do
    [[ $(readlink "$p/exe") != */@(mpirun*|prte|prterun) ]] || kill -TERM "${p#/proc/}"
done' 2> /dev/null
submit srun slurm-srun --ntasks-per-node=2 --time=1 --signal=USR1@20
submit mpirun slurm-mpirun --ntasks-per-node=2 --time=1 --signal=B:USR1@20
submit cancel slurm-srun
for name in srun mpirun cancel tutorial; do
    await 60 saved $name || failed $name "no state after 60 s"
done
echo 1 > "$tutorial/steps"
c exec head scancel "$(< "$work/cancel/id")"

# One task, as in docs/command.md, but without data to train on.
mkdir "$work/fails"
python3 "$top/tests/consumer/docs.py" --print slurm-command "$top/docs/command.md" |
    sed "s|srun catena train|srun $catena train|" > "$work/fails/job"
c exec head sbatch --parsable --oversubscribe -D "$work/fails" -n1 --time=20 -o "$work/fails/log" \
    "$work/fails/job" > "$work/fails/id"

# The jobs that their time limits have stopped train 200 steps more, and another one trains as long
# without a stop. No time limit is in reach any more.
most=0
for name in srun mpirun; do
    await 180 again $name || failed $name "it was not requeued"
    c exec head scontrol update JobId="$(< "$work/$name/id")" TimeLimit=20
    c exec head scontrol hold "$(< "$work/$name/id")"
    k=$(stopped_at $name)
    [ "${k:-0}" -le $most ] || most=$k
done
mkdir "$work/whole"
echo $((most + 200)) | tee "$work/srun/steps" "$work/mpirun/steps" > "$work/whole/steps"
c exec head scontrol release "$(< "$work/srun/id")" "$(< "$work/mpirun/id")"
submit whole slurm-srun --ntasks-per-node=2

requeued term "mpirun, TERM to mpirun itself"
for name in srun mpirun; do
    requeued $name "$name, time limit"
    grep -q 'stopped (SIGUSR1)' "$work/$name/log" || failed $name "the ranks were not asked to stop"
done
await 180 over whole || failed whole "it does not end"
same_bits srun "4 ranks, srun"
same_bits mpirun "4 ranks, mpirun"
requeued tutorial "srun, time limit of the tutorial's script"
grep -q 'stopped (SIGUSR1)' "$tutorial/log" || failed tutorial "the ranks were not asked to stop"
grep -q 'exit code 85' "$tutorial/log" || failed tutorial "no rank exited with 85"
await 60 over cancel || failed cancel "it does not end"
if [ "$(job cancel JobState)" = CANCELLED ] && [ "$(job cancel Restarts)" = 0 ]; then
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
