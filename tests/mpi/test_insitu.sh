#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/mpi/test_insitu.sh LIBDIR MPIRUN [OPTION ...]: runs the solvers of examples/insitu, in C and
# in Fortran, on two ranks, in three variants: without Catena, linked but not training, training.
# The solver's result must be bitwise equal in all variants and both languages, and the surrogate
# must learn. Signals, affinity, floating-point mode, OpenMP settings and MPI error handlers must
# not change (host_state.c). The C part runs again with upward rounding and trapping exceptions.
# LIBDIR holds libcatena.so and the plug-ins. MPICC and MPIFC are the compilers; without MPIFC the
# Fortran part is skipped with a message.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
top=$(cd "$here/../.." && pwd -P)
lib=$(cd "${1:?usage: test_insitu.sh LIBDIR MPIRUN [OPTION ...]}" && pwd -P)
shift
launch=("$@")
read -ra cc <<< "${MPICC:-mpicc} -O2 -fopenmp -Wall -Wextra -Werror -I$top/include"
read -ra fc <<< "${MPIFC:-} -O2 -fopenmp -Wall -Wextra -Werror"
link=("-L$lib" "-Wl,-rpath,$lib" -lcatena -lm)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset CATENA_MPI CATENA_PLUGIN_DIR
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 CATENA_TUNE=0
export OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive OMP_SCHEDULE=guided,7

die() { echo "insitu: $*" >&2; exit 1; }

# Pins each rank to one of the available CPUs, so that a changed affinity is noticed.
cat > pinned << 'EOF'
#!/usr/bin/env bash
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}
cpus=()
IFS=, read -ra parts <<< "$(taskset -cp $$ | sed 's/.*: //')"
for part in "${parts[@]}"; do
    for ((c = ${part%-*}; c <= ${part#*-}; c++)); do cpus+=("$c"); done
done
exec taskset -c "${cpus[rank % ${#cpus[@]}]}" env LD_PRELOAD="$HOST_PRELOAD" "$@"
EOF
chmod +x pinned

# run NAME PROGRAM [ARGUMENT]: runs the program in folder NAME and leaves result and reports there.
run() {
    local name=$1
    shift
    mkdir "$name"
    (cd "$name" && HOST_PRELOAD=$work/host_state.so HOST_REPORT=$work/$name/host timeout 300 \
        "${launch[@]}" -n 2 "$work/pinned" "$@" > log 2> errors) ||
        { cat "$name/log" "$name/errors" >&2; die "$name: exit code $?"; }
    [ "$(stat -c %s "$name/heat.bin")" = 131072 ] ||
        die "$name: heat.bin has $(wc -c < "$name/heat.bin") bytes, expected 131072"
}

# same A B: compares the solver's results and the process state at the end of both runs.
same() {
    cmp "$1/heat.bin" "$2/heat.bin" || die "$1 and $2: the solver's results differ"
    [ "$(grep -o 'heat *[0-9.]*' "$1/log")" = "$(grep -o 'heat *[0-9.]*' "$2/log")" ] ||
        die "$1 and $2: the printed heat differs"
    for rank in 0 1; do
        diff "$1/host.$rank.exit" "$2/host.$rank.exit" ||
            die "$1 and $2: the state at the end of rank $rank differs"
    done
}

# trained NAME: the process state was unchanged after every call (two checks in each of 400 steps),
# and the surrogate's error is less than a fifth of that of predicting "no change".
trained() {
    for rank in 0 1; do
        grep -q '^checks 8[0-9][0-9], changes 0$' "$1/host.$rank.calls" ||
            { cat "$1/host.$rank.calls" >&2; die "$1: the state of rank $rank has changed"; }
    done
    tail -1 "$1/log" | awk '{ exit !($6 > 0 && $6 * 5 < $8) }' ||
        { cat "$1/log" >&2; die "$1: the surrogate has not learned"; }
}

# variants NAME PLAIN LINKED
variants() {
    run "$1.plain" "$2"
    run "$1.idle" "$3" --no-train
    run "$1.train" "$3"
    same "$1.plain" "$1.idle"
    same "$1.plain" "$1.train"
    trained "$1.train"
    echo "insitu: $1: results and state are equal without Catena, linked, and training;" \
        "$(tail -1 "$1.train/log")"
}

"${cc[@]}" -DHOST_MAIN "$here/host_state.c" -o host_state -ldl -lm
"${launch[@]}" -n 1 ./host_state || die "host_state does not see every change"
"${cc[@]}" -shared -fPIC "$here/host_state.c" -o host_state.so -ldl -lm

insitu=$top/examples/insitu
"${cc[@]}" -DNO_CATENA "$insitu/insitu.c" -o plain
"${cc[@]}" "$insitu/insitu.c" -o insitu "${link[@]}"
variants C "$work/plain" "$work/insitu"
HOST_MODE=hard OMP_DYNAMIC=true variants hard "$work/plain" "$work/insitu"
cmp -s C.plain/heat.bin hard.plain/heat.bin && die "rounding upwards has made no difference"

if [ -z "${MPIFC:-}" ]; then
    echo "insitu: skipped the Fortran part: this MPI has no Fortran compiler"
    exit 0
fi
fortran=$top/bindings/fortran
"${fc[@]}" -DNO_CATENA "$insitu/insitu.F90" -o plain_f
mapfile -t modules < <(sed "s|^|$fortran/|" "$fortran/SOURCES")
"${fc[@]}" -c "${modules[@]}" "$fortran/catena_f08.f90"
"${fc[@]}" "$insitu/insitu.F90" catena*.o -o insitu_f "${link[@]}"
variants Fortran "$work/plain_f" "$work/insitu_f"
cmp C.plain/heat.bin Fortran.plain/heat.bin || die "C and Fortran: the solver's results differ"
# The test compares reals for equality on purpose.
"${fc[@]}" -fcheck=all -Wno-compare-reals -Wno-function-elimination \
    "$here/test_fortran.f90" catena*.o -o fortran "${link[@]}"
"${launch[@]}" -n 2 ./fortran || die "test_fortran: exit code $?"
